"""Traces of removed examples in a file, and in the files beside it.

A row that is held is read by SQL. Anything else that is left of a row must be in bytes that belong
to no row, or in another file. `left` finds those bytes that are not zero: if there are none, no
byte of anything removed is left, whatever it was. `left_in` says of which examples some are left.

Deleting always leaves something: `secure_delete` overwrites the row, but not its place in the list
of rows of a page, and where pages are merged, copies of rows stay behind that are deleted later.
VACUUM writes all pages anew and leaves no such byte in a table whose rows are in the order of their
numbers. Pages that have nothing of examples do not count: the inner ones of a table, lists of free
pages, and the tables `changes`, which has numbers, `facts`, which has settings, and `forgotten`,
which has keyed hashes.

The pages of an SQLite file, as its format describes them: which bytes belong to a row.

SQLite moves rows between pages as a table grows and shrinks. `secure_delete` overwrites what a
statement deletes, but a copy that such a move left in the free part of a page stays there, and no
query shows it. So the pages are read one by one, and every byte of those with rows that is no part
of a row, a pointer or a header is handed over. https://www.sqlite.org/fileformat2.html has the
names used here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, final

from knowmore._base import parts_beside
from knowmore.errors import KnowmoreError, NotEnoughMemory
from knowmore.store.rollback import reader

# -- pages ---------------------------------------------------------------------------------------

# SQLite never uses the page that has this byte, where its locks are.
_LOCK_BYTE = 0x40000000
_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_LEAF, _INDEX_INTERIOR = 13, 5, 10, 2


class Malformed(ValueError):
    """Pages that contradict the format."""


@final
@dataclass(frozen=True)
class Free:
    """A run of bytes that belong to no row.

    offset : where in the file
    data : the bytes
    """

    offset: int
    data: bytes


@final
@dataclass
class _Walk:
    """A walk over all pages; `seen` are those met so far, each once."""

    read: Callable[[int], bytes]
    size: int
    usable: int
    count: int
    seen: set[int] = field(default_factory=set)

    def page(self, number: int) -> bytes:
        """A page that was not met before."""
        if not 1 <= number <= self.count:
            raise Malformed(f"page {number} of {self.count}")
        if number in self.seen:
            raise Malformed(f"page {number} belongs to two places")
        self.seen.add(number)
        return self._whole(number)

    def _whole(self, number: int) -> bytes:
        data = self.read(number)
        if len(data) != self.size:
            raise Malformed(f"page {number} is cut short")
        return data

    def tree(self, root: int) -> Iterator[Free]:
        """The free bytes of a b-tree and of the overflow pages of its rows.

        The inner pages of a table have nothing but numbers, and are left out.
        """
        waiting = [root]
        while waiting:
            number = waiting.pop()
            data = self.page(number)
            used, children, overflowing = self._cells(number, data)
            free = list(_between(number, data, used))
            if data[_head(number)] != _TABLE_INTERIOR:
                yield from free
            waiting += children
            for first, length in overflowing:
                yield from self._overflow(first, length)

    def _cells(
        self, number: int, data: bytes
    ) -> tuple[list[tuple[int, int]], list[int], list[tuple[int, int]]]:
        """The ranges in use, the pages below, and (first page, bytes) of what overflows."""
        head = _head(number)
        kind = data[head]
        if kind not in (_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_LEAF, _INDEX_INTERIOR):
            raise Malformed(f"page {number} is of kind {kind}")
        interior = kind in (_TABLE_INTERIOR, _INDEX_INTERIOR)
        cells = _integer(data, head + 3, 2)
        pointers = head + (12 if interior else 8)
        used = [(0, pointers + 2 * cells), *self._freeblocks(data, head)]
        children = [_integer(data, head + 8, 4)] if interior else []
        overflowing = []
        for i in range(cells):
            start = at = _integer(data, pointers + 2 * i, 2)
            if interior:
                children.append(_integer(data, at, 4))
                at += 4
            if kind == _TABLE_INTERIOR:
                _, at = _varint(data, at)
            else:
                length, at = _varint(data, at)
                if kind == _TABLE_LEAF:
                    _, at = _varint(data, at)
                local = self._local(length, table=kind == _TABLE_LEAF)
                at += local
                if local < length:
                    overflowing.append((_integer(data, at, 4), length - local))
                    at += 4
            used.append((start, at))
        return used, children, overflowing

    def _freeblocks(self, data: bytes, head: int) -> Iterator[tuple[int, int]]:
        """The first four bytes of each freeblock: where the next one is, and its own size."""
        at, least = _integer(data, head + 1, 2), head + 8
        while at:
            if at < least:
                raise Malformed("freeblocks out of order")
            yield at, at + 4
            least = at + 4
            at = _integer(data, at, 2)

    def _local(self, length: int, *, table: bool) -> int:
        """The number of bytes of a payload of this length that its cell holds."""
        usable = self.usable
        least = (usable - 12) * 32 // 255 - 23
        most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return length
        rest = least + (length - least) % (usable - 4)
        return rest if rest <= most else least

    def _overflow(self, number: int, length: int) -> Iterator[Free]:
        while length > 0:
            data = self.page(number)
            here = min(length, self.usable - 4)
            yield from _between(number, data, [(0, 4 + here)])
            length -= here
            number = _integer(data, 0, 4)
        if number:
            raise Malformed("an overflow chain is too long")

    def freelist(self, trunk: int) -> Iterator[Free]:
        """The pages that wait to be used again; where those are listed, no numbers of pages."""
        while trunk:
            data = self.page(trunk)
            leaves = _integer(data, 4, 4)
            if 8 + 4 * leaves > self.usable:
                raise Malformed(f"{leaves} leaves on one trunk page")
            starts = range(8 + 4 * leaves, self.usable, 4)
            if any(_integer(data, at, 4) > self.count for at in starts):
                yield from _between(trunk, data, [(0, starts.start)])
            for i in range(leaves):
                leaf = _integer(data, 8 + 4 * i, 4)
                yield from _between(leaf, self.page(leaf), [])
            trunk = _integer(data, 0, 4)

    def others(self) -> Iterator[Free]:
        """The pages that no table and no list of free pages has."""
        for number in range(1, self.count + 1):
            if number not in self.seen:
                if number != _LOCK_BYTE // self.size + 1:
                    raise Malformed(f"page {number} belongs to nothing")
                yield from _between(number, self._whole(number), [])


def free_bytes(
    read: Callable[[int, int], bytes], size: int, roots: Mapping[int, bool]
) -> Iterator[Free]:
    """The runs of bytes that belong to no row, pointer or header.

    read : the bytes from an offset on, so many
    size : that of the file
    roots : the first pages of its tables and indexes, and whether their free bytes are wanted;
        those of the schema, which begins on page 1, are not
    """
    header = read(0, 100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise Malformed("not an SQLite file")
    page_size = _integer(header, 16, 2)
    page_size = 65536 if page_size == 1 else page_size
    if page_size < 512 or page_size & (page_size - 1) or size % page_size:
        raise Malformed(f"{size} bytes in pages of {page_size}")
    if _integer(header, 52, 4):
        raise Malformed("auto_vacuum is on")
    walk = _Walk(
        lambda number: read((number - 1) * page_size, page_size),
        page_size,
        page_size - header[20],
        size // page_size,
    )
    for root, wanted in {1: False, **roots}.items():
        for free in walk.tree(root):
            if wanted:
                yield free
    yield from walk.freelist(_integer(header, 32, 4))
    yield from walk.others()


def _between(number: int, data: bytes, used: list[tuple[int, int]]) -> Iterator[Free]:
    """The bytes outside `used`. Ranges must not overlap, or two rows would share a byte."""
    at = 0
    for start, end in sorted(used):
        if start < at or end > len(data):
            raise Malformed(f"rows of page {number} overlap")
        if start > at:
            yield Free((number - 1) * len(data) + at, data[at:start])
        at = end
    if at < len(data):
        yield Free((number - 1) * len(data) + at, data[at:])


def _head(number: int) -> int:
    """The offset of the header of a b-tree page."""
    return 100 if number == 1 else 0


def _integer(data: bytes, at: int, length: int) -> int:
    if at + length > len(data):
        raise Malformed("a pointer leads beyond its page")
    return int.from_bytes(data[at : at + length], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The integer of one to nine bytes that begins here, and where it ends."""
    value = 0
    for i in range(9):
        byte = _integer(data, at + i, 1)
        if i == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + i + 1
    raise AssertionError


