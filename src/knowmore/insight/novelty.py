"""What is new to a model: examples of classes that it does not know.

Every method is a function of what the Gaussian process says of an input, so that its value for an
example that the model holds, had it never seen it, follows from leave-one-out in closed form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr

from knowmore.answers import Answer
from knowmore.arguments import choice
from knowmore.arrays import Array, bounded, read_only
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.insight.asking import asked, inputs, of_classes, row_names, unseen
from knowmore.kernels.distances import distances
from knowmore.models import GP
from knowmore.models.probabilities import standardised

# Values that differ by so much of the largest are the same.
_ROUNDINGS = 64 * float(np.finfo(float).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Novelty(Answer):
    """How new each row is to a model.

    values : (m,), larger is newer
    method : how it was told
    ids : (m,), the index of the table that was asked about, or 0, 1, ...
    model : the frozen model that was asked; what happens to the estimator later is nothing to it
    """

    values: Array
    method: str
    ids: Array
    model: GP

    @cached_property
    def left_out(self) -> Array:
        """The value of each example held had the model never seen it, (n,), in its order."""
        n = len(self.model.examples)
        if n < 2:
            raise InvalidInput(
                "The model holds one example: without it there is nothing left to be new to. "
                "Add more examples before asking for a threshold."
            )
        return read_only(_METHODS[self.method].left_out(self.model))

    def threshold(self, q: float = 0.95) -> float:
        """What this part q of the examples held stay below when left out: known things do."""
        if isinstance(q, bool) or not isinstance(q, Real) or not 0 <= float(q) <= 1:
            raise InvalidInput(
                f"q={q!r}, but it is the part of known examples to be called known: 0 to 1."
            )
        self._check_heard(float(q))
        return float(np.quantile(self.left_out, float(q)))

    def _check_heard(self, q: float) -> None:
        """Warn if more examples are as new as can be than a threshold would leave above it."""
        left, n = self.left_out, len(self.left_out)
        silent = int(self.model.verdicts().silent.sum())
        top = left.max() - _ROUNDINGS * abs(left).max()
        if silent > (1 - q) * n and np.quantile(left, q) >= top:
            warnings.warn(
                f"Of {silent} of {n} examples the others say nothing: left out, they are as new as "
                f"anything can be, and no threshold tells them from that. The kernel is too narrow "
                f"for these features: widen it, tune it, or scale the features.",
                KnowmoreWarning,
                stacklevel=3,
            )

    def unknown(self, q: float = 0.95) -> Array:
        """Which rows are newer than this part q of the examples held is when left out, (m,)."""
        return np.asarray(self.values > self.threshold(q))

    def to_pandas(self, q: float = 0.95) -> Any:
        """A pandas DataFrame, one row each, with `threshold(q)` and what it says: `unknown(q)`.

        One example alone sets no threshold.
        """
        if len(self.model.examples) < 2:
            return super().to_pandas()
        told = {"threshold": self.threshold(q), "unknown": self.unknown(q)}
        return super().to_pandas().assign(**told)

    def _columns(self) -> dict[str, Array]:
        return {"id": self.ids, "value": self.values}

    def _summary(self) -> str:
        return f"{len(self.values)} rows by {self.method}, larger is newer"


def novelty(model: Any, X: Any, method: str = "probability") -> Novelty:
    """How new the rows of X (m, d) are to a fitted GPClassifier; by variance, to a GPRegressor.

    A model of one class tells what is not of that class.

    Parameters
    ----------
    method : all grow with what is new
        "variance": sigma_*^2, the noise included. No label enters. Of a regressor with several
        targets, the mean of their variances.
        "score": -max_c mu^(c), no class is near.
        "probability": log Phi(-max_c mu^(c) / sigma_*), the chance that not even the best class's
        target is above zero; both of the above count. The order is that of mu / sigma, one of the
        scores of Kemmler, Rodner and Denzler for one class.
        "null_space": the distance to the nearest class in the kernel null Foley-Sammon transform
        of Bodesheim et al., where each class held is one point. It is the transform of K + sigma^2
        I: theirs if there is no noise.

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]], list("aaabbb"))
    >>> X = [[0.2], [4.8], [30.0]]
    >>> found = novelty(clf, X)
    >>> found.unknown(0.95), clf.predict(X, unknown="?", rate=0.05)
    (array([False, False,  True]), array(['a', 'b', '?'], dtype='<U1'))
    """
    gp: GP = asked(model, GP)
    choice("method", method, _METHODS)
    if method != "variance":
        of_classes(model, f"method={method!r}", "method='variance'")
    rows = inputs(model, X)
    return Novelty(_METHODS[method].at(gp, rows), method, row_names(X, len(rows)), gp)


def unknown_rows(gp: GP, X: Array, rate: Any) -> Array:
    """Which rows of X (m, d) belong to no class that is held, (m,).

    `rate` of the examples held would be called so too were they left out.
    """
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= 1:
        raise InvalidInput(
            f"rate={rate!r}, but it is the part of known examples that may be called unknown: 0 "
            f"to 1."
        )
    method = "probability"
    found = Novelty(_METHODS[method].at(gp, X), method, np.arange(len(X)), gp)
    return found.unknown(1 - float(rate))


# -- the methods ---------------------------------------------------------------------------------


class _Method(NamedTuple):
    """Values for rows X (m, d), and for the examples held when each is left out, (n,)."""

    at: Callable[[GP, Array], Array]
    left_out: Callable[[GP], Array]


def _of_one(variance: Array) -> Array:
    """Variances (m,), or (m, M) if the targets have units, in the mean of all targets, (m,)."""
    return variance if variance.ndim == 1 else np.asarray(variance.mean(axis=1))


def _low(mean: Array) -> Array:
    """How low the best class is; mean (m, M)."""
    return np.asarray(-mean.max(axis=1))


def _improbable(mean: Array, variance: Array) -> Array:
    """log Phi(-max_c mu^(c) / sigma); as a logarithm it does not vanish where noise is small."""
    best = mean.max(axis=1, keepdims=True)
    return np.asarray(log_ndtr(-standardised(best, variance))[:, 0])


def _left_out(model: GP) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,); who is alone in its class takes the class with it."""
    mean, variance = unseen(model)
    E = model.targets.basis
    alone = E * (E.sum(axis=0) == 1)
    return np.where(alone == 1, -np.inf, mean), variance


