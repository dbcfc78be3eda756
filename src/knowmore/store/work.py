"""Edits of a file: the state before, the rows written, and the state after; and reports.

Some things stay in a file when examples are forgotten, though these may have had a part in them.
The examples left choose kernel widths, noises and grids again. They cannot make again what came
from other sources, or from a search such as `tune`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from json import dumps, loads
from pathlib import Path, PurePosixPath
from secrets import token_hex
from threading import get_ident
from typing import Any, Final, NamedTuple, final

import numpy as np

from knowmore._base import Array, Id, a_type, as_ids, is_mask, masked
from knowmore.edits import Add, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, KnowmoreError, NotWritten, UnknownId
from knowmore.estimators import left_to_examples
from knowmore.examples import Examples, new_serials
from knowmore.store import kinds
from knowmore.store.cache import FactorCache, drop_memos, write_arrays, write_sums
from knowmore.store.cells import (
    ENCODED,
    TABLE,
    cells_in,
    cells_with,
    check_cells,
    columns_of,
    notes_of,
    table_of,
)
from knowmore.store.changing import Change, EditContext, Rest, next_id
from knowmore.store.file import FORMAT, File, Row
from knowmore.store.journal import (
    FORGETS,
    KEY,
    PARAMETERS,
    REFUSE,
    SETTINGS,
    Givers,
    Journal,
    Marker,
    Numbers,
    Version,
    Withdrawal,
    moment_of,
    whole,
    without,
)
from knowmore.tables import Encoding, json_of

# Why a column does not count, once rows are forgotten that had told it.
_LEFT_OUT: Final = "did not count in the first table"
# Fits the live ones of some versions from scratch, with the settings of these facts.
Fresh = Callable[[File, dict[str, Any], Sequence[Version]], tuple[Any, Examples]]


@dataclass(frozen=True)
class HeldState:
    """The state of a file in memory.

    stamp : the stamp of the file in this state
    estimator : unfitted if nothing was learnt yet
    facts : all of the file
    index : the row and the vector of the live version of each id, in the order of the examples
    """

    stamp: str
    estimator: Any
    facts: dict[str, Any]
    index: dict[Id, tuple[int, int]] = field(repr=False)

    @property
    def numbers(self) -> Numbers:
        """The counters of the file."""
        return Numbers(*self.facts["numbers"])

    @property
    def fitted(self) -> bool:
        """Whether anything was learnt yet."""
        return self.facts["state"] is not None

    @property
    def vectors(self) -> Array:
        """The numbers of the examples' vectors, (n,), in their order."""
        return np.array([vector for _, vector in self.index.values()], dtype=np.int64)


@dataclass(frozen=True)
class About:
    """Metadata as they were given, for all new versions or for each; None keeps those before.

    contributors : who gave the features, and the labels unless there are `labellers`
    """

    contributors: Any = None
    origins: Any = None
    contents: Any = None
    thumbnails: Any = None
    labellers: Any = None


