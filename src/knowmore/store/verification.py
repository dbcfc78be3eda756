"""Whether a file holds what it says, shown without trusting what is in memory.

Rows against their hashes, the journal replayed against the examples, the model against a fit of
these from scratch, settings against those that the examples choose, and every byte of pages with
examples that belongs to no row against zero.

How far a model is from a fit of its examples from scratch, and how far rounding may lead.

Both have coefficients A with a residual R = T - K~A of their own, of norm at most e (|K~| |A| +
|T|), where e is the backward error. So A is off by at most |K~^-1| |R|, and a score by |k(x)| times
that. The norm |K~| is at most tr K~, and |K~^-1| at most max(w) / sigma^2, or the trace of K~^-1
where there is no noise; e itself must be a few roundings.

Traces of removed examples in a file, and in the files beside it.

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

import platform
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from json import dumps
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from knowmore._base import norm, parts_beside, some, sweep
from knowmore.errors import KnowmoreError, NotEnoughMemory, NotWritten, warn
from knowmore.estimators import left_to_examples
from knowmore.examples import Examples
from knowmore.models import Forest, KernelModel
from knowmore.store import kinds
from knowmore.store.cells import ENCODED, cells_in, table_of
from knowmore.store.file import (
    FORMAT,
    TABLES,
    File,
    Row,
    check_journal,
    check_size,
    connected,
    reader,
    reported,
    set_patience,
)
from knowmore.store.journal import FORGETS, Numbers, Version, moment_of
from knowmore.store.work import TUNE, Fresh, Trace, choosers_held, staying
from knowmore.tables import Encoding
from knowmore.transfer import OneShot

if TYPE_CHECKING:
    from knowmore.store.store import Session

# -- pages ---------------------------------------------------------------------------------------

# SQLite never uses the page that has this byte, where its locks are.
_LOCK_BYTE = 0x40000000
_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_LEAF, _INDEX_INTERIOR = 13, 5, 10, 2


class Malformed(ValueError):
    """Pages that contradict the format."""


# A run of bytes that belong to no row: its offset in the file, and the bytes.
Run = tuple[int, bytes]


@final
@dataclass
class _Walk:
    """A walk over all pages; `seen` are those met so far, each once."""

    read: Callable[[int, int], bytes]
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
        data = self.read((number - 1) * self.size, self.size)
        if len(data) != self.size:
            raise Malformed(f"page {number} is cut short")
        return data

    def tree(self, root: int) -> Iterator[Run]:
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

    def _overflow(self, number: int, length: int) -> Iterator[Run]:
        while length > 0:
            data = self.page(number)
            here = min(length, self.usable - 4)
            yield from _between(number, data, [(0, 4 + here)])
            length -= here
            number = _integer(data, 0, 4)
        if number:
            raise Malformed("an overflow chain is too long")

    def freelist(self, trunk: int) -> Iterator[Run]:
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

    def others(self) -> Iterator[Run]:
        """The pages that no table and no list of free pages has."""
        for number in range(1, self.count + 1):
            if number not in self.seen:
                if number != _LOCK_BYTE // self.size + 1:
                    raise Malformed(f"page {number} belongs to nothing")
                yield from _between(number, self._whole(number), [])


def _walked(
    read: Callable[[int, int], bytes], size: int, roots: Mapping[int, bool]
) -> Iterator[Run]:
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
    walk = _Walk(read, page_size, page_size - header[20], size // page_size)
    for root, wanted in {1: False, **roots}.items():
        for run in walk.tree(root):
            if wanted:
                yield run
    yield from walk.freelist(_integer(header, 32, 4))
    yield from walk.others()


def _between(number: int, data: bytes, used: list[tuple[int, int]]) -> Iterator[Run]:
    """The bytes outside `used`. Ranges must not overlap, or two rows would share a byte."""
    at = 0
    for start, end in sorted(used):
        if start < at or end > len(data):
            raise Malformed(f"rows of page {number} overlap")
        if start > at:
            yield (number - 1) * len(data) + at, data[at:start]
        at = end
    if at < len(data):
        yield (number - 1) * len(data) + at, data[at:]


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

# Seconds that a search waits for a writer.
_PATIENCE: Final = 5.0
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


def left(path: Path) -> list[Trace]:
    """The places where bytes of anything removed may be left; none if all is well.

    A file whose pages cannot be read counts as a whole, and so does one beside it.
    """
    found, problem = slack(path)
    found = [Trace(path, 0, _size(path))] if problem else found
    return found + [Trace(file, 0, _size(file)) for file in beside(path)]


def _size(path: Path) -> int:
    """The size of a file; 0 if it has gone meanwhile."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def slack(path: Path) -> tuple[list[Trace], str]:
    """The traces in free bytes, and why these cannot be told from rows; "" if they can.

    Nobody may write to the file meanwhile.
    """
    found = []
    try:
        for offset, data in free_runs(path):
            if content := data.strip(b"\0"):
                found.append(Trace(path, offset + data.index(content), len(content)))
    except Malformed as error:
        return found, str(error)
    return found, ""


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


