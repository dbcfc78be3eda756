"""What is learnt: tables as they come, how many of their rows, and which in each split.

The protocol is older than the figures. Classes: all balanced sets of KEEL, and its other sets of
at least 1000 rows. Values: the numeric column with the most distinct values is predicted from all
other columns but the class; beside these sets, one of scikit-learn's and three made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from papers.arrays import Array
from papers.data import Split, keel, keel_names

FEW, MANY = 300, 1000
# A set with at least so many rows is learnt with `MANY` of them, too.
_ENOUGH = 1300
# An imbalanced set has at least so many rows: others have too few of their rare class.
_LARGE = 1000
# No more rows than this are tested.
_TESTED = 2000
# A column with fewer distinct values is not taken for a quantity.
_DISTINCT = 30
# Rows of the sets that are made up, with the deviations of noise that Friedman (1991) adds.
_MADE = 2300
_FRIEDMAN = {"friedman1": (make_friedman1, 1.0), "friedman2": (make_friedman2, 125.0)}
_FRIEDMAN |= {"friedman3": (make_friedman3, 0.1)}
# Two sets for a quick look.
_QUICK, _QUICK_COLUMN = ("iris", "wine"), "wine"


@final
@dataclass(frozen=True, eq=False)
class Task:
    """A table, and the number of its rows that are learnt.

    name : of the table
    X (n, d), y (n,) : its rows, and the classes or the values
    size : `FEW` or `MANY`; small tables learn less, see `rows`
    regression : whether y are values
    """

    name: str
    X: Array
    y: Array
    size: int
    regression: bool

    @property
    def rows(self) -> int:
        """The number of rows learnt: two thirds of a small table."""
        return min(self.size, 2 * len(self.y) // 3)

    @property
    def classes(self) -> int:
        """The number of classes; none of values."""
        return 0 if self.regression else len(np.unique(self.y))

    def split(self, seed: int) -> Split:
        """Random rows to learn from and to be tested; each class has its part of both."""
        kind = ShuffleSplit if self.regression else StratifiedShuffleSplit
        tested = min(_TESTED, len(self.y) - self.rows)
        parts = kind(1, train_size=self.rows, test_size=tested, random_state=seed)
        train, test = next(parts.split(self.X, self.y))
        return Split(self.X[train], self.y[train], self.X[test], self.y[test])


def tasks(quick: bool) -> list[Task]:
    """All tasks: classes from few rows, then values, then classes from many rows."""
    tables = list(_tables(quick))
    few = [Task(name, X, y, FEW, False) for name, X, y in tables]
    many = [Task(name, X, y, MANY, False) for name, X, y in tables if len(y) >= _ENOUGH]
    return [*few, *(Task(name, X, y, FEW, True) for name, X, y in _columns(quick)), *many]


def _tables(quick: bool) -> Iterator[tuple[str, Array, Array]]:
    for name in _QUICK if quick else keel_names("balanced"):
        X, y, _ = keel("balanced", name)
        yield name, X, y
    for name in () if quick else keel_names("imbalanced"):
        X, y, _ = keel("imbalanced", name)
        if len(y) >= _LARGE:
            yield f"{name} (imbalanced)", X, y


def _columns(quick: bool) -> Iterator[tuple[str, Array, Array]]:
    yield "diabetes", *load_diabetes(return_X_y=True)
    for name, (make, noise) in () if quick else _FRIEDMAN.items():
        yield name, *make(_MADE, noise=noise, random_state=0)
    for name in (_QUICK_COLUMN,) if quick else keel_names("balanced"):
        X, _, numeric = keel("balanced", name)
        distinct = [
            len(np.unique(x)) if given else 0 for x, given in zip(X.T, numeric, strict=True)
        ]
        target = int(np.argmax(distinct))
        if distinct[target] >= _DISTINCT:
            yield f"{name}, column {target + 1}", np.delete(X, target, axis=1), X[:, target]
