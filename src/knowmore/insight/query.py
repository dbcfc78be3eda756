"""`suggest` in the shape of scikit-activeml's query strategies."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from knowmore.errors import InvalidInput
from knowmore.insight.asking import asked, inputs
from knowmore.insight.suggest import askable, how_many, picks
from knowmore.models import GP

Array = npt.NDArray[Any]


@final
class SuggestQuery(BaseEstimator):
    """A pool-based query strategy as scikit-activeml calls them: `query(X, y, clf, ...)`.

    `clf` is an estimator of knowmore itself, in no wrapper. Wrappers around strategies that insist
    on scikit-activeml's own class take it after
    `skactiveml.base.SingleAnnotatorPoolQueryStrategy.register(SuggestQuery)`.

    Parameters
    ----------
    criterion : one of `suggest`
    missing_label : what y says where there is no label yet
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
        fitted to these, or taken as it is. `candidates`: rows of X, by default those without a
        label; or inputs (u, d) of their own, to which the answer then refers. The utilities
        (batch_size, n) or (batch_size, u) are the values at each pick, NaN where there is none.
        """
        labels = np.asarray(y)
        missing = _missing(labels, self.missing_label)
        model = clone(clf).fit(*self._labelled(X, labels, missing)) if fit_clf else clf
        gp: GP = asked(model, GP)
        askable(model, gp, self.criterion)
        chosen = np.flatnonzero(missing) if candidates is None else np.asarray(candidates)
        own = chosen.ndim > 1
        pool = chosen if own else np.asarray(X)[chosen]
        pool = inputs(model, pool, "The set of candidates")
        n = how_many(batch_size, len(pool), "batch_size")
        found = list(picks(gp, pool, n, self.criterion, self.random_state))
        where = np.arange(len(pool)) if own else chosen
        indices = where[[pick.row for pick in found]]
        if not return_utilities:
            return indices
        utilities = np.full((n, len(pool) if own else len(labels)), np.nan)
        utilities[:, where] = [pick.values for pick in found]
        return indices, utilities

    def _labelled(self, X: Any, labels: Array, missing: Array) -> tuple[Array, Array]:
        if missing.all():
            raise InvalidInput(
                f"y has no label yet: all are {self.missing_label!r}, the missing_label. "
                f"Label a first example by hand."
            )
        return np.asarray(X)[~missing], np.array(labels[~missing].tolist())


def _missing(labels: Array, label: Any) -> Array:
    """Where there is no label, (n,). NaN is the one value that is not equal to itself."""
    equal = labels != labels if label != label else labels == label
    return np.broadcast_to(equal, labels.shape)
