"""How sharp the probabilities of a model are: in its file, since to compute it takes long.

It is kept for the state of examples and settings that it was computed from, like thresholds, and
every edit drops it. The text has always the same length, so that it is overwritten in its place.
"""

from __future__ import annotations

from contextlib import suppress
from json import dumps, loads
from typing import Final

from knowmore.store.caches import Doubt, read_parts, write_parts
from knowmore.store.layout import File
from knowmore.store.schema import CACHE

_NAME: Final = f"{CACHE}temperature"
_LENGTH: Final = 128


def read(file: File, state: str) -> float | None:
    """That which was kept in this state."""
    with suppress(Doubt, LookupError, TypeError, ValueError):
        found = loads(next(read_parts(file, _NAME), b"{}"))
        if found["state"] == state and 0 < (value := float(found["temperature"])) < float("inf"):
            return value
    return None


def write(file: File, number: int, state: str, temperature: float) -> int:
    """Keep it; returns the next free number of an array."""
    text = dumps({"state": state, "temperature": temperature}).encode()
    return write_parts(file, number, _NAME, {0: text.ljust(_LENGTH)})


def drop(file: File) -> None:
    """Overwrite what is kept."""
    held = file.fetched("SELECT array, part FROM arrays WHERE name = ?", (_NAME,))
    file.replace("arrays", [(n, _NAME, part, b" " * _LENGTH) for n, part in held])
