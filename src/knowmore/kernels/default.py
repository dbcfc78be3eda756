"""The kernel of estimators that are given none.

It is as wide as the median distance of the examples. Histograms have distances of their own: a
difference of 0.01 counts more in a bin that is nearly empty. So rows that are histograms get the
chi-squared kernel, all others the RBF kernel.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, Kernel

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.kernels.histograms import ChiSquared, Term, pair_sums

# Rows that the median distance is taken over: more would hardly move it.
_MEDIAN_ROWS = 1000
# With this many rows, which have about five hundred distances, the median is settled.
SETTLED = 32
# With fewer columns, equal sums may be chance.
_FEW = 8
# Sums of rows that were rounded, in half precision too, differ by less than this part.
_ROUNDED = 1e-3
# Units of columns have no larger exponents.
_FAR = 1000
# Values further from the median than so many times the distance of the quartiles are clipped.
_STRAY = 10.0
# Sums from one over this to this are far from the ends of the range.
_WIDE = 1e100


def default_kernel(X: Array) -> Kernel:
    """`ChiSquared` for histograms (see `are_histograms`), else RBF: `median_rbf`; X (n, d).

    gamma is one over the median distance between different rows, as the length scale of RBF is the
    median distance. It looks at no more than a thousand rows, evenly spaced.

    >>> default_kernel(np.eye(8) + 1)
    ChiSquared(gamma=1.5)
    >>> default_kernel(np.eye(8) - 1)
    RBF(length_scale=1.41)
    """
    rows = X[rows_of_median(len(X))]
    return median_chi_squared(rows) if are_histograms(rows) else median_rbf(rows)


def are_histograms(X: Array) -> bool:
    """Whether all rows of X (n, d) hold parts of one whole: no value negative, all sums the same.

    A row of zeros, in which nothing was counted, may be among them. At least 8 columns are needed;
    the sum of a single row must be one. Sums may be off by a thousandth: features are often stored
    in low precision.

    >>> are_histograms(np.eye(8)), are_histograms(np.arange(64.0).reshape(8, 8))
    (True, False)
    """
    if X.shape[1] < _FEW or X.min(initial=0) < 0:
        return False
    with np.errstate(over="ignore"):
        sums = X.sum(axis=1)
    sums = sums[sums > 0]
    if len(sums) < 2:
        return bool((abs(sums - 1) <= _ROUNDED).any())
    low, high = float(sums.min()), float(sums.max())
    return bool(1 / _WIDE < low <= high < _WIDE and high - low <= _ROUNDED * high)


def median_chi_squared(X: Array) -> ChiSquared:
    """A chi-squared kernel whose gamma is one over the median distance between different rows."""
    D = pair_sums(Term.CHI_SQUARED, X)[np.triu_indices(len(X), 1)]
    D = D[D > 0]
    return ChiSquared(1 / float(np.median(D)) if len(D) else 1.0)


# -- the units of columns --------------------------------------------------------------------------


def spreads(X: Array) -> Array:
    """A unit for each column of X (n, d), (d,): the power of two nearest to its deviation.

    The unit of a column of two values is the power of two nearest to their distance, so that zeros
    and ones stay what they are: in units of their deviation, rare categories would count most. A
    column of one value has the unit one. Values far outside the middle half are clipped: a
    typing error sets no unit.

    >>> spreads(np.array([[0.0, 100.0, 7.0], [1.0, 300.0, 7.0], [0.0, 200.0, 7.0]]))
    array([ 1., 64.,  1.])
    """
    if not len(X):
        return np.ones(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        first, middle, third = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
        reach = np.where(third > first, _STRAY * (third - first), np.inf)
        low, high = middle - reach, middle + reach
        X = X.clip(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))
    # Beside the largest number no difference or square is out of range.
    _, size = np.frexp(abs(X).max(axis=0, initial=0))
    Z = np.ldexp(X, -size)
    low, high = Z.min(axis=0, initial=np.inf), Z.max(axis=0, initial=-np.inf)
    two = ((low == Z) | (high == Z)).all(axis=0)
    spread = np.where(two, high - low, Z.std(axis=0))
    # The deviation of equal values may be rounding.
    spread[low >= high] = 0
    fraction, exponent = np.frexp(spread)
    powers = exponent - (fraction < np.sqrt(0.5)) + size
    return np.where(spread > 0, 2.0 ** powers.clip(-_FAR, _FAR), 1.0)


# -- the width ------------------------------------------------------------------------------------


def rows_to_settle_width(X: Array) -> int | None:
    """The number of first rows of X (n, d) that settle the width of `median_rbf`; None: not yet.

    At least 32, of which two differ. A kernel chosen from the data follows them up to this row and
    stays the same from there on.

    >>> rows_to_settle_width(np.zeros((50, 1))), rows_to_settle_width(np.arange(50.0)[:, None])
    (None, 32)
    """
    differs = np.not_equal(X, X[:1]).any(axis=1)
    first = max(SETTLED, int(differs.argmax()) + 1) if differs.any() else len(X) + 1
    return first if first <= len(X) else None


def median_rbf(X: Array) -> RBF:
    """An RBF kernel whose length scale is the median distance between different rows of X (n, d).

    This median heuristic gives the default kernel of all estimators, but for histograms. It looks
    at no more than a thousand rows, evenly spaced. Where no two rows differ the length scale is
    one: to a model of one point, any width is as good as another.

    >>> median_rbf(np.array([[0.0], [0.0], [3.0]]))
    RBF(length_scale=3)
    """
    X = X[rows_of_median(len(X))]
    # In units of a middle row's largest feature, so that squares of few are beyond the range.
    largest = abs(X).max(axis=1, initial=0)
    largest = np.sort(largest[largest > 0])
    unit = float(largest[len(largest) // 2]) if len(largest) else 1.0
    with np.errstate(over="ignore"):
        r = pdist(X / unit)
        r = r[r > 0]
        width = unit * float(np.median(r)) if len(r) else 1.0
    if not 0 < width < np.inf:
        raise InvalidInput(
            f"The median distance between the examples, {width:g}, cannot be a kernel's width: "
            f"scale the features, or give a kernel. Nothing was changed."
        )
    return RBF(width)


def rows_of_median(n: int) -> Array:
    """Which of n rows `median_rbf` looks at."""
    return np.linspace(0, n - 1, num=min(n, _MEDIAN_ROWS), dtype=int)
