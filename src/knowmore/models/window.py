"""A window that slides along a stream of rows by merging and splitting its model."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.linalg import Eigenspace
from knowmore.linalg.names import Names, names_of
from knowmore.linalg.rows import blocks, numbers
from knowmore.linalg.spectrum import EPS


@final
@dataclass(frozen=True, eq=False, repr=False)
class Window:
    """The latest rows of a stream, `size` at most, and the eigenspace of just these rows.

    size : how many rows it holds before the oldest fall out
    rows : (n, D), oldest first, n <= size
    eigenspace : the model of the rows, nothing dropped. New rows are merged in and old ones split
        off; where rounding would show, it is built afresh.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> window = Window.of(X[:10], size=20).push(X[10:45]).push(X[45:])
    >>> window
    Window(20 of 20 rows of 3)
    >>> bool(np.allclose(window.eigenspace.covariance(), np.cov(X[30:].T, bias=True)))
    True
    """

    size: int
    rows: Array
    eigenspace: Eigenspace

    @classmethod
    def of(cls, X: Any, size: int) -> Window:
        """The window that holds the last rows of X (m, D)."""
        if not isinstance(size, Integral) or size < 2:
            raise InvalidInput(
                f"size={size!r}, but a window holds a whole number of rows, 2 or more."
            )
        return cls._built(np.concatenate([*blocks(X)])[-size:], int(size), names_of(X))

    @classmethod
    def _built(cls, rows: Array, size: int, names: Names) -> Window:
        eigenspace = Eigenspace.of(rows).named(names)
        rows.flags.writeable = False
        return cls(size, rows, eigenspace)

    def push(self, X: Any) -> Window:
        """The window after the rows of X (m, D) came in and the oldest fell out."""
        grown = self.eigenspace.add_rows(X)
        rows = np.concatenate([self.rows, *blocks(X)])
        fallen, rows = rows[: -self.size], rows[-self.size :]
        if len(fallen) >= len(self.rows):
            return Window._built(rows, self.size, grown.names)
        left = grown.left_by(fallen) if len(fallen) and _sharp(grown) else grown
        if not _sharp(left):
            return Window._built(rows, self.size, grown.names)
        rows.flags.writeable = False
        return Window(self.size, rows, left)

    def __repr__(self) -> str:
        n, D = self.rows.shape
        return f"Window({n} of {self.size} rows of {D})"


def _sharp(eigenspace: Eigenspace) -> bool:
    """Whether the variance along each direction that the rows may have is good to half its digits.

    A split blurs them by a rounding of what is taken out. An outlier that goes by would blur or
    wipe out the small ones, and for good; the rows are there to build the model afresh.
    """
    N, variances = eigenspace.n_samples, eigenspace.variances
    full = len(variances) == min(N - 1, len(eigenspace.mean))
    return full and bool((eigenspace.unsure() <= np.sqrt(EPS) * variances).all())


def lagged(series: Any, length: int) -> Array:
    """A series (T,) or (T, q) as rows of `length` values in a row, (T - length + 1, length q).

    Row i holds the times i, ..., i + length - 1, so that the dynamics of the series become
    directions of a subspace (singular spectrum analysis).

    >>> lagged([1, 2, 3, 4], 3)
    array([[1., 2., 3.],
           [2., 3., 4.]])
    """
    values = numbers(series)
    if values.ndim not in (1, 2):
        raise InvalidInput(
            f"The series has shape {values.shape}, but one value or one row of values for each "
            f"time is needed: (T,) or (T, q)."
        )
    if not isinstance(length, Integral) or not 1 <= length <= len(values):
        raise InvalidInput(
            f"length={length!r}, but a row holds from 1 to all {len(values)} times of the series."
        )
    rows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(np.moveaxis(rows, -1, 1)).reshape(len(rows), -1)