class FileEdit:
    """The edits of a transaction.

    held : the state that the next edit starts from
    after : the state after the edits, but for its stamp
    verb : of the entry, if there may be several edits
    lag : the number of rows of a factor that the edits change
    """

    def __init__(self, file: File, held: HeldState, verb: str | None = None) -> None:
        self.file, self._before = file, held
        self.journal = Journal(file, held.numbers, verb)
        # A copy of the index: the state changes by a single assignment, at the end.
        self.after = replace(held, index=dict(held.index))
        self.held, self.lag = self.after, 0
        # Whether all vectors were made anew from their cells.
        self._encoded = False
        self._indexed: list[Callable[[dict[Id, tuple[int, int]]], object]] = []

    def step(self) -> None:
        """Hold what was edited so far, for further edits."""
        for change in self._indexed:
            change(self.after.index)
        self._indexed.clear()
        facts = self.after.facts | {"numbers": list(self.journal.numbers)}
        self.held = self.after = replace(self.after, facts=facts)

    def done(self) -> HeldState:
        """The state after the transaction."""
        self.step()
        return replace(self.after, stamp=self.file.stamp)

    @property
    def context(self) -> EditContext:
        """The state that the next edit starts from."""
        return context_of(self.held, self.journal)

    def versions(self, ids: Iterable[Id]) -> list[Version]:
        """The live versions of these ids."""
        return self.journal.versions(self.held.index[one][0] for one in ids)

    def withdrawal(
        self, ids: Any, contributor: str | None, origin: str | Sequence[str] | None
    ) -> Withdrawal:
        """The withdrawal of these ids, or of the contributions of a contributor or of origins."""
        given = [one for one in (ids, contributor, origin) if one is not None]
        if len(given) != 1:
            raise InvalidInput("Give one of ids, contributor and origin: what is to be forgotten.")
        if ids is not None:
            return whole(self._of_ids(ids))
        if origin is not None:
            column = "origin"
            several = isinstance(origin, Sequence) and not isinstance(origin, str)
            texts = {kinds.text_of(one) for one in (origin if several else [origin])}
            found = without(
                self.journal, lambda version, _: version.origin in texts, lambda *_: False
            )
        else:
            column, text = "contributor", kinds.text_of(contributor)
            found = without(
                self.journal,
                lambda _, givers: givers.features == text,
                lambda _, givers: givers.label == text,
            )
        if not found.count:
            raise UnknownId(
                f"The file holds nothing whose {column} is {given[0]!r}. `knowmore status` lists "
                f"the contributors and origins that it knows; in Python, records() does."
            )
        return found

    def _of_ids(self, ids: Any) -> list[Version]:
        """All versions of these ids, which are held or were."""
        held = tuple(self.held.index)
        names = masked(ids, held) if is_mask(ids) else as_ids(ids, ordered=False)
        texts = [kinds.id_text(one) for one in names]
        versions = [Version(*row) for row in self.file.rows_with("examples", "id", texts)]
        if len(names) > len({one.id for one in versions}):
            self.context.chosen(names)
        return versions

    # -- writing -----------------------------------------------------------------------------

    def enter(self, verb: str, change: Change, about: About, given: Any = None) -> None:
        """Write the new versions of an edit that adds, replaces or relabels examples.

        given : the table that its features were
        """
        estimator, edit = change
        assert not isinstance(edit, Remove)
        ids = edit.ids or ()
        before = [] if isinstance(edit, Add) else self.versions(ids)
        origins, contributors, labellers = self._givers(edit, before, about)
        blobs = [
            _blobs(name, getattr(about, name), len(ids)) for name in ("contents", "thumbnails")
        ]
        if isinstance(edit, Add):
            # SQLite writes -0.0 as 0.0, which would have another hash.
            weights = [1.0] * len(ids) if edit.weights is None else (edit.weights + 0.0).tolist()
        else:
            weights = [v.weight for v in before]
        labels = edit.labels
        texts = [v.label for v in before] if labels is None else kinds.label_texts(labels)
        self._note(estimator, labels)
        self.lag += len(ids)
        journal, vectors = self.journal, [v.vector for v in before]
        journal.begin(verb, len(ids))
        rows = journal.take("row", len(ids))
        if not self.held.index and all(one is None for one in blobs[1]):
            # Numbers: a table whose examples were all undone has no say.
            facts = self.after.facts
            stale = notes_of(None) if TABLE in facts["notes"] else {}
            self.after = replace(self.after, facts=facts | {"notes": facts["notes"] | stale})
        if not isinstance(edit, Relabel):
            check_cells(self.after.facts, edit.X, blobs[1])
            data = vector_blobs(edit.X, kinds.columns(estimator)["width"], given)
            vectors = [
                *journal.write_vectors([(*d, *b) for d, *b in zip(data, *blobs, strict=True)])
            ]
        columns = (map(kinds.id_text, ids), texts, weights, vectors, origins, contributors)
        when = [journal.at] * len(ids), [1] * len(ids)
        each: Iterable[Row] = zip(rows, *columns, *when, strict=True)
        new = [Version(*row) for row in each]
        journal.write_versions(
            list(zip(new, labellers, strict=True)), [version.row for version in before]
        )

        def change_index(index: dict[Id, tuple[int, int]]) -> None:
            if isinstance(edit, Replace):
                for one in ids:
                    del index[one]
            index.update(zip(ids, zip(rows, vectors, strict=True), strict=True))

        self._indexed.append(change_index)

    def _givers(
        self, edit: Add | Replace | Relabel, before: list[Version], about: About
    ) -> list[list[Any]]:
        """Origins, contributors and labellers of new versions, which may keep those before.

        Who gives a label without saying who they are is not known.
        """
        k = len(edit.ids or ())
        given, origins, labellers = (
            _texts(name, getattr(about, name), k)
            for name in ("contributors", "origins", "labellers")
        )
        none: list[Any] = [None] * k
        if isinstance(edit, Add):
            contributors = given or none
            return [origins or none, contributors, labellers or contributors]
        whose = self.journal.givers(before)
        origins = origins or [one.origin for one in before]
        features = [one.features for one in whose]
        if isinstance(edit, Relabel):
            return [origins, features, given or none]
        contributors = given or features
        keeps = edit.labels is None or given is None
        return [origins, contributors, [one.label for one in whose] if keeps else contributors]

    def put_aside(self, ids: tuple[Id, ...]) -> None:
        """Let examples leave the model whose labels were refused; their versions stay."""
        rows = [self.held.index[one][0] for one in ids]
        self._note(self.context.put_aside(ids), None)
        self.lag += len(ids)
        self.journal.begin(REFUSE, len(ids))
        self.journal.write_versions([], rows)
        self._indexed.append(lambda index: [index.pop(one) for one in ids])

    def aside(self) -> dict[Id, Version]:
        """The last versions of the examples that were put aside, by their ids."""
        last = {kinds.read_id(one.id): one for one in self.journal.refused()}
        return {one: version for one, version in last.items() if one not in self.held.index}

    def bring_back(
        self, versions: Sequence[Version], labels: Any, contributor: Any, fresh: Fresh
    ) -> None:
        """Learn examples that were put aside again, with other labels."""
        chosen = self._covering(versions)
        if chosen is not None:
            self.encode(chosen, fresh)
            versions = self.journal.versions(one.row for one in versions)
        with self.file.understood("examples"):
            examples = examples_of(self.file, self.held.facts, versions)
        vectors = self.journal.vectors(one.vector for one in versions)
        blobs = ([vectors[one.vector][at] for one in versions] for at in (3, 4))
        givers = [kinds.string(one.features) for one in self.journal.givers(versions)]
        origins = [kinds.string(one.origin) for one in versions]
        labellers = _each("contributor", contributor, len(versions)) or [None] * len(versions)
        about = About(givers, origins, next(blobs), next(blobs), labellers)
        change = self.context.add(examples.X, labels, examples.names, examples.weights)
        if not self.held.index:
            self._check_first(change)
        self.enter("relabel", change, about)

    def _check_first(self, change: Change) -> None:
        """Let what was put aside be the first that a model learns, if its labels are like before.

        The columns stay those that the model had before all others were forgotten.
        """
        facts, edit = self.held.facts, change.edit
        assert isinstance(edit, Add)
        labels = edit.labels
        if kinds.label_type(labels) != facts["labels"]:
            raise InvalidInput(
                "The labels that were refused are of another type. Give others of that type."
            )
        kinds.set_columns(change.estimator, facts["columns"])

    def withdraw(self, found: Withdrawal, fresh: Fresh, *, mark: bool) -> str:
        """Withdraw contributions for ever, and delete all settings of before.

        Returns why the examples left cannot choose the settings; "" if they can.

        fresh : fits the live ones of some versions from scratch
        mark : whether keyed hashes of the contributions are kept
        """
        if mark:
            key = self.after.facts.get(KEY) or token_hex(32)
            self.after = replace(self.after, facts=self.after.facts | {KEY: key})
            found.mark(self.journal, Marker(key))
        rows, index = {one.row for one in found.deleted}, self.held.index
        gone = [one for one in map(kinds.read_id, found.gone) if index.get(one, (0,))[0] in rows]
        self.lag += found.count
        table, alters = table_of(self.after.facts), found.alters
        if table is not None and not alters:
            alters = self._encodes_otherwise(table, rows)
        if not alters:
            rest = self.context.forget(tuple(gone))
            self._indexed.append(lambda index: [index.pop(one) for one in gone])
        self.journal.begin("forget", found.count)
        found.write(self.journal)
        if not alters:
            self._note(rest.estimator, None)
        self.journal.delete_settings()
        if table is not None:
            self._encode_left(table, anew=alters)
        if alters:
            rest = self._anew(fresh)
        return rest.problem

    def _encodes_otherwise(self, table: Encoding, gone: set[int]) -> bool:
        """Whether a vector of the file changes if the versions in these rows are forgotten."""
        versions = [Version(*row) for row in self.file.all_rows("examples")]
        left = [one for one in versions if one.row not in gone]
        cells = cells_with(self.file, self.after.facts, (one.vector for one in left))
        choosing = {one.row for one in _choosing(left)}
        chosen = table.chosen(
            [row for row, one in zip(cells, left, strict=True) if one.row in choosing]
        )
        if chosen.features != table.features:
            return True
        return not np.array_equal(chosen.vectors(cells), table.vectors(cells))

    def _encode_left(self, table: Encoding, *, anew: bool) -> None:
        """Let the examples that are left choose the encoding of their cells again.

        anew : whether vectors change by it
        """
        facts = self.after.facts
        left = _choosing([Version(*row) for row in self.file.all_rows("examples")])
        chosen = None
        if left:
            chosen = table.chosen(cells_with(self.file, facts, (one.vector for one in left)))
            # The reasons count rows of the first table.
            chosen = replace(chosen, left_out=dict.fromkeys(table.left_out, _LEFT_OUT))
        if chosen is not None and chosen.columns != table.columns and anew:
            self._write_encoding(chosen)
        else:
            notes = facts["notes"] | notes_of(chosen)
            self.after = replace(self.after, facts=facts | {"notes": notes})

    def _covering(self, more: Iterable[Version] = ()) -> Encoding | None:
        """The encoding that the live versions and more choose; None if the one in use has all."""
        facts, table = self.after.facts, table_of(self.after.facts)
        if table is None or facts["columns"] is None:
            return None
        versions = live_versions(Version(*row) for row in self.file.all_rows("examples"))
        cells = cells_with(self.file, facts, (one.vector for one in (*versions, *more)))
        return None if table.covers(cells) else table.chosen(cells)

    def encode(self, table: Encoding, fresh: Fresh) -> None:
        """Turn the cells of all examples into vectors in another way, and fit these anew."""
        self._write_encoding(table)
        self._anew(fresh)
        self.step()

    def _write_encoding(self, table: Encoding) -> None:
        """Write all vectors of the file anew from their cells, under other numbers.

        Numbers of vectors tell readers and caches which rows they know. Entries of the journal
        lose the settings that examples chose: the columns of then are no longer there.
        """
        file, facts = self.file, self.after.facts
        rows = sorted(file.all_rows("vectors"))
        width = facts["columns"]["width"]
        with file.understood("cells"):
            cells = [cells_in(row, width) for row in rows]
        X = table.vectors(cells)
        columns = facts["columns"] | columns_of(table)
        blobs = vector_blobs(X, columns["width"], X)
        new = [
            (*blob, row[3], json_of(each))
            for blob, row, each in zip(blobs, rows, cells, strict=True)
        ]
        numbers = self.journal.write_vectors(new)
        places = dict(zip((row[0] for row in rows), numbers, strict=True))
        versions = [Version(*row) for row in file.all_rows("examples")]
        file.replace("examples", (one.but(vector=places[one.vector]) for one in versions))
        file.delete("vectors", places)
        self.journal.deleted = self._encoded = True
        self.journal.keep_parameters()
        notes = facts["notes"] | notes_of(table)
        self.after = replace(self.after, facts=facts | {"notes": notes, "columns": columns})
        self.lag += len(rows)

    def anew(self, facts: dict[str, Any], fresh: Fresh) -> None:
        """Hold what the file has now, fitted from scratch; facts : those that change."""
        self.after = replace(self.after, facts=self.after.facts | facts)
        # What came back may have levels and blanks that nothing held had.
        chosen = self._covering()
        if chosen is not None:
            self._write_encoding(chosen)
        self._anew(fresh)

    def _anew(self, fresh: Fresh) -> Rest:
        """Take the examples of the file as they are now, fitted from scratch."""
        versions = [Version(*row) for row in self.file.all_rows("examples")]
        self.after = replace(self.after, index=live_index(live_versions(versions)))
        if not self.after.index:
            rest = Rest(kinds.blank(self.held.estimator))
        else:
            facts = self.after.facts | {"numbers": list(self.journal.numbers)}
            try:
                rest = Rest(fresh(self.file, facts | {"state": None}, versions)[0])
            except KnowmoreError as error:
                rest = Rest(fresh(self.file, facts, versions)[0], str(error))
        self._note(rest.estimator, None)
        return rest

    def set(self, verb: str, estimator: Any, parameters: dict[str, Any]) -> None:
        """Write other settings."""
        self.after = replace(self.after, facts=self.after.facts | {"parameters": parameters})
        self._note(estimator, None)
        self.journal.begin(verb, len(self.held.index))

    def after_undo(
        self, facts: dict[str, Any], load: Callable[[dict[str, Any]], HeldState]
    ) -> None:
        """Hold what the file has after an entry was undone or done again.

        facts : those that change by it
        """
        self.after = load(self.held.facts | facts | {"numbers": list(self.journal.numbers)})

    def note(self, arrays: Mapping[str, Array], notes: dict[str, Any]) -> None:
        """Keep arrays and notes beside the examples."""
        facts, forms = self.after.facts, write_arrays(self.journal, arrays)
        both = {"arrays": facts["arrays"] | forms, "notes": facts["notes"] | notes}
        self.after = replace(self.after, facts=facts | both)

    def _note(self, estimator: Any, labels: Array | None) -> None:
        """Take an estimator, with its columns and what its examples have chosen."""
        facts = dict(self.after.facts)
        if hasattr(estimator, "n_features_in_"):
            facts["columns"] = kinds.columns(estimator)
            facts["state"] = kinds.state(estimator)
            # While nothing is held, labels may be of any type.
            if labels is not None and (facts["labels"] is None or not self.held.index):
                facts["labels"] = kinds.label_type(labels)
        else:
            # What was put aside is read by the columns and the type of labels that it had.
            stays = set(self.aside()) - set(self.held.index)
            facts |= dict.fromkeys(("state",) if stays else ("columns", "state", "labels"))
        self.after = replace(self.after, estimator=estimator, facts=facts)

    def _settings(self) -> tuple[str | None, str | None]:
        """The settings before and after, as texts, if they differ and the entry does not forget."""
        if self.journal.verb in FORGETS:
            return None, None
        names = PARAMETERS if self._encoded else SETTINGS
        before, after = (
            dumps({name: facts[name] for name in SETTINGS if name in names})
            for facts in (self._before.facts, self.after.facts)
        )
        return (None, None) if before == after else (before, after)

    def finish(self, cache: FactorCache) -> None:
        """Write the entry and the facts, and delete what caches know of deleted versions."""
        if self.journal.passed and self.after.facts["state"] != self._before.facts["state"]:
            # Versions that nobody will ever see may have chosen the settings.
            self.step()
            self._note(self.context.forget(()).estimator, None)
        if self._encoded:
            # Entries that are undone have other columns, too.
            facts = self.after.facts | {ENCODED: self.journal.numbers.entry - 1}
            self.after = replace(self.after, facts=facts)
        self.journal.write_entry(self._settings())
        if self.journal.numbers.position != self._before.numbers.position:
            drop_memos(self.file)
        if self.journal.deleted:
            self.step()
            self._cut(cache)
        numbers = self.journal.numbers
        facts, old = self.after.facts | {"numbers": list(numbers)}, self._before.facts
        self.file.write_facts({name: one for name, one in facts.items() if old.get(name) != one})

    def _cut(self, cache: FactorCache) -> None:
        """Leave nothing in the caches but what belongs to the model after the edits."""
        after = self.after
        if self._encoded or not after.fitted:
            cache.clear(self.file)
        if not after.fitted:
            return
        if kinds.capabilities(after.facts["kind"]).has_sums:
            write_sums(self.journal, after.estimator)
        else:
            cache.cut(self.journal, after.estimator, after.vectors)


