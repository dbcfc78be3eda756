"""Patches described by the directions of their gradients (SIFT), or by what is like their centre.

`DenseSIFT` describes patches on a dense grid, as Lazebnik, Schmid and Ponce (2006) do.

The gradient g of the picture is split over eight directions a by |g| max(cos(angle(g) - a), 0)^9.
A patch has 4 x 4 cells; each sums every direction with weights that fall linearly from the cell's
centre to the centres of its neighbours (half a cell of that lies outside the patch; outside the
picture there is no gradient). So a cell is one sample of a map that is smoothed once for all
patches.

The 128 numbers d of a patch become d / max(|d|, contrast): noise is not amplified where there is
next to nothing to see. The others are cut off at 0.2 and scaled to length one again (Lowe 2004).

`SelfSimilarity` describes which parts of a patch look like its centre, in any colour or texture:
local self-similarities of Shechtman and Irani (2007). The small square at the centre of a patch is
compared with those around it: at displacement s, S(s) = exp(-D(s) / max(v, noise)), where D is the
sum of squared differences and v the largest D at a displacement of at most one pixel along each
axis, so that a sharp edge may be as unlike as it is when moved by one. Displacements belong to 80
bins, twenty angles and four radii that grow geometrically; the largest S of each bin counts, and
the 80 numbers are stretched to reach from zero to one.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, final

import numpy as np

from knowmore._base import Array, number, optional, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.local import LocalDescriptor
from knowmore.images.reading import Space, in_space, pixels

CELLS, DIRECTIONS, CUT = 4, 8, 0.2
# The width of the Gaussian whose derivative gives the gradient, in pixels, and its reach.
SIGMA, REACH = 0.8, 2
# Lowe's bytes: 512 for one, at most 255. They take a quarter of the memory of floats.
UNIT, LARGEST = 512, 255
_COLOURS = ("opponent", "rgb", "rg", "hsv")
# Of self-similarities: the bins, and the difference of grey values in [0, 1] that may be noise.
ANGLES, RADII = 20, 4
NOISE = 4 / 255


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
                cell_sums(_directions(*gradient(channel)), self.patch, tops, lefts), self.contrast
            )
            for channel in np.moveaxis(channels, 2, 0)
        ]
        return np.concatenate(vectors, axis=1)

    def _check(self) -> None:
        super()._check()
        number("contrast", self.contrast, "(0, inf)")
        if self.patch % CELLS:
            raise InvalidInput(f"patch={self.patch} must be a multiple of {CELLS}.")
        if self.colour not in (None, *_COLOURS):
            known = ", ".join(f'"{each}"' for each in _COLOURS[:-1])
            problem = f"colour={self.colour!r} is not known."
            raise InvalidInput(f'{problem} Give None, {known} or "{_COLOURS[-1]}".')


@final
@dataclass(eq=False, repr=False)
class SelfSimilarity(LocalDescriptor):
    """Local self-similarities on a grid: pictures of any size to one `Descriptors` each.

    Parameters
    ----------
    patch : the side of a patch in pixels, odd
    step : the distance of neighbouring patches in pixels; the grid is centred in the picture
    scales : the picture is described at each of these scales; 1 is its own size
    longest : pictures with a longer side than this are first reduced to it; None keeps their size
    n_jobs : threads; None is one, -1 as many as there are cores
    inner : the side of the squares that are compared, in pixels, odd

    The vectors are uint8, 255 for one. Where all is equally alike they are zero.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48))
    >>> SelfSimilarity().transform([picture])
    [Descriptors(3 of 80 numbers)]
    """

    patch: int = 41
    _: KW_ONLY
    inner: int = 5

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return ANGLES * RADII

    def _vectors(self, channels: Array, tops: Array, lefts: Array) -> Array:
        cv2 = optional("cv2", "images")
        image = channels[:, :, 0]
        reach = (self.patch - self.inner) // 2
        h, w = image.shape[0] - 2 * reach, image.shape[1] - 2 * reach
        here = image[reach : reach + h, reach : reach + w]
        # The squares of the patches, among the squares that lie `reach` from the border.
        centre = np.ix_(tops + self.inner // 2, lefts + self.inner // 2)
        nearest = np.full((ANGLES * RADII, len(tops), len(lefts)), np.inf, dtype=np.float32)
        jitter = np.zeros(nearest.shape[1:], dtype=np.float32)
        for y, x, bin_ in displacements(reach):
            there = image[reach + y : reach + y + h, reach + x : reach + x + w]
            squares = np.square(here - there)
            size = (self.inner, self.inner)
            sums = cv2.boxFilter(squares, cv2.CV_32F, size, normalize=False)[centre]
            np.minimum(nearest[bin_], sums, out=nearest[bin_])
            if max(abs(y), abs(x)) == 1:
                np.maximum(jitter, sums, out=jitter)
        unlike = np.maximum(jitter, self.inner**2 * NOISE**2)
        return _stretched(np.exp(-np.maximum(nearest, 0) / unlike).reshape(len(nearest), -1).T)

    def _check(self) -> None:
        super()._check()
        whole_number("inner", self.inner, 1)
        if self.inner % 2 == 0 or self.patch % 2 == 0 or self.patch < self.inner + 4:
            sides = f"patch={self.patch} and inner={self.inner}"
            raise InvalidInput(f"{sides} must be odd, and patch larger than inner by 4 or more.")


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


def cell_sums(maps: Array, patch: int, tops: Array, lefts: Array) -> Array:
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


def gradient(channel: Array) -> tuple[Array, Array]:
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


def displacements(reach: int) -> list[tuple[int, int, int]]:
    """All (y, x, bin) with a distance from one to `reach`; bins by radius, then by angle."""
    y, x = np.indices((2 * reach + 1,) * 2) - reach
    distance = np.hypot(y, x)
    near = (distance >= 1) & (distance <= reach)
    y, x, distance = y[near], x[near], distance[near]
    # A displacement of exactly `reach` belongs to the last ring.
    ring = np.minimum((np.log(distance) / np.log(reach) * RADII).astype(int), RADII - 1)
    angle = np.floor(np.arctan2(-y, x) / (2 * np.pi) * ANGLES + 0.5).astype(int) % ANGLES
    return list(zip(y.tolist(), x.tolist(), (ring * ANGLES + angle).tolist(), strict=True))


def _stretched(S: Array) -> Array:
    """Rows (k, 80) stretched to reach from zero to one, as uint8; those without contrast zero."""
    low, high = S.min(axis=1, keepdims=True), S.max(axis=1, keepdims=True)
    stretched = (S - low) / np.where(high > low, high - low, 1)
    return np.asarray(np.rint(stretched * 255), dtype=np.uint8)
