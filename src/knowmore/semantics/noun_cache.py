"""Nouns that were read before, in one .npz file without pickle.

The file belongs to the SHA-256 of all that was read. It is there wholly or not at all. What is
damaged is written anew, and where nothing can be written there is no cache.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, MissingData
from knowmore.files import load, save, user_folder
from knowmore.semantics.nouns import Nouns
from knowmore.semantics.sources import Source

_KIND = "WordNet"
# Another number for another way to read or to keep.
_FORMAT = 2
_TEXTS = ("words", "glosses", "lemmas", "exceptions")
_COUNTS = "frequencies:"


def read(source: Source) -> Nouns:
    """The nouns of a source, from the cache if they are there."""
    path = _place(source)
    if path is not None:
        try:
            return load(path, _KIND, _unpacked)
        except InvalidInput:
            pass  # It is not there, or it is damaged.
    nouns = _parsed(source)
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save(path, _KIND, {}, _packed(nouns))
        except OSError:
            pass  # The disk is full, or not to be written to: next time takes as long.
    return nouns


def _place(source: Source) -> Path | None:
    key = hashlib.sha256(f"{_FORMAT} {source.digest()}".encode()).hexdigest()
    try:
        return user_folder() / f"wordnet-{key[:32]}.npz"
    except MissingData:
        return None  # Nobody is at home.


def _parsed(source: Source) -> Nouns:
    files = source.files()
    try:
        return Nouns.of(files)
    except InvalidInput as error:
        raise InvalidInput(f"{str(source.path)!r} cannot be read as WordNet: {error}") from error


def _packed(nouns: Nouns) -> dict[str, Array]:
    arrays = {f"{_COUNTS}{name}": values for name, values in nouns.frequencies.items()}
    for field in fields(nouns):
        value = getattr(nouns, field.name)
        if field.name in _TEXTS:
            arrays[field.name] = np.frombuffer(value.encode(), dtype=np.uint8)
        elif field.name != "frequencies":
            arrays[field.name] = value
    return arrays


def _unpacked(_: dict[str, Any], arrays: dict[str, Array]) -> Nouns:
    facts: dict[str, Any] = {"frequencies": {}}
    for name, value in arrays.items():
        if name.startswith(_COUNTS):
            facts["frequencies"][name.removeprefix(_COUNTS)] = value
        else:
            facts[name] = value.tobytes().decode() if name in _TEXTS else value
    return Nouns(**facts)
