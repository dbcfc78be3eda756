"""Tables in text: CSV files, and JSON lines from a file or as they come on standard input.

Both are read by the standard library: pandas takes longer to load than most files to read.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from knowmore._base import read_cell
from knowmore.errors import InvalidInput
from knowmore.tables import is_padded
from knowmore.workbench.sources.cells import tabled
from knowmore.workbench.sources.records import (
    ROWS,
    TEXT,
    NotNumbers,
    RecordBlock,
    Source,
    Wanted,
    checked_block,
    layout,
    numbers,
    texts,
)

_DELIMITERS = ",;\t"
# A first line with more numbers than this share of its cells names no columns.
_HEADLESS = 0.5

# The key of a list of all features, which then have no names.
FEATURES = "features"
# Bytes of standard input that are taken at a time.
_CHUNK = 2**16


def csv_source(path: Path | str, wanted: Wanted, text: str | None = None) -> Source:
    """The rows of a CSV file; its first line names the columns.

    Columns are separated by commas, semicolons or tabs, whichever the first line has most of. An
    apostrophe before what a spreadsheet would run is not read: see `written_cell`.

    text : of a file that is in no folder; then the path is only its name
    """
    name = str(path)
    with _lines(path, text) as (_, header):
        pass
    plan = layout(name, header, wanted)
    at, names = {column: i for i, column in enumerate(header)}, plan.columns or ()
    features, gaps = [at[column] for column in names], wanted.gaps

    def blocks(*, as_cells: bool = False) -> Iterator[RecordBlock]:
        with _lines(path, text) as (reader, _):
            rows = _complete(name, reader, len(header))
            while some := list(islice(rows, ROWS)):
                places, cells = zip(*some, strict=True)

                def column(which: str | None, cells: Any = cells) -> list[str] | None:
                    return None if which is None else [read_cell(row[at[which]]) for row in cells]

                X: Any = column(plan.text)
                if X is None and as_cells:
                    X = [[read_cell(row[j]) for j in features] for row in cells]
                elif X is None:
                    chosen = [[row[j] for j in features] for row in cells]
                    if wanted.holds is None and wanted.columns is None:
                        _check_codes(name, chosen, names, places)
                    X = numbers(name, chosen, names, places, gaps=gaps)
                labels, ids, who = map(column, (plan.label, plan.id, plan.contributor))
                columns = labels if wanted.labelled else None, ids, who
                yield checked_block(name, X, columns, places)

    return tabled(replace(plan, blocks=blocks), lambda: blocks(as_cells=True), wanted)


@contextmanager
def _lines(path: Path | str, text: str | None) -> Iterator[tuple[Any, list[str]]]:
    """A reader of the lines after the first, and the names in that one."""
    name = str(path)
    reader: Any = None
    try:
        with (
            open(path, newline="", encoding="utf-8-sig")
            if text is None
            else StringIO(text.removeprefix("\ufeff"), newline="")
        ) as file:
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
        long = f"a cell has more than {csv.field_size_limit():,} characters"
        why = long if "field limit" in str(error) else f"not CSV, {error}"
        raise InvalidInput(
            f"{name!r}, line {reader.line_num}: {why}. Is a quotation mark missing?"
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


def _check_codes(
    name: str, rows: Sequence[Sequence[str]], columns: Sequence[str], places: Sequence[str]
) -> None:
    """Raise NotNumbers at the first cell that would lose a leading zero as a number."""
    for row, place in zip(rows, places, strict=True):
        for cell, column in zip(row, columns, strict=True):
            if is_padded(cell):
                raise NotNumbers(
                    f"{name!r}, {place}, column {column!r}: {cell!r} begins with a zero, which a "
                    f"number would lose. Leave the zero out, or take the column out."
                )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# -- JSON lines ---------------------------------------------------------------------------------


def lines_source(path: Path | None, wanted: Wanted, *, streaming: bool = False) -> Source:
    """The objects of a file of JSON lines, or of standard input.

    streaming : a block is what has come so far, and a line that cannot be used is skipped
    """
    name = "-" if path is None else str(path)
    if streaming:
        wanted = replace(wanted, gaps=False)
    lines = _chunks(path)
    first: list[list[tuple[int, bytes]]] = []
    # Standard input is read once.
    keeps = path is None and not streaming
    skipped: dict[str, str] = {}
    plan: Source | None = None
    failure: InvalidInput | None = None
    # The first line tells the columns; it is read now, and given out later.
    while plan is None and (chunk := next(lines, None)):
        first.append(chunk)
        for number, line in chunk:
            try:
                plan = _layout(name, _object(name, number, line), wanted)
                break
            except InvalidInput as error:
                # The reason of the first says most.
                failure = failure or error
                if not streaming:
                    raise
    if plan is None:
        whence = "standard input" if name == "-" else repr(name)
        raise failure or InvalidInput(
            f"There are no lines in {whence}. Give a JSON object on each."
        )
    found = plan

    def chunks() -> Iterator[list[tuple[int, bytes]]]:
        if path is not None and not streaming:
            yield from _chunks(path)
            return
        yield from first
        for chunk in lines:
            if keeps:
                first.append(chunk)
            yield chunk

    def blocks(*, as_cells: bool = False) -> Iterator[RecordBlock]:
        for chunk in chunks():
            rows = iter(chunk)
            while some := list(islice(rows, ROWS)):
                into = skipped if streaming else None
                block = _usable(name, some, found, wanted, into, as_cells=as_cells)
                if block is not None:
                    yield block

    made = replace(found, blocks=blocks, columns=_named(found), skipped=skipped)
    return tabled(made, lambda: blocks(as_cells=True), wanted)


def parsed(text: str, wanted: Wanted) -> Source:
    """A JSON object, or a list of numbers, from the command line."""
    name = "the row"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{text!r} is not JSON: {error}.") from error
    if isinstance(value, list) and wanted.texts:
        raise InvalidInput(
            f"{text!r} is a list, and the model has learnt texts. Give an object: "
            f'{{"{wanted.usual_text or TEXT}": "..."}}'
        )
    row = {FEATURES: value} if isinstance(value, list) else value
    if not isinstance(row, dict):
        raise InvalidInput(f"{text!r} is no JSON object. Give names and numbers: {{...}} or [...].")
    return object_source(name, row, wanted)


def object_source(name: str, row: Mapping[str, Any], wanted: Wanted) -> Source:
    """The only record that a JSON object is."""
    plan = _layout(name, row, wanted)

    def blocks(*, as_cells: bool = False) -> Iterator[RecordBlock]:
        yield _block(name, [(1, row)], plan, wanted, as_cells=as_cells)

    source = replace(plan, blocks=blocks, columns=_named(plan))
    return tabled(source, lambda: blocks(as_cells=True), wanted)


def _named(plan: Source) -> tuple[str, ...] | None:
    """The names of the features; None if a list holds them all."""
    return None if plan.columns == (FEATURES,) else plan.columns


def _layout(name: str, row: Mapping[str, Any], wanted: Wanted) -> Source:
    if FEATURES not in row or not isinstance(row[FEATURES], list) or wanted.texts:
        return layout(name, list(row), wanted)
    if wanted.table is not None:
        raise InvalidInput(
            f"{name!r} has a list of features, but the model has learnt columns by their names. "
            f'Give an object: {{"{wanted.table.names[0]}": ...}}'
        )
    return layout(name, list(row), replace(wanted, columns=(FEATURES,)))


def _usable(
    name: str,
    some: list[tuple[int, bytes]],
    plan: Source,
    wanted: Wanted,
    skipped: dict[str, str] | None,
    *,
    as_cells: bool,
) -> RecordBlock | None:
    """A block of all lines, or of the usable ones if `skipped` takes the others."""
    rows = []
    for number, line in some:
        try:
            row = _object(name, number, line)
            if skipped is not None:
                _checked(name, (number, row), plan, wanted, as_cells=as_cells)
            rows.append((number, row))
        except InvalidInput as error:
            if skipped is None:
                raise
            place = f"line {number}"
            why = str(error).removeprefix(f"{name!r}, {place}").lstrip(",: ")
            skipped[place] = why
            print(f"Skipped: {place}: {why}", file=sys.stderr, flush=True)
    return _block(name, rows, plan, wanted, as_cells=as_cells) if rows else None


def _checked(
    name: str, row: tuple[int, Mapping[str, Any]], plan: Source, wanted: Wanted, *, as_cells: bool
) -> None:
    """Raise InvalidInput if a line cannot be used."""
    block = _block(name, [row], plan, wanted, as_cells=as_cells)
    if as_cells:
        for _ in tabled(plan, lambda: iter([block]), wanted).blocks():
            pass


def _block(
    name: str,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    plan: Source,
    wanted: Wanted,
    *,
    as_cells: bool = False,
) -> RecordBlock:
    places = [f"line {number}" for number, _ in rows]
    objects = [row for _, row in rows]
    features = plan.columns or tuple(filter(None, [plan.text]))
    keys = {plan.id, plan.label, plan.contributor, *features, *plan.ignored} - {None}
    for row, place in zip(objects, places, strict=True):
        needed = [*features, *filter(None, [plan.id, plan.label if wanted.labelled else None])]
        for key in needed:
            if key not in row:
                raise InvalidInput(
                    f"{name!r}, {place}: there is no {key!r}, which the first line has."
                )
        for key in row:
            if key not in keys and wanted.labelled and plan.text is None:
                raise InvalidInput(f"{name!r}, {place}: {key!r} is not in the first line.")
    X: Any
    if plan.text is not None:
        X = texts(name, [row[plan.text] for row in objects], plan.text, places)
    elif features == (FEATURES,):
        X = _listed(name, [row[FEATURES] for row in objects], places)
    else:
        cells = [[row[key] for key in features] for row in objects]
        X = cells
        if not as_cells:
            X = numbers(name, cells, features, places, _strict, gaps=wanted.gaps)
    labels = [row[plan.label] for row in objects] if plan.label and wanted.labelled else None
    who = [row.get(plan.contributor) for row in objects] if plan.contributor else None
    ids = [row[plan.id] for row in objects] if plan.id else None
    return checked_block(name, X, (labels, ids, who), places)


def _listed(name: str, vectors: list[Any], places: list[str]) -> Any:
    """Lists of numbers as an array; all must be as long as the first."""
    if not isinstance(vectors[0], list) or not vectors[0]:
        raise InvalidInput(f"{name!r}, {places[0]}: 'features' is not a list of numbers.")
    for vector, place in zip(vectors, places, strict=True):
        if not isinstance(vector, list) or len(vector) != len(vectors[0]):
            got = f"{len(vector)} numbers" if isinstance(vector, list) else "no list"
            raise InvalidInput(
                f"{name!r}, {place}: 'features' is {got}, not {len(vectors[0])} as in {places[0]}."
            )
    columns = [str(j) for j in range(len(vectors[0]))]
    return numbers(name, vectors, columns, places, _strict)


def _strict(value: Any) -> float:
    """A number of JSON; float() would take texts and truth values, too."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _object(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name!r}, line {number}: not JSON, {error}.") from error
    if not isinstance(row, dict):
        raise InvalidInput(
            f"{name!r}, line {number}: not a JSON object. Write {{...}} on each line."
        )
    return row


def _chunks(path: Path | None) -> Iterator[list[tuple[int, bytes]]]:
    """Lines that are not blank, with their numbers, as many as have come each time."""
    rest, number = b"", 0
    which = sys.stdin.fileno() if path is None else path
    try:
        with open(which, "rb", buffering=0, closefd=path is not None) as file:
            while data := file.read(_CHUNK):
                *lines, rest = (rest + data).split(b"\n")
                chunk = [(number + 1 + i, line) for i, line in enumerate(lines) if line.strip()]
                number += len(lines)
                if chunk:
                    yield chunk
    except OSError as error:
        if path is None:
            raise
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    if rest.strip():
        yield [(number + 1, rest)]
