"""The file of a living model: one SQLite database, whose every row carries a hash.

Each row ends with a hash of its other columns (see `schema`), and the fact `totals` has the number
of rows and the sum of the hashes of each table: a row that is changed, lost or doubled shows. Parts
of caches are left out of these sums: one that is damaged is dropped, and computed again from the
examples.

A file may come from anybody. Its schema must be ours to the letter, so that there is nothing in it
to run, and what it claims to hold must fit into its size before any of it is read. What somebody
added to it, such as an index, is told apart from damage: see `added` and `schema.py`.

SQLite itself misses about half of all flipped bits, so the hashes are ours.

The rollback journal that SQLite keeps beside a file while it writes.

After a crash the journal holds pages as they were before the interrupted edit, and the next program
that opens the file writes them back. SQLite does not ask whether the two belong together: if a copy
was put in the place of the file, pages of one state end up in another. So every edit begins by
writing a new *epoch* to the first page of the file. The journal then holds the first page with the
epoch before, and the file has either that epoch or one that names it as its predecessor. The
journal of a new file holds no page, and empties the file. So the first page of a new file is
written alone, and such a journal is played back only into a file that has no more than that page.
https://www.sqlite.org/fileformat2.html has the names used here.

Reading the bytes of a file that SQLite may have open.

When a process closes any descriptor of a file, POSIX drops all locks that the process has on it,
those of an edit in another thread among them (https://www.sqlite.org/howtocorrupt.html, 2.2). So
one descriptor is kept for each file that was read, until the file is deleted.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from itertools import islice
from json import dumps, loads
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final, NamedTuple, final

from knowmore.errors import InvalidInput, KnowmoreError, MissingData, NotEnoughMemory, NotWritten

# Names of arrays that can be computed again begin with this.
CACHE: Final = "cache/"

Row = tuple[Any, ...]

# The format that is written. Files of earlier ones are read.
FORMAT: Final = 2


@dataclass(frozen=True)
class TableSchema:
    """A table of a file.

    text : its columns with their types, as SQL has them, without the hash
    key : the columns of its primary key; "" if that is the first column, a number
    """

    text: str
    key: str = ""

    @cached_property
    def columns(self) -> list[list[str]]:
        """The name and the type of each column, without the hash."""
        return [column.split() for column in self.text.split(", ")]

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, without the hash."""
        return [name for name, _ in self.columns]

    @cached_property
    def blobs(self) -> list[int]:
        """The places of the columns with bytes."""
        return [place for place, (_, kind) in enumerate(self.columns) if kind == "BLOB"]

    @cached_property
    def sized(self) -> list[str]:
        """The names of the columns whose values may have any length."""
        return [name for name, kind in self.columns if kind in ("TEXT", "BLOB")]

    def schema(self, name: str) -> str:
        """The text that makes the table."""
        if self.key:
            columns = f"{self.text}, hash BLOB, PRIMARY KEY({self.key})"
            return f"CREATE TABLE {name}({columns}) WITHOUT ROWID"
        text = self.text.replace("INTEGER", "INTEGER PRIMARY KEY", 1)
        return f"CREATE TABLE {name}({text}, hash BLOB)"