class EditBlock:
    """Several edits in one transaction, which the first of them begins.

    begin : begins the transaction
    """

    def __init__(self, begin: Callable[[], FileEdit]) -> None:
        self._begin, self._thread = begin, get_ident()
        self._work: FileEdit | None = None
        self._failed = False

    @property
    def held(self) -> HeldState | None:
        """The state after the edits so far for the thread of the block; None for other threads."""
        mine = self._work is not None and self._thread == get_ident()
        return self._work.held if mine else None  # type: ignore[union-attr]

    @contextmanager
    def edit(self) -> Iterator[FileEdit]:
        """A block for the next edit."""
        self.check()
        self._work = self._work or self._begin()
        try:
            yield self._work
            self._work.step()
        except BaseException:
            self._failed = True
            raise

    def check(self) -> None:
        """Raise NotWritten if one of the edits has failed: it may have written a part."""
        if self._failed:
            raise NotWritten(
                "One of the edits that are made together has failed, so none of them is in the "
                "file. Let its error leave the block, or make it apart from the others."
            )


def _choosing(versions: list[Version]) -> list[Version]:
    """The versions that choose an encoding: the live ones, else those that were put aside."""
    return live_versions(versions) or versions


def live_versions(versions: Iterable[Version]) -> list[Version]:
    """The live versions, in the order of the examples."""
    return sorted((one for one in versions if one.live), key=lambda one: one.vector)


