"""Columns of a table as a model knows them: each reads a cell, and turns cells into features.

A feature of a category is 1 where a row has that level. A level that was never seen has zeros. A
blank number, truth value or date is filled with the median of the column. A column that had blanks
when it was chosen has a feature that says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isfinite
from statistics import median_high, median_low
from typing import Any, ClassVar, Final, Self, final

import numpy as np

from knowmore._base import Array
from knowmore.tables import cells as reading
from knowmore.tables.cells import Cell


@final
@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: one feature.

    fill : what a blank counts as
    blank : whether a feature says where it is blank
    """

    name: str
    fill: float = 0.0
    blank: bool = False
    kind: ClassVar[str] = "number"

    def read(self, cell: Any) -> float | None:
        """A cell as this column keeps it; raises ValueError with a reason."""
        return reading.number(cell)

    def chosen(self, cells: Sequence[Any]) -> Self:
        """The column of these cells, as `read` returns them."""
        known = [one for one in cells if one is not None]
        fill = _median(known) if known else 0.0
        return type(self)(self.name, fill, len(known) < len(cells))

    def covers(self, cell: Cell) -> bool:
        """Whether a cell has features of its own: a blank may have none."""
        return self.blank or cell is not None

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features but for the blank."""
        return (self.name,)

    def values(self, cells: Sequence[Any]) -> Array:
        """The features (n, 1) of cells."""
        return np.array([[self.fill if one is None else one] for one in cells], dtype=float)


@final
@dataclass(frozen=True)
class TruthColumn:
    """A column of truth values: one feature, 0 or 1."""

    name: str
    fill: bool = False
    blank: bool = False
    kind: ClassVar[str] = "truth"

    def read(self, cell: Any) -> bool | None:
        """A cell as this column keeps it; raises ValueError with a reason."""
        return reading.truth(cell)

    def chosen(self, cells: Sequence[Any]) -> Self:
        """The column of these cells."""
        known = [one for one in cells if one is not None]
        fill = bool(known and median_low(known))
        return type(self)(self.name, fill, len(known) < len(cells))

    def covers(self, cell: Cell) -> bool:
        """Whether a cell has features of its own."""
        return self.blank or cell is not None

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features but for the blank."""
        return (self.name,)

    def values(self, cells: Sequence[Any]) -> Array:
        """The features (n, 1) of cells."""
        return np.array([[self.fill if one is None else one] for one in cells], dtype=float)


@final
@dataclass(frozen=True)
class DateColumn:
    """A column of dates: one feature, the days since 1970.

    form : how dates may be written, beside ISO 8601: d.m.y, d/m/y or m/d/y
    """

    name: str
    fill: str = "1970-01-01"
    blank: bool = False
    form: str = "iso"
    kind: ClassVar[str] = "date"

    def read(self, cell: Any) -> str | None:
        """A cell as this column keeps it, in ISO 8601; raises ValueError with a reason."""
        return reading.moment(cell, self.form)

    def chosen(self, cells: Sequence[Any]) -> Self:
        """The column of these cells."""
        known = [one for one in cells if one is not None]
        fill = median_low(sorted(known, key=reading.days)) if known else "1970-01-01"
        return type(self)(self.name, fill, len(known) < len(cells), self.form)

    def covers(self, cell: Cell) -> bool:
        """Whether a cell has features of its own."""
        return self.blank or cell is not None

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features but for the blank."""
        return (self.name,)

    def values(self, cells: Sequence[Any]) -> Array:
        """The features (n, 1) of cells."""
        return np.array([[reading.days(self.fill if one is None else one)] for one in cells])


@final
@dataclass(frozen=True)
class CategoryColumn:
    """A column of names: one feature for each level.

    levels : sorted
    """

    name: str
    levels: tuple[str, ...] = ()
    blank: bool = False
    kind: ClassVar[str] = "category"

    def read(self, cell: Any) -> str | None:
        """A cell as this column keeps it; raises ValueError with a reason."""
        return reading.category(cell)

    def chosen(self, cells: Sequence[Any]) -> Self:
        """The column of these cells."""
        known = {one for one in cells if one is not None}
        return type(self)(self.name, tuple(sorted(known)), None in cells)

    def covers(self, cell: Cell) -> bool:
        """Whether a cell has a feature of its own: a new level has none."""
        return self.blank if cell is None else cell in self._places

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The place of each level."""
        return {level: j for j, level in enumerate(self.levels)}

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features but for the blank."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def values(self, cells: Sequence[Any]) -> Array:
        """The features (n, levels) of cells."""
        at = self._places
        found = np.zeros((len(cells), len(at)))
        for i, one in enumerate(cells):
            if one in at:
                found[i, at[one]] = 1.0
        return found


Column = NumberColumn | CategoryColumn | TruthColumn | DateColumn
KINDS: Final[dict[str, type[Any]]] = {
    kind.kind: kind for kind in (NumberColumn, CategoryColumn, TruthColumn, DateColumn)
}


def features_of(column: Column) -> tuple[str, ...]:
    """The names of the features of a column.

    >>> features_of(CategoryColumn("sex", ("female", "male"), blank=True))
    ('sex=female', 'sex=male', 'sex is blank')
    """
    return (*column.features, *([f"{column.name} is blank"] if column.blank else []))


def _median(values: Sequence[float]) -> float:
    """The median, also of two numbers whose sum is too large.

    >>> _median([1.0, 4.0]), _median([1.5e308, 1.5e308])
    (2.5, 1.5e+308)
    """
    low, high = median_low(values), median_high(values)
    middle = (low + high) / 2
    return middle if isfinite(middle) else low / 2 + high / 2


def encoded(column: Column, cells: Sequence[Cell]) -> Array:
    """The features (n, k) of the cells of a column."""
    values = column.values(cells)
    if not column.blank:
        return values
    blanks = np.array([[one is None] for one in cells], dtype=float)
    return np.hstack([values, blanks])


def noted(column: Column) -> dict[str, Any]:
    """A column as JSON can write it."""
    return {"type": column.kind, **asdict(column)}


def of_note(note: Any) -> Column:
    """The column that `noted` was given; raises any error if it is none."""
    kind = KINDS[note["type"]]
    values = {name: value for name, value in note.items() if name != "type"}
    if "levels" in values:
        values["levels"] = tuple(values["levels"])
    made: Column = kind(**values)
    return made