def beside(path: Path) -> list[Path]:
    """The files beside it that are ours or SQLite's, and not empty."""
    names = [path.with_name(path.name + ending) for ending in _BESIDE]
    every = (*names, *parts_beside(path))
    return [file for file in every if file.is_file() and _size(file)]


def free_runs(path: Path) -> Iterator[Run]:
    """The runs of bytes of the file that belong to no row; raises Malformed."""
    try:
        connection = connected(path, "ro", _PATIENCE)
        # No `closing`: an interrupt on the way into its end would leave the file locked.
        try:
            # A transaction for reading: nobody changes a page in the meantime.
            connection.execute("BEGIN")
            roots = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage")
            counts = {int(page): name not in _NO_EXAMPLES for name, page in roots.fetchall()}
            yield from _walked(reader(path), path.stat().st_size, counts)
        finally:
            connection.close()
    # A damaged schema may have numbers that are none, and text that is none.
    except (sqlite3.Error, OSError, ValueError) as error:
        raise Malformed(str(error)) from error


# -- clearing traces -----------------------------------------------------------------------------


def recover(file: File) -> None:
    """Finish what a crash may have interrupted, unless somebody is writing."""
    if swept := sweep(file.path):
        warn(
            f"Removed what an interrupted save() had left beside {str(file.path)!r}: "
            f"{some([leftover.name for leftover in swept])}."
        )
    with suppress(NotWritten):
        settle(file, wait=False)
        if file.unclean and file.writable:
            clean(file)


def settle(file: File, *, wait: bool = True) -> None:
    """Empty a journal that a crash left, and that SQLite takes for none."""
    if file.writable and beside(file.path):
        check_journal(file.path)
        with reported(file.path, file.timeout):
            set_patience(file.connection, file.timeout if wait else 0.0)
            file.touch()


def clean(file: File) -> None:
    """Leave no byte of rows that were deleted, and note why if some may be left even so."""
    file.hindrance = ""
    if left(file.path):
        try:
            vacuum(file)
        except (NotWritten, NotEnoughMemory) as error:
            # The edit stands: its report names the traces and their cause.
            file.hindrance = hindrance(error)
    if file.unclean and not left(file.path):
        with suppress(NotWritten), file.writing():
            file.unclean = False


def vacuum(file: File) -> None:
    """Write the file anew, without the free space in it."""
    file.check_same()
    with reported(file.path, file.timeout):
        file.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
        try:
            file.connection.execute("VACUUM")
        finally:
            file.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


# -- how far a model is from a fit from scratch --------------------------------------------------

# Examples that both models are asked about.
_ASKED = 1000


@final
class Exactness(NamedTuple):
    """A model beside a fit from scratch.

    difference : the largest one between their scores
    tolerance : the largest that rounding can explain
    residual : the backward error of the model that is held
    bound : the largest that rounding can explain
    """

    difference: float
    tolerance: float
    residual: float
    bound: float

    @property
    def ok(self) -> bool:
        """Whether the two are the same model."""
        # `<=`, so that NaN fails.
        return self.difference <= self.tolerance and self.residual <= self.bound


