"""`knowmore status`: a model in a few lines."""

from __future__ import annotations

from collections import Counter
from typing import Any

from knowmore.cli.model import Model
from knowmore.cli.showing import show_table


def status_of(model: Model) -> dict[str, Any]:
    """What a model holds."""
    found = model.store.status()
    notes = model.notes
    pictures = notes.get("pictures")
    return {
        "model": str(model.store.path),
        "kind": found.kind,
        "examples": found.examples,
        "classes": None if model.is_regression else _pairs("label", found.classes),
        "features": found.features,
        "columns": notes.get("columns"),
        "pictures": None if pictures is None else pictures["about"]["kind"],
        "contributors": _pairs("name", found.contributors),
        "origins": _pairs("name", Counter(one.origin for one in model.store.records())),
        "kernel": found.kernel,
        "settings": {name: _plain(value) for name, value in found.parameters.items()},
        "edits": found.entries,
        "undone": found.undone,
        "bytes": found.size,
        "format": found.format,
    }


def _plain(value: Any) -> Any:
    """A setting as JSON has it; a kernel in words."""
    return value if isinstance(value, (bool, int, float, str)) or value is None else repr(value)


def _pairs(name: str, counts: Any) -> list[dict[str, Any]]:
    """Counts as a list: in JSON only texts can be keys."""
    return [{name: key, "examples": count} for key, count in counts.items() if key is not None]


def show_status(answer: dict[str, Any]) -> None:
    """Print it for people."""
    columns = answer["columns"]
    shown = (
        "" if not columns else f" ({', '.join(columns[:6])}{', ...' if len(columns) > 6 else ''})"
    )
    facts = {
        "model": answer["model"],
        "kind": answer["kind"],
        "examples": answer["examples"],
        "features": f"{answer['features'] or 'none yet'}{shown}",
        "pictures": answer["pictures"],
        "kernel": answer["kernel"],
        "edits": answer["edits"],
        "size": f"{answer['bytes']:,} bytes, format {answer['format']}",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            print(f"{name.ljust(width)}  {value}")
    for name, headings in (
        ("classes", ("class", "examples")),
        ("contributors", ("contributor", "gave features or label of")),
        ("origins", ("origin", "examples")),
    ):
        if answer[name]:
            print()
            show_table(headings, [list(pair.values()) for pair in answer[name]])
