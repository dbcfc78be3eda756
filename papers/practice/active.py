"""Active learning: the number of labels that reach the accuracy of random labels.

A classifier starts with a few labelled rows and asks for more from a pool, ten at a time, by a
criterion of `knowmore.insight.suggest`. It is tested on other rows after each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple, final

import numpy as np
from sklearn.base import clone

from knowmore import GPClassifier
from knowmore.insight import suggest
from knowmore.kernels import HistogramIntersection
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice import criteria as earlier
from papers.practice.rows import Figure, Found, Row, attempted
from papers.practice.tables import CALTECH256, DIGITS, EMBEDDINGS, PYRAMIDS, SCENES, look

OURS, RANDOM = "default", "random"
# The criteria by the names of their curves; None is the default.
CRITERIA: Mapping[str, str | None] = {OURS: None, "margin": "margin", RANDOM: RANDOM}
OTHERS = ("uncertainty", "variance", "weight", "impact", "emoc")
ALL: Mapping[str, str | None] = {**CRITERIA, **{name: name for name in OTHERS}}
# The target: at least a fifth fewer labels than at random need.
SAVED = 0.8


@final
class Task(NamedTuple):
    """An active-learning task.

    source, feature : the table
    budget : the number of labels in all
    start : the number of labels at the start, drawn at random; zero: one of each class
    criteria : the criteria compared
    """

    source: str
    feature: str
    budget: int
    start: int = 5
    criteria: Mapping[str, str | None] = CRITERIA


TASKS = (
    Task(DIGITS, "", 120, criteria=ALL),
    Task(SCENES, EMBEDDINGS, 150, criteria=ALL),
    Task(SCENES, PYRAMIDS, 250),
    Task(CALTECH256, EMBEDDINGS, 400),
    Task(CALTECH256, EMBEDDINGS, 400, start=0),
)
STEP, POOL, TESTED, RUNS = 10, 1000, 600, 5


@final
class Curves(NamedTuple):
    """Accuracies of some runs after so many labels, (runs, steps) each; seconds a question.

    All but the labels by criterion.
    """

    labels: Array
    accuracy: dict[str, Array]
    seconds: dict[str, float]

    def needed(self, criterion: str) -> Array:
        """Labels until a run is as accurate as that at random with its whole budget, (runs,).

        The whole budget, if it is never.
        """
        goal = self.accuracy[RANDOM][:, -1:]
        reached = self.accuracy[criterion] >= goal
        reached[:, -1] = True
        steps = reached.argmax(axis=1)
        return np.asarray(self.labels[np.arange(len(steps)), steps], dtype=float)


def learning_curves(
    X: Array,
    y: Array,
    classifier: GPClassifier,
    *,
    budget: int,
    start: int = 5,
    criteria: Mapping[str, str | None] = CRITERIA,
    runs: int = RUNS,
    seed: int = 0,
    step: int = STEP,
    pool: int = POOL,
    tested: int = TESTED,
) -> Curves:
    """The curves of each criterion, in runs that differ in their rows: pool, start and test.

    X (n, D), y (n,) : rows and labels, of which each run draws its own
    classifier : not yet fitted
    budget, start : labels in all, and to start with; a start of zero is one of each class
    """
    accuracy: dict[str, list[Array]] = {name: [] for name in criteria}
    seconds, labels = dict.fromkeys(criteria, 0.0), []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        order = rng.permutation(len(X))[: pool + tested]
        asked = order[: len(order) * pool // (pool + tested)]
        test = order[len(asked) :]
        first = asked[:start] if start else _one_each(asked, y)
        for name, criterion in criteria.items():
            begin = perf_counter()
            steps = _course(X, y, classifier, criterion, first, asked, budget, step, run)
            found = [(n, float((clf.predict(X[test]) == y[test]).mean())) for n, clf in steps]
            seconds[name] += (perf_counter() - begin) / runs / max(len(found) - 1, 1)
            accuracy[name].append(np.array([rate for _, rate in found]))
        labels.append([n for n, _ in found])
    # One of each class are not as many in every run: the curves are as long as the shortest.
    shortest = min(len(one) for some in accuracy.values() for one in some)
    curves = {name: np.array([one[-shortest:] for one in some]) for name, some in accuracy.items()}
    return Curves(np.array([one[-shortest:] for one in labels]), curves, seconds)


def _one_each(rows: Array, y: Array) -> Array:
    """The first row of each class."""
    return np.asarray(rows[np.sort(np.unique(y[rows], return_index=True)[1])])


def _course(
    X: Array,
    y: Array,
    classifier: GPClassifier,
    criterion: str | None,
    first: Array,
    asked: Array,
    budget: int,
    step: int,
    run: int,
) -> Iterator[tuple[int, GPClassifier]]:
    """The number of labels, and the classifier with these, from the start to the budget."""
    held = [*first.tolist()]
    rest = np.setdiff1d(asked, first)
    while True:
        # A fresh fit: the width of the default kernel depends on all rows labelled so far.
        clf: GPClassifier = clone(classifier).fit(X[held], y[held])
        yield len(held), clf
        if len(held) >= budget:
            return
        count = min(step, budget - len(held))
        if criterion in earlier.CRITERIA:
            picks = earlier.suggested(clf, X[rest], count, criterion)
        else:
            seed = 1000 * run + len(held)
            picks = suggest(clf, X[rest], count, criterion, random_state=seed).indices
        held += rest[picks].tolist()
        rest = np.delete(rest, picks)


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """A row for each task: labels needed by the default criterion, and 4/5 of the random labels."""
    found: Found = []
    for i, task in enumerate(TASKS):
        progress(i / len(TASKS), task.source)
        found += attempted(f"active learning, {task.source}", partial(_rows, task, seed, quick))
    return found


def _rows(task: Task, seed: int, quick: bool) -> Sequence[Row]:
    table = look(task.source, task.feature, quick)
    kernel = HistogramIntersection() if task.feature == PYRAMIDS else None
    # Words were learnt from what is aside.
    known = np.isin(table.y, table.classes) & ~(table.aside & table.histograms)
    budget, runs = (40, 2) if quick else (task.budget, RUNS)
    curves = learning_curves(
        table.X[known],
        table.y[known],
        GPClassifier(kernel),
        budget=budget,
        start=task.start,
        criteria=task.criteria,
        runs=runs,
        seed=seed,
    )
    values = {name: curves.needed(name) for name in task.criteria}
    figures = {
        name: Figure(tuple(some.tolist()), curves.seconds[name]) for name, some in values.items()
    }
    ours = figures.pop(OURS)
    fifth = Figure(tuple((SAVED * values[RANDOM]).tolist()), figures.pop(RANDOM).seconds)
    start = f"{task.start} labels at first" if task.start else "one label a class at first"
    where = f"{table.name}, {start}"
    peers = {"four fifths of random": fifth, **figures}
    return [Row("labels needed", where, f"labels of {budget}", ours, peers, smaller=True)]
