"""What was learnt of the columns of a table: how rows of cells become rows of numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.tables.cells import Cell
from knowmore.tables.columns import Column, encoded, features_of, noted, of_note
from knowmore.tables.guessing import Options


@final
@dataclass(frozen=True)
class Encoding:
    """Columns with their types, levels and fills.

    columns : those that count, in the order of the cells of a row
    left_out : why other columns of the table do not count, by name
    options : what somebody said of the columns

    Examples
    --------
    >>> from knowmore.tables import CategoryColumn, NumberColumn
    >>> rows = [("Biscoe", 4200.0), ("Dream", None), ("Dream", 3700.0)]
    >>> encoding = Encoding((CategoryColumn("island"), NumberColumn("mass"))).chosen(rows)
    >>> encoding.features
    ('island=Biscoe', 'island=Dream', 'mass', 'mass is blank')
    >>> encoding.vectors([("Torgersen", None)]).tolist()
    [[0.0, 0.0, 3950.0, 1.0]]
    """

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the features, (D,)."""
        found = tuple(name for column in self.columns for name in features_of(column))
        twice = [name for name, times in Counter(found).items() if times > 1]
        if twice:
            raise InvalidInput(
                f"Two features would have the name {twice[0]!r}. Rename a column of the table."
            )
        return found

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The name of the column that each feature comes from, (D,)."""
        return tuple(column.name for column in self.columns for _ in features_of(column))

    def read(self, row: Sequence[Any]) -> tuple[Cell, ...]:
        """A row of cells as a model keeps it; raises `WrongCell` at the first of another type."""
        found = []
        for column, cell in zip(self.columns, row, strict=True):
            try:
                found.append(column.read(cell))
            except ValueError as error:
                raise WrongCell(column, str(error)) from None
        return tuple(found)

    def vectors(self, rows: Sequence[Sequence[Cell]]) -> Array:
        """Rows of cells, as `read` returns them, as features (n, D)."""
        if not len(rows):
            return np.empty((0, len(self.features)))
        parts = [encoded(column, [row[j] for row in rows]) for j, column in enumerate(self.columns)]
        return np.hstack(parts).reshape(len(rows), len(self.features))

    def chosen(self, rows: Sequence[Sequence[Cell]]) -> Encoding:
        """The encoding of these rows: levels, fills and blanks; types stay."""
        columns = tuple(
            column.chosen([row[j] for row in rows]) for j, column in enumerate(self.columns)
        )
        return replace(self, columns=columns)

    def covers(self, rows: Iterable[Sequence[Cell]]) -> bool:
        """Whether no row has a level, or a blank in a column, that is new."""
        return all(
            column.covers(cell)
            for row in rows
            for column, cell in zip(self.columns, row, strict=True)
        )

    def alike(self, other: Encoding) -> bool:
        """Whether two encodings are of the same columns with the same types."""
        return [(one.name, one.kind) for one in self.columns] == [
            (one.name, one.kind) for one in other.columns
        ]

    def note(self) -> dict[str, Any]:
        """The encoding as JSON can write it.

        >>> Encoding.of(json.loads(json.dumps(Encoding(()).note()))) == Encoding(())
        True
        """
        return {
            "columns": [noted(column) for column in self.columns],
            "left_out": dict(self.left_out),
            "options": self.options.as_json(),
        }

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> Encoding:
        """The encoding that `note` wrote; raises any error if it makes no sense."""
        columns = tuple(map(of_note, note["columns"]))
        return cls(columns, dict(note["left_out"]), Options.of(note["options"]))


@final
class WrongCell(ValueError):
    """A cell that is not of the type of its column."""

    def __init__(self, column: Column, why: str) -> None:
        super().__init__(f"column {column.name!r}: {why}")
        self.column, self.why = column, why


def json_of(row: Sequence[Cell]) -> bytes:
    """A row of cells as bytes.

    >>> json_of(("Biscoe", None, 4200.0))
    b'["Biscoe",null,4200.0]'
    """
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")


def cells_of(data: bytes) -> tuple[Cell, ...]:
    """The row of cells that `json_of` wrote."""
    found = json.loads(data.decode(errors="surrogatepass"))
    if not isinstance(found, list):
        raise ValueError("no list of cells")
    return tuple(found)
