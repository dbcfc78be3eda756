"""A new file for a living model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knowmore.arguments import a_type
from knowmore.errors import InvalidInput, InvalidType
from knowmore.store import kinds, sources
from knowmore.store.caches import keep
from knowmore.store.journal import Numbers
from knowmore.store.layout import File


def create(path: Path, estimator: Any, timeout: float) -> None:
    """Make a file with the settings of an unfitted estimator, unless somebody else has made it."""
    kind = kinds.kind_of(estimator)
    if kind not in kinds.LIVING:
        raise InvalidType(
            f"{a_type(estimator)} holds no examples that a file could keep. Write what it "
            f"learnt with save(path), and read it with knowmore.load(path)."
        )
    if hasattr(estimator, "_living") or hasattr(estimator, "model_"):
        raise InvalidInput(
            "A new file is made with an unfitted estimator, whose settings it takes. Write a "
            "fitted one with save(path), and open that."
        )
    facts = {
        "kind": kind,
        "parameters": kinds.parameters(estimator),
        "numbers": list(Numbers()),
        "columns": None,
        "labels": None,
        "state": None,
        "notes": {},
        **sources.facts_of(estimator, path),
    }
    arrays = sources.arrays_of(estimator)
    file = File(path, timeout=timeout, create=True)

    def write() -> None:
        number, facts["arrays"] = keep(file, 1, arrays)
        facts["numbers"] = list(Numbers(array=number))
        file.write_facts(facts)

    try:
        file.make(write)
    finally:
        file.close()
