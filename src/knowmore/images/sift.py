"""Patches described by the directions of their gradients: SIFT, and the shorter SURF.

`DenseSIFT` describes patches on a dense grid, as Lazebnik, Schmid and Ponce (2006) do.

The gradient g of the picture is split over eight directions a by |g| max(cos(angle(g) - a), 0)^9.
A patch has 4 x 4 cells; each sums every direction with weights that fall linearly from the cell's
centre to the centres of its neighbours (half a cell of that lies outside the patch; outside the
picture there is no gradient). So a cell is one sample of a map that is smoothed once for all
patches.

The 128 numbers d of a patch become d / max(|d|, contrast): noise is not amplified where there is
next to nothing to see. The others are cut off at 0.2 and scaled to length one again (Lowe 2004).

`DenseSURF` sums g_x, |g_x|, g_y and |g_y| in the same cells (Bay, Tuytelaars and Van Gool 2006).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, final

import numpy as np

from knowmore._base import Array, number, optional
from knowmore.errors import InvalidInput
from knowmore.images.colours import Space, in_space
from knowmore.images.local import LocalDescriptor
from knowmore.images.reading import pixels

CELLS, DIRECTIONS, CUT = 4, 8, 0.2
# The width of the Gaussian whose derivative gives the gradient, in pixels, and its reach.
SIGMA, REACH = 0.8, 2
# Lowe's bytes: 512 for one, at most 255. They take a quarter of the memory of floats.
UNIT, LARGEST = 512, 255
_COLOURS = ("opponent", "rgb", "rg", "hsv")


@final
@dataclass(eq=False, repr=False)
class DenseSIFT(LocalDescriptor):
    """Local descriptors on a grid: pictures of any size to one `Descriptors` each.

    Parameters
    ----------
    patch : the side of a patch in pixels, a multiple of 4
    step : the distance of neighbouring patches in pixels; the grid is centred in the picture
    scales : the picture is described at each of these scales; 1 is its own size
    longest : pictures with a longer side than this are first reduced to it; None keeps their size
    n_jobs : threads; None is one, -1 as many as there are cores
    colour : None describes the grey picture by 128 numbers; a colour space each of three channels,
        by 384: "opponent" and "rgb" those of their names, "rg" the parts of red and green in the
        light, and the light (rgSIFT), "hsv" hue and saturation as a point of a disc, and the value
    contrast : the length below which a descriptor is not scaled up, pixels being in [0, 1]

    The vectors are uint8, 512 for one, as SIFT's are stored since Lowe.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48))
    >>> DenseSIFT().transform([picture])
    [Descriptors(35 of 128 numbers)]
    """

    _: KW_ONLY
    colour: Literal["opponent", "rgb", "rg", "hsv"] | None = None
    contrast: float = 1.0

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return CELLS**2 * DIRECTIONS * (1 if self.colour is None else 3)

    def _channels(self, picture: Any, name: str) -> Array:
        if self.colour is None:
            return super()._channels(picture, name)
        return _smooth_channels(pixels(picture, name, "RGB"), self.colour)

    def _vectors(self, channels: Array, tops: Array, lefts: Array) -> Array:
        vectors = [
            _normalised(
                _cells(_directions(*_gradient(channel)), self.patch, tops, lefts), self.contrast
            )
            for channel in np.moveaxis(channels, 2, 0)
        ]
        return np.concatenate(vectors, axis=1)

    def _check(self) -> None:
        super()._check()
        _check_gradients(self.patch, self.contrast)
        if self.colour not in (None, *_COLOURS):
            known = ", ".join(f'"{each}"' for each in _COLOURS[:-1])
            problem = f"colour={self.colour!r} is not known."
            raise InvalidInput(f'{problem} Give None, {known} or "{_COLOURS[-1]}".')


@final
@dataclass(eq=False, repr=False)
class DenseSURF(LocalDescriptor):
    """Half as many numbers as `DenseSIFT`: 64 sums of the gradient and of its size.

    Parameters
    ----------
    patch, step, scales, longest, n_jobs, contrast : as for `DenseSIFT`

    Each of 4 x 4 cells has the sums of g_x, |g_x|, g_y and |g_y|; the vectors are float32, of
    length one where there is contrast. The gradient and the weights are those of `DenseSIFT`, not
    the box filters that Bay et al. use for speed.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48))
    >>> DenseSURF().transform([picture])
    [Descriptors(35 of 64 numbers)]
    """

    _: KW_ONLY
    contrast: float = 1.0

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return CELLS**2 * 4

    def _vectors(self, channels: Array, tops: Array, lefts: Array) -> Array:
        gx, gy = _gradient(channels[:, :, 0])
        d = _cells(np.dstack([gx, abs(gx), gy, abs(gy)]), self.patch, tops, lefts)
        length = np.linalg.norm(d, axis=1, keepdims=True)
        return np.asarray(d / np.maximum(length, np.float32(self.contrast)))

    def _check(self) -> None:
        super()._check()
        _check_gradients(self.patch, self.contrast)


def _check_gradients(patch: int, contrast: float) -> None:
    number("contrast", contrast, "(0, inf)")
    if patch % CELLS:
        raise InvalidInput(f"patch={patch} must be a multiple of {CELLS}.")


def _smooth_channels(rgb: Array, space: Space) -> Array:
    """Three channels, float32 (h, w, 3), that change little where colours do."""
    found = in_space(rgb, space)
    if space == "rg":
        return np.dstack([found, rgb.mean(axis=2, dtype=np.float32) / 255])
    if space == "hsv":
        # Hue jumps from one to zero at red, and means little where a colour is nearly grey.
        turn, saturation = 2 * np.pi * found[:, :, 0], found[:, :, 1]
        disc = saturation * np.cos(turn), saturation * np.sin(turn)
        return np.dstack([*disc, found[:, :, 2]]).astype(np.float32)
    return found


def _cells(maps: Array, patch: int, tops: Array, lefts: Array) -> Array:
    """The sums of maps (h, w, b) in the cells of each patch, (k, 16 b), float32."""
    cv2 = optional("cv2", "images")
    width = patch // CELLS
    # Linear weights around the centre of a cell, which is between two pixels if its width is even.
    offsets = np.arange(-width, width) + (0.5 if width % 2 == 0 else 0.0)
    weights = (1 - abs(offsets) / width).astype(np.float32)
    # Where a cell begins among the weights.
    anchor = (width - width // 2, width - width // 2)
    smoothed = cv2.sepFilter2D(
        maps, cv2.CV_32F, weights, weights, anchor=anchor, borderType=cv2.BORDER_CONSTANT
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
    """Descriptors d (k, 128) as uint8, scaled to length one, or to less at low contrast."""
    length = np.linalg.norm(d, axis=1, keepdims=True)
    d = d / np.maximum(length, contrast)
    clear = length[:, 0] >= contrast
    cut = np.minimum(d[clear], CUT)
    d[clear] = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    return np.asarray(np.minimum(np.rint(d * UNIT), LARGEST), dtype=np.uint8)
