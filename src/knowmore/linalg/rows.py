"""Rows of numbers by their count, mean and scatter, and what rounding does to these."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from knowmore.errors import InvalidInput, NoExamples
from knowmore.linalg.spectrum import EPS

Array = npt.NDArray[Any]

# A sparse matrix is made dense so many numbers at a time.
_BLOCK = 2**22


class Rounding(NamedTuple):
    """How far roundings may have moved a sum of rows and their scatter, as lengths."""

    sum: float = 0.0
    scatter: float = 0.0

    def more(self, scatter: float) -> Rounding:
        """One rounding more, taken as independent of those before."""
        return Rounding(self.sum, hypot(self.scatter, float(scatter)))


EXACT = Rounding()


class Rows(NamedTuple):
    """N rows of a given mean by any B with B'B = their scatter; `discarded` is a scatter too."""

    n_samples: int
    mean: Array
    B: Array
    discarded: float = 0.0
    rounding: Rounding = EXACT
    blurred: float = 0.0

    @classmethod
    def of(cls, X: Array) -> Rows:
        """The rows X (N, D) themselves."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = X.mean(axis=0)
            B = X - mean
        sum_ = EPS * len(X) * abs(mean).max() * sqrt(X.shape[1])
        return cls(len(X), mean, B, 0.0, Rounding(float(sum_)))


def blocks(X: Any) -> Iterator[Array]:
    """X (N, D) as finite float64, a sparse one in dense blocks of rows."""
    if sparse.issparse(X):
        _check_shape(X)
        X = X.tocsr()
        size = max(1, _BLOCK // X.shape[1])
        for begin in range(0, X.shape[0], size):
            yield _finite(X[begin : begin + size].toarray().astype(float, copy=False), begin)
    else:
        X = _numbers(X)
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


def _numbers(X: Any) -> Array:
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
