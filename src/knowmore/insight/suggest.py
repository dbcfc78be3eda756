"""What to label next: active learning with a Gaussian process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from knowmore.answers import Answer
from knowmore.arguments import choice, is_missing, one_each, whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.insight.asking import GAUSSIAN, asked, check_classes, generator, inputs
from knowmore.insight.pool import Pool
from knowmore.models import KernelModel, class_probabilities

_CRITERIA = ("variance", "uncertainty", "margin", "weight", "impact", "emoc", "random")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(Answer):
    """Which rows of a pool to label, the most useful first.

    indices : (n,), rows of the pool
    values : (n,), the criterion's value when each was picked, larger is better
    reasons : a few words on each
    criterion : what they were picked by
    """

    indices: Array
    values: Array
    reasons: tuple[str, ...]
    criterion: str

    def _columns(self) -> dict[str, Array]:
        reasons = np.array(self.reasons, dtype=object)
        return {"index": self.indices, "value": self.values, "reason": reasons}

    def _summary(self) -> str:
        return f"{len(self.indices)} to label by {self.criterion}"


def suggest(
    model: Any,
    X_pool: Any,
    n: int = 1,
    criterion: str = "margin",
    *,
    random_state: int | None = None,
) -> Suggestion:
    """The n rows of X_pool (u, d) whose labels would teach a fitted Gaussian process most.

    They are picked one after the other. Each pick counts as held from then on, under the label
    that is most plausible now: the variances around it fall, the means move towards that label,
    and rows similar to it become less useful. A row with the very same features waits until no
    others are left. No label is asked for. A first pick is by the criterion alone.

    Parameters
    ----------
    criterion : mu^(c) are the scores, sigma_*^2 the variance with the noise; t^(c') is 1 for the
        class in question and -1 for the others, and means are over c'
        "variance": sigma_*^2, the least known.
        "uncertainty": min_c |mu^(c)| / sigma_*, the smallest first (Kapoor et al.).
        "margin": how far the two best classes are apart, (mu_(1) - mu_(2)) / sigma_*, the smallest
        first.
        "weight": mean |t - mu| / sigma_*^2, the coefficient that the example would get under its
        most plausible label (Freytag et al.).
        "impact": the same, times 1 + |K~^-1 k_*|_1: the change of all coefficients.
        "emoc": the expected change of the scores in the pool (Freytag, Rodner and Denzler): mean
        |t - mu| expected under the present probabilities, over sigma_*^2, times the mean absolute
        covariance with the pool. It takes the memory of a matrix (u, u), at first of two.
        "random": no reason.
    random_state : a seed for "random"

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"])
    >>> suggest(clf, [[0.5], [3.1], [9.0], [9.1], [-3.0]], n=2, criterion="variance")
    Suggestion: 2 to label by variance
    index   value                                         reason
        3  0.4912   unlike what is known: standard deviation 0.7
        4  0.4672  unlike what is known: standard deviation 0.68
    >>> suggest(clf, [[0.5], [3.1], [5.5]]).reasons
    ("'high' or 'low': scores 0.041 and -0.041, standard deviation 0.41",)
    """
    gp = _asked(model, criterion)
    X, _ = inputs(model, X_pool, "X_pool")
    found = _picks(gp, X, whole_number("n", n, 1, len(X)), criterion, random_state)
    rows, values, reasons = zip(*((i, v[i], reason) for i, v, reason in found), strict=True)
    return Suggestion(np.array(rows), np.array(values), reasons, criterion)


def _asked(model: Any, criterion: str) -> KernelModel:
    """The Gaussian process of a fitted estimator, if the criterion applies to it."""
    gp: KernelModel = asked(model, GAUSSIAN)
    choice("criterion", criterion, _CRITERIA)
    if criterion not in ("variance", "random"):
        check_classes(model, f"criterion={criterion!r}", "criterion='variance' or 'random'")
    if criterion == "margin" and len(gp.targets.names) < 2:
        reason = f"the model knows one: {gp.targets.names[0].item()!r}"
        remedy = "Ask for criterion='uncertainty' or 'variance'."
        raise InvalidInput(f"criterion='margin' is about two classes, but {reason}. {remedy}")
    return gp


def _picks(
    gp: KernelModel, X: Array, n: int, criterion: str, random_state: int | None
) -> Iterator[tuple[int, Array, str]]:
    """The greedy choice, one row of X (u, d) after the other, with its reason.

    Between them come the values (u,) that it was the best of: NaN where picked before; and for
    twins of these, while there are others.
    """
    if criterion == "random":
        values = generator(random_state).random(len(X))
        for row in np.argsort(-values)[:n].tolist():
            yield row, values.copy(), "drawn at random"
            values[row] = np.nan
        return
    pool, (picked, twins) = Pool(gp, X), np.zeros((2, len(X)), dtype=bool)
    for count in range(n):
        values = np.where(picked if twins.all() else twins, np.nan, _values(criterion, pool))
        row = int(np.nanargmax(values))
        yield row, values, _reason(criterion, pool, row)
        picked[row] = True
        twins |= (X[row] == X).all(axis=1)
        if count < n - 1:
            pool.pick(row, None if criterion == "variance" else int(pool.mean[row].argmax()))


def _variance(pool: Pool) -> Array:
    """In the units of the values, (u,); of several targets, the mean."""
    return pool.variance * pool.model.targets.square


def _values(criterion: str, pool: Pool) -> Array:
    """The values of all rows, (u,), larger is better."""
    if criterion == "variance":
        return _variance(pool)
    mean, deviation = pool.mean, np.sqrt(pool.variance)
    if criterion == "uncertainty":
        # Noise is counted once: sigma_*^2 includes it already.
        return np.asarray(-abs(mean).min(axis=1) / deviation)
    if criterion == "margin":
        second, first = np.partition(mean, -2, axis=1)[:, -2:].T
        return np.asarray((second - first) / deviation)
    # mean_c' |t^(c') - mu^(c')| for each class c that the label may be, (u, M).
    apart, near = abs(1 + mean), abs(1 - mean)
    surprise = (apart.sum(axis=1, keepdims=True) - apart + near) / mean.shape[1]
    if criterion == "emoc":
        # delta f(x_j) = (t - mu) / sigma_*^2 c(x_*, x_j), c the posterior covariance.
        expected = np.einsum("ij,ij->i", class_probabilities(mean, pool.variance), surprise)
        return np.asarray(expected * pool.precision * pool.reach())
    # |delta alpha| of the row itself: (t - mu) / sigma_*^2.
    weight = surprise[np.arange(len(mean)), mean.argmax(axis=1)] * pool.precision
    if criterion == "weight":
        return np.asarray(weight)
    # |delta alpha|_1 = |t - mu| / sigma_*^2 |[-K~^-1 k_*; 1]|_1.
    return np.asarray(weight * (1 + pool.influence()))


def _reason(criterion: str, pool: Pool, row: int) -> str:
    """Why the criterion picks this row, in a few words."""
    deviation = f"standard deviation {np.sqrt(_variance(pool)[row]):.2g}"
    if criterion == "variance":
        return f"unlike what is known: {deviation}"
    mean = pool.mean[row]
    names = [repr(name) for name in pool.model.targets.names.tolist()]
    match criterion:
        case "uncertainty":
            c = int(abs(mean).argmin())
            reason = f"{names[c]} or not: score {mean[c]:.2g}"
        case "margin":
            second, first = np.argsort(mean, kind="stable")[-2:]
            scores = f"scores {mean[first]:.2g} and {mean[second]:.2g}"
            reason = f"{names[first]} or {names[second]}: {scores}"
        case "emoc":
            p = class_probabilities(pool.mean[[row]], pool.variance[[row]])[0]
            reason = f"would change scores across the pool: {names[p.argmax()]} at {p.max():.0%}"
        case _:
            c = int(mean.argmax())
            reason = f"would count much even as {names[c]}: score {mean[c]:.2g}"
    return f"{reason}, {deviation}"


# -- for scikit-activeml -------------------------------------------------------------------------


@final
@dataclass(eq=False, repr=False)
class SuggestQuery(BaseEstimator):
    """A pool-based query strategy as scikit-activeml calls them: `query(X, y, clf, ...)`.

    `clf` is an estimator of knowmore itself, without a wrapper. Wrappers around strategies that
    insist on scikit-activeml's own class take it after
    `skactiveml.base.SingleAnnotatorPoolQueryStrategy.register(SuggestQuery)`.

    Parameters
    ----------
    criterion : one of `suggest`
    missing_label : what y holds where there is no label yet: NaN or None, which are the same here,
        a string or a number
    random_state : a seed for the criterion "random"

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0.0, 1.0, np.nan, np.nan])
    >>> SuggestQuery("variance").query(X, y, GPClassifier())
    array([3])
    """

    criterion: str = "margin"
    missing_label: Any = np.nan
    random_state: int | None = None

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Which samples to label next, (batch_size,), the most useful first.

        X (n, d) and y (n,) are all samples and their labels where known. `clf` is fitted to these,
        or used as given. `candidates`: row numbers of X, by default those without a label; or
        separate inputs (u, d), to which the answer then refers. The utilities (batch_size, n) or
        (batch_size, u) are the values at each pick, NaN where there is none.
        """
        labels, n = np.asarray(y), np.shape(X)[0] if np.ndim(X) else 0
        one_each("y", labels.shape, n)
        missing = _missing(labels, self.missing_label)
        model = clf
        if fit_clf:
            if missing.all():
                all_are = f"all are {self.missing_label!r}, the missing_label"
                raise InvalidInput(f"y has no label yet: {all_are}. Label a first example by hand.")
            held = np.flatnonzero(~missing)
            model = clone(clf).fit(_safe_indexing(X, held), np.array(labels[held].tolist()))
        gp = _asked(model, self.criterion)
        if np.ndim(candidates) > 1:
            X, n, rows = candidates, len(candidates), np.arange(len(candidates))
        else:
            rows = _rows(np.flatnonzero(missing) if candidates is None else candidates, n)
            X = _safe_indexing(X, rows)
        pool, _ = inputs(model, X, "The set of candidates")
        count = whole_number("batch_size", batch_size, 1, len(pool))
        found = _picks(gp, pool, count, self.criterion, self.random_state)
        picked, values, _ = zip(*found, strict=True)
        indices = rows[list(picked)]
        if not return_utilities:
            return indices
        utilities = np.full((count, n), np.nan)
        utilities[:, rows] = values
        return indices, utilities


def _rows(candidates: Any, n: int) -> Array:
    """Candidates as row numbers of X, (u,)."""
    rows = np.asarray(candidates)
    if rows.size == 0:
        default = "by default these are the rows whose y is the missing_label"
        raise InvalidInput(f"The set of candidates is empty. Give at least one row; {default}.")
    is_rows = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
    if not is_rows or len(np.unique(rows)) < len(rows) or rows.min() < 0 or rows.max() >= n:
        found = f"{np.array2string(rows, threshold=6)}, {rows.dtype} of shape {rows.shape}"
        raise InvalidInput(
            f"candidates are {found}. Give inputs (u, d), or row numbers (u,) of X, each once, "
            f"from 0 to {n - 1}; for a mask np.flatnonzero(mask)."
        )
    return rows


def _missing(labels: Array, label: Any) -> Array:
    """Where there is no label, (n,)."""
    if is_missing(label):
        found = [is_missing(one) for one in labels.tolist()]
    elif isinstance(label, (str, Real)):
        found = [not is_missing(one) and one == label for one in labels.tolist()]
    else:
        raise InvalidInput(f"missing_label={label!r}. Give NaN, None, a string or a number.")
    return np.array(found, dtype=bool)
