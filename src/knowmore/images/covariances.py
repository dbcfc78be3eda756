"""How colours and gradients vary together: region covariances.

Tuzel, Porikli and Meer (2006). Each pixel has nine numbers f: its place (x, y), red, green and
blue, and of its grey value |I_x|, |I_y|, |I_xx|, |I_yy|. A cell is described by their covariance C.
Covariances are compared by the log-Euclidean distance |log C - log C'| (Arsigny et al. 2006), which
is Euclidean between the vectors of log C: an RBF kernel of them is positive definite.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np

from knowmore._base import Array, optional
from knowmore.images.histograms import cells_along
from knowmore.images.pyramids import Weights, cells_of, level_weights
from knowmore.images.reading import VectorTransformer, named, pixels, threaded

_FEATURES = 9
_NUMBERS = _FEATURES * (_FEATURES + 1) // 2
# The variance of one step of 255 in a value of [0, 1]: what is less cannot be seen. It is added to
# the variance of every feature, so that a flat cell has a logarithm.
_UNSEEN = 1 / 255**2


@final
@dataclass(eq=False, repr=False)
class RegionCovariance(VectorTransformer):
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

    _: KW_ONLY
    levels: int = 3
    weights: Weights = "equal"
    n_jobs: int | None = None

    _prefix = "covariance"

    def transform(self, X: Any) -> Array:
        """The vectors of n pictures, (n, 45 (4^levels - 1) / 3)."""
        self._check()
        return np.stack(threaded(self._describe, named(X), self.n_jobs))

    def _describe(self, picture: Any, name: str) -> Array:
        rgb = pixels(picture, name, "RGB")
        grey = pixels(picture, name, "L")
        cells_along(grey.shape, self.levels, name)
        F = _features(rgb, grey)
        weights = level_weights(self.levels, self.weights)
        return np.concatenate(
            [
                np.sqrt(weight / 4**level) * _logarithms(_covariances(F, 2**level)).ravel()
                for level, weight in enumerate(weights)
            ]
        )

    def _columns(self) -> int:
        return cells_of(self.levels) * _NUMBERS

    def _check(self) -> None:
        level_weights(self.levels, self.weights)


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