def compared(held: Any, fresh: Any, examples: Examples) -> Exactness:
    """An estimator beside another with the same examples, asked about some of these."""
    n = len(examples)
    rows = np.unique(np.linspace(0, n - 1, min(n, _ASKED)).astype(int))
    asked = examples.X[rows]
    here, there = (np.asarray(one.model_.mean(asked), dtype=float) for one in (held, fresh))
    same = here.shape == there.shape
    difference = float(abs(here - there).max(initial=0)) if same else np.inf
    residual, models = float(held.residual()), _parts(fresh.model_)
    bound = max(map(_bound, models))
    # A model that is wrong must not be its own excuse.
    error = min(residual, bound) + min(float(fresh.residual()), bound)
    rounding = 8 * np.finfo(float).eps * float(abs(there).max(initial=0))
    tolerance = rounding + max(_tolerance(model, error) for model in models)
    return Exactness(difference, tolerance, residual, bound)


def _parts(model: Any) -> list[Any]:
    """The models of kernels, or the linear one, that it consists of."""
    match model:
        case Forest():
            leaves = (leaf.current for tree in model.trees for leaf in tree.leaves())
            return [leaf for leaf in leaves if len(leaf.examples)]
        case OneShot():
            return [one.model for one in model.members]
    return [model]


def _bound(model: Any) -> float:
    """The backward error that rounding can explain."""
    if not model.has_gram:
        return float(4 * np.finfo(float).eps * (len(model.weights) + 10))
    factor, n = model.covariance.factor, len(model.examples)
    eps = float(np.finfo(factor.dtype).eps)
    if factor.traits.stable:
        # A border is eliminated after the solve: its sums to zero lose what the examples' noises
        # differ by.
        spread = float(model.covariance.diagonal.max()) * _inverse(model) if model.bias else 1.0
        return 4 * eps * (n + 10) * max(spread, 1.0)
    return 4 * eps * (float(model.covariance.diagonal.sum()) * _inverse(model) + n)


def _inverse(model: KernelModel) -> float:
    """A bound of |K~^-1|."""
    covariance = model.covariance
    if covariance.noise:
        return float(covariance.weights.max()) / covariance.noise
    return float(covariance.factor.inverse_diagonal().sum())


def _tolerance(model: Any, error: float) -> float:
    """How far scores may be apart, of two models whose backward errors have this sum."""
    if not model.has_gram:
        # Sums of a linear model are exact, and equal sums give equal scores.
        return 0.0
    n, diagonal, inverse = len(model.examples), model.covariance.diagonal, _inverse(model)
    trace, A = float(diagonal.sum()), norm(model.coefficients)
    R, offset = error * (trace * A + norm(model.targets.T - model.solution[1])), 0.0
    if model.bias:
        # From K~ dA + 1 db' = R and 1'dA = s, where 1'K~^-1 1 is at least n / |K~|.
        offset = (np.sqrt(n) * inverse * R + error * np.sqrt(n) * A) * trace / n
        R += np.sqrt(n) * offset
    # The examples that are asked about are those held.
    k = np.sqrt(n) * float(diagonal.max())
    both = k * inverse * R + offset + 2 * n * np.finfo(float).eps * k * A
    units = model.targets.units
    return float(both if units is None else both * np.max(units.scale))


# -- verification --------------------------------------------------------------------------------


_SETTINGS: Final = ("kind", "parameters", "columns", "labels", "state")
# Another machine may choose a width that differs in its last digits.
_ROUNDINGS: Final = 1e-9
_BEYOND: Final = (
    "This is about the file and the files beside it. What was removed may still be in blocks of "
    "the disk that are free now, in snapshots, in backups and in other copies, and whoever read "
    "the file before may have it."
)


