"""Recognition by default, against an SVC on the values of a kernel that suits the feature.

The SVC has the exponential intersection of pyramids, or an RBF kernel of the network's outputs at
unit length, each as wide as the mean distance. Its C is chosen by cross-validation, so beside the
default there is a row with the loss that is closest to an SVC's, its noise by leave-one-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import balanced_accuracy_score

from knowmore import GPClassifier
from knowmore.kernels import AnyKernel, corner, cross, squared_distances
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.picture_features import unit
from papers.practice.kernels import wide
from papers.practice.peers import against_all, svc
from papers.practice.rows import Found, Row, Tally, attempted
from papers.practice.tables import CALTECH101, EMBEDDINGS, PYRAMIDS, SCENES, look

# From the rows learnt (n, D) and tested (m, D) to kernel values (n, n) and (m, n).
Values = Callable[[Array, Array], tuple[Array, Array]]
# Ours: by default, and as an SVC.
_HINGE: Any = {"noise": "loo", "loss": "squared_hinge"}
# How much of the rate may be lost.
_HALF_A_POINT = 0.005


class Task(NamedTuple):
    """So many pictures of each class are learnt, and at most so many others tested."""

    source: str
    learnt: int
    tested: int


TASKS = (Task(SCENES, 100, 100), Task(CALTECH101, 15, 20), Task(CALTECH101, 30, 20))


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Two features of the Fifteen Scenes and of Caltech-101, five splits."""
    found: Found = []
    settings = [
        (task, feature)
        for task in TASKS[: 2 if quick else None]
        for feature in (PYRAMIDS, EMBEDDINGS)
    ]
    values = {PYRAMIDS: _of_pyramids, EMBEDDINGS: _of_embeddings}
    for i, (task, feature) in enumerate(settings):
        where = f"recognition, {task.source}, {feature}, {task.learnt} a class"
        progress(i / len(settings), where)
        rows = partial(
            compared,
            Question("recognition", task, feature, None, values[feature], _HALF_A_POINT),
            seed,
            quick,
        )
        found += attempted(where, rows)
    return found


class Question(NamedTuple):
    """A comparison of recognition rates.

    name : the comparison's name
    task, feature : the pictures
    kernel : the kernel of our model; None: the default
    values : the kernel values of the SVC
    slack : the loss of rate that ours is allowed
    """

    name: str
    task: Task
    feature: str
    kernel: AnyKernel | None
    values: Values
    slack: float


def compared(question: Question, seed: int, quick: bool) -> Iterator[Row]:
    """Ours with both losses against the SVC on kernel values, in five splits."""
    task, kernel = question.task, question.kernel
    table = look(task.source, question.feature, quick)
    rng, tally = np.random.default_rng(seed), Tally()
    learnt, tested = (10, 10) if quick else (task.learnt, task.tested)
    ours = {
        "GPClassifier": partial(GPClassifier, kernel),
        "GPClassifier, squared hinge": partial(GPClassifier, kernel, **_HINGE),
    }
    for split in range(2 if quick else 5):
        train, asked = table.split(rng, learnt, tested)
        X, Z, y = table.X[train], table.X[asked], table.y[train]
        hinge = _Hinge(question.values, X, Z, y)
        ways: dict[str, Callable[[], Array]] = {
            **{name: partial(_answers, make, X, Z, y) for name, make in ours.items()},
            "SVC, one against one": hinge.against_one,
            "SVC, one against all": hinge.against_all,
        }
        for way, answers in ways.items():
            tally.timed(split, way, partial(_rate, table.y[asked], answers))
    for name in ours:
        where = f"{table.name}, {learnt} a class, {name}"
        yield from tally.rows(question.name, where, name, beside=ours, slack=question.slack)


def _answers(make: Callable[[], Any], X: Array, Z: Array, y: Array) -> Array:
    return np.asarray(make().fit(X, y).predict(Z))


class _Hinge:
    """The SVC on kernel values. `against_all` reuses the values and the C of `against_one`."""

    def __init__(self, values: Values, X: Array, Z: Array, y: Array) -> None:
        self.values, self.X, self.Z, self.y = values, X, Z, y

    def against_one(self) -> Array:
        self.K, self.others = self.values(self.X, self.Z)
        self.chosen = svc(self.K, self.y)
        return np.asarray(self.chosen.predict(self.others))

    def against_all(self) -> Array:
        model = against_all(self.K, self.y, self.chosen.best_params_["C"])
        return np.asarray(model.predict(self.others))


def _of_pyramids(X: Array, Z: Array) -> tuple[Array, Array]:
    kernel = wide(X)
    return corner(kernel, X).astype(float), cross(kernel, Z, X).astype(float)


def _of_embeddings(X: Array, Z: Array) -> tuple[Array, Array]:
    X, Z = unit(X), unit(Z)
    kernel = RBF(float(np.sqrt(squared_distances(X, X, 1.0).mean() / 2)))
    return corner(kernel, X), cross(kernel, Z, X)


def _rate(wanted: Array, answers: Callable[[], Array]) -> dict[str, float]:
    return {"recognised": float(balanced_accuracy_score(wanted, answers()))}
