"""The file of a living model: one SQLite database, whose every row carries a hash.

Each row ends with a hash of its other columns (see `schema`), and the fact `totals` has the number
of rows and the sum of the hashes of each table: a row that is changed, lost or doubled shows. Parts
of caches are left out of these sums: one that is damaged is dropped, and computed again from the
examples.

A file may come from anybody. Its schema must be ours to the letter, so that there is nothing in it
to run, and what it claims to hold must fit into its size before any of it is read.

SQLite itself misses about half of all flipped bits, so the hashes are ours.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from json import dumps, loads
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from knowmore.errors import InvalidInput, KnowmoreError, MissingData, NotEnoughMemory, NotWritten
from knowmore.store import traces
from knowmore.store.rollback import (
    APPLICATION,
    PATIENCE,
    check_journal,
    format_of,
    next_version,
    reader,
)
from knowmore.store.traces import Trace

# Names of arrays that can be computed again begin with this.
CACHE: Final = "cache/"

Row = tuple[Any, ...]

# The format that is written. Files of earlier ones are read.
FORMAT: Final = 2


class TableSchema(NamedTuple):
    """The columns of a table with their types; `key` of them are its primary key."""

    columns: tuple[tuple[str, str], ...]
    key: int = 1
    by_rowid: bool = True

    @property
    def names(self) -> list[str]:
        """The names of the columns, without the hash."""
        return [name for name, _ in self.columns]

    def schema(self, name: str) -> str:
        """The text that makes the table."""
        parts = [f"{column} {kind}" for column, kind in (*self.columns, ("hash", BLOB))]
        if self.by_rowid:
            parts[0] += " PRIMARY KEY"
            return f"CREATE TABLE {name}({', '.join(parts)})"
        key = f"PRIMARY KEY({', '.join(self.names[: self.key])})"
        return f"CREATE TABLE {name}({', '.join([*parts, key])}) WITHOUT ROWID"


_I, TEXT, BLOB = "INTEGER", "TEXT", "BLOB"
# A row of `examples` is a version of an example, which never changes but for `live`. `changes` says
# which versions entered and left with an entry of the journal. `labelled` has facts about the
# label of a version apart from its features: who gave it, and whether somebody confirmed it.
# `forgotten` has keyed hashes of examples that were forgotten.
TABLES: Final = {
    "facts": TableSchema((("name", TEXT), ("value", TEXT)), by_rowid=False),
    "examples": TableSchema(
        (
            ("row", _I),
            ("id", TEXT),
            ("label", TEXT),
            ("weight", "REAL"),
            ("vector", _I),
            ("origin", TEXT),
            ("contributor", TEXT),
            ("at", _I),
            ("live", _I),
        )
    ),
    "vectors": TableSchema(
        (("vector", _I), ("data", BLOB), ("side", BLOB), ("content", BLOB), ("thumbnail", BLOB))
    ),
    "journal": TableSchema(
        (
            ("number", _I),
            ("at", _I),
            ("verb", TEXT),
            ("count", _I),
            ("undone", _I),
            ("before", TEXT),
            ("after", TEXT),
        )
    ),
    "changes": TableSchema((("number", _I), ("row", _I), ("enters", _I)), 2, by_rowid=False),
    "arrays": TableSchema((("array", _I), ("name", TEXT), ("part", _I), ("data", BLOB))),
    "labelled": TableSchema((("row", _I), ("contributor", TEXT), ("kept", _I))),
    "forgotten": TableSchema((("mark", BLOB),), by_rowid=False),
}
# The format that a table came with, if that is not the first.
_SINCE: Final = {"labelled": 2, "forgotten": 2}
SCHEMA: Final = {name: table.schema(name) for name, table in TABLES.items()}
# The column of the name, in tables with rows that are not counted.
NAMED: Final = {"facts": 0, "arrays": 1}


def tables_of(format_: int) -> dict[str, TableSchema]:
    """The tables that files of a format have."""
    return {name: table for name, table in TABLES.items() if _SINCE.get(name, 1) <= format_}


def counted(name: str) -> bool:
    """Whether a fact or an array of this name is in the totals."""
    return name != "totals" and not name.startswith(CACHE)


_BLOBS: Final = {
    name: [i for i, (_, kind) in enumerate(table.columns) if kind == BLOB]
    for name, table in TABLES.items()
}
_PERSONS: Final = {name: name.encode() for name in TABLES}


def hashed(table: str, values: Row) -> bytes:
    """The hash of a row without its hash: of all values, in 16 bytes."""
    blobs: Row = ()
    if places := _BLOBS[table]:
        blobs = tuple(values[i] for i in places if isinstance(values[i], bytes))
        plain = list(values)
        for i in places:
            # In a tuple, which no value of a database is.
            plain[i] = (len(plain[i]),) if isinstance(plain[i], bytes) else plain[i]
        values = tuple(plain)
    # Which characters repr escapes depends on the version of Python; ascii escapes all others.
    mark = blake2b(ascii(tuple(values)).encode(), digest_size=16, person=_PERSONS[table])
    for blob in blobs:
        mark.update(blob)
    return mark.digest()


# -- the file ------------------------------------------------------------------------------------

# With smaller pages large values take longer to read, with larger ones small edits to write.
PAGE: Final = 16384
_HEADER: Final = 100
_MAGIC: Final = b"SQLite format 3\0"
# Texts of facts have a length that is a multiple of this.
_LENGTHS: Final = 128
# The byte of a file that SQLite locks to reserve it for a writer.
_RESERVED: Final = 0x40000001
_MODULUS: Final = 2**128
# Values that a file may hold beside what fills it: rows of a damaged page can be read twice.
_ROOM: Final = 2**20


def _padded(text: str) -> str:
    """JSON with blanks behind it, so that a text that is a little longer has the same length."""
    return text.ljust(-(-len(text) // _LENGTHS) * _LENGTHS)


def damaged(path: Path, why: str) -> InvalidInput:
    """The error for a file that is not as we write it."""
    return InvalidInput(
        f"The file {str(path)!r} cannot be read as a model: {why}. It is damaged, or was written "
        f"by a newer version. Put a copy in its place (knowmore restore), or update knowmore."
    )


@dataclass(eq=False)
class _Transaction:
    """A transaction of the connection; `committed` is whether its changes are in the file."""

    committed: bool = False


@final
class File:
    """An open file: rows that are checked when they are read, and sums of what is written.

    path : where it is
    writable : whether it can be written to
    format : of the file, as of the transaction; the first edit of an older one raises it
    totals : the number of rows and the sum of the hashes of each table, as of the transaction
    unclean : whether bytes of rows that were deleted may be left in the file
    hindrance : why they could not be cleared when that was last tried, in words
    """

    def __init__(self, path: Path, *, timeout: float = PATIENCE, create: bool = False) -> None:
        self.path, self.timeout = path, timeout
        self.writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        if not create:
            self._check_header()
        self._open(create)
        self.format = FORMAT
        self.totals: dict[str, list[int]] = {}
        self.unclean, self.hindrance, self.closed = False, "", False
        self._current: _Transaction | None = None

    def _open(self, create: bool) -> None:
        with self.reported():
            # The name may have characters that mean something in an address.
            mode = "rwc" if create else "rw" if self.writable else "ro"
            address = f"{self.path.absolute().as_uri()}?mode={mode}"
            self.connection = sqlite3.connect(
                address,
                uri=True,
                timeout=self.timeout,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            try:
                self._prepare(create)
            except BaseException:
                self.connection.close()
                raise
        self._place = _inode(self.path)
        self._process = os.getpid()

    def _prepare(self, create: bool) -> None:
        run, limit = self.connection.execute, self.connection.setlimit
        limit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        limit(sqlite3.SQLITE_LIMIT_COLUMN, 16)
        limit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000)
        limit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
        limit(sqlite3.SQLITE_LIMIT_LENGTH, 2**30 if create else max(self.size(), 2**30))
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            run(f"PRAGMA {setting}")
        run("PRAGMA temp_store=MEMORY")
        if create:
            run(f"PRAGMA page_size={PAGE}")
        if self.writable or create:
            wanted = {"journal_mode": "truncate", "synchronous": 2, "secure_delete": 1}
            for name, value in wanted.items():
                run(f"PRAGMA {name}={value}")
                if run(f"PRAGMA {name}").fetchone()[0] != value:
                    raise NotWritten(
                        f"{str(self.path)!r} is not used: this build of SQLite, "
                        f"{sqlite3.sqlite_version}, ignores {name}, so what is forgotten could "
                        f"stay in the file. Use a Python whose SQLite has it."
                    )

    def _check_header(self) -> None:
        """Raise an error in words unless the file begins like a file of knowmore."""
        try:
            header = reader(self.path)(0, _HEADER)
        except FileNotFoundError:
            raise MissingData(
                f"There is no file {str(self.path)!r}. Make it with `knowmore learn` or "
                f"`knowmore init`, or in Python by knowmore.open(path, estimator)."
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"The file {str(self.path)!r} cannot be read: {error.strerror}."
            ) from error
        if len(header) < _HEADER or header[:16] != _MAGIC:
            raise damaged(self.path, "its first bytes are not those of a model")
        version, application = struct.unpack(">I4xI", header[60:72])
        if application != APPLICATION:
            raise damaged(self.path, "it is a database of another program")
        if not 1 <= format_of(version) <= FORMAT:
            raise damaged(
                self.path,
                f"it has format {format_of(version)}, and this version reads up to {FORMAT}",
            )
        if header[18:20] != b"\1\1":
            raise damaged(self.path, "it asks for a write-ahead log, which models never have")
        check_journal(self.path)

    def size(self) -> int:
        """The size of the file in bytes."""
        return self.path.stat().st_size

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
        self.closed = True

    # -- transactions ------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block that sees one state of the file: within `writing`, what is written so far."""
        self._same_file()
        if self._current is not None and self.connection.in_transaction:
            yield
            return
        with self._transaction("BEGIN", self.timeout):
            yield

    @contextmanager
    def writing(
        self, done: Callable[[], None] = lambda: None, *, wait: bool = True
    ) -> Iterator[None]:
        """A block whose changes are all in the file when it ends, or none if it raises.

        done : called at once when they are
        """
        self._check_writable()
        with self._transaction("BEGIN IMMEDIATE", self.timeout if wait else 0.0) as transaction:
            try:
                self._next_epoch()
                yield
                self._write_totals()
                self._commit(transaction)
            except BaseException:
                # Ctrl-C may come when all is written.
                if transaction.committed:
                    done()
                raise
            done()

    @contextmanager
    def _transaction(self, begin: str, seconds: float) -> Iterator[_Transaction]:
        """A transaction, which is rolled back at the end unless it was committed.

        An interrupt may leave the block of an earlier one without its end: then that one is rolled
        back now, and does nothing when its own end comes late.
        """
        self.abandon()
        self._same_file()
        transaction = _Transaction()
        with self.reported():
            self._wait(seconds)
            try:
                self._current = transaction
                self.connection.execute(begin)
                self._begin()
                yield transaction
            finally:
                if self._current is transaction:
                    self._end()

    def abandon(self) -> None:
        """Roll back a transaction that an interrupt has left open."""
        if self._current is not None and self._process == os.getpid():
            self._end()

    def _end(self) -> None:
        """Roll back the transaction, if it is open."""
        # After an error SQLite may have rolled back by itself.
        with suppress(sqlite3.OperationalError):
            self.connection.rollback()
        self._current = None

    def _check_writable(self) -> None:
        """Raise NotWritten if nothing can be written."""
        if not self.writable:
            raise NotWritten(
                f"{str(self.path)!r} is read-only, or its folder is: nothing was changed. Change "
                f"the permissions, or work on a copy."
            )
        with suppress(FileNotFoundError):
            names = self.path.stat().st_nlink
            if names > 1:
                raise NotWritten(
                    f"{str(self.path)!r} has {names} names (hard links). Nothing was changed: "
                    f"another program that uses another name would not see the journal of an edit "
                    f"that a crash interrupts. Remove the other names, or work on a copy."
                )

    def _wait(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout={int(1000 * seconds)}")

    def _commit(self, transaction: _Transaction) -> None:
        try:
            self.connection.execute("COMMIT")
            transaction.committed = True
        except sqlite3.Error as error:
            self._end()
            transaction.committed = self._has(self.stamp)
            if not transaction.committed:
                raise
            self._confirm(error)
        except BaseException:
            transaction.committed = not self.connection.in_transaction
            raise

    def _has(self, stamp: str) -> bool:
        """Whether an edit whose commit failed is in the file all the same."""
        with suppress(sqlite3.Error, KnowmoreError), self._transaction("BEGIN", self.timeout):
            return self.stamp == stamp
        return False

    def _confirm(self, error: sqlite3.Error) -> None:
        """Another commit: the one before removed its journal, but could not sync that."""
        try:
            self._touch()
        except sqlite3.Error:
            raise NotWritten(
                f"The edit is in {str(self.path)!r}, but the disk did not confirm that it stays "
                f"there: {error}. Look at the disk, then at the file with verify()."
            ) from error

    def _touch(self) -> None:
        """A commit that changes nothing."""
        run = self.connection.execute
        try:
            run("BEGIN IMMEDIATE")
            run(f"PRAGMA user_version={self._version()}")
            run("COMMIT")
        finally:
            self._end()

    def _version(self) -> int:
        """The `user_version`: the format and the epoch."""
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def _begin(self) -> None:
        self.format = format_of(self._version())
        self.check_schema()
        self.totals = self._totals()

    def _next_epoch(self) -> None:
        """Begin an edit: with a new epoch, and in the tables of the present format."""
        # The first change, so that the journal begins with the first page: see `rollback`.
        self.connection.execute(f"PRAGMA user_version={next_version(self._version(), FORMAT)}")
        for name in TABLES.keys() - tables_of(self.format).keys():
            self.connection.execute(SCHEMA[name])
        self.format = FORMAT

    def _same_file(self) -> None:
        """Raise an error if it is closed, or if another file has taken its place."""
        if self.closed:
            raise InvalidInput(f"{str(self.path)!r} has been closed. Open it again.")
        if self._process != os.getpid():
            # A connection must not be used across a fork, nor closed by the child.
            _of_parents.append(self.connection)
            self._current = None
            self._open(create=False)
        if _inode(self.path) != self._place:
            raise NotWritten(
                f"{str(self.path)!r} was moved, or replaced by another file, since it was opened. "
                f"Nothing was changed. Open it again."
            )
        if not self.connection.in_transaction:
            check_journal(self.path)

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Raise the errors of SQLite in words."""
        try:
            yield
        except KnowmoreError:
            raise
        except MemoryError as error:
            raise NotEnoughMemory(
                f"There is not enough memory for what is in {str(self.path)!r}. Nothing was "
                f"changed. Free some, or use a larger machine."
            ) from error
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            if name.startswith("SQLITE_BUSY") or name.startswith("SQLITE_LOCKED"):
                raise NotWritten(
                    f"{str(self.path)!r} is being written by {writer(self.path)}, and still was "
                    f"after {self.timeout:g} seconds. Nothing was changed. Try again when that has "
                    f"finished."
                ) from error
            if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANT")):
                raise NotWritten(
                    f"{str(self.path)!r} cannot be read or written: {error}. Nothing was changed. "
                    f"Look at the disk, its space and the permissions."
                ) from error
            raise damaged(self.path, str(error)) from error
        except (OverflowError, UnicodeError) as error:
            raise damaged(self.path, str(error)) from error

    # -- what is in it -----------------------------------------------------------------------

    def make(self, write: Callable[[], None]) -> None:
        """Make the tables and what is to be in them, unless somebody else has made them."""
        run = self.connection.execute
        with self.reported():
            try:
                # A first page alone, so that the journal of the rest has its epoch: see `rollback`.
                run("BEGIN IMMEDIATE")
                if not self._version():
                    run(f"PRAGMA application_id={APPLICATION}")
                    run(f"PRAGMA user_version={next_version(0, FORMAT)}")
                run("COMMIT")
                run("BEGIN IMMEDIATE")
                if run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    return
                run(f"PRAGMA user_version={next_version(self._version(), FORMAT)}")
                for text in SCHEMA.values():
                    run(text)
                self.totals = {name: [0, 0] for name in TABLES}
                write()
                self._write_totals()
                run("COMMIT")
            finally:
                self._end()

    def contains(self, needle: bytes) -> bool:
        """Whether these bytes are part of a value that is in the file."""
        for name, table in tables_of(self.format).items():
            for column, kind in table.columns:
                if kind in (TEXT, BLOB):
                    where = f"WHERE instr(CAST({column} AS BLOB), ?)"
                    found = f"SELECT 1 FROM {name} {where} LIMIT 1"
                    if self.connection.execute(found, (needle,)).fetchone():
                        return True
        return False

    def check_schema(self) -> None:
        """Raise InvalidInput unless the tables are ours to the letter, and fit into the file."""
        # A hostile file may have any number of them.
        some = f"SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT {len(SCHEMA) + 1}"
        schema = {row[1]: row for row in self.fetched(some)}
        wanted = {name: ("table", name, name, SCHEMA[name]) for name in tables_of(self.format)}
        if schema != wanted:
            raise damaged(self.path, "its tables are not those of a model")

    def check_size(self) -> None:
        """Raise InvalidInput if the rows claim to hold more than the file has room for."""
        room, claimed = self.size() + _ROOM, 0
        for name, table in tables_of(self.format).items():
            for column, kind in table.columns:
                if kind in (TEXT, BLOB):
                    sums = f"SELECT total(length({column})) FROM {name}"
                    claimed += int(self.connection.execute(sums).fetchone()[0])
        if claimed > room:
            raise damaged(self.path, "its rows claim to be longer than the file")

    def fetched(self, query: str, parameters: Row = ()) -> list[Row]:
        """All rows of a query, at once: one that an interrupt leaves unread would keep its lock."""
        return self.connection.execute(query, parameters).fetchall()

    def rows(self, table: str, where: str = "", parameters: Row = ()) -> Iterator[Row]:
        """Rows of a table without their hashes, which are checked."""
        if table not in tables_of(self.format):
            return
        columns = ", ".join([*TABLES[table].names, "hash"])
        for *values, mark in self.fetched(f"SELECT {columns} FROM {table} {where}", parameters):
            if hashed(table, tuple(values)) != mark:
                raise damaged(self.path, f"a row of {table} has another hash than its content")
            yield tuple(values)

    def rows_with(self, table: str, column: str, values: Iterable[Any]) -> Iterator[Row]:
        """The rows that have one of these values in a column."""
        for where, some in _blocks(column, values):
            yield from self.rows(table, where, some)

    def all_rows(self, table: str) -> list[Row]:
        """All rows of a table; their number and the sum of their hashes are checked.

        Of facts and arrays those that count.
        """
        found, total, named = [], 0, NAMED.get(table)
        if table not in tables_of(self.format):
            return []
        columns = ", ".join([*TABLES[table].names, "hash"])
        where = "" if table != "arrays" else f"WHERE name NOT GLOB '{CACHE}*'"
        for *values, mark in self.fetched(f"SELECT {columns} FROM {table} {where}"):
            if hashed(table, tuple(values)) != mark:
                raise damaged(self.path, f"a row of {table} has another hash than its content")
            if named is None or counted(str(values[named])):
                found.append(tuple(values))
                total += int.from_bytes(mark)
        if self.totals[table] != [len(found), total % _MODULUS]:
            raise damaged(self.path, f"rows of {table} are missing, or there twice")
        return found

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Write new rows, each without its hash."""
        marked = [(*row, hashed(table, row)) for row in rows]
        places = ", ".join("?" * (len(TABLES[table].columns) + 1))
        self.connection.executemany(f"INSERT INTO {table} VALUES({places})", marked)
        self._count(table, ((row[NAMED.get(table, 0)], row[-1]) for row in marked), 1)

    def delete(self, table: str, keys: Iterable[Any], column: int = 0) -> None:
        """Delete the rows that have one of these keys in a column, if they are there."""
        names = TABLES[table].names
        name = names[NAMED.get(table, 0)]
        for where, some in _blocks(names[column], keys):
            marks = self.fetched(f"SELECT {name}, hash FROM {table} {where}", some)
            self.unclean |= bool(marks)
            self._count(table, marks, -1)
            self.connection.execute(f"DELETE FROM {table} {where}", some)

    def replace(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows over the rows with the same first column.

        SQLite writes a row over one of the same length, so that nothing is left of that.
        """
        names, new = TABLES[table].names, []
        place = NAMED.get(table, 0)
        columns = (column for column, kind in TABLES[table].columns if kind in (TEXT, BLOB))
        sizes = [f"coalesce(length({column}), 0)" for column in columns]
        for row in rows:
            key = row[:1]
            found = f"{names[place]}, hash, {' + '.join(sizes) or '0'}"
            select = f"SELECT {found} FROM {table} WHERE {names[0]} = ?"
            old = self.connection.execute(select, key).fetchall()
            if not old:
                new.append(row)
                continue
            self.unclean |= old[0][2] != sum(
                len(one) for one in row if isinstance(one, (str, bytes))
            )
            mark = hashed(table, row)
            places = ", ".join(f"{column} = ?" for column in (*names[1:], "hash"))
            update = f"UPDATE {table} SET {places} WHERE {names[0]} = ?"
            self.connection.execute(update, (*row[1:], mark, *key))
            self._count(table, [old[0][:2]], -1)
            self._count(table, [(row[place], mark)], 1)
        self.insert(table, new)

    def _count(self, table: str, marks: Iterable[tuple[Any, bytes]], sign: int) -> None:
        count, total = self.totals[table]
        some = [mark for name, mark in marks if table not in NAMED or counted(str(name))]
        with self.understood("hashes"):
            total += sign * sum(map(int.from_bytes, some))
        self.totals[table] = [count + sign * len(some), total % _MODULUS]

    def _totals(self) -> dict[str, list[int]]:
        text = self.fact_text("totals")
        with self.understood("totals"):
            found = loads(text)
            self.unclean = bool(found.pop("unclean", False))
            totals = {name: [int(n), int(total, 16)] for name, (n, total) in found.items()}
            if totals.keys() != tables_of(self.format).keys():
                raise ValueError("not those of our tables")
            return {name: totals.get(name, [0, 0]) for name in TABLES}
        raise AssertionError

    @property
    def stamp(self) -> str:
        """A text that is another one after each edit."""
        return dumps({name: [n, f"{total:032x}"] for name, (n, total) in self.totals.items()})

    def _write_totals(self) -> None:
        # Only when all is written it is known whether something was left.
        text = dumps({"unclean": self.unclean} | loads(self.stamp))
        self.replace("facts", [("totals", _padded(text))])

    @contextmanager
    def understood(self, what: str) -> Iterator[None]:
        """Report any error in the block as damage of the file."""
        try:
            yield
        except (KnowmoreError, sqlite3.Error):
            raise
        # Values of the wrong type and absurd numbers raise all sorts of errors.
        except Exception as error:
            raise damaged(self.path, f"its {what} make no sense") from error

    # -- facts -------------------------------------------------------------------------------

    def fact_text(self, name: str) -> str:
        """The text of a fact, which must be there."""
        for _, text in self.rows("facts", "WHERE name = ?", (name,)):
            if isinstance(text, str):
                return text
        raise damaged(self.path, f"it does not say its {name}")

    def facts(self) -> dict[str, Any]:
        """All facts but the totals."""
        rows = self.all_rows("facts")
        with self.understood("facts"):
            return {str(name): loads(text) for name, text in rows}

    def write_facts(self, facts: dict[str, Any]) -> None:
        """Write facts over the facts of the same names."""
        self.replace("facts", ((name, _padded(dumps(value))) for name, value in facts.items()))

    def settle(self, *, wait: bool = True) -> None:
        """Empty a journal that a crash left, and that SQLite takes for none."""
        if self.writable and traces.beside(self.path):
            check_journal(self.path)
            with self.reported():
                self._wait(self.timeout if wait else 0.0)
                self._touch()

    def clean(self) -> list[Trace]:
        """Leave no byte of rows that were deleted; where some may be left even so."""
        self.hindrance = ""
        if traces.left(self.path):
            try:
                self.vacuum()
            except (NotWritten, NotEnoughMemory) as error:
                # The edit stands: its report names the traces and their cause.
                self.hindrance = traces.hindrance(error)
        left = traces.left(self.path)
        if self.unclean and not left:
            with suppress(NotWritten), self.writing():
                self.unclean = False
        return left

    def vacuum(self) -> None:
        """Write the file anew, without the free space in it."""
        self._same_file()
        with self.reported():
            self.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
            try:
                self.connection.execute("VACUUM")
            finally:
                self.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def _blocks(column: str, values: Iterable[Any]) -> Iterator[tuple[str, Row]]:
    """Conditions that a column has one of these values, and the values, a few at a time."""
    rest = iter(values)
    while some := tuple(islice(rest, 500)):
        yield f"WHERE {column} IN ({', '.join('?' * len(some))})", some


# Connections that a forked child inherited: to close one would let go of the parent's locks.
_of_parents: list[sqlite3.Connection] = []


def _inode(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def writer(path: Path) -> str:
    """The process that has reserved the file for writing, in words; only Linux can tell."""
    with suppress(OSError, ValueError, IndexError):
        inode = str(path.stat().st_ino)
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            _, _, _, kind, process, place, begin, end = line.replace("->", "").split()[:8]
            within = int(begin) <= _RESERVED and (end == "EOF" or int(end) >= _RESERVED)
            if kind == "WRITE" and place.rpartition(":")[2] == inode and within:
                words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
                command = b" ".join(words).decode(errors="replace").strip()
                return f"process {process} ({command[:80]})" if command else f"process {process}"
    return "another process"
