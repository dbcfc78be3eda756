"""Public tables as they come: no argument at all, against scikit-learn's usual models.

What was measured is remembered, see `remembered`. So the peers, which take hours, run once, and
ours again whenever knowmore's code has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from papers.arrays import Array
from papers.findings import Progress, silent
from papers.stopwatch import one_thread
from papers.tables.measures import classified, regressed
from papers.tables.models import Model, models
from papers.tables.remembered import Key, Remembered, kept_file
from papers.tables.result import Measured, Tables
from papers.tables.tables_report import report
from papers.tables.tasks import Task, tasks

__all__ = ["report", "run"]

_SPLITS, _QUICK_SPLITS = 5, 2


def run(
    *,
    seed: int = 0,
    quick: bool = False,
    progress: Progress = silent,
    only: Collection[str] | None = None,
) -> Tables:
    """All models on all tasks, five splits; `quick`: two small tables, two splits, no memory.

    only : the names of the models that may be fitted; of others, what is remembered. None: all
    """
    progress(0.0, "reading")
    splits = _QUICK_SPLITS if quick else _SPLITS
    asked = [
        (task, name, model)
        for task in tasks(quick)
        for name, model in models(task.regression).items()
        if model.suits(task)
    ]
    found = []
    with one_thread(), Remembered("" if quick else kept_file()) as kept:
        for i, (task, name, model) in enumerate(asked):
            progress(i / len(asked), f"{task.name}, {task.rows} rows, {name}")
            allowed = only is None or name in only
            each = [
                _measured(task, name, model, seed * splits + split, kept, allowed)
                for split in range(splits)
            ]
            found.append(Measured(task.name, task.size, task.regression, name, _joined(each)))
    return Tables(tuple(found), splits, quick)


def _measured(
    task: Task, name: str, model: Model, seed: int, kept: Remembered, allowed: bool
) -> dict[str, float] | None:
    """The measures of a split as they are remembered, or else, if allowed, measured now."""
    key = Key(task.name, task.rows, seed, name, model.version)
    measures = kept.get(key)
    if measures is None and allowed:
        split = task.split(seed)
        measure = regressed if task.regression else classified
        measures = kept[key] = measure(model.make(split.X, seed), split)
    return measures


def _joined(splits: list[dict[str, float] | None]) -> Mapping[str, Array] | None:
    """The values (splits,) of each measure; None if a split is missing."""
    whole = [one for one in splits if one is not None]
    if len(whole) < len(splits):
        return None
    return {measure: np.array([one[measure] for one in whole]) for measure in whole[0]}
