"""What a store says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from json import dumps, loads
from pathlib import Path
from typing import Any, NamedTuple, final

from knowmore.edits import Id
from knowmore.store.codec import string
from knowmore.store.journal import Givers, Version, moment_of
from knowmore.store.schema import FORMAT, Row
from knowmore.store.traces import Trace


@final
class Record(NamedTuple):
    """What is known of an example beside its features.

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


def record(name: Id, version: Version, vector: Row, givers: Givers, kept: bool) -> Record:
    """What a version and its row of vectors say; raises any error if they make no sense."""
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
@dataclass(frozen=True)
class Forgotten:
    """What `forget` did.

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
        """All that may be left of them, in sentences; "" if nothing is."""
        return " ".join(filter(None, (self.warning, *self.kept)))


@final
class Preview(NamedTuple):
    """What `forget` would do.

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
    """What a file holds.

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
