"""Histograms over ever finer cells: pyramids in general, and of visual words.

Level l of a pyramid with levels 0 ... L divides the picture into 2^l x 2^l cells. The pyramid match
kernel of Lazebnik, Schmid and Ponce (2006) is

    kappa(a, b) = 2^-L I^0 + sum_{l=1..L} 2^-(L-l+1) I^l,    I^l = sum over cells, words min(a, b).

Since min(w a, w b) = w min(a, b), it is one histogram intersection of histograms whose levels
are multiplied by these weights. With counts divided by their number, kappa(a, a) = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np

from knowmore._base import Array, choice, is_real, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.local import Words, values
from knowmore.images.reading import VectorTransformer, fitted

Weights = Literal["match", "equal"] | Sequence[float]

# 4^12 cells are more than any picture has pixels.
_MOST_LEVELS = 12


@final
@dataclass(eq=False, repr=False)
class SpatialPyramid(VectorTransformer):
    """Histograms of the visual words of pictures, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    Parameters
    ----------
    levels : how many; 3 goes to 4 x 4 cells, 1 is the plain bag of visual words
    weights : of each level, coarse to fine: "match", those of the pyramid match kernel (1/4, 1/4,
        1/2 for three levels), "equal", which also sum to one, or a number for each level

    Counts are divided by the number of words of the picture. The columns are ordered by level, then
    by cell (row by row), then by word: (n, size (4^levels - 1) / 3) in all.

    Examples
    --------
    >>> words = Words(np.array([[0.1, 0.1], [0.9, 0.9]]), np.array([0, 1]), size=2)
    >>> SpatialPyramid(levels=2).fit_transform([words])
    array([[0.25, 0.25, 0.25, 0.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.25]])
    """

    levels: int = 3
    weights: Weights = "match"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how many words there are. y is ignored."""
        self._check()
        self.size_ = values(Words, X, "codebook")[0].size
        return self

    def transform(self, X: Any) -> Array:
        """The weighted histograms of n pictures, (n, size (4^levels - 1) / 3)."""
        words = values(Words, X, "codebook", fitted(self, "size_"))
        weights = level_weights(self.levels, self.weights)
        cells = 2 ** (self.levels - 1)
        histograms = []
        for each in words:
            # A position of one belongs to the last cell.
            column, row = np.minimum((each.positions * cells).astype(np.intp), cells - 1).T
            finest = histogram(row, column, each.indices, (cells, each.size))
            histograms.append(pyramid(finest, weights))
        return np.stack(histograms)

    _prefix = "pyramid"

    def _columns(self) -> int:
        return cells_of(self.levels) * int(fitted(self, "size_"))

    def _check(self) -> None:
        level_weights(self.levels, self.weights)


def cells_of(levels: int) -> int:
    """The number of cells of a pyramid: 1 + 4 + 16 + ..."""
    return int((4**levels - 1) // 3)


def level_weights(levels: int, weights: Weights) -> Array:
    """The weight of each level, (levels,), coarse to fine.

    >>> level_weights(3, "match")
    array([0.25, 0.25, 0.5 ])
    """
    whole_number("levels", levels, 1, _MOST_LEVELS)
    if isinstance(weights, str):
        match = 0.5 ** np.minimum(levels - np.arange(levels), levels - 1)
        known = {"equal": np.full(levels, 1 / levels), "match": match}
        return known[choice("weights", weights, known)]
    numbers = list(weights)
    if len(numbers) != levels or not all(is_real(w) and w >= 0 for w in numbers):
        wanted = f'"match", "equal", or {levels} numbers, none negative'
        raise InvalidInput(f"weights={weights!r} must be {wanted}.")
    return np.array(numbers, dtype=float)


def pyramid(finest: Array, weights: Array) -> Array:
    """All levels of a histogram (c, c, b) over the finest cells, weighted, coarse to fine, flat.

    Every coarser cell is the sum of the four in it.
    """
    levels = [finest]
    while len(levels) < len(weights):
        c, _, b = levels[-1].shape
        levels.append(levels[-1].reshape(c // 2, 2, c // 2, 2, b).sum(axis=(1, 3)))
    parts = [w * level.ravel() for w, level in zip(weights, reversed(levels), strict=True)]
    return np.concatenate(parts)


def histogram(
    row: Array, column: Array, bins: Array, shape: tuple[int, int], votes: Array | None = None
) -> Array:
    """The part of the votes, or of the items, in each of b bins of c x c cells: (c, c, b).

    row, column, bins : where each item belongs; shape : c and b; votes : one for each item
    """
    c, b = shape
    counts = np.bincount((row * c + column) * b + bins, votes, minlength=c * c * b)
    return (counts / (counts.sum() or 1)).reshape(c, c, b)
