"""What is found where in a picture: local descriptors, and the visual words they become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType
from knowmore.images.settings import no_mask


@final
@dataclass(frozen=True, eq=False)
class Descriptors:
    """The local descriptors of one picture.

    positions : where, (k, 2): x from left to right and y from top to bottom, both in [0, 1]
    vectors : what, (k, d)
    """

    positions: Array
    vectors: Array

    def __post_init__(self) -> None:
        _located(self.positions, self.vectors, 2, "vectors (k, d)")
        if not np.isfinite(self.vectors).all():
            raise InvalidInput("The descriptors have NaN or infinity among their values.")

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Descriptors({len(self)} of {self.vectors.shape[1]} numbers)"


@final
@dataclass(frozen=True, eq=False)
class Words:
    """The visual words of one picture.

    positions : where, (k, 2), in [0, 1]
    indices : which word, (k,), in [0, size)
    size : how many words the codebook has
    """

    positions: Array
    indices: Array
    size: int

    def __post_init__(self) -> None:
        _located(self.positions, self.indices, 1, "indices (k,)")
        if self.indices.dtype.kind not in "iu":
            raise InvalidInput(f"The words are of {self.indices.dtype}, but must be whole numbers.")
        if len(self) and not (self.indices.min() >= 0 and self.indices.max() < self.size):
            raise InvalidInput(
                f"The words go from {self.indices.min()} to {self.indices.max()}, but must lie in "
                f"[0, {self.size})."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Words({len(self)} of {self.size} different ones)"


_Value = TypeVar("_Value", Descriptors, Words)


def values(kind: type[_Value], X: Iterable[Any], source: str) -> list[_Value]:
    """X as a list of such values, or words on where they come from."""
    if isinstance(X, (Descriptors, Words)) or not isinstance(X, Iterable):
        raise InvalidType(
            f"A list of {kind.__name__} is needed, one for each picture, but a "
            f"{type(X).__name__} was given. They come from {source}."
        )
    X = list(X)
    for i, each in enumerate(X):
        if not isinstance(each, kind):
            raise InvalidType(
                f"Item {i} is a {type(each).__name__}, but {kind.__name__} are needed, one for "
                f"each picture. They come from {source}."
            )
    if not X:
        raise InvalidInput(f"The list of {kind.__name__} is empty. It needs one for each picture.")
    return X


def _located(positions: Array, found: Array, ndim: int, shape: str) -> None:
    no_mask("The array of positions", positions)
    no_mask("The array of what is found", found)
    if positions.dtype.kind not in "iuf" or found.dtype.kind not in "iuf":
        raise InvalidInput(
            f"The positions are of {positions.dtype} and what is found there is of {found.dtype}. "
            f"Both must be real numbers."
        )
    if found.ndim != ndim or positions.shape != (len(found), 2):
        raise InvalidInput(
            f"The positions have shape {positions.shape} and what is found there has shape "
            f"{found.shape}. They must be (k, 2) and {shape}."
        )
    if len(found) and not (positions.min() >= 0 and positions.max() <= 1):
        raise InvalidInput(
            f"The positions go from {positions.min():.6g} to {positions.max():.6g}, but must lie "
            f"in [0, 1]: divide x by the width of the picture and y by its height."
        )
    for array in (positions, found):
        array.flags.writeable = False
