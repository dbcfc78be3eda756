"""A stream of rows: a sliding window, and its comparison with a reference state.

All models come from merges and splits. So do the thresholds: blocks of the reference rows are split
off in turn, and the model of the others shows what a row or a window looks like that it has not
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import stdtrit

from knowmore.arguments import whole_number
from knowmore.arrays import Array, Frozen
from knowmore.columns import names_of
from knowmore.errors import InvalidInput
from knowmore.linalg import Eigenspace
from knowmore.linalg.scatter import ROUNDINGS, blocks, numbers
from knowmore.linalg.spectrum import EPS


@final
@dataclass(frozen=True, eq=False, repr=False)
class Window(Frozen):
    """The latest rows of a stream, at most `size`, and the eigenspace of just these rows.

    size : how many rows it holds before the oldest fall out
    rows : (n, D), oldest first, n <= size
    eigenspace : the model of the rows, nothing dropped. New rows are merged in and old ones split
        off; where rounding errors would show, it is built from scratch.

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
        size = whole_number("size", size, 2)
        rows = np.concatenate([*blocks(X)])[-size:].copy()
        return cls(size, rows, Eigenspace.of(rows).with_names(names_of(X)))

    def push(self, X: Any) -> Window:
        """The window after the rows of X (m, D) came in and the oldest fell out."""
        model = grown = self.eigenspace.add_rows(X)
        rows = np.concatenate([self.rows, *blocks(X)])
        dropped, rows = rows[: -self.size], rows[-self.size :]
        if 0 < len(dropped) < len(self.rows) and _is_accurate(grown):
            model = grown.remove_rows(dropped, warn=False)
        if model.n_samples != len(rows) or not _is_accurate(model):
            model = Eigenspace.of(rows).with_names(grown.names)
        return Window(self.size, rows, model)

    def __repr__(self) -> str:
        n, D = self.rows.shape
        return f"Window({n} of {self.size} rows of {D})"


def _is_accurate(eigenspace: Eigenspace) -> bool:
    """Whether half the digits of the variance along each direction the rows may have are right.

    A split adds a rounding error of what is removed. An outlier that passes would spoil or wipe out
    small variances for good; the rows are there to build the model from scratch.
    """
    N, variances = eigenspace.n_samples, eigenspace.variances
    full = len(variances) == min(N - 1, len(eigenspace.mean))
    return full and bool((eigenspace.variance_errors() <= np.sqrt(EPS) * variances).all())


def lagged(series: Any, length: int) -> Array:
    """A series (T,) or (T, q) as rows of `length` successive values, (T - length + 1, length q).

    Row i holds the times i, ..., i + length - 1, so that the dynamics of the series become
    directions of a subspace (singular spectrum analysis).

    >>> lagged([1, 2, 3, 4], 3)
    array([[1., 2., 3.],
           [2., 3., 4.]])
    """
    values = numbers(series)
    if values.ndim not in (1, 2):
        raise InvalidInput(f"The series has shape {values.shape}, not (T,) or (T, q).")
    length = whole_number("length", length, 1, len(values))
    rows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(np.moveaxis(rows, -1, 1)).reshape(len(rows), -1)


# -- the reference state ---------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Observation:
    """What m rows of a stream looked like when they came.

    errors : the distance of each row to the reference subspace, (m,)
    drifts : the drift of the window that ends with the row from the reference, (m,)
    error_threshold, drift_threshold : their limits
    """

    errors: Array
    drifts: Array
    error_threshold: float
    drift_threshold: float

    @property
    def anomalies(self) -> Array:
        """Which rows are anomalies, (m,)."""
        return np.asarray(self.errors > self.error_threshold)

    @property
    def changes(self) -> Array:
        """After which rows the window differs from the reference, (m,)."""
        return np.asarray(self.drifts > self.drift_threshold)


