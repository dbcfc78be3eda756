"""Novelty: a third of the classes is unknown. How well does a score tell their rows apart?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.metrics import roc_auc_score

from knowmore import GPClassifier
from knowmore.insight import novelty
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.peers import energy, logistic, mahalanobis, softmax_novelty
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import CALTECH256, DIGITS, EMBEDDINGS, SCENES, Table, look

_OURS = "novelty"
# Rows of each known class that are learnt, and rows of each class that are tested.
_TABLES = {
    (SCENES, EMBEDDINGS): (60, 40),
    (CALTECH256, EMBEDDINGS): (15, 8),
    (DIGITS, ""): (80, 40),
}


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Few classes, many, and digits; five splits, each with strangers of its own."""
    found: Found = []
    for i, ((source, feature), sizes) in enumerate(_TABLES.items()):
        progress(i / len(_TABLES), source)
        learnt, tested = (12, 8) if quick else sizes
        rows = partial(_rows, source, feature, seed, quick, learnt, tested)
        found += attempted(f"novelty, {source}", rows)
    return found


def _rows(
    source: str, feature: str, seed: int, quick: bool, learnt: int, tested: int
) -> Iterator[Row]:
    table, rng, tally = look(source, feature, quick), np.random.default_rng(seed), Tally()
    for split in range(2 if quick else 5):
        names = rng.permutation(table.classes)
        strangers, known = np.split(names, [len(names) // 3])
        train, asked = table.split(rng, learnt, tested, known)
        _, strange = table.split(rng, learnt, tested, strangers)
        for way, values in _ways(table, train, np.concatenate([asked, strange])).items():
            is_new = np.repeat([False, True], [len(asked), len(strange)])
            tally.timed(split, way, partial(_area, is_new, values))
    yield from tally.rows("novelty", f"{table.name}, {len(known)} classes known", _OURS)


def _ways(table: Table, train: Array, asked: Array) -> dict[str, Callable[[], Array]]:
    X, y, Z = table.X[train], table.y[train], table.X[asked]
    return {
        _OURS: lambda: novelty(GPClassifier().fit(X, y), Z).values,
        "Mahalanobis": lambda: mahalanobis(X, y, Z),
        "energy, logistic regression": lambda: energy(logistic(table.histograms).fit(X, y), Z),
        "softmax, logistic regression": lambda: softmax_novelty(
            logistic(table.histograms).fit(X, y), Z
        ),
    }


def _area(is_new: Array, values: Callable[[], Array]) -> dict[str, float]:
    return {"AUROC": float(roc_auc_score(is_new, values()))}
