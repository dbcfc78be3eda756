"""Settings of the whole suite."""

from __future__ import annotations

import os

# The suite already runs one process per core. Set before NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

settings.register_profile(
    "knowmore", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("knowmore")