# -- traces --------------------------------------------------------------------------------------

# Shorter pieces occur anywhere by chance; so do pieces of equal bytes.
SHORTEST: Final = 8
_DIFFERENT: Final = 4
_BLOCK: Final = 2**20
_BESIDE: Final = ("-journal", "-wal", "-shm")
_NO_EXAMPLES: Final = ("changes", "facts", "forgotten")
# Why a file could not be written anew, by what SQLite calls it: the cause, and what to do.
_HINDRANCES: Final = (
    (("SQLITE_FULL",), "the disk is full. Free some space"),
    (
        ("SQLITE_BUSY", "SQLITE_LOCKED"),
        "another program was reading the file. Close the programs that use it",
    ),
    (
        ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"),
        "the file or its folder cannot be written. Change the permissions",
    ),
    (
        ("SQLITE_IOERR",),
        "the disk or its limits refused a write. Look at the disk and its free space",
    ),
)
_BESIDE_IT: Final = (
    "another program writes to the model, or was interrupted. Close the programs that use it"
)


@final
class Trace(NamedTuple):
    """A place where bytes of something removed may be left.

    path : the file
    offset : the first byte there
    length : how many bytes
    """

    path: Path
    offset: int
    length: int


@final
@dataclass(frozen=True)
class Slack:
    """The bytes of a file that belong to no row.

    free : how many there are
    traces : where some of them are not zero
    problem : why they cannot be told from rows, "" if they can
    """

    free: int
    traces: tuple[Trace, ...]
    problem: str = ""

    @property
    def clean(self) -> bool:
        """Whether no byte of anything that was removed is left in the file."""
        return not (self.traces or self.problem)


