"""`knowmore learn`: what a source holds becomes what the model holds.

It can be repeated: what the model has is skipped, what changed in the source is replaced, and what
vanished from it is reported, or forgotten. What it learns is one entry of the journal, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import knowmore
from knowmore._base import Id
from knowmore.errors import InvalidInput, RepeatedId
from knowmore.store import Store, content
from knowmore.tables import Encoding, Options, cells_of
from knowmore.workbench.batches import (
    LearnBatch,
    SeenRecords,
    batches_of,
    decodable,
    folder_label,
)
from knowmore.workbench.cells import CellDescriber, alone, check_options, encoding_for
from knowmore.workbench.describing import shown
from knowmore.workbench.making import keep_notes, made, settled
from knowmore.workbench.model import (
    Progress,
    check_source,
    labels_of,
    noted,
    numbers_of,
    origin_of,
    predicts_values,
    wanted,
)
from knowmore.workbench.sources import NotNumbers, Source, Wanted, open_source, record_bytes

# Edits of a store, ready to be made.
_Steps = list[Callable[[], object]]


@dataclass(frozen=True)
class LearnOptions:
    """The source to learn, the model to teach, and the choices of the user.

    model : the file, made if it is not there
    source : a folder, a table, or "-" for standard input
    label, id, text : the names of these columns; None for the usual ones
    contributor : who gave the examples, where the source names nobody
    origin : what to call the source; None for its path
    sync : whether to forget examples that vanished from the source
    dry_run : whether only to count
    again : whether to learn examples that were forgotten before
    table : what the user says of the columns of a table
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
    table: Options = field(default_factory=Options)
    text: str | None = None


# With fewer examples beside larger classes, new ones of a class are often called unknown.
ENOUGH: Final = 15


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
    # The features of pictures, if this source settled them and nobody had asked for any.
    described: str | None = None
    # "content" if the records have no ids, so that their hashes serve as such.
    ids: str = "given"
    # Why columns of the first table do not count, by name.
    left_out: dict[str, str] = field(default_factory=dict)
    # Classes that grew, and have so few examples that new ones of them are often called unknown.
    few: tuple[tuple[Any, int], ...] = ()


def learn(request: LearnOptions, progress: Progress) -> tuple[Learnt, Source]:
    """Learn a source; a model that is not there is made, unless its first examples fail."""
    path = request.model
    if path.exists():
        with knowmore.open(path) as store:
            needs = wanted(store, request.label, request.id, text=request.text)
            if request.table and len(store):
                check_options(store.table, needs.columns or (), request.table)
            options = Options() if len(store) else request.table
            source = open_source(request.source, replace(needs, options=options))
            return _taught(store, request, source, progress)
    source = open_source(request.source, _wanted(request))
    if request.dry_run:
        return _or_cells(source, lambda source: (_counted(source), source))
    with made(path, source.holds) as store:
        return _taught(store, request, source, progress)


def _taught(
    store: Store, request: LearnOptions, source: Source, progress: Progress
) -> tuple[Learnt, Source]:
    """Learn a source as numbers, or as cells if one is no number; then nothing was learnt yet."""
    return _or_cells(
        source, lambda source: (learn_source(store, source, request, progress), source)
    )


def learn_source(
    store: Store,
    source: Source,
    request: LearnOptions,
    progress: Progress = lambda share, step: None,
    among: Sequence[Id] | None = None,
) -> Learnt:
    """Learn an open source; see `learn`.

    among : the ids of its records, if it is a part of what it comes from: no others are looked at
    """
    return _Learning(store, request, source, progress, among).run()


def _or_cells(
    source: Source, learn: Callable[[Source], tuple[Learnt, Source]]
) -> tuple[Learnt, Source]:
    try:
        return learn(source)
    except NotNumbers:
        if source.cells is None:
            raise
    return learn(source.cells())


def _wanted(request: LearnOptions) -> Wanted:
    if request.text is not None and request.table:
        raise InvalidInput(
            "--text learns the texts of one column, and --columns, --category and --ignore are for "
            "tables. Say one or the other."
        )
    return Wanted(request.label, request.id, options=request.table, text=request.text)