# A row of `examples` is a version of an example, which never changes but for `live`. `changes` says
# which versions entered and left with an entry of the journal. `labelled` has facts about the
# label of a version apart from its features: who gave it, and whether somebody confirmed it.
# `forgotten` has keyed hashes of examples that were forgotten.
TABLES: Final = {
    "facts": TableSchema("name TEXT, value TEXT", "name"),
    "examples": TableSchema(
        "row INTEGER, id TEXT, label TEXT, weight REAL, vector INTEGER, origin TEXT, "
        "contributor TEXT, at INTEGER, live INTEGER"
    ),
    "vectors": TableSchema("vector INTEGER, data BLOB, side BLOB, content BLOB, thumbnail BLOB"),
    "journal": TableSchema(
        "number INTEGER, at INTEGER, verb TEXT, count INTEGER, undone INTEGER, before TEXT, "
        "after TEXT"
    ),
    "changes": TableSchema("number INTEGER, row INTEGER, enters INTEGER", "number, row"),
    "arrays": TableSchema("array INTEGER, name TEXT, part INTEGER, data BLOB"),
    "labelled": TableSchema("row INTEGER, contributor TEXT, kept INTEGER"),
    "forgotten": TableSchema("mark BLOB", "mark"),
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


def hashed(table: str, values: Row) -> bytes:
    """The hash of a row without its hash: of all values, in 16 bytes."""
    blobs: Row = ()
    if places := TABLES[table].blobs:
        blobs = tuple(values[i] for i in places if isinstance(values[i], bytes))
        plain = list(values)
        for i in places:
            # In a tuple, which no value of a database is.
            plain[i] = (len(plain[i]),) if isinstance(plain[i], bytes) else plain[i]
        values = tuple(plain)
    # Which characters repr escapes depends on the version of Python; ascii escapes all others.
    mark = blake2b(ascii(tuple(values)).encode(), digest_size=16, person=table.encode())
    for blob in blobs:
        mark.update(blob)
    return mark.digest()


# -- bytes of a file that SQLite may have open ---------------------------------------------------

_kept: dict[tuple[int, int], int] = {}
_changing = Lock()


def reader(path: Path) -> Callable[[int, int], bytes]:
    """A function of offset and length: the bytes there, fewer at the end; raises OSError."""
    if os.name != "posix":
        return partial(_read, path)
    return partial(_read_kept, _descriptor(path))


def _read(path: Path, offset: int, length: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def _read_kept(descriptor: int, offset: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        offset, length = offset + len(part), length - len(part)
    return b"".join(parts)


def _descriptor(path: Path) -> int:
    with _changing:
        _close_deleted()
        # While a descriptor is open, no other file gets the same number.
        found = os.stat(path)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            # To open a pipe would wait for somebody who writes to it.
            raise OSError(errno.EINVAL, "It is not a regular file")
        place = found.st_dev, found.st_ino
        if place not in _kept:
            new = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            found = os.fstat(new)
            _kept[found.st_dev, found.st_ino] = new
            return new
        return _kept[place]


def _close_deleted() -> None:
    for place, descriptor in list(_kept.items()):
        with suppress(OSError):
            if os.fstat(descriptor).st_nlink == 0:
                del _kept[place]
                os.close(descriptor)


# -- the rollback journal ------------------------------------------------------------------------

APPLICATION: Final = 0x6B6E6F77  # "know"
_HEADER: Final = 100
# Seconds that a second writer waits.
PATIENCE: Final = 30.0
JOURNAL_MAGIC: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
# A writer may change file and journal between two looks; an old journal stays as it is.
_LOOKS: Final = 100
# The format of a file is in the low byte of its user_version. Its epoch follows, and the low bits
# of the epoch before.
_FORMAT_BITS, _BEFORE_BITS, _OWN_BITS = 8, 11, 12


class Head(NamedTuple):
    """The header of a file: how often it was changed, its pages, `user_version` and program."""

    counter: int
    pages: int
    version: int
    application: int

    @classmethod
    def of(cls, page: bytes) -> Head:
        """The header at the beginning of a first page."""
        return cls(*struct.unpack(">24xII28xI4xI", page[:72]))

    @property
    def has_tables(self) -> bool:
        """Whether the file has more than a first page."""
        return self.pages > 1

    def follows(self, earlier: Head) -> bool:
        """Whether this is the earlier header, or one that a single edit made of it."""
        near = (self.counter - earlier.counter) % 2**32 in (0, 1)
        return near and (
            self.version == earlier.version or _before(self.version) == _low(_own(earlier.version))
        )


def format_of(version: int) -> int:
    """The format that a `user_version` names."""
    return version & (1 << _FORMAT_BITS) - 1


def next_version(version: int, format_: int) -> int:
    """The `user_version` of the next edit: another epoch, which names the present one."""
    now = _own(version)
    own = now
    while own == now:
        own = secrets.randbelow(2**_OWN_BITS)
    return (own << _BEFORE_BITS | _low(now)) << _FORMAT_BITS | format_


def _own(version: int) -> int:
    return version >> _FORMAT_BITS + _BEFORE_BITS


def _before(version: int) -> int:
    return _low(version >> _FORMAT_BITS)


def _low(epoch: int) -> int:
    return epoch & (1 << _BEFORE_BITS) - 1


def journal_of(path: Path) -> Path:
    """The name of the rollback journal of a file."""
    return path.with_name(f"{path.name}-journal")


def check_journal(path: Path) -> None:
    """Raise InvalidInput if SQLite would write the journal's pages into a file they are not of."""
    journal = journal_of(path)
    before: Any = None
    for _ in range(_LOOKS):
        with suppress(FileNotFoundError):
            if not journal.stat().st_size:
                return
        try:
            now = _seen(path, journal)
        except (OSError, struct.error):
            # It is gone, or was cut off while it was read.
            now = None
        if now is None or not _refused(*now):
            return
        if now == before:
            raise InvalidInput(_words(path, journal, now[0]))
        before = now


def _refused(several: bool, pages: int | None, old: Head | None, size: int, new: Head) -> bool:
    """Whether a journal must not be played back into a file of this size and header."""
    other_size = pages is not None and pages != size and new.has_tables
    return several or other_size or (old is not None and not new.follows(old))


def _seen(path: Path, journal: Path) -> tuple[bool, int | None, Head | None, int, Head] | None:
    """The match of a journal with its file; None if SQLite takes the journal for none.

    several : whether it is the journal of several databases
    pages : the size of the file in pages, if the journal restores nothing but that
    old : the header of the file before the edit, None if the journal does not have it
    size, new : the file's own
    """
    with open(journal, "rb") as file:
        several = _is_of_several(file)
        file.seek(0)
        head = file.read(28)
        if len(head) < 28 or head[:8] != JOURNAL_MAGIC:
            return (True, None, None, 0, Head(0, 0, 0, 0)) if several else None
        records, _, pages, sector, page_size = struct.unpack(">5I", head[8:])
        old = _first_page(file, records, sector, page_size) if records else None
    new = Head.of(reader(path)(0, _HEADER))
    size = path.stat().st_size // max(page_size, 1)
    return several, None if records else pages, old, size, new


def _is_of_several(file: BinaryIO) -> bool:
    """Whether a journal names a master journal; a living model never has one."""
    if file.seek(0, os.SEEK_END) < len(JOURNAL_MAGIC):
        return False
    file.seek(-len(JOURNAL_MAGIC), os.SEEK_END)
    return file.read() == JOURNAL_MAGIC


def _first_page(file: BinaryIO, records: int, sector: int, page_size: int) -> Head | None:
    """The header in the record of page 1, which edits write first."""
    for i in range(records):
        file.seek(sector + i * (page_size + 8))
        number = file.read(4)
        if len(number) < 4:
            return None
        if number == b"\0\0\0\1":
            return Head.of(file.read(_HEADER))
    return None


def _words(path: Path, journal: Path, several: bool) -> str:
    if several:
        return (
            f"The file {str(journal)!r} is the journal of several databases, which a model never "
            f"has. Nothing was opened. Move it away if you know where it comes from."
        )
    return (
        f"{str(journal)!r} belongs to another state of {str(path)!r}: an edit was interrupted, and "
        f"then another file was put in the place of the model. Nothing was opened: pages of the "
        f"one would be written into the other. To put a copy in its place: knowmore restore "
        f"{path.name} COPY. To use the file as it is now, move the journal away."
    )


def is_there(path: Path) -> bool:
    """Whether a file was made at this path, and not only begun."""
    if not path.exists() or not path.stat().st_size:
        return False
    if journal_of(path).is_file() and journal_of(path).stat().st_size:
        check_journal(path)
        # The first reader undoes an edit that a crash has interrupted.
        with suppress(sqlite3.Error), closing(connected(path, "rw", PATIENCE)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    with suppress(OSError, struct.error):
        head = Head.of(reader(path)(0, _HEADER))
        # A new model begins with a first page alone.
        return not (head.application == APPLICATION and not head.has_tables)
    return path.stat().st_size > 0


def put_in_place(part: Path, target: Path) -> None:
    """Let a complete file take the place of another, whose journal goes with it.

    Raises NotWritten if somebody is writing to the other one, or OSError.
    """
    with _nobody_writes(target):
        os.replace(part, target)
        # If this is never reached, the journal is refused: it belongs to another state.
        journal_of(target).unlink(missing_ok=True)
    _sync(target.parent)


@contextmanager
def _nobody_writes(path: Path) -> Iterator[None]:
    """A block in which nobody else can begin to write to a file, if there is one."""
    try:
        belongs = is_there(path)
    except InvalidInput:
        # Whose journal it is nobody knows, so nobody is writing with it.
        belongs = False
    if not belongs:
        yield
        return
    with closing(connected(path, "rw", PATIENCE)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise NotWritten(
                    f"{str(path)!r} is being written by another program. Nothing was changed. Try "
                    f"again when that has finished."
                ) from error
        # The old file is no database, or damaged: it is about to be replaced.
        except sqlite3.DatabaseError:
            pass
        yield


def connected(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """A connection to a file, without implicit transactions; `mode` as in an address of SQLite."""
    # The name may have characters that mean something in an address.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _sync(folder: Path) -> None:
    """Make sure that a new name in a folder survives a power failure."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# -- the file ------------------------------------------------------------------------------------

# With smaller pages large values take longer to read, with larger ones small edits to write.
PAGE: Final = 16384
_MAGIC: Final = b"SQLite format 3\0"
# Texts of facts have a length that is a multiple of this.
_LENGTHS: Final = 128
# The byte of a file that SQLite locks to reserve it for a writer.
_RESERVED: Final = 0x40000001
_MODULUS: Final = 2**128
# How much of a schema is looked at.
_FOREIGN: Final = 50
# Why a model has none of these.
_REASONS: Final = {
    "index": "An index has copies of what is in the rows, which forgetting would not reach.",
    "view": "A view is SQL that is run when it is read, and a model has nothing in it to run.",
    "table": "Forgetting would not reach what is in it.",
    "trigger": "A trigger is SQL that is run at every edit: if you do not know who made it, use a "
    "copy of the model instead.",
}
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
    takes_additions : whether it is read although somebody has added to its schema
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout: float = PATIENCE,
        create: bool = False,
        takes_additions: bool = False,
    ) -> None:
        self.path, self.timeout, self.takes_additions = path, timeout, takes_additions
        self.writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        if not create:
            _check_header(path)
        self._open(create)
        self.format = FORMAT
        self.totals: dict[str, list[int]] = {}
        self.unclean, self.hindrance, self.closed = False, "", False
        self._current: _Transaction | None = None

    def _open(self, create: bool) -> None:
        mode = "rwc" if create else "rw" if self.writable else "ro"
        with reported(self.path, self.timeout):
            self.connection = connected(self.path, mode, self.timeout)
            try:
                size = 0 if create else self.path.stat().st_size
                _prepare(self.connection, self.path, size, self.writable or create)
            except BaseException:
                self.connection.close()
                raise
        self._place = _inode(self.path)
        self._process = os.getpid()

    def close(self) -> None:
        """Let go of the file; when an interrupt comes, it can be called again."""
        self.closed = True
        if self._process == os.getpid():
            self.connection.close()
        else:
            _of_parents.append(self.connection)

    # -- transactions ------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block that sees one state of the file: within `writing`, what is written so far."""
        self.check_same()
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
        _check_writable(self.path, self.writable)
        with self._transaction("BEGIN IMMEDIATE", self.timeout if wait else 0.0) as transaction:
            try:
                # The first change, so that the journal begins with the first page.
                _next_epoch(self.connection)
                for name in TABLES.keys() - tables_of(self.format).keys():
                    self.connection.execute(SCHEMA[name])
                self.format = FORMAT
                yield
                self.write_totals()
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
        self.check_same()
        transaction = _Transaction()
        with reported(self.path, self.timeout):
            set_patience(self.connection, seconds)
            try:
                self._current = transaction
                self.connection.execute(begin)
                self.format = format_of(_version(self.connection))
                _check_schema(self)
                self._read_totals()
                yield transaction
            finally:
                if self._current is transaction:
                    self._end()

    def abandon(self) -> None:
        """Roll back a transaction that an interrupt has left open."""
        if self._current is not None:
            self._end()

    def _end(self) -> None:
        """Roll back the transaction, if it is open; a child process leaves its parent's alone."""
        if self._process == os.getpid():
            # After an error SQLite may have rolled back by itself, or the file is closed.
            with suppress(sqlite3.OperationalError, sqlite3.ProgrammingError):
                self.connection.rollback()
        self._current = None

    def _commit(self, transaction: _Transaction) -> None:
        try:
            self.connection.execute("COMMIT")
            transaction.committed = True
        except sqlite3.Error as error:
            wanted = self.stamp
            self._end()
            # The edit may be in the file all the same.
            with suppress(sqlite3.Error, KnowmoreError), self._transaction("BEGIN", self.timeout):
                transaction.committed = self.stamp == wanted
            if not transaction.committed:
                raise
            # Another commit: the one before removed its journal, but could not sync that.
            try:
                self.touch()
            except sqlite3.Error:
                raise NotWritten(
                    f"The edit is in {str(self.path)!r}, but the disk did not confirm that it "
                    f"stays there: {error}. Look at the disk, then at the file with verify()."
                ) from error
        except BaseException:
            transaction.committed = not self.connection.in_transaction
            raise

    def touch(self) -> None:
        """A commit that changes nothing."""
        run = self.connection.execute
        try:
            run("BEGIN IMMEDIATE")
            run(f"PRAGMA user_version={_version(self.connection)}")
            run("COMMIT")
        finally:
            self._end()

    def check_same(self) -> None:
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

    # -- what is in it -----------------------------------------------------------------------

    def fetched(self, query: str, parameters: Row = ()) -> list[Row]:
        """All rows of a query, at once: one that an interrupt leaves unread would keep its lock."""
        return self.connection.execute(query, parameters).fetchall()

    def rows(self, table: str, where: str = "", parameters: Row = ()) -> Iterator[Row]:
        """Rows of a table without their hashes, which are checked."""
        return (row for row, _ in _marked(self, table, where, parameters))

    def rows_with(self, table: str, column: str, values: Iterable[Any]) -> Iterator[Row]:
        """The rows that have one of these values in a column."""
        for where, some in _blocks(column, values):
            yield from self.rows(table, where, some)

    def all_rows(self, table: str) -> list[Row]:
        """All rows of a table; their number and the sum of their hashes are checked.

        Of facts and arrays those that count.
        """
        found, total, named = [], 0, NAMED.get(table)
        where = "" if table != "arrays" else f"WHERE name NOT GLOB '{CACHE}*'"
        for row, mark in _marked(self, table, where, ()):
            if named is None or counted(str(row[named])):
                found.append(row)
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
        sizes = [f"coalesce(length({column}), 0)" for column in TABLES[table].sized]
        for row in rows:
            key = row[:1]
            found = f"{names[place]}, hash, {' + '.join(sizes) or '0'}"
            select = f"SELECT {found} FROM {table} WHERE {names[0]} = ?"
            old = self.fetched(select, key)
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

    def _read_totals(self) -> None:
        texts = [row[1] for row in self.rows("facts", "WHERE name = 'totals'")]
        if not (texts and isinstance(texts[0], str)):
            raise damaged(self.path, "it does not say its totals")
        with self.understood("totals"):
            found = loads(texts[0])
            self.unclean = bool(found.pop("unclean", False))
            totals = {name: [int(n), int(total, 16)] for name, (n, total) in found.items()}
            if totals.keys() != tables_of(self.format).keys():
                raise ValueError("not those of our tables")
            self.totals = {name: totals.get(name, [0, 0]) for name in TABLES}

    @property
    def stamp(self) -> str:
        """A text that is another one after each edit."""
        return dumps({name: [n, f"{total:032x}"] for name, (n, total) in self.totals.items()})

    def write_totals(self) -> None:
        """Write the totals, at the end of a transaction."""
        # Only when all is written it is known whether something was left.
        text = dumps({"unclean": self.unclean} | loads(self.stamp))
        self.replace("facts", [("totals", _padded(text))])

    @contextmanager
    def understood(self, what: str, why: str = "make no sense") -> Iterator[None]:
        """Report any error in the block as damage of the file."""
        try:
            yield
        except (KnowmoreError, MemoryError, sqlite3.Error):
            raise
        # Values of the wrong type and absurd numbers raise all sorts of errors.
        except Exception as error:
            raise damaged(self.path, f"its {what} {why}") from error

    def facts(self) -> dict[str, Any]:
        """All facts but the totals."""
        rows = self.all_rows("facts")
        with self.understood("facts"):
            return {str(name): loads(text) for name, text in rows}

    def write_facts(self, facts: dict[str, Any]) -> None:
        """Write facts over the facts of the same names."""
        self.replace("facts", ((name, _padded(dumps(value))) for name, value in facts.items()))


def make(path: Path, write: Callable[[File], None], timeout: float = PATIENCE) -> None:
    """Make a file and what is to be in it, unless somebody else has made it.

    write : writes the first rows, before anybody sees the file
    """
    file = File(path, timeout=timeout, create=True)
    run = file.connection.execute
    try:
        with reported(path, timeout):
            # A first page alone, so that the journal of the rest has its epoch.
            run("BEGIN IMMEDIATE")
            if not _version(file.connection):
                run(f"PRAGMA application_id={APPLICATION}")
                _next_epoch(file.connection)
            run("COMMIT")
            run("BEGIN IMMEDIATE")
            if run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            _next_epoch(file.connection)
            for text in SCHEMA.values():
                run(text)
            file.totals = {name: [0, 0] for name in TABLES}
            write(file)
            file.write_totals()
            run("COMMIT")
    finally:
        # What was not committed is rolled back.
        file.close()


class Added(NamedTuple):
    """Something in the schema of a file that is not ours: its type, as SQLite has it, and name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"the {self.type} {self.name!r}"


def added(file: File) -> list[Added]:
    """What somebody has added to the schema, the first few; raises InvalidInput unless our tables
    are there, to the letter."""
    # A hostile file may have any number of them, of any length.
    some = f"SELECT type, name, tbl_name, substr(sql, 1, 1000) FROM sqlite_master LIMIT {_FOREIGN}"
    wanted = [("table", name, name, SCHEMA[name]) for name in tables_of(file.format)]
    rows = file.fetched(some)
    if not all(row in rows for row in wanted):
        raise damaged(file.path, "its tables are not those of a model")
    others = [row for row in rows if row not in wanted]
    # Constraints of an added table have indexes of their own.
    return [
        Added("virtual table" if _is_virtual(text) else str(type_), str(name)[:100])
        for type_, name, _, text in others
        if text is not None
    ] or [Added(str(type_), str(name)[:100]) for type_, name, *_ in others]


def _is_virtual(text: Any) -> bool:
    return str(text).upper().startswith("CREATE VIRTUAL")


def _check_schema(file: File) -> None:
    """Raise InvalidInput unless the tables are ours to the letter, and all that there is."""
    if not (found := added(file)) or file.takes_additions:
        return
    # What would be run comes first.
    first, path = min(found, key=lambda one: one.type != "trigger"), str(file.path)
    named = str(first) if len(found) == 1 else f"{first} and {len(found) - 1} more"
    kind = "table" if first.type == "virtual table" else first.type
    raise InvalidInput(
        f"{path!r} is not opened: another program has added {named}. {_REASONS[kind]} The tables "
        f"of the model itself are all there, and none of it was run. Take it off with `knowmore "
        f"verify {file.path.name} --clean`, which checks every row. To browse a model, make a "
        f"database of it: `knowmore export {file.path.name} --sqlite browse.db`."
    )


def _marked(file: File, table: str, where: str, parameters: Row) -> Iterator[tuple[Row, bytes]]:
    """Rows of a table with their hashes, which are checked."""
    if table not in tables_of(file.format):
        return
    columns = ", ".join([*TABLES[table].names, "hash"])
    for found in file.fetched(f"SELECT {columns} FROM {table} {where}", parameters):
        row, mark = found[:-1], found[-1]
        if hashed(table, row) != mark:
            raise damaged(file.path, f"a row of {table} has another hash than its content")
        yield row, mark


def check_size(file: File) -> None:
    """Raise InvalidInput if the rows claim to hold more than the file has room for."""
    room, claimed = file.path.stat().st_size + _ROOM, 0
    for name, table in tables_of(file.format).items():
        for column in table.sized:
            ((size,),) = file.fetched(f"SELECT total(length({column})) FROM {name}")
            claimed += int(size)
    if claimed > room:
        raise damaged(file.path, "its rows claim to be longer than the file")


@contextmanager
def reported(path: Path, timeout: float) -> Iterator[None]:
    """Raise the errors of SQLite in words."""
    try:
        yield
    except KnowmoreError:
        raise
    except MemoryError as error:
        raise NotEnoughMemory(
            f"There is not enough memory for what is in {str(path)!r}. Nothing was "
            f"changed. Free some, or use a larger machine."
        ) from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_BUSY") or name.startswith("SQLITE_LOCKED"):
            raise NotWritten(
                f"{str(path)!r} is being written by {writer(path)}, and still was "
                f"after {timeout:g} seconds. Nothing was changed. Try again when that has "
                f"finished."
            ) from error
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANT")):
            raise NotWritten(
                f"{str(path)!r} cannot be read or written: {error}. Nothing was changed. "
                f"Look at the disk, its space and the permissions."
            ) from error
        raise damaged(path, str(error)) from error
    except (OverflowError, UnicodeError) as error:
        raise damaged(path, str(error)) from error


def _check_header(path: Path) -> None:
    """Raise an error in words unless the file begins like a file of knowmore."""
    try:
        header = reader(path)(0, _HEADER)
    except FileNotFoundError:
        raise MissingData(
            f"There is no file {str(path)!r}. Make it with `knowmore learn` or "
            f"`knowmore init`, or in Python by knowmore.open(path, estimator)."
        ) from None
    except OSError as error:
        raise InvalidInput(f"The file {str(path)!r} cannot be read: {error.strerror}.") from error
    if len(header) < _HEADER or header[:16] != _MAGIC:
        raise damaged(path, "its first bytes are not those of a model")
    version, application = struct.unpack(">I4xI", header[60:72])
    if application != APPLICATION:
        raise damaged(path, "it is a database of another program")
    if not 1 <= format_of(version) <= FORMAT:
        raise damaged(
            path,
            f"it has format {format_of(version)}, and this version reads up to {FORMAT}",
        )
    if header[18:20] != b"\1\1":
        raise damaged(path, "it asks for a write-ahead log, which models never have")
    check_journal(path)


def _prepare(connection: sqlite3.Connection, path: Path, size: int, writable: bool) -> None:
    """Set up a connection to a file of this size, 0 if it is new."""
    run, limit = connection.execute, connection.setlimit
    limit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    limit(sqlite3.SQLITE_LIMIT_COLUMN, 16)
    limit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000)
    limit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
    limit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, 2**30))
    for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        run(f"PRAGMA {setting}")
    run("PRAGMA temp_store=MEMORY")
    if not size:
        run(f"PRAGMA page_size={PAGE}")
    if writable:
        wanted = {"journal_mode": "truncate", "synchronous": 2, "secure_delete": 1}
        for name, value in wanted.items():
            run(f"PRAGMA {name}={value}")
            if run(f"PRAGMA {name}").fetchone()[0] != value:
                raise NotWritten(
                    f"{str(path)!r} is not used: this build of SQLite, "
                    f"{sqlite3.sqlite_version}, ignores {name}, so what is forgotten could "
                    f"stay in the file. Use a Python whose SQLite has it."
                )


def _check_writable(path: Path, writable: bool) -> None:
    """Raise NotWritten if nothing can be written."""
    if not writable:
        raise NotWritten(
            f"{str(path)!r} is read-only, or its folder is: nothing was changed. Change "
            f"the permissions, or work on a copy."
        )
    with suppress(FileNotFoundError):
        names = path.stat().st_nlink
        if names > 1:
            raise NotWritten(
                f"{str(path)!r} has {names} names (hard links). Nothing was changed: "
                f"another program that uses another name would not see the journal of an edit "
                f"that a crash interrupts. Remove the other names, or work on a copy."
            )


def set_patience(connection: sqlite3.Connection, seconds: float) -> None:
    """Let a connection wait so long for others."""
    connection.execute(f"PRAGMA busy_timeout={int(1000 * seconds)}")


def _version(connection: sqlite3.Connection) -> int:
    """The `user_version`: the format and the epoch."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _next_epoch(connection: sqlite3.Connection) -> None:
    """Write another epoch and the present format."""
    version = next_version(_version(connection), FORMAT)
    connection.execute(f"PRAGMA user_version={version}")


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