@final
class Check(NamedTuple):
    """A check and its result.

    name : of the check
    ok : whether it holds
    says : what was found, in a sentence
    """

    name: str
    ok: bool
    says: str


@final
@dataclass(frozen=True)
class Verification:
    """The result of `verify`.

    checks : each with a name and a sentence
    exactness : the model beside a fit from scratch; None if that was not asked for or not possible
    traces : where bytes of removed examples may be left; None if that was not asked for
    facts : what a certificate says beside all this
    """

    checks: tuple[Check, ...]
    exactness: Exactness | None
    traces: tuple[Trace, ...] | None
    facts: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return all(check.ok for check in self.checks)

    @property
    def difference(self) -> float | None:
        """The largest difference between the scores of the model and of a fit from scratch."""
        return None if self.exactness is None else self.exactness.difference

    @property
    def tolerance(self) -> float | None:
        """The largest difference that rounding can explain."""
        return None if self.exactness is None else self.exactness.tolerance

    @property
    def residual(self) -> float | None:
        """The backward error of the model."""
        return None if self.exactness is None else self.exactness.residual

    def __str__(self) -> str:
        lines = [
            f"{'ok    ' if one.ok else 'FAILED'}  {one.name}: {one.says}" for one in self.checks
        ]
        return "\n".join(lines)

    def certificate(self) -> dict[str, Any]:
        """All results as JSON can write them, with digests of the settings and of the examples."""
        return {
            "ok": self.ok,
            "checks": {one.name: {"ok": one.ok, "says": one.says} for one in self.checks},
            "difference": self.difference,
            "tolerance": self.tolerance,
            "residual": self.residual,
            "traces": None if self.traces is None else len(self.traces),
            **self.facts,
            "beyond": _BEYOND,
        }


def verify(session: Session, fresh: Fresh, fast: bool = False) -> Verification:
    """Check a store; with `fast` only the rows, against their hashes and each other.

    fresh : fits the live ones of some versions from scratch
    """
    file = session.file
    with session.lock:
        try:
            file.abandon()
            settle(file)
            if file.writable and not fast:
                clean(file)
            with file.reading():
                return _verified(session, fresh, fast)
        except KnowmoreError as error:
            about = _about(file.path)
            return Verification((Check("rows", False, str(error)),), None, None, about)


def _verified(session: Session, fresh: Fresh, fast: bool) -> Verification:
    """All checks, within a transaction; raises an error for what cannot be read."""
    file = session.file
    check_size(file)
    tables = {name: file.all_rows(name) for name in TABLES}
    facts = file.facts()
    session.follow()
    versions = [Version(*row) for row in tables["examples"]]
    about = _about(file.path) | _digests(facts, versions, tables)
    checks = [
        Check("rows", True, f"all {sum(map(len, tables.values()))} rows have their hashes"),
        _replayed(Numbers(*facts["numbers"]), versions, tables),
    ]
    if fast:
        return Verification(tuple(checks), None, None, about)
    if (table := table_of(facts)) is not None:
        with file.understood("cells"):
            checks.append(_table(table, facts, versions, tables))
    exactness, chosen = None, None
    last = max((row[0] for row in tables["journal"] if row[2] in FORGETS), default=0)
    if any(one.live and one.weight > 0 for one in versions):
        held, fitted = session.state.estimator, None
        follows = kinds.follows(held, facts["state"])
        if follows or (last and last == Numbers(*facts["numbers"]).position):
            # Every edit, or the last, has let the examples held choose the settings.
            chosen, fitted = _chosen(file, facts, versions, fresh)
        made, examples = fresh(file, facts, versions) if fitted is None else fitted
        exactness = compared(held, made, examples)
        checks += _exact(exactness)
        if session.can.has_sums:
            checks.append(_sums(held.digest(), made.digest()))
    kept = bool(not session.can.has_sums and left_to_examples(session.state.estimator))
    if last or kept:
        checks.append(_settings(facts, tables["journal"], last, chosen, kept))
    found = tuple(left(file.path))
    checks.append(_traces(found))
    return Verification(tuple(checks), exactness, found, about)


