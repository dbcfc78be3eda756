"""What was measured, and how models compare on all tasks of one kind and size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.stats import rankdata

from papers.arrays import Array
from papers.practice.rows import Figure

# Measures of which less is better.
SMALLER = frozenset({"log loss"})


class Measured(NamedTuple):
    """A model on a task.

    task, size, regression : what was learnt, see `Task`
    model : its name
    measures : the values (splits,) of each measure; None where a split is yet to be measured
    """

    task: str
    size: int
    regression: bool
    model: str
    measures: Mapping[str, Array] | None


@final
@dataclass(frozen=True, eq=False)
class Tables:
    """All that was measured, the number of splits, and whether it was a quick run."""

    measured: tuple[Measured, ...]
    splits: int
    quick: bool

    def panel(self, size: int, regression: bool, ours: str, beside: Iterable[str]) -> Panel:
        """The tasks of one size and kind that all models but those `beside` have learnt."""
        rows = [one for one in self.measured if (one.size, one.regression) == (size, regression)]
        aside = set(beside)
        waiting = {one.task for one in rows if one.measures is None and one.model not in aside}
        found: dict[str, dict[str, Mapping[str, Array]]] = {}
        for one in rows:
            if one.task not in waiting and one.measures is not None:
                found.setdefault(one.model, {})[one.task] = one.measures
        tasks = tuple(found.get(ours, {}))
        # Beside, too, all tasks or none: means over different tasks cannot be compared.
        whole = {
            name: each
            for name, each in found.items()
            if name not in aside or len(each) == len(tasks)
        }
        return Panel(ours, tasks, len(waiting), whole, frozenset(aside))


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """How models compare on tasks of one kind and size.

    ours : the name of the model that is judged
    tasks : those that all models have learnt, but a model that is not tried on all
    waiting : the number of other tasks
    values : (splits,) of each measure, by model and task
    beside : models that are shown, but do not take part
    """

    ours: str
    tasks: tuple[str, ...]
    waiting: int
    values: Mapping[str, Mapping[str, Mapping[str, Array]]]
    beside: frozenset[str]

    @property
    def ranked(self) -> list[str]:
        """Ours and the peers."""
        return [name for name in self.values if name not in self.beside]

    @property
    def peers(self) -> list[str]:
        """All that take part but ours."""
        return [name for name in self.ranked if name != self.ours]

    def means(self, model: str, measure: str) -> Array:
        """The mean over splits on each task that the model learnt, (tasks,)."""
        return np.array([each[measure].mean() for each in self.values[model].values()])

    def ranks(self, measure: str) -> dict[str, Array]:
        """The rank of each model that takes part on each task that it learnt, the best first."""
        found: dict[str, list[float]] = {name: [] for name in self.ranked}
        sign = 1 if measure in SMALLER else -1
        for task in self.tasks:
            names = [name for name in self.ranked if task in self.values[name]]
            values = [sign * self.values[name][task][measure].mean() for name in names]
            for name, rank in zip(names, rankdata(values), strict=True):
                found[name].append(float(rank))
        return {name: np.array(ranks) for name, ranks in found.items()}

    def ahead(self, peer: str, measure: str) -> Figure:
        """Ours less a peer that learnt all tasks: a value for each."""
        gain = self.means(self.ours, measure) - self.means(peer, measure)
        return Figure(tuple(gain), 0.0)

    def behind(self, measure: str) -> dict[str, tuple[str, Figure]]:
        """For each task the peer that is the best, and ours less that peer in each split.

        The task that ours is the furthest behind comes first.
        """
        found = {}
        for task in self.tasks:
            peers = [name for name in self.peers if task in self.values[name]]
            best = max(peers, key=lambda name: float(self.values[name][task][measure].mean()))
            gain = self.values[self.ours][task][measure] - self.values[best][task][measure]
            found[task] = (best, Figure(tuple(gain), 0.0))
        return dict(sorted(found.items(), key=lambda one: one[1][1].mean))