# -- the null space ------------------------------------------------------------------------------


def nearest_class(G: Array, m: Array) -> Array:
    """Distances (u,) to the nearest class in the null space, for class means m (u, M).

    E (n, M) are the indicators of the classes, G = E' K~^-1 E, s = 1'G1, m = k_x' K~^-1 E. The
    square of the distance to class c is (m - e_c)' [G^-1 - 11'/s] (m - e_c). With G = LL' the
    bracket is R'R for R = L^-1 - L'11'/s: so R m is where x is mapped to, and the columns of R are
    the classes. A single class is told from the origin of the feature space instead: R = L^-1.
    """
    L = np.linalg.cholesky(G)
    R = solve_triangular(L, np.eye(len(G)), lower=True)
    if len(G) > 1:
        R -= L.sum(axis=0)[:, None] / G.sum()
    return bounded(lambda: distances(m @ R.T, R.T, 1.0).min(axis=1))


def _null_space(model: GP, X: Array) -> Array:
    A = model.solved
    return nearest_class(model.targets.basis.T @ A, model.covariance.expansion(X, A))


def _null_space_left_out(model: GP) -> Array:
    """Without example i, a' the row of K~^-1 E, v = 1 / (K~^-1)_ii: G - aa'v, and m = e_i - av.

    The first is the block inverse with the terms of the row i itself cancelled. A class without
    examples has a row of zeros in it, and is left out too.
    """
    A, E, (_, variance) = model.solved, model.targets.basis, model.leave_one_out()
    G = E.T @ A
    known = (E.sum(axis=0) - E) > 0
    values = np.empty(len(E))
    for i, (a, e, v, c) in enumerate(zip(A, E, variance, known, strict=True)):
        G_i, m = G - v * np.outer(a, a), e - v * a
        values[i] = nearest_class(G_i[np.ix_(c, c)], m[None, c])[0]
    return values


_METHODS = {
    "variance": _Method(
        lambda model, X: _of_one(model.variance(X)),
        lambda model: _of_one(unseen(model)[1]),
    ),
    "score": _Method(
        lambda model, X: _low(model.mean(X)),
        lambda model: _low(_left_out(model)[0]),
    ),
    "probability": _Method(
        lambda model, X: _improbable(model.mean(X), model.variance(X)),
        lambda model: _improbable(*_left_out(model)),
    ),
    "null_space": _Method(_null_space, _null_space_left_out),
}
