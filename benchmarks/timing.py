"""Timing. What is compared is run in turn in one loop: a machine's speed changes by the second."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

# OpenBLAS's threads go on spinning for some milliseconds after a call. NumPy and SciPy have one
# set each, and the one that was just used would take a core from the other.
REST = 0.05


@dataclass(frozen=True)
class Samples:
    """The seconds that each of several runs of one operation took."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median time, which a user can expect."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The shortest time, which other work on the machine disturbs least."""
        return min(self.seconds)

    def raw(self) -> dict[str, Any]:
        """For the JSON file."""
        return {"median": self.median, "best": self.best, "seconds": list(self.seconds)}


def once(operation: Callable[[], object]) -> float:
    """Run it and return the seconds; garbage is collected before and not within."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        operation()
        return time.perf_counter() - start
    finally:
        if enabled:
            gc.enable()


def interleaved(
    rounds: int,
    operations: Mapping[str, Callable[[], object]],
    *,
    times: Mapping[str, int] | None = None,
    rest: float = 0.0,
    warm: int = 1,
) -> dict[str, Samples]:
    """Run all operations in turn, `rounds` times, after `warm` rounds that do not count.

    `times`: how often an operation runs within a round, if not once.
    """
    found: dict[str, list[float]] = {name: [] for name in operations}
    for index in range(warm + rounds):
        for name, operation in operations.items():
            time.sleep(rest)
            repeats = (times or {}).get(name, 1) if index >= warm else 1
            seconds = [once(operation) for _ in range(repeats)]
            if index >= warm:
                found[name] += seconds
    return {name: Samples(tuple(seconds)) for name, seconds in found.items()}


def machine() -> dict[str, Any]:
    """The machine and the versions that the numbers depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": [
            {
                key: pool.get(key)
                for key in ("internal_api", "version", "num_threads", "architecture")
            }
            for pool in threadpool_info()
            if pool.get("user_api") == "blas"
        ],
        "dtype": "float64",
        "longdouble_eps": float(np.finfo(np.longdouble).eps),
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
