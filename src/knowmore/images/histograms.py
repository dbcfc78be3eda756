"""Histograms of the pixels of a picture, over ever finer cells.

Each pixel votes for a bin: for the direction of an edge (`PHOG`), for the pattern of its neighbours
(`LBP`), or for a colour (`ColourHistogram`). Cells and levels are those of `pyramids`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, final

import numpy as np

from knowmore._base import Array, choice, number, optional, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.colours import RANGES, Space, in_space
from knowmore.images.pyramids import Weights, cells_of, histogram, level_weights, pyramid
from knowmore.images.reading import VectorTransformer, named, pixels, threaded

# The defaults of MATLAB's edge(..., "canny"). Edges are sought in a smoothed picture; strong ones
# are above this quantile of the gradient's length, weak ones, which count where they touch strong
# ones, above this part of it.
_SMOOTHING, _STRONG, _WEAK = np.sqrt(2), 0.7, 0.4
# Places between pixels are rounded to this part of one, so that comparisons are exact.
_PARTS = 1024
# Fractions of whole numbers up to 765 that are nearer than this to a bound of a bin are on it.
_ROUNDING = 1e-5
# 2^16 patterns of neighbours still fit into a table.
_MOST_POINTS = 16


class Votes(NamedTuple):
    """Votes of k pixels of a picture (h, w).

    shape : h, w
    y, x : where they are, (k,)
    bins : what they vote for, (k,)
    weights : how much each vote counts, (k,); None: all the same
    """

    shape: tuple[int, ...]
    y: Array
    x: Array
    bins: Array
    weights: Array | None = None


@dataclass(eq=False, repr=False)
class PixelHistogram(VectorTransformer):
    """Counts the votes of pixels in the cells of every level. Each level sums to its weight."""

    _: KW_ONLY
    levels: int = 3
    weights: Weights = "equal"
    n_jobs: int | None = None

    @abstractmethod
    def _votes(self, picture: Any, name: str) -> Votes:
        """The votes of a picture's pixels; `name` is for errors."""

    @abstractmethod
    def _bins(self) -> int:
        """The number of bins."""

    def transform(self, X: Any) -> Array:
        """The histograms of n pictures, (n, bins (4^levels - 1) / 3)."""
        self._check()
        return np.stack(threaded(self._describe, named(X), self.n_jobs))

    def _describe(self, picture: Any, name: str) -> Array:
        shape, y, x, bins, weights = self._votes(picture, name)
        cells, (h, w) = cells_along(shape, self.levels, name), shape
        finest = histogram(y * cells // h, x * cells // w, bins, (cells, self._bins()), weights)
        return pyramid(finest, level_weights(self.levels, self.weights))

    def _columns(self) -> int:
        return cells_of(self.levels) * self._bins()

    def _check(self) -> None:
        level_weights(self.levels, self.weights)


def cells_along(shape: tuple[int, ...], levels: int, name: str) -> int:
    """The number of cells along a side at the finest level; each must have a pixel."""
    h, w = shape
    cells: int = 2 ** (levels - 1)
    if min(h, w) < cells:
        raise InvalidInput(f"{name} has {w} x {h} pixels. Use fewer than {levels} levels.")
    return cells


@final
@dataclass(eq=False, repr=False)
class PHOG(PixelHistogram):
    """The directions of a picture's edges, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    These are the pyramid histograms of oriented gradients of Bosch, Zisserman and Munoz (2007).
    Each pixel on an edge (Canny) votes for the direction of its gradient (Sobel, 3 x 3) with the
    gradient's length, in its cell of every level.

    Parameters
    ----------
    bins : how many directions
    degrees : 180, where a gradient and its opposite are one direction, or 360
    levels : how many; 4 goes to 8 x 8 cells
    weights : of each level, coarse to fine: "equal", "match" as in `SpatialPyramid`, or a number
        for each level
    n_jobs : threads; None is one, -1 as many as there are cores

    The histogram of each level sums to its weight, so that the levels and the whole are
    normalised at once. A picture without edges gives zeros. The columns are ordered by level, then
    by cell (row by row), then by direction: (n, bins (4^levels - 1) / 3) in all.

    Examples
    --------
    >>> picture = np.zeros((32, 32))
    >>> picture[:, 16:] = 1
    >>> PHOG(bins=4, levels=1).transform([picture])
    array([[1., 0., 0., 0.]])
    """

    bins: int = 20
    _: KW_ONLY
    degrees: Literal[180, 360] = 180
    levels: int = 4

    _prefix = "phog"

    def _votes(self, picture: Any, name: str) -> Votes:
        image = pixels(picture, name, "L")
        gx, gy = _sobel(image)
        y, x = np.nonzero(_edges(image))
        gx, gy = gx[y, x].astype(float), gy[y, x].astype(float)
        turn = np.arctan2(gy, gx) / np.deg2rad(self.degrees) % 1
        # A tiny negative angle is rounded to a whole turn, which is none.
        direction = (turn * self.bins).astype(np.intp) % self.bins
        return Votes(image.shape, y, x, direction, np.hypot(gx, gy))

    def _bins(self) -> int:
        return self.bins

    def _check(self) -> None:
        whole_number("bins", self.bins, 1)
        if self.degrees not in (180, 360):
            raise InvalidInput(f"degrees={self.degrees!r} is not known. Give 180 or 360.")
        super()._check()


@final
@dataclass(eq=False, repr=False)
class LBP(PixelHistogram):
    """Local binary patterns: which of a pixel's neighbours are at least as light as it is.

    Ojala, Pietikainen and Maenpaa (2002). The neighbours lie on a circle, and are interpolated
    between pixels; beyond the border the nearest pixel counts. A pattern is uniform if it changes
    at most twice around the circle, as at an edge or a corner; all others share one bin.

    Parameters
    ----------
    radius : of the circle, in pixels
    points : how many neighbours, evenly spaced from the right on; at most 16
    invariant : whether patterns that can be turned into each other share a bin
    levels, weights, n_jobs : as for `PHOG`; 3 levels go to 4 x 4 cells

    A pattern does not change with the light: only the order of grey values counts. There are
    points (points - 1) + 3 bins, 59 for eight points; points + 2 if invariant.

    Examples
    --------
    >>> LBP(invariant=True, levels=1).transform([np.full((16, 16), 0.5)])
    array([[0., 0., 0., 0., 0., 0., 0., 0., 1., 0.]])
    """

    radius: float = 1.0
    points: int = 8
    _: KW_ONLY
    invariant: bool = False

    _prefix = "lbp"

    def _votes(self, picture: Any, name: str) -> Votes:
        image = pixels(picture, name, "L").astype(np.int64)
        y, x = (each.ravel() for each in np.indices(image.shape))
        bins = _uniform(self.points, self.invariant)[self._patterns(image)]
        return Votes(image.shape, y, x, bins.ravel())

    def _patterns(self, image: Array) -> Array:
        """Which neighbours of each pixel are at least as light, bit by bit, (h, w)."""
        h, w = image.shape
        reach = int(np.ceil(self.radius)) + 1
        padded = np.pad(image, reach, mode="edge")
        patterns = np.zeros((h, w), dtype=np.intp)
        for bit, angle in enumerate(2 * np.pi * np.arange(self.points) / self.points):
            place = self.radius * _PARTS * np.array([-np.sin(angle), np.cos(angle)])
            (top, left), (down, right) = np.divmod(np.rint(place).astype(int), _PARTS)
            between = 0
            for i, along in (0, _PARTS - down), (1, down):
                for j, across in (0, _PARTS - right), (1, right):
                    y, x = reach + top + i, reach + left + j
                    between = between + along * across * padded[y : y + h, x : x + w]
            patterns |= (between >= _PARTS**2 * image).astype(np.intp) << bit
        return patterns

    def _bins(self) -> int:
        return self.points + 2 if self.invariant else self.points * (self.points - 1) + 3

    def _check(self) -> None:
        number("radius", self.radius, "(0, inf)")
        whole_number("points", self.points, 3, _MOST_POINTS)
        super()._check()


@final
@dataclass(eq=False, repr=False)
class ColourHistogram(PixelHistogram):
    """How often colours occur, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    Parameters
    ----------
    bins : into how many parts each channel of the space is divided; a bin for each combination
    space : "rgb"; "opponent", which has intensity apart from colour; "hsv", hue, saturation and
        value; or "rg", the parts of red and green in the light, whatever its strength
    levels, weights, n_jobs : as for `PHOG`; 3 levels go to 4 x 4 cells

    There are bins^3 bins, bins^2 for "rg". Swain and Ballard (1991), van de Sande, Gevers and
    Snoek (2010).

    Examples
    --------
    >>> red = np.zeros((8, 8, 3))
    >>> red[:, :, 0] = 1
    >>> ColourHistogram(bins=2, levels=1).transform([red])
    array([[0., 0., 0., 0., 1., 0., 0., 0.]])
    """

    bins: int = 4
    space: Space = "rgb"

    _prefix = "colour"

    def _votes(self, picture: Any, name: str) -> Votes:
        channels = in_space(pixels(picture, name, "RGB"), self.space)
        low, high = RANGES[self.space]
        # A value between two parts belongs to the upper one, and the largest to the last.
        place = (channels - low) / (high - low) * self.bins + _ROUNDING
        parts = np.clip(place.astype(np.intp), 0, self.bins - 1)
        y, x = (each.ravel() for each in np.indices(parts.shape[:2]))
        bins = np.ravel_multi_index(tuple(np.moveaxis(parts, 2, 0)), (self.bins,) * len(low))
        return Votes(parts.shape[:2], y, x, np.asarray(bins).ravel())

    def _bins(self) -> int:
        return int(self.bins ** len(RANGES[self.space][0]))

    def _check(self) -> None:
        whole_number("bins", self.bins, 1, 256)
        choice("space", self.space, RANGES)
        super()._check()


def _uniform(points: int, invariant: bool) -> Array:
    """The bin of each of 2^points patterns.

    >>> np.bincount(_uniform(8, invariant=True)).tolist()
    [1, 8, 8, 8, 8, 8, 8, 8, 1, 198]
    """
    patterns = np.arange(2**points)
    bits = patterns[:, None] >> np.arange(points) & 1
    uniform = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    if invariant:
        return np.where(uniform, bits.sum(axis=1), points + 1)
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum())


def _sobel(image: Array) -> tuple[Array, Array]:
    """The gradient along x and y, int16 (h, w) each."""
    cv2 = optional("cv2", "images")
    gradient = partial(cv2.Sobel, image, cv2.CV_16S, ksize=3, borderType=cv2.BORDER_REPLICATE)
    return gradient(dx=1, dy=0), gradient(dx=0, dy=1)


def _edges(image: Array) -> Array:
    """Canny's edges, (h, w): zero elsewhere."""
    cv2 = optional("cv2", "images")
    gx, gy = _sobel(cv2.GaussianBlur(image, (0, 0), _SMOOTHING, borderType=cv2.BORDER_REPLICATE))
    strong = float(np.quantile(np.hypot(gx.astype(np.float32), gy.astype(np.float32)), _STRONG))
    return np.asarray(cv2.Canny(gx, gy, _WEAK * strong, strong, L2gradient=True))
