"""Describers: what turns pictures, texts or rows of cells into the vectors of a model.

A describer is settled by the first examples and kept in the model's file, as a note and arrays.
The note has the name of what it describes, so a file has at most one of these notes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from knowmore._base import Array
from knowmore.tables import Encoding, json_of
from knowmore.workbench.cells import CellDescriber
from knowmore.workbench.sources import Source, record_bytes

if TYPE_CHECKING:
    from knowmore.store import Store
    from knowmore.workbench.sources.records import Holds

# The note of each kind of records that are described.
NOTES: Mapping[Holds, str] = {"pictures": "pictures", "texts": "texts", "cells": "table"}
# Told how many of how many records are done.
Report = Callable[[int, int], None]


class Describer(Protocol):
    """Turns records into vectors, each in a way that depends on no other record."""

    def vectors(self, records: Sequence[Any], progress: Report | None = None) -> list[Array | str]:
        """The vector (d,) of each record, or the reason why it has none."""

    def kept(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The note and the arrays that a model keeps of it."""


def stored_describer(store: Store, notes: Mapping[str, Any]) -> Describer | None:
    """The describer that a file keeps; None for a model of numbers."""
    if "pictures" in notes:
        from knowmore.images import WORDS, PictureDescriber

        return PictureDescriber.stored(notes["pictures"], store.arrays(WORDS))
    if "table" in notes:
        return CellDescriber(Encoding.of(notes["table"]))
    if "texts" in notes:
        from knowmore.texts import TextDescriber

        return TextDescriber.stored(notes["texts"])
    return None


def learnt_describer(
    source: Source, records: Sequence[Any], wish: Mapping[str, Any], progress: Report
) -> Describer:
    """A describer for a new model, from its first records.

    wish : what the user asked for, as the note "features" has it
    """
    if source.table is not None:
        return CellDescriber(source.table.chosen(records))
    if source.holds == "texts":
        from knowmore.texts import TextDescriber

        return TextDescriber.usual()
    from knowmore.images import DEFAULT_SIZE, PictureDescriber, default_kind

    kind, words = wish.get("kind", default_kind()), wish.get("words", DEFAULT_SIZE)
    return PictureDescriber.learnt(kind, records, words, progress)


def novelty_method(notes: Mapping[str, Any]) -> str | None:
    """The method that tells unknown records best; None for the usual one of the kind of model.

    Classes of texts differ in what they say, not in how far they are from the mean of all: what is
    new is a text without a known word, and the variance says so (decision 31).
    """
    return "variance" if "texts" in notes else None


def told(source: Source, records: Sequence[Any]) -> list[str] | None:
    """What is shown of records in words; None of those that have none, such as pictures."""
    return [*records] if source.holds == "texts" else None


def text_of(notes: Mapping[str, Any], kept: bytes | None) -> str | None:
    """The text of an example, from what its file keeps to show it; None if it is no text."""
    return None if kept is None or "texts" not in notes else kept.decode()


def shown(source: Source, records: Sequence[Any]) -> list[bytes | None]:
    """What a file keeps of each record to show it to people; nothing of pictures and numbers.

    Pictures are read again where they are.
    """
    if source.holds == "cells":
        return [json_of(record) for record in records]
    keeps = source.described and not source.pictures
    return [record_bytes(record) if keeps else None for record in records]