def live_index(live: list[Version]) -> dict[Id, tuple[int, int]]:
    """The row and the vector of each live version by id; raises ValueError for an id twice."""
    index = {kinds.read_id(one.id): (one.row, one.vector) for one in live}
    if len(index) != len(live):
        raise ValueError("an id twice")
    return index


def context_of(held: HeldState, journal: Journal) -> EditContext:
    """The state as an edit starts from it."""

    def read(ids: tuple[Id, ...]) -> Examples:
        versions = journal.versions(held.index[one][0] for one in ids)
        with journal.file.understood("examples"):
            return examples_of(journal.file, held.facts, versions)

    return EditContext(held.estimator, held.index, held.numbers.next_id, read)


def all_examples(
    held: HeldState, journal: Journal, known: dict[Id, tuple[int, int]], before: Examples | None
) -> Examples:
    """All examples that are held, in their order.

    known, before : the index and the examples of another state; only what differs is read again
    """
    index, read = held.index, context_of(held, journal).read
    new = tuple(one for one, at in index.items() if known.get(one) != at)
    if before is None or 2 * len(new) > len(index):
        return read(tuple(index))
    parts = [before, *([read(new)] if new else [])]
    place = {one: row for row, one in enumerate((*before.names, *new))}
    rows = [place[one] for one in index]
    X, labels, weights = (
        np.concatenate([getattr(one, column) for one in parts])[rows]
        for column in ("X", "labels", "weights")
    )
    serials, following = new_serials(len(rows)), next_id(held.numbers.next_id, index)
    return Examples.restored(tuple(index), X, labels, weights, serials, following)


