"""What is done to pictures whose features are wanted: read, looked up, unpacked, computed.

Whatever is wrong with one of them is its `Failure`, and the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.extras import optional
from knowmore.images.extraction_cache import Cache
from knowmore.images.extraction_settings import digest
from knowmore.images.reading import encoded, small

# Unpacked pictures go through the steps together until they have so many bytes.
TOGETHER = 2**26
# What a picture is called that stands alone in its list.
_ALONE = "Picture 0"


@dataclass(frozen=True)
class Failure:
    """Why a picture has no features."""

    why: str


@dataclass(frozen=True)
class Work:
    """What is done to a block of pictures: what was computed before is looked up, unless `anew`.

    Whatever the block, one file is in memory at a time, and of large pictures only a few.
    """

    steps: Sequence[Any]
    longest: int
    cache: Cache | None = None
    settings: bytes = b""
    anew: bool = False

    def __call__(self, block: list[Any]) -> tuple[list[Any], int]:
        """What the steps make of each picture, or why they cannot; and how many were computed."""
        keys: list[bytes] = []
        found: dict[bytes, Any] = {}
        waiting: dict[bytes, Array] = {}
        computed = 0
        for place, picture in enumerate(block, start=1):
            key, value, is_known = self._arrived(picture, place)
            keys.append(key)
            (found if is_known else waiting)[key] = value
            room = TOGETHER - sum(pixels.nbytes for pixels in waiting.values())
            if waiting and (room <= 0 or place == len(block)):
                fine, unfit = self._computed(waiting)
                found |= fine | unfit
                computed += len(fine)
                waiting = {}
        return [found[key] for key in keys], computed

    def _arrived(self, picture: Any, place: int) -> tuple[bytes, Any, bool]:
        """A key; and features or a failure, which are known, or pixels, with which to go on."""
        file = read(picture)
        if isinstance(file, Failure):
            return b"%d" % place, file, True
        key = digest(file)
        known = {} if self.cache is None or self.anew else self.cache.get(self.settings, [key])
        if key in known:
            return key, known[key], True
        unpacked = _decoded(file, self.longest)
        return key, unpacked, isinstance(unpacked, Failure)

    def _computed(self, pictures: dict[bytes, Array]) -> tuple[dict[bytes, Any], dict[bytes, Any]]:
        """The features of the pictures, also for the cache; and why others have none."""
        try:
            results: Sequence[Any] = _chained(self.steps, list(pictures.values()))
        except _unusable():
            # One picture cannot be used: find out which.
            results = [_chained_alone(self.steps, each) for each in pictures.values()]
        every = {key: _finite(each) for key, each in zip(pictures, results, strict=True)}
        unfit = {key: each for key, each in every.items() if isinstance(each, Failure)}
        fine = {key: each for key, each in every.items() if key not in unfit}
        if self.cache is not None and fine:
            self.cache.put(self.settings, fine)
        return fine, unfit


def _decoded(file: bytes, longest: int) -> Array | Failure:
    try:
        return small(file, _ALONE, longest)
    except InvalidInput as error:
        return _failure(error)


def _finite(result: Any) -> Any:
    if isinstance(result, np.ndarray) and not np.isfinite(result).all():
        return Failure("has features with NaN or infinity among them.")
    return result


def _unusable() -> tuple[type[Exception], ...]:
    """What a picture can make the steps raise."""
    return InvalidInput, MemoryError, optional("cv2", "images").error


def _chained(steps: Sequence[Any], values: Any) -> Sequence[Any]:
    for step in steps:
        values = step.transform(values)
    found: Sequence[Any] = values
    return found


def _chained_alone(steps: Sequence[Any], picture: Array) -> Any:
    try:
        return _chained(steps, [picture])[0]
    except _unusable() as error:
        return _failure(error)


def _failure(error: Exception, name: str = "") -> Failure:
    if isinstance(error, InvalidInput):
        return Failure(str(error).removeprefix(f"{_ALONE} ").removeprefix(f"{name!r} "))
    why = " ".join(str(error).split()) or type(error).__name__
    return Failure(f"cannot be used: {why}. Leave it out, or reduce it first.")


def read(picture: Any) -> bytes | Failure:
    """The file of a picture."""
    try:
        return encoded(picture, _ALONE)
    except InvalidInput as error:
        return _failure(error, getattr(picture, "name", ""))


def content_of(file: bytes | Failure) -> bytes:
    """The SHA-256 of a file; nothing for one that could not be read."""
    return b"" if isinstance(file, Failure) else digest(file)
