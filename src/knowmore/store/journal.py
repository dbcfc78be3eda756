"""Versions of examples, and the journal of the edits that brought them.

A version never changes, but for whether it is live. Relabelling writes a version that shares its
vector, replacing one with a new vector. The examples of a model are the live versions in the order
of their vectors, which is the order that they have in memory. Undoing an entry turns what it
brought off and what it took away on. Numbers are never used twice, those of what was undone and
overwritten included.

Entries keep the settings before and after them, until something is forgotten: an entry cannot be
undone then, and some of its settings may have been chosen by what was forgotten.

Contributions and their givers: features and label of an example may come from two people.

A version of an example has features, which belong to its vector, and a label. Each has a giver, or
none that is known. Forgetting a giver rewrites the history of every example that they touched, as
if they had given nothing: their examples leave, and an example of somebody else gets back the
features and the label that it had before.

Keyed hashes of what was forgotten, so that neither `learn` nor `restore` brings it back.

A mark is a hash with a key that is in the file: without the file or the record it tells nothing.
A reader of the file who guesses an id or a content can find out whether a record with it was
forgotten here. The marks of features and labels that other examples lost are made of
the number and the time of a version: they say neither whose nor what these were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from json import loads
from typing import Any, Final, NamedTuple, final

from knowmore._base import Id
from knowmore.errors import InvalidInput
from knowmore.store.file import File, Row
from knowmore.store.kinds import id_text, read_id, string

# Entries that cannot be undone: what they removed is nowhere any more.
FORGETS = ("forget", "remove-support")
# Entries that put examples aside, since their labels were refused.
REFUSE: Final = "refuse"
# The facts that an entry notes if it changes one of them.
SETTINGS = ("parameters", "columns", "labels", "state")


class Version(NamedTuple):
    """A row of the table of examples."""

    row: int
    id: str
    label: str
    weight: float
    vector: int
    origin: str | None
    contributor: str | None
    at: int
    live: int

    def but(self, **changes: Any) -> Version:
        """The version with some other columns."""
        return self._replace(**changes)


class Givers(NamedTuple):
    """The givers of the features and of the label of a version, as texts; None if unknown."""

    features: str | None
    label: str | None


@final
@dataclass(frozen=True)
class Entry:
    """An entry of the journal: an edit, or several made together.

    number : its own, ascending; some are missing, those that were undone and then overwritten
    at : when, UTC
    verb : "add", "replace", "relabel", "forget", "merge", "set_parameters", ...
    count : how many examples it was about
    undone : whether it is undone now
    contributor : who gave the examples that it brought, or their new labels, if that is one and
        all of them are still known
    id, label : of the example that it was about, if it was one that is still known
    """

    number: int
    at: datetime
    verb: str
    count: int
    undone: bool
    contributor: str | None = None
    id: Id | None = None
    label: Any = None


class Numbers(NamedTuple):
    """Counters of a file.

    row, vector, entry, array : the next of each
    position : the last entry that is not undone, or 0
    next_id : the first number that was never given to an example as its id
    """

    row: int = 1
    vector: int = 1
    entry: int = 1
    array: int = 1
    position: int = 0
    next_id: int = 0

    def but(self, **changes: int) -> Numbers:
        """The counters with some other values."""
        return self._replace(**changes)


@final
class Journal:
    """The rows of a file within one transaction; `numbers` are to be written at its end.

    All edits of a transaction are one entry, which `write_entry` ends.

    verb, count : of the entry; by default the verb of its first edit
    deleted : whether versions or vectors were deleted
    passed : whether some of these had come with the same entry
    """

    def __init__(self, file: File, numbers: Numbers, verb: str | None = None) -> None:
        self.file, self.numbers = file, numbers
        self.verb, self.count = verb, 0
        self.deleted = self.passed = False
        self.at = time.time_ns() // 1000
        # The number of the entry and the first of its rows, when it has begun.
        self._entry: tuple[int, int] | None = None

    def take(self, name: str, count: int) -> range:
        """The next numbers of a kind."""
        begin = getattr(self.numbers, name)
        self.numbers = self.numbers.but(**{name: begin + count})
        return range(begin, begin + count)

    # -- reading -----------------------------------------------------------------------------

    def versions(self, rows: Iterable[int]) -> list[Version]:
        """The versions in these rows, in their order."""
        rows = list(rows)
        found = {row[0]: Version(*row) for row in self.file.rows_with("examples", "row", rows)}
        with self.file.understood("examples"):
            return [found[row] for row in rows]

    def vectors(self, numbers: Iterable[int]) -> dict[int, Row]:
        """The rows of vectors with these numbers, by number."""
        numbers = dict.fromkeys(numbers)
        return {row[0]: row for row in self.file.rows_with("vectors", "vector", numbers)}

    def entries(self, after: int = 0) -> list[Entry]:
        """All entries, or those after a number, the oldest first."""
        every = self.file.rows("journal", "WHERE number > ?", (after,))
        rows = {row[0]: row for row in (every if after else self.file.all_rows("journal"))}
        whose: dict[int, list[str | None]] = {}
        labellers = self.labellers()
        about: dict[int, tuple[Any, Any]] = {}
        joined = (
            "SELECT changes.number, examples.row, id, label, contributor FROM changes "
            "JOIN examples ON examples.row = changes.row WHERE enters = ? AND number > ?"
        )
        with self.file.understood("journal"):
            for number, _, name, label, _ in self.file.fetched(joined, (0, after)):
                if rows[number][2] == REFUSE and rows[number][3] == 1:
                    about[number] = read_id(name), loads(label)
            for number, row, name, label, text in self.file.fetched(joined, (1, after)):
                giver = labellers.get(row, text) if rows[number][2] == "relabel" else text
                whose.setdefault(number, []).append(string(giver))
                if rows[number][3] == 1:
                    about[number] = read_id(name), loads(label)
            # If some examples are forgotten, the giver of the others did not give all.
            one = {
                number: names[0]
                for number, names in whose.items()
                if len(set(names)) == 1 and len(names) == rows[number][3]
            }
            return [entry(rows[n], one.get(n), *about.get(n, ())) for n in sorted(rows)]

    def refused(self) -> list[Version]:
        """The versions that left because their labels were refused, the oldest first."""
        entries = self.file.rows("journal", "WHERE verb = ?", (REFUSE,))
        numbers = sorted(row[0] for row in entries if row[0] <= self.numbers.position)
        changes = self.file.rows_with("changes", "number", numbers)
        return self.versions(sorted(row for _, row, enters in changes if not enters))

    def givers(self, versions: Sequence[Version]) -> list[Givers]:
        """The givers of the features and of the label of each version."""
        first, labellers = self.feature_givers(), self.labellers()
        return [
            Givers(first[one.vector], labellers.get(one.row, one.contributor)) for one in versions
        ]

    def feature_givers(self) -> dict[int, str | None]:
        """The giver of the features, by the number of the vector."""
        # Files of the first format name the writer of each version: the first gave the features.
        latest_first = "SELECT vector, contributor FROM examples ORDER BY row DESC"
        return dict(self.file.fetched(latest_first))

    def labellers(self) -> dict[int, str | None]:
        """The givers of labels, by row, of versions where `contributor` gave only the features."""
        return {row: contributor for row, contributor, _ in self.file.rows("labelled")}

    def kept(self) -> set[int]:
        """The rows of the versions whose labels somebody has confirmed."""
        return {row for row, _, kept in self.file.rows("labelled") if kept}

    def keep(self, versions: Sequence[Version], kept: bool) -> None:
        """Note that the labels of versions are confirmed, or no longer."""
        both = zip(versions, self.givers(versions), strict=True)
        rows = [(one.row, givers.label, int(kept)) for one, givers in both]
        self.file.replace("labelled", rows)

    def write_givers(self, labelled: Iterable[tuple[Version, str | None]]) -> None:
        """Write who gave the labels of versions, where that is not who gave the features."""
        labelled = list(labelled)
        others = [(one.row, giver, 0) for one, giver in labelled if giver != one.contributor]
        self.file.delete("labelled", [version.row for version, _ in labelled])
        self.file.insert("labelled", others)

    # -- writing -----------------------------------------------------------------------------

    def begin(self, verb: str, count: int) -> None:
        """Begin an edit of so many examples, and the entry if that is the first one."""
        if self._entry is None:
            self.purge_undone()
            (number,) = self.take("entry", 1)
            self._entry = number, self.numbers.row
            self.numbers = self.numbers.but(position=number)
        self.verb, self.count = self.verb or verb, self.count + count

    def write_vectors(self, rows: Sequence[Row]) -> range:
        """Write rows of vectors, without their numbers; returns these."""
        numbers = self.take("vector", len(rows))
        self.file.insert("vectors", [(n, *row) for n, row in zip(numbers, rows, strict=True)])
        return numbers

    def write_versions(
        self, new: Sequence[tuple[Version, str | None]], leaving: Sequence[int]
    ) -> None:
        """Write versions that enter, each with who gave its label; `leaving` rows leave."""
        assert self._entry is not None
        number, first = self._entry
        self.file.insert("examples", [version for version, _ in new])
        self.write_givers(new)
        passing = [row for row in leaving if row >= first]
        leaving = [row for row in leaving if row < first]
        self._switch(leaving, live=0)
        self.file.insert("changes", [(number, version.row, 1) for version, _ in new])
        self.file.insert("changes", [(number, row, 0) for row in leaving])
        # Nobody has seen a version that came with the same entry.
        if passing:
            self.passed = True
            self.delete_versions(self.versions(passing))

    def write_entry(self, settings: tuple[str | None, str | None]) -> None:
        """Write the entry of all edits, if there were any.

        settings : those before and after, as texts, if they change
        """
        if self._entry is not None:
            row = (self._entry[0], self.at, self.verb, self.count, 0, *settings)
            self.file.insert("journal", [row])

    def _switch(self, rows: Sequence[int], live: int) -> None:
        """Turn versions on or off."""
        if rows:
            self.file.replace("examples", (v.but(live=live) for v in self.versions(rows)))

    def undo(self) -> Row:
        """Undo the last entry that is not undone; returns its row."""
        for row in self.file.rows("journal", "WHERE number = ?", (self.numbers.position,)):
            if row[2] in FORGETS:
                raise InvalidInput(
                    f"The last edit, number {row[0]}, forgot {row[3]} example(s): they are nowhere "
                    f"any more, so it cannot be undone. Add them again if you have them."
                )
            return self._turn(row, undone=1)
        raise InvalidInput("There is nothing to undo: the journal has no entry before.")

    def redo(self) -> Row:
        """Do the first entry that is undone again; returns its row."""
        where = "WHERE number > ? ORDER BY number LIMIT 1"
        for row in self.file.rows("journal", where, (self.numbers.position,)):
            return self._turn(row, undone=0)
        raise InvalidInput("There is nothing to redo: no entry of the journal is undone.")

    def _turn(self, row: Row, undone: int) -> Row:
        number = row[0]
        changes = list(self.file.rows("changes", "WHERE number = ?", (number,)))
        for live in (0, 1):
            self._switch([r for _, r, enters in changes if enters ^ undone == live], live)
        self.file.replace("journal", [(*row[:4], undone, *row[5:])])
        before = "SELECT max(number) FROM journal WHERE number < ?"
        ((earlier,),) = self.file.fetched(before, (number,))
        self.numbers = self.numbers.but(position=earlier or 0 if undone else number)
        return row

    def purge_undone(self) -> None:
        """Delete the entries that are undone, with the versions that they brought."""
        position = self.numbers.position
        numbers = [row[0] for row in self.file.rows("journal", "WHERE number > ?", (position,))]
        if not numbers:
            return
        changes = self.file.rows_with("changes", "number", numbers)
        brought = [row for _, row, enters in changes if enters]
        self.file.delete("changes", numbers)
        self.file.delete("journal", numbers)
        self.delete_versions(self.versions(brought))

    def delete_settings(self) -> None:
        """Delete the settings of all entries: the examples of then had chosen some of them."""
        entries = self.file.rows("journal", "WHERE before IS NOT NULL OR after IS NOT NULL")
        self.file.replace("journal", [(*row[:5], None, None) for row in entries])

    def delete_versions(self, versions: Sequence[Version]) -> None:
        """Delete versions, and the vectors that no other version has."""
        self.file.delete("examples", [one.row for one in versions])
        self.file.delete("labelled", [one.row for one in versions])
        self.file.delete("changes", [one.row for one in versions], column=1)
        self.delete_vectors(versions)

    def delete_vectors(self, versions: Sequence[Version]) -> None:
        """Delete the vectors that these versions had, and that no version has any more."""
        self.deleted |= bool(versions)
        alone = {one.vector for one in versions}
        left = self.file.fetched("SELECT vector FROM examples")
        alone.difference_update(vector for (vector,) in left)
        self.file.delete("vectors", alone)


def entry(row: Row, contributor: str | None = None, *about: Any) -> Entry:
    """An entry from its row of the journal; about : the id and label of its only example."""
    number, at, verb, count, undone = row[:5]
    return Entry(number, moment_of(at), str(verb), count, bool(undone), contributor, *about)


def moment_of(at: int) -> datetime:
    """A time of a file."""
    return datetime.fromtimestamp(at / 1e6, UTC)


# -- contributions and their givers --------------------------------------------------------------

# Whether the features, or the label, of a version are withdrawn.
Withdraws = Callable[[Version, Givers], bool]


class _Step(NamedTuple):
    """A version in the history of an example.

    enters, leaves : the entries of the journal with which it came and went; None if it is live
    """

    version: Version
    givers: Givers
    enters: int
    leaves: int | None


@dataclass
class Withdrawal:
    """The changes of a file after which some contributions were never made.

    deleted : versions that go
    bared : versions, as they were, whose features go, whether they go themselves or not
    rewritten : versions that stay, with other features or another label, and who gave the label
    prolonged : versions that come with one entry as before, and go with a later one or stay (None)
    gone : the ids of which nothing is left, as texts
    changed : the ids of examples that get back what they had before
    erased : the ids of examples that stay as they are, and lose an earlier version
    features, labels : the versions that lose these, of examples that stay
    """

    deleted: list[Version] = field(default_factory=list)
    bared: list[Version] = field(default_factory=list)
    rewritten: list[tuple[Version, str | None]] = field(default_factory=list)
    prolonged: dict[int, tuple[Version, int, int | None]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    features: list[Version] = field(default_factory=list)
    labels: list[Version] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of examples that change or leave."""
        return len(self.gone) + len(self.changed) + len(self.erased)

    @property
    def alters(self) -> bool:
        """Whether an example that stays is another one now, or is put aside again."""
        now = (version.live for version, _ in self.rewritten)
        aside = (version.live for version in self.deleted if version.id not in self.gone)
        if any(now) or any(aside):
            return True
        return any(goes is None for _, _, goes in self.prolonged.values())

    def write(self, journal: Journal) -> None:
        """Rewrite the history."""
        file = journal.file
        file.replace("examples", (version for version, _ in self.rewritten))
        journal.write_givers(self.rewritten)
        for version, comes, goes in self.prolonged.values():
            file.replace("examples", [version.but(live=int(goes is None))])
            file.delete("changes", [version.row], column=1)
            changes = [(comes, 1)] if goes is None else [(comes, 1), (goes, 0)]
            file.insert("changes", ((number, version.row, enters) for number, enters in changes))
        journal.delete_versions(self.deleted)
        journal.delete_vectors(self.bared)

    def mark(self, journal: Journal, marker: Marker) -> None:
        """Mark the ids that leave, and the versions whose vectors are about to be deleted."""
        vectors = journal.vectors(version.vector for version in self.bared)
        marks = {marker.id(read_id(one)) for one in self.gone}
        marks |= {marker.lost(b"features", version) for version in self.features}
        marks |= {marker.lost(b"label", version) for version in self.labels}
        for version in self.bared:
            one, content = read_id(version.id), vectors[version.vector][3]
            if content is not None:
                marks |= {marker.content(content), marker.record(one, content)}
        known = {row[0] for row in journal.file.rows("forgotten")}
        journal.file.insert("forgotten", ((one,) for one in sorted(marks - known)))


