"""Models that follow a stream day by day, each in its own way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.base import clone, is_regressor

from papers.arrays import Array


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order of time.

    sparse : the features with a column for each category, (n, D)
    dense : the features with a number for each category, (n, q)
    y : what is to be predicted, (n,)
    starts : the rows at which the days begin, and n, (days + 1,)
    """

    sparse: Any
    dense: Array
    y: Array
    starts: Array

    @property
    def days(self) -> int:
        """The number of days."""
        return len(self.starts) - 1

    def rows(self, first: int, last: int) -> slice:
        """The rows of the days from `first` to before `last`; there is no day before the first."""
        return slice(int(self.starts[max(first, 0)]), int(self.starts[max(last, 0)]))


class Follower(ABC):
    """A model that learns what happened, and answers what comes next."""

    @abstractmethod
    def learn(self, stream: Stream, window: slice, new: slice, old: slice) -> None:
        """Learn the rows `new`, the last of the window; `old` has just left it."""

    @abstractmethod
    def answer(self, stream: Stream, asked: slice) -> Array:
        """Predictions, or scores that rise with the chance of y = 1, (m,)."""


class Day(NamedTuple):
    """A day of a stream.

    window : the rows that were learnt before
    answers : about the rows of the day, (m,)
    learn, answer : seconds
    """

    window: slice
    answers: Array
    learn: float
    answer: float


def follow(follower: Follower, stream: Stream, window: int) -> Iterator[Day]:
    """Every day after the first window, asked about before it is learnt."""
    for day in range(window, stream.days):
        held = stream.rows(day - window, day)
        new = held if day == window else stream.rows(day - 1, day)
        began = perf_counter()
        follower.learn(stream, held, new, stream.rows(day - window - 1, day - window))
        learnt = perf_counter()
        answers = follower.answer(stream, stream.rows(day, day + 1))
        yield Day(held, answers, learnt - began, perf_counter() - learnt)


def scores(model: Any, X: Any) -> Array:
    """Scores of a scikit-learn classifier, or predictions of a regressor, (m,)."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict(X))


@final
@dataclass(frozen=True)
class Exact(Follower):
    """A linear model of knowmore; without `forgets` it keeps all rows."""

    model: Any
    forgets: bool

    def learn(self, stream: Stream, window: slice, new: slice, old: slice) -> None:
        """Add the new rows, and take the old ones away."""
        self.model.partial_fit(stream.sparse[new], stream.y[new])
        if self.forgets and old.start < old.stop:
            self.model.forget(stream.sparse[old], stream.y[old])

    def answer(self, stream: Stream, asked: slice) -> Array:
        """Scores or means."""
        return scores(self.model, stream.sparse[asked])

    def equals_fit(self, stream: Stream, window: slice) -> tuple[bool, float]:
        """Whether the sums equal a fresh fit of the window, and the seconds of that fit."""
        fresh = clone(self.model).set_params(resolution=self.model.grid_)
        if is_regressor(self.model):
            fresh.set_params(y_resolution=self.model.y_grid_)
        began = perf_counter()
        fresh.fit(stream.sparse[window], stream.y[window])
        return fresh.digest() == self.model.digest(), perf_counter() - began


@final
@dataclass(frozen=True)
class Online(Follower):
    """A model of scikit-learn that passes once over the new rows."""

    model: Any
    options: dict[str, Any] = field(default_factory=dict)

    def learn(self, stream: Stream, window: slice, new: slice, old: slice) -> None:
        """Pass over the new rows."""
        self.model.partial_fit(stream.sparse[new], stream.y[new], **self.options)

    def answer(self, stream: Stream, asked: slice) -> Array:
        """Scores or predictions."""
        return scores(self.model, stream.sparse[asked])


@final
@dataclass
class Refit(Follower):
    """A model that is fitted to the window every so many days."""

    model: Any
    every: int
    dense: bool = False
    days: int = 0

    def learn(self, stream: Stream, window: slice, new: slice, old: slice) -> None:
        """Fit the window if it is time to."""
        if self.days % self.every == 0:
            self.model.fit(self._table(stream)[window], stream.y[window])
        self.days += 1

    def answer(self, stream: Stream, asked: slice) -> Array:
        """Scores or predictions."""
        return scores(self.model, self._table(stream)[asked])

    def _table(self, stream: Stream) -> Any:
        return stream.dense if self.dense else stream.sparse


def river_is_there() -> bool:
    """Whether river can be compared with."""
    return find_spec("river") is not None


@final
@dataclass(frozen=True)
class River(Follower):
    """A linear model of river with its own settings, which learns row by row from dictionaries."""

    classifies: bool
    model: Any

    @classmethod
    def of(cls, *, classifies: bool) -> River:
        """Logistic or linear regression."""
        models = import_module("river.linear_model")
        kind = models.LogisticRegression if classifies else models.LinearRegression
        return cls(classifies, kind())

    def learn(self, stream: Stream, window: slice, new: slice, old: slice) -> None:
        """Learn the new rows one by one."""
        for x, y in zip(_dictionaries(stream, new), stream.y[new].tolist(), strict=True):
            self.model.learn_one(x, y == 1 if self.classifies else y)

    def answer(self, stream: Stream, asked: slice) -> Array:
        """Chances or predictions."""
        rows = _dictionaries(stream, asked)
        if self.classifies:
            return np.array([self.model.predict_proba_one(x).get(True, 0.0) for x in rows])
        return np.array([self.model.predict_one(x) for x in rows])


def _dictionaries(stream: Stream, rows: slice) -> Iterator[dict[int, float]]:
    part = stream.sparse[rows]
    columns, values, ends = part.indices.tolist(), part.data.tolist(), part.indptr.tolist()
    for first, last in pairwise(ends):
        yield dict(zip(columns[first:last], values[first:last], strict=True))
