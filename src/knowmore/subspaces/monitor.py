"""A monitor of streams: anomalous rows, and changes of where rows come from."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast, final

from sklearn.base import BaseEstimator

from knowmore._base import Savable, number, whole_number
from knowmore.errors import InvalidInput
from knowmore.estimators import fit_copy, fitted, inputs, update_fitted
from knowmore.subspaces.stream import Observation, Reference, Window

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
