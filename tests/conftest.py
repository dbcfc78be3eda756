"""Settings of the whole suite."""

from __future__ import annotations

import os
from contextlib import contextmanager

# The suite already runs one process per core. Set before NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "knowmore", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("knowmore")


@pytest.fixture
def little_room():
    """`with little_room(n)`: no file can grow beyond n bytes. Writers meet it as a full disk."""
    resource = pytest.importorskip("resource", reason="needs limits of Unix")

    @contextmanager
    def limited(most):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