def examples_of(
    file: File,
    facts: dict[str, Any],
    versions: Sequence[Version],
    vectors: dict[int, Row] | None = None,
) -> Examples:
    """Versions as examples, in their order; raises any error if they are damaged.

    vectors : rows of vectors by number; by default they are read
    """
    d = facts["columns"]["width"]
    if len(versions) == 0:
        labels = kinds.read_labels(facts["labels"], [])
        return Examples.restored((), np.empty((0, d)), labels, np.empty(0), new_serials(0), 0)
    if vectors is None:
        vectors = Journal(file, Numbers()).vectors(one.vector for one in versions)
    rows = [vectors[one.vector] for one in versions]
    X = kinds.read_rows([row[1] for row in rows], d)
    if rows[0][2] is not None:
        X = np.hstack([X, np.stack([np.frombuffer(row[2], "<f8") for row in rows])])
    return restored(facts, versions, X, new_serials(len(rows)))


def restored(
    facts: dict[str, Any], versions: Sequence[Version], X: Array, serials: Array
) -> Examples:
    """Versions as examples with these rows; raises any error if they are damaged."""
    weights = np.array([one.weight for one in versions], dtype=float)
    if not (weights >= 0).all() or np.isinf(weights).any():
        raise ValueError("a weight below zero")
    labels = kinds.read_labels(facts["labels"], [one.label for one in versions])
    ids = [kinds.read_id(one.id) for one in versions]
    following = next_id(Numbers(*facts["numbers"]).next_id, ids)
    return Examples.restored(ids, X, labels, weights, serials, following)


