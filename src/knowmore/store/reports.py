"""Reports of a store: records, status, and the result of forgetting.

Some things stay in a file when examples are forgotten, though these may have had a part in them.
The examples left choose kernel widths, noises and grids again. They cannot make again what came
from other sources, or from a search such as `tune`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import islice
from json import dumps, loads
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, final

from knowmore._base import Id
from knowmore.store import kinds
from knowmore.store.file import FORMAT, File, Row
from knowmore.store.journal import Givers, Journal, Version, moment_of
from knowmore.store.kinds import string
from knowmore.store.work import HeldState, holding

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
    names = iter(held.index if ids is None else holding(held, journal).chosen(ids))
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


def contributors(file: File, held: HeldState) -> list[str | None]:
    """The giver of the features of each example; None if unknown."""
    texts = Journal(file, held.numbers).feature_givers()
    with file.understood("examples"):
        names = {text: string(text) for text in set(texts.values())}
        return [names[texts[vector]] for _, vector in held.index.values()]


def _record(name: Id, version: Version, vector: Row, givers: Givers, kept: bool) -> Record:
    """The record of a version and its row of vectors; raises any error if they are damaged."""
    content, thumbnail = vector[3:]
    return Record(
        name,
        loads(version.label),
        float(version.weight),
        string(version.origin),
        string(givers.features),
        moment_of(version.at),
        content,
        thumbnail,
        string(givers.label),
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
            repr(held.estimator.kernel_) if can.keeps_rows and held.fitted else None,
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
    return {string(name): counts[name] for name in (None, *known) if counts[name]}


# -- what stays when examples are forgotten ------------------------------------------------------

# The verb of an entry that sets parameters which `tune` found.
TUNE = "tune"


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