# -- the checks ----------------------------------------------------------------------------------


def _replayed(numbers: Numbers, versions: list[Version], tables: dict[str, list[Row]]) -> Check:
    """Whether the entries of the journal, one after the other, lead to the examples held."""
    undone = {row[0]: bool(row[4]) for row in tables["journal"]}
    live: set[int] = set()
    for number, row, enters in sorted(tables["changes"]):
        if not undone.get(number, True):
            (live.add if enters else live.discard)(row)
    rows, vectors = {one.row for one in versions}, {row[0] for row in tables["vectors"]}
    flags = {one.live for one in versions} | {row[4] for row in tables["journal"]}
    wrong = [
        not flags | {enters for _, _, enters in tables["changes"]} <= {0, 1},
        live != {one.row for one in versions if one.live},
        any(number not in undone or row not in rows for number, row, _ in tables["changes"]),
        {one.vector for one in versions} != vectors,
        any(flag != (number > numbers.position) for number, flag in undone.items()),
        max(rows, default=0) >= numbers.row or max(vectors, default=0) >= numbers.vector,
    ]
    if any(wrong):
        return Check("journal", False, "its entries lead to other examples than those held")
    lead = "1 entry leads" if len(undone) == 1 else f"{len(undone)} entries lead"
    held = "1 example" if len(live) == 1 else f"{len(live)} examples"
    return Check("journal", True, f"its {lead} to the {held} held")


def _exact(found: Exactness) -> list[Check]:
    difference, tolerance, residual, bound = found
    return [
        Check(
            "model",
            bool(difference <= tolerance),
            f"a fit from scratch differs by at most {difference:.2g} in any score (up to "
            f"{tolerance:.2g} would still be rounding)",
        ),
        Check(
            "residual",
            bool(residual <= bound),
            f"the model solves its equations to {residual:.2g} (up to {bound:.2g} would still be "
            f"rounding)",
        ),
    ]


def _table(
    table: Encoding, facts: dict[str, Any], versions: list[Version], tables: dict[str, list[Row]]
) -> Check:
    """Whether all vectors follow from their cells, and no level is of nobody after a forget."""
    rows = tables["vectors"]
    cells = {row[0]: cells_in(row, 0) for row in rows}
    X = table.vectors([cells[row[0]] for row in rows])
    columns = facts["columns"] or {"width": X.shape[1]}
    held = kinds.read_rows([row[1] for row in rows], columns["width"])
    if not np.array_equal(X, held):
        return Check("table", False, "a vector is not the one of its cells")
    position = Numbers(*facts["numbers"]).position
    live = [cells[one.vector] for one in versions if one.live]
    chosen = not live or table.chosen(live) == table
    forgot = any(row[0] == position and row[2] in FORGETS for row in tables["journal"])
    # What was undone since may come back, and keeps its levels.
    if not chosen and forgot and facts.get(ENCODED, 0) <= position:
        return Check("table", False, "the examples held do not choose its levels and fills")
    whose = "the examples held choose" if chosen else "its first or later rows chose"
    return Check("table", True, f"every vector is the one of its cells; {whose} levels and fills")


def _sums(here: str, there: str) -> Check:
    if here == there:
        return Check("sums", True, f"they are those of the examples, digest {here[:16]}")
    return Check("sums", False, f"digest {here[:16]}, but that of the examples is {there[:16]}")


def _chosen(
    file: File, facts: dict[str, Any], versions: list[Version], fresh: Fresh
) -> tuple[bool, tuple[Any, Examples] | None]:
    """Whether the examples held choose the settings in the file; and a fit of them if these agree.

    Settings that differ by roundings alone agree, but give no equal model.
    """
    try:
        found = fresh(file, facts | {"state": None}, versions)
    except KnowmoreError:
        return False, None
    state = kinds.state(found[0])
    return _alike(state, facts["state"]), found if state == facts["state"] else None


