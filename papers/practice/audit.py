"""The label audit: one label of twenty is made wrong, and who is suspected?

Against cleanlab with logistic regression, five folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.model_selection import cross_val_predict

from knowmore import GPClassifier
from knowmore.extras import optional
from knowmore.insight import suspects
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.peers import logistic
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import CALTECH256, EMBEDDINGS, look

_OURS, _WRONG, _FOLDS = "suspects", 0.05, 5


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """The 120 classes of the part of Caltech-256, by the network; five plantings."""
    progress(0.0, "planting")
    return attempted("label audit", partial(_rows, seed, quick, progress))


def _rows(seed: int, quick: bool, progress: Progress) -> Iterator[Row]:
    issues = optional("cleanlab.filter", "bench").find_label_issues
    table, rng = look(CALTECH256, EMBEDDINGS, quick), np.random.default_rng(seed)
    splits, tally = 2 if quick else 5, Tally()
    for split in range(splits):
        progress(split / splits, f"planting {split + 1}")
        codes, planted = _spoilt(table.y, rng)
        for way, suspected in {
            _OURS: partial(_ours, table.X, codes),
            "cleanlab, logistic regression": partial(_cleanlab, issues, table.X, codes),
        }.items():
            tally.timed(split, way, partial(_judged, planted, suspected))
    yield from tally.rows("label audit", f"{table.name}, 5 % wrong", _OURS)


def _spoilt(y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Codes of labels, some of them of another class, and which."""
    names, codes = np.unique(y, return_inverse=True)
    planted = np.zeros(len(y), dtype=bool)
    planted[rng.choice(len(y), round(_WRONG * len(y)), replace=False)] = True
    moves = rng.integers(1, len(names), len(y))
    return np.where(planted, (codes + moves) % len(names), codes), planted


def _ours(X: Array, codes: Array) -> tuple[Array, Array]:
    """The rows suspected, and all rows ranked: these first, then the others by their doubts."""
    found = suspects(GPClassifier().fit(X, codes))
    order = np.argsort(-found.doubts, kind="stable")
    others = order[~np.isin(order, found.rows)]
    return found.rows, np.concatenate([found.rows, others])


def _cleanlab(issues: Callable[..., Array], X: Array, codes: Array) -> tuple[Array, Array]:
    """The rows suspected, and all rows ranked by their self-confidence."""
    found = cross_val_predict(
        logistic(False), X, codes, cv=_FOLDS, method="predict_proba", n_jobs=-1
    )
    rows = issues(codes, found, return_indices_ranked_by="self_confidence")
    return rows, np.argsort(found[np.arange(len(codes)), codes], kind="stable")


def _judged(planted: Array, suspected: Callable[[], tuple[Array, Array]]) -> dict[str, float]:
    rows, ranked = suspected()
    hits, k = int(planted[rows].sum()), int(planted.sum())
    return {
        "precision at the planted count": planted[ranked[:k]].sum() / k,
        "precision": hits / max(len(rows), 1),
        "recall": hits / k,
        "F1": 2 * hits / (len(rows) + k),
    }
