"""Novelty: rows of classes that a model does not know.

Every method is a function of what the Gaussian process predicts for an input, so its value for an
example that the model holds, had the model never seen it, follows from leave-one-out. A linear
model holds none: it is given rows that it has learnt.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore._base import Array, TableAnswer, cached_property, choice, derived, index_of, number
from knowmore.errors import InvalidInput
from knowmore.insight.asking import (
    WITH_VARIANCE,
    asked,
    count_of,
    groups_of,
    inputs,
    kept_rows,
    last_step,
    left_out,
    reference_rows,
)
from knowmore.models import (
    Unseen,
    check_several,
    distance_left_out,
    nearest,
    newness_left_out,
    newness_of,
    separates,
    threshold,
    values_by,
)

_METHODS = ("combined", "mahalanobis", "probability", "variance", "null_space")
_HOW = "Give rows that it has learnt: novelty(model, X, reference=(X_learnt, y_learnt))."


@final
@dataclass(frozen=True, eq=False, repr=False)
class Novelty(TableAnswer):
    """How new each row is to a model.

    values : (m,), larger is newer
    method : how it was measured
    ids : (m,), the index of the table that was asked about, or 0, 1, ...
    model : the frozen model that was asked; later edits of the estimator do not change it
    reference : for a linear model, what the others predict for the reference rows, if given
    estimator : a copy of the estimator that was asked
    groups : (n,), of the examples, if whole groups are left out
    """

    values: Array
    method: str
    ids: Array
    model: Any
    reference: Unseen | None = None
    estimator: Any = None
    groups: Array | None = None

    @derived
    def left_out(self) -> Array:
        """The value of each example held, or reference row, had the model never seen it, (n,).

        With groups, had it never seen any of the group.
        """
        left, model, groups = self._left, self.model, self.groups
        if self.method == "combined":
            return newness_left_out(model, groups)

        nothing = np.zeros(len(left.ids), dtype=bool)
        alone = model.left_out.unrelated(groups) if model.keeps_rows else nothing
        return values_by(
            self.method,
            left.without_classes,
            lambda: left.variance,
            lambda: np.asarray(
                distance_left_out(model, groups) if model.has_gram else left.distance
            ),
            alone,
            lambda: model.largest_variance,
        )

    @cached_property
    def _left(self) -> Unseen:
        """Leave-one-out predictions for the examples held, or for the reference rows."""
        if self.reference is not None:
            return self.reference
        check_several(count_of(self.model))
        return left_out(self.estimator, self.model, _HOW, groups=self.groups)

    def threshold(self, q: float = 0.95) -> float:
        """The value that a fraction q of the examples held stay below when left out.

        A linear model holds none: there it is a fraction of the rows given as `reference`.
        """
        return threshold(self.left_out, self._left.silent, _fraction(q))

    def separates(self, q: float = 0.95) -> bool:
        """Whether `threshold(q)` tells new rows from known ones; it warns if not."""
        return separates(self.left_out, self._left.silent, _fraction(q))

    def unknown(self, q: float = 0.95) -> Array:
        """Which rows are above `threshold(q)`, (m,)."""
        return np.asarray(self.values > self.threshold(q))

    def to_pandas(self, q: float = 0.95) -> Any:
        """A pandas DataFrame, one row each, with the columns `threshold(q)` and `unknown(q)`.

        A single example, or a linear model without a reference, sets no threshold.
        """
        table = super().to_pandas()
        several = count_of(self.model) > 1 and self.estimator.editable_.keeps_rows
        if self.reference is None and not several:
            return table
        return table.assign(threshold=self.threshold(q), unknown=self.unknown(q))

    def _columns(self) -> dict[str, Array]:
        return {"id": self.ids, "value": self.values}

    def _summary(self) -> str:
        return f"{len(self.values)} rows by {self.method}, larger is newer"


def novelty(
    model: Any, X: Any, method: str | None = None, *, reference: Any = None, groups: Any = None
) -> Novelty:
    """How new the rows of X (m, d) are to a fitted GPClassifier; by variance, to a GPRegressor.

    And to linear models and forests, by the methods that they have. A model of one class recognises
    what is not of that class. A row that has nothing in common with any that was learnt is new, by
    all methods but "null_space", unless rows like it were learnt: a row of zeros, for example a
    text without one known word, in a table of at least four columns.

    Parameters
    ----------
    method : in all of them larger is newer; None is the best that the model has
        "combined": the default of a GPClassifier, and only for it. The distance of "null_space",
        less |m|, plus sigma_*, each in units of its spread over the examples left out; m (M,) are
        the scores for targets of 1 and 0. What sigma_* counts for is Fisher's discriminant between
        the examples left out alone and those left out with their whole class, so each class plays
        the unknown one in turn. The weights stay those of all examples when one is left out.
        "mahalanobis": the default of a LinearGPClassifier. The squared distance of "null_space",
        plus sigma_*^2 / 32. A distance to the nearest class mean, in the spread within classes,
        less most of that to the mean of all (Ren et al. 2021).
        "probability": the default of a ForestGPClassifier. log Phi(-max_c mu^(c) / sigma_*), the
        chance that not even the best class's target is above zero. The order is that of mu / sigma,
        one of the scores of Kemmler, Rodner and Denzler for one class.
        "variance": the default of regressors. sigma_*^2, noise included. Labels do not matter. For
        several targets, the mean of their variances.
        "null_space": the distance to the nearest class in the kernel null Foley-Sammon transform
        of Bodesheim et al., where each class held is one point. It is the transform of K + sigma^2
        I: theirs if there is no noise. Like "mahalanobis", it takes one Gaussian process on all
        examples: forests have others in each leaf.
    reference : only for a linear model that keeps no rows: (X, y) or (X, y, sample_weight), rows
        that it has learnt, all or some. Left out in turn, they set the thresholds
    groups : a name for each example in the order of `ids_`, a pandas Series whose index is the ids,
        or a name for each reference row. Examples of a group are left out together to set the
        thresholds: give it where several examples show one thing, such as views of one object.
        Otherwise the other views vouch for each, and too many new views of known classes are called
        unknown. Values do not change.

    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]], list("aaabbb"))
    >>> X = [[0.2], [4.8], [30.0]]
    >>> novelty(clf, X).unknown(0.95), clf.predict(X, unknown="?", rate=0.05)
    (array([False, False,  True]), array(['a', 'b', '?'], dtype='<U1'))
    """
    gp, method = _asked(model, method)
    given = reference_rows(reference)
    kept = last_step(model).editable_.keeps_rows
    groups = groups_of(model, gp, groups) if kept else groups
    own = bool(given) or not (kept or groups is None)
    left = left_out(model, gp, _HOW, *given, groups=groups) if own else None
    rows, index = inputs(model, X), index_of(X)
    ids = np.arange(rows.shape[0]) if index is None else np.asarray(index.to_flat_index())
    values = _values(model, gp, method, rows, given)
    return Novelty(values, method, ids, gp, left, copy(last_step(model)), groups)


def _values(model: Any, gp: Any, method: str, rows: Any, reference: tuple[Any, ...]) -> Array:
    """How new these rows are, (m,)."""
    if method == "combined":
        return newness_of(gp).values(gp, rows)
    return values_by(
        method,
        lambda: gp.mean(rows),
        lambda: gp.variance(rows),
        lambda: nearest(gp, rows) if gp.has_gram else gp.nearest(rows),
        _unrelated(model, gp, rows, reference),
        lambda: gp.largest_variance,
    )


def _unrelated(model: Any, gp: Any, rows: Any, given: tuple[Any, ...]) -> Array:
    """Which rows have nothing in common with what was learnt, (m,).

    Sums do not know whether such rows were learnt. Reference rows do, and rows that are kept.
    """
    found: Array = gp.unrelated(rows)
    if not found.any():
        return found
    kept = kept_rows(model, gp)
    known = inputs(model, given[0]) if given else None if kept is None else kept.X
    return found if known is None or not gp.unrelated(known).any() else np.zeros_like(found)


def _asked(model: Any, method: str | None) -> tuple[Any, str]:
    """The Gaussian process of a fitted estimator, and the method, if it has that, or its best."""
    if isinstance(method, str) and method == "score":
        raise InvalidInput(
            "method='score' is gone: in our measurements 'probability' told new rows from known "
            "ones as well or better. Ask for 'probability'."
        )
    if method is not None:
        choice("method", method, _METHODS)
    about = "" if method in (None, "variance") else f"method={method!r}"
    gp = asked(model, WITH_VARIANCE, about, "method='variance'")
    if method is None:
        return gp, gp.best_novelty if gp.classes else "variance"
    if method == "combined" and not gp.keeps_rows:
        raise InvalidInput(
            "method='combined' is about examples, and a linear model holds none. Ask for "
            "'mahalanobis'."
        )
    if method in ("combined", "mahalanobis", "null_space") and not gp.one_covariance:
        raise InvalidInput(
            f"method={method!r} is about all classes in one Gaussian process, and a leaf of a "
            f"forest may hold one class alone. Ask for 'probability'."
        )
    return gp, method


def _fraction(q: Any) -> float:
    """q, checked."""
    return number("q", q, "[0, 1]", "It is the fraction of known examples to be called known.")
