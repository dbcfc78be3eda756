"""What is new to a model: examples of classes that it does not know.

Every method is a function of what the Gaussian process predicts for an input, so its value for an
example that the model holds, had the model never seen it, follows from leave-one-out. A linear
model holds none: it is given rows that it has learnt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg import solve_triangular

from knowmore.answers import Answer
from knowmore.arguments import choice, number
from knowmore.arrays import Array, bounded, derived
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput
from knowmore.insight.asking import (
    WITH_VARIANCE,
    asked,
    count_of,
    inputs,
    left_out,
    needs_rows,
    reference_rows,
)
from knowmore.kernels.distances import distances
from knowmore.models import KernelModel, LinearModel
from knowmore.models.forest import Forest
from knowmore.models.novelty import (
    Unseen,
    check_several,
    improbability,
    separates,
    threshold,
    unseen,
)
from knowmore.tables import index_of

_METHODS = ("variance", "score", "probability", "null_space")
_HOW = "Give rows that it has learnt: novelty(model, X, reference=(X_learnt, y_learnt))."


@final
@dataclass(frozen=True, eq=False, repr=False)
class Novelty(Answer):
    """How new each row is to a model.

    values : (m,), larger is newer
    method : how it was measured
    ids : (m,), the index of the table that was asked about, or 0, 1, ...
    model : the frozen model that was asked; later edits of the estimator do not change it
    reference : for a linear model, what the others predict for the reference rows, if given
    """

    values: Array
    method: str
    ids: Array
    model: KernelModel | LinearModel | Forest
    reference: Unseen | None = None

    @derived
    def left_out(self) -> Array:
        """The value of each example held, or reference row, had the model never seen it, (n,)."""
        left = self._left
        if self.method == "null_space" and isinstance(self.model, KernelModel):
            return _null_space_left_out(self.model)
        return _values(self.method, left.without_classes, lambda: left.variance)

    @cached_property
    def _left(self) -> Unseen:
        """What the others predict for these."""
        if not isinstance(self.model, LinearModel):
            check_several(count_of(self.model))
            return unseen(self.model)
        if self.reference is None:
            raise needs_rows(_HOW)
        return self.reference

    def threshold(self, q: float = 0.95) -> float:
        """The value that a fraction q of the examples held stay below when left out.

        A linear model holds none: there it is a fraction of the rows given as `reference`.
        """
        hint = "It is the fraction of known examples to be called known."
        return threshold(self.left_out, self._left.silent, number("q", q, "[0, 1]", hint))

    def separates(self, q: float = 0.95) -> bool:
        """Whether `threshold(q)` tells new rows from known ones; it warns if not."""
        return separates(self.left_out, self._left.silent, q)

    def unknown(self, q: float = 0.95) -> Array:
        """Which rows are above `threshold(q)`, (m,)."""
        return np.asarray(self.values > self.threshold(q))

    def to_pandas(self, q: float = 0.95) -> Any:
        """A pandas DataFrame, one row each, with the columns `threshold(q)` and `unknown(q)`.

        A single example, or a linear model without a reference, sets no threshold.
        """
        table, model = super().to_pandas(), self.model
        judged = self.reference if isinstance(model, LinearModel) else count_of(model) > 1
        if not judged:
            return table
        return table.assign(threshold=self.threshold(q), unknown=self.unknown(q))

    def _columns(self) -> dict[str, Array]:
        return {"id": self.ids, "value": self.values}

    def _summary(self) -> str:
        return f"{len(self.values)} rows by {self.method}, larger is newer"


def novelty(model: Any, X: Any, method: str = "probability", *, reference: Any = None) -> Novelty:
    """How new the rows of X (m, d) are to a fitted GPClassifier; by variance, to a GPRegressor.

    And to linear models and forests, but not by null space. A model of one class recognises what is
    not of that class.

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
        I: theirs if there is no noise. It takes one Gaussian process on all examples.
    reference : only for a linear model, which holds no rows: (X, y) or (X, y, sample_weight), rows
        that it has learnt, all or some. Left out in turn, they set the thresholds

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
    gp = asked(model, WITH_VARIANCE, about, "method='variance'")
    given = reference_rows(reference)
    left = left_out(model, gp, _HOW, *given) if given else None
    (rows, _), index = inputs(model, X), index_of(X)
    ids = np.arange(rows.shape[0]) if index is None else np.asarray(index.to_flat_index())
    if method != "null_space":
        values = _values(method, lambda: gp.mean(rows), lambda: gp.variance(rows))
    elif isinstance(gp, LinearModel):
        raise InvalidInput(
            "method='null_space' is about examples, and a linear model holds none. Ask for 'score'."
        )
    elif isinstance(gp, Forest):
        raise InvalidInput(
            "method='null_space' is about all classes in one Gaussian process, and a leaf of a "
            "forest may hold one class alone. Ask for 'probability'."
        )
    else:
        A = gp.solved
        values = _nearest_class(gp.targets.basis.T @ A, gp.covariance.expansion(rows, A))
    return Novelty(values, method, ids, gp, left)


def _values(method: str, mean: Callable[[], Array], variance: Callable[[], Array]) -> Array:
    """Those that follow from means (m, M) and variances, (m,) or (m, M); (m,)."""
    if method == "variance":
        found = variance()
        return found if found.ndim == 1 else np.asarray(found.mean(axis=1))
    if method == "score":
        return np.asarray(-mean().max(axis=1))
    return improbability(mean(), variance())


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
