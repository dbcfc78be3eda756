"""Distances and products of rows: one matrix product, with the digits that it loses put back.

Each value is a matter of its own two rows: where others are so large that a product overflows,
those are taken one by one. Finite rows have distances from zero to infinity, and never a NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from knowmore.arrays import Array
from knowmore.errors import InvalidInput

# With fewer rows than this on one side the loop over pairs is as fast.
_FEW = 16
# A difference of this many numbers stays in the cache, and is made faster than cdist is called.
_CACHED = 100_000
# |x|^2 + |y|^2 - 2 x.y loses digits where the distance is short against the norms. Pairs nearer
# than this fraction are taken directly, so that every squared distance keeps a relative error of
# about a hundred roundings.
_NEAR = 0.01
# If more than this share of the pairs is near, all are taken directly.
_CROWDED = 0.05
# Rows up to this many length scales, of scales from one over _WIDE to _WIDE, have squares that
# are far from the ends of the range of a double.
_TAME, _WIDE = 1e100, 1e50
# Squared distances between these have lost nothing to the ends of the range.
_LEAST, _MOST = 1e-280, 1e280


def squared_distances(X: Array, Y: Array, scale: float | Array) -> Array:
    """|x - y|^2 in units of `scale` (a number, or one per feature); X (n, d), Y (m, d) -> (n, m).

    Infinite beyond the range of a double.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), 5.0)
    array([[1.]])
    """
    scale = units(X, scale)
    with np.errstate(over="ignore", invalid="ignore"):
        D2 = _quick(X, Y, scale)
        return D2 if np.isfinite(D2.sum()) else _row_by_row(X, Y, scale)


def distances(X: Array, Y: Array, scale: float | Array) -> Array:
    """|x - y| in units of `scale`, (n, m), also where its square leaves the range of a double.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[3e200, 4e200]]), 1.0)
    array([[5.e+200]])
    """
    D2 = squared_distances(X, Y, scale)
    r = np.sqrt(D2)
    lost = np.flatnonzero(~((D2 > _LEAST) & (D2 < _MOST)))
    for pairs in _portions(lost, X.shape[1]):
        i, j = np.unravel_index(pairs, D2.shape)
        r[i, j] = _lengths(X[i], Y[j], units(X, scale))
    return np.asarray(r)


def products(X: Array, Y: Array) -> Array:
    """x . y, (n, m), which is not finite only where it is beyond the range of a double itself.

    >>> products(np.array([[1e200, 1e200, 1.0]]), np.array([[1e200, -1e200, 2.0]]))
    array([[0.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = X @ Y.T
        if np.isfinite(K.sum()):
            return np.asarray(K)
        for pairs in _portions(np.flatnonzero(~np.isfinite(K)), X.shape[1]):
            i, j = np.unravel_index(pairs, K.shape)
            x, y = (abs(rows).max(axis=1, keepdims=True) for rows in (X[i], Y[j]))
            parts = np.einsum("ij,ij->i", X[i] / x, Y[j] / y)
            # The larger of the two last: else an intermediate product might overflow.
            K[i, j] = parts * np.minimum(x, y)[:, 0] * np.maximum(x, y)[:, 0]
    return np.asarray(K)


def units(X: Array, scale: float | Array) -> Any:
    """The length scale, a number or one for each feature of X (n, d), if it is one."""
    scale = np.squeeze(np.asarray(scale, dtype=float))
    if scale.ndim and scale.shape != X.shape[1:]:
        raise InvalidInput(
            f"The kernel has {scale.size} length scales, but there are "
            f"{X.shape[1]} features. Give one number, or one for each feature."
        )
    if not (np.isfinite(scale) & (scale != 0)).all():
        raise InvalidInput(
            f"The kernel has the length scale {scale.tolist()}, by which distances cannot be "
            f"divided. Give a finite number that is not zero."
        )
    return scale if scale.ndim else float(scale)


def _quick(X: Array, Y: Array, scale: Any) -> Array:
    """The squares, not finite wherever something overflowed."""
    if np.ndim(scale) or not 1 / _WIDE < abs(scale) < _WIDE:
        X, Y, scale = X / scale, Y / scale, 1.0
    D2 = _direct(X, Y) if min(len(X), len(Y)) < _FEW else _by_product(X, Y)
    if scale != 1.0:
        D2 /= scale**2
    return D2


def _direct(X: Array, Y: Array) -> Array:
    if len(Y) != 1 or X.size > _CACHED:
        return np.asarray(cdist(X, Y, "sqeuclidean"))
    difference = X - Y
    return np.asarray(np.einsum("ij,ij->i", difference, difference)[:, None])


def _by_product(X: Array, Y: Array) -> Array:
    # Distances do not change under a shift, and norms about the centre are the smallest.
    centre = Y.mean(axis=0)
    A, B = X - centre, Y - centre
    x2, y2 = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    D2 = A @ (-2 * B).T
    D2 += x2[:, None]
    D2 += y2
    near = np.flatnonzero((_NEAR * (x2 + y2.max()))[:, None] >= D2)
    if len(near) > _CROWDED * D2.size:
        return _direct(X, Y)
    i, j = np.unravel_index(near, D2.shape)
    difference = X[i] - Y[j]
    D2[i, j] = np.einsum("ij,ij->i", difference, difference)
    return np.asarray(D2)


def _row_by_row(X: Array, Y: Array, scale: Any) -> Array:
    """The squares where some rows are wild: those alone are taken by their lengths."""
    x_tame, y_tame = (abs(rows / scale).max(axis=1, initial=0) <= _TAME for rows in (X, Y))
    D2 = np.empty((len(X), len(Y)))
    D2[np.ix_(x_tame, y_tame)] = _quick(X[x_tame], Y[y_tame], scale)
    for i in np.flatnonzero(~x_tame):
        D2[i] = _lengths(X[i], Y, scale) ** 2
    for j in np.flatnonzero(~y_tame):
        D2[:, j] = _lengths(X, Y[j], scale) ** 2
    return D2


def _lengths(X: Array, Y: Array, scale: Any) -> Array:
    """|x - y| of pairs of rows, (k,), which overflows only where the length itself does."""
    wide, narrow = np.maximum(abs(scale), 1), np.minimum(abs(scale), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = abs(X / wide - Y / wide) / narrow
        longest = difference.max(axis=1, initial=0, keepdims=True)
        part = difference / np.where((longest > 0) & (longest < np.inf), longest, 1)
        length = longest[:, 0] * np.sqrt(np.einsum("ij,ij->i", part, part))
    return np.where(longest[:, 0] < np.inf, length, np.inf)


def _portions(pairs: Array, d: int) -> Iterator[Array]:
    """The pairs, as many at a time as have rows that stay in the cache."""
    step = max(_CACHED // max(d, 1), 1)
    for begin in range(0, len(pairs), step):
        yield pairs[begin : begin + step]
