"""A monitor of streams: anomalous rows, and changes of where rows come from.

A sliding window of the latest rows is compared with a reference state. All models come from merges
and splits. So do the limits: blocks of the reference rows are split off in turn, and the model of
the others shows what a row or a window looks like that it has not seen.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from math import ceil, hypot, sqrt
from typing import Any, NamedTuple, Self, cast, final

import numpy as np
from scipy.special import stdtrit
from sklearn.base import BaseEstimator

from knowmore._base import (
    Array,
    Frozen,
    Savable,
    TableAnswer,
    bounded,
    column_names,
    number,
    real_numbers,
    whole_number,
)
from knowmore.errors import InvalidInput, warn
from knowmore.estimators import fit_copy, fitted, inputs, update_fitted
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
class Observation(TableAnswer):
    """The measures of m rows of a stream, and the alarms they raise.

    errors : the distance of each row to the reference subspace, (m,)
    distances : the distance of each row to the reference mean within the subspace, (m,)
    drifts : how far the subspace of the window has turned after each row, (m,), 0 to 1
    shifts : how far the mean of the window has moved after each row, (m,), in standard deviations
    limits : what each measure exceeds in few normal rows or windows
    """

    errors: Array
    distances: Array
    drifts: Array
    shifts: Array
    limits: Measures

    @property
    def measures(self) -> Measures:
        """The four measures of each row, and of the window that ends with it, (m,) each."""
        return Measures(self.errors, self.distances, self.drifts, self.shifts)

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
        return window, Observation(*Measures(*seen), self.limits)


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


# -- the estimator --------------------------------------------------------------------------------


_Model = tuple[Reference, Window]


@final
@dataclass(eq=False, repr=False)
class SubspaceMonitor(Savable, BaseEstimator):
    """Watch a stream of rows for anomalies and changes, by merging and splitting eigenspaces.

    `fit` learns the normal state from reference rows in their order: their mean, and the subspace
    of their leading directions. `observe` takes the rows that follow. A row is an anomaly if it is
    far from the subspace (`errors`, the root of Q), or far from the mean within the subspace
    (`distances`, Hotelling's T). A change is a window, the latest rows, whose own subspace has
    turned away (`drifts`), or whose mean has moved, within the subspace or out of it (`shifts`).
    A change of the spread alone shows in the anomalies, and in the changes only as far as
    directions turn. Rows may be lagged values of a series: see `knowmore.subspaces.lagged`.

    The four limits are out of sample: windows of the reference rows are compared with the model of
    all the others. On a stream that does not change, about `false_alarms` of the rows are reported
    as anomalies, and of the windows as changes: half of these by each measure.

    After a change the alarm stays on for as long as the window differs from the reference: the
    reference never moves by itself, or it would follow a slow drift. To make the new state the
    normal one, `fit` rows of it. An anomaly passes through the window like any row. A large one
    moves the mean of the window: it is reported as a change until it leaves.

    The reference rows must be normal. One absurd row among them, or a column that only grows, such
    as the time, makes the limits so wide that changes are not seen. `fit` warns of one row that has
    more than half of the scatter. Leave out such columns, or take differences.

    Parameters
    ----------
    n_components : how many directions span the subspace; fewer than the window has rows and the
        rows have columns
    window : how many rows a window holds; `fit` needs at least two windows, and a dozen make the
        limits of windows much tighter
    false_alarms : the fraction of normal rows, and of normal windows, that may raise an alarm;
        `fit` needs 2 / false_alarms - 1 rows in whole windows, at the defaults 200

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> plane, other = rng.normal(size=(2, 2, 10))
    >>> X = rng.normal(size=(700, 2)) @ plane + 0.1 * rng.normal(size=(700, 10))
    >>> X[650:] = rng.normal(size=(50, 2)) @ other + 0.1 * rng.normal(size=(50, 10))
    >>> X[620] += 1                                           # one anomaly
    >>> monitor = SubspaceMonitor(n_components=2, window=40).fit(X[:600])
    >>> seen = monitor.observe(X[600:640])
    >>> np.flatnonzero(seen.anomalies), bool(seen.changes.any())
    (array([20]), False)
    >>> seen = monitor.observe(X[640:])                       # from 650 on, all are
    >>> int(seen.anomalies.argmax()), int(seen.changes.argmax())
    (10, 10)
    >>> moved = X[:50] + 10 * plane[0]                        # within the plane
    >>> seen = monitor.fit(X[:600]).observe(moved)
    >>> bool(seen.anomalies.all()), int(seen.changes.argmax())
    (True, 3)
    """

    n_components: int = 2
    window: int = 50
    _: KW_ONLY
    false_alarms: float = 0.01

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the normal state from X (n, D), rows in order; the window holds the last of them.

        y is ignored.
        """
        fit_copy(self, lambda copy: copy._learn(X))
        return self

    def _learn(self, X: Any) -> None:
        window = whole_number("window", self.window, 2)
        components = whole_number("n_components", self.n_components, 1)
        false_alarms = number("false_alarms", self.false_alarms, "(0, 1)")
        X = inputs(self, X, reset=True)
        D = X.shape[1]
        if components >= min(window, D):
            most = f"less than n_features={D} and window={window}"
            remedy = "Keep fewer components, make the window longer, or lag the series."
            raise InvalidInput(f"n_components={components} must be {most}. {remedy}")
        reference = Reference.of(X, components, window, false_alarms)
        self.model_: _Model = reference, Window.of(X, window)

    def observe(self, X: Any) -> Observation:
        """Take the next rows of the stream, X (m, D) in order, and compare them with the reference.

        In one go or row by row the answers are the same, to the last digit.
        """
        fitted(self, "model_")
        X = inputs(self, X, reset=False)
        seen: list[Observation] = []

        def observed(model: _Model) -> _Model:
            reference, window = model
            window, observation = reference.observe(window, X)
            seen[:] = [observation]
            return reference, window

        update_fitted(self, "model_", observed)
        return seen[0]

    @property
    def reference_(self) -> Reference:
        """The normal state: its eigenspace and the limits."""
        return cast("Reference", fitted(self, "model_")[0])

    @property
    def window_(self) -> Window:
        """The latest rows and their eigenspace."""
        return cast("Window", fitted(self, "model_")[1])