def _counted(source: Source) -> Learnt:
    """The counts for a model that is not there yet."""
    found = Learnt()
    seen = SeenRecords(source, found)
    for part in batches_of(source):
        part = seen.new(part)
        found.added += len(decodable(source, part, [*range(len(part.ids))]))
    found.examples, found.values = found.added, seen.values()
    found.left_out = {} if source.table is None else dict(source.table.left_out)
    found.unreadable = len(source.skipped)
    return found


class _Learning:
    """The state of learning a source."""

    def __init__(
        self,
        store: Store,
        request: LearnOptions,
        source: Source,
        progress: Progress,
        among: Sequence[Id] | None,
    ) -> None:
        self.store, self.request, self.source, self.progress = store, request, source, progress
        self.origin = request.origin or origin_of(store, request.source)
        known = None if among is None else [*set(among).intersection(store.ids_.tolist())]
        self.held = {record.id: record for record in store.records(known)}
        # Their labels were refused: only something else of the source brings them back.
        self.aside = {record.id: record.content for record in store.aside()}
        self.found = Learnt()
        if source.table is not None and not self.held:
            self.found.left_out = dict(source.table.left_out)
        self.seen = SeenRecords(source, self.found)

    def run(self) -> Learnt:
        """Learn all of it, and say what was done."""
        check_source(self.store, self.source)
        edits: Iterator[_Steps] = map(self._steps, batches_of(self.source))
        if self.source.described and self.source.table is None:
            # It takes long to describe records; others may write until all are.
            edits = iter(list(edits))
        with self.store.together("learn"):
            for steps in edits:
                for step in steps:
                    step()
        self._follow()
        found, is_dry = self.found, self.request.dry_run
        if not predicts_values(self.store):
            found.values = self.seen.values()
        found.unreadable = len(self.source.skipped)
        foreseen = len(self.held) + found.added - found.forgotten
        found.examples = foreseen if is_dry else len(self.store.ids_)
        found.few = () if is_dry else self._few()
        return found

    def _few(self) -> tuple[tuple[Any, int], ...]:
        """The classes that grew, and are still small beside most others, by their examples."""
        if self.store.kind != "gp" or "texts" in noted(self.store):
            return ()
        before = Counter(record.label for record in self.held.values())
        now = self.store.status().classes
        if len(now) < 3 or median(now.values()) < ENOUGH:
            return ()
        return tuple((one, n) for one, n in now.items() if before[one] < n < ENOUGH)

    def _steps(self, part: LearnBatch) -> _Steps:
        """The edits that learn a batch; none if nothing changes, or for a dry run."""
        part, held, found = self.seen.new(part, self.held), self.held, self.found
        self._check_sync(part)
        new = [
            i
            for i, one in enumerate(part.ids)
            if one not in held and (one not in self.aside or self.aside[one] != part.contents[i])
        ]
        moved = self._moved(part, new)
        new = [i for i in new if i not in moved]
        changed = [
            i
            for i, (one, digest) in enumerate(zip(part.ids, part.contents, strict=True))
            if one in held and held[one].content != digest
        ]
        refused = self._forgotten_before(part, new, changed)
        new, changed = ([i for i in rows if i not in refused] for rows in (new, changed))
        self._check_origins(part.of(changed))
        found.forgotten_before += len(refused)
        found.moved += len(moved)
        found.skipped += len(part.ids) - len(new) - len(changed) - len(moved) - len(refused)
        # Learning a label is cheap, so labels are checked even if only the others are known.
        given, labels = part.labels, labels_of(self.store, part.labels, part.places).tolist()
        part = replace(part, labels=labels)
        if self.request.dry_run:
            found.added += len(decodable(self.source, part, new))
            found.replaced += len(decodable(self.source, part, changed))
            return []
        if not (new or changed or moved):
            return []
        coming = sorted([*new, *changed])
        rows = part.of(coming).X if self.source.table is not None else part.X
        if self.source.table is not None:
            alone(self.store)
            self._check_types(self.source.table)
        notes, describer = settled(self.store, self.source, rows, self.progress)
        steps: _Steps = []
        if self.source.table is not None and len(self.store):
            leaving = [part.ids[i] for i in changed]
            table = encoding_for(self.store, self.source, rows, leaving)
            describer = CellDescriber(table)
            if table != self.store.table:
                steps.append(partial(self.store.encode, table))
        corrected = self._corrected(part, given, changed)
        others = [i for i in changed if i not in corrected]
        if self.source.pictures and "pictures" in notes[0] and "features" not in self.store.notes:
            found.described = notes[0]["pictures"]["about"]["kind"]
        added, renewed, kept = (
            self._described(part.of(rows), describer) for rows in (new, others, corrected)
        )
        found.added += len(added.ids)
        found.replaced += len(renewed.ids) + len(kept.ids)
        if added.ids or renewed.ids or kept.ids:
            steps.append(partial(keep_notes, self.store, notes))
        if added.ids:
            whose = [one or self.request.contributor for one in added.contributors]
            steps.append(partial(self._add, replace(added, contributors=whose)))
        if moved:
            steps += self._following(part.of(list(moved)), list(moved.values()))
        if renewed.ids:
            steps.append(partial(self._replace, renewed, renewed.labels))
        if kept.ids:
            steps.append(partial(self._replace, kept, None))
        return steps

    def _check_types(self, table: Encoding) -> None:
        """Raise InvalidInput if another process has taught the model other columns by now."""
        known = self.store.table
        others = bool(len(self.store)) and not self.held
        if others if known is None else not known.alike(table):
            raise InvalidInput(
                f"The model has learnt other columns while {self.source.name!r} was read. Learn it "
                f"again."
            )

    def _forgotten_before(self, part: LearnBatch, new: list[int], changed: list[int]) -> set[int]:
        """Which records were forgotten in this model: a new one by its id, or by its content.

        Rows of two people may have the same numbers, so the content counts for files alone, and for
        a row under the id that it had.
        """
        if self.request.again or not (new or changed):
            return set()
        marks = self.store.was_forgotten(part.ids, part.contents)
        files = self.source.in_folders
        refused = {i for i in new if marks[i].id or (files and marks[i].content)}
        return refused | {i for i in changed if marks[i].record}

    def _moved(self, part: LearnBatch, new: list[int]) -> dict[int, Id]:
        """Which of the new files are held under a path that is no longer there, and that id."""
        gone: dict[bytes | None, list[Id]] = {}
        if not self.source.in_folders:
            return {}
        for one in self._gone():
            gone.setdefault(self.held[one].content, []).append(one)
        folders = {folder_label(one) for ids in gone.values() for one in ids}
        moved: dict[int, Id] = {}
        for i in new if gone else ():
            data = part.X[i].read() if self.source.pictures else record_bytes(part.X[i])
            for same in (gone.get(content(data, folder)) for folder in folders):
                if same and i not in moved:
                    moved[i] = same.pop(0)
        return moved

    def _following(self, part: LearnBatch, ids: list[Id]) -> _Steps:
        """The edits for files that have moved from these ids to another folder or name.

        A label that was corrected by hand stays; another follows the folder.
        """
        held, labels, givers = [self.held[one] for one in ids], part.labels, self._whose(part, ids)
        if not self.request.sync:
            rows = [
                k
                for k, record in enumerate(held)
                if labels[k] != record.label == folder_label(record.id)
            ]
            whose = [givers[k] for k in rows]
            told = [ids[k] for k in rows], [labels[k] for k in rows]
            return [partial(self.store.relabel, *told, contributor=whose)] if rows else []
        for k, record in enumerate(held):
            if labels[k] == folder_label(record.id):
                labels[k], givers[k] = record.label, record.labeller
        examples = self.store.examples
        X, gave = examples.X[examples.rows(tuple(ids))], [record.contributor for record in held]
        pairs = zip(part.ids, labels, held, strict=True)
        kept = [one for one, label, record in pairs if record.kept and record.label == label]
        weights, kept_texts = [one.weight for one in held], [one.thumbnail for one in held]
        return [
            partial(self._add, replace(part, X=X, contributors=gave, shown=kept_texts), weights),
            partial(self.store.relabel, part.ids, labels, contributor=givers),
            partial(self.store.keep, kept),
        ]

    def _whose(self, part: LearnBatch, ids: list[Id]) -> list[str | None]:
        """The contributor of each record; the contributor of the example held if none is named."""
        return [
            given or self.request.contributor or self.held[one].contributor
            for given, one in zip(part.contributors, ids, strict=True)
        ]

    def _origins(self, part: LearnBatch) -> list[str]:
        """The origin of each record: the source, unless the record names another."""
        return [given or self.origin for given in part.origins]

    def _described(self, part: LearnBatch, describer: Any) -> LearnBatch:
        """The records that can be used, with vectors for X."""
        if not part.ids:
            return part
        if describer is not None and self.source.table is None:
            self.progress(0.0, f"describing {len(part.ids)} {self.source.holds}")
        X, kept = numbers_of(self.store, self.source, part.X, part.places, describer, self.progress)
        part = part.of(kept)
        return replace(part, X=X, shown=shown(self.source, part.X))

    def _add(self, part: LearnBatch, weights: list[float] | None = None) -> None:
        self.store.add(
            part.X,
            part.labels,
            part.ids,
            weights,
            contributor=part.contributors,
            origins=self._origins(part),
            contents=part.contents,
            thumbnails=part.shown,
            columns=self._columns(),
        )

    def _columns(self) -> tuple[str, ...] | None:
        """The names of the features: of cells, as the file has them by now."""
        if self.source.table is None:
            return self.source.columns
        return tuple(self.store.notes["columns"])

    def _replace(self, part: LearnBatch, labels: list[Any] | None) -> None:
        """Give examples the features that the source has now, and these labels unless None."""
        self.store.replace(
            part.ids,
            part.X,
            labels,
            contributor=self._whose(part, part.ids),
            origins=self._origins(part),
            contents=part.contents,
            thumbnails=part.shown,
        )

    def _corrected(self, part: LearnBatch, given: list[Any], changed: list[int]) -> list[int]:
        """The changed records whose labels were corrected by hand, and stayed in the source.

        given : the labels as the source gives them
        """
        other = [i for i in changed if part.labels[i] != self.held[part.ids[i]].label]
        if not other or self.source.in_folders:
            # A file that has the same path is in the same folder.
            return other
        if self.source.pictures:
            # A picture of a task is in no folder.
            return [i for i in other if part.origins[i] is None]
        ids = [part.ids[i] for i in other]
        examples = self.store.examples
        rows = examples.X[examples.rows(tuple(ids))]
        data = [
            self._bytes(self.held[one].thumbnail, row) for one, row in zip(ids, rows, strict=True)
        ]
        return [
            i
            for i, one in zip(other, data, strict=True)
            if content(one, given[i]) == self.held[part.ids[i]].content
        ]

    def _bytes(self, kept: bytes | None, row: Any) -> bytes:
        """What the content of an example was made from: its row, or what is kept of its record."""
        if kept is None:
            return record_bytes(row)
        return kept if self.source.table is None else record_bytes(cells_of(kept))

    def _check_sync(self, part: LearnBatch) -> None:
        """What is not in a source that holds a part of something may be in another part."""
        if self.request.sync and any(part.origins):
            raise InvalidInput(
                f"--sync would forget what vanished from {self.source.name!r}, but an export of "
                f"Label Studio has one project, and the model may have learnt others. Leave it "
                f"out; to forget a task: knowmore forget MODEL --origin {part.origins[0]}."
            )

    def _check_origins(self, part: LearnBatch) -> None:
        """Files of two folders may have the same names by chance: none is replaced for that."""
        if not self.source.in_folders:
            return
        what = self.source.holds.removesuffix("s")
        for one, given in zip(part.ids, part.origins, strict=True):
            origin = self.held[one].origin
            if given is None and origin != self.origin:
                raise RepeatedId(
                    f"The model holds another {what} {one!r}, from {origin!r}. Rename one of "
                    f"them; or, if this is the same folder elsewhere, say --origin {origin}."
                )

    def _follow(self) -> None:
        """Count the examples that vanished from the source, and forget them with --sync."""
        found, sync = self.found, self.request.sync
        if self.request.source == "-" and not sync:
            return
        gone = self._gone()
        found.vanished = len(gone) - found.moved
        if not sync:
            return
        origins = (self.held[one].origin for one in self.seen.places if one in self.held)
        others = (one for one in origins if one is not None and one != self.origin)
        found.elsewhere = dict(Counter(others))
        found.forgotten = found.vanished
        if gone and not self.request.dry_run:
            # What comes back to the source is learnt again: nobody asked to forget it.
            done = self.store.forget(gone, mark=False)
            found.traces, found.warning, found.kept = len(done.traces), done.warning, done.kept

    def _gone(self) -> list[Id]:
        """The ids of what this source had, and has not had so far."""
        return [
            one
            for one, record in self.held.items()
            if record.origin == self.origin and one not in self.seen.places
        ]
