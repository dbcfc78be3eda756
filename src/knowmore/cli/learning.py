"""`knowmore learn`: what a source holds becomes what the model holds.

It can be repeated: what the model has is skipped, what changed in the source is replaced, and what
vanished from it is reported, or forgotten. What it learns is one entry of the journal, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

import numpy as np

from knowmore.cli.making import Settled, made, settled
from knowmore.cli.model import Model, opened, same_id
from knowmore.cli.showing import Progress
from knowmore.cli.sources import Block, Source, Wanted, open_source
from knowmore.cli.sources.records import content_id
from knowmore.edits import Id
from knowmore.errors import KnowmoreError, RepeatedId
from knowmore.store.reports import content

# Numbers are learnt so many bytes at a time.
_BYTES = 2**28
# So many different numbers, each in at most so few examples, seem to be values to predict.
_MANY, _FEW = 20, 5
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """The options of the command."""

    model: Path
    source: str
    label: str | None
    id: str | None
    contributor: str | None
    origin: str | None
    sync: bool
    dry_run: bool
    again: bool = False


@dataclass
class Learnt:
    """How many examples were added, were known, were replaced, have another place in the source,
    vanished from it, and were forgotten for it; how many records were forgotten before and are
    skipped, were the same as another, and could not be read."""

    added: int = 0
    skipped: int = 0
    replaced: int = 0
    moved: int = 0
    vanished: int = 0
    forgotten: int = 0
    forgotten_before: int = 0
    repeated: int = 0
    unreadable: int = 0
    examples: int = 0
    traces: int = 0
    # How many records name their own contributor.
    named: int = 0
    # With --sync: how many ids of the source are held from each other source, by its name.
    elsewhere: dict[str, int] = field(default_factory=dict)
    # Why bytes of what was forgotten may be left.
    warning: str = ""
    # What stays though the forgotten may have had a part in it.
    kept: tuple[str, ...] = ()
    # How many different labels there are if they seem to be values, not classes.
    values: int = 0
    # "content" if the records have no ids, so that their hashes serve as such.
    ids: str = "given"


@dataclass(frozen=True, eq=False)
class Part:
    """Records that are learnt together, each with an id and a content."""

    X: Any
    labels: list[Any]
    ids: list[Id]
    contents: list[bytes]
    contributors: list[str | None]
    places: list[str]
    # Whether the ids are made from the contents, so that the same row has the same id.
    hashed: bool = False

    def of(self, rows: list[int]) -> Part:
        """Some of the records."""

        def some(column: list[T]) -> list[T]:
            return [column[i] for i in rows]

        return Part(
            self.X[rows] if isinstance(self.X, np.ndarray) else some(self.X),
            some(self.labels),
            some(self.ids),
            some(self.contents),
            some(self.contributors),
            some(self.places),
            self.hashed,
        )


class _Edit(NamedTuple):
    """What a part of a source changes: what it settles, and records with vectors for X."""

    first: Settled
    new: Part
    changed: Part
    # Records whose labels were corrected by hand, and stay.
    corrected: Part
    # Under their new ids, with all else that is held; the ids that they had, and who gave their
    # labels; and what others are labelled, with who says so.
    moved: Part
    was: list[Id]
    labellers: list[str | None]
    relabelled: dict[Id, tuple[Any, str | None]]


def learn(request: Request, progress: Progress) -> tuple[Learnt, Source]:
    """Learn a source; a model that is not there is made, unless its first examples fail."""
    path = request.model
    if path.exists():
        with opened(path) as model:
            wanted = model.wanted(request.label, request.id)
            source = open_source(request.source, wanted)
            return _Learning(model, request, source, progress).run(), source
    source = open_source(request.source, Wanted(request.label, request.id))
    if request.dry_run:
        return _counted(source), source
    with made(path) as model:
        return _Learning(model, request, source, progress).run(), source


def _counted(source: Source) -> Learnt:
    """What a new model would learn."""
    found, seen = Learnt(), _Seen(source)
    for part in _parts(source):
        part = seen.new(part)
        found.added += len(_decodable(source, part, [*range(len(part.ids))]))
    found.examples, found.values = found.added, seen.values()
    seen.tell(found)
    return found


class _Learning:
    """One source on its way into a model."""

    def __init__(self, model: Model, request: Request, source: Source, progress: Progress) -> None:
        self.model, self.request, self.source, self.progress = model, request, source, progress
        self.origin = request.origin or model.origin_of(request.source)
        self.held = model.held()
        self.seen = _Seen(source)
        self.found = Learnt()
        # The ids under which pictures that have moved are held.
        self.moved: list[Id] = []

    def run(self) -> Learnt:
        """Learn all of it, and say what was done."""
        self.model.check(self.source)
        edits: Iterator[_Edit] = filter(None, map(self._edit, _parts(self.source)))
        if self.source.pictures:
            # It takes long to describe them; others may write until all are.
            edits = iter(list(edits))
        with self.model.store.together("learn"):
            for edit in edits:
                self._make(edit)
        self._follow()
        found, request = self.found, self.request
        self.seen.tell(found)
        if not self.model.is_regression:
            found.values = self.seen.values()
        changed = found.added - found.forgotten
        found.examples = len(self.held) + (changed if request.dry_run else 0)
        if not request.dry_run:
            found.examples = len(self.model.store.ids_)
        return found

    def _edit(self, part: Part) -> _Edit | None:
        """What the records of a part change; None if nothing, or if that is not asked for."""
        part = self.seen.new(part, self.held)
        known = [self.held.get(one) for one in part.ids]
        new = [i for i, record in enumerate(known) if record is None]
        moved = self._moved(part, new)
        new = [i for i in new if i not in moved]
        changed = [
            i
            for i, record in enumerate(known)
            if record is not None and record.content != part.contents[i]
        ]
        refused = self._forgotten_before(part, new, changed)
        new, changed = ([i for i in rows if i not in refused] for rows in (new, changed))
        self._check_origins(part.of(changed))
        self.found.forgotten_before += len(refused)
        learnt = len(new) + len(changed) + len(moved)
        self.found.skipped += len(known) - learnt - len(refused)
        self.found.moved += len(moved)
        self.moved += moved.values()
        # Learning a label is cheap, so labels are checked even if only the others are known.
        labels = self.model.labels(part.labels, part.places).tolist()
        corrected = self._corrected(part, labels, changed)
        part = replace(part, labels=labels)
        if self.request.dry_run:
            self.found.added += len(_decodable(self.source, part, new))
            self.found.replaced += len(_decodable(self.source, part, changed))
            return None
        if not (new or changed or moved):
            return None
        first = settled(self.model, self.source, part.X, self.progress)
        there = part.of([] if not self.request.sync else list(moved))
        labellers: list[str | None] = []
        if there.ids:
            there, labellers = self._as_held(there, list(moved.values()))
        relabelled = {} if self.request.sync else self._followed(part, moved)
        others = [i for i in changed if i not in corrected]
        added, renewed, kept = (self._described(part.of(rows)) for rows in (new, others, corrected))
        was = list(moved.values()) if there.ids else []
        return _Edit(first, added, renewed, kept, there, was, labellers, relabelled)

    def _forgotten_before(self, part: Part, new: list[int], changed: list[int]) -> set[int]:
        """Which records were forgotten in this model: a new one by its id, or by its content.

        Rows of two people may have the same numbers, so the content counts for pictures alone, and
        for a row under the id that it had.
        """
        if self.request.again or not (new or changed):
            return set()
        marks = self.model.store.was_forgotten(part.ids, part.contents)
        pictures = self.source.pictures
        refused = {i for i in new if marks[i].id or (pictures and marks[i].content)}
        return refused | {i for i in changed if marks[i].record}

    def _moved(self, part: Part, new: list[int]) -> dict[int, Id]:
        """Which of the new pictures are held under a path that is no longer there, and that id."""
        gone: dict[bytes | None, list[Id]] = {}
        if not self.source.pictures:
            return {}
        for one in self._gone():
            gone.setdefault(self.held[one].content, []).append(one)
        folders = {_folder(one) for ids in gone.values() for one in ids}
        found: dict[int, Id] = {}
        for i in new if gone else ():
            data = part.X[i].read()
            for same in (gone.get(content(data, folder)) for folder in folders):
                if same and i not in found:
                    found[i] = same.pop(0)
        return found

    def _as_held(self, part: Part, ids: list[Id]) -> tuple[Part, list[str | None]]:
        """Pictures that were held under these ids, as they are known, and who gave their labels."""
        examples, held = self.model.store.examples, [self.held[one] for one in ids]
        labelled = [
            (record.label, record.labeller) if label == _folder(record.id) else (label, giver)
            for record, label, giver in zip(held, part.labels, self._whose(part, ids), strict=True)
        ]
        labels, labellers = map(list, zip(*labelled, strict=True))
        who = [record.contributor for record in held]
        X = examples.X[examples.rows(ids)]
        return replace(part, X=X, labels=labels, contributors=who), labellers

    def _followed(self, part: Part, moved: dict[int, Id]) -> dict[Id, tuple[Any, str | None]]:
        """The labels of pictures that are in another folder now, unless corrected by hand."""
        whose = self._whose(part.of(list(moved)), list(moved.values()))
        return {
            one: (part.labels[i], giver)
            for (i, one), giver in zip(moved.items(), whose, strict=True)
            if part.labels[i] != self.held[one].label == _folder(one)
        }

    def _whose(self, part: Part, ids: list[Id]) -> list[str | None]:
        """Who says what the source says of these examples: who gave it, else who gave them."""
        return [
            given or self.request.contributor or self.held[one].contributor
            for given, one in zip(part.contributors, ids, strict=True)
        ]

    def _described(self, part: Part) -> Part:
        """The records that can be used, with vectors for X."""
        if not part.ids:
            return part
        if self.source.pictures:
            self.progress(0.0, f"describing {len(part.ids)} pictures")
        block = Block(part.X, part.labels, part.ids, part.contributors, part.places)
        X, kept = self.model.rows(self.source, block, self.progress)
        return replace(part.of(kept), X=X)

    def _make(self, edit: _Edit) -> None:
        """Learn what has changed."""
        first, new, changed, corrected, moved, was, labellers, relabelled = edit
        store = self.model.store
        if new.ids or changed.ids or corrected.ids:
            first.keep(store)
        if new.ids:
            self._add(new, [one or self.request.contributor for one in new.contributors])
        if moved.ids:
            held = [self.held[one] for one in was]
            self._add(moved, moved.contributors, [record.weight for record in held])
            store.relabel(moved.ids, moved.labels, contributor=labellers)
            pairs = zip(moved.ids, moved.labels, held, strict=True)
            store.keep([one for one, label, old in pairs if old.kept and old.label == label])
        if relabelled:
            labels, givers = zip(*relabelled.values(), strict=True)
            store.relabel(list(relabelled), list(labels), contributor=givers)
        if changed.ids:
            self._replace(changed, changed.labels)
        if corrected.ids:
            self._replace(corrected, None)
        self.found.added += len(new.ids)
        self.found.replaced += len(changed.ids) + len(corrected.ids)

    def _add(
        self, part: Part, contributors: list[str | None], weights: list[float] | None = None
    ) -> None:
        self.model.store.add(
            part.X,
            part.labels,
            part.ids,
            weights,
            contributor=contributors,
            origins=self.origin,
            contents=part.contents,
            columns=self.source.columns,
        )

    def _replace(self, part: Part, labels: list[Any] | None) -> None:
        """Give examples the features that the source has now, and these labels unless None."""
        self.model.store.replace(
            part.ids,
            part.X,
            labels,
            contributor=self._whose(part, part.ids),
            origins=self.origin,
            contents=part.contents,
        )

    def _corrected(self, part: Part, labels: list[Any], changed: list[int]) -> list[int]:
        """The changed records whose labels were corrected by hand, and stayed in the source."""
        other = [i for i in changed if labels[i] != self.held[part.ids[i]].label]
        if not other or self.source.pictures:
            # A picture that has the same path is in the same folder.
            return other
        examples = self.model.store.examples
        X = np.asarray(examples.X[examples.rows([part.ids[i] for i in other])], dtype="<f8")
        return [
            i
            for i, row in zip(other, X, strict=True)
            if content(row.tobytes(), part.labels[i]) == self.held[part.ids[i]].content
        ]

    def _check_origins(self, part: Part) -> None:
        """Pictures of two folders may have the same names by chance: none is replaced for that."""
        if not self.source.pictures:
            return
        for one in part.ids:
            origin = self.held[one].origin
            if origin != self.origin:
                raise RepeatedId(
                    f"The model holds another picture {one!r}, from {origin!r}. Rename one of "
                    f"them; or, if this is the same folder elsewhere, say --origin {origin}."
                )

    def _follow(self) -> None:
        """What vanished from the source is counted, and forgotten if that was asked for."""
        if self.request.source == "-" and not self.request.sync:
            return
        gone = self._gone()
        vanished = len(gone) - len(self.moved)
        self.found.vanished = vanished
        if self.request.sync:
            self.found.elsewhere = self._elsewhere()
        if not (gone and self.request.sync):
            return
        self.found.forgotten = vanished
        if not self.request.dry_run:
            # What comes back to the source is learnt again: nobody asked to forget it.
            done = self.model.store.forget(gone, mark=False)
            self.found.traces, self.found.warning = len(done.traces), done.warning
            self.found.kept = done.kept

    def _elsewhere(self) -> dict[str, int]:
        """How many of the ids that came are held from each other source that has a name."""
        origins = (self.held[one].origin for one in self.seen.places if one in self.held)
        return dict(Counter(one for one in origins if one is not None and one != self.origin))

    def _gone(self) -> list[Id]:
        """The ids of what this source had, and has not had so far."""
        return [
            one
            for one, record in self.held.items()
            if record.origin == self.origin and one not in self.seen.places
        ]


class _Seen:
    """The ids that came so far; one that comes again is an error, or the same row again."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.places: dict[Id, str] = {}
        self.labels: set[Any] = set()
        self.repeated = self.named = 0
        self.hashed = False

    def new(self, part: Part, held: Any = ()) -> Part:
        """The records of the part that did not come before, under the ids that are held."""
        kept = []
        self.hashed |= part.hashed
        self.labels.update(part.labels)
        for i, one in enumerate(part.ids):
            name = same_id(one, held)
            part.ids[i] = name
            if name not in self.places:
                self.places[name] = part.places[i]
                kept.append(i)
            elif part.hashed:
                self.repeated += 1
            else:
                raise RepeatedId(
                    f"{self.source.name!r} has the id {one!r} twice, in {self.places[name]} and in "
                    f"{part.places[i]}. Give each row an id of its own."
                )
        part = part if len(kept) == len(part.ids) else part.of(kept)
        self.named += sum(one is not None for one in part.contributors)
        return part

    def values(self) -> int:
        """How many different numbers the labels are; 0 if they seem to be classes.

        A guess: classes have names, or are few, or have many examples each.
        """
        many = len(self.labels) >= max(_MANY, len(self.places) / _FEW)
        return len(self.labels) if many and all(map(_is_number, self.labels)) else 0

    def tell(self, found: Learnt) -> None:
        """Note how many came again, how many cannot be read, and what their ids and givers are."""
        found.named = self.named
        found.repeated, found.unreadable = self.repeated, len(self.source.skipped)
        found.ids = "content" if self.hashed else "given"


