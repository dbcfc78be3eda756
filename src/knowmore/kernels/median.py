"""The kernel for those who name none."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF

from knowmore.arrays import Array
from knowmore.errors import InvalidInput

# Rows that the median is taken over: more would hardly move it.
_ROWS = 1000
# So many rows are enough to tell how far apart rows are: they have about five hundred distances.
ENOUGH = 32


def enough(X: Array) -> int | None:
    """How many of the first rows of X (n, d) are enough to decide on a width; None if all are not.

    At least `ENOUGH`, and two that differ.

    >>> enough(np.zeros((50, 1))), enough(np.arange(50.0)[:, None])
    (None, 32)
    """
    differs = np.not_equal(X, X[:1]).any(axis=1)
    first = max(ENOUGH, int(differs.argmax()) + 1) if differs.any() else len(X) + 1
    return first if first <= len(X) else None


def median_rbf(X: Array) -> RBF:
    """An RBF kernel whose length scale is the median distance between different rows of X (n, d).

    Taken over at most a thousand rows, evenly spread. Where no two rows differ it is one: to a
    model of one place, any width is as good as another.

    >>> median_rbf(np.array([[0.0], [0.0], [3.0]]))
    RBF(length_scale=3)
    """
    rows = np.linspace(0, len(X) - 1, num=min(len(X), _ROWS), dtype=int)
    # In units of the largest feature, so that no square is beyond the range of numbers.
    unit = float(abs(X[rows]).max(initial=0)) or 1.0
    distances = pdist(X[rows] / unit)
    distances = distances[distances > 0]
    with np.errstate(over="ignore"):
        width = unit * float(np.median(distances)) if len(distances) else 1.0
    if not 0 < width < np.inf:
        raise InvalidInput(
            f"The median distance between the examples is {width:g}, beyond what a kernel can be "
            f"as wide as. Scale the features, or give a kernel. Nothing was changed."
        )
    return RBF(width)