def whole(versions: Sequence[Version]) -> Withdrawal:
    """The withdrawal of all versions of some examples."""
    gone = list(dict.fromkeys(one.id for one in versions))
    return Withdrawal(deleted=list(versions), bared=list(versions), gone=gone)


def without(journal: Journal, features: Withdraws, label: Withdraws) -> Withdrawal:
    """The withdrawal of the features and of the labels for which these hold."""
    found = Withdrawal()
    versions = [Version(*row) for row in journal.file.all_rows("examples")]
    givers = dict(zip((v.row for v in versions), journal.givers(versions), strict=True))
    lost = [v for v in versions if features(v, givers[v.row])]
    named = [v for v in versions if label(v, givers[v.row])]
    touched = {v.id for v in (*lost, *named)}
    for one, steps in _histories(journal, versions, givers, touched).items():
        _withdraw(found, steps, features, label).append(one)
    gone = set(found.gone)
    found.features = [v for v in lost if v.id not in gone]
    found.labels = [v for v in named if v.id not in gone]
    return found


def _histories(
    journal: Journal, versions: list[Version], givers: dict[int, Givers], touched: set[str]
) -> dict[str, list[_Step]]:
    """The versions, oldest first, of these examples."""
    comes, goes = dict[int, int](), dict[int, int]()
    for number, row, enters in journal.file.all_rows("changes"):
        (comes if enters else goes)[row] = number
    # What was undone goes with the next edit.
    last = journal.numbers.position
    histories: dict[str, list[_Step]] = {one: [] for one in touched}
    for v in versions:
        if v.id in touched and comes[v.row] <= last:
            left = goes.get(v.row)
            left = None if left is None or left > last else left
            histories[v.id].append(_Step(v, givers[v.row], comes[v.row], left))
    return {one: sorted(steps, key=lambda step: step.enters) for one, steps in histories.items()}


