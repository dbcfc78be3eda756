"""Local descriptors on a grid, and the visual words that codebooks turn them into.

Whatever describes a patch (`DenseSIFT`, `DenseSURF`, `SelfSimilarity`), the grid is the same, and
so codebooks and pyramids take them all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar, final

import numpy as np

from knowmore._base import Array, Frozen, a_type, is_real, optional, whole_number
from knowmore.errors import InvalidInput, InvalidType
from knowmore.images.reading import Transformer, named, pixels, refuse_masked, threaded


@final
@dataclass(frozen=True, eq=False)
class Descriptors(Frozen):
    """The local descriptors of one picture.

    positions : where, (k, 2): x from left to right and y from top to bottom, both in [0, 1]
    vectors : what, (k, d)
    """

    positions: Array
    vectors: Array

    def __post_init__(self) -> None:
        _check_located(self.positions, self.vectors, 2, "vectors (k, d)")
        if not np.isfinite(self.vectors).all():
            raise InvalidInput("The descriptors have NaN or infinity among their values.")
        super().__post_init__()

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Descriptors({len(self)} of {self.vectors.shape[1]} numbers)"


@final
@dataclass(frozen=True, eq=False)
class Words(Frozen):
    """The visual words of one picture.

    positions : where, (k, 2), in [0, 1]
    indices : which word, (k,), in [0, size)
    size : how many words the codebook has
    """

    positions: Array
    indices: Array
    size: int

    def __post_init__(self) -> None:
        _check_located(self.positions, self.indices, 1, "indices (k,)")
        if self.indices.dtype.kind not in "iu":
            raise InvalidInput(f"The words are of {self.indices.dtype}, but must be whole numbers.")
        if len(self) and not (self.indices.min() >= 0 and self.indices.max() < self.size):
            low, high = self.indices.min(), self.indices.max()
            raise InvalidInput(f"The words go from {low} to {high}, not within [0, {self.size}).")
        super().__post_init__()

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Words({len(self)} of {self.size} different ones)"


_Value = TypeVar("_Value", Descriptors, Words)


def values(kind: type[_Value], X: Any, source: str, size: int | None = None) -> list[_Value]:
    """X as a list of `Descriptors` or `Words`, all of one size: the first one's, unless given.

    source : where such values come from, for errors
    """
    wanted = f"X must be a list of {kind.__name__} from one {source}"
    if not isinstance(X, Iterable):
        raise InvalidType(f"{wanted}, but is {a_type(X)}.")
    found = list(X)
    if not found:
        raise InvalidInput(f"{wanted}, one for each picture, but is empty.")
    for i, each in enumerate(found):
        if not isinstance(each, kind):
            raise InvalidType(f"{wanted}, but item {i} is {a_type(each)}.")
        mine = each.size if isinstance(each, Words) else each.vectors.shape[1]
        size = mine if size is None else size
        if mine != size:
            raise InvalidInput(f"{wanted}, of size {size}, but item {i} is of size {mine}.")
    return found


@dataclass(eq=False, repr=False)
class LocalDescriptor(Transformer):
    """Describes patches on a dense grid: pictures of any size to one `Descriptors` each."""

    patch: int = 16
    step: int = 8
    _: KW_ONLY
    scales: Sequence[float] = (1.0,)
    longest: int | None = None
    n_jobs: int | None = None

    @property
    @abstractmethod
    def width(self) -> int:
        """The length of a descriptor."""

    @abstractmethod
    def _vectors(self, channels: Array, tops: Array, lefts: Array) -> Array:
        """The patches of a picture (h, w, c) that begin in these rows and columns: (k, width)."""

    def _channels(self, picture: Any, name: str) -> Array:
        """Channels of a picture, float32 (h, w, c); by default its grey values in [0, 1].

        name : of the picture, for errors
        """
        return np.asarray(pixels(picture, name, "L")[:, :, None] / np.float32(255))

    def transform(self, X: Any) -> list[Descriptors]:
        """The `Descriptors` of each picture in X, in its order."""
        self._check()
        return threaded(self._describe, named(X), self.n_jobs)

    def _describe(self, picture: Any, name: str) -> Descriptors:
        channels = self._channels(picture, name)
        if self.longest is not None:
            channels = _resized(channels, min(self.longest / max(channels.shape[:2]), 1))
        found = [self._at_scale(channels, scale, name) for scale in self.scales]
        positions, vectors = zip(*found, strict=True)
        return Descriptors(np.concatenate(positions), np.concatenate(vectors))

    def _at_scale(self, channels: Array, scale: float, name: str) -> tuple[Array, Array]:
        """Positions (k, 2) and vectors (k, width) in the picture (h, w, c) at one scale."""
        channels = _resized(channels, scale)
        height, width = channels.shape[:2]
        if min(height, width) < self.patch:
            size = f"{width} x {height} pixels at scale {scale:g}"
            problem = f"{name} has {size}, less than a patch of {self.patch}."
            raise InvalidInput(f"{problem} Enlarge it, or choose a smaller patch.")
        # Where patches begin along each side, centred.
        tops, lefts = (
            np.arange((side - self.patch) % self.step // 2, side - self.patch + 1, self.step)
            for side in (height, width)
        )
        x, y = np.meshgrid((lefts + self.patch / 2) / width, (tops + self.patch / 2) / height)
        return np.column_stack([x.ravel(), y.ravel()]), self._vectors(channels, tops, lefts)

    def _check(self) -> None:
        whole_number("patch", self.patch, 1)
        whole_number("step", self.step, 1)
        if self.longest is not None:
            whole_number("longest", self.longest, 1)
        scales = list(self.scales) if isinstance(self.scales, Iterable) else []
        if not scales or not all(is_real(scale) and 0 < scale <= 1 for scale in scales):
            raise InvalidInput(f"scales={self.scales!r} must be a list of numbers in (0, 1].")


def _resized(channels: Array, factor: float) -> Array:
    if factor == 1:
        return channels
    cv2 = optional("cv2", "images")
    h, w = (max(round(side * factor), 1) for side in channels.shape[:2])
    # OpenCV drops the last axis of a single channel.
    return np.asarray(cv2.resize(channels, (w, h), interpolation=cv2.INTER_AREA)).reshape(h, w, -1)


def _check_located(positions: Array, found: Array, ndim: int, shape: str) -> None:
    """Raise InvalidInput unless each of the k positions has one of what was found."""
    for name, array in ("positions (k, 2)", positions), (shape, found):
        refuse_masked(f"The array of {name}", array)
    kinds = positions.dtype.kind + found.dtype.kind
    if not set(kinds) <= set("iuf") or found.ndim != ndim or positions.shape != (len(found), 2):
        got = f"{positions.shape} of {positions.dtype} and {found.shape} of {found.dtype}"
        raise InvalidInput(f"Real positions (k, 2) and {shape} are needed, but {got} were given.")
    if len(found) and not (positions.min() >= 0 and positions.max() <= 1):
        got = f"from {positions.min():.6g} to {positions.max():.6g}, but must lie in [0, 1]"
        raise InvalidInput(f"The positions go {got}. Divide x by the width and y by the height.")