def _parts(source: Source) -> Iterator[Part]:
    """The records of a source, some at a time; pictures, which are read later, all at once."""
    waiting: list[Block] = []
    size = 0
    for block in source.blocks():
        waiting.append(block)
        size += 0 if source.pictures else np.asarray(block.X).nbytes
        if size >= _BYTES:
            yield _joined(waiting, source)
            waiting, size = [], 0
    if waiting:
        yield _joined(waiting, source)


def _joined(blocks: list[Block], source: Source) -> Part:
    labels = [one for block in blocks for one in block.labels or ()]
    places = [one for block in blocks for one in block.places]
    contributors = [one for block in blocks for one in block.contributors]
    hashed = blocks[0].ids is None
    if source.pictures:
        pictures = [one for block in blocks for one in block.X]
        return _readable(source, pictures, labels, contributors, places)
    contents = [one for block in blocks for one in block.contents()]
    ids: list[Id] = [content_id(one) for one in contents]
    if not hashed:
        ids = [one for block in blocks for one in block.ids or ()]
    X = np.concatenate([np.asarray(block.X) for block in blocks])
    return Part(X, labels, ids, contents, contributors, places, hashed)


def _is_number(label: Any) -> bool:
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False


def _folder(one: Id) -> str:
    """The label that a picture had in its source."""
    return PurePosixPath(str(one)).parent.name


def _decodable(source: Source, part: Part, rows: list[int]) -> list[int]:
    """Those of the rows that can be learnt; pictures are tried, and noted if they cannot."""
    if not source.pictures:
        return rows
    from knowmore.images.reading import small
    from knowmore.images.storage import LONGEST

    for i in rows:
        name = part.X[i].name
        try:
            small(part.X[i].read(), repr(name), LONGEST)
        except KnowmoreError as error:
            source.skipped[name] = str(error).removeprefix(f"{name!r} ")
    return [i for i in rows if part.X[i].name not in source.skipped]


def _readable(source: Source, pictures: Any, labels: Any, contributors: Any, places: Any) -> Part:
    """The pictures whose bytes can be read; the others are noted as skipped."""
    contents: list[bytes] = []
    for picture, label in zip(pictures, labels, strict=True):
        try:
            contents.append(content(picture.read(), label))
        except (KnowmoreError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error).removeprefix(f"{picture.name!r} ")
            source.skipped[picture.name] = f"cannot be read: {why}"
            contents.append(b"")
    kept = [i for i, one in enumerate(contents) if one]
    ids = [picture.name for picture in pictures]
    return Part(pictures, labels, ids, contents, contributors, places).of(kept)
