"""The law, measured: any history of edits against a batch fit that shares no code with it.

A scaled error is max |score - score'| / (eps cond(K~) max |score'|): how many times the error that
the condition alone excuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks import reference
from benchmarks.scene import Array, Scale
from benchmarks.table import Benchmark, Row, Target
from knowmore import GPClassifier

_FEATURES, _LENGTH, _START = 3, 1.0, 40
_NOISES = (1e-1, 1e-3, 1e-6, 1e-8)
_EPS = float(np.finfo(float).eps)


@dataclass
class History:
    """A classifier, and in plain dictionaries what it ought to hold."""

    noise: float
    solver: str
    rng: np.random.Generator
    X: dict[int, Array] = field(default_factory=dict)
    y: dict[int, int] = field(default_factory=dict)
    names: int = 0

    def __post_init__(self) -> None:
        self.clf = self._empty()
        self.add(_START)

    def _empty(self) -> GPClassifier:
        return GPClassifier(RBF(_LENGTH), self.noise, solver=self.solver)

    def _note(self, X: Array, y: Array) -> list[int]:
        ids = list(range(self.names, self.names + len(X)))
        self.names += len(X)
        self.X |= dict(zip(ids, X, strict=True))
        self.y |= dict(zip(ids, y.tolist(), strict=True))
        return ids

    def _new(self, k: int) -> tuple[Array, Array]:
        """New rows, one in four almost a twin of another: the condition is about n / noise."""
        X = self.rng.normal(size=(k, _FEATURES))
        held = list(self.X.values()) or [X[0]]
        for i in np.flatnonzero(self.rng.random(k) < 0.25):
            X[i] = held[self.rng.integers(len(held))] + 1e-5 * self.rng.normal(size=_FEATURES)
        return X, self.rng.integers(4, size=k)

    def _some(self) -> list[int]:
        k = int(self.rng.integers(1, 6))
        return [int(one) for one in self.rng.choice(list(self.X), size=k, replace=False)]

    # -- the edits ---------------------------------------------------------------------------

    def add(self, k: int = 0) -> None:
        """A few new examples."""
        X, y = self._new(k or int(self.rng.integers(1, 6)))
        self.clf.add(X, y, ids=self._note(X, y))

    def remove(self) -> None:
        """A few examples go."""
        self._forget(self._some())

    def _forget(self, ids: list[int]) -> None:
        self.clf.remove(ids)
        for one in ids:
            del self.X[one], self.y[one]

    def replace(self) -> None:
        """A few examples get other features."""
        ids = self._some()
        X, _ = self._new(len(ids))
        self.clf.replace(ids, X)
        self.X |= dict(zip(ids, X, strict=True))

    def relabel(self) -> None:
        """A few examples get other labels."""
        ids = self._some()
        y = self.rng.integers(4, size=len(ids))
        self.clf.relabel(ids, y)
        self.y |= dict(zip(ids, y.tolist(), strict=True))

    def new_class(self) -> None:
        """Examples of a class that never was."""
        X, _ = self._new(2)
        y = np.full(2, 4 + self.names)
        self.clf.add(X, y, ids=self._note(X, y))

    def drop_class(self) -> None:
        """A whole class goes."""
        label = self.rng.choice(sorted(set(self.y.values())))
        self._forget([one for one, held in self.y.items() if held == label])

    def merge(self) -> None:
        """All examples of another classifier."""
        X, y = self._new(5)
        other = self._empty()
        other.fit(X, y, ids=self._note(X, y))
        self.clf.merge(other)

    # -- the question ------------------------------------------------------------------------

    def edit(self) -> str:
        """Any edit, such that enough examples and classes are left."""
        plenty = len(self.X) > _START // 2
        kinds = ["add", "replace", "relabel", "new_class", "merge"]
        kinds += ["remove", "remove", "remove"] if plenty else ["add"]
        kinds += ["drop_class"] if plenty and len(set(self.y.values())) > 3 else []
        kind = str(self.rng.choice(kinds))
        getattr(self, kind)()
        return kind

    def error(self, Z: Array) -> tuple[float, float]:
        """The scaled error now, and the condition."""
        X = np.array(list(self.X.values()))
        T = reference.one_vs_all(np.array(list(self.y.values())))
        true = reference.scores(X, T, Z, _LENGTH, self.noise)
        true = true[:, 1] if true.shape[1] == 2 else true
        cond = reference.condition(X, _LENGTH, self.noise)
        wrong = abs(self.clf.decision_function(Z) - true).max()
        return float(wrong / (_EPS * cond * abs(true).max())), cond


def histories(scale: Scale) -> Iterator[Row]:
    """The worst of many; a question now and then, so that edits are folded in many ways."""
    for solver in "cholesky", "inverse":
        for noise in _NOISES:
            yield _worst(scale, solver, noise)


def _worst(scale: Scale, solver: str, noise: float) -> Row:
    errors, conditions, kinds = [], [], dict[str, int]()
    for seed in range(scale.histories):
        rng = np.random.default_rng(seed)
        history, Z = History(noise, solver, rng), rng.normal(size=(20, _FEATURES))
        for index in range(scale.edits):
            kind = history.edit()
            kinds[kind] = kinds.get(kind, 0) + 1
            if rng.random() < 0.2 or index == scale.edits - 1:
                error, cond = history.error(Z)
                errors.append(error)
                conditions.append(cond)
    raw: dict[str, Any] = {"histories": scale.histories, "edits": kinds, "questions": len(errors)}
    return Row(
        f"{solver}, noise {noise:g}: scaled error",
        max(errors),
        "",
        # The same for both solvers: the law makes no exception for an inverse.
        target=Target("<=", 4),
        note=f"{scale.histories} histories, {sum(kinds.values())} edits, {len(errors)} questions, "
        f"condition up to {max(conditions):.1e}",
        raw=raw | {"errors": errors, "conditions": conditions},
    )


BENCHMARKS: list[Benchmark] = [histories]
