"""Who gave what: the features of an example and its label may come from different people.

A version of an example has features, which belong to its vector, and a label. Each has a giver, or
none that is known. Forgetting a giver rewrites the history of every example that they touched, as
if they had given nothing: their examples leave, and an example of somebody else gets back the
features and the label that it had before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
    """What must change in the file so that some contributions were never made.

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
        """How many examples it is about."""
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
            file.replace("examples", [version._replace(live=int(goes is None))])
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
        after = version._replace(
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
