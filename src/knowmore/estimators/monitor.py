"""A monitor of streams: odd rows, and changes of the subspace that rows come from."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self, final

from sklearn.base import BaseEstimator

from knowmore.errors import InvalidInput
from knowmore.estimators.checks import inputs
from knowmore.estimators.shell import exchange, held, learnt
from knowmore.models.watch import Observation, Reference, Watch
from knowmore.models.window import Window


@final
class SubspaceMonitor(BaseEstimator):
    """Watch a stream of rows for anomalies and changes, by merging and splitting eigenspaces.

    `fit` learns the normal state from reference rows in their order. `observe` takes the rows that
    follow. A row is an anomaly if it is far from the reference subspace. A change is a window, the
    latest rows, whose own subspace has turned away from it. Rows may be lagged values of a series:
    see `knowmore.models.lagged`.

    Both thresholds are out of sample: windows of the reference rows are held against the model of
    all the others. On a stream that stays as it was, about `false_alarms` of the rows are called
    anomalies, and of the windows, changes.

    After a change the alarm stays on for as long as the window is unlike the reference: the
    reference never moves by itself, lest it follow a slow drift. To make the new state the normal
    one, `fit` rows of it. An anomaly goes through the window like any row, and one large enough
    may show there as a change.

    Parameters
    ----------
    n_components : how many directions span the subspace; fewer than the window has rows and the
        rows have columns
    window : how many rows a window holds; `fit` needs at least two windows, and a dozen make the
        bound on the drift much tighter
    false_alarms : the part of normal rows, and of normal windows, that may be called odd

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> plane, other = rng.normal(size=(2, 2, 10))
    >>> X = rng.normal(size=(700, 2)) @ plane + 0.1 * rng.normal(size=(700, 10))
    >>> X[650:] = rng.normal(size=(50, 2)) @ other + 0.1 * rng.normal(size=(50, 10))
    >>> X[620] += 1                                           # one row is odd
    >>> monitor = SubspaceMonitor(n_components=2, window=40).fit(X[:600])
    >>> seen = monitor.observe(X[600:640])
    >>> np.flatnonzero(seen.anomalies), bool(seen.changes.any())
    (array([20]), False)
    >>> seen = monitor.observe(X[640:])                       # from 650 on, all are
    >>> int(seen.anomalies.argmax()), int(seen.changes.argmax())
    (10, 12)
    """

    def __init__(
        self, n_components: int = 2, window: int = 50, *, false_alarms: float = 0.01
    ) -> None:
        self.n_components = n_components
        self.window = window
        self.false_alarms = false_alarms

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the normal state from X (n, D), rows in order; the window holds the last of them.

        y is ignored.
        """
        learnt(self, lambda double: double._learn(X))
        return self

    def _learn(self, X: Any) -> None:
        self._check_parameters()
        X = inputs(self, X, reset=True)
        self._check_enough(*X.shape)
        reference = Reference.of(X, self.n_components, self.window, self.false_alarms)
        self.model_ = Watch(reference, Window.of(X, self.window))

    def observe(self, X: Any) -> Observation:
        """Take the next rows of the stream, X (m, D) in order, and say what is odd about them.

        In one go or row by row the answers are the same, to the last digit.
        """
        held(self, "model_")
        X = inputs(self, X, reset=False)
        seen: list[Observation] = []

        def watched(before: Watch) -> Watch:
            after, observation = before.observe(X)
            seen[:] = [observation]
            return after

        exchange(self, "model_", watched)
        return seen[0]

    @property
    def reference_(self) -> Reference:
        """The normal state: its eigenspace and the two thresholds."""
        return self._held.reference

    @property
    def window_(self) -> Window:
        """The latest rows and their eigenspace."""
        return self._held.window

    # -- inside ------------------------------------------------------------------------------

    @property
    def _held(self) -> Watch:
        watch: Watch = held(self, "model_")
        return watch

    def _check_parameters(self) -> None:
        for name, least in (("n_components", 1), ("window", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InvalidInput(f"{name}={value!r}, but it is a whole number, at least {least}.")
        if self.n_components >= self.window:
            raise InvalidInput(
                f"n_components={self.n_components}, but a window of {self.window} rows has at most "
                f"{self.window - 1} directions. Make the window longer or keep fewer components."
            )
        part = self.false_alarms
        if not (isinstance(part, Real) and 0 < float(part) < 1):
            raise InvalidInput(
                f"false_alarms={part!r}, but it is a part of the rows: between 0 and 1."
            )

    def _check_enough(self, n: int, D: int) -> None:
        if n < 2 * self.window:
            raise InvalidInput(
                f"X has {n} samples, but two windows of {self.window} rows are needed, each to be "
                f"held against the other. Give more reference rows or make the window shorter."
            )
        if self.n_components >= D:
            raise InvalidInput(
                f"n_components={self.n_components}, but X has n_features={D}: a subspace of all "
                f"directions leaves nothing outside. Keep fewer components, or lag the series."
            )
