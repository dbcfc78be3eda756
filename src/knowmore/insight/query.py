"""`suggest` in the shape of scikit-activeml's query strategies."""

from __future__ import annotations

from numbers import Real
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from knowmore.arguments import is_missing
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.insight.asking import asked, inputs
from knowmore.insight.suggest import askable, how_many, picks
from knowmore.models import GP


@final
class SuggestQuery(BaseEstimator):
    """A pool-based query strategy as scikit-activeml calls them: `query(X, y, clf, ...)`.

    `clf` is an estimator of knowmore itself, in no wrapper. Wrappers around strategies that insist
    on scikit-activeml's own class take it after
    `skactiveml.base.SingleAnnotatorPoolQueryStrategy.register(SuggestQuery)`.

    Parameters
    ----------
    criterion : one of `suggest`
    missing_label : what y says where there is no label yet: NaN or None, which are one here, a
        string or a number
    random_state : a seed for the criterion "random"

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0.0, 1.0, np.nan, np.nan])
    >>> SuggestQuery("variance").query(X, y, GPClassifier())
    array([3])
    """

    def __init__(
        self,
        criterion: str = "margin",
        missing_label: Any = np.nan,
        random_state: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.missing_label = missing_label
        self.random_state = random_state

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
        """Which samples to label next, (batch_size,), the most wanted first.

        X (n, d) and y (n,) are all samples and their labels as far as they are known. `clf` is
        fitted to these, or taken as it is. `candidates`: rows of X by number, by default those
        without a label; or inputs (u, d) of their own, to which the answer then refers. The
        utilities (batch_size, n) or (batch_size, u) are the values at each pick, NaN where there
        is none.
        """
        labels = _labels(X, y)
        missing = _missing(labels, self.missing_label)
        model = clone(clf).fit(*self._labelled(X, labels, missing)) if fit_clf else clf
        gp: GP = asked(model, GP)
        askable(model, gp, self.criterion)
        own = np.ndim(candidates) > 1
        chosen = np.flatnonzero(missing) if candidates is None else candidates
        rows = np.empty(0, dtype=int) if own else _rows(chosen, len(labels))
        some = candidates if own else _safe_indexing(X, rows)
        pool = inputs(model, some, "The set of candidates")
        n = how_many(batch_size, len(pool), "batch_size")
        found = list(picks(gp, pool, n, self.criterion, self.random_state))
        where = np.arange(len(pool)) if own else rows
        indices = where[[pick.row for pick in found]]
        if not return_utilities:
            return indices
        utilities = np.full((n, len(pool) if own else len(labels)), np.nan)
        utilities[:, where] = [pick.values for pick in found]
        return indices, utilities

    def _labelled(self, X: Any, labels: Array, missing: Array) -> tuple[Any, Array]:
        if missing.all():
            raise InvalidInput(
                f"y has no label yet: all are {self.missing_label!r}, the missing_label. "
                f"Label a first example by hand."
            )
        held = np.flatnonzero(~missing)
        return _safe_indexing(X, held), np.array(labels[held].tolist())


def _labels(X: Any, y: Any) -> Array:
    """y as one label for each row of X, (n,)."""
    labels, n = np.asarray(y), np.shape(X)[0] if np.ndim(X) else 0
    if labels.shape != (n,):
        raise InvalidInput(
            f"X has {n} rows, but y has shape {labels.shape}. Give one label each, the "
            f"missing_label where there is none yet."
        )
    return labels


def _rows(candidates: Any, n: int) -> Array:
    """Candidates as rows of X by number, (u,)."""
    rows = np.asarray(candidates)
    if rows.size == 0:
        raise InvalidInput(
            "The set of candidates is empty. Give at least one row to ask about; by default "
            "these are the rows whose y is the missing_label."
        )
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise InvalidInput(
            f"candidates are {rows.dtype} of shape {rows.shape}, but they are numbers of rows (u,) "
            f"or inputs (u, d). Of a mask give np.flatnonzero(mask)."
        )
    if len(np.unique(rows)) < len(rows) or rows.min() < 0 or rows.max() >= n:
        raise InvalidInput(
            f"candidates are rows from {rows.min()} to {rows.max()}, {len(np.unique(rows))} "
            f"different ones of {len(rows)}, but X has {n} rows. Give each once, from 0 to {n - 1}."
        )
    return rows


def _missing(labels: Array, label: Any) -> Array:
    """Where there is no label, (n,)."""
    if is_missing(label):
        return np.array([is_missing(one) for one in labels.tolist()], dtype=bool)
    if not isinstance(label, (str, Real)):
        raise InvalidInput(
            f"missing_label={label!r} is no value that a label can have. Give NaN, None, a string "
            f"or a number."
        )
    equal = [not is_missing(one) and one == label for one in labels.tolist()]
    return np.array(equal, dtype=bool)
