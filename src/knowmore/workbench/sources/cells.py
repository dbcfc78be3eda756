"""Tables whose cells are not all numbers: told by all of their rows, read by the types of columns.

A source first gives numbers. Where a cell is none, whoever learns the source asks it for cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from knowmore.errors import InvalidInput
from knowmore.tables import Encoding, Guess, NumberColumn, WrongCell
from knowmore.workbench.sources.records import RecordBlock, Source, Wanted

# What columns of each type hold, in words.
_HOLDS = {
    "number": "numbers",
    "category": "names",
    "truth": "true and false",
    "date": "dates",
}
# Blocks of rows of cells as a file has them; X has the columns of the source.
Raw = Callable[[], Iterator[RecordBlock]]


def tabled(source: Source, raw: Raw, wanted: Wanted) -> Source:
    """A source of numbers that can give its cells, or cells at once where these are wanted.

    Texts, and lists of features, which have no names, stay as they are.

    source : with blocks of numbers
    raw : its rows of cells
    """
    if source.columns is None:
        return source
    if wanted.table is not None:
        return _read_by(source, raw, wanted.table, gaps=wanted.gaps)
    if wanted.options:
        return _told(source, raw, wanted)
    return replace(source, cells=lambda: _told(source, raw, wanted))


def _told(source: Source, raw: Raw, wanted: Wanted) -> Source:
    """The cells of a table, by the types that its rows tell, or by the numbers of the model."""
    names = source.columns or ()
    if wanted.columns is not None:
        known = Encoding(tuple(NumberColumn(name) for name in wanted.columns))
        return _read_by(source, raw, known, gaps=wanted.gaps)
    guess = Guess(names, wanted.options)
    for block in raw():
        guess.see(_rows(block), block.places)

    def refuse(place: str, column: str, problem: str) -> InvalidInput:
        where = f"{source.name!r}, {place}" if place else repr(source.name)
        return InvalidInput(f"{where}, column {column!r}: {problem}")

    columns, left_out = guess.columns(refuse)
    return _read_by(source, raw, Encoding(columns, left_out, guess.options), gaps=wanted.gaps)


def _rows(block: RecordBlock) -> Sequence[Sequence[Any]]:
    rows: Any = block.X
    return cast("Sequence[Sequence[Any]]", rows)


def _read_by(source: Source, raw: Raw, table: Encoding, *, gaps: bool) -> Source:
    """A source of rows of cells as a model keeps them.

    gaps : a row with a cell of another type is the reason why, as a text; else that is an error
    """
    names = source.columns or ()
    at = [names.index(name) for name in table.names]

    def read(row: Sequence[Any], place: str) -> Any:
        try:
            return table.read([row[j] for j in at])
        except WrongCell as error:
            why = (
                f"{error.why}. The model has learnt {_HOLDS[error.column.kind]} in this column: "
                f"correct the cell, or leave it empty."
            )
            if gaps:
                return f"column {error.column.name!r}: {why}"
            raise InvalidInput(
                f"{source.name!r}, {place}, column {error.column.name!r}: {why}"
            ) from None

    def blocks() -> Iterator[RecordBlock]:
        for block in raw():
            rows = [read(row, place) for row, place in zip(_rows(block), block.places, strict=True)]
            yield replace(block, X=rows)

    return replace(
        source, blocks=blocks, columns=table.names, holds="cells", table=table, cells=None
    )
