"""Local descriptors, and the visual words that codebooks turn them into.

`DenseSIFT` describes patches on a dense grid, as Lazebnik, Schmid and Ponce (2006) do.

The gradient g of the picture is split over eight directions a by |g| max(cos(angle(g) - a), 0)^9.
A patch has 4 x 4 cells; each sums every direction with weights that fall linearly from the cell's
centre to the centres of its neighbours (half a cell of that lies outside the patch; outside the
picture there is no gradient). So a cell is one sample of a map that is smoothed once for all
patches.

The 128 numbers d of a patch become d / max(|d|, contrast): noise is not amplified where there is
next to nothing to see. The others are cut off at 0.2 and scaled to length one again (Lowe 2004).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, TypeVar, final

import numpy as np

from knowmore.arguments import a_type, is_real, number, whole_number
from knowmore.arrays import Array, Frozen
from knowmore.errors import InvalidInput, InvalidType
from knowmore.extras import optional
from knowmore.images.reading import Transformer, named, pixels, refuse_masked, threaded

CELLS, DIRECTIONS, CUT = 4, 8, 0.2
# The width of the Gaussian whose derivative gives the gradient, in pixels, and its reach.
SIGMA, REACH = 0.8, 2
# Lowe's bytes: 512 for one, at most 255. They take a quarter of the memory of floats.
UNIT, LARGEST = 512, 255
# Rows: red-green, yellow-blue, intensity (van de Sande, Gevers and Snoek 2010).
OPPONENT = np.array([[1, -1, 0], [1, 1, -2], [1, 1, 1]]) / np.sqrt([[2], [6], [3]])


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


@final
@dataclass(eq=False, repr=False)
class DenseSIFT(Transformer):
    """Local descriptors on a grid: pictures of any size to one `Descriptors` each.

    Parameters
    ----------
    patch : the side of a patch in pixels, a multiple of 4
    step : the distance of neighbouring patches in pixels; the grid is centred in the picture
    scales : the picture is described at each of these scales; 1 is its own size
    longest : pictures with a longer side than this are first reduced to it; None keeps their size
    colour : None describes the grey picture by 128 numbers; "opponent" each of the three opponent
        colours, by 384
    contrast : the length below which a descriptor is not scaled up, pixels being in [0, 1]
    n_jobs : threads; None is one, -1 as many as there are cores

    The vectors are uint8, 512 for one, as SIFT's are stored since Lowe.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48))
    >>> DenseSIFT().transform([picture])
    [Descriptors(35 of 128 numbers)]
    """

    patch: int = 16
    step: int = 8
    _: KW_ONLY
    scales: Sequence[float] = (1.0,)
    longest: int | None = None
    colour: Literal["opponent"] | None = None
    contrast: float = 1.0
    n_jobs: int | None = None

    @property
    def width(self) -> int:
        """How many numbers a descriptor has."""
        return CELLS**2 * DIRECTIONS * (1 if self.colour is None else 3)

    def transform(self, X: Any) -> list[Descriptors]:
        """The `Descriptors` of each picture in X, in its order."""
        self._check()
        return threaded(self._describe, named(X), self.n_jobs)

    def _describe(self, picture: Any, name: str) -> Descriptors:
        # float32 (h, w, c), a grey value being in [0, 1].
        if self.colour is None:
            channels = pixels(picture, name, "L")[:, :, None] / np.float32(255)
        else:
            channels = (pixels(picture, name, "RGB") @ (OPPONENT.T / 255)).astype(np.float32)
        if self.longest is not None:
            channels = _resized(channels, min(self.longest / max(channels.shape[:2]), 1))
        found = [self._at_scale(channels, scale, name) for scale in self.scales]
        positions, vectors = zip(*found, strict=True)
        return Descriptors(np.concatenate(positions), np.concatenate(vectors))

    def _at_scale(self, channels: Array, scale: float, name: str) -> tuple[Array, Array]:
        """Positions (k, 2) and vectors (k, 128 c) in the picture (h, w, c) at one scale."""
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
        vectors = [
            _normalised(_patches(channel, self.patch, tops, lefts), self.contrast)
            for channel in np.moveaxis(channels, 2, 0)
        ]
        x, y = np.meshgrid((lefts + self.patch / 2) / width, (tops + self.patch / 2) / height)
        return np.column_stack([x.ravel(), y.ravel()]), np.concatenate(vectors, axis=1)

    def _check(self) -> None:
        whole_number("patch", self.patch, 1)
        whole_number("step", self.step, 1)
        number("contrast", self.contrast, "(0, inf)")
        if self.longest is not None:
            whole_number("longest", self.longest, 1)
        if self.patch % CELLS:
            raise InvalidInput(f"patch={self.patch} must be a multiple of {CELLS}.")
        scales = list(self.scales) if isinstance(self.scales, Iterable) else []
        if not scales or not all(is_real(scale) and 0 < scale <= 1 for scale in scales):
            raise InvalidInput(f"scales={self.scales!r} must be a list of numbers in (0, 1].")
        if self.colour not in (None, "opponent"):
            raise InvalidInput(f'colour={self.colour!r} is not known. Give None or "opponent".')


def _resized(channels: Array, factor: float) -> Array:
    if factor == 1:
        return channels
    cv2 = optional("cv2", "images")
    h, w = (max(round(side * factor), 1) for side in channels.shape[:2])
    # OpenCV drops the last axis of a single channel.
    return np.asarray(cv2.resize(channels, (w, h), interpolation=cv2.INTER_AREA)).reshape(h, w, -1)


def _patches(channel: Array, patch: int, tops: Array, lefts: Array) -> Array:
    """The 128 sums of each patch of a channel (h, w), (k, 128), float32, not yet normalised."""
    cv2 = optional("cv2", "images")
    width = patch // CELLS
    # Linear weights around the centre of a cell, which is between two pixels if its width is even.
    offsets = np.arange(-width, width) + (0.5 if width % 2 == 0 else 0.0)
    weights = (1 - abs(offsets) / width).astype(np.float32)
    # Where a cell begins among the weights.
    anchor = (width - width // 2, width - width // 2)
    split = _directions(*_gradient(channel))
    smoothed = cv2.sepFilter2D(
        split, cv2.CV_32F, weights, weights, anchor=anchor, borderType=cv2.BORDER_CONSTANT
    )
    rows, columns = (starts[:, None] + width * np.arange(CELLS) for starts in (tops, lefts))
    found = smoothed[rows[:, None, :, None], columns[None, :, None, :]]
    return np.asarray(found.reshape(len(rows) * len(columns), -1))


def _gradient(channel: Array) -> tuple[Array, Array]:
    """Differences along x and y under a Gaussian; a unit step over one pixel gives at most one."""
    cv2 = optional("cv2", "images")
    t = np.arange(-REACH, REACH + 1)
    gauss = np.exp(-(t**2) / (2 * SIGMA**2))
    slope = t * gauss
    gauss, slope = gauss / gauss.sum(), slope * 2 / abs(slope).sum()
    # filter2D correlates, so the sign of the slope is right: dark to light is positive.
    smooth = partial(cv2.sepFilter2D, channel, cv2.CV_32F, borderType=cv2.BORDER_REPLICATE)
    return smooth(slope, gauss), smooth(gauss, slope)


def _directions(gx: Array, gy: Array) -> Array:
    """The gradient split over eight directions, (h, w, 8), float32."""
    length = np.sqrt(gx * gx + gy * gy)
    # Shorter gradients are rounding, and their squares may underflow: dividing by next to nothing
    # must not leave the range of float32.
    scale = 1 / np.maximum(length, np.float32(1e-15))
    ux, uy = gx * scale, gy * scale
    split = np.empty((*gx.shape, DIRECTIONS), dtype=np.float32)
    half = DIRECTIONS // 2
    for i, angle in enumerate(np.arange(half) * (np.pi / half)):
        cosine = np.float32(np.cos(angle)) * ux + np.float32(np.sin(angle)) * uy
        # The ninth power by squaring: NumPy's goes through logarithms and takes ten times as long.
        power = np.square(cosine)
        np.square(power, out=power)
        np.square(power, out=power)
        power *= cosine
        power *= length
        # The opposite direction has the opposite cosine.
        np.maximum(power, 0, out=split[:, :, i])
        np.maximum(-power, 0, out=split[:, :, i + half])
    return split


def _normalised(d: Array, contrast: float) -> Array:
    """Descriptors d (k, 128) scaled to length one, those of low contrast to less, as uint8."""
    length = np.linalg.norm(d, axis=1, keepdims=True)
    d = d / np.maximum(length, contrast)
    clear = length[:, 0] >= contrast
    cut = np.minimum(d[clear], CUT)
    d[clear] = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    return np.asarray(np.minimum(np.rint(d * UNIT), LARGEST), dtype=np.uint8)


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
