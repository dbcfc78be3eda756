"""A living model in one file, and the open file behind it: its lock, transactions and state."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import replace
from json import loads
from numbers import Number
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple, Self, final
from weakref import ref

from sklearn.base import clone

from knowmore._base import Array, Id, a_type, as_ids, check_name, is_mask, number, some
from knowmore.edits import Add
from knowmore.errors import (
    InvalidInput,
    InvalidType,
    KnowmoreError,
    NoExamples,
    columns_named,
    warn,
)
from knowmore.estimators import ChoosingEstimator, declare, declared_classes, names_in
from knowmore.examples import Examples, array_of_ids
from knowmore.models import LeftOut, beside_rows
from knowmore.store import kinds, state, verification
from knowmore.store.cache import (
    LAG,
    FactorCache,
    read_arrays,
    read_memo,
    state_of,
    write_memo,
    write_sums,
)
from knowmore.store.cells import ENCODED, cells_with, columns_of, table_of
from knowmore.store.file import PATIENCE, File, Row, check_size, is_there
from knowmore.store.journal import (
    FORGETS,
    KEY,
    Entry,
    Journal,
    Marked,
    Marker,
    Version,
    entry,
)
from knowmore.store.state import create, fresh, read_state
from knowmore.store.work import (
    About,
    EditBlock,
    FileEdit,
    Forgotten,
    HeldState,
    Preview,
    Record,
    Status,
    all_examples,
    contributors,
    examples_of,
    live_versions,
    records,
    records_of,
    status,
    staying,
)
from knowmore.tables import Cell, Encoding, cells_of

# Verbs of estimators that would change the copy in memory alone.
_REFUSED: Final = {
    "set_params": "set_parameters() changes them, in the file too",
    "split": "forget() removes examples by their ids",
    "add_support": "give supports to the estimator that the file is made with",
    "remove_support": "make a file with fewer supports",
}


# The index of examples that were read, and the examples, as long as somebody holds them.
_Read = tuple[dict[Id, tuple[int, int]], Callable[[], Examples | None]]


@final
class Session:
    """An open file with its state in memory; `Store` is its face.

    Take `lock` before entering `reading`, `editing` or `writing`. These blocks do not take the lock
    themselves: an interrupt may leave a block without its end, but never a lock.

    file : the open file
    cache : the factor of a kernel model in the file
    block : the edits of `together`; None outside
    """

    def __init__(self, path: Path, timeout: float, estimator: Any) -> None:
        """Open a file and read it.

        estimator : of the kind that the file must hold; None for any kind
        """
        self.lock, self.cache, self._lag = RLock(), FactorCache(), 0
        self.block: EditBlock | None = None
        self._read: _Read = {}, lambda: None
        self.file = File(path, timeout=timeout)
        try:
            with self.file.reading():
                check_size(self.file)
                facts = self.file.facts()
                _check_kind(path, facts, estimator)
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
    def editing(self) -> Iterator[FileEdit]:
        """A block that changes the file and then the state, or neither."""
        edit = self.writing() if self.block is None else self.block.edit()
        with edit as work:
            yield work

    def together(self, verb: str) -> Iterator[None]:
        """A generator: edits between its first step and its end are one transaction and entry."""
        if self.block is not None:
            yield
            return
        with ExitStack() as stack:
            try:
                block = self.block = EditBlock(lambda: stack.enter_context(self.writing(verb)))
                yield
                block.check()
            finally:
                self.block = None

    @contextmanager
    def writing(self, verb: str | None = None, *, caches: bool = False) -> Iterator[FileEdit]:
        """A transaction; all edits in it are one entry, with this verb if there may be several.

        caches : it writes what can be computed again; it raises if somebody is writing
        """
        work: list[FileEdit] = []

        def done() -> None:
            self._confirmed = work[0].done()
            self._lag += work[0].lag

        with self.file.writing(done, wait=not caches):
            work.append(FileEdit(self.file, self.follow(), verb))
            yield work[0]
            work[0].finish(self.cache)
        if self.file.unclean:
            verification.clean(self.file)
        if not caches and self._lag >= LAG and not self.can.has_sums:
            with suppress(KnowmoreError):
                self._write_cache()

    # -- caches ------------------------------------------------------------------------------

    def close(self) -> None:
        """Write the factor or the sums if they lag behind, and let go of the file."""
        with self.lock:
            if not self.file.closed:
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
            with self.lock, self.writing(caches=True) as work:
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
        with suppress(KnowmoreError), self.lock, self.writing(caches=True) as work:
            if state_of(work.file, work.held.facts) == digest:
                write_memo(work.journal, name, digest, values)

    # -- examples ----------------------------------------------------------------------------

    def examples(self) -> Examples:
        """All examples: of the model if it keeps them, else of the file."""
        held = self.state
        if held.fitted and not self.can.has_sums:
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


@final
class Store:
    """A living model in one file; `knowmore.open` makes one.

    It has the verbs of its estimator. An edit is in the file, durably, when the call returns; if it
    raises, neither the file nor the model has changed. All else is asked of the estimator:
    `predict`, `predict_proba`, `leave_one_out`, `classes_`, ... Any number of processes may read
    the file while one writes; a second writer waits. `refresh` follows what others have written,
    and so does every edit. Threads may share a store.

    path : of the file
    session : the open file, for the rest of the library; not for users

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from knowmore import GPClassifier
    >>> folder = TemporaryDirectory()
    >>> with Store(f"{folder.name}/flowers.km", GPClassifier()) as store:
    ...     store.add([[0.0], [1.0], [5.0]], ["daisy", "daisy", "rose"], ids=["a", "b", "c"])
    ...     store = store.relabel("b", "rose")
    array(['a', 'b', 'c'], dtype='<U1')
    >>> with Store(f"{folder.name}/flowers.km") as store:
    ...     store.forget("a").count, store.predict([[0.0]]).tolist(), [e.verb for e in store.log()]
    (1, ['rose'], ['add', 'relabel', 'forget'])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        estimator: Any = None,
        *,
        timeout: float = PATIENCE,
    ) -> None:
        check_name(path)
        timeout = number("timeout", timeout, "[0, 1e6]", "It is in seconds.")
        self.path = Path(os.path.realpath(path))
        if estimator is not None and not is_there(self.path):
            create(self.path, estimator, timeout)
        self.session = Session(self.path, timeout, estimator)

    # -- the file ----------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file. What was confirmed is in it, whether this is called or not.

        What helps to open it faster is written now, if that is possible.
        """
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r}: {len(self)} examples, {self.session.state.estimator!r}>"

    def __len__(self) -> int:
        return len(self.session.state.index)

    def refresh(self) -> bool:
        """Follow what other processes have written; whether there was anything."""
        with self.session.lock, self.session.reading():
            before = self.session.state
            return self.session.follow() is not before

    # -- editing -----------------------------------------------------------------------------

    def together(self, verb: str) -> AbstractContextManager[Store]:
        """A block whose edits are one: one entry of the journal, and in the file when it ends.

        If it raises, none of them is. Other threads and processes see them when it has ended, and
        can write nothing from its first edit on. What is for ever has no place in it: `forget`.

        verb : the name of the entry

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from knowmore import GPClassifier
        >>> folder = TemporaryDirectory()
        >>> with Store(f"{folder.name}/flowers.km", GPClassifier()) as store:
        ...     with store.together("correct"):
        ...         ids = store.add([[0.0], [1.0]], ["daisy", "daisy"])
        ...         store = store.relabel(ids[1], "rose")
        ...     store.undo().verb, len(store)
        ('correct', 0)
        >>> folder.cleanup()
        """
        return _Together(self, verb)

    def add(
        self,
        X: Any,
        y: Any,
        ids: Any = None,
        sample_weight: Any = None,
        *,
        contributor: str | Sequence[str | None] | None = None,
        origins: str | Sequence[str | None] | None = None,
        contents: Sequence[bytes | None] | None = None,
        thumbnails: Sequence[bytes | None] | None = None,
        columns: Sequence[Hashable] | None = None,
    ) -> Array:
        """Learn more examples X (k, d), y, and return their ids, (k,); durable when it returns.

        y, sample_weight : as in `GPClassifier.add`
        ids : of the examples; by default the index of a pandas table, unless that is 0, 1, ... or
            dates, else the next numbers. The file gives no number twice
        contributor, origins : who gave them and where they came from, one for all or one each
        contents : the SHA-256 of what each was made from
        thumbnails : a small picture of each, as bytes of an image file
        columns : the names of the columns of X, if it is an array; a table brings its own
        """
        about = About(contributor, origins, contents, thumbnails)
        return self._add(X, y, ids, sample_weight, about, columns)

    def _add(
        self,
        X: Any,
        y: Any,
        ids: Any,
        sample_weight: Any,
        about: About,
        columns: Sequence[Hashable] | None = None,
        classes: Any = None,
    ) -> Array:
        with self.session.lock, self.session.editing() as work:
            context = work.context
            if not context.fitted and (aside := work.aside()):
                raise InvalidInput(
                    f"The file holds {some(list(aside))}, put aside, and nothing else. Bring one "
                    f"back, with another label: relabel(). Or forget them: then the model learns "
                    f"other examples."
                )
            labels = context.estimator.editable_.labels if context.fitted else None
            names = declared_classes(y, classes, labels)
            given, next_id = context.numbered(X, y, ids, sample_weight)
            with columns_named(columns):
                change = context.add(X, y, given, sample_weight)
            if columns is not None:
                kinds.name_columns(change.estimator, columns)
            declare(change.estimator, names)
            work.enter("add", change, about, X)
            work.journal.numbers = work.journal.numbers.but(next_id=next_id)
            assert isinstance(change.edit, Add)
            return array_of_ids(change.edit.ids or ())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Refused: a file keeps what it holds. `clone(store)` is an estimator in memory to fit."""
        raise InvalidInput(
            "A store has no fit(), which would throw away what the file holds: add() learns more, "
            "and sklearn.base.clone(store) is an estimator in memory to fit."
        )

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`.

        classes : as for `GPClassifier.partial_fit`; the file keeps those that are declared
        """
        self._add(X, y, None, sample_weight, About(), classes=classes)
        return self

    def replace(
        self,
        ids: Any,
        X: Any,
        y: Any = None,
        *,
        contributor: str | Sequence[str | None] | None = None,
        origins: str | Sequence[str | None] | None = None,
        contents: Sequence[bytes | None] | None = None,
        thumbnails: Sequence[bytes | None] | None = None,
    ) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None.

        What they were before can be brought back by `undo`. Contributors and origins stay, unless
        others are given; contents and thumbnails do not. A contributor gave the new features, and
        the labels if there are new ones.
        """
        with self.session.lock, self.session.editing() as work:
            with columns_named(names_in(work.held.estimator)):
                change = work.context.replace(ids, X, y)
            if change is not None:
                work.enter("replace", change, About(contributor, origins, contents, thumbnails), X)
        return self

    def relabel(
        self, ids: Any, y: Any = None, *, contributor: str | Sequence[str | None] | None = None
    ) -> Self:
        """Give these examples other labels, a label for each or a single label for all.

        Examples that were put aside by `refuse` come back with these labels; they are named alone.

        contributor : the giver of the labels, unknown if not given
        """
        with self.session.lock, self.session.editing() as work:
            aside = work.aside()
            names = () if not aside or is_mask(ids) or y is None else as_ids(ids, ordered=True)
            if names and all(one in aside for one in names):
                labels = [y] * len(names) if isinstance(y, (str, Number)) else y
                work.bring_back([aside[one] for one in names], labels, contributor, fresh)
                return self
            change = work.context.relabel(ids, y)
            if change is not None:
                work.enter("relabel", change, About(contributor))
        return self

    def refuse(self, ids: Any) -> Self:
        """Say that these examples are not of the classes that they are labelled with.

        They are put aside: the model is the one of all others, and the file keeps them, with the
        labels that were refused. `relabel` brings them back with other labels, `undo` with these,
        and `forget` erases them. It is an entry of the journal, of its own.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from knowmore import GPClassifier
        >>> folder = TemporaryDirectory()
        >>> with Store(f"{folder.name}/flowers.km", GPClassifier()) as store:
        ...     _ = store.add([[0.0], [1.0], [5.0]], ["daisy", "daisy", "rose"], ["a", "b", "c"])
        ...     store = store.refuse("b")
        ...     len(store), store.refused(), [record.id for record in store.aside()]
        (2, {'b': ['daisy']}, ['b'])
        >>> folder.cleanup()
        """
        _check_alone(self.session, "refuse", "its entry says whose labels were refused")
        with self.session.lock, self.session.editing() as work:
            if chosen := work.context.chosen(ids):
                work.put_aside(chosen)
        return self

    def refused(self) -> dict[Id, list[Any]]:
        """The labels that were refused, the oldest first, by the ids of their examples."""
        found: dict[Id, list[Any]] = {}
        with self.session.lock, self.session.reading() as file:
            for one in Journal(file, self.session.follow().numbers).refused():
                with file.understood("examples"):
                    found.setdefault(kinds.read_id(one.id), []).append(loads(one.label))
        return found

    def aside(self) -> list[Record]:
        """The metadata of the examples that were put aside, with the labels refused last."""
        with self.session.lock, self.session.reading() as file:
            return records_of(file, FileEdit(file, self.session.follow()).aside())

    def aside_features(self) -> Array:
        """The features (k, d) of the examples that were put aside, in the order of `aside`."""
        with self.session.lock, self.session.reading() as file:
            held = self.session.follow()
            with file.understood("examples"):
                X: Array = examples_of(file, held.facts, [*FileEdit(file, held).aside().values()]).X
        return X

    def remove(self, ids: Any) -> Self:
        """Forget these examples for ever, with all that they ever were: `forget` without marks.

        A KnowmoreWarning says if bytes of them may be left.
        """
        if found := self.forget(ids, mark=False).warning:
            warn(found)
        return self

    def forget(
        self,
        ids: Any = None,
        *,
        contributor: str | None = None,
        origin: str | Sequence[str] | None = None,
        mark: bool = True,
    ) -> Forgotten:
        """Forget examples for ever: those with these ids, or what a contributor or an origin gave.

        The file is then as if they had never been in it. All versions of the examples leave it,
        with vectors, thumbnails and ids; the journal keeps that something was removed, when, and
        how many. What the examples had chosen, such as the width of a kernel, a noise or a grid, is
        chosen again by the others, as in a fit of these. This cannot be undone. Then the file is
        searched for bytes of what was removed. What no program can reach is left: blocks of the
        disk, snapshots, backups.

        contributor : all that they gave is forgotten, features and labels. An example that somebody
            else gave stays, with the features and the label that it had before.
        origin : the same for the features that came from it, or from one of several
        mark : whether keyed hashes of what was forgotten are kept, for `was_forgotten`
        """
        _check_alone(self.session, "forget")
        session, kept = self.session, tuple[str, ...]()
        with session.lock, session.editing() as work:
            found = work.withdrawal(ids, contributor, origin)
            if found.count:
                problem = work.withdraw(found, fresh, mark=mark)
                verbs = [row[2] for row in work.file.rows("journal")]
                kept = staying(work.held.facts, verbs, problem)
        with session.lock:
            session.drop_read()
        left = verification.left(self.path)
        warning = verification.warning(self.path, left, session.file.hindrance)
        changed, erased = len(found.changed), len(found.erased)
        return Forgotten(len(found.gone), left, warning, changed, kept, erased)

    def preview_forget(
        self,
        ids: Any = None,
        *,
        contributor: str | None = None,
        origin: str | Sequence[str] | None = None,
    ) -> Preview:
        """The examples that `forget` would remove or change; nothing is changed."""
        with self.session.lock, self.session.reading() as file:
            found = FileEdit(file, self.session.follow()).withdrawal(ids, contributor, origin)
        texts = found.gone, found.changed, found.erased
        return Preview(*([kinds.read_id(one) for one in sorted(part)] for part in texts))

    def forgettable(self) -> set[Id]:
        """The ids that `forget` takes: of the examples held, and of what was undone or changed."""
        with self.session.lock, self.session.reading() as file:
            found = file.connection.execute("SELECT DISTINCT id FROM examples").fetchall()
            with file.understood("examples"):
                return {kinds.read_id(text) for (text,) in found}

    def was_forgotten(
        self, ids: Sequence[Id], contents: Sequence[bytes | None] | None = None
    ) -> list[Marked]:
        """Which ids and contents of these records were forgotten here and marked.

        contents : the SHA-256 of what each was made from, as `add` takes them
        """
        each = [None] * len(ids) if contents is None else contents
        with self.session.lock, self.session.reading() as file:
            held = self.session.follow()
            known = {row[0] for row in file.rows("forgotten")}
        if not known:
            return [Marked()] * len(ids)
        marker = Marker(held.facts[KEY])
        return [marker.found(known, *one) for one in zip(ids, each, strict=True)]

    def keep(self, ids: Any, kept: bool = True) -> Self:
        """Note that the labels of these examples are right, as somebody has looked at them.

        `kept_` lists them; `knowmore suspects` and the studio leave them out. A label that changes,
        or whose example does, is no longer confirmed. No entry of the journal: the model stays the
        same.

        kept : False takes it back
        """
        with self.session.lock, self.session.editing() as work:
            chosen = work.context.chosen(ids)
            work.journal.keep(work.versions(chosen), kept)
        return self

    @property
    def kept_(self) -> Array:
        """The ids of the examples whose labels somebody has confirmed."""
        with self.session.lock, self.session.reading() as file:
            rows = Journal(file, self.session.state.numbers).kept()
            return array_of_ids(
                [one for one, at in self.session.follow().index.items() if at[0] in rows]
            )

    def merge(self, other: Any) -> Self:
        """Learn all examples of another store, or of a file at a path, of the same kind.

        Contributors, origins, contents, thumbnails and which labels are confirmed come along. The
        two must not share an id, and their settings must agree.
        """
        if isinstance(other, (str, os.PathLike)):
            with Store(other) as opened:
                return self.merge(opened)
        if not isinstance(other, Store):
            raise InvalidType(f"A store merges with another, not with {a_type(other)}.")
        estimator, theirs, records = _snapshot(other)
        if len(theirs) == 0:
            return self
        with self.session.lock, self.session.editing() as work:
            table = _common_table(work, other, records)
            if table is not None and table != other.table:
                cells = [cells_of(one.thumbnail or b"") for one in records]
                estimator, theirs = encoded(estimator, theirs, cells, table)
            names = ("contributor", "origin", "content", "thumbnail", "labeller")
            about = About(*([getattr(one, name) for one in records] for name in names))
            work.enter("merge", work.context.merge(estimator, theirs), about)
            work.step()
            work.journal.keep(work.versions([one.id for one in records if one.kept]), True)
        return self

    def set_parameters(self, **parameters: Any) -> Self:
        """Give the estimator other parameters, and fit all examples anew; undo brings them back.

        kernel, noise, ... : as the estimator takes them
        """
        with self.session.lock, self.session.editing() as work:
            held = work.held
            if apart := sorted({"supports", "source", "semantics"} & set(parameters)):
                raise InvalidInput(
                    f"{apart[0]} cannot be changed in a file: make another one with it."
                )
            after = kinds.blank(held.estimator)
            after.set_params(**parameters)
            work.lag += len(held.index)
            work.set("set_parameters", _refitted(work, after), kinds.parameters(after))
        return self

    def refresh_settings(self) -> Self:
        """Let the examples held choose the settings that were not given; undo brings those back.

        With settings="living" they always have.
        """
        with self.session.lock, self.session.editing() as work:
            held = work.held
            if not isinstance(held.estimator, ChoosingEstimator):
                raise InvalidInput(
                    f"{held.estimator!r} has no settings to choose again: what its rows choose "
                    f"follows every edit."
                )
            if held.fitted:
                work.lag += len(held.index)
                after = copy(held.estimator).refresh_settings()
                work.set("refresh_settings", after, held.facts["parameters"])
        return self

    def set_notes(self, arrays: Mapping[str, Array] | None = None, **notes: Any) -> Self:
        """Keep notes beside the examples, such as how features are made; JSON can write each.

        arrays : by name, kept as they are
        """
        with self.session.lock, self.session.editing() as work:
            work.note(arrays or {}, notes)
        return self

    def encode(self, table: Encoding) -> Self:
        """Turn the cells of all examples into vectors by other levels and fills, and fit anew.

        It is part of the edit that needs it: call it within `together`.
        """
        with self.session.lock, self.session.editing() as work:
            work.encode(table, fresh)
        return self

    def cells(self, ids: Any = None) -> list[tuple[Cell, ...]]:
        """The cells of these examples, or of all; of a model of numbers, these."""
        with self.session.lock, self.session.reading() as file:
            held = self.session.follow()
            names = held.index if ids is None else FileEdit(file, held).context.chosen(ids)
            return cells_with(file, held.facts, (held.index[one][1] for one in names))

    @property
    def table(self) -> Encoding | None:
        """How rows of cells become vectors; None if the model has learnt other things."""
        held = self.session.state
        return None if held.facts["columns"] is None else table_of(held.facts)

    def undo(self) -> Entry:
        """Undo the last edit that is not undone, and return its entry of the journal."""
        return _turn(self.session, Journal.undo)

    def redo(self) -> Entry:
        """Do the edit that was undone last again, and return its entry of the journal."""
        return _turn(self.session, Journal.redo)

    # -- asking ------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The name of the kind of model, such as "gp"."""
        return str(self.session.state.facts["kind"])

    @property
    def estimator(self) -> Any:
        """A copy of the estimator, in memory: to edit it does not touch the file."""
        return copy(self.session.state.estimator)

    @property
    def ids_(self) -> Array:
        """The ids of the examples held, (n,)."""
        with self.session.lock:
            return array_of_ids(tuple(self.session.state.index))

    @property
    def examples(self) -> Examples:
        """All examples that are held: their ids, X as `add` takes it, labels and weights."""
        found: Examples = self.session.state.estimator.as_given(self.session.examples())
        return found

    def leave_one_out(self, groups: Any = None) -> LeftOut:
        """The prediction for each example by the model without it: see `GPClassifier`.

        A linear model is given its rows from the file.
        """
        left: LeftOut = self.with_rows().leave_one_out(groups=groups)
        return left

    def with_rows(self) -> Any:
        """A copy of the estimator with all examples in memory, also the rows of a linear model."""
        with self.session.lock:
            estimator = self.session.state.estimator
            if not self.session.state.fitted:
                return copy(estimator)
            value = beside_rows(estimator.editable_, self.session.examples())
            return estimator.holding(value)

    def contributors(self) -> list[str | None]:
        """The giver of the features of each example, in the order of `ids_`; None if unknown."""
        with self.session.lock, self.session.reading() as file:
            return contributors(file, self.session.follow())

    def records(self, ids: Any = None) -> list[Record]:
        """The metadata of these examples, or of all."""
        with self.session.lock, self.session.reading() as file:
            return records(file, self.session.follow(), ids)

    @property
    def notes(self) -> dict[str, Any]:
        """The notes of `set_notes`."""
        return dict(self.session.state.facts["notes"])

    def arrays(self, prefix: str = "") -> dict[str, Array]:
        """The arrays of `set_notes` whose names begin with this, under the rest of their names."""
        with self.session.lock, self.session.reading() as file:
            held = self.session.follow()
            found = read_arrays(file, held.facts["arrays"])
        return {
            name.removeprefix(prefix): array
            for name, array in found.items()
            if name.startswith(prefix) and not name.startswith(state.SUPPORT)
        }

    def log(self, after: int = 0) -> list[Entry]:
        """The journal, the oldest entry first; or only the entries after this number."""
        with self.session.lock, self.session.reading() as file:
            return Journal(file, self.session.state.numbers).entries(after)

    def status(self) -> Status:
        """The content of the file, in numbers."""
        with self.session.lock, self.session.reading() as file:
            return status(self.path, file, self.session.follow())

    def verify(self, fast: bool = False) -> Any:
        """Whether the file holds what it says: see `Verification`."""
        _check_alone(self.session, "verify")
        return verification.verify(self.session, fresh, fast)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "session" not in self.__dict__:
            raise AttributeError(name)
        if name in _REFUSED:
            raise AttributeError(
                f"A store has no {name}(), which would change the model in memory alone: "
                f"{_REFUSED[name]}."
            )
        return getattr(self.session.state.estimator, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the estimator."""
        parameters: dict[str, Any] = self.session.state.estimator.get_params(deep)
        return parameters

    def __sklearn_clone__(self) -> Any:
        return clone(self.session.state.estimator)

    def __sklearn_tags__(self) -> Any:
        return self.session.state.estimator.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.session.state.facts["state"] is not None)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.estimator

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (str(self.path),)


@final
class _Together(AbstractContextManager[Store]):
    """The block of `Store.together`: an interrupt at its edges ends it, and nothing is changed.

    Else it would stay open as long as somebody keeps the traceback, and later edits would be in it.
    """

    def __init__(self, store: Store, verb: str) -> None:
        def steps() -> Generator[None, None, None]:
            # One generator of both, so that to close it ends both.
            with store.session.lock:
                yield from store.session.together(verb)

        self._store, self._steps = store, steps()
        self._block = contextmanager(lambda: self._steps)()

    def __enter__(self) -> Store:
        try:
            self._block.__enter__()
            return self._store
        except BaseException:
            self._steps.close()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self._block.__exit__(*error)
        finally:
            self._steps.close()


def _check_kind(path: Path, facts: dict[str, Any], estimator: Any) -> None:
    """Raise InvalidInput unless the file holds examples, of the estimator's kind if given."""
    kind = facts.get("kind")
    if "holds" in facts:
        raise InvalidInput(
            f"{str(path)!r} holds what a model of kind {kind!r} has learnt, but no "
            f"examples that could be edited. Read it with knowmore.load(path)."
        )
    if estimator is not None and kinds.kind_of(estimator) != kind:
        raise InvalidInput(
            f"{str(path)!r} holds a model of kind {kind!r}, but {estimator!r} was given. "
            f"Open it without an estimator, or name another file."
        )


def _check_alone(
    session: Session, verb: str, why: str = "what they do can be undone as a whole"
) -> None:
    """Raise InvalidInput for a verb that cannot be part of another edit.

    A block of another thread ends first.
    """
    with session.lock:
        if session.block is not None:
            raise InvalidInput(
                f"{verb}() cannot be one of several edits that are made together: {why}. Call it "
                f"after the block of together()."
            )


def _snapshot(store: Store) -> tuple[Any, Examples, list[Record]]:
    """An estimator, its examples and their records, all of one state of the file."""
    while True:
        store.refresh()
        held = store.session.state
        examples, records = store.session.examples(), store.records()
        if store.session.state is held:
            return held.estimator, examples, records


def _common_table(work: FileEdit, other: Store, records: list[Record]) -> Encoding | None:
    """The encoding of the examples of both files, which are encoded by it; None for numbers."""
    here, there = table_of(work.held.facts), other.table
    if here is None and there is None:
        return None
    if here is None or there is None or not here.alike(there):
        raise InvalidInput(
            "Models merge only if they have learnt the same columns, with the same types."
        )
    if not work.held.index:
        return there
    theirs = [cells_of(one.thumbnail or b"") for one in records]
    if not here.covers(theirs):
        vectors = (vector for _, vector in work.held.index.values())
        here = here.chosen([*cells_with(work.file, work.held.facts, vectors), *theirs])
        work.encode(here, fresh)
    return here


def encoded(
    estimator: Any, examples: Examples, cells: Sequence[Sequence[Cell]], table: Encoding
) -> tuple[Any, Examples]:
    """A copy of an estimator that is fitted to these examples by another encoding, and these."""
    X, columns = table.vectors(cells), (examples.labels, examples.weights, examples.serials)
    after = Examples.restored(examples.names, X, *columns, examples.next_id)
    unfitted = kinds.blank(estimator)
    kinds.set_columns(unfitted, kinds.columns(estimator) | columns_of(table))
    return kinds.chosen_by(unfitted, after), after


def _refitted(work: FileEdit, unfitted: Any) -> Any:
    """The examples that are held, fitted by another estimator."""
    held = work.held
    if held.facts["state"] is None:
        return unfitted
    kinds.set_columns(unfitted, held.facts["columns"])
    if kinds.capabilities(held.facts["kind"]).has_sums:
        if unfitted.resolution == held.estimator.resolution:
            return kinds.linear(unfitted, held.facts["state"], held.estimator.model_.sums)
        return kinds.chosen_by(unfitted, work.context.read(tuple(held.index)))
    living = held.estimator.editable_
    keeps = unfitted.rule_for(living.examples).kept(living.choice)
    return unfitted.holding(unfitted.fresh_value(living.examples, keeps))


def _turn(session: Session, turn: Callable[[Journal], Row]) -> Entry:
    """Undo an entry of the journal, or do it again."""
    _check_alone(session, turn.__name__)
    with session.lock, session.editing() as work:
        row = turn(work.journal)
        undone = turn is Journal.undo
        text = row[5] if undone else row[6]
        with work.file.understood("journal"):
            facts = {} if text is None else loads(text)
        work.lag += row[3]
        if row[0] <= work.held.facts.get(ENCODED, 0):
            # The columns were others then: the examples choose their settings anew.
            work.anew(facts, fresh)
            return replace(entry(row), undone=undone)
        work.after_undo(facts, lambda now: read_state(work.file, now, work.held, session.cache))
        return replace(entry(row), undone=undone)


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
        other_columns = number <= facts.get(ENCODED, 0)
        if other_columns or any(row[0] > number and row[2] in FORGETS for row in rows):
            facts["state"] = None
        then, table = fresh(file, facts, versions), table_of(facts)
        if table is not None:
            facts |= {"columns": kinds.columns(then[0])}
            cells = cells_with(file, facts, (one.vector for one in live_versions(versions)))
            if not table.covers(cells):
                # Levels that nothing held has now.
                then = encoded(*then, cells, table.chosen(cells))
        return Past(*then)


def _settings(rows: list[Any], number: int, position: int) -> dict[str, Any]:
    """The facts of the earlier state that differ from the current ones."""
    undone = [row[5] for row in rows if number < row[0] <= position]
    # The last of several entries that are done again has the settings after all of them.
    redone = [row[6] for row in reversed(rows) if position < row[0] <= number]
    texts = [text for text in (*undone, *redone) if text is not None]
    return dict(loads(texts[0])) if texts else {}


def _versions_at(file: File, number: int) -> list[Version]:
    """All versions, live as they were after an entry."""
    live: dict[int, int] = {}
    for _, row, enters in sorted(row for row in file.all_rows("changes") if row[0] <= number):
        live[row] = enters
    found = (Version(*row) for row in file.all_rows("examples"))
    return [version.but(live=live.get(version.row, 0)) for version in found]
