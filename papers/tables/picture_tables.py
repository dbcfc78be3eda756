"""Embeddings and histograms of pictures: `GPClassifier()` beside its earlier default.

The earlier default has the kernel that suits the rows, as wide as the median distance, and noise
0.1. A better choice on tables is not to be paid for with pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from knowmore import GPClassifier
from knowmore.kernels import default_kernel
from papers.arrays import Array
from papers.findings import Progress, Report, silent
from papers.practice.practice import Practice, report_of
from papers.practice.rows import Absent, Found, Row, Tally, attempted
from papers.practice.tables import (
    ANIMALS,
    CALTECH101,
    DIGITS,
    EDGES,
    EMBEDDINGS,
    PYRAMIDS,
    SCENES,
    Table,
    look,
)
from papers.stopwatch import one_thread
from papers.tables.measures import log_loss
from papers.tables.models import CLASSES, EARLIER

# The tables, with the rows of each class that are learnt, and tested at most.
_TABLES = {
    (DIGITS, "grey levels"): (50, 60),
    (ANIMALS, "SURF"): (30, 30),
    (SCENES, EMBEDDINGS): (50, 50),
    (CALTECH101, EMBEDDINGS): (15, 20),
    (SCENES, EDGES): (50, 50),
    (SCENES, PYRAMIDS): (50, 50),
    (CALTECH101, PYRAMIDS): (15, 20),
}
# Quick ones need no long look at pictures.
_QUICK = [(DIGITS, "grey levels"), (ANIMALS, "SURF")]
_WAYS: dict[str, Callable[[Array], Any]] = {
    CLASSES: lambda X: GPClassifier(),
    EARLIER: lambda X: GPClassifier(default_kernel(X), 0.1),
}


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Practice:
    """All tables in five splits; `quick`: two of them, few rows in two splits."""
    found: Found = []
    asked = _QUICK if quick else list(_TABLES)
    with one_thread():
        for i, (source, feature) in enumerate(asked):
            progress(i / len(asked), f"{source}, {feature}")
            act = partial(_rows, source, feature, seed, quick)
            found += attempted(f"{source}, {feature}", act)
    return Practice(
        tuple(one for one in found if isinstance(one, Row)),
        tuple(one for one in found if isinstance(one, Absent)),
        quick,
    )


def _rows(source: str, feature: str, seed: int, quick: bool) -> Iterator[Row]:
    table, rng = look(source, feature, quick), np.random.default_rng(seed)
    learnt, tested = (10, 10) if quick else _TABLES[source, feature]
    tally = Tally()
    for split in range(2 if quick else 5):
        train, asked = table.split(rng, learnt, tested)
        for name, make in _WAYS.items():
            tally.timed(split, name, partial(_measures, make, table, train, asked))
    where = f"{table.name}, {learnt} a class"
    for smaller in (False, True):
        for row in tally.rows("defaults", where, CLASSES, smaller=smaller):
            if (row.measure == _LOSS) == smaller:
                yield row


_RATE, _LOSS = "recognised", "log loss"


def _measures(
    make: Callable[[Array], Any], table: Table, train: Array, asked: Array
) -> dict[str, float]:
    model = make(table.X[train]).fit(table.X[train], table.y[train])
    P = model.predict_proba(table.X[asked])
    codes = np.searchsorted(model.classes_, table.y[asked])
    rate = balanced_accuracy_score(table.y[asked], model.predict(table.X[asked]))
    return {_RATE: float(rate), _LOSS: log_loss(P, codes)}


def report(result: Practice, out: Path) -> Report:
    """The picture, all figures, a table and a verdict on each row."""
    text = (
        f"{CLASSES}() is not below its earlier default by more than a standard error in "
        f"{sum(row.holds for row in result.rows)} of {len(result.rows)} rows. Figures are means "
        "over random splits, the same for both, with standard errors."
    )
    text += " For judging run it without --quick." * result.quick
    return report_of(result, text, out, "picture-tables")
