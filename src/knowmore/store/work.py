"""Edits of a file: what was held before, what is written, and what is held then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from json import dumps
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from knowmore.arguments import a_type
from knowmore.arrays import Array
from knowmore.edits import Id, as_ids, is_mask
from knowmore.errors import InvalidInput, NotWritten, UnknownId
from knowmore.estimators.linear import LinearGP
from knowmore.examples import Examples, new_serials
from knowmore.store import caches, codec, kinds, temperatures, thresholds
from knowmore.store.changing import Holding
from knowmore.store.journal import SETTINGS, Journal, New, Numbers, Version
from knowmore.store.layout import File
from knowmore.store.schema import Row
from knowmore.tables import masked


@dataclass(frozen=True)
class Held:
    """What is in memory of a file, as of one state of it.

    stamp : that of the state
    estimator : unfitted if nothing was learnt yet
    facts : all of the file
    index : the row and the vector of the live version of each id, in the order of the examples
    """

    stamp: str
    estimator: Any
    facts: dict[str, Any]
    numbers: Numbers
    index: dict[Id, tuple[int, int]] = field(repr=False)

    @property
    def fitted(self) -> bool:
        """Whether anything was learnt yet."""
        return self.facts["state"] is not None


class About(NamedTuple):
    """What is known of new versions, one each; None where that of the version before stays."""

    contributors: list[str | None] | None
    origins: list[str | None] | None
    contents: list[bytes | None]
    thumbnails: list[bytes | None]

    @classmethod
    def of(
        cls, k: int, contributor: Any, origins: Any, contents: Any = None, thumbnails: Any = None
    ) -> About:
        """As it was given for k examples."""
        return cls(
            _texts("contributors", contributor, k),
            _texts("origins", origins, k),
            _blobs("contents", contents, k),
            _blobs("thumbnails", thumbnails, k),
        )

    def beside(self, old: Sequence[Version] | None) -> tuple[list[Any], list[Any]]:
        """Origins and contributors, those of the versions before where none are given."""
        none = [None] * len(self.contents)
        origins = none if old is None else [one.origin for one in old]
        contributors = none if old is None else [one.contributor for one in old]
        return (
            origins if self.origins is None else self.origins,
            contributors if self.contributors is None else self.contributors,
        )


class Work:
    """The edits of a transaction.

    held : what the next of them starts from
    after : what will be held, but for its stamp
    verb : of their entry, if there may be several
    lag : how many rows of a factor they change
    """

    def __init__(self, file: File, held: Held, verb: str | None = None) -> None:
        self.file, self._before = file, held
        self.journal = Journal(file, held.numbers, verb)
        # An index of its own: what is held changes by one assignment, at the end.
        self.after = replace(held, index=dict(held.index))
        self.held, self.lag = self.after, 0
        self._indexed: list[Callable[[dict[Id, tuple[int, int]]], object]] = []

    def step(self) -> None:
        """Hold what was edited so far, for further edits."""
        for change in self._indexed:
            change(self.after.index)
        self._indexed.clear()
        numbers = self.journal.numbers
        facts = self.after.facts | {"numbers": list(numbers)}
        self.held = self.after = replace(self.after, facts=facts, numbers=numbers)

    def done(self) -> Held:
        """What is held now that all is written."""
        self.step()
        return replace(self.after, stamp=self.file.stamp)

    @property
    def holding(self) -> Holding:
        """What the verbs need."""
        return holding(self.held, self.journal)

    def versions(self, ids: Iterable[Id]) -> list[Version]:
        """The live versions of these ids."""
        return self.journal.versions(self.held.index[one][0] for one in ids)

    def doomed(self, ids: Any, contributor: str | None, origin: str | None) -> list[Version]:
        """The versions to delete: of these ids, of a contributor, or from an origin."""
        given = [one for one in (ids, contributor, origin) if one is not None]
        if len(given) != 1:
            raise InvalidInput("Give one of ids, contributor and origin: what is to be forgotten.")
        journal, column = self.journal, "contributor" if origin is None else "origin"
        if ids is not None:
            return self._of_ids(ids)
        name = contributor if origin is None else origin
        rows = journal.rows_where(column, [codec.text_of(name)])
        if not rows:
            raise UnknownId(
                f"The file holds nothing whose {column} is {name!r}. `knowmore status` lists the "
                f"contributors and origins that it knows; in Python, records() does."
            )
        # The versions that share a vector with these, such as other labels of it, go too.
        vectors = {one.vector for one in journal.versions(rows)}
        return journal.versions(journal.rows_where("vector", vectors))

    def _of_ids(self, ids: Any) -> list[Version]:
        """All versions of these ids, which are held or were."""
        held = tuple(self.held.index)
        names = masked(ids, held) if is_mask(ids) else as_ids(ids, ordered=False)
        texts = [codec.id_text(one) for one in names]
        versions = self.journal.versions(self.journal.rows_where("id", texts))
        if len(names) > len({one.id for one in versions}):
            self.holding.chosen(names)
        return versions

    # -- writing -----------------------------------------------------------------------------

    def enter(
        self,
        verb: str,
        estimator: Any,
        ids: tuple[Id, ...],
        labels: Array | None,
        weights: Array | None,
        vectors: list[tuple[bytes, bytes | None]] | None,
        about: About,
        old: list[Version] | None = None,
    ) -> None:
        """Write new versions of these ids.

        labels, weights, vectors : None for those of the versions before
        old : these, or None if there are none
        """
        before = old or []
        texts = [v.label for v in before] if labels is None else codec.label_texts(labels)
        if old is not None:
            heavy = [v.weight for v in before]
        else:
            # SQLite writes -0.0 as 0.0, which would have another hash.
            heavy = [1.0] * len(ids) if weights is None else (weights + 0.0).tolist()
        rows: Any
        if vectors is None:
            rows = [v.vector for v in before]
        else:
            pairs = zip(vectors, about.contents, about.thumbnails, strict=True)
            rows = [(*vector, content, thumbnail) for vector, content, thumbnail in pairs]
        new = New(ids, texts, heavy, rows, *about.beside(old))
        self._note(estimator, labels)
        first = self.journal.numbers.vector
        written = self.journal.write(verb, len(ids), new, [v.row for v in before])
        places = rows if vectors is None else range(first, first + len(ids))
        largest = max((one for one in ids if isinstance(one, int)), default=-1)
        next_id = max(self.journal.numbers.next_id, largest + 1)
        self.journal.numbers = self.journal.numbers._replace(next_id=next_id)
        moved = vectors is not None and old is not None

        def change(index: dict[Id, tuple[int, int]]) -> None:
            if moved:
                for one in ids:
                    del index[one]
            index.update(zip(ids, zip(written, places, strict=True), strict=True))

        self._indexed.append(change)

    def forget(self, estimator: Any, versions: list[Version], gone: list[Id], count: int) -> None:
        """Delete versions; `gone` are the ids of those that are live."""
        self._note(estimator, None)
        self.journal.write("forget", count)
        self.journal.delete_versions(versions)
        self._indexed.append(lambda index: [index.pop(one) for one in gone])

    def set(self, verb: str, estimator: Any, parameters: dict[str, Any]) -> None:
        """Write other settings."""
        self.after = replace(self.after, facts=self.after.facts | {"parameters": parameters})
        self._note(estimator, None)
        self.journal.write(verb, len(self.held.index))

    def turned(self, facts: dict[str, Any], load: Callable[[dict[str, Any]], Held]) -> None:
        """Hold what the file has after an entry was undone or done again.

        facts : those that change by it
        """
        numbers = {"numbers": list(self.journal.numbers)}
        self.after = load(self.held.facts | facts | numbers)

    def note(self, arrays: Mapping[str, Array], notes: dict[str, Any]) -> None:
        """Keep arrays and notes beside the examples."""
        number = self.journal.numbers.array
        kept = [caches.Kept(name, array) for name, array in arrays.items()]
        number, forms = caches.keep(self.file, number, kept)
        self.journal.numbers = self.journal.numbers._replace(array=number)
        facts = self.after.facts
        both = {"arrays": facts["arrays"] | forms, "notes": facts["notes"] | notes}
        self.after = replace(self.after, facts=facts | both)

    def _note(self, estimator: Any, labels: Array | None) -> None:
        """Take an estimator as that which is held, with what its examples have chosen."""
        facts = dict(self.after.facts)
        if hasattr(estimator, "n_features_in_"):
            facts["columns"] = kinds.columns(estimator)
            facts["state"] = kinds.state(estimator)
            # While nothing is held, labels may be of any type.
            if labels is not None and (facts["labels"] is None or not self.held.index):
                facts["labels"] = list(codec.LabelType.of(labels))
        self.after = replace(self.after, estimator=estimator, facts=facts)

    def _settings(self) -> tuple[str | None, str | None]:
        """Those before and after, as texts, if they differ."""
        before, after = (
            dumps({name: facts[name] for name in SETTINGS})
            for facts in (self._before.facts, self.after.facts)
        )
        return (None, None) if before == after else (before, after)

    def finish(self, cache: caches.FactorCache | None) -> None:
        """Write the entry and the facts, and delete what caches know of what is no longer."""
        self.journal.write_entry(self._settings())
        if self.journal.numbers.position != self._before.numbers.position:
            thresholds.drop(self.file)
            temperatures.drop(self.file)
        number, gone = self.journal.numbers.array, self.journal.gone
        if gone and isinstance(self.after.estimator, LinearGP):
            position = self.journal.numbers.position
            number = caches.write_sums(self.file, number, self.after.estimator, position)
        elif gone and cache is not None:
            number = cache.cut(self.file, number, gone)
        numbers = self.journal.numbers = self.journal.numbers._replace(array=number)
        facts, old = self.after.facts | {"numbers": list(numbers)}, self._before.facts
        self.file.write_facts({name: one for name, one in facts.items() if old.get(name) != one})


class Block:
    """Several edits in one transaction, which the first of them begins.

    begin : that
    """

    def __init__(self, begin: Callable[[], Work]) -> None:
        self._begin, self._thread = begin, get_ident()
        self._work: Work | None = None
        self._failed = False

    @property
    def held(self) -> Held | None:
        """What the thread of the block holds after the edits so far; None for all others."""
        mine = self._work is not None and self._thread == get_ident()
        return self._work.held if mine else None  # type: ignore[union-attr]

    @contextmanager
    def edit(self) -> Iterator[Work]:
        """One of the edits."""
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


def holding(held: Held, journal: Journal) -> Holding:
    """What the verbs need of what is held."""

    def read(ids: tuple[Id, ...]) -> Examples:
        versions = journal.versions(held.index[one][0] for one in ids)
        vectors = journal.vectors(one.vector for one in versions)
        with journal.file.understood("examples"):
            return examples_of(held.facts, versions, vectors)

    return Holding(held.estimator, held.index, held.numbers.next_id, read)


def all_examples(
    held: Held, journal: Journal, known: dict[Id, tuple[int, int]], before: Examples | None
) -> Examples:
    """All examples that are held, in their order.

    known, before : the index and the examples of another state; only what differs is read again
    """
    index, read = held.index, holding(held, journal).read
    new = tuple(one for one, at in index.items() if known.get(one) != at)
    if before is None or 2 * len(new) > len(index):
        return read(tuple(index))
    parts = [before, *([read(new)] if new else [])]
    place = {one: row for row, one in enumerate((*before.names, *new))}
    rows = [place[one] for one in index]
    X, labels, weights, side = (
        np.concatenate([getattr(one, column) for one in parts])[rows]
        for column in ("X", "labels", "weights", "side")
    )
    serials, next_id = new_serials(len(rows)), held.numbers.next_id
    return Examples.restored(tuple(index), X, labels, weights, serials, next_id, side)


def examples_of(
    facts: dict[str, Any], versions: Sequence[Version], vectors: dict[int, Row]
) -> Examples:
    """These versions as examples, in their order; raises any error if they make no sense."""
    d = facts["columns"]["width"]
    if len(versions) == 0:
        labels = codec.LabelType(*facts["labels"]).read([])
        return Examples.restored((), np.empty((0, d)), labels, np.empty(0), new_serials(0), 0)
    rows = [vectors[one.vector] for one in versions]
    X = codec.read_rows([row[1] for row in rows], d)
    side = None
    if rows[0][2] is not None:
        side = np.stack([np.frombuffer(row[2], "<f8") for row in rows])
    weights = np.array([one.weight for one in versions], dtype=float)
    if not (weights >= 0).all() or np.isinf(weights).any():
        raise ValueError("a weight below zero")
    labels = codec.LabelType(*facts["labels"]).read([one.label for one in versions])
    ids = [codec.read_id(one.id) for one in versions]
    next_id = Numbers(*facts["numbers"]).next_id
    return Examples.restored(ids, X, labels, weights, new_serials(len(ids)), next_id, side)


def vector_blobs(X: Array, side: Array | None, given: Any) -> list[tuple[bytes, bytes | None]]:
    """The bytes of vectors X (k, d) and of what stands beside them.

    given : the table that they were
    """
    rows = codec.row_bytes(codec.narrowed(X, given))
    if side is None or not side.shape[1]:
        return [(row, None) for row in rows]
    return list(zip(rows, codec.row_bytes(np.ascontiguousarray(side, "<f8")), strict=True))


def _texts(name: str, given: Any, k: int) -> list[str | None] | None:
    if given is None:
        return None
    each = [given] * k if isinstance(given, str) else _listed(name, given)
    _check_count(name, each, k)
    return [codec.text_of(one) for one in each]


def _blobs(name: str, given: Any, k: int) -> list[bytes | None]:
    each: list[bytes | None] = [None] * k if given is None else _listed(name, given)
    _check_count(name, each, k)
    for one in each:
        if one is not None and not isinstance(one, bytes):
            raise InvalidInput(f"{name} are bytes or None, but one is {a_type(one)}.")
    return each


def _listed(name: str, given: Any) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise InvalidInput(f"{name} is {a_type(given)}. Give a list: one for each example.")
    return list(given)


def _check_count(name: str, each: list[Any], k: int) -> None:
    if len(each) != k:
        raise InvalidInput(f"{len(each)} {name} were given for {k} examples. Give one each.")