def split(X: Array, width: int) -> tuple[Array, Array]:
    """Inputs X (k, d) as a file has them: vectors (k, width), and the columns beside them."""
    return np.ascontiguousarray(X[:, :width]), np.ascontiguousarray(X[:, width:], "<f8")


def vector_blobs(X: Array, width: int, given: Any) -> list[tuple[bytes, bytes | None]]:
    """The bytes of the vectors of inputs X (k, d), and of the columns beside them.

    given : the table that they were
    """
    vectors, beside = split(X, width)
    rows = kinds.narrow_rows(vectors, given)
    if not beside.shape[1]:
        return [(row, None) for row in rows]
    return list(zip(rows, kinds.row_bytes(beside), strict=True))


def _each(name: str, given: Any, k: int) -> list[Any] | None:
    """Metadata for each of k examples, from a text for all or a list; None stays None."""
    if given is None:
        return None
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise InvalidInput(f"{name} is {a_type(given)}. Give a list: one for each example.")
    each = [given] * k if isinstance(given, str) else list(given)
    if len(each) != k:
        raise InvalidInput(f"{len(each)} {name} were given for {k} examples. Give one each.")
    return each


def _texts(name: str, given: Any, k: int) -> list[str | None] | None:
    each = _each(name, given, k)
    return None if each is None else [kinds.text_of(one) for one in each]


def _blobs(name: str, given: Any, k: int) -> list[bytes | None]:
    each = _each(name, given, k) or [None] * k
    for one in each:
        if one is not None and not isinstance(one, bytes):
            raise InvalidInput(f"{name} are bytes or None, but one is {a_type(one)}.")
    return each


# -- reports -------------------------------------------------------------------------------------

