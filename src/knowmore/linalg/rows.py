"""Rows of numbers by their count, mean and scatter, and what rounding does to these."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, NoExamples
from knowmore.linalg.names import Names
from knowmore.linalg.spectrum import EPS, squared

# A difference of means that is off by more than this part of itself is hardly known.
_HARDLY = 1e-4
# A sparse matrix is made dense so many numbers at a time.
_BLOCK = 2**22


class Rounding(NamedTuple):
    """How far roundings may have moved what is known of each feature; estimates, as lengths.

    sums : the sum of the rows, (D,)
    scatters : the diagonal of the scatter, (D,). An entry (j, k) is known to the geometric mean
        of those of j and k, so that small features are known as well as large ones.
    """

    sums: Array = np.zeros(1)
    scatters: Array = np.zeros(1)

    @property
    def sum(self) -> float:
        """The length of `sums`."""
        return float(np.linalg.norm(self.sums))

    @property
    def scatter(self) -> float:
        """The largest of the `scatters`."""
        return float(self.scatters.max())

    def least(self, N: int) -> Array:
        """The length up to which a feature of N rows is nothing, (D,).

        Rows that are all alike differ from their mean by its rounding. A scatter is moved by eps
        of itself when its rows are, and these by eps too.
        """
        return np.hypot(self.sums / sqrt(N), np.sqrt(EPS * self.scatters))

    def more(self, scatters: Array | float) -> Rounding:
        """One rounding more, taken as independent of those before."""
        return Rounding(self.sums, np.hypot(self.scatters, scatters))


EXACT = Rounding()


class Rows(NamedTuple):
    """N rows of a given mean by any B with B'B = their scatter.

    `discarded`, `blurred` and `faded` are scatters too. `names`: of the features, if they have any.
    """

    n_samples: int
    mean: Array
    B: Array
    discarded: float = 0.0
    rounding: Rounding = EXACT
    blurred: float = 0.0
    faded: float = 0.0
    names: Names = None

    @classmethod
    def of(cls, X: Array, names: Names = None) -> Rows:
        """The rows X (N, D) themselves."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = X.mean(axis=0)
            B = X - mean
            # A long sum is off by many roundings; a feature that is constant would seem to vary.
            shift = B.mean(axis=0)
            if (abs(shift) > EPS * abs(mean)).any():
                mean += shift
                B -= shift
        return cls(len(X), mean, B, 0.0, Rounding(EPS * len(X) * abs(mean)), names=names)


def joint_rounding(one: Rows, two: Rows, weight: float, d: Array) -> Rounding:
    """What is rounded when two sets meet, `d` being their means' difference times `weight`.

    Roundings are taken as independent, so that their squares add.
    """
    a, b = one.rounding, two.rounding
    sizes = EPS * (one.n_samples * abs(one.mean) + two.n_samples * abs(two.mean))
    # The difference of the means is as exact as they are.
    shift = weight * (a.sums / one.n_samples + b.sums / two.n_samples)
    with np.errstate(over="ignore"):
        moved = shift * (2 * abs(d) + shift) + _across(shift, d)
    if not np.isfinite(moved).all():
        squared(abs(d).max(keepdims=True))
    return Rounding(
        np.hypot(np.hypot(a.sums, b.sums), sizes),
        np.hypot(np.hypot(a.scatters, b.scatters), moved),
    )


def _across(shift: Array, d: Array) -> Array:
    """What an error `shift` of d, (D,) each, may do to the products of two features in d d', (D,).

    Feature j's error meets the whole of feature k: s_j d_k, however well k is known. For every r
    that is within r d d' + s s' / r, which has a part in each feature by itself. r is the largest
    relative error of d, but of features that d is hardly known in: they pay most themselves.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(shift > 0, shift / abs(d), 0.0)
    hardly = relative > _HARDLY
    r = max(float(relative[~hardly].max(initial=EPS)), sqrt(EPS) if hardly.any() else 0.0)
    return np.square(d) * r + np.square(shift) / r if shift.any() else np.zeros(len(d))


def blocks(X: Any) -> Iterator[Array]:
    """X (N, D) as finite float64, a sparse one in dense blocks of rows."""
    if sparse.issparse(X):
        _check_shape(X)
        X = X.tocsr()
        size = max(1, _BLOCK // X.shape[1])
        for begin in range(0, X.shape[0], size):
            yield _finite(X[begin : begin + size].toarray().astype(float, copy=False), begin)
    else:
        X = numbers(X)
        _check_shape(X)
        yield _finite(X)


def _check_shape(X: Any) -> None:
    if X.ndim != 2:
        raise InvalidInput(
            f"X has shape {X.shape}, but rows of numbers (N, D) are needed. "
            f"A single row x is x[None]."
        )
    if 0 in X.shape:
        raise NoExamples(f"X has shape {X.shape}: there is no number in it.")


def numbers(X: Any) -> Array:
    """X as float64, if it is made of plain real numbers."""
    try:
        array = np.asarray(X)
        if array.dtype.kind == "c" or isinstance(X, np.ma.MaskedArray):
            raise TypeError("complex or masked values have no place in it")
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"X is no table of numbers (N, D): {error}.") from error


def _finite(X: Array, first: int = 0) -> Array:
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InvalidInput(
            f"X contains NaN or infinity, first at row {first + row}, column {column} "
            f"({X[row, column]}). Remove these rows or fill in the values."
        )
    return X
