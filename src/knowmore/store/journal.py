"""Versions of examples, and the journal of the edits that brought them.

A version never changes, but for whether it is live. Relabelling writes a version that shares its
vector, replacing one with a new vector. The examples of a model are the live versions in the order
of their vectors, which is the order that they have in memory. Undoing an entry turns what it
brought off and what it took away on. Numbers are never used twice, those of what was undone and
overwritten included.

Entries keep the settings before and after them, until something is forgotten: an entry cannot be
undone then, and some of its settings may have been chosen by what was forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from json import loads
from typing import Any, NamedTuple, final

from knowmore._base import Id
from knowmore.errors import InvalidInput
from knowmore.store.codec import id_text, read_id, string
from knowmore.store.file import File, Row

# Entries that cannot be undone: what they removed is nowhere any more.
FORGETS = ("forget", "remove-support")
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


class New(NamedTuple):
    """Versions to write: of these ids, with labels as texts and vectors as rows of `vectors`.

    vectors : without their numbers; a number for that of an earlier version
    contributors, labellers : who gave the features, and who gave the labels
    """

    ids: Sequence[Id]
    labels: Sequence[str]
    weights: Sequence[float]
    vectors: Sequence[tuple[bytes, bytes | None, bytes | None, bytes | None]] | Sequence[int]
    origins: Sequence[str | None]
    contributors: Sequence[str | None]
    labellers: Sequence[str | None]


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
        found: dict[int, Version] = {}
        for begin in range(0, len(rows), 500):
            some = rows[begin : begin + 500]
            where = f"WHERE row IN ({', '.join('?' * len(some))})"
            for row in self.file.rows("examples", where, tuple(some)):
                found[row[0]] = Version(*row)
        with self.file.understood("examples"):
            return [found[row] for row in rows]

    def vectors(self, numbers: Iterable[int]) -> dict[int, Row]:
        """The rows of vectors with these numbers, by number."""
        numbers = list(dict.fromkeys(numbers))
        found: dict[int, Row] = {}
        for begin in range(0, len(numbers), 500):
            some = numbers[begin : begin + 500]
            where = f"WHERE vector IN ({', '.join('?' * len(some))})"
            for row in self.file.rows("vectors", where, tuple(some)):
                found[row[0]] = row
        return found

    def rows_where(self, column: str, values: Iterable[Any]) -> list[int]:
        """The rows of the versions with one of these values in a column."""
        values = list(values)
        found: list[tuple[int]] = []
        for begin in range(0, len(values), 500):
            some = values[begin : begin + 500]
            where = f"WHERE {column} IN ({', '.join('?' * len(some))})"
            found += self.file.connection.execute(f"SELECT row FROM examples {where}", some)
        return [row for (row,) in found]

    def entries(self, after: int = 0) -> list[Entry]:
        """All entries, or those after a number, the oldest first."""
        if after:
            entries = list(self.file.rows("journal", "WHERE number > ?", (after,)))
        else:
            entries = self.file.all_rows("journal")
        whose: dict[int, list[str | None]] = {}
        verbs = {row[0]: row[2] for row in entries}
        counts = {row[0]: row[3] for row in entries}
        labellers = self.labellers()
        joined = (
            "SELECT changes.number, examples.row, examples.contributor FROM changes JOIN examples "
            "ON examples.row = changes.row WHERE changes.enters = 1 AND changes.number > ?"
        )
        alone = (
            "SELECT changes.number, examples.id, examples.label FROM journal JOIN changes "
            "ON changes.number = journal.number JOIN examples ON examples.row = changes.row "
            "WHERE journal.count = 1 AND changes.enters = 1 AND journal.number > ?"
        )
        with self.file.understood("journal"):
            for number, row, text in self.file.connection.execute(joined, (after,)).fetchall():
                label = verbs[number] == "relabel"
                giver = labellers.get(row, text) if label else text
                whose.setdefault(number, []).append(string(giver))
            # If some examples are forgotten, the giver of the others did not give all.
            one = {
                number: names[0]
                for number, names in whose.items()
                if len(set(names)) == 1 and len(names) == counts[number]
            }
            about = {
                number: (read_id(name), loads(label))
                for number, name, label in self.file.connection.execute(alone, (after,)).fetchall()
            }
            return [entry(row, one.get(row[0]), *about.get(row[0], ())) for row in sorted(entries)]

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
        return dict(self.file.connection.execute(latest_first))

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
        self.file.delete("labelled", [version.row for version, _ in labelled])
        self.file.insert(
            "labelled",
            [(one.row, giver, 0) for one, giver in labelled if giver != one.contributor],
        )

    def changes(self, after: int, until: int) -> list[Row]:
        """The changes of the entries in (after, until], oldest first."""
        where = "WHERE number > ? AND number <= ? ORDER BY number, row"
        return list(self.file.rows("changes", where, (after, until)))

    # -- writing -----------------------------------------------------------------------------

    def write(
        self, verb: str, count: int, new: New | None = None, leaving: Sequence[int] = ()
    ) -> range:
        """Write an edit: new versions enter, and `leaving` rows leave; returns the new rows."""
        number, first = self._begun()
        self.verb, self.count = self.verb or verb, self.count + count
        rows = range(0) if new is None else self._write_versions(new)
        passing = [row for row in leaving if row >= first]
        leaving = [row for row in leaving if row < first]
        self._switch(leaving, live=0)
        changes = [(number, row, 1) for row in rows] + [(number, row, 0) for row in leaving]
        self.file.insert("changes", changes)
        # Nobody has seen a version that came with the same entry.
        if passing:
            self.passed = True
            self.delete_versions(self.versions(passing))
        return rows

    def _begun(self) -> tuple[int, int]:
        """The number of the entry, and the first of its rows."""
        if self._entry is None:
            self.purge_undone()
            (number,) = self.take("entry", 1)
            self._entry = number, self.numbers.row
            self.numbers = self.numbers.but(position=number)
        return self._entry

    def write_entry(self, settings: tuple[str | None, str | None]) -> None:
        """Write the entry of all edits, if there were any.

        settings : those before and after, as texts, if they change
        """
        if self._entry is not None:
            row = (self._entry[0], self.at, self.verb, self.count, 0, *settings)
            self.file.insert("journal", [row])

    def _write_versions(self, new: New) -> range:
        k = len(new.ids)
        rows = self.take("row", k)
        vectors: Sequence[int]
        if k and not isinstance(new.vectors[0], int):
            vectors = self.take("vector", k)
            pairs = zip(vectors, new.vectors, strict=True)
            self.file.insert("vectors", ((number, *row) for number, row in pairs))  # type: ignore[misc]
        else:
            vectors = new.vectors  # type: ignore[assignment]
        columns = (new.labels, new.weights, vectors, new.origins, new.contributors)
        ids, times, live = map(id_text, new.ids), [self.at] * k, [1] * k
        each: Iterable[Row] = zip(rows, ids, *columns, times, live, strict=True)
        versions = [Version(*row) for row in each]
        self.file.insert("examples", versions)
        self.write_givers(zip(versions, new.labellers, strict=True))
        return rows

    def _switch(self, rows: Sequence[int], live: int) -> None:
        """Turn versions on or off."""
        if rows:
            self.file.replace("examples", (v.but(live=live) for v in self.versions(rows)))

    def undo(self) -> Row:
        """Undo the last entry that is not undone; returns its row."""
        return self._turn(self.last(), undone=1)

    def redo(self) -> Row:
        """Do the first entry that is undone again; returns its row."""
        where = "WHERE number > ? ORDER BY number LIMIT 1"
        for row in self.file.rows("journal", where, (self.numbers.position,)):
            return self._turn(row, undone=0)
        raise InvalidInput("There is nothing to redo: no entry of the journal is undone.")

    def last(self) -> Row:
        """The row of the last entry, which can be undone."""
        for row in self.file.rows("journal", "WHERE number = ?", (self.numbers.position,)):
            if row[2] in FORGETS:
                raise InvalidInput(
                    f"The last edit, number {row[0]}, forgot {row[3]} example(s): they are nowhere "
                    f"any more, so it cannot be undone. Add them again if you have them."
                )
            return row
        raise InvalidInput("There is nothing to undo: the journal has no entry before.")

    def _turn(self, row: Row, undone: int) -> Row:
        number = row[0]
        changes = list(self.file.rows("changes", "WHERE number = ?", (number,)))
        for live in (0, 1):
            self._switch([r for _, r, enters in changes if enters ^ undone == live], live)
        self.file.replace("journal", [(*row[:4], undone, *row[5:])])
        position = number
        if undone:
            where = "SELECT max(number) FROM journal WHERE number < ?"
            position = self.file.connection.execute(where, (number,)).fetchone()[0] or 0
        self.numbers = self.numbers.but(position=position)
        return row

    def purge_undone(self) -> None:
        """Delete the entries that are undone, with the versions that they brought."""
        position = self.numbers.position
        numbers = [row[0] for row in self.file.rows("journal", "WHERE number > ?", (position,))]
        if not numbers:
            return
        brought = [
            row
            for number in numbers
            for _, row, enters in self.file.rows("changes", "WHERE number = ?", (number,))
            if enters
        ]
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
        left = self.file.connection.execute("SELECT vector FROM examples").fetchall()
        alone.difference_update(vector for (vector,) in left)
        self.file.delete("vectors", alone)


def entry(row: Row, contributor: str | None = None, *about: Any) -> Entry:
    """An entry from its row of the journal; about : the id and label of its only example."""
    number, at, verb, count, undone = row[:5]
    return Entry(number, moment_of(at), str(verb), count, bool(undone), contributor, *about)


def moment_of(at: int) -> datetime:
    """A time of a file."""
    return datetime.fromtimestamp(at / 1e6, UTC)
