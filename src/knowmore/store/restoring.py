"""A copy of a model in the place of the model."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from knowmore.edits import Id
from knowmore.errors import InvalidInput, KnowmoreError, NotWritten
from knowmore.files import File as Name
from knowmore.files import check_name, check_writable, part_of
from knowmore.store.layout import File
from knowmore.store.marks import KEY, Marker
from knowmore.store.rollback import put_in_place
from knowmore.store.schema import TABLES
from knowmore.store.store import Store


class Restored(NamedTuple):
    """What `restore` did.

    examples : how many the model holds now
    forgotten : the ids of examples that are in the copy, and had been forgotten since: they were
        forgotten again
    """

    examples: int
    forgotten: list[Id]


def restore(path: Name, copy: Name, *, again: bool = False) -> Restored:
    """Put a copy of a model in the place of the model, whose journal goes: all of it, or nothing.

    To copy the file by hand leaves the journal of an interrupted edit beside it, which belongs to
    another state. What the model at `path` has forgotten since the copy was made is forgotten in
    the copy, too, if that model can be read and has kept marks.

    copy : another file of a model; it stays as it is
    again : keep what had been forgotten
    """
    for name in (path, copy):
        check_name(name)
    target, source = Path(os.path.realpath(path)), Path(os.path.realpath(copy))
    if target == source:
        raise InvalidInput(f"{str(copy)!r} is the model itself. Give another file: a copy of it.")
    check_writable(target)
    forgotten: list[Id] = []
    try:
        with part_of(target, put_in_place) as part:
            _copied(source, part)
            holds = _examples_in(part)
            if not again and (marks := _marks(target)) is not None:
                _adopt(part, marks)
                forgotten = _forgotten(part, marks) if holds else []
    except OSError as error:
        if isinstance(error, KnowmoreError):
            raise
        raise NotWritten(
            f"{str(target)!r} cannot be written: {error.strerror or error}. What was there before "
            f"is kept."
        ) from error
    return Restored(holds - len(forgotten), forgotten)


def _copied(source: Path, part: Path) -> None:
    """Write a checked copy of one state of a model."""
    with closing(File(source)) as file, file.reading():
        file.check_size()
        for table in TABLES:
            file.all_rows(table)
        with file._reported(), closing(sqlite3.connect(part)) as there:
            file.connection.backup(there)
    with open(part, "rb") as data:
        os.fsync(data.fileno())


def _examples_in(path: Path) -> int:
    """How many examples a file holds."""
    with closing(File(path)) as file, file.reading():
        count = "SELECT count(*) FROM examples WHERE live = 1"
        return int(file.connection.execute(count).fetchone()[0])


class _Marks(NamedTuple):
    """What a model has forgotten: its key, its marks, and the ids that it holds all the same."""

    key: str
    marks: set[bytes]
    held: set[Id]


def _marks(path: Path) -> _Marks | None:
    """The marks of a model; None if it cannot be read, or has none."""
    with suppress(KnowmoreError), Store(path) as store, store._lock, store._reading():
        marks = {row[0] for row in store._file.rows("forgotten")}
        key = str(store._follow().facts.get(KEY))
        return _Marks(key, marks, set(store.ids_.tolist())) if marks else None
    return None


def _adopt(path: Path, found: _Marks) -> None:
    """Write marks into a copy, unless that has others of its own."""
    with closing(File(path)) as file, file.writing():
        facts = file.facts()
        if "holds" not in facts and facts.get(KEY) in (None, found.key):
            known = {row[0] for row in file.rows("forgotten")}
            file.insert("forgotten", ((one,) for one in sorted(found.marks - known)))
            file.write_facts({KEY: found.key})


def _forgotten(path: Path, found: _Marks) -> list[Id]:
    """Forget in a copy what the marks say; returns its ids."""
    marker = Marker(found.key)
    with Store(path) as store:
        ids = [one for one in store.ids_.tolist() if one not in found.held]
        gone: list[Id] = [one for one in ids if marker.id(one) in found.marks]
        if gone:
            store.forget(gone)
    return gone
