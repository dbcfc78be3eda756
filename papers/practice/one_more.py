"""The N+1 problem: fifteen known classes, and one to ten examples of each of them and a new one.

One peer keeps all pictures, the source's too, and lets all classes count alike. The other peer has
the few new pictures alone, like ours. Ours is compared with both in both measures, though a model
that knows little else names the new class often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from knowmore import LSSVMClassifier, NPlusOneClassifier
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.peers import logistic
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import (
    ANIMALS,
    BAGS,
    CALTECH101,
    EMBEDDINGS,
    PYRAMIDS,
    Table,
    look,
)

_OURS = "NPlusOneClassifier"
# Pictures of each class: for the source, the most that are learnt, and those tested.
_SOURCE, _LEARNT, _TESTED = 20, (1, 5, 10), 20
_QUICK_SOURCE, _QUICK_LEARNT, _QUICK_TESTED = 8, (1, 5), 5


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Three tables; ten splits, each with classes of its own."""
    found: Found = []
    tables = ((CALTECH101, EMBEDDINGS), (CALTECH101, PYRAMIDS), (ANIMALS, BAGS))
    for i, (source, feature) in enumerate(tables):
        progress(i / len(tables), f"{source}, {feature}")
        rows = partial(_rows, source, feature, seed, quick)
        found += attempted(f"N+1, {source}, {feature}", rows)
    return found


def _rows(source: str, feature: str, seed: int, quick: bool) -> Iterator[Row]:
    table, rng = look(source, feature, quick), np.random.default_rng(seed)
    splits, N = (2, 4) if quick else (10, 15)
    old, few, tested = (
        (_QUICK_SOURCE, _QUICK_LEARNT, _QUICK_TESTED) if quick else (_SOURCE, _LEARNT, _TESTED)
    )
    enough = old + few[-1] + tested
    names, counts = np.unique(table.y[~table.aside], return_counts=True)
    large = np.intersect1d(names[counts >= enough], table.classes)
    tallies = {k: Tally() for k in few}
    for split in range(splits):
        chosen = rng.permutation(large)[: N + 1]
        rows = np.stack([table.rows(name, rng)[0][:enough] for name in chosen])
        asked = rows[:, -tested:].ravel()
        known = rows[:-1, :old].ravel()
        for k, tally in tallies.items():
            learnt = rows[:, old : old + k].ravel()
            for way, answers in _ways(table, known, learnt, asked).items():
                rates = partial(_rates, table.y[asked], chosen[-1], answers)
                tally.timed(split, way, rates)
    for k, tally in tallies.items():
        where = f"{table.name}, {N} + 1 classes, {k} example{'s'[: k > 1]}"
        yield from tally.rows("N+1", where, _OURS)


def _ways(
    table: Table, known: Array, learnt: Array, asked: Array
) -> dict[str, Callable[[], Array]]:
    """Functions that predict the rows `asked`, by the name of the method."""
    X, y, both = table.X, table.y, np.concatenate([known, learnt])

    def ours() -> Array:
        source = LSSVMClassifier().fit(X[known], y[known])
        return NPlusOneClassifier(source).fit(X[learnt], y[learnt]).predict(X[asked])

    def regression(rows: Array) -> Array:
        model = logistic(table.histograms, balanced=True).fit(X[rows], y[rows])
        return np.asarray(model.predict(X[asked]))

    return {
        _OURS: ours,
        "logistic regression, balanced, all pictures": partial(regression, both),
        "logistic regression, balanced, the few alone": partial(regression, learnt),
    }


def _rates(wanted: Array, newcomer: str, answers: Callable[[], Array]) -> dict[str, float]:
    right, is_new = answers() == wanted, wanted == newcomer
    return {"accuracy of all": float(right.mean()), "of the new class": float(right[is_new].mean())}
