"""What features depend on besides the picture, written so that equal means equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields
from importlib.metadata import version
from typing import Any

import numpy as np

from knowmore.errors import InvalidInput
from knowmore.extras import optional, require
from knowmore.images.codebooks import Codebook
from knowmore.images.embedding import EXTRA, Embedding

# Change it when the same settings begin to give other numbers: no entry of old counts any more.
VERSION = 2
# Pictures are reduced to this longest side. Much more shows little that patches of 16 pixels need.
LONGEST = 480


def settings_of(steps: Sequence[Any], longest: int = LONGEST) -> str:
    """All that features depend on but the picture, as canonical JSON.

    A codebook counts by what it has learnt, not by how. Other versions of the libraries may round
    otherwise. How many threads work makes no difference.
    """
    libraries = {name: optional(name, "images").__version__ for name in ("PIL", "cv2")}
    if any(isinstance(step, Embedding) for step in steps):
        # To load it would take longer than to look up what it once gave.
        require("torch", EXTRA)
        libraries["torch"] = version("torch")
    told = [[type(step).__name__, _learnt_or_set(step)] for step in steps]
    facts = {"version": VERSION, "longest": longest, "libraries": libraries, "steps": told}
    return canonical(facts)


def _learnt_or_set(step: Any) -> Any:
    if isinstance(step, Codebook):
        held: Any = step._held()
        arrays = [(field.name, getattr(held, field.name)) for field in fields(held)]
        parts = [canonical([n, a.dtype.str, a.shape]).encode() + a.tobytes() for n, a in arrays]
        return digest(b"".join(parts)).hex()
    return {name: value for name, value in step.get_params().items() if name != "n_jobs"}


def canonical(facts: Any) -> str:
    """JSON that is the same for the same facts."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        raise InvalidInput(
            f"A setting is a {type(value).__name__}, which cannot be written down, so that its "
            f"features could not be told from others. Do without a cache."
        )

    return json.dumps(facts, sort_keys=True, separators=(",", ":"), default=plain)


def digest(data: bytes) -> bytes:
    """SHA-256, 32 bytes."""
    return hashlib.sha256(data).digest()
