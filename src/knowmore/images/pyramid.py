"""Histograms over ever finer cells of the picture.

Level l of a pyramid with levels 0 ... L divides the picture into 2^l x 2^l cells. The pyramid
match kernel of Lazebnik, Schmid and Ponce (2006) is

    kappa(a, b) = 2^-L I^0 + sum_{l=1..L} 2^-(L-l+1) I^l,    I^l = sum over cells, words min(a, b).

Since min(w a, w b) = w min(a, b), it is one histogram intersection of histograms whose levels
are multiplied by these weights. With counts divided by their number, kappa(a, a) = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.images.local import Words, values
from knowmore.unfitted import Unfitted

Weights = Literal["match", "equal"] | Sequence[float]

# 4^12 cells are more than any picture has pixels.
_MOST_LEVELS = 12


@final
class SpatialPyramid(TransformerMixin, BaseEstimator):
    """One histogram of visual words for each picture, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    Parameters
    ----------
    levels : how many; 3 goes to 4 x 4 cells, 1 is the plain bag of visual words
    weights : of each level, coarse to fine: "match", those of the pyramid match kernel (1/4, 1/4,
        1/2 for three levels), "equal", which sum to one too, or a number for each level

    Counts are divided by the number of words of the picture. The columns go by level, then
    by cell (row by row), then by word: (n, size (4^levels - 1) / 3) in all.

    Examples
    --------
    >>> words = Words(np.array([[0.1, 0.1], [0.9, 0.9]]), np.array([0, 1]), size=2)
    >>> SpatialPyramid(levels=2).fit_transform([words])
    array([[0.25, 0.25, 0.25, 0.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.25]])
    """

    def __init__(self, levels: int = 3, weights: Weights = "match") -> None:
        self.levels = levels
        self.weights = weights

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how many words there are. y is ignored."""
        level_weights(self.levels, self.weights)
        words = values(Words, X, "a codebook")
        _same_size(words, words[0].size)
        self.size_ = words[0].size
        return self

    def transform(self, X: Any) -> Array:
        """The weighted histograms of n pictures, (n, size (4^levels - 1) / 3)."""
        if not self.__sklearn_is_fitted__():
            raise Unfitted("This SpatialPyramid does not know its words yet. Call fit first.")
        weights = level_weights(self.levels, self.weights)
        words = values(Words, X, "a codebook")
        _same_size(words, self.size_)
        found = np.empty((len(words), self.size_ * (4**self.levels - 1) // 3))
        for row, each in zip(found, words, strict=True):
            row[:] = pyramid(_finest(each, 2 ** (self.levels - 1)), weights)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "size_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


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


def level_weights(levels: int, weights: Weights) -> Array:
    """The weight of each level, (levels,), coarse to fine, or an error.

    >>> level_weights(3, "match")
    array([0.25, 0.25, 0.5 ])
    """
    if not isinstance(levels, Integral) or not 1 <= levels <= _MOST_LEVELS:
        raise InvalidInput(
            f"levels={levels!r} must be a whole number from 1, the picture as a whole, to "
            f"{_MOST_LEVELS}."
        )
    if isinstance(weights, str) and weights == "equal":
        return np.full(levels, 1 / levels)
    if isinstance(weights, str) and weights == "match":
        return 0.5 ** np.minimum(levels - np.arange(levels), levels - 1)
    numbers = [] if isinstance(weights, str) else list(weights)
    if len(numbers) != levels or not all(isinstance(w, Real) and w >= 0 for w in numbers):
        raise InvalidInput(
            f'weights={weights!r} must be "match", "equal", or {levels} numbers, none negative: '
            f"one for each level."
        )
    return np.array(numbers, dtype=float)


def _finest(words: Words, cells: int) -> Array:
    """How often each word occurs in each cell, as parts of one: (cells, cells, size)."""
    # A position of one belongs to the last cell.
    column, row = np.minimum((words.positions * cells).astype(np.intp), cells - 1).T
    bins = (row * cells + column) * words.size + words.indices
    counts = np.bincount(bins, minlength=cells * cells * words.size)
    return (counts / max(len(words), 1)).reshape(cells, cells, words.size)


def _same_size(words: list[Words], size: int) -> None:
    for i, each in enumerate(words):
        if each.size != size:
            raise InvalidInput(
                f"Picture {i} has words of a codebook of {each.size}, but {size} are expected. "
                f"Use one codebook for all pictures."
            )
