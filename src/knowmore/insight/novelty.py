"""What is new to a model: examples of classes that it does not know.

Every method is a function of what the Gaussian process predicts for an input, so its value for an
example that the model holds, had the model never seen it, follows from leave-one-out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg import solve_triangular

from knowmore.answers import Answer
from knowmore.arguments import choice, number
from knowmore.arrays import Array, bounded, derived
from knowmore.insight.asking import GAUSSIAN, asked, inputs
from knowmore.kernels.distances import distances
from knowmore.models import KernelModel
from knowmore.models.novelty import check_several, improbability, loo_prediction, threshold, unseen
from knowmore.tables import index_of

_METHODS = ("variance", "score", "probability", "null_space")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Novelty(Answer):
    """How new each row is to a model.

    values : (m,), larger is newer
    method : how it was measured
    ids : (m,), the index of the table that was asked about, or 0, 1, ...
    model : the frozen model that was asked; later edits of the estimator do not change it
    """

    values: Array
    method: str
    ids: Array
    model: KernelModel

    @derived
    def left_out(self) -> Array:
        """The value of each example held had the model never seen it, (n,), in its order."""
        check_several(self.model)
        return _values(self.model, self.method)

    def threshold(self, q: float = 0.95) -> float:
        """The value that a fraction q of the examples held stay below when left out."""
        hint = "It is the fraction of known examples to be called known."
        return threshold(self.model, self.left_out, number("q", q, "[0, 1]", hint))

    def unknown(self, q: float = 0.95) -> Array:
        """Which rows are above `threshold(q)`, (m,)."""
        return np.asarray(self.values > self.threshold(q))

    def to_pandas(self, q: float = 0.95) -> Any:
        """A pandas DataFrame, one row each, with the columns `threshold(q)` and `unknown(q)`.

        A single example sets no threshold.
        """
        table = super().to_pandas()
        if len(self.model.examples) < 2:
            return table
        return table.assign(threshold=self.threshold(q), unknown=self.unknown(q))

    def _columns(self) -> dict[str, Array]:
        return {"id": self.ids, "value": self.values}

    def _summary(self) -> str:
        return f"{len(self.values)} rows by {self.method}, larger is newer"


def novelty(model: Any, X: Any, method: str = "probability") -> Novelty:
    """How new the rows of X (m, d) are to a fitted GPClassifier; by variance, to a GPRegressor.

    A model of one class recognises what is not of that class.

    Parameters
    ----------
    method : in all of them larger is newer
        "variance": sigma_*^2, noise included. Labels do not matter. For a regressor with several
        targets, the mean of their variances.
        "score": -max_c mu^(c), no class is near.
        "probability": log Phi(-max_c mu^(c) / sigma_*), the chance that not even the best class's
        target is above zero; it combines the two above. The order is that of mu / sigma, one of the
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
    about = "" if choice("method", method, _METHODS) == "variance" else f"method={method!r}"
    gp = asked(model, GAUSSIAN, about, "method='variance'")
    (rows, _), index = inputs(model, X), index_of(X)
    ids = np.arange(len(rows)) if index is None else np.asarray(index.to_flat_index())
    return Novelty(_values(gp, method, rows), method, ids, gp)


def _values(gp: KernelModel, method: str, X: Array | None = None) -> Array:
    """Those of rows X (m, d); or of the examples held, each left out, (n,)."""
    if method == "null_space":
        if X is None:
            return _null_space_left_out(gp)
        A = gp.solved
        return _nearest_class(gp.targets.basis.T @ A, gp.covariance.expansion(X, A))
    if method == "variance":
        variance = unseen(gp)[1] if X is None else gp.variance(X)
        return variance if variance.ndim == 1 else np.asarray(variance.mean(axis=1))
    if method == "score":
        mean = loo_prediction(gp)[0] if X is None else gp.mean(X)
        return np.asarray(-mean.max(axis=1))
    return improbability(*(loo_prediction(gp) if X is None else (gp.mean(X), gp.variance(X))))


# -- the null space ------------------------------------------------------------------------------


def _nearest_class(G: Array, m: Array) -> Array:
    """Distances (u,) to the nearest class in the null space, for class means m (u, M).

    E (n, M) are the indicators of the classes, G = E' K~^-1 E, s = 1'G1, m = k_x' K~^-1 E. The
    squared distance to class c is (m - e_c)' [G^-1 - 11'/s] (m - e_c). With G = LL' the bracket is
    R'R for R = L^-1 - L'11'/s: so x maps to R m, and the columns of R are the classes. A single
    class is compared with the origin of the feature space instead: R = L^-1.
    """
    L = np.linalg.cholesky(G)
    R = solve_triangular(L, np.eye(len(G)), lower=True)
    if len(G) > 1:
        R -= L.sum(axis=0)[:, None] / G.sum()
    return bounded(lambda: distances(m @ R.T, R.T, 1.0).min(axis=1))


def _null_space_left_out(gp: KernelModel) -> Array:
    """Without example i, a' the row of K~^-1 E, v = 1 / (K~^-1)_ii: G - aa'v, and m = e_i - av.

    The first is the block inverse with the terms of row i itself cancelled. A class without
    examples has a row of zeros in it, and is dropped too.
    """
    A, E, (_, variance) = gp.solved, gp.targets.basis, gp.leave_one_out()
    G = E.T @ A
    known = (E.sum(axis=0) - E) > 0
    values = np.empty(len(E))
    for i, (a, e, v, c) in enumerate(zip(A, E, variance, known, strict=True)):
        G_i, m = G - v * np.outer(a, a), e - v * a
        values[i] = _nearest_class(G_i[np.ix_(c, c)], m[None, c])[0]
    return values
