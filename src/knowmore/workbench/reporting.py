"""The journal and the contents of an open model."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, final

from knowmore._base import Id
from knowmore.store import Entry, Store
from knowmore.workbench.model import noted, predicts_values


@final
@dataclass(frozen=True)
class HistoryEntry:
    """An entry of the journal as faces show it.

    at : the time, UTC, as ISO 8601 writes it
    id, label : of the only example that the entry is about; else None
    """

    number: int
    at: str
    verb: str
    count: int
    id: Id | None
    label: Any
    contributor: str | None
    undone: bool


def history(store: Store) -> list[HistoryEntry]:
    """The entries of the journal, the oldest first."""
    return [history_entry(entry) for entry in store.log()]


def history_entry(entry: Entry) -> HistoryEntry:
    """An entry of a store's journal for faces."""
    return HistoryEntry(
        entry.number,
        entry.at.isoformat(timespec="seconds"),
        entry.verb,
        entry.count,
        entry.id,
        entry.label,
        entry.contributor,
        entry.undone,
    )


@final
@dataclass(frozen=True)
class ModelStatus:
    """The contents of a model, in values that JSON has.

    classes : the number of examples by label; None for a regressor
    features : the number of features; None before the first example
    columns : the names of the features, if they have names
    pictures : how pictures become vectors, if the model has learnt pictures
    contributors, origins : the number of examples by name
    settings : the parameters of the estimator; a kernel in words
    edits, undone : entries of the journal, and how many of these are undone
    """

    model: str
    kind: str
    examples: int
    classes: list[dict[str, Any]] | None
    features: int | None
    columns: list[str] | None
    pictures: str | None
    contributors: list[dict[str, Any]]
    origins: list[dict[str, Any]]
    kernel: str | None
    settings: dict[str, Any]
    edits: int
    undone: int
    bytes: int
    format: int

    def as_json(self) -> dict[str, Any]:
        """The status as a dictionary."""
        return asdict(self)


def status(store: Store) -> ModelStatus:
    """The contents of a model: examples by class, contributors, features, settings, size."""
    facts, notes = store.status(), noted(store)
    pictures = notes.get("pictures")
    return ModelStatus(
        model=str(store.path),
        kind=facts.kind,
        examples=facts.examples,
        classes=None if predicts_values(store) else _pairs("label", facts.classes),
        features=facts.features,
        columns=notes.get("columns"),
        pictures=None if pictures is None else pictures["about"]["kind"],
        contributors=_pairs("name", facts.contributors),
        origins=_pairs("name", Counter(record.origin for record in store.records())),
        kernel=facts.kernel,
        settings={name: _plain(value) for name, value in facts.parameters.items()},
        edits=facts.entries,
        undone=facts.undone,
        bytes=facts.size,
        format=facts.format,
    )


def _plain(value: Any) -> Any:
    """A setting as JSON has it; a kernel in words."""
    return value if isinstance(value, (bool, int, float, str)) or value is None else repr(value)


def _pairs(name: str, counts: Any) -> list[dict[str, Any]]:
    """Counts as a list: in JSON only texts can be keys."""
    return [{name: key, "examples": count} for key, count in counts.items() if key is not None]
