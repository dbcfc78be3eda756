"""Rows that have nothing in common with any example, and how new they are.

Under a dot product a row of zeros, such as a text without one known word, is the row that a
Gaussian process is most certain of: its kernel with all rows is the same, itself included, so that
only the noise is left of its variance. Under a distance it is nearer to all rows of one length than
these are to each other. But the text has words. So it counts as a row that is as large as the
largest example, and of no class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from knowmore._base import Array

if TYPE_CHECKING:
    from knowmore.models.kernel_model import KernelModel

# In a table of fewer columns zero is a value like others, such as a temperature.
FEW: Final = 4
# Lengths of rows are often rounded.
_ROUNDED: Final = 1e-3


def unrelated(gp: KernelModel, X: Array, known: Array | slice = slice(None)) -> Array:
    """Which rows of X (m, d) have nothing in common with any of the `known` examples, (m,).

    Their kernel with all examples is zero, or that with themselves, and all examples are larger; or
    they are zero where all examples are of one length. None of the examples is such a row.
    """
    if X.shape[1] < FEW:
        return np.zeros(len(X), dtype=bool)
    own, empty = gp.covariance.prior(X), np.flatnonzero(~X.any(axis=1))
    small = np.flatnonzero(own < gp.covariance.own[known].min(initial=np.inf))
    found = np.zeros(len(X), dtype=bool)
    if len(small):
        found[small] = _says_nothing(gp.covariance.cross(X[small])[known], own[small])
    if len(empty) and are_of_one_length(gp.covariance.X[known]):
        found[empty] = True
    return found


def unrelated_left_out(gp: KernelModel, groups: Array | None = None) -> Array:
    """Which examples have nothing in common with any of another group, (n,).

    groups : (n,); None: each is its own, and at most one is such a row, the smallest
    """
    own, X = gp.covariance.own, gp.covariance.X
    found = np.zeros(len(X), dtype=bool)
    if groups is not None:
        for g in members(groups):
            found[g] = unrelated(gp, X[g], np.delete(np.arange(len(X)), g))
        return found
    if len(X) < 2 or X.shape[1] < FEW:
        return found
    empty = np.flatnonzero(~X.any(axis=1))
    i = int(empty[0] if len(empty) == 1 else own.argmin())
    others = np.arange(len(X)) != i
    if len(empty) == 1 and are_of_one_length(X[others]):
        found[i] = True
    elif own[i] < own[others].min():
        found[i] = _says_nothing(gp.covariance.cross(X[[i]])[others], own[[i]])[0]
    return found


def isolated(gp: KernelModel, X: Array | None = None, groups: Array | None = None) -> Array:
    """Which rows of X (m, d), or examples, have kernel zero with all examples (of other groups)."""
    if X is not None:
        return np.asarray((gp.covariance.cross(X) == 0).all(axis=0))
    K = np.array(gp.covariance.cross(gp.covariance.X))
    K[np.eye(len(K), dtype=bool) if groups is None else groups[:, None] == groups] = 0
    return np.asarray((K == 0).all(axis=0))


def members(groups: Array) -> list[Array]:
    """The rows of each group, for the names of the groups of n rows."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(groups[order][1:] != groups[order][:-1]) + 1)


def raised(variance: Array, rows: Array, largest: Array | float) -> Array:
    """Variances (m,) or (m, M), set to the largest for the rows of the mask (m,)."""
    if not rows.any():
        return variance
    return np.where(rows if variance.ndim == 1 else rows[:, None], largest, variance)


def _says_nothing(k: Array, own: Array) -> Array:
    """Whether kernel values k (n, m) say nothing of rows with kappa(x, x) = own (m,); (m,)."""
    return np.asarray((k == 0).all(axis=0) | (k == own).all(axis=0))


def are_of_one_length(X: Array) -> bool:
    """Whether all rows of X (n, d) have the same sum of sizes or squares, and none is zero."""
    if len(X) < 2:
        return False
    for order in (1, 2):
        lengths = np.linalg.norm(X, order, axis=1)
        if np.ptp(lengths) <= _ROUNDED * lengths.max() and lengths.min() > 0:
            return True
    return False
