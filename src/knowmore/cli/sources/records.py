"""Records in blocks, and what is asked of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from knowmore.arrays import Array
from knowmore.edits import Id
from knowmore.store.reports import content

if TYPE_CHECKING:
    # Only a source of pictures pays for loading what reads them.
    from knowmore.images.sources import Picture

# Rows of a table are turned into numbers so many at a time.
ROWS = 4096
# Hexadecimal digits of a content hash that serve as an id.
_DIGITS = 16


@final
@dataclass(frozen=True)
class Wanted:
    """What is asked of a source.

    label, id : the names of their columns; None: "label" and "id", if there are such
    columns : the features that the model knows, in its order; None if it knows no names
    labelled : whether there must be labels
    usual_label, usual_id : what the model calls these columns
    gaps : whether a cell of a table without a finite number is NaN; else it is an error
    """

    label: str | None = None
    id: str | None = None
    columns: tuple[str, ...] | None = None
    labelled: bool = True
    usual_label: str | None = None
    usual_id: str | None = None
    gaps: bool = False


@final
@dataclass(frozen=True, eq=False)
class Block:
    """Some records of a source, in order.

    X : numbers (k, d), or k pictures
    labels : k, or None if the source has none
    ids : k, or None if the source has none
    contributors : k, each None if it is not known
    places : where each is in the source, for errors: "line 7"
    """

    X: Array | Sequence[Picture]
    labels: Sequence[Any] | None
    ids: Sequence[Id] | None
    contributors: Sequence[str | None]
    places: Sequence[str]

    def __len__(self) -> int:
        return len(self.places)

    def contents(self) -> list[bytes]:
        """The SHA-256 of each row of numbers and of the label that the source gives it.

        With that label, and not the one held: a label that was corrected by hand stays corrected
        when the same source is learnt again.
        """
        rows = np.ascontiguousarray(self.X, dtype="<f8")
        labels = [None] * len(rows) if self.labels is None else self.labels
        return [content(row.tobytes(), label) for row, label in zip(rows, labels, strict=True)]


def content_id(digest: bytes) -> str:
    """The id of an example that has no other name.

    >>> content_id(content(b"", "rose"))
    'a7f92d3a0b180d0d'
    """
    return digest.hex()[:_DIGITS]


@final
@dataclass(frozen=True, eq=False)
class Source:
    """Something to read records from, perhaps only once.

    name : as the user wrote it
    blocks : the records
    columns : the names of the features, if the source has them
    pictures : whether its records are pictures
    about : how the features in it were made from pictures, if they were
    words : where the visual words of these features may be
    skipped : what cannot be read, and why, by name; grows while blocks are read
    ignored : columns that the model does not know, and does without
    label, id : the names of these columns, if there are such
    """

    name: str
    blocks: Callable[[], Iterator[Block]]
    columns: tuple[str, ...] | None = None
    pictures: bool = False
    about: Mapping[str, Any] | None = None
    words: Any = None
    skipped: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None
