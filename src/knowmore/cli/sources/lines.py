"""JSON lines: an object on each line, from a file or as they come on standard input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from knowmore.cli.sources.records import ROWS, Block, Source, Wanted
from knowmore.cli.sources.tables import (
    Layout,
    contributors_of,
    ids_of,
    labels_of,
    layout,
    numbers,
)
from knowmore.errors import InvalidInput

# The key of a list of all features, which then have no names.
FEATURES = "features"
# Bytes of standard input that are taken at a time.
_CHUNK = 2**16


def lines_source(path: Path | None, wanted: Wanted, *, streaming: bool = False) -> Source:
    """The objects of a file of JSON lines, or of standard input.

    streaming : a block is what has come so far, and a line that cannot be used is skipped
    """
    name = "-" if path is None else str(path)
    if streaming:
        wanted = replace(wanted, gaps=False)
    lines = _chunks(path)
    first: list[list[tuple[int, bytes]]] = []
    skipped: dict[str, str] = {}
    plan: Layout | None = None
    # The first line tells the columns; it is read now, and given out later.
    for chunk in lines:
        first.append(chunk)
        for number, line in chunk:
            try:
                plan = _layout(name, _object(name, number, line), wanted)
                break
            except InvalidInput:
                if not streaming:
                    raise
        if plan is not None:
            break
    if plan is None:
        problem = "None of the lines can be used" if any(first) else "There are no lines"
        for chunk in first:
            for number, line in chunk:
                # The reason of the first says most.
                _layout(name, _object(name, number, line), wanted)
        raise InvalidInput(f"{problem} in {_called(name)}. Give a JSON object on each.")
    found = plan

    def blocks() -> Iterator[Block]:
        for chunk in chain(first, lines):
            rows = iter(chunk)
            while some := list(islice(rows, ROWS)):
                block = _usable(name, some, found, wanted, skipped if streaming else None)
                if block is not None:
                    yield block

    named = None if found.features == (FEATURES,) else found.features
    return Source(
        name,
        blocks,
        named,
        skipped=skipped,
        ignored=found.ignored,
        label=found.label,
        id=found.id,
    )


def parsed(text: str, wanted: Wanted) -> Source:
    """One JSON object, or a list of numbers, as it stands on the command line."""
    name = "the row"
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not JSON: {error}.") from error
    row = {FEATURES: value} if isinstance(value, list) else value
    if not isinstance(row, dict):
        raise InvalidInput(f"{text!r} is no JSON object. Give names and numbers: {{...}} or [...].")
    plan = _layout(name, row, wanted)
    block = _block(name, [(1, row)], plan, wanted)
    named = None if plan.features == (FEATURES,) else plan.features
    return Source(name, lambda: iter([block]), named, ignored=plan.ignored)


def _layout(name: str, row: Mapping[str, Any], wanted: Wanted) -> Layout:
    if FEATURES not in row or not isinstance(row[FEATURES], list):
        return layout(name, list(row), wanted)
    return layout(name, list(row), replace(wanted, columns=(FEATURES,)))


def _usable(
    name: str,
    some: list[tuple[int, bytes]],
    plan: Layout,
    wanted: Wanted,
    skipped: dict[str, str] | None,
) -> Block | None:
    """A block of all lines; of those that can be used if `skipped` takes the others."""
    if skipped is None:
        return _block(name, [(n, _object(name, n, line)) for n, line in some], plan, wanted)
    rows = []
    for number, line in some:
        try:
            row = _object(name, number, line)
            _block(name, [(number, row)], plan, wanted)
            rows.append((number, row))
        except InvalidInput as error:
            place = f"line {number}"
            why = str(error).removeprefix(f"{name!r}, {place}").lstrip(",: ")
            skipped[place] = why
            print(f"Skipped: {place}: {why}", file=sys.stderr, flush=True)
    return _block(name, rows, plan, wanted) if rows else None


def _block(
    name: str, rows: Sequence[tuple[int, Mapping[str, Any]]], plan: Layout, wanted: Wanted
) -> Block:
    places = [f"line {number}" for number, _ in rows]
    objects = [row for _, row in rows]
    keys = {plan.id, plan.label, plan.contributor, *plan.features, *plan.ignored} - {None}
    for row, place in zip(objects, places, strict=True):
        needed = [*plan.features, *filter(None, [plan.id, plan.label if wanted.labelled else None])]
        for key in needed:
            if key not in row:
                raise InvalidInput(
                    f"{name!r}, {place}: there is no {key!r}, which the first line has."
                )
        for key in row:
            if key not in keys and wanted.labelled:
                raise InvalidInput(f"{name!r}, {place}: {key!r} is not in the first line.")
    if plan.features == (FEATURES,):
        X = _listed(name, [row[FEATURES] for row in objects], places)
    else:
        cells = [[row[key] for key in plan.features] for row in objects]
        X = numbers(name, cells, plan.features, places, _strict, gaps=wanted.gaps)
    labels = [row[plan.label] for row in objects] if plan.label and wanted.labelled else None
    who = [row.get(plan.contributor) for row in objects] if plan.contributor else [None] * len(X)
    return Block(
        X,
        None if labels is None else labels_of(name, labels, places),
        ids_of(name, [row[plan.id] for row in objects], places) if plan.id else None,
        contributors_of(name, who, places),
        places,
    )


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
    with _opened(path) as descriptor:
        while data := os.read(descriptor, _CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            chunk = [(number + 1 + i, line) for i, line in enumerate(lines) if line.strip()]
            number += len(lines)
            if chunk:
                yield chunk
        if rest.strip():
            yield [(number + 1, rest)]


@contextmanager
def _opened(path: Path | None) -> Iterator[int]:
    if path is None:
        yield sys.stdin.fileno()
        return
    try:
        with path.open("rb") as file:
            yield file.fileno()
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error


def _called(name: str) -> str:
    return "standard input" if name == "-" else repr(name)