def left(path: Path) -> list[Trace]:
    """The places where bytes of anything removed may be left; none if all is well.

    A file whose pages cannot be read counts as a whole, and so does one beside it.
    """
    here = slack(path)
    found = [Trace(path, 0, path.stat().st_size)] if here.problem else list(here.traces)
    return found + [Trace(file, 0, file.stat().st_size) for file in beside(path)]


def hindrance(error: KnowmoreError) -> str:
    """Why a file could not be written anew, and what to do about it."""
    if isinstance(error, NotEnoughMemory):
        return "there is not enough memory to write the file anew. Free some"
    name = getattr(error.__cause__, "sqlite_errorname", "") or ""
    for names, words in _HINDRANCES:
        if name.startswith(names):
            return words
    return str(error).rstrip(".")


def warning(path: Path, left: Sequence[Trace], hindrance: str) -> str:
    """A sentence about the traces of a forget, or "" without traces.

    hindrance : why the file could not be written anew
    """
    if not left:
        return ""
    names = ", ".join(dict.fromkeys(one.path.name for one in left))
    why = hindrance if any(one.path == path for one in left) else _BESIDE_IT
    return (
        f"Bytes of what was forgotten may be left in {names}: {why or _BESIDE_IT}, then run "
        f"verify, which clears them."
    )


def slack(path: Path) -> Slack:
    """All bytes of the file that belong to no row, while no one writes to it."""
    free, found = 0, []
    try:
        for run in _free(path):
            free += len(run.data)
            if content := run.data.strip(b"\0"):
                start = run.offset + run.data.index(content)
                found.append(Trace(path, start, len(content)))
    except Malformed as error:
        return Slack(free, tuple(found), str(error))
    return Slack(free, tuple(found))


def beside(path: Path) -> list[Path]:
    """The files beside it that are ours or SQLite's, and not empty."""
    names = [path.with_name(path.name + ending) for ending in _BESIDE]
    every = (*names, *parts_beside(path))
    return [file for file in every if file.is_file() and file.stat().st_size]


def pieces(needle: bytes) -> set[bytes]:
    """The pieces of a value to search for: 8 bytes with at least 4 different ones.

    So a value is found that was overwritten in part. There are none of a value that is too short
    or too plain to be told from chance; for those `slack` must be clean.
    """
    starts = range(0, len(needle) - SHORTEST + 1, SHORTEST)
    # The last ones are not skipped where the length is no multiple of eight.
    parts = {needle[at : at + SHORTEST] for at in (*starts, max(len(needle) - SHORTEST, 0))}
    return {part for part in parts if len(part) == SHORTEST and len(set(part)) >= _DIFFERENT}


def left_in(path: Path, needles: Iterable[bytes]) -> list[bytes]:
    """Values with a piece that survives in free space or in a side file.

    Rows that are held may have the same value by right, so they are not searched.
    """
    wanted = {needle: pieces(needle) for needle in needles}
    found: set[bytes] = set()
    for data in _searched(path):
        for needle, parts in wanted.items():
            if needle not in found and any(part in data for part in parts):
                found.add(needle)
    return [needle for needle in wanted if needle in found]


def _searched(path: Path) -> Iterator[bytes]:
    """The bytes that belong to no row unless all are zero, and blocks of the files beside."""
    try:
        yield from (run.data for run in _free(path) if run.data.count(0) < len(run.data))
    except Malformed:
        # Pages that cannot be told apart are searched as a whole.
        read = reader(path)
        for at in range(0, path.stat().st_size, _BLOCK):
            yield read(at, _BLOCK + SHORTEST - 1)
    for file in beside(path):
        with open(file, "rb") as stream:
            tail = b""
            while block := stream.read(_BLOCK):
                yield tail + block
                tail = (tail + block)[1 - SHORTEST :]


def _free(path: Path) -> Iterator[Free]:
    """The free bytes in the order of tables; raises Malformed."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        # No `closing`: an interrupt on the way into its end would leave the file locked.
        try:
            # A transaction for reading: nobody changes a page in the meantime.
            connection.execute("BEGIN")
            roots = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage")
            counts = {int(page): name not in _NO_EXAMPLES for name, page in roots.fetchall()}
            yield from free_bytes(reader(path), path.stat().st_size, counts)
        finally:
            connection.close()
    # A damaged schema may have numbers that are none, and text that is none.
    except (sqlite3.Error, OSError, ValueError) as error:
        raise Malformed(str(error)) from error
