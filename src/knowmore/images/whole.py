"""Vectors of whole pictures, over ever finer cells: histograms of pixels, and covariances.

Each pixel votes for a bin: for the direction of an edge (`PHOG`), for the pattern of its neighbours
(`LBP`), or for a colour (`ColourHistogram`). Cells and levels are those of `pyramids`.

`RegionCovariance` (Tuzel, Porikli and Meer 2006): each pixel has nine numbers f: its place (x, y),
red, green and blue, and of its grey value |I_x|, |I_y|, |I_xx|, |I_yy|. A cell is described by
their covariance C. Covariances are compared by the log-Euclidean distance |log C - log C'| (Arsigny
et al. 2006), which is Euclidean between the vectors of log C: an RBF kernel of them is positive
definite.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, final

import numpy as np

from knowmore._base import Array, choice, number, optional, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.pyramids import Weights, cells_of, histogram, level_weights, pyramid
from knowmore.images.reading import (
    RANGES,
    Space,
    VectorTransformer,
    in_space,
    named,
    pixels,
    threaded,
)

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
# The numbers of a pixel that vary together in a region.
_FEATURES = 9
# The variance of one step of 255 in a value of [0, 1]: what is less cannot be seen. It is added to
# the variance of every feature, so that a flat cell has a logarithm.
_UNSEEN = 1 / 255**2


@dataclass(eq=False, repr=False)
class WholePicture(VectorTransformer):
    """Describes the cells of every level by as many numbers each."""

    _: KW_ONLY
    levels: int = 3
    weights: Weights = "equal"
    n_jobs: int | None = None

    @abstractmethod
    def _describe(self, picture: Any, name: str) -> Array:
        """The vector of a picture; `name` is for errors."""

    @abstractmethod
    def _numbers(self) -> int:
        """The length of the part of a cell."""

    def transform(self, X: Any) -> Array:
        """The vectors of n pictures, (n, numbers of a cell (4^levels - 1) / 3)."""
        self._check()
        return np.stack(threaded(self._describe, named(X), self.n_jobs))

    def _finest(self, shape: tuple[int, ...], name: str) -> int:
        """The number of cells along a side at the finest level; each must have a pixel."""
        h, w = shape
        cells: int = 2 ** (self.levels - 1)
        if min(h, w) < cells:
            raise InvalidInput(f"{name} has {w} x {h} pixels. Use fewer than {self.levels} levels.")
        return cells

    def _histograms(
        self, name: str, shape: tuple[int, ...], places: Any, bins: Array, votes: Any = None
    ) -> Array:
        """How often bins occur in the cells of every level; each level sums to its weight.

        shape : of the picture, (h, w)
        places : rows and columns of pixels; bins : their bins; votes : how much each pixel counts
        """
        cells, (h, w), (y, x) = self._finest(shape, name), shape, places
        row, column = (y * cells // h).ravel(), (x * cells // w).ravel()
        finest = histogram(row, column, bins.ravel(), (cells, self._numbers()), votes)
        return pyramid(finest, level_weights(self.levels, self.weights))

    def _columns(self) -> int:
        return cells_of(self.levels) * self._numbers()

    def _check(self) -> None:
        level_weights(self.levels, self.weights)


@final
@dataclass(eq=False, repr=False)
class PHOG(WholePicture):
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

    def _describe(self, picture: Any, name: str) -> Array:
        image = pixels(picture, name, "L")
        gx, gy = _sobel(image)
        y, x = np.nonzero(_edges(image))
        gx, gy = gx[y, x].astype(float), gy[y, x].astype(float)
        turn = np.arctan2(gy, gx) / np.deg2rad(self.degrees) % 1
        # A tiny negative angle is rounded to a whole turn, which is none.
        direction = (turn * self.bins).astype(np.intp) % self.bins
        return self._histograms(name, image.shape, (y, x), direction, np.hypot(gx, gy))

    def _numbers(self) -> int:
        return self.bins

    def _check(self) -> None:
        whole_number("bins", self.bins, 1)
        if self.degrees not in (180, 360):
            raise InvalidInput(f"degrees={self.degrees!r} is not known. Give 180 or 360.")
        super()._check()


@final
@dataclass(eq=False, repr=False)
class LBP(WholePicture):
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

    def _describe(self, picture: Any, name: str) -> Array:
        image = pixels(picture, name, "L").astype(np.int64)
        bins = _uniform(self.points, self.invariant)[self._patterns(image)]
        return self._histograms(name, image.shape, np.indices(image.shape), bins)

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

    def _numbers(self) -> int:
        return self.points + 2 if self.invariant else self.points * (self.points - 1) + 3

    def _check(self) -> None:
        number("radius", self.radius, "(0, inf)")
        whole_number("points", self.points, 3, _MOST_POINTS)
        super()._check()


@final
@dataclass(eq=False, repr=False)
class ColourHistogram(WholePicture):
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

    def _describe(self, picture: Any, name: str) -> Array:
        channels = in_space(pixels(picture, name, "RGB"), self.space)
        low, high = RANGES[self.space]
        # A value between two parts belongs to the upper one, and the largest to the last.
        place = (channels - low) / (high - low) * self.bins + _ROUNDING
        parts = np.clip(place.astype(np.intp), 0, self.bins - 1)
        bins = np.ravel_multi_index(tuple(np.moveaxis(parts, 2, 0)), (self.bins,) * len(low))
        return self._histograms(name, bins.shape, np.indices(bins.shape), bins)

    def _numbers(self) -> int:
        return int(self.bins ** len(RANGES[self.space][0]))

    def _check(self) -> None:
        whole_number("bins", self.bins, 1, 256)
        choice("space", self.space, RANGES)
        super()._check()


@final
@dataclass(eq=False, repr=False)
class RegionCovariance(WholePicture):
    """The covariance of place, colour and gradients, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    Parameters
    ----------
    levels : how many; 3 goes to 4 x 4 cells
    weights : of each level, coarse to fine: "equal", "match" as in `SpatialPyramid`, or a number
        for each level
    n_jobs : threads; None is one, -1 as many as there are cores

    The 45 numbers of a cell are the upper triangle of log C; off the diagonal they are multiplied
    by the square root of two, and all by that of weight / cells of the level. So the squared
    distance of two vectors is the weighted mean of |log C - log C'|^2 over the cells of each level,
    summed over levels. They are not histograms: an RBF kernel suits them.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48, 3))
    >>> RegionCovariance(levels=2).transform([picture]).shape
    (1, 225)
    """

    _prefix = "covariance"

    def _describe(self, picture: Any, name: str) -> Array:
        rgb = pixels(picture, name, "RGB")
        grey = pixels(picture, name, "L")
        self._finest(grey.shape, name)
        F = _features(rgb, grey)
        weights = level_weights(self.levels, self.weights)
        return np.concatenate(
            [
                np.sqrt(weight / 4**level) * _logarithms(_covariances(F, 2**level)).ravel()
                for level, weight in enumerate(weights)
            ]
        )

    def _numbers(self) -> int:
        return _FEATURES * (_FEATURES + 1) // 2


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


def _features(rgb: Array, grey: Array) -> Array:
    """The nine numbers of each pixel, (h, w, 9): places, colours and grey values in [0, 1]."""
    cv2 = optional("cv2", "images")
    h, w = grey.shape
    y, x = np.indices((h, w))
    image = grey / 255
    slope = partial(cv2.filter2D, image, cv2.CV_64F, borderType=cv2.BORDER_REPLICATE)
    first, second = np.array([[-0.5, 0, 0.5]]), np.array([[1.0, -2, 1]])
    slopes = [abs(slope(kernel)) for kernel in (first, first.T, second, second.T)]
    return np.dstack([(x + 0.5) / w, (y + 0.5) / h, rgb / 255, *slopes])


def _covariances(F: Array, cells: int) -> Array:
    """The covariance of the features (h, w, 9) in each of the cells, row by row, (cells^2, 9, 9).

    A pixel in row y belongs to cell y cells // h, as in a histogram.
    """
    rows, columns = (-(-np.arange(cells + 1) * side // cells) for side in F.shape[:2])
    found = []
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            Z = F[top:bottom, left:right].reshape(-1, _FEATURES)
            Z = Z - Z.mean(axis=0)
            found.append(Z.T @ Z / len(Z))
    return np.stack(found)


def _logarithms(C: Array) -> Array:
    """log(C + unseen) of covariances (k, 9, 9) as vectors, (k, 45), of the norm of log C."""
    values, V = np.linalg.eigh(C)
    logs = np.log(np.maximum(values, 0) + _UNSEEN)
    L = (V * logs[:, None, :]) @ np.swapaxes(V, 1, 2)
    i, j = np.triu_indices(_FEATURES)
    return np.asarray(L[:, i, j] * np.where(i == j, 1, np.sqrt(2)))
