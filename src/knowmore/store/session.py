"""An open file: its lock, its transactions, and the state in memory that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from json import loads
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, final
from weakref import ref

from knowmore._base import Id
from knowmore.errors import InvalidInput, KnowmoreError, NoExamples
from knowmore.examples import Examples
from knowmore.store import kinds, verification
from knowmore.store.cache import LAG, FactorCache, read_memo, state_of, write_memo, write_sums
from knowmore.store.file import File, check_size
from knowmore.store.journal import FORGETS, Journal, Version
from knowmore.store.state import fresh, read_state
from knowmore.store.work import EditBlock, HeldState, Work, all_examples

if TYPE_CHECKING:
    from knowmore.store.store import Store

# The index of examples that were read, and the examples, as long as somebody holds them.
_Read = tuple[dict[Id, tuple[int, int]], Callable[[], Examples | None]]


@final
class Session:
    """An open file with its state in memory; `Store` is its face.

    Take `lock` before entering `reading`, `editing` or `caching`. These blocks do not take the lock
    themselves: an interrupt may leave a block without its end, but never a lock.

    file : the open file
    cache : the factor of a kernel model in the file
    block : the edits of `together`; None outside
    """

    def __init__(self, path: Path, timeout: float, check: Callable[[dict[str, Any]], None]) -> None:
        """Open a file and read it.

        check : raises an error if the facts of the file are not the ones wanted
        """
        self.lock, self.cache, self._lag = RLock(), FactorCache(), 0
        self.block: EditBlock | None = None
        self._read: _Read = {}, lambda: None
        self.file = File(path, timeout=timeout)
        try:
            with self.file.reading():
                check_size(self.file)
                facts = self.file.facts()
                check(facts)
                self._confirmed = read_state(self.file, facts, None, self.cache)
            verification.recover(self.file)
        except BaseException:
            self.file.close()
            raise

    @property
    def state(self) -> HeldState:
        """The current state; inside `together`, the pending one for the thread of the block."""
        block = self.block
        return self._confirmed if block is None else block.held or self._confirmed

    @property
    def can(self) -> kinds.Capabilities:
        """The capabilities of the kind of model in the file."""
        return kinds.capabilities(self.state.facts["kind"])

    def follow(self) -> HeldState:
        """The state of the file in this transaction, read again if another process has written."""
        held = self.state
        if held is self._confirmed and self.file.stamp != held.stamp:
            self._lag += 1
            held = self._confirmed = read_state(self.file, self.file.facts(), held, self.cache)
            self.drop_read()
        return held

    # -- transactions ------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[File]:
        """A block that sees one state of the file; inside `together`, the edits so far."""
        if self.block is None:
            self.file.abandon()
        with self.file.reading():
            yield self.file

    @contextmanager
    def editing(self) -> Iterator[Work]:
        """A block that changes the file and then the state, or neither."""
        edit = self._writing() if self.block is None else self.block.edit()
        with edit as work:
            yield work

    @contextmanager
    def together(self, verb: str) -> Iterator[None]:
        """A block whose edits are one transaction and one entry of the journal."""
        if self.block is not None:
            yield
            return
        with ExitStack() as stack:
            block = self.block = EditBlock(lambda: stack.enter_context(self._writing(verb)))
            try:
                yield
                block.check()
            finally:
                self.block = None

    @contextmanager
    def _writing(self, verb: str | None = None) -> Iterator[Work]:
        """A transaction; all edits in it are one entry, with this verb if there may be several."""
        work: list[Work] = []

        def done() -> None:
            self._confirmed = work[0].done()
            self._lag += work[0].lag

        with self.file.writing(done):
            work.append(Work(self.file, self.follow(), verb))
            yield work[0]
            work[0].finish(self.cache)
        if self.file.unclean:
            verification.clean(self.file)
        if self._lag >= LAG and self.can.keeps_rows:
            with suppress(KnowmoreError):
                self._write_cache()

    @contextmanager
    def caching(self) -> Iterator[Work]:
        """A block that writes what can be computed again; it raises if somebody is writing."""
        work: list[Work] = []

        def done() -> None:
            self._confirmed = work[0].done()

        with self.file.writing(done, wait=False):
            work.append(Work(self.file, self.follow()))
            yield work[0]
            work[0].finish(self.cache)
        if self.file.unclean:
            verification.clean(self.file)

    # -- caches ------------------------------------------------------------------------------

    def close(self) -> None:
        """Write the factor or the sums if they lag behind, and let go of the file."""
        with self.lock:
            if self.file.closed:
                return
            # A cache is no reason to fail.
            with suppress(KnowmoreError):
                self._write_cache()
            self.file.close()

    def _write_cache(self) -> None:
        """Write the factor or the sums, which make the next opening faster."""
        held, can = self.state, self.can
        if not held.fitted or not self.file.writable or not (can.has_factor or can.has_sums):
            return
        behind = len(held.index) - self.cache.rows if can.has_factor else 0
        if not self._lag and behind < LAG:
            return

        try:
            with self.lock, self.caching() as work:
                held = work.held
                if can.has_sums:
                    write_sums(work.journal, held.estimator)
                else:
                    self.cache.write(work.journal, held.estimator.editable_, held.vectors)
            self._lag = 0
        except BaseException:
            self.cache.drop()
            raise

    def recall(self, name: str) -> tuple[HeldState, str, dict[str, Any]]:
        """The current state, its digest, and the values of a memo; empty if none are kept."""
        with self.lock, self.reading() as file:
            held = self.follow()
            digest = state_of(file, held.facts)
            return held, digest, read_memo(file, name, digest)

    def remember(self, name: str, digest: str, values: dict[str, Any]) -> None:
        """Keep a memo if the file can be written, and is still in the state of this digest."""
        with suppress(KnowmoreError), self.lock, self.caching() as work:
            if state_of(work.file, work.held.facts) == digest:
                write_memo(work.journal, name, digest, values)

    # -- examples ----------------------------------------------------------------------------

    def examples(self) -> Examples:
        """All examples: of the model if it keeps them, else of the file."""
        held = self.state
        if held.fitted and self.can.keeps_rows:
            examples: Examples = held.estimator.editable_.examples
            return examples
        with self.lock, self.reading() as file:
            held = self.follow()
            if not held.fitted:
                raise NoExamples("The file holds no examples yet. Add some first.")
            known, before = self._read
            found = all_examples(held, Journal(file, held.numbers), known, before())
            self._read = held.index, ref(found)
            return found

    def drop_read(self) -> None:
        """Keep of the examples that were read only the unchanged ones."""
        known, before = self._read
        index = self.state.index
        self._read = {name: at for name, at in known.items() if index.get(name) == at}, before


# -- earlier states ------------------------------------------------------------------------------


class Past(NamedTuple):
    """An earlier state of a file.

    Forgotten examples are missing from all earlier states, too. So are the settings of before a
    forget: the examples left choose them again, and the parameters are the current ones.

    estimator : the batch fit of the examples of the state; None if there were none
    """

    estimator: Any
    examples: Examples | None


def past(store: Store, number: int) -> Past:
    """The state after the entry of this number, which may be undone now; 0: before the first."""
    session = store.session
    with session.lock, session.reading() as file:
        held = session.follow()
        rows = sorted(file.all_rows("journal"))
        if number and number not in {row[0] for row in rows}:
            raise InvalidInput(
                f"The journal has no entry {number}: it was never there, or undone and overwritten."
            )
        facts = held.facts | _settings(rows, number, held.numbers.position)
        versions = _versions_at(file, number)
        if not any(version.live for version in versions):
            return Past(None, None)
        if any(row[0] > number and row[2] in FORGETS for row in rows):
            facts["state"] = None
        return Past(*fresh(file, facts, versions))


def _settings(rows: list[Any], number: int, position: int) -> dict[str, Any]:
    """The facts of the earlier state that differ from the current ones."""
    if number <= position:
        texts = [row[5] for row in rows if number < row[0] <= position and row[5] is not None]
        text = texts[0] if texts else None
    else:
        texts = [row[6] for row in rows if position < row[0] <= number and row[6] is not None]
        text = texts[-1] if texts else None
    return {} if text is None else dict(loads(text))


def _versions_at(file: File, number: int) -> list[Version]:
    """All versions, live as they were after an entry."""
    live: dict[int, int] = {}
    for _, row, enters in sorted(row for row in file.all_rows("changes") if row[0] <= number):
        live[row] = enters
    found = (Version(*row) for row in file.all_rows("examples"))
    return [version.but(live=live.get(version.row, 0)) for version in found]
