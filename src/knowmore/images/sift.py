"""SIFT descriptors on a dense grid, as Lazebnik, Schmid and Ponce (2006) compute them.

The gradient g of the picture is split over eight directions a by |g| max(cos(angle(g) - a), 0)^9.
A patch has 4 x 4 cells; each sums every direction with weights that fall linearly from the cell's
centre to the centres of its neighbours (half a cell of that lies outside the patch; outside the
picture there is no gradient). So a cell is one sample of a map smoothed once for all patches.

A patch's 128 numbers d become d / max(|d|, contrast): where there is next to nothing to see,
noise is not blown up. The others are cut off at 0.2 and scaled to length one again (Lowe 2004).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, Self, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.extras import optional
from knowmore.images.local import Descriptors
from knowmore.images.reading import colour, grey, of_each
from knowmore.images.settings import is_between, whole

CELLS, DIRECTIONS, CUT = 4, 8, 0.2
# The width of the Gaussian whose derivative gives the gradient, in pixels, and its reach.
SIGMA, REACH = 0.8, 2
# Lowe's bytes: 512 for one, at most 255. They take a quarter of the memory of floats.
UNIT, LARGEST = 512, 255
# Rows: red-green, yellow-blue, intensity (van de Sande, Gevers and Snoek 2010).
OPPONENT = np.array([[1, -1, 0], [1, 1, -2], [1, 1, 1]]) / np.sqrt([[2], [6], [3]])


@final
class DenseSIFT(TransformerMixin, BaseEstimator):
    """Local descriptors on a grid: pictures of any size to one `Descriptors` each.

    Parameters
    ----------
    patch : the side of a patch in pixels, a multiple of 4
    step : the distance of neighbouring patches in pixels; the grid lies centred in the picture
    scales : the picture is looked at in each of these sizes, 1 being its own
    longest : pictures with a longer side than this are first reduced to it; None leaves them
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

    def __init__(
        self,
        patch: int = 16,
        step: int = 8,
        *,
        scales: Sequence[float] = (1.0,),
        longest: int | None = None,
        colour: Literal["opponent"] | None = None,
        contrast: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.patch = patch
        self.step = step
        self.scales = scales
        self.longest = longest
        self.colour = colour
        self.contrast = contrast
        self.n_jobs = n_jobs

    @property
    def width(self) -> int:
        """How many numbers a descriptor has."""
        return CELLS**2 * DIRECTIONS * (1 if self.colour is None else 3)

    def fit(self, X: Any, y: Any = None) -> Self:
        """There is nothing to learn; X and y are not looked at."""
        self._check()
        return self

    def transform(self, X: Any) -> list[Descriptors]:
        """The `Descriptors` of each picture in X, in its order."""
        self._check()
        return of_each(self._describe, X, self.n_jobs)

    def _describe(self, picture: Any, name: str) -> Descriptors:
        channels = self._channels(picture, name)
        if self.longest is not None:
            channels = _resized(channels, min(self.longest / max(channels.shape[:2]), 1))
        found = [self._at_scale(channels, scale, name) for scale in self.scales]
        positions, vectors = zip(*found, strict=True)
        return Descriptors(np.concatenate(positions), np.concatenate(vectors))

    def _channels(self, picture: Any, name: str) -> Array:
        """The picture as float32 (h, w, c), a grey value being in [0, 1]."""
        if self.colour is None:
            return grey(picture, name)[:, :, None] / np.float32(255)
        return (colour(picture, name) @ (OPPONENT.T / 255)).astype(np.float32)

    def _at_scale(self, channels: Array, scale: float, name: str) -> tuple[Array, Array]:
        """Positions (k, 2) and vectors (k, 128 c) in the picture at one of its sizes."""
        h, w = channels.shape[:2]
        channels = _resized(channels, scale)
        height, width = channels.shape[:2]
        if min(height, width) < self.patch:
            at = f" and {width} x {height} at scale {scale:g}" if (height, width) != (h, w) else ""
            raise InvalidInput(
                f"{name} has {w} x {h} pixels{at}: it is smaller than a patch of "
                f"{self.patch} x {self.patch}. Enlarge it, or choose a smaller patch."
            )
        tops, lefts = (_grid(side, self.patch, self.step) for side in (height, width))
        raw = np.moveaxis(channels, 2, 0)
        describe = partial(_patches, patch=self.patch, tops=tops, lefts=lefts)
        vectors = [_quantised(_normalised(describe(c), self.contrast)) for c in raw]
        x, y = np.meshgrid((lefts + self.patch / 2) / width, (tops + self.patch / 2) / height)
        return np.column_stack([x.ravel(), y.ravel()]), np.concatenate(vectors, axis=1)

    def _check(self) -> None:
        whole("patch", self.patch)
        whole("step", self.step)
        if self.longest is not None:
            whole("longest", self.longest)
        if self.patch % CELLS:
            raise InvalidInput(
                f"patch={self.patch} is not a multiple of {CELLS}: it is divided into "
                f"{CELLS} x {CELLS} cells of whole pixels."
            )
        scales = list(self.scales) if isinstance(self.scales, Iterable) else []
        if not scales or not all(is_between(scale, 0, 1) for scale in scales):
            raise InvalidInput(
                f"scales={self.scales!r} must be a list of numbers above 0 and up to 1."
            )
        if self.colour not in (None, "opponent"):
            raise InvalidInput(f'colour={self.colour!r} is not known. Give None or "opponent".')
        if not is_between(self.contrast, 0, np.inf):
            raise InvalidInput(f"contrast={self.contrast!r} must be a positive number.")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        return tags


def _grid(side: int, patch: int, step: int) -> Array:
    """Where patches begin along a side, centred."""
    return np.arange((side - patch) % step // 2, side - patch + 1, step)


def _resized(channels: Array, factor: float) -> Array:
    if factor == 1:
        return channels
    cv2 = optional("cv2", "images")
    size = [max(round(side * factor), 1) for side in channels.shape[1::-1]]
    return np.asarray(cv2.resize(channels, size, interpolation=cv2.INTER_AREA)).reshape(
        size[1], size[0], -1
    )


def _patches(channel: Array, *, patch: int, tops: Array, lefts: Array) -> Array:
    """The 128 sums of each patch of a channel (h, w), (k, 128), float32, as yet of any length."""
    cv2 = optional("cv2", "images")
    width = patch // CELLS
    weights, centre = _triangle(width)
    smoothed = cv2.sepFilter2D(
        _directions(*_gradient(channel)),
        cv2.CV_32F,
        weights,
        weights,
        anchor=(centre, centre),
        borderType=cv2.BORDER_CONSTANT,
    )
    rows, columns = (starts[:, None] + width * np.arange(CELLS) for starts in (tops, lefts))
    found = smoothed[rows[:, None, :, None], columns[None, :, None, :]]
    return np.asarray(found.reshape(len(rows) * len(columns), -1))


def _triangle(width: int) -> tuple[Array, int]:
    """Linear weights around the centre of a cell, and where among them the cell begins.

    The centre of a cell of even width lies between two pixels.
    """
    offsets = np.arange(-width, width) + (0.5 if width % 2 == 0 else 0.0)
    return (1 - abs(offsets) / width).astype(np.float32), width - width // 2


def _gradient(channel: Array) -> tuple[Array, Array]:
    """Differences along x and y under a Gaussian; a unit step over one pixel gives at most one."""
    cv2 = optional("cv2", "images")
    t = np.arange(-REACH, REACH + 1)
    gauss = np.exp(-(t**2) / (2 * SIGMA**2))
    slope = t * gauss
    gauss, slope = gauss / gauss.sum(), slope * 2 / abs(slope).sum()
    # filter2D correlates, so that the slope's sign is right: dark to light is positive.
    smooth = partial(cv2.sepFilter2D, channel, cv2.CV_32F, borderType=cv2.BORDER_REPLICATE)
    return smooth(slope, gauss), smooth(gauss, slope)


def _directions(gx: Array, gy: Array) -> Array:
    """The gradient split over eight directions, (h, w, 8), float32."""
    length = np.sqrt(gx * gx + gy * gy)
    # Shorter ones are rounding, and their squares may be lost: what is divided by nearly nothing
    # must not leave the range of float32.
    scale = 1 / np.maximum(length, np.float32(1e-15))
    ux, uy = gx * scale, gy * scale
    split = np.empty((*gx.shape, DIRECTIONS), dtype=np.float32)
    half = DIRECTIONS // 2
    for i, angle in enumerate(np.arange(half) * (np.pi / half)):
        cosine = np.float32(np.cos(angle)) * ux + np.float32(np.sin(angle)) * uy
        power = length * _ninth(cosine)
        # The opposite direction has the opposite cosine.
        np.maximum(power, 0, out=split[:, :, i])
        np.maximum(-power, 0, out=split[:, :, i + half])
    return split


def _ninth(x: Array) -> Array:
    # NumPy's power goes through logarithms and takes ten times as long.
    eighth = np.square(x)
    np.square(eighth, out=eighth)
    np.square(eighth, out=eighth)
    return eighth * x


def _normalised(d: Array, contrast: float) -> Array:
    """Descriptors d (k, 128) of any length to length one, those of low contrast to less."""
    length = np.linalg.norm(d, axis=1, keepdims=True)
    d = d / np.maximum(length, contrast)
    clear = length[:, 0] >= contrast
    cut = np.minimum(d[clear], CUT)
    d[clear] = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    return d


def _quantised(d: Array) -> Array:
    return np.asarray(np.minimum(np.rint(d * UNIT), LARGEST), dtype=np.uint8)
