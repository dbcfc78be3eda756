"""A copy of a model in the place of the model."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from knowmore._base import File as Name
from knowmore._base import Id, check_name, check_writable, part_of, some
from knowmore.errors import InvalidInput, KnowmoreError, NotWritten
from knowmore.store.codec import read_id, string
from knowmore.store.file import TABLES, File, check_size, put_in_place, reported
from knowmore.store.journal import (
    FORGETS,
    KEY,
    Journal,
    Marker,
    Numbers,
    Version,
    Withdrawal,
    without,
)
from knowmore.store.session import Session
from knowmore.store.store import Store, withdraw
from knowmore.store.work import Work


class Restored(NamedTuple):
    """The result of `restore`.

    examples : how many the model holds now
    forgotten : the ids of examples that are in the copy, and had been forgotten since: they were
        forgotten again
    changed : the ids of examples that stay, without features or labels that had been forgotten
    warning : why what had been forgotten may be back, and what to do; "" if there is no reason
    """

    examples: int
    forgotten: list[Id]
    changed: list[Id]
    warning: str


def restore(path: Name, copy: Name, *, again: bool = False) -> Restored:
    """Put a copy of a model in the place of the model, whose journal goes: all of it, or nothing.

    To copy the file by hand leaves the journal of an interrupted edit beside it, which belongs to
    another state. What the model at `path` has forgotten since the copy was made is forgotten in
    the copy, too: examples, and features and labels that other examples had lost. Only that model
    knows it. If it is missing, cannot be read, or has another past than the copy, `warning` says
    so. What was forgotten without marks, and what was undone and overwritten before it could be
    forgotten, comes back with the copy; if it was all that somebody gave, `warning` has their name.

    copy : another file of a model; it stays as it is
    again : keep what had been forgotten
    """
    for name in (path, copy):
        check_name(name)
    target, source = Path(os.path.realpath(path)), Path(os.path.realpath(copy))
    if target == source:
        raise InvalidInput(f"{str(copy)!r} is the model itself. Give another file: a copy of it.")
    check_writable(target)
    found, warning = Withdrawal(), ""
    try:
        with part_of(target, put_in_place) as part:
            _copied(source, part)
            if not again:
                past = _past(target)
                if past is not None and past.marks:
                    if _examples_in(part):
                        found = _forgotten(part, past)
                    else:
                        _adopt(part, past)
                warning = _warning(target, past, part)
            holds = _examples_in(part)
    except OSError as error:
        if isinstance(error, KnowmoreError):
            raise
        raise NotWritten(
            f"{str(target)!r} cannot be written: {error.strerror or error}. What was there before "
            f"is kept."
        ) from error
    changed = sorted((*found.changed, *found.erased))
    return Restored(holds, [*map(read_id, sorted(found.gone))], [*map(read_id, changed)], warning)


def _copied(source: Path, part: Path) -> None:
    """Write a checked copy of one state of a model."""
    with closing(File(source)) as file, file.reading():
        check_size(file)
        for table in TABLES:
            file.all_rows(table)
        with reported(source, file.timeout), closing(sqlite3.connect(part)) as there:
            file.connection.backup(there)
    with open(part, "rb") as data:
        os.fsync(data.fileno())


def _examples_in(path: Path) -> int:
    """The number of examples in a file."""
    with closing(File(path)) as file, file.reading():
        ((count,),) = file.fetched("SELECT count(*) FROM examples WHERE live = 1")
        return int(count)


class _Past(NamedTuple):
    """The past of a model, as far as its file knows it.

    entries : the numbers, times and verbs of its journal
    givers : all who gave something
    key, marks : of what it has forgotten
    back : what it holds again under ids that it had forgotten, by the texts of these
    """

    entries: set[tuple[int, int, str]]
    givers: set[str | None]
    key: str
    marks: set[bytes]
    back: dict[str, Any]


def _past(path: Path) -> _Past | None:
    """The past of a model; None if it cannot be read."""
    with suppress(KnowmoreError), Store(path) as store, store.session.lock:
        return _past_of(store.session)
    return None


def _past_of(session: Session) -> _Past:
    """The past of the model in an open file."""
    with session.reading() as file:
        held = session.follow()
        marks = {row[0] for row in file.all_rows("forgotten")}
        if not marks:
            return _Past(_entries(file), _givers(file), "", marks, {})
        key = str(held.facts[KEY])
        marker = Marker(key)
        rows = [row for one, (row, _) in held.index.items() if marker.id(one) in marks]
        said = _said(Journal(file, held.numbers), rows)
        return _Past(_entries(file), _givers(file), key, marks, said)


def _entries(file: File) -> set[tuple[int, int, str]]:
    return {row[:3] for row in file.all_rows("journal")}


def _givers(file: File) -> set[str | None]:
    versions = [Version(*row) for row in file.all_rows("examples")]
    return {one for givers in Journal(file, Numbers()).givers(versions) for one in givers}


def _said(journal: Journal, rows: Iterable[int]) -> dict[str, Any]:
    """Features, label, weight and givers of versions, by the texts of their ids."""
    versions = journal.versions(rows)
    vectors, givers = journal.vectors(one.vector for one in versions), journal.givers(versions)
    return {
        one.id: (vectors[one.vector][1:3], one.label, one.weight, whose)
        for one, whose in zip(versions, givers, strict=True)
    }


def _warning(target: Path, past: _Past | None, part: Path) -> str:
    """A note that somebody may be back who was forgotten since the copy was made, or ""."""
    if past is not None:
        with closing(File(part)) as file, file.reading():
            entries, givers = _entries(file), _givers(file)
        if not entries or entries & past.entries:
            forgot = any(verb in FORGETS for _, _, verb in past.entries - entries)
            names = sorted(filter(None, map(string, givers - past.givers)))
            if not (forgot and names):
                return ""
            return (
                f"The copy has contributions of {some(names)}, and {str(target)!r} had none and "
                f"has forgotten something since. If that was theirs: knowmore forget "
                f"{target.name} --contributor NAME"
            )
        why = f"{str(target)!r} has another past than the copy"
    elif target.exists():
        why = f"{str(target)!r} could not be read"
    else:
        why = f"There was no model {str(target)!r}"
    return (
        f"{why}, so nobody can tell what was forgotten since the copy was made: it may be back. "
        f"Forget it again: knowmore forget {target.name} ..."
    )


def _forgotten(path: Path, past: _Past) -> Withdrawal:
    """Forget in a copy what the past of the model has forgotten since."""
    lost = past.marks - _adopt(path, past)
    marker = Marker(past.key)
    found = Withdrawal()

    def chosen(work: Work) -> Withdrawal:
        nonlocal found
        versions = [Version(*row) for row in work.file.all_rows("examples")]
        marked = {v.id for v in versions if marker.id(read_id(v.id)) in past.marks}
        held = (v.row for v in versions if v.live and v.id in past.back)
        gone = marked - dict(_said(work.journal, held).items() & past.back.items()).keys()
        found = without(
            work.journal,
            lambda version, _: version.id in gone or marker.features(version) in lost,
            lambda version, _: version.id in gone or marker.label(version) in lost,
        )
        return found

    with Store(path) as store:
        withdraw(store.session, chosen, mark=True)
    return found


def _adopt(path: Path, past: _Past) -> set[bytes]:
    """Write marks into a copy, unless that has others of its own; returns those it had."""
    with closing(File(path)) as file, file.writing():
        facts = file.facts()
        known = {row[0] for row in file.rows("forgotten")}
        if "holds" not in facts and facts.get(KEY) in (None, past.key):
            file.insert("forgotten", ((one,) for one in sorted(past.marks - known)))
            file.write_facts({KEY: past.key})
        return known
