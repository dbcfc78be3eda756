"""Contributions and their givers: features and label of an example may come from two people.

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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_hex
from typing import Final, NamedTuple, final

from knowmore._base import Id
from knowmore.store.codec import id_text
from knowmore.store.journal import Givers, Journal, Version

# Whether the features, or the label, of a version are withdrawn.
Rule = Callable[[Version, Givers], bool]


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
        """Whether an example that stays is another one now."""
        now = (version.live for version, _ in self.rewritten)
        return any(now) or any(goes is None for _, _, goes in self.prolonged.values())

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


def whole(versions: Sequence[Version]) -> Withdrawal:
    """The withdrawal of all versions of some examples."""
    gone = list(dict.fromkeys(one.id for one in versions))
    return Withdrawal(deleted=list(versions), bared=list(versions), gone=gone)


def without(journal: Journal, features: Rule, label: Rule) -> Withdrawal:
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


def _withdraw(found: Withdrawal, steps: list[_Step], features: Rule, label: Rule) -> list[str]:
    """Add what changes in the history of one example; the list that its id belongs to."""
    # The last features and the last label that stay, and the last version that does: as it was, as
    # it will be, and who gave its label then.
    source: _Step | None = None
    named: _Step | None = None
    last: tuple[_Step, Version, str | None] | None = None
    vectors: set[int] = set()
    withdrawn = False
    for step in steps:
        version, givers = step.version, step.givers
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
        if withdrawn and last is not None and _same(after, giver, *last[1:]):
            # Nothing of it is left: the version before stays in its place.
            found.deleted.append(version)
            found.prolonged[last[1].row] = last[1], last[0].enters, step.leaves
            continue
        if after != version or giver != givers.label:
            found.rewritten.append((after, giver))
        last = step, after, giver
        vectors.add(after.vector)
    found.bared += [step.version for step in steps if step.version.vector not in vectors]
    if last is None:
        return found.gone
    return found.changed if withdrawn else found.erased


def _same(one: Version, giver: str | None, other: Version, other_giver: str | None) -> bool:
    return (one.vector, one.label, giver) == (other.vector, other.label, other_giver)


# -- marks ---------------------------------------------------------------------------------------

# The fact that has the key.
KEY: Final = "mark-key"
_SIZE: Final = 16


def new_key() -> str:
    """A random key, as text."""
    return token_hex(32)


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

    def features(self, version: Version) -> bytes:
        """The mark of the features of one version, which its example lost."""
        return self._mark(b"features", *_event(version))

    def label(self, version: Version) -> bytes:
        """The mark of the label of one version, which its example lost."""
        return self._mark(b"label", *_event(version))

    def found(self, marks: set[bytes], one: Id, content: bytes | None) -> Marked:
        """The marks of a record that are among these."""
        if content is None:
            return Marked(self.id(one) in marks)
        every = (self.id(one), self.content(content), self.record(one, content))
        return Marked(*(each in marks for each in every))


def _event(version: Version) -> tuple[bytes, ...]:
    """A version in copies of one file, and in no other file."""
    return str(version.row).encode(), version.id.encode(), str(version.at).encode()


def mark(
    journal: Journal,
    key: str,
    gone: Iterable[Id],
    versions: Sequence[tuple[Id, Version]],
    features: Iterable[Version],
    labels: Iterable[Version],
) -> None:
    """Mark the ids that leave, and the versions whose vectors are about to be deleted.

    features, labels : versions that lose these, of examples that stay
    """
    marker = Marker(key)
    contents = {n: row[3] for n, row in journal.vectors(v.vector for _, v in versions).items()}
    marks = {marker.id(one) for one in gone}
    marks |= {*map(marker.features, features), *map(marker.label, labels)}
    for one, version in versions:
        content = contents[version.vector]
        if content is not None:
            marks |= {marker.content(content), marker.record(one, content)}
    known = {row[0] for row in journal.file.rows("forgotten")}
    journal.file.insert("forgotten", ((one,) for one in sorted(marks - known)))
