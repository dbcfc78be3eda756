"""The types of columns, told by the first rows of a table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from knowmore._base import some
from knowmore.errors import InvalidInput
from knowmore.tables import cells as reading
from knowmore.tables.columns import (
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    TruthColumn,
)

# A text column with more levels than these, and more than half as many as rows, holds names.
_LEVELS: Final = 10
_SHARE: Final = 0.5
# Why a column of no values is left out.
_BLANK: Final = "is all blank"
# What a problem is called, with its place: `(place, column, problem)`.
Refuse = Callable[[str, str, str], InvalidInput]


@final
@dataclass(frozen=True)
class Options:
    """What somebody says of the columns of a table.

    columns : the only ones that count; None: all
    categories : columns whose values are names, though they may be numbers
    ignore : columns that do not count
    """

    columns: tuple[str, ...] | None = None
    categories: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Options()

    def used(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of a table that count; raises InvalidInput if one is missing."""
        for one in (*(self.columns or ()), *self.categories, *self.ignore):
            if one not in names:
                raise InvalidInput(f"There is no column {one!r}. There are {some(list(names))}.")
        for one in self.categories:
            if one in self.ignore or (self.columns is not None and one not in self.columns):
                raise InvalidInput(f"The column {one!r} is a category, and left out. Say one.")
        wanted = names if self.columns is None else self.columns
        used = tuple(one for one in names if one in wanted and one not in self.ignore)
        if not used:
            raise InvalidInput("No column is left to learn from. Leave out fewer.")
        return used

    def as_json(self) -> dict[str, Any]:
        """The options as JSON can write them."""
        columns = None if self.columns is None else list(self.columns)
        return {
            "columns": columns,
            "categories": list(self.categories),
            "ignore": list(self.ignore),
        }

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> Options:
        """The options that `as_json` wrote."""
        columns = note["columns"]
        return cls(
            None if columns is None else tuple(columns),
            tuple(note["categories"]),
            tuple(note["ignore"]),
        )


@dataclass
class _Evidence:
    """What the cells of a column have been so far, but for blanks.

    levels : the cells that are no numbers, or may be codes of digits
    padded : whether a cell has a leading zero that a number would lose
    strange : the first cell that is no number, no truth value and no date, with its place, by type
    """

    count: int = 0
    numbers: int = 0
    truths: int = 0
    dates: int = 0
    commas: int = 0
    forms: frozenset[str] | None = None
    levels: set[Any] = field(default_factory=set)
    strange: dict[str, tuple[str, Any]] = field(default_factory=dict)
    comma: tuple[str, Any] | None = None
    padded: bool = False

    def see(self, cell: Any, place: str) -> None:
        if reading.is_blank(cell):
            return
        self.count += 1
        is_number = type(cell) in (int, float) or _reads(reading.number, cell)
        if is_number:
            self.numbers += 1
        else:
            self.strange.setdefault("number", (place, cell))
            if reading.has_comma(cell):
                self.commas += 1
                self.comma = self.comma or (place, cell)
        if not is_number and _reads(reading.truth, cell):
            self.truths += 1
        forms = frozenset() if is_number else reading.forms_of(cell)
        if forms:
            self.dates += 1
            self.forms = forms if self.forms is None else self.forms & forms
        else:
            self.strange.setdefault("date", (place, cell))
        if isinstance(cell, str) and not (is_number and "." in cell):
            self.padded = self.padded or reading.is_padded(cell)
            self.levels.add(cell.strip())
        elif not is_number:
            self.levels.add(repr(cell))


def _reads(reader: Callable[[Any], Any], cell: Any) -> bool:
    try:
        reader(cell)
    except reading.Infinite:
        return True
    except ValueError:
        return False
    return True


@final
class Guess:
    """Tells the types of the columns that count from rows of their cells, which may come in parts.

    >>> guess = Guess(["island", "mass"])
    >>> guess.see([("Biscoe", "4200"), ("Dream", "NA")], ["line 2", "line 3"])
    >>> [column.kind for column in guess.columns()[0]]
    ['category', 'number']
    """

    def __init__(self, names: Sequence[str], options: Options | None = None) -> None:
        self.options = options or Options()
        self.names = tuple(names)
        self._seen = [_Evidence() for _ in self.names]

    def see(self, rows: Iterable[Sequence[Any]], places: Iterable[str]) -> None:
        """Look at some rows of cells."""
        for row, place in zip(rows, places, strict=True):
            for cell, seen in zip(row, self._seen, strict=True):
                seen.see(cell, place)

    def columns(self, refuse: Refuse | None = None) -> tuple[tuple[Column, ...], dict[str, str]]:
        """The columns by their types, and why others are left out, by name.

        refuse : makes the error of a problem; raises it here if a column is of two types
        """
        refuse = refuse or _refused
        found: list[Column] = []
        left: dict[str, str] = {}
        for name, seen in zip(self.names, self._seen, strict=True):
            made = self._column(name, seen, refuse)
            if isinstance(made, str):
                left[name] = made
            else:
                found.append(made)
        if not found:
            why = "; ".join(f"{name!r} {why}" for name, why in left.items())
            advice = "Fill in the values"
            if filled := [shlex.quote(name) for name in left if left[name] != _BLANK]:
                advice = (
                    f"To learn texts: --text {filled[0]}. Names of levels all the same: --category "
                    f"{filled[0]}"
                )
            raise InvalidInput(f"No column is left to learn from: {why}. {advice}.")
        return tuple(found), left

    def _column(self, name: str, seen: _Evidence, refuse: Refuse) -> Column | str:
        """A column by its type, or why it is left out."""
        n = seen.count
        if name in self.options.categories:
            return CategoryColumn(name)
        if not n:
            return _BLANK
        if seen.padded:
            return self._names(name, seen)
        if seen.numbers == n:
            return NumberColumn(name)
        if seen.truths == n:
            return TruthColumn(name)
        if seen.dates == n:
            return self._date(name, seen, refuse)
        near = seen.numbers + seen.commas
        if seen.comma is not None and near == n:
            place, cell = seen.comma
            raise refuse(place, name, f"{reading.not_a_number(str(cell))}.")
        for type_, count in (("number", seen.numbers), ("date", seen.dates)):
            if count >= _SHARE * n:
                place, cell = seen.strange[type_]
                raise refuse(
                    place,
                    name,
                    f"{reading.short(cell)} is not a {type_}, but {count} of the {n} values of the "
                    f"column are. Correct it, or leave the cell empty; if the values are names: "
                    f"--category {name}",
                )
        return self._names(name, seen)

    def _names(self, name: str, seen: _Evidence) -> CategoryColumn | str:
        """A category, or why its texts are too many for one."""
        if len(seen.levels) > max(_LEVELS, _SHARE * seen.count):
            several = f"{len(seen.levels)} different texts in {seen.count} rows"
            return f"has {several}, so they seem to be names or texts"
        return CategoryColumn(name)

    def _date(self, name: str, seen: _Evidence, refuse: Refuse) -> DateColumn:
        forms = seen.forms or frozenset()
        if "iso" in forms:
            return DateColumn(name)
        if len(forms) == 1:
            return DateColumn(name, form=next(iter(forms)))
        if forms:
            why = "may begin with the day or with the month in every row"
        else:
            why = "are written in several ways"
        raise refuse(
            "",
            name,
            f"the dates {why}. Write them as 2024-03-01, or leave the column out: --ignore {name}",
        )


def _refused(place: str, column: str, problem: str) -> InvalidInput:
    where = f"{place}, column {column!r}" if place else f"Column {column!r}"
    return InvalidInput(f"{where}: {problem}")
