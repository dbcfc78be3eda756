"""The rollback journal that SQLite keeps beside a file while it writes.

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
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final, NamedTuple

from knowmore.errors import InvalidInput, NotWritten

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
# Seconds that a second writer waits.
PATIENCE: Final = 30.0
_HEADER: Final = 100
_MAGIC: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
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
        if len(head) < 28 or head[:8] != _MAGIC:
            return (True, None, None, 0, Head(0, 0, 0, 0)) if several else None
        records, _, pages, sector, page_size = struct.unpack(">5I", head[8:])
        old = _first_page(file, records, sector, page_size) if records else None
    new = Head.of(reader(path)(0, _HEADER))
    size = path.stat().st_size // max(page_size, 1)
    return several, None if records else pages, old, size, new


def _is_of_several(file: BinaryIO) -> bool:
    """Whether a journal names a master journal; a living model never has one."""
    if file.seek(0, os.SEEK_END) < len(_MAGIC):
        return False
    file.seek(-len(_MAGIC), os.SEEK_END)
    return file.read() == _MAGIC


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
        with suppress(sqlite3.Error), closing(_connected(path)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return path.stat().st_size > 0 and not _is_begun(path)


def _is_begun(path: Path) -> bool:
    """Whether a file has the first page of a new model, and no more."""
    with suppress(OSError, struct.error):
        head = Head.of(reader(path)(0, _HEADER))
        return head.application == APPLICATION and not head.has_tables
    return False


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
    with closing(_connected(path)) as connection:
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


def _connected(path: Path) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)


def _sync(folder: Path) -> None:
    """Make sure that a new name in a folder survives a power failure."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
