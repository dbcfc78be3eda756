"""Squared distances by one matrix product, with the digits that it would lose put back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from knowmore.errors import InvalidInput

Array = npt.NDArray[Any]

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


def squared_distances(X: Array, Y: Array, scale: float | Array) -> Array:
    """|x - y|^2 in units of `scale` (a number, or one per feature); X (n, d), Y (m, d) -> (n, m).

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), 5.0)
    array([[1.]])
    """
    if np.ndim(scale):
        if len(np.asarray(scale)) != X.shape[1]:
            raise InvalidInput(
                f"The kernel has {len(np.asarray(scale))} length scales, but there are "
                f"{X.shape[1]} features. Give one number, or one for each feature."
            )
        return squared_distances(X / scale, Y / scale, 1.0)
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