# Rows that are read at a time.
_AT_ONCE: Final = 500


@final
class Record(NamedTuple):
    """The metadata of an example: all but its features.

    id, label, weight : as it was given
    origin : where it came from; None if unknown
    contributor : who gave its features; None if unknown
    at : when this version of it was written, UTC
    content : the SHA-256 of what it was made from; None if unknown
    thumbnail : a small picture of it, as bytes of an image file; None if there is none
    labeller : who gave its label; None if unknown
    kept : whether somebody has confirmed the label
    """

    id: Id
    label: Any
    weight: float
    origin: str | None
    contributor: str | None
    at: datetime
    content: bytes | None
    thumbnail: bytes | None
    labeller: str | None
    kept: bool


def records(file: File, held: HeldState, ids: Any = None) -> list[Record]:
    """The metadata of these examples, or of all."""
    journal = Journal(file, held.numbers)
    names = iter(held.index if ids is None else context_of(held, journal).chosen(ids))
    found: list[Record] = []
    kept = journal.kept()
    # Hashes are checked with the vectors: a few rows at a time, or all would be in memory.
    while batch := list(islice(names, _AT_ONCE)):
        versions = journal.versions(held.index[one][0] for one in batch)
        vectors = journal.vectors(one.vector for one in versions)
        givers = journal.givers(versions)
        with file.understood("examples"):
            found += [
                _record(name, one, vectors[one.vector], whose, one.row in kept)
                for name, one, whose in zip(batch, versions, givers, strict=True)
            ]
    return found


def records_of(file: File, versions: Mapping[Id, Version]) -> list[Record]:
    """The metadata of versions by the ids of their examples."""
    every = list(versions.values())
    journal = Journal(file, Numbers())
    vectors, givers = journal.vectors(one.vector for one in every), journal.givers(every)
    with file.understood("examples"):
        return [
            _record(name, one, vectors[one.vector], whose, kept=False)
            for name, one, whose in zip(versions, every, givers, strict=True)
        ]


def contributors(file: File, held: HeldState) -> list[str | None]:
    """The giver of the features of each example; None if unknown."""
    texts = Journal(file, held.numbers).feature_givers()
    with file.understood("examples"):
        names = {text: kinds.string(text) for text in set(texts.values())}
        return [names[texts[vector]] for _, vector in held.index.values()]


def _record(name: Id, version: Version, vector: Row, givers: Givers, kept: bool) -> Record:
    """The record of a version and its row of vectors; raises any error if they are damaged."""
    content, thumbnail = vector[3:]
    return Record(
        name,
        loads(version.label),
        float(version.weight),
        kinds.string(version.origin),
        kinds.string(givers.features),
        moment_of(version.at),
        content,
        thumbnail,
        kinds.string(givers.label),
        kept,
    )


def content(data: bytes, label: Any) -> bytes:
    """The SHA-256 of what a source says of an example, and of the label that it gives it."""
    return sha256(dumps(label).encode() + b"\0" + data).digest()


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
class Forgotten:
    """The result of `forget`.

    count : how many examples were removed
    traces : where bytes of them may be left, in pages that hold examples, in free ones, and in
        files beside; nowhere, if all is well
    warning : the same as a sentence, with the cause and what to do; "" if all is well
    changed : how many examples stay, with the features or the label that they had before
    kept : what stays though they may have had a part in it, each in a sentence
    erased : how many examples stay as they are, and lost an earlier version
    """

    count: int
    traces: list[Trace]
    warning: str = ""
    changed: int = 0
    kept: tuple[str, ...] = ()
    erased: int = 0

    @property
    def left(self) -> str:
        """Sentences about everything that may be left of them, or ""."""
        return " ".join(filter(None, (self.warning, *self.kept)))


@final
class Preview(NamedTuple):
    """The examples that `forget` would change.

    leaving : the ids of the examples that would leave
    changing : the ids of the examples that would stay, with the features or the label that they had
        before
    erasing : the ids of the examples that would stay as they are, and lose an earlier version
    """

    leaving: list[Id]
    changing: list[Id]
    erasing: list[Id]


