"""CSV files, by the standard library: pandas takes longer to load than most files to read."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, final

from knowmore.cells import read_cell
from knowmore.cli.sources.records import ROWS, Block, Source, Wanted
from knowmore.cli.sources.tables import contributors_of, ids_of, labels_of, layout, numbers
from knowmore.errors import InvalidInput

_DELIMITERS = ",;\t"
# A first line with more numbers than this share of its cells names no columns.
_HEADLESS = 0.5


@final
@dataclass(frozen=True)
class Sheet:
    """The text of a CSV file that is in no folder, by the name that it has elsewhere."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name

    def open(self, *, newline: str, encoding: str) -> TextIO:
        """As a file is opened; the text is decoded already."""
        del encoding
        return StringIO(self.text.removeprefix("\ufeff"), newline=newline)


def csv_source(path: Path | Sheet, wanted: Wanted) -> Source:
    """The rows of a CSV file; its first line names the columns.

    Columns are separated by commas, semicolons or tabs, whichever the first line has most of. An
    apostrophe before what a spreadsheet would run is not read: see `knowmore.cells`.
    """
    name = str(path)
    with _lines(path) as (reader, header):
        del reader
    plan = layout(name, header, wanted)
    at = {column: i for i, column in enumerate(header)}
    features = [at[column] for column in plan.features]

    def blocks() -> Iterator[Block]:
        with _lines(path) as (reader, _):
            rows = _complete(name, reader, len(header))
            while some := list(islice(rows, ROWS)):
                places, cells = zip(*some, strict=True)

                def column(which: str | None, cells: Any = cells) -> list[str] | None:
                    return None if which is None else [read_cell(row[at[which]]) for row in cells]

                numbered = [[row[j] for j in features] for row in cells]
                X = numbers(name, numbered, plan.features, places, gaps=wanted.gaps)
                labels, ids, who = map(column, (plan.label, plan.id, plan.contributor))
                yield Block(
                    X,
                    labels_of(name, labels, places) if labels and wanted.labelled else None,
                    ids_of(name, ids, places) if ids else None,
                    contributors_of(name, who, places) if who else [None] * len(X),
                    places,
                )

    return Source(name, blocks, plan.features, ignored=plan.ignored, label=plan.label, id=plan.id)


@contextmanager
def _lines(path: Path | Sheet) -> Iterator[tuple[Any, list[str]]]:
    """A reader of the lines after the first, and the names in that one."""
    name = str(path)
    reader: Any = None
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            delimiter = max(_DELIMITERS, key=first.count)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            header = [read_cell(cell.strip()) for cell in next(reader, [])]
            if not header or header == [""]:
                raise InvalidInput(f"{name!r} is empty. Its first line must name the columns.")
            if sum(map(_is_number, header)) > _HEADLESS * len(header):
                raise InvalidInput(
                    f"{name!r} has numbers in its first line, {','.join(header)[:40]!r}, which "
                    f"must name the columns. Write the names above it."
                )
            yield reader, header
    except UnicodeDecodeError as error:
        near = f" after line {reader.line_num}" if reader is not None else ""
        byte = error.object[error.start]
        raise InvalidInput(
            f"{name!r} is not UTF-8: it has the byte 0x{byte:02x}{near}. Save it as UTF-8."
        ) from error
    except csv.Error as error:
        raise InvalidInput(
            f"{name!r}, line {reader.line_num}: not CSV, {error}. Is a quotation mark missing?"
        ) from error
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {error.strerror or error}.") from error


def _complete(name: str, reader: Any, width: int) -> Iterator[tuple[str, list[str]]]:
    """The rows that are not blank, each with its place; each must have as many cells as names."""
    found = False
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        found = True
        place = f"line {reader.line_num}"
        if len(row) != width:
            raise InvalidInput(
                f"{name!r}, {place}: it has {len(row)} values, but the first line names {width} "
                f"columns. Is a separator missing, or one too many?"
            )
        yield place, row
    if not found:
        raise InvalidInput(f"{name!r} has no rows below its first line.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
