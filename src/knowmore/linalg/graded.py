"""Rows made orthogonal without a loss to any feature, however unequal the scales of these are.

A decomposition moves each entry of a matrix by a rounding of its largest. Where one feature is
measured in millions and another in parts of one, that is the end of the second. Turning rows into
each other is different: a sum c b_i + s b_k moves each *column* by a rounding of that column. So
rows are only ever turned here, and those of largest length first: what is left is then decomposed
on a scale of its own.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from knowmore.arrays import Array

# Features within this factor of each other are taken as they are: their squares lose three digits.
UNEQUAL = 32.0
# Of the rows at hand, those longer than this part of the longest are found from products of rows
# and are then orthogonal to a thousand roundings.
_LONG = 1 / 32


def column_norms(A: Array) -> Array:
    """The length of each column of A (k, D), (D,)."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", A, A)))


def unequal(sizes: Array) -> bool:
    """Whether sizes (D,) are too far apart for one decomposition of all; zeros don't count."""
    seen = sizes[sizes > 0]
    return len(seen) > 1 and bool(seen.max() > UNEQUAL * seen.min())


def orthogonal_rows(B: Array) -> Array:
    """Rows with the same B'B that are orthogonal to each other, longest first, for B (r, D).

    The rows of B must be linearly independent in some scaling of the columns.
    """
    done: list[Array] = []
    while len(B):
        U = linalg.eigh(B @ B.T, driver="evd", check_finite=False)[1]
        B = U[:, ::-1].T @ B
        squares = (B * B).sum(axis=1)
        long = squares >= _LONG**2 * squares.max()
        first, rest = B[long], B[~long]
        # What the short rows have of the long ones is rounding, but of the long ones.
        for _ in range(2):
            first, rest = _parted(first, rest)
        # Now that they have their own length: of the much longer ones before as well.
        for i, before in enumerate(done):
            done[i], first = _parted(before, first)
        done.append(first)
        B = rest
    rows = np.concatenate(done) if done else B
    return np.asarray(rows[np.argsort(-(rows * rows).sum(axis=1), kind="stable")])


def _parted(long: Array, short: Array) -> tuple[Array, Array]:
    """Both turned by the small angles X (short, long) that make them orthogonal."""
    gaps = (long * long).sum(axis=1) - (short * short).sum(axis=1)[:, None]
    products = short @ long.T
    # Rows of nearly the same length are orthogonal already.
    near = 2 * gaps < (long * long).sum(axis=1)
    X = np.where(near, 0.0, products / np.where(near, 1.0, gaps))
    return long + X.T @ short, short - X @ long
