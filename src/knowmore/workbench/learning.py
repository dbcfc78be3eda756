"""`knowmore learn`: what a source holds becomes what the model holds.

It can be repeated: what the model has is skipped, what changed in the source is replaced, and what
vanished from it is reported, or forgotten. What it learns is one entry of the journal, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowmore._base import Id
from knowmore.errors import RepeatedId
from knowmore.store.reports import content
from knowmore.workbench.batches import (
    LearnBatch,
    SeenRecords,
    batches_of,
    decodable,
    folder_label,
)
from knowmore.workbench.making import Settled, made, settled
from knowmore.workbench.model import OpenModel, Progress, opened
from knowmore.workbench.sources import RecordBlock, Source, Wanted, open_source


@dataclass(frozen=True)
class LearnOptions:
    """The source to learn, the model to teach, and the choices of the user.

    model : the file, made if it is not there
    source : a folder, a table, or "-" for standard input
    label, id : the names of these columns; None for the usual ones
    contributor : who gave the examples, where the source names nobody
    origin : what to call the source; None for its path
    sync : whether to forget examples that vanished from the source
    dry_run : whether only to count
    again : whether to learn examples that were forgotten before
    """

    model: Path
    source: str
    label: str | None = None
    id: str | None = None
    contributor: str | None = None
    origin: str | None = None
    sync: bool = False
    dry_run: bool = False
    again: bool = False


@dataclass
class Learnt:
    """Counts of a source that was learnt.

    added, skipped, replaced : new examples, known ones, and known ones that changed
    moved, vanished, forgotten : examples in another place of the source, no longer in the source,
        and forgotten for that
    forgotten_before, repeated, unreadable : records skipped because they were forgotten before,
        records equal to another, and records that cannot be read
    """

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
    # Records that name their own contributor.
    named: int = 0
    # With --sync: the number of ids that are held from each other source, by its name.
    elsewhere: dict[str, int] = field(default_factory=dict)
    # Why bytes of what was forgotten may be left.
    warning: str = ""
    # Sentences on settings and words that stay, though forgotten examples may have shaped them.
    kept: tuple[str, ...] = ()
    # The number of different labels if they seem to be values, not classes; else 0.
    values: int = 0
    # "content" if the records have no ids, so that their hashes serve as such.
    ids: str = "given"


class _Edit(NamedTuple):
    """The changes by a batch of a source: its notes, and records with vectors for X."""

    first: Settled
    new: LearnBatch
    changed: LearnBatch
    # Records whose labels were corrected by hand, and stay.
    corrected: LearnBatch
    # Under their new ids, with all else that is held; the ids that they had, and who gave their
    # labels; and what others are labelled, with who says so.
    moved: LearnBatch
    was: list[Id]
    labellers: list[str | None]
    relabelled: dict[Id, tuple[Any, str | None]]


def learn(request: LearnOptions, progress: Progress) -> tuple[Learnt, Source]:
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
    """The counts for a model that is not there yet."""
    found, seen = Learnt(), SeenRecords(source)
    for part in batches_of(source):
        part = seen.new(part)
        found.added += len(decodable(source, part, [*range(len(part.ids))]))
    found.examples, found.values = found.added, seen.values()
    seen.tell(found)
    return found


class _Learning:
    """The state of learning a source."""

    def __init__(
        self, model: OpenModel, request: LearnOptions, source: Source, progress: Progress
    ) -> None:
        self.model, self.request, self.source, self.progress = model, request, source, progress
        self.origin = request.origin or model.origin_of(request.source)
        self.held = model.held()
        self.seen = SeenRecords(source)
        self.found = Learnt()
        # The ids under which pictures that have moved are held.
        self.moved: list[Id] = []

    def run(self) -> Learnt:
        """Learn all of it, and say what was done."""
        self.model.check(self.source)
        edits: Iterator[_Edit] = filter(None, map(self._edit, batches_of(self.source)))
        if self.source.pictures:
            # It takes long to describe them; others may write until all are.
            edits = iter(list(edits))
        with self.model.store.together("learn"):
            for edit in edits:
                self._make(edit)
        self._follow()
        found, request = self.found, self.request
        self.seen.tell(found)
        if not self.model.predicts_values:
            found.values = self.seen.values()
        changed = found.added - found.forgotten
        found.examples = len(self.held) + (changed if request.dry_run else 0)
        if not request.dry_run:
            found.examples = len(self.model.store.ids_)
        return found

    def _edit(self, part: LearnBatch) -> _Edit | None:
        """The changes by a batch; None if nothing changes, or for a dry run."""
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
            self.found.added += len(decodable(self.source, part, new))
            self.found.replaced += len(decodable(self.source, part, changed))
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

    def _forgotten_before(self, part: LearnBatch, new: list[int], changed: list[int]) -> set[int]:
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

    def _moved(self, part: LearnBatch, new: list[int]) -> dict[int, Id]:
        """Which of the new pictures are held under a path that is no longer there, and that id."""
        gone: dict[bytes | None, list[Id]] = {}
        if not self.source.pictures:
            return {}
        for one in self._gone():
            gone.setdefault(self.held[one].content, []).append(one)
        folders = {folder_label(one) for ids in gone.values() for one in ids}
        found: dict[int, Id] = {}
        for i in new if gone else ():
            data = part.X[i].read()
            for same in (gone.get(content(data, folder)) for folder in folders):
                if same and i not in found:
                    found[i] = same.pop(0)
        return found

    def _as_held(self, part: LearnBatch, ids: list[Id]) -> tuple[LearnBatch, list[str | None]]:
        """Pictures that were held under these ids, as they are known, and who gave their labels."""
        examples, held = self.model.store.examples, [self.held[one] for one in ids]
        labelled = [
            (record.label, record.labeller) if label == folder_label(record.id) else (label, giver)
            for record, label, giver in zip(held, part.labels, self._whose(part, ids), strict=True)
        ]
        labels, labellers = map(list, zip(*labelled, strict=True))
        who = [record.contributor for record in held]
        X = examples.X[examples.rows(tuple(ids))]
        return replace(part, X=X, labels=labels, contributors=who), labellers

    def _followed(self, part: LearnBatch, moved: dict[int, Id]) -> dict[Id, tuple[Any, str | None]]:
        """The labels of pictures that are in another folder now, unless corrected by hand."""
        whose = self._whose(part.of(list(moved)), list(moved.values()))
        return {
            one: (part.labels[i], giver)
            for (i, one), giver in zip(moved.items(), whose, strict=True)
            if part.labels[i] != self.held[one].label == folder_label(one)
        }

    def _whose(self, part: LearnBatch, ids: list[Id]) -> list[str | None]:
        """The contributor of each record; the contributor of the example held if none is named."""
        return [
            given or self.request.contributor or self.held[one].contributor
            for given, one in zip(part.contributors, ids, strict=True)
        ]

    def _described(self, part: LearnBatch) -> LearnBatch:
        """The records that can be used, with vectors for X."""
        if not part.ids:
            return part
        if self.source.pictures:
            self.progress(0.0, f"describing {len(part.ids)} pictures")
        block = RecordBlock(part.X, part.labels, part.ids, part.contributors, part.places)
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
        self, part: LearnBatch, contributors: list[str | None], weights: list[float] | None = None
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

    def _replace(self, part: LearnBatch, labels: list[Any] | None) -> None:
        """Give examples the features that the source has now, and these labels unless None."""
        self.model.store.replace(
            part.ids,
            part.X,
            labels,
            contributor=self._whose(part, part.ids),
            origins=self.origin,
            contents=part.contents,
        )

    def _corrected(self, part: LearnBatch, labels: list[Any], changed: list[int]) -> list[int]:
        """The changed records whose labels were corrected by hand, and stayed in the source."""
        other = [i for i in changed if labels[i] != self.held[part.ids[i]].label]
        if not other or self.source.pictures:
            # A picture that has the same path is in the same folder.
            return other
        examples = self.model.store.examples
        X = np.asarray(examples.X[examples.rows(tuple(part.ids[i] for i in other))], dtype="<f8")
        return [
            i
            for i, row in zip(other, X, strict=True)
            if content(row.tobytes(), part.labels[i]) == self.held[part.ids[i]].content
        ]

    def _check_origins(self, part: LearnBatch) -> None:
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
        """Count the examples that vanished from the source, and forget them with --sync."""
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
        """The number of ids in this source that are held from each other named source."""
        origins = (self.held[one].origin for one in self.seen.places if one in self.held)
        return dict(Counter(one for one in origins if one is not None and one != self.origin))

    def _gone(self) -> list[Id]:
        """The ids of what this source had, and has not had so far."""
        return [
            one
            for one, record in self.held.items()
            if record.origin == self.origin and one not in self.seen.places
        ]
