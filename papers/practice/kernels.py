"""The default kernel on histograms, against kernels that are made for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from knowmore import GPClassifier
from knowmore.kernels import (
    AnyKernel,
    ExponentialIntersection,
    HistogramIntersection,
    corner,
)
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import (
    BAGS,
    CALTECH101,
    EDGES,
    PYRAMIDS,
    SCENES,
    Table,
    look,
)

_OURS = "GPClassifier()"
# How much of the rate may be lost by not knowing the kernel.
_POINT = 0.01
_LEARNT = {SCENES: (50, 60), CALTECH101: (10, 15)}


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Three kinds of histograms of two data sets, five splits."""
    found: Found = []
    pairs = [(source, feature) for source in _LEARNT for feature in (PYRAMIDS, BAGS, EDGES)]
    for i, (source, feature) in enumerate(pairs):
        progress(i / len(pairs), f"{source}, {feature}")
        rows = partial(_rows, source, feature, seed, quick)
        found += attempted(f"default kernel, {source}, {feature}", rows)
    return found


def _rows(source: str, feature: str, seed: int, quick: bool) -> Iterator[Row]:
    table, rng, tally = look(source, feature, quick), np.random.default_rng(seed), Tally()
    learnt, tested = (10, 10) if quick else _LEARNT[source]
    for split in range(2 if quick else 5):
        train, asked = table.split(rng, learnt, tested)
        X = table.X[train]
        kernels: dict[str, AnyKernel | None] = {
            _OURS: None,
            "HistogramIntersection": HistogramIntersection(),
            "ExponentialIntersection": wide(X),
        }
        for way, kernel in kernels.items():
            tally.timed(split, way, partial(_rate, table, train, asked, kernel))
    where = f"{table.name}, {learnt} a class"
    yield from tally.rows("default kernel", where, _OURS, slack=_POINT)


def wide(X: Array) -> ExponentialIntersection:
    """exp(-gamma D) with gamma one over the mean D of the rows (n, D), as is usual."""
    D = -np.log(corner(ExponentialIntersection(), X))
    return ExponentialIntersection(gamma=float(1 / D[np.triu_indices(len(X), 1)].mean()))


def _rate(table: Table, train: Array, asked: Array, kernel: AnyKernel | None) -> dict[str, float]:
    model = GPClassifier() if kernel is None else GPClassifier(kernel)
    answers = model.fit(table.X[train], table.y[train]).predict(table.X[asked])
    return {"recognised": balanced_accuracy_score(table.y[asked], answers)}
