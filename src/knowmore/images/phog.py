"""Pyramid histograms of oriented gradients (Bosch, Zisserman and Munoz 2007)."""

from __future__ import annotations

from typing import Any, Literal, Self, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.extras import optional
from knowmore.images.pyramid import Weights, level_weights, pyramid
from knowmore.images.reading import grey, of_each
from knowmore.images.settings import whole

# The defaults of MATLAB's edge(..., "canny"). Edges are sought in a smoothed picture; strong ones
# are above this quantile of the gradient's length, weak ones, which count where they touch strong
# ones, above this part of it.
SMOOTHING, STRONG, WEAK = np.sqrt(2), 0.7, 0.4


@final
class PHOG(TransformerMixin, BaseEstimator):
    """The directions of a picture's edges, over 1 x 1, 2 x 2, 4 x 4, ... cells.

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
    normalised at once. A picture without edges gives zeros. The columns go by level, then by cell
    (row by row), then by direction: (n, bins (4^levels - 1) / 3) in all.

    Examples
    --------
    >>> picture = np.zeros((32, 32))
    >>> picture[:, 16:] = 1
    >>> PHOG(bins=4, levels=1).transform([picture])
    array([[1., 0., 0., 0.]])
    """

    def __init__(
        self,
        bins: int = 20,
        *,
        degrees: Literal[180, 360] = 180,
        levels: int = 4,
        weights: Weights = "equal",
        n_jobs: int | None = None,
    ) -> None:
        self.bins = bins
        self.degrees = degrees
        self.levels = levels
        self.weights = weights
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """There is nothing to learn; X and y are not looked at."""
        self._checked_weights()
        return self

    def transform(self, X: Any) -> Array:
        """The histograms of n pictures, (n, bins (4^levels - 1) / 3)."""
        weights = self._checked_weights()
        cells = 2 ** (self.levels - 1)

        def describe(picture: Any, name: str) -> Array:
            return pyramid(self._finest(grey(picture, name), cells, name), weights)

        return np.stack(of_each(describe, X, self.n_jobs))

    def _finest(self, image: Array, cells: int, name: str) -> Array:
        """The histogram over the finest cells, as parts of one: (cells, cells, bins)."""
        h, w = image.shape
        if min(h, w) < cells:
            raise InvalidInput(
                f"{name} has {w} x {h} pixels, too few for {cells} x {cells} cells. Enlarge it, "
                f"or ask for fewer levels."
            )
        gx, gy = _sobel(image)
        y, x = np.nonzero(_edges(image))
        gx, gy = gx[y, x].astype(float), gy[y, x].astype(float)
        turn = np.arctan2(gy, gx) / np.deg2rad(self.degrees) % 1
        # A tiny negative angle is rounded up to a whole turn, which is none.
        direction = (turn * self.bins).astype(np.intp) % self.bins
        cell = (y * cells // h) * cells + x * cells // w
        votes = np.bincount(
            cell * self.bins + direction, np.hypot(gx, gy), minlength=cells * cells * self.bins
        )
        return (votes / (votes.sum() or 1)).reshape(cells, cells, self.bins)

    def _checked_weights(self) -> Array:
        whole("bins", self.bins)
        if self.degrees not in (180, 360):
            raise InvalidInput(f"degrees={self.degrees!r} is not known. Give 180 or 360.")
        return level_weights(self.levels, self.weights)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        return tags


def _sobel(image: Array) -> tuple[Array, Array]:
    cv2 = optional("cv2", "images")
    options = {"ksize": 3, "borderType": cv2.BORDER_REPLICATE}
    return cv2.Sobel(image, cv2.CV_16S, 1, 0, **options), cv2.Sobel(
        image, cv2.CV_16S, 0, 1, **options
    )


def _edges(image: Array) -> Array:
    """Where Canny finds edges, (h, w): zero elsewhere."""
    cv2 = optional("cv2", "images")
    smooth = cv2.GaussianBlur(image, (0, 0), SMOOTHING, borderType=cv2.BORDER_REPLICATE)
    gx, gy = _sobel(smooth)
    strong = float(np.quantile(np.hypot(gx.astype(np.float32), gy.astype(np.float32)), STRONG))
    return np.asarray(cv2.Canny(gx, gy, WEAK * strong, strong, L2gradient=True))
