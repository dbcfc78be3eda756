"""Distances between rows: one matrix product, with the digits that it loses put back.

Each value depends on its own two rows alone: where others are so large that a product overflows,
those are computed one by one. Finite rows have distances from zero to infinity, and never a NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.linalg import Ended, in_turn, workers

# With fewer rows than this on one side the loop over pairs is as fast.
_FEW = 16
# A difference of this many numbers stays in the cache, and is made faster than cdist is called.
_CACHED = 300_000
# A strip of this many distances, a megabyte, is in the cache of a core until it is done.
_STRIP = 2**17
# What is done with a distance takes as long as so many multiplications.
_STEPS = 100
# |x|^2 + |y|^2 - 2 x.y loses digits where the distance is short against the norms. Pairs nearer
# than this fraction are computed directly, so that every squared distance keeps a relative error of
# about a hundred roundings.
_NEAR = 0.01
# If more than this share of the pairs of a row is near, all of its pairs are computed directly.
_CROWDED = 0.05
# Squares of length scales from one over this to this are far from the ends of the range.
_WIDE = 1e50
# Squared distances between these have lost nothing to the ends of the range.
_LEAST, _MOST = 1e-280, 1e280


def squared_distances(X: Array, Y: Array, scale: float | Array) -> Array:
    """|x - y|^2 in units of `scale` (a number, or one per feature); X (n, d), Y (m, d) -> (n, m).

    Infinite beyond the range of a double.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), 5.0)
    array([[1.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return of_squares(np.asarray, X, Y, scale)


def of_squares(
    function: Callable[[Array], Array], X: Array, Y: Array, scale: float | Array
) -> Array:
    """A function of the squared distances, which may overwrite them; X (n, d), Y (m, d) -> (n, m).

    It is given some of them at a time: each value must depend on its own distance alone. Squares
    may overflow: the caller sets NumPy's errors.
    """
    scale = units(X, scale)
    if min(len(X), len(Y)) < _FEW:
        return function(_mended(_direct(X, Y, scale), X, Y, scale))
    product, K = _Product(X, Y, scale), np.empty((len(X), len(Y)))
    height = max(_STRIP // len(Y), _FEW)

    def strip(i: int, _: Ended) -> None:
        rows = slice(i * height, (i + 1) * height)
        # A thread has settings of its own for errors.
        with np.errstate(all="ignore"):
            K[rows] = function(_mended(product.rows(rows, K[rows]), X[rows], Y, scale))

    in_turn(strip, -(-len(X) // height), workers(K.size, X.shape[1] + _STEPS))
    return K


def euclidean(X: Array, Y: Array, scale: float | Array) -> Array:
    """|x - y| in units of `scale`, (n, m), also where its square leaves the range of a double.

    >>> euclidean(np.array([[0.0, 0.0]]), np.array([[3e200, 4e200]]), 1.0)
    array([[5.e+200]])
    """
    D2 = squared_distances(X, Y, scale)
    r, lost = np.sqrt(D2), ~((D2 > _LEAST) & (D2 < _MOST))
    r[lost] = _lengths(X, Y, units(X, scale), lost)
    return np.asarray(r)


def units(X: Array, scale: float | Array) -> Any:
    """The length scale, checked: a number, or one for each feature of X (n, d)."""
    if isinstance(scale, float) and 0 < abs(scale) < np.inf:
        return float(scale)
    scale = np.squeeze(np.asarray(scale, dtype=float))
    if scale.ndim and scale.shape != X.shape[1:]:
        raise InvalidInput(
            f"The kernel has {scale.size} length scales, but there are "
            f"{X.shape[1]} features. Give one number, or one for each feature."
        )
    if not (np.isfinite(scale) & (scale != 0)).all():
        raise InvalidInput(
            f"The length scale is {scale.tolist()}: give a finite number that is not zero."
        )
    return scale if scale.ndim else float(scale)


def _mended(D2: Array, X: Array, Y: Array, scale: Any) -> Array:
    """The squares D2 (n, m), with those that are not finite computed one by one; in place."""
    if not isfinite(D2.sum()):
        rows = ~np.isfinite(D2).all(axis=1)
        D2[rows] = _direct(X[rows], Y, scale)
        lost = ~np.isfinite(D2)
        D2[lost] = _lengths(X, Y, scale, lost) ** 2
    return D2


def _moderate(X: Array, Y: Array, scale: Any) -> tuple[Array, Array, float]:
    """X, Y and their scale, a number whose square is far from the ends of the range."""
    if isinstance(scale, float) and 1 / _WIDE < abs(scale) < _WIDE:
        return X, Y, scale
    return X / scale, Y / scale, 1.0


def _direct(X: Array, Y: Array, scale: Any) -> Array:
    """The squares, by themselves for each pair; not finite on overflow."""
    X, Y, scale = _moderate(X, Y, scale)
    if len(Y) != 1 or X.size > _CACHED:
        D2 = np.asarray(cdist(X, Y, "sqeuclidean"))
    else:
        difference = X - Y
        D2 = np.einsum("ij,ij->i", difference, difference)[:, None]
    if scale != 1.0:
        D2 /= scale**2
    return D2


class _Product:
    """The squares |x|^2 + |y|^2 - 2 x.y as a matrix product, row by row; not finite on overflow."""

    def __init__(self, X: Array, Y: Array, scale: Any) -> None:
        self.X, self.Y, self.scale = _moderate(X, Y, scale)
        # Distances do not change under a shift, and norms about the centre are the smallest.
        self.centre = self.Y.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            B = (self.Y - self.centre) / self.scale
            y2 = np.einsum("ij,ij->i", B, B)
            self.B = np.column_stack([-2 * B, np.ones(len(B)), y2]).T
        self.most = y2.max()

    def rows(self, rows: slice, D2: Array) -> Array:
        """Squared distances of these rows, written to D2."""
        X, Y = self.X[rows], self.Y
        A = (X - self.centre) / self.scale
        x2 = np.einsum("ij,ij->i", A, A)
        np.matmul(np.column_stack([A, x2, np.ones(len(A))]), self.B, out=D2)
        limit = _NEAR * (x2 + self.most)
        if not (D2.min(axis=1) <= limit).any():
            return D2
        near = limit[:, None] >= D2
        # Row by row: no value may depend on what other rows are asked for with it.
        crowded = np.count_nonzero(near, axis=1) > _CROWDED * len(Y)
        if crowded.any():
            D2[crowded] = cdist(X[crowded], Y, "sqeuclidean") / self.scale**2
            near[crowded] = False
        i, j = np.divmod(np.flatnonzero(near), len(Y))
        difference = (X[i] - Y[j]) / self.scale
        D2[i, j] = np.einsum("ij,ij->i", difference, difference)
        return D2


def _lengths(X: Array, Y: Array, scale: Any, lost: Array) -> Array:
    """|x - y| of the lost pairs, (k,), which overflows only where the length itself does."""
    i, j = np.unravel_index(np.flatnonzero(lost), lost.shape)
    wide, narrow = np.maximum(abs(scale), 1), np.minimum(abs(scale), 1)
    lengths = np.empty(len(i))
    step = max(_CACHED // max(X.shape[1], 1), 1)
    for begin in range(0, len(i), step):
        pairs = slice(begin, begin + step)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = abs(X[i[pairs]] / wide - Y[j[pairs]] / wide) / narrow
            lengths[pairs] = np.hypot.reduce(difference, axis=1)
    return lengths
