"""A class from one or five pictures and 200 of the background, with the help of other classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

from knowmore import OneShotClassifier
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.peers import centroid, logistic
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import BACKGROUND, CALTECH101, EMBEDDINGS, PYRAMIDS, Table, look

_POSITIVES, _TESTED = (1, 5), 50
_OURS = "OneShotClassifier"


class _Sizes(NamedTuple):
    """Splits, target classes, supports and their pictures, and pictures of the background."""

    splits: int
    targets: int
    supports: int
    pictures: int
    background: int


_FULL, _QUICK = _Sizes(5, 16, 50, 20, 200), _Sizes(2, 2, 5, 12, 50)


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Both features: sixteen targets in five splits, with fifty supports of twenty pictures."""
    found: Found = []
    for i, feature in enumerate((EMBEDDINGS, PYRAMIDS)):
        progress(i / 2, feature)
        found += attempted(f"one-shot, {feature}", partial(_rows, feature, seed, quick))
    return found


def _rows(feature: str, seed: int, quick: bool) -> Iterator[Row]:
    table, sizes = look(CALTECH101, feature, quick), _QUICK if quick else _FULL
    rng = np.random.default_rng(seed)
    targets = table.classes[np.linspace(0, len(table.classes) - 1, sizes.targets).astype(int)]
    tallies = {k: Tally() for k in _POSITIVES}
    for split in range(sizes.splits):
        supports = _supports(table, sizes, rng)
        open_, aside = table.rows(BACKGROUND, rng)
        ground, others = np.split(np.concatenate([aside, open_]), [sizes.background])
        for name in targets:
            mine, _ = table.rows(name, rng)
            asked = np.concatenate([mine[_POSITIVES[-1] :][:_TESTED], others])
            helped = {other: X for other, X in supports.items() if other != name}
            for k, tally in tallies.items():
                learnt = np.concatenate([ground, mine[:k]])
                for way, scores in _ways(table, str(name), helped, learnt, asked).items():
                    tally.timed(split, way, partial(_precision, table.y[asked] == name, scores))
    for k, tally in tallies.items():
        where = f"{table.name}, {k} example{'s'[: k > 1]}"
        yield from tally.rows("one-shot", where, _OURS)


def _supports(table: Table, sizes: _Sizes, rng: np.random.Generator) -> dict[str, Array]:
    """Pictures of some classes; a target among them does not help itself."""
    names = rng.choice(table.classes, sizes.supports, replace=False)
    chosen = {str(name): np.concatenate(table.rows(name, rng)) for name in names}
    return {name: table.X[rows[: sizes.pictures]] for name, rows in chosen.items()}


def _ways(
    table: Table, name: str, supports: Mapping[str, Array], learnt: Array, asked: Array
) -> dict[str, Callable[[], Array]]:
    """Functions that score the rows `asked`, by the name of the method."""
    X, Z = table.X[learnt], table.X[asked]
    y = np.where(table.y[learnt] == name, name, "background")
    # Scores are positive for the second class.
    sign = 1 if name > "background" else -1

    def ours(supports: Mapping[str, Array] | None = None) -> Array:
        model = OneShotClassifier(supports=supports, name=name).fit(X, y)
        return np.asarray(sign * model.decision_function(Z))

    def regression(balanced: bool) -> Array:
        return np.asarray(
            sign * logistic(table.histograms, balanced=balanced).fit(X, y).decision_function(Z)
        )

    return {
        _OURS: partial(ours, supports),
        "alone": ours,
        "logistic regression": partial(regression, False),
        "logistic regression, balanced": partial(regression, True),
        "centroid": partial(centroid, X, y == name, Z, table.histograms),
    }


def _precision(wanted: Array, scores: Callable[[], Array]) -> dict[str, float]:
    return {"mean average precision": float(average_precision_score(wanted, scores()))}
