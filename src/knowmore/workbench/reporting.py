"""The journal and the contents of an open model, and the model written for elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from knowmore.errors import InvalidInput, NoExamples
from knowmore.store import Entry, Store
from knowmore.workbench.model import describing, noted, predicts_values


def history(store: Store) -> list[dict[str, Any]]:
    """The entries of the journal, the oldest first."""
    return [history_entry(entry) for entry in store.log()]


def history_entry(entry: Entry) -> dict[str, Any]:
    """An entry of a store's journal as JSON has it, with its time as ISO 8601 writes it."""
    return {
        "number": entry.number,
        "at": entry.at.isoformat(timespec="seconds"),
        "verb": entry.verb,
        "count": entry.count,
        "id": entry.id,
        "label": entry.label,
        "contributor": entry.contributor,
        "undone": entry.undone,
    }


def status(store: Store) -> dict[str, Any]:
    """The contents of a model as JSON has them: `Store.status`, and what its notes and records say.

    columns : the names of the features, if they have names
    pictures : how pictures become vectors, if the model has learnt pictures
    contributors, origins : the number of examples by name
    settings : the parameters of the estimator; a kernel in words
    edits, undone : entries of the journal, and how many of these are undone
    """
    facts, notes = store.status(), noted(store)
    plain = (bool, int, float, str, type(None))
    return {
        "model": str(store.path),
        "kind": facts.kind,
        "examples": facts.examples,
        "classes": None if predicts_values(store) else _pairs("label", facts.classes),
        "features": facts.features,
        "columns": notes.get("columns"),
        "pictures": notes["pictures"]["about"]["kind"] if "pictures" in notes else None,
        "contributors": _pairs("name", facts.contributors),
        "origins": _pairs("name", Counter(record.origin for record in store.records())),
        "kernel": facts.kernel,
        "settings": {
            name: value if isinstance(value, plain) else repr(value)
            for name, value in facts.parameters.items()
        },
        "edits": facts.entries,
        "undone": facts.undone,
        "bytes": facts.size,
        "format": facts.format,
    }


def _pairs(name: str, counts: Any) -> list[dict[str, Any]]:
    """Counts as a list: in JSON only texts can be keys."""
    return [{name: key, "examples": count} for key, count in counts.items() if key is not None]


def export(
    store: Store,
    files: dict[str, Path],
    *,
    path: Path | None = None,
    done: Callable[[Path], None] = lambda file: None,
) -> str:
    """Write a model in these forms; returns a note on what the files take, or "".

    files : the file by form: onnx, table, html, javascript
    path : what to call the model in errors and notes; its own path if None
    done : called after each file
    """
    path = store.path if path is None else path
    if not len(store.ids_):
        raise NoExamples(f"{str(path)!r} holds no examples yet. Teach it: knowmore learn.")
    of_pictures = store.notes.get("pictures") is not None
    if "html" in files and of_pictures:
        raise InvalidInput(
            f"{str(path)!r} has learnt pictures, and a page would ask for the "
            f"{store.n_features_in_:,} numbers that describe one. Nothing was written. Take "
            f"--onnx or --javascript, and describe pictures as the model does: {describing(path)}"
        )
    # Loaded for this question alone.
    from knowmore.export import to_html, to_javascript, to_onnx, to_table

    writers = {"onnx": to_onnx, "table": to_table, "html": to_html, "javascript": to_javascript}
    for form, file in files.items():
        writers[form](store, file)
        done(file)
    if of_pictures and not files.keys().isdisjoint(("onnx", "javascript")):
        return f"It takes the vectors of pictures: {describing(path)}"
    return ""