@final
@dataclass(frozen=True)
class Status:
    """The content of a file, in numbers.

    kind : of model
    examples : how many there are
    classes : how many there are of each class, or of each target none
    features : how many numbers describe an example
    names : of the features, or None
    contributors : of how many examples each gave the features, the label or both; None stands for
        those of which neither giver is known
    entries, undone : those of the journal, and how many of these are undone
    size : of the file, in bytes
    parameters : of the estimator
    kernel : in use, in words; None for linear models
    noise : in use, 1 / C of a least-squares SVM; None for linear models
    chosen : the names of the parameters that the examples choose
    follows : whether they choose again after every edit
    choosers_held : whether all examples that chose are held; else some may have left
    changed : the time of the last entry; None if there is none
    format : of the file
    """

    path: Path
    kind: str
    examples: int
    classes: dict[Any, int]
    features: int | None
    names: tuple[Any, ...] | None
    contributors: dict[str | None, int]
    entries: int
    undone: int
    size: int
    parameters: dict[str, Any]
    kernel: str | None
    noise: float | None
    chosen: tuple[str, ...]
    follows: bool
    choosers_held: bool
    changed: datetime | None
    format: int = FORMAT


def status(path: Path, file: File, held: HeldState) -> Status:
    """The status of a file within a transaction."""
    kind = str(held.facts["kind"])
    run = file.connection.execute
    grouped = "SELECT label, count(*) FROM examples WHERE live = 1 GROUP BY label ORDER BY label"
    classes = run(grouped).fetchall()
    last, entries, undone = run("SELECT max(at), count(*), total(undone) FROM journal").fetchone()
    can = kinds.capabilities(kind)
    columns = held.facts["columns"] or {"count": None, "names": None}
    with file.understood("examples"):
        return Status(
            path,
            kind,
            len(held.index),
            {} if can.regression else {loads(text): n for text, n in classes},
            columns["count"],
            kinds.valued(columns["names"]),
            _contributors(Journal(file, held.numbers), held),
            entries,
            int(undone),
            file.path.stat().st_size,
            held.estimator.get_params(deep=False),
            repr(held.estimator.kernel_) if held.fitted and not can.has_sums else None,
            held.facts["state"]["noise"] if held.fitted and not can.has_sums else None,
            left_to_examples(held.estimator),
            held.fitted and (can.has_sums or kinds.follows(held.estimator, held.facts["state"])),
            choosers_held(run("SELECT number, verb, undone FROM journal")),
            None if last is None else moment_of(last),
        )


def _contributors(journal: Journal, held: HeldState) -> dict[str | None, int]:
    """The number of examples to which each contributor gave features or label."""
    features = journal.feature_givers()
    rows = "SELECT row, contributor FROM examples WHERE live = 1"
    labels = dict(journal.file.connection.execute(rows)) | journal.labellers()
    counts: Counter[str | None] = Counter()
    for row, vector in held.index.values():
        givers = {features[vector], labels[row]}
        counts.update(givers - {None} or givers)
    known = sorted((name for name in counts if name is not None), key=str)
    return {kinds.string(name): counts[name] for name in (None, *known) if counts[name]}


# -- what stays when examples are forgotten ------------------------------------------------------

# The verb of an entry that sets parameters which `tune` found.
TUNE = "tune"
# Verbs of entries that bring the first examples, and of those that let the examples held choose.
_BEGIN, _CHOOSE = ("add", "learn"), (*FORGETS, "refresh_settings")


def choosers_held(entries: Iterable[tuple[int, str, int]]) -> bool:
    """Whether all examples that chose the settings are held: no entry came since they did.

    entries : number, verb and undone of those of the journal

    >>> choosers_held([(1, "learn", 0), (2, "relabel", 1)])
    True
    >>> choosers_held([(1, "learn", 0), (2, "add", 0)])
    False
    """
    verbs = [verb for _, verb, undone in sorted(entries) if not undone]
    if len(verbs) == 1 and verbs[0] in _BEGIN:
        return True
    return bool(verbs) and verbs[-1] in _CHOOSE


def staying(facts: dict[str, Any], verbs: Iterable[str], problem: str = "") -> tuple[str, ...]:
    """Sentences about things that stay in a file after a forget.

    verbs : of the entries of the journal up to the last one that forgets
    problem : why the examples that are left cannot choose the settings; "" if they can
    """
    found = []
    if problem:
        why = "The settings that examples had chosen stay, since those left cannot choose others"
        found.append(f"{why}: {problem}")
    pictures = facts["notes"].get("pictures")
    if pictures and "words" in pictures:
        found.append("The visual words, learnt from a sample of the first pictures, stay.")
    if facts.get("supports"):
        found.append("The supports stay as they were given.")
    if path := facts.get("source", {}).get("path"):
        name = PurePosixPath(path).name
        found.append(f"The source, {name}, stays, with all that it has learnt.")
    if TUNE in verbs:
        found.append("Parameters that tune found stay: tune again.")
    return tuple(found)
