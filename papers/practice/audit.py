"""The label audit: one label of twenty or of five is made wrong, and who is suspected?

A blind mistake is any class, a likely one the nearest. Against cleanlab on the same leave-one-out
probabilities, and with logistic regression, five folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_predict

from knowmore import GPClassifier
from knowmore._base import optional
from knowmore.insight import suspects
from knowmore.kernels import squared_distances
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.peers import logistic
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import CALTECH256, EMBEDDINGS, look

_OURS, _FOLDS = "suspects", 5
# How many labels are made wrong, and whether by the nearest class; the first as it always was.
_CASES = (0.05, False), (0.2, False), (0.05, True), (0.2, True)


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """The 120 classes of the part of Caltech-256, by the network; five plantings."""
    progress(0.0, "planting")
    return attempted("label audit", partial(_rows, seed, quick, progress))


def _rows(seed: int, quick: bool, progress: Progress) -> Iterator[Row]:
    issues = optional("cleanlab.filter", "bench").find_label_issues
    table, splits = look(CALTECH256, EMBEDDINGS, quick), 2 if quick else 5
    for case, (wrong, likely) in enumerate(_CASES):
        rng, tally = np.random.default_rng(seed), Tally()
        kind = "likely" if likely else "blind"
        for split in range(splits):
            done = (case + split / splits) / len(_CASES)
            progress(done, f"{wrong:.0%} {kind}, planting {split + 1}")
            codes, planted = spoilt(table.X, table.y, wrong, likely, rng)
            ways = {
                _OURS: partial(suspected, table.X, codes),
                "cleanlab, our probabilities": partial(cleanlab_of_ours, issues, table.X, codes),
            }
            if case == 0:
                # It takes minutes.
                peer = "cleanlab, logistic regression"
                ways[peer] = partial(_cleanlab, issues, table.X, codes)
            for way, ask in ways.items():
                tally.timed(split, way, partial(judged, planted, ask))
        yield from tally.rows("label audit", f"{table.name}, {100 * wrong:g} % {kind}", _OURS)


def spoilt(
    X: Array, y: Array, wrong: float, likely: bool, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Codes of labels, a part of them of another class, and which.

    likely : whether it is the class with the nearest mean; else it is any
    """
    names, codes = np.unique(y, return_inverse=True)
    planted = np.zeros(len(y), dtype=bool)
    planted[rng.choice(len(y), round(wrong * len(y)), replace=False)] = True
    if not likely:
        others = (codes + rng.integers(1, len(names), len(y))) % len(names)
        return np.where(planted, others, codes), planted
    means = np.stack([X[codes == c].mean(axis=0) for c in range(len(names))])
    distances = squared_distances(X, means, 1.0)
    distances[np.arange(len(y)), codes] = np.inf
    return np.where(planted, distances.argmin(axis=1), codes), planted


def suspected(X: Array, codes: Array, kernel: Any = None) -> tuple[Array, Array]:
    """The rows suspected, and all rows ranked: these first, then the others by their doubts."""
    found = suspects(GPClassifier(kernel).fit(X, codes))
    order = np.argsort(-found.doubts, kind="stable")
    others = order[~np.isin(order, found.rows)]
    return found.rows, np.concatenate([found.rows, others])


def cleanlab_of_ours(
    issues: Callable[..., Array], X: Array, codes: Array, kernel: Any = None
) -> tuple[Array, Array]:
    """The rows suspected, and all rows ranked by their self-confidence, by leave-one-out."""
    found = suspects(GPClassifier(kernel).fit(X, codes)).for_cleanlab()
    rows = issues(**found, return_indices_ranked_by="self_confidence")
    return rows, np.argsort(found["pred_probs"][np.arange(len(codes)), codes], kind="stable")


def _cleanlab(issues: Callable[..., Array], X: Array, codes: Array) -> tuple[Array, Array]:
    """The rows suspected, and all rows ranked by their self-confidence."""
    found = cross_val_predict(
        logistic(False), X, codes, cv=_FOLDS, method="predict_proba", n_jobs=-1
    )
    rows = issues(codes, found, return_indices_ranked_by="self_confidence")
    return rows, np.argsort(found[np.arange(len(codes)), codes], kind="stable")


def judged(planted: Array, ask: Callable[[], tuple[Array, Array]]) -> dict[str, float]:
    """How well suspected rows are those planted."""
    rows, ranked = ask()
    hits, k = int(planted[rows].sum()), int(planted.sum())
    return {
        "precision at the planted count": planted[ranked[:k]].sum() / k,
        "precision": hits / max(len(rows), 1),
        "recall": hits / k,
        "F1": 2 * hits / (len(rows) + k),
    }
