"""What the commands keep in a model's file beside its examples, as JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np

from knowmore.arrays import Array

_NOTE = "note/"


def notes_of(store: Any) -> dict[str, Any]:
    """The notes in a store, by name."""
    facts = store._held.facts
    return {
        name.removeprefix(_NOTE): value for name, value in facts.items() if name.startswith(_NOTE)
    }


def set_notes(store: Any, **notes: Any) -> None:
    """Write notes into a store."""
    with store._lock:
        with store._file.writing():
            store._file.write_facts({f"{_NOTE}{name}": value for name, value in notes.items()})
        store.refresh()


def packed(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Arrays as JSON."""
    return {
        name: {
            "type": array.dtype.newbyteorder("<").str,
            "shape": list(array.shape),
            "data": b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode(),
        }
        for name, array in arrays.items()
    }


def unpacked(found: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays that `packed` was given."""
    arrays = {}
    for name, one in found.items():
        if np.dtype(one["type"]).kind not in "biuf":
            raise ValueError(f"an array of type {one['type']}")
        array = np.frombuffer(b64decode(one["data"], validate=True), one["type"])
        arrays[name] = array.reshape(one["shape"]).astype(array.dtype.newbyteorder("="))
    return arrays
