"""What is left of removed examples in a file, and in the files beside it.

A row that is held is read by SQL. Anything else that is left of a row must be in bytes that belong
to no row, or in another file. `left` finds those bytes that are not zero: if there are none, no
byte of anything removed is left, whatever it was. `left_in` says of which examples some are left.

Deleting always leaves something: `secure_delete` overwrites the row, but not its place in the list
of rows of a page, and where pages are merged, copies of rows stay behind that are deleted later.
VACUUM writes all pages anew and leaves no such byte in a table whose rows are in the order of their
numbers. Pages that have nothing of examples do not count: the inner ones of a table, lists of free
pages, and the tables `changes`, which has numbers, `facts`, which has settings, and `forgotten`,
which has keyed hashes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, final

from knowmore.errors import KnowmoreError, NotEnoughMemory
from knowmore.files import parts_beside
from knowmore.store.pages import Free, Malformed, free_bytes
from knowmore.store.raw import reader

# Fewer bytes are found anywhere by chance; of those that follow, some must differ, too.
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
    """Where bytes may be left of something that was removed.

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
    """Where bytes may be left of anything that was removed; nowhere, if all is well.

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
    """A sentence about traces that a forget has left, or "" if there are none.

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
    """The parts of a value that are looked for: each 8 bytes of it of which 4 or more differ.

    So a value is found that was overwritten in part. There are none of a value that is too short
    or too plain to be told from chance; for those `slack` must be clean.
    """
    starts = range(0, len(needle) - SHORTEST + 1, SHORTEST)
    # The last ones are not skipped where the length is no multiple of eight.
    parts = {needle[at : at + SHORTEST] for at in (*starts, max(len(needle) - SHORTEST, 0))}
    return {part for part in parts if len(part) == SHORTEST and len(set(part)) >= _DIFFERENT}


def left_in(path: Path, needles: Iterable[bytes]) -> list[bytes]:
    """Those of these values of which a piece is in bytes that belong to no row, or beside the file.

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
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
            # A transaction for reading: nobody changes a page in the meantime.
            connection.execute("BEGIN")
            roots = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage")
            counts = {int(page): name not in _NO_EXAMPLES for name, page in roots.fetchall()}
            yield from free_bytes(reader(path), path.stat().st_size, counts)
    # A damaged schema may have numbers that are none, and text that is none.
    except (sqlite3.Error, OSError, ValueError) as error:
        raise Malformed(str(error)) from error
