"""How time and memory grow with the number of examples."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scene import NOISE, Scale, adding, data, kernel
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import interleaved
from knowmore import GPClassifier

# Examples added at a time in the second measurement of memory: one by one would move terabytes.
_STEP = 250


def exponent(scale: Scale) -> Iterator[Row]:
    """time = c n^p for a single add: n^2 is what a triangle has to be read for."""
    X, y = data(max(scale.growth))
    clf = GPClassifier(kernel(), NOISE)
    medians: list[float] = []
    bests: list[float] = []
    raw: dict[str, Any] = {}
    for n in scale.growth:
        held = len(clf.ids_) if medians else 0
        clf.add(X[held:n], y[held:n])
        samples = interleaved(scale.growth_rounds, {"add": adding(clf, seed=n)})["add"]
        medians.append(samples.median)
        bests.append(samples.best)
        raw[str(n)] = samples.raw()
    logs = np.log(scale.growth)
    slope, fastest = (float(np.polyfit(logs, np.log(of), 1)[0]) for of in (medians, bests))
    yield Row(
        f"add one, n = {scale.growth[0]} ... {scale.growth[-1]}: exponent",
        slope,
        "",
        target=Target("<=", 2.1),
        note=", ".join(f"{second * 1e3:.3g}" for second in medians)
        + f" ms; by the fastest runs {fastest:.3g}",
        raw={
            "sizes": list(scale.growth),
            "times": raw,
            "best_exponent": fastest,
            "local_exponents": (np.diff(np.log(medians)) / np.diff(logs)).tolist(),
        },
    )


def memory(scale: Scale) -> Iterator[Row]:
    """The peak above the data, against the n (n + 1) / 2 doubles of a triangle."""
    n = scale.memory
    triangle = 8 * n * (n + 1) // 2
    for step, name in (n, "fit at once"), (_STEP, f"grown by {_STEP} at a time"):
        grown = _peak(n, step)
        yield Row(
            f"memory of n = {n}, {name}",
            grown,
            "B",
            "triangle",
            triangle,
            grown / triangle,
            target=Target("<=", 1.15),
            raw={"n": n, "step": step},
        )


def _peak(n: int, step: int) -> int:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "benchmarks.memory", str(n), str(step)]
    child = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return int(child.stdout)


BENCHMARKS: list[Benchmark] = [exponent, memory]
