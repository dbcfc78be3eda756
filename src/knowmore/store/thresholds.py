"""Above which value a row is unknown to a model: in its file, since to compute it takes long.

It is kept for the state of examples and settings that it was computed from, and every edit drops
it. The text has always the same length, so that it is overwritten in its place: nothing is left.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from json import dumps, loads
from typing import Any, Final, NamedTuple

from knowmore.store.caches import Doubt, read_parts, write_parts
from knowmore.store.journal import SETTINGS
from knowmore.store.layout import File
from knowmore.store.schema import CACHE

_NAME: Final = f"{CACHE}thresholds"
_LENGTH: Final = 1024
_RATES: Final = 8

# What is kept is of this measure of novelty; that of another is not used.
_MEASURE: Final = 3
# The weights of a linear model that has learnt rows with nothing in common with others.
LEARNT: Final = (0.0,)


class Thresholds(NamedTuple):
    """What tells known rows from unknown ones.

    weights : of the parts of novelty that a model combines; `LEARNT`, or empty if it combines none
    known : the threshold for each rate of examples that may be called unknown
    """

    weights: tuple[float, ...]
    known: dict[float, float]


def state_of(file: File, facts: dict[str, Any]) -> str:
    """A digest of the examples, by their hashes, and of the settings."""
    settings = [facts[one] for one in SETTINGS]
    held = [_MEASURE, file.totals["examples"], file.totals["vectors"], settings]
    return blake2b(dumps(held).encode(), digest_size=16).hexdigest()


def read(file: File, state: str) -> Thresholds | None:
    """What was kept in this state."""
    with suppress(Doubt, LookupError, TypeError, ValueError):
        found = loads(next(read_parts(file, _NAME), b"{}"))
        if found["state"] == state:
            known = {float(rate): float(value) for rate, value in found["known"]}
            return Thresholds(tuple(map(float, found["weights"])), known)
    return None


def write(file: File, number: int, state: str, known: Thresholds) -> int:
    """Keep the last ones of these; returns the next free number of an array."""
    last = list(known.known.items())[-_RATES:]
    text = dumps({"state": state, "weights": known.weights, "known": last}).encode()
    return write_parts(file, number, _NAME, {0: text.ljust(_LENGTH)})


def drop(file: File) -> None:
    """Overwrite what is kept."""
    held = file.fetched("SELECT array, part FROM arrays WHERE name = ?", (_NAME,))
    file.replace("arrays", [(n, _NAME, part, b" " * _LENGTH) for n, part in held])