def _withdraw(
    found: Withdrawal, steps: list[_Step], features: Withdraws, label: Withdraws
) -> list[str]:
    """Add what changes in the history of one example; the list that its id belongs to."""
    # The last features and the last label that stay, and the last version that does: as it was, as
    # it will be, and who gave its label then.
    source: _Step | None = None
    named: _Step | None = None
    last: tuple[_Step, Version, str | None] | None = None
    vectors: set[int] = set()
    withdrawn, before = False, None
    for step in steps:
        version, givers = step.version, step.givers
        if before is not None and before.leaves != step.enters:
            # It was put aside in between: nothing of before stands in for what came after.
            source = named = last = None
        before = step
        source = source if features(version, givers) else step
        named = named if label(version, givers) else step
        withdrawn = step is not source or step is not named
        if source is None or named is None:
            found.deleted.append(version)
            continue
        after = version.but(
            label=named.version.label,
            vector=source.version.vector,
            weight=source.version.weight,
            origin=source.version.origin,
            contributor=source.givers.features,
        )
        giver = named.givers.label
        if withdrawn and last is not None:
            came, earlier, whose = last
            if (after.vector, after.label, giver) == (earlier.vector, earlier.label, whose):
                # Nothing of it is left: the version before stays in its place.
                found.deleted.append(version)
                found.prolonged[earlier.row] = earlier, came.enters, step.leaves
                continue
        if after != version or giver != givers.label:
            found.rewritten.append((after, giver))
        last = step, after, giver
        vectors.add(after.vector)
    found.bared += [step.version for step in steps if step.version.vector not in vectors]
    if not vectors:
        return found.gone
    return found.changed if withdrawn else found.erased