@final
@dataclass(frozen=True, eq=False)
class Reference:
    """The normal state of a stream.

    eigenspace : the leading directions of the reference rows
    error_threshold : for the distance of a row to the subspace
    drift_threshold : for the drift of a window; above one if the rows were too few to tell
    """

    eigenspace: Eigenspace
    error_threshold: float
    drift_threshold: float

    @classmethod
    def of(cls, X: Array, directions: int, window: int, false_alarms: float) -> Reference:
        """Learn the rows X (n, D), at least two windows of them."""
        whole = Eigenspace.of(X)
        errors, drifts = _held_out(whole, X, directions, window)
        whole = leading(whole, directions)
        N, rounding = whole.n_samples, whole.rounding
        # How far rounding alone may take a row from the subspace: that is no anomaly.
        scatter, sums = rounding.scatters.max(), np.linalg.norm(rounding.sums)
        least = float(np.hypot(np.sqrt(ROUNDINGS * scatter / N), ROUNDINGS * sums / N))
        error = max(rank_bound(errors.ravel(), false_alarms), least)
        return cls(whole, error, _student_bound(drifts, false_alarms))

    def observe(self, window: Window, X: Array) -> tuple[Window, Observation]:
        """The window after the rows X (m, D), and how these compare with the reference.

        The rows pass one by one, so that the pieces in which the stream comes do not matter.
        """
        directions = len(self.eigenspace.variances)
        errors, drifts = np.empty(len(X)), np.empty(len(X))
        for i, x in enumerate(X[:, None]):
            window = window.push(x)
            errors[i] = self.eigenspace.distances(x)[0]
            drifts[i] = drift(leading(window.eigenspace, directions), self.eigenspace)
        return window, Observation(errors, drifts, self.error_threshold, self.drift_threshold)


def leading(eigenspace: Eigenspace, directions: int) -> Eigenspace:
    """The model with at most this many leading directions.

    A variance of a few rounding errors may consist of these alone, and does not count.
    """
    real = eigenspace.variances > ROUNDINGS * eigenspace.variance_errors()
    return eigenspace.truncate(min(directions, int(real.sum())))


def drift(one: Eigenspace, other: Eigenspace) -> float:
    """The root mean square sine of the principal angles between two subspaces, 0 to 1.

    With k directions each it is |P_1' P_1 - P_2' P_2|_F / sqrt(2 k), a metric. The largest angle
    alone would jump to a right one whenever the last direction kept and the first one dropped have
    nearly the same variance and swap, which means nothing; in the mean that is one part of k. A
    direction without a partner in the other subspace is at a right angle to it.
    """
    k = max(len(one.variances), len(other.variances))
    sines = np.sin(one.angles(other))
    return float(np.sqrt((np.square(sines).sum() + k - len(sines)) / max(k, 1)))


def _held_out(whole: Eigenspace, X: Array, directions: int, window: int) -> tuple[Array, Array]:
    """Blocks of `window` successive rows of X (n, D), each under the model of all other rows.

    The distance of each row to the others' subspace, (m, window), and the drift of each block's own
    subspace from it, (m,). A block is just like a window that the model has not seen. Its rows are
    held out together because rows close in time are alike: one left in the model would give the
    others away. The first n mod window rows are in no block.
    """
    errors, drifts = [], []
    for begin in range(len(X) % window, len(X), window):
        block = X[begin : begin + window]
        rest = whole.remove_rows(block, warn=False)
        if rest.lost:
            rest = Eigenspace.of(np.delete(X, np.s_[begin : begin + window], axis=0))
        others = leading(rest, directions)
        errors.append(others.distances(block))
        drifts.append(drift(leading(Eigenspace.of(block), directions), others))
    return np.array(errors), np.array(drifts)


def rank_bound(values: Array, exceeded: float) -> float:
    """What one more value like these (n,) exceeds with probability `exceeded` at most.

    Each of n + 1 values is as likely as any other to be the last. So it is the k-th smallest,
    k = (n + 1)(1 - exceeded) rounded up, whatever the distribution.
    """
    k = int(np.ceil((len(values) + 1) * (1 - exceeded) * (1 - EPS)))
    if k > len(values):
        raise InvalidInput(
            f"false_alarms={exceeded:g} cannot be learnt from {len(values)} rows in whole windows. "
            f"Give at least {1 / exceeded - 1:.0f} rows, or allow more false alarms."
        )
    return float(np.sort(values)[k - 1])


def _student_bound(values: Array, exceeded: float) -> float:
    """The same for positive values (m,) too few to be ranked: the fewer, the wider the bound.

    Their logarithms are taken as normal with unknown mean and variance (Student's t).
    """
    m, logs = len(values), np.log(np.maximum(values, np.sqrt(EPS)))
    spread = logs.std(ddof=1) * np.sqrt(1 + 1 / m)
    return float(np.exp(logs.mean() + stdtrit(m - 1, 1 - exceeded) * spread))
