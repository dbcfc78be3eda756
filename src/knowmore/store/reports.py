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
from knowmore.store.journal import Version, moment_of
from knowmore.store.layout import FORMAT
from knowmore.store.schema import Row
from knowmore.store.traces import Trace


@final
class Record(NamedTuple):
    """What is known of an example beside its features.

    id, label, weight : as it was given
    origin : where it came from; None if unknown
    contributor : who gave it; None if unknown
    at : when this version of it was written, UTC
    content : the SHA-256 of what it was made from; None if unknown
    thumbnail : a small picture of it, as bytes of an image file; None if there is none
    """

    id: Id
    label: Any
    weight: float
    origin: str | None
    contributor: str | None
    at: datetime
    content: bytes | None
    thumbnail: bytes | None


def record(name: Id, version: Version, vector: Row) -> Record:
    """What a version and its row of vectors say; raises any error if they make no sense."""
    return Record(
        name,
        loads(version.label),
        float(version.weight),
        string(version.origin),
        string(version.contributor),
        moment_of(version.at),
        *vector[3:],
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
    """

    count: int
    traces: list[Trace]


@final
@dataclass(frozen=True)
class Status:
    """What a file holds.

    kind : of model
    examples : how many there are
    classes : how many there are of each class, or of each target none
    features : how many numbers describe an example
    names : of the features, or None
    contributors : how many examples there are of each; None stands for those without
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
