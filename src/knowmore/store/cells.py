"""Rows of cells in a file: the note that says how they become vectors, and the cells themselves.

The cells of an example are kept beside its vector. So when the encoding is chosen again, because
examples are forgotten or bring new levels, every vector of the file can be made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.store.file import File, Row
from knowmore.store.journal import Journal, Numbers
from knowmore.store.kinds import plain, read_rows
from knowmore.tables import Cell, Encoding, cells_of

# The note that has the encoding.
TABLE: Final = "table"
# The fact that has the number of the entry with which the encoding was chosen last.
ENCODED: Final = "encoded"


def table_of(facts: Mapping[str, Any]) -> Encoding | None:
    """The encoding of a file; None if it has learnt other things than tables of cells."""
    note = facts["notes"].get(TABLE)
    return None if note is None else Encoding.of(note)


def columns_of(table: Encoding) -> dict[str, Any]:
    """The number and the names of the features, as `kinds.columns` has them."""
    d = len(table.features)
    return {"count": d, "names": plain(table.features), "width": d}


def notes_of(table: Encoding | None) -> dict[str, Any]:
    """The notes of an encoding, or of none."""
    if table is None:
        return {TABLE: None, "columns": None}
    return {TABLE: table.note(), "columns": list(table.features)}


def cells_in(row: Row, width: int) -> tuple[Cell, ...]:
    """The cells in a row of vectors; of a row of numbers, which has none beside it, its numbers."""
    if row[4] is not None:
        return cells_of(row[4])
    X: Array = read_rows([row[1]], width)
    return tuple(X[0].tolist())


def cells_with(
    file: File, facts: Mapping[str, Any], vectors: Iterable[int]
) -> list[tuple[Cell, ...]]:
    """The cells of the vectors with these numbers, in their order."""
    numbers = list(vectors)
    width = facts["columns"]["width"]
    rows = Journal(file, Numbers()).vectors(numbers)
    with file.understood("cells"):
        return [cells_in(rows[number], width) for number in numbers]


def check_cells(facts: Mapping[str, Any], X: Array, cells: Sequence[bytes | None]) -> None:
    """Raise InvalidInput unless each new vector of a file of cells has its cells."""
    table = table_of(facts)
    if table is None:
        return
    if any(one is None for one in cells):
        raise InvalidInput(
            "This model has learnt a table, and keeps the cells of every example: the names "
            f"{table.names[0]!r}, ... and not numbers alone. Give rows by the names of their "
            "columns: knowmore learn, replace, or the form of the studio."
        )
    rows = [cells_of(one) for one in cells if one is not None]
    if not np.array_equal(table.vectors(rows), X):
        raise InvalidInput("The numbers of an example are not those of its cells.")
