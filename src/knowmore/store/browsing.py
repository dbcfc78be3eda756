"""A model as a plain SQLite database, for datasette, sqlite-utils and SQL.

A model's own file takes no view or index of anybody (see `added`), and its features are bytes. So
what is in it is written to another file, in which anything can be added: a copy of one moment.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from json import dumps, loads
from pathlib import Path
from typing import Any, Final, NamedTuple

from knowmore._base import File as Name
from knowmore._base import check_name, check_writable, part_of, write_errors
from knowmore.errors import InvalidInput
from knowmore.export import column_names
from knowmore.store.file import File, Row
from knowmore.store.journal import Version, moment_of
from knowmore.store.kinds import read_id
from knowmore.store.store import Store

# More features than this are one column: a table of SQLite has up to 2,000.
_WIDE: Final = 1000
_OWN: Final = ("weight", "contributor", "labeller", "origin", "at", "kept")
_TYPES: Final = {int: "INTEGER", bool: "INTEGER", float: "REAL", str: "TEXT"}


class _Table(NamedTuple):
    """A table to write: the names of its columns, and its rows."""

    name: str
    columns: list[str]
    rows: list[Row]


def to_sqlite(store: Store, path: Name) -> None:
    """Write a model in a file as a plain database of SQLite, without what the model computes.

    store : what `knowmore.open` returns
    path : the database, replaced when the new one is complete

    examples : id, label, weight, contributor (who gave the features), labeller, origin, at (UTC,
        ISO 8601), kept (1 if somebody has confirmed the label), of a model of texts `text`, and a
        column for each feature, or for each column of a table that was learnt.
        Several targets are label_0, label_1, ...; a feature that has the name of another column
        gets an underscore behind it. More than 1,000 features are one column, `features`, a list
        as JSON.
    journal : number, at, verb, count, undone
    changes : the number of the entry, the id and the label of the version of an example, and
        enters: 1 if that came with the entry, 0 if it left. Several targets are a list as JSON.

    Ids are numbers if all are, text if all are, and JSON if there are both.
    """
    check_name(path)
    target = Path(os.path.realpath(path))
    if target == Path(os.path.realpath(store.path)):
        raise InvalidInput(f"{os.fspath(path)!r} is the model itself. Name another file.")
    check_writable(target)
    with store.session.lock, store.session.reading() as file:
        versions = {row[0]: Version(*row) for row in file.all_rows("examples")}
        written = _writer([read_id(one.id) for one in versions.values()])
        tables = _examples(store, written), _journal(file), _changes(file, versions, written)
    with write_errors(target), part_of(target) as part, closing(sqlite3.connect(part)) as new:
        try:
            for table in tables:
                _write(new, table)
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"SQLite cannot hold the ids, labels or column names of this model: {error}. Write "
                f"a table instead: knowmore export --table."
            ) from error
        new.execute("CREATE INDEX changes_by_id ON changes(id)")
        new.commit()


def _writer(ids: list[Any]) -> Callable[[Any], Any]:
    """How to write an id."""
    if all(isinstance(one, str) for one in ids):
        return str
    # SQLite has numbers of 64 bits.
    if all(isinstance(one, int) and one.bit_length() < 64 for one in ids):
        return int
    return dumps


def _examples(store: Store, written: Callable[[Any], Any]) -> _Table:
    records = store.records()
    if not records:
        return _Table("examples", ["id", "label", *_OWN], [])
    label = records[0].label
    several = [f"label_{j}" for j in range(len(label))] if isinstance(label, list) else ["label"]
    names: list[str] = [*column_names(store)]
    X: list[Any] = store.examples.X.tolist()
    if (encoding := store.table) is not None:
        names, X = [*encoding.names], store.cells()
    wide, of_texts = len(names) > _WIDE, store.notes.get("texts") is not None
    rows = []
    for one, x in zip(records, X, strict=True):
        labels = one.label if isinstance(one.label, list) else [one.label]
        about = (one.weight, one.contributor, one.labeller, one.origin)
        own: tuple[Any, ...] = (*about, _moment(one.at), int(one.kept))
        if of_texts:
            own += (None if one.thumbnail is None else one.thumbnail.decode(),)
        rows.append((written(one.id), *labels, *own, *([dumps(x)] if wide else x)))
    taken = ["id", *several, *_OWN, *(["text"] if of_texts else [])]
    return _Table("examples", _distinct([*taken, *(["features"] if wide else names)]), rows)


def _journal(file: File) -> _Table:
    rows = [(row[0], _moment(moment_of(row[1])), *row[2:5]) for row in file.all_rows("journal")]
    return _Table("journal", ["number", "at", "verb", "count", "undone"], sorted(rows))


def _changes(file: File, versions: dict[int, Version], written: Callable[[Any], Any]) -> _Table:
    rows = []
    for number, row, enters in sorted(file.all_rows("changes")):
        one = versions[row]
        label = loads(one.label)
        label = dumps(label) if isinstance(label, list) else label
        rows.append((number, written(read_id(one.id)), label, enters))
    return _Table("changes", ["number", "id", "label", "enters"], rows)


def _moment(at: Any) -> str:
    return str(at.isoformat(timespec="microseconds"))


def _distinct(names: Iterable[str]) -> list[str]:
    """The names, with underscores behind those that differ from earlier ones by case at most."""
    found: dict[str, str] = {}
    for name in names:
        while name.lower() in found:
            name += "_"
        found[name.lower()] = name
    return [*found.values()]


def _write(new: sqlite3.Connection, table: _Table) -> None:
    """Make a table of these columns and rows; the first column of two of them is the key."""
    first = [
        next((row[j] for row in table.rows if row[j] is not None), None)
        for j in range(len(table.columns))
    ]
    columns = [
        f"{_quoted(name)} {_TYPES.get(type(value), 'TEXT')}"
        for name, value in zip(table.columns, first, strict=True)
    ]
    if table.name != "changes":
        columns[0] += " PRIMARY KEY"
    new.execute(f"CREATE TABLE {table.name}({', '.join(columns)})")
    places = ", ".join("?" * len(columns))
    new.executemany(f"INSERT INTO {table.name} VALUES({places})", table.rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
