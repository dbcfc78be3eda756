"""A stream of rows: a sliding window, and its comparison with a reference state.

All models come from merges and splits. So do the limits: blocks of the reference rows are split
off in turn, and the model of the others shows what a row or a window looks like that it has not
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, hypot, sqrt
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import stdtrit

from knowmore._base import Answer, Array, Frozen, bounded, column_names, real_numbers, whole_number
from knowmore.errors import InvalidInput, warn
from knowmore.subspaces.eigenspace import Eigenspace
from knowmore.subspaces.scatter import ROUNDINGS, blocks, check_finite
from knowmore.subspaces.spectrum import EPS


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
        return cls(size, rows, Eigenspace.of(rows).with_names(column_names(X)))

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
    values = real_numbers("series", series)
    if values.ndim not in (1, 2):
        raise InvalidInput(f"The series has shape {values.shape}, not (T,) or (T, q).")
    length = whole_number("length", length, 1, len(values))
    check_finite("series", values.reshape(len(values), -1))
    rows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(np.moveaxis(rows, -1, 1)).reshape(len(rows), -1)


# -- the reference state ---------------------------------------------------------------------------


class Measures(NamedTuple):
    """Four measures of rows or windows, or their limits.

    errors : the distance of a row to the subspace; its square is the Q of process monitoring
    distances : the distance of a row to the mean within the subspace, in standard deviations along
        the directions; its square is Hotelling's T2
    drifts : how far the subspace of a window has turned away
    shifts : how far the mean of a window has moved, within the subspace and out of it
    """

    errors: Any
    distances: Any
    drifts: Any
    shifts: Any


@final
@dataclass(frozen=True, eq=False, repr=False)
class Observation(Answer):
    """The measures of m rows of a stream, and the alarms they raise.

    measures : of each row, and of the window that ends with it, (m,) each
    limits : what each measure exceeds in few normal rows or windows
    """

    measures: Measures
    limits: Measures

    @property
    def errors(self) -> Array:
        """The distance of each row to the reference subspace, (m,)."""
        return np.asarray(self.measures.errors)

    @property
    def distances(self) -> Array:
        """The distance of each row to the reference mean within the subspace, (m,)."""
        return np.asarray(self.measures.distances)

    @property
    def drifts(self) -> Array:
        """How far the subspace of the window has turned after each row, (m,), 0 to 1."""
        return np.asarray(self.measures.drifts)

    @property
    def shifts(self) -> Array:
        """How far the mean of the window has moved after each row, (m,), in standard deviations."""
        return np.asarray(self.measures.shifts)

    @property
    def anomalies(self) -> Array:
        """Which rows are anomalies, (m,): far from the subspace, or from the mean within it."""
        far = self.errors > self.limits.errors
        return np.asarray(far | (self.distances > self.limits.distances))

    @property
    def changes(self) -> Array:
        """After which rows the window differs from the reference, (m,): turned, or moved."""
        turned = self.drifts > self.limits.drifts
        return np.asarray(turned | (self.shifts > self.limits.shifts))

    def _columns(self) -> dict[str, Array]:
        return {
            "error": self.errors,
            "distance": self.distances,
            "drift": self.drifts,
            "shift": self.shifts,
            "anomaly": self.anomalies,
            "change": self.changes,
        }

    def _summary(self) -> str:
        def count(found: Array, what: str) -> str:
            first = f", the first at {found.argmax()}" if found.any() else ""
            return f"{found.sum()} of {len(found)} {what}{first}"

        rows = count(self.anomalies, "rows are anomalies")
        return f"{rows}; {count(self.changes, 'windows have changed')}"


@final
@dataclass(frozen=True, eq=False)
class Reference:
    """The normal state of a stream.

    eigenspace : the leading directions of the reference rows
    limits : what each measure exceeds in few normal rows or windows; that of the drift is above one
        if the rows were too few to tell
    """

    eigenspace: Eigenspace
    limits: Measures

    @classmethod
    def of(cls, X: Array, directions: int, window: int, false_alarms: float) -> Reference:
        """Learn the rows X (n, D).

        Of normal rows about `false_alarms` exceed one of their two limits at most, and so of normal
        windows: half of these for each limit.
        """
        each = false_alarms / 2
        # What `rank_bound` takes, in whole windows. Fractions do not overflow.
        windows = max(2, ceil((2 / Fraction(false_alarms) - 1) / window))
        if len(X) < windows * window:
            raise InvalidInput(
                f"X has {len(X)} samples, but fit needs {windows * window}: {windows} windows of "
                f"{window} rows, so many that false_alarms={false_alarms:g} can be learnt. Give "
                f"more reference rows, make the window shorter, or allow more false alarms."
            )
        whole = Eigenspace.of(X)
        _check_balanced(X - whole.mean)
        held_out = _held_out(whole, X, directions, window)
        whole = leading(whole, directions)
        error, distance = (rank_bound(one.ravel(), each) for one in held_out[:2])
        turn, move = (_student_bound(one, each) for one in held_out[2:])
        # What rounding alone explains is no anomaly.
        return cls(whole, Measures(max(error, _rounding(whole)), distance, turn, move))

    def observe(self, window: Window, X: Array) -> tuple[Window, Observation]:
        """The window after the rows X (m, D), and how these compare with the reference.

        The rows pass one by one, so that the pieces in which the stream comes do not matter.
        """
        directions, seen = len(self.eigenspace.variances), np.empty((4, len(X)))
        for i, x in enumerate(X[:, None]):
            window = window.push(x)
            latest = leading(window.eigenspace, directions)
            (error,), (distance,) = distances(self.eigenspace, x)
            seen[:2, i] = error, distance
            seen[2:, i] = drift(latest, self.eigenspace), shift(latest, self.eigenspace)
        return window, Observation(Measures(*seen), self.limits)


def _check_balanced(deviations: Array) -> None:
    """Warn if one row has more than half of the scatter of all rows; deviations from the mean."""
    # Squares of large numbers overflow.
    scaled = deviations / (np.abs(deviations).max() or 1.0)
    squares = np.square(scaled).sum(axis=1)
    row = int(squares.argmax())
    if squares[row] > squares.sum() / 2:
        warn(
            f"Row {row} of X is farther from the mean than all other rows together (sums of "
            f"squares), so the limits are wide, and changes may not be seen. If the row is not "
            f"normal, leave it out."
        )


def distances(reference: Eigenspace, X: Array) -> tuple[Array, Array]:
    """The distances of the rows of X (m, D) to the subspace, and to the mean within it, (m,) each.

    With z the coordinates of a row and its residual e, these are |e| and, in standard deviations,
    sqrt(sum z_i^2 / lambda_i): the square roots of Q and of Hotelling's T2 (J. E. Jackson and
    G. S. Mudholkar, Control procedures for residuals associated with principal component analysis,
    1979).
    """
    Z = reference.project(X) / np.sqrt(reference.variances)
    return reference.distances(X), bounded(lambda: np.asarray(np.linalg.norm(Z, axis=1)))


def shift(latest: Eigenspace, reference: Eigenspace) -> float:
    """The distance between the means of the latest rows and the reference, in deviations.

    Standard deviations: within the subspace of its directions, else of a dropped direction.
    """
    (beyond,), (within,) = distances(reference, latest.mean[None])
    unit = max(sqrt(reference.noise), _rounding(reference)) or 1.0
    return hypot(within, beyond / unit)


def _rounding(reference: Eigenspace) -> float:
    """How far rounding alone may take a row from the subspace."""
    off = ROUNDINGS * reference.rounding.scatters.max() / reference.n_samples
    return hypot(sqrt(off), ROUNDINGS * EPS * float(np.linalg.norm(reference.mean)))


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


def _held_out(whole: Eigenspace, X: Array, directions: int, window: int) -> Measures:
    """Blocks of `window` successive rows of X (n, D), each under the model of all other rows.

    The measures of the rows, (m, window), and of the m blocks, (m,). A block is just like a window
    that the model has not seen. Its rows are held out together because rows close in time are
    alike: one left in the model would give the others away. The first n mod window rows are in no
    block.
    """
    found = []
    for begin in range(len(X) % window, len(X), window):
        block = X[begin : begin + window]
        rest = whole.remove_rows(block, warn=False)
        if rest.lost:
            rest = Eigenspace.of(np.delete(X, np.s_[begin : begin + window], axis=0))
        others, latest = leading(rest, directions), leading(Eigenspace.of(block), directions)
        found.append((*distances(others, block), drift(latest, others), shift(latest, others)))
    return Measures(*map(np.array, zip(*found, strict=True)))


def rank_bound(values: Array, exceeded: float) -> float:
    """The bound that one more value like these (n,) exceeds with at most this probability.

    Each of n + 1 values is as likely as any other to be the last. So it is the k-th smallest,
    k = (n + 1)(1 - exceeded) rounded up, whatever the distribution. That takes at least
    1 / exceeded - 1 values.
    """
    k = int(np.ceil((len(values) + 1) * (1 - exceeded) * (1 - EPS)))
    return float(np.sort(values)[k - 1])


def _student_bound(values: Array, exceeded: float) -> float:
    """The bound for positive values (m,) too few to be ranked: the fewer, the wider.

    Their logarithms are taken as normal with unknown mean and variance (Student's t).
    """
    m, logs = len(values), np.log(np.maximum(values, np.sqrt(EPS)))
    spread = logs.std(ddof=1) * np.sqrt(1 + 1 / m)
    return float(np.exp(logs.mean() + stdtrit(m - 1, 1 - exceeded) * spread))
