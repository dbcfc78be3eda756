"""Means to twice the digits of a double.

The mean of a column such as 1.7e9 +- 1e-3, in one double, is off by 1e-7. Merging and splitting
multiply the difference of two means by the number of rows, so that soon nothing else would be seen
of the column. A second double has the rest of the mean. Sums and products keep what they round off
(T. J. Dekker, A floating-point technique for extending the available precision, 1971), so that the
mean of all rows held is right after any history.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput

TOO_LARGE = "The values are too large for double precision. Scale the data first."
# A double without these bits of its 53 has 26.
_LOW = ~np.int64(2**27 - 1)
_Pair = tuple[Any, Any]


class Mean(NamedTuple):
    """The point `value` + `rest`, (D,), or C points, (C, D); `rest` is what rounding took off.

    Examples
    --------
    >>> mean, E = Mean.of(np.array([[1e9], [1e9 + 1e-6], [1e9 + 1e-6]]))
    >>> bool(mean.rest[0] != 0), (E / E.min()).round(6).ravel()
    (True, array([ 1. , -0.5, -0.5]))
    """

    value: Array
    rest: Array = np.zeros(1)

    @classmethod
    def of(cls, X: Array, weights: Array | None = None) -> tuple[Mean, Array]:
        """The mean of the rows of X (n, D), with weights (n,) if any; the rows around it, (n, D).

        Raises InvalidInput if sums are beyond double precision.
        """
        p = None if weights is None else weights / weights.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            about = X.mean(axis=0) if p is None else p @ X
            E = X - about
            # A sum of large numbers has large rounding errors. The mean of equal ones needs none.
            mean = _total(E) / len(X) if p is None else p @ E
            shift = np.where((E[0] == E).all(axis=0), E[0], mean)
            E -= shift
            return _finite(cls(about).moved(shift), len(X)), E

    def merge(self, n: Any, other: Mean, k: Any) -> Mean:
        """The mean of n rows with this mean and k with the `other`; k < 0 removes them.

        n and k may be rounded. Their sum is not, or the error would grow with the distance to zero.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            one, rest = _product(self.value, n)
            two, other_rest = _product(other.value, k)
            both, error = _sum(one, two)
            rests = (rest + n * self.rest) + (other_rest + k * other.rest)
            return _finite(_quotient(_sum(both, error + rests), _sum(n, k)), n + k)

    def moved(self, step: Array) -> Mean:
        """The point, or C points, after a step (D,), or steps (C, D)."""
        return Mean(*_sum(self.value, self.rest + step))

    def __sub__(self, other: Mean) -> Array:
        """The vector from the `other` point to this one, rounded relative to its length."""
        return np.asarray((self.value - other.value) + (self.rest - other.rest))

    def centred(self, X: Array) -> Array:
        """The rows of X (m, D) as seen from this point."""
        return np.asarray((X - self.value) - self.rest)


def _total(E: Array) -> Array:
    """The sum of the rows of E (n, D), (D,).

    Errors of a long sum add up. Here the sums are of about sqrt(n) numbers each.
    """
    parts = 1 << (len(E).bit_length() // 2)
    whole = len(E) // parts * parts
    sums = E[:whole].reshape(parts, -1, E.shape[1]).sum(axis=0).sum(axis=0)
    return np.asarray(sums + E[whole:].sum(axis=0))


def _finite(mean: Mean, n: Any) -> Mean:
    """The mean of n rows; raises InvalidInput if their sum is beyond double precision."""
    if not np.isfinite(n * mean.value).all():
        raise InvalidInput(TOO_LARGE)
    return mean


def _quotient(dividend: _Pair, divisor: _Pair) -> Mean:
    """The quotient of two sums, each with its rest."""
    (value, rest), (n, error) = dividend, divisor
    first = value / n
    product, missing = _product(first, n)
    return Mean(*_sum(first, (((value - product) - missing) + (rest - first * error)) / n))


def _sum(a: Any, b: Any) -> _Pair:
    """a + b and the exact rounding error of it."""
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def _product(a: Array, b: Any) -> _Pair:
    """a b and the rounding error of it, to a rounding error of its own."""
    b = np.asarray(b, dtype=float)
    product = a * b
    (high, low), (left, right) = _halves(a), _halves(b)
    return product, ((high * left - product) + high * right + low * left) + low * right


def _halves(a: Array) -> _Pair:
    """a as the sum of a number of half the digits, and the rest."""
    high = (np.asarray(a).view(np.int64) & _LOW).view(float)
    return high, a - high
