"""Probabilities as they come: how far they are from how often the answer is right.

A model that knows nothing is calibrated, too, so their log loss stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from knowmore import GPClassifier, LinearGPClassifier, LSSVMClassifier
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.peers import logistic
from papers.practice.rows import Absent, Found, Row, Tally, attempted
from papers.practice.tables import (
    CALTECH256,
    DIGITS,
    EMBEDDINGS,
    PYRAMIDS,
    SCENES,
    Table,
    look,
)

_BINS = 15
_MODELS: dict[str, Any] = {
    "GPClassifier": GPClassifier,
    "LSSVMClassifier": LSSVMClassifier,
    "LinearGPClassifier": LinearGPClassifier,
}
_PEER = "logistic regression"
# Rows of each class that are learnt, and that are tested.
_TABLES = {
    (SCENES, EMBEDDINGS): (50, 50),
    (CALTECH256, EMBEDDINGS): (15, 8),
    (SCENES, PYRAMIDS): (50, 50),
    (DIGITS, ""): (50, 60),
}


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Three classifiers on four tables, five splits; `quick`: but for pyramids, which take long."""
    found: Found = []
    tables = {key: sizes for key, sizes in _TABLES.items() if not (quick and PYRAMIDS in key)}
    for i, ((source, feature), sizes) in enumerate(tables.items()):
        progress(i / len(tables), f"{source}, {feature}")
        learnt, tested = (12, 10) if quick else sizes
        rows = partial(_rows, source, feature, seed, quick, learnt, tested)
        found += attempted(f"probabilities, {source}, {feature}", rows)
    return found


def _rows(
    source: str, feature: str, seed: int, quick: bool, learnt: int, tested: int
) -> Iterator[Row | Absent]:
    table, rng = look(source, feature, quick), np.random.default_rng(seed)
    able = {name: make for name, make in _MODELS.items() if hasattr(make, "predict_proba")}
    for name in _MODELS.keys() - able.keys():
        yield Absent(f"probabilities, {table.name}", f"{name} has no predict_proba")
    tallies = {name: Tally() for name in able}
    for split in range(2 if quick else 5):
        train, asked = table.split(rng, learnt, tested)
        theirs = partial(_error, table, train, asked, partial(logistic, table.histograms))
        for name, tally in tallies.items():
            tally.timed(split, name, partial(_error, table, train, asked, able[name]))
            tally.timed(split, _PEER, theirs)
    for name, tally in tallies.items():
        yield from tally.rows("probabilities", f"{table.name}, {name}", name, smaller=True)


def _error(table: Table, train: Array, asked: Array, make: Any) -> dict[str, float]:
    model = make().fit(table.X[train], table.y[train])
    P = model.predict_proba(table.X[asked])
    right = model.classes_[P.argmax(axis=1)] == table.y[asked]
    return {
        "expected calibration error": calibration_error(P.max(axis=1), right),
        "log loss": float(log_loss(table.y[asked], P, labels=model.classes_)),
    }


def calibration_error(confidence: Array, right: Array) -> float:
    """The mean over rows of |accuracy - confidence| of their bin, one of fifteen of equal width.

    >>> calibration_error(np.array([0.9, 0.9, 0.9, 0.9]), np.array([True, True, True, False]))
    0.15
    """
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, right - confidence, _BINS)
    return float(np.abs(gaps).sum() / len(confidence))