# -- marks ---------------------------------------------------------------------------------------

# The fact that has the key.
KEY: Final = "mark-key"
_SIZE: Final = 16


@final
class Marked(NamedTuple):
    """The marks that a record meets in this file.

    id : all of an example with its id
    content : an example that was made from the same, under whatever id
    record : a version of the example with its id that was made from the same
    """

    id: bool = False
    content: bool = False
    record: bool = False


@final
class Marker:
    """Makes the marks of records with the key of a file.

    >>> marker = Marker("00" * 32)
    >>> marker.id(7) == marker.id(7), marker.id(7) == marker.id("7")
    (True, False)
    """

    def __init__(self, key: str) -> None:
        self._key = bytes.fromhex(key)

    def _mark(self, kind: bytes, *parts: bytes) -> bytes:
        made = blake2b(key=self._key, digest_size=_SIZE, person=kind)
        for part in parts:
            made.update(len(part).to_bytes(8))
            made.update(part)
        return made.digest()

    def id(self, one: Id) -> bytes:
        """The mark of an example that is gone."""
        return self._mark(b"id", id_text(one).encode())

    def content(self, content: bytes) -> bytes:
        """The mark of what an example was made from."""
        return self._mark(b"content", content)

    def record(self, one: Id, content: bytes) -> bytes:
        """The mark of a version: what an example was made from, under its id."""
        return self._mark(b"record", id_text(one).encode(), content)

    def lost(self, kind: bytes, version: Version) -> bytes:
        """The mark of the b"features" or the b"label" of one version, which its example lost."""
        # A version in copies of one file, and in no other file.
        version_in_copies = str(version.row), version.id, str(version.at)
        return self._mark(kind, *(part.encode() for part in version_in_copies))

    def found(self, marks: set[bytes], one: Id, content: bytes | None) -> Marked:
        """The marks of a record that are among these."""
        if content is None:
            return Marked(self.id(one) in marks)
        every = (self.id(one), self.content(content), self.record(one, content))
        return Marked(*(each in marks for each in every))
