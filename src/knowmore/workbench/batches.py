"""The records of a source in batches that are learnt together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from knowmore._base import Id
from knowmore.errors import KnowmoreError, RepeatedId
from knowmore.store import content
from knowmore.workbench.model import same_id
from knowmore.workbench.sources import RecordBlock, Source, content_id

if TYPE_CHECKING:
    from knowmore.workbench.learning import Learnt

# Numbers are learnt so many bytes at a time.
_BYTES = 2**28
# So many different numbers, each in at most so few examples, seem to be values to predict.
_MANY, _FEW = 20, 5


@dataclass(frozen=True, eq=False)
class LearnBatch:
    """Records that are learnt together, each with an id and a content."""

    X: Any
    labels: list[Any]
    ids: list[Id]
    contents: list[bytes]
    contributors: list[str | None]
    places: list[str]
    # Where each comes from, if that is not the source.
    origins: list[str | None]
    # Whether the ids are made from the contents, so that the same row has the same id.
    hashed: bool = False
    # What the file keeps of each record to show it; None until the records are described.
    shown: list[bytes | None] | None = None

    def of(self, rows: list[int]) -> LearnBatch:
        """Some of the records."""
        X = self.X[rows] if isinstance(self.X, np.ndarray) else [self.X[i] for i in rows]
        names = "labels", "ids", "contents", "contributors", "places", "origins"
        some: dict[str, Any] = {name: [getattr(self, name)[i] for i in rows] for name in names}
        return replace(self, X=X, **some)


class SeenRecords:
    """The ids of a source so far. A repeated id is an error, a repeated row counts once.

    counts : is told of records that are repeated, or name their contributor
    """

    def __init__(self, source: Source, counts: Learnt) -> None:
        self.source, self.counts = source, counts
        self.places: dict[Id, str] = {}
        self.labels: set[Any] = set()

    def new(self, part: LearnBatch, held: Any = ()) -> LearnBatch:
        """The records of a batch that did not come before, under the ids that the model holds."""
        kept = []
        if part.hashed:
            self.counts.ids = "content"
        self.labels.update(part.labels)
        for i, one in enumerate(part.ids):
            name = same_id(one, held)
            part.ids[i] = name
            if name not in self.places:
                self.places[name] = part.places[i]
                kept.append(i)
            elif part.hashed:
                self.counts.repeated += 1
            else:
                raise RepeatedId(
                    f"{self.source.name!r} has the id {one!r} twice, in {self.places[name]} and in "
                    f"{part.places[i]}. Give each row an id of its own."
                )
        part = part if len(kept) == len(part.ids) else part.of(kept)
        self.counts.named += sum(one is not None for one in part.contributors)
        return part

    def values(self) -> int:
        """The number of different labels if they seem to be values; 0 if they seem to be classes.

        A guess: classes have names, or are few, or have many examples each.
        """
        many = len(self.labels) >= max(_MANY, len(self.places) / _FEW)
        return len(self.labels) if many and all(map(_is_number, self.labels)) else 0


def batches_of(source: Source) -> Iterator[LearnBatch]:
    """The records of a source, some at a time; pictures, which are read later, all at once."""
    waiting: list[RecordBlock] = []
    size = 0
    for block in source.blocks():
        waiting.append(block)
        size += 0 if source.described else np.asarray(block.X).nbytes
        if size >= _BYTES:
            yield _joined(waiting, source)
            waiting, size = [], 0
    if waiting:
        yield _joined(waiting, source)


def _joined(blocks: list[RecordBlock], source: Source) -> LearnBatch:
    labels = [one for block in blocks for one in block.labels or ()]
    places = [one for block in blocks for one in block.places]
    contributors = [one for block in blocks for one in block.contributors]
    origins: list[str | None] = []
    for block in blocks:
        origins += block.origins or [None] * len(block)
    hashed = blocks[0].ids is None
    if source.pictures:
        pictures = [one for block in blocks for one in block.X]
        ids: list[Id] = [one for block in blocks for one in block.ids or ()]
        return _readable(source, pictures, labels, ids, contributors, places, origins)
    contents = [one for block in blocks for one in block.contents()]
    ids = [content_id(one) for one in contents]
    if not hashed:
        ids = [one for block in blocks for one in block.ids or ()]
    X: Any = [record for block in blocks for record in block.X]
    if not source.described:
        X = np.concatenate([np.asarray(block.X) for block in blocks])
    return LearnBatch(X, labels, ids, contents, contributors, places, origins, hashed)


def _is_number(label: Any) -> bool:
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False


def folder_label(one: Id) -> str:
    """The label that a picture had in its source."""
    return PurePosixPath(str(one)).parent.name


def decodable(source: Source, part: LearnBatch, rows: list[int]) -> list[int]:
    """The rows that can be learnt; a text that cannot be used, or a picture that cannot be decoded,
    is noted as skipped.
    """
    if source.holds == "texts":
        from knowmore.texts import unusable

        found = {i: unusable(part.X[i]) for i in rows}
        source.skipped.update(
            (f"{source.name}, {part.places[i]}", why) for i, why in found.items() if why is not None
        )
        return [i for i, why in found.items() if why is None]
    if not source.pictures:
        return rows
    from knowmore.images import LONGEST, small

    for i in rows:
        name = part.X[i].name
        try:
            small(part.X[i].read(), repr(name), LONGEST)
        except KnowmoreError as error:
            source.skipped[name] = str(error).removeprefix(f"{name!r} ")
    return [i for i in rows if part.X[i].name not in source.skipped]


def _readable(
    source: Source,
    pictures: Any,
    labels: Any,
    ids: Any,
    contributors: Any,
    places: Any,
    origins: Any,
) -> LearnBatch:
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
    return LearnBatch(pictures, labels, ids, contents, contributors, places, origins).of(kept)