def _alike(here: Any, there: Any) -> bool:
    """Whether two values of JSON are the same, but for roundings."""
    match here, there:
        case dict(), dict():
            return here.keys() == there.keys() and all(_alike(here[k], there[k]) for k in here)
        case list(), list():
            return len(here) == len(there) and all(map(_alike, here, there))
        case float(), float():
            return isclose(here, there, rel_tol=_ROUNDINGS)
    return bool(here == there)


def _settings(
    facts: dict[str, Any], journal: list[Row], last: int, chosen: bool | None, kept: bool
) -> Check:
    """Whether what was forgotten has left no settings.

    last : the number of the last entry that forgets
    chosen : whether the examples held choose the settings; None if others came since
    kept : whether those that were enough have chosen them
    """
    entries = sorted(row for row in journal if not row[4])
    stale = any(row[5:] != (None, None) for row in entries if row[0] <= last)
    # Parameters that were found since come from other examples.
    since = any(row[2] == TUNE for row in entries if row[0] > last)
    verbs = () if since else tuple(row[2] for row in entries if row[0] <= last)
    stays = " ".join(["", *staying(facts, verbs)])
    if stale:
        says = (
            "entries from before something was forgotten hold settings that it may have chosen: "
            "the next forget deletes them"
        )
    elif chosen is False:
        says = (
            "the examples held do not choose those of the file, so examples that were forgotten "
            "may have: give a kernel and a noise, or fit the examples in a new file"
        )
    elif chosen:
        says = "the examples held choose those of the file, and no entry of the journal has others"
    else:
        says = "the journal keeps no settings from before the last forget" if last else ""
        if kept:
            enough = (
                "an earlier set of examples chose those of the file, and some may have left "
                "since; `knowmore tune --refresh` lets the examples held choose"
            )
            if choosers_held((row[0], row[2], row[4]) for row in journal):
                enough = "examples that are all held chose those of the file"
            says = f"{enough}; {says}" if says else enough
    return Check("settings", not stale and chosen is not False, f"{says}.{stays}".rstrip("."))


def _traces(left: tuple[Trace, ...]) -> Check:
    if not left:
        says = (
            "in all pages that hold examples, and all free ones, every byte that belongs to no row "
            "is zero; no file that is left beside this one has a byte"
        )
        return Check("traces", True, says)
    names = ", ".join(dict.fromkeys(one.path.name for one in left))
    says = (
        f"{sum(one.length for one in left)} bytes in {names} belong to no row, and may be of "
        f"removed examples: close the programs that use the file, see that the disk has room, and "
        f"run verify again, which clears them"
    )
    return Check("traces", False, says)


# -- the certificate -----------------------------------------------------------------------------


def _about(path: Path) -> dict[str, Any]:
    return {
        "file": path.name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "format": FORMAT,
        "versions": {
            "knowmore": version("knowmore"),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
        },
    }


def _digests(
    facts: dict[str, Any], versions: list[Version], tables: dict[str, list[Row]]
) -> dict[str, Any]:
    """Digests of settings and examples, which do not reveal them, and the entries that forgot."""
    vectors = {row[0]: row[1:3] for row in tables["vectors"]}
    live = [one for one in versions if one.live]
    each = (repr((one.id, one.label, one.weight, *vectors[one.vector])) for one in live)
    settings = dumps({name: facts.get(name) for name in _SETTINGS}, sort_keys=True)
    forgotten = [row for row in sorted(tables["journal"]) if row[2] in FORGETS]
    return {
        "kind": facts["kind"],
        "examples": len(live),
        "settings_digest": _digest([settings]),
        "examples_digest": _digest(each),
        "entries": len(tables["journal"]),
        "forgotten": [
            {"entry": row[0], "at": moment_of(row[1]).isoformat(), "count": row[3]}
            for row in forgotten
        ],
    }


def _digest(texts: Iterable[str]) -> str:
    """A digest of texts, the same in any order."""
    each = sorted(blake2b(text.encode(), digest_size=32).digest() for text in texts)
    return blake2b(b"".join(each), digest_size=32).hexdigest()
