"""Suggestions as a query strategy of scikit-activeml."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, final

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from knowmore._base import (
    Array,
    a_type,
    as_array,
    flag,
    is_missing,
    one_each,
    shape_of,
    whole_number,
)
from knowmore.errors import InvalidInput, InvalidType, warn
from knowmore.insight.asking import generator, inputs
from knowmore.insight.suggest import criterion_for, picks

if TYPE_CHECKING:
    _Base: Any = object
else:
    try:
        from skactiveml.base import SingleAnnotatorPoolQueryStrategy as _Base
    except ImportError:
        _Base = BaseEstimator


@final
@dataclass(eq=False, repr=False)
class SuggestQuery(_Base):
    """A pool-based query strategy as scikit-activeml calls them: `query(X, y, clf, ...)`.

    `clf` is an estimator of knowmore, by itself or in scikit-activeml's `SklearnClassifier`. Where
    scikit-activeml is installed, this is a `SingleAnnotatorPoolQueryStrategy`, which its wrappers
    around strategies take.

    Parameters
    ----------
    criterion : one of `suggest`; None is the best that the model has
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

    criterion: str | None = None
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

        Where y has no label yet, candidates are drawn at random. If there are fewer than
        `batch_size`, all are picked, with a warning.
        """
        seeds = generator(self.random_state)
        labels, n = as_array("y", y), (*shape_of("X", X), 0)[0]
        one_each("y", labels.shape, n)
        missing = _missing(labels, self.missing_label)
        with_utilities, fits = flag("return_utilities", return_utilities), flag("fit_clf", fit_clf)
        model = self._unwrapped(clf, fitted=not fits)
        if fits and not isinstance(model, BaseEstimator):
            raise InvalidType(f"clf is {a_type(clf)}. Give an estimator, as GPClassifier().")
        blind = fits and missing.all()
        if fits and not blind:
            held = np.flatnonzero(~missing)
            model = clone(model).fit(_safe_indexing(X, held), np.array(labels[held].tolist()))
        gp, criterion = (None, "random") if blind else criterion_for(model, self.criterion)
        if len(shape_of("candidates", candidates)) > 1:
            X, n = candidates, np.shape(candidates)[0]
            rows = np.arange(n)
        else:
            rows = _rows(np.flatnonzero(missing) if candidates is None else candidates, n)
            X = _safe_indexing(X, rows)
        pool = X if gp is None else inputs(model, X, "The set of candidates")
        count = whole_number("batch_size", batch_size, 1)
        if count > (most := shape_of("X", pool)[0]):
            warn(f"batch_size={count}, but there are {most} candidates. All of them were picked.")
            count = most
        found = picks(gp, pool, count, criterion, seeds)
        picked, values, _ = zip(*found, strict=True)
        indices = rows[list(picked)]
        if not with_utilities:
            return indices
        utilities = np.full((count, n), np.nan)
        utilities[:, rows] = values
        return indices, utilities

    def _unwrapped(self, clf: Any, *, fitted: bool) -> Any:
        """The estimator in wrappers of scikit-activeml, which may not be installed."""
        while type(clf).__module__.startswith("skactiveml.") and hasattr(clf, "estimator"):
            here, there = self.missing_label, clf.missing_label
            if here != there and not (is_missing(here) and is_missing(there)):
                raise InvalidInput(
                    f"Where there is no label y has missing_label={here!r} for the strategy, and "
                    f"{there!r} for clf. Give both the same one."
                )
            clf = vars(clf).get("estimator_", clf.estimator) if fitted else clf.estimator
        return clf


def _rows(candidates: Any, n: int) -> Array:
    """Candidates as row numbers of X, (u,)."""
    rows = np.asarray(candidates)
    if rows.size == 0:
        raise InvalidInput("The set of candidates is empty. Give rows, or leave labels missing.")
    is_rows = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
    if not is_rows or len(np.unique(rows)) < len(rows) or rows.min() < 0 or rows.max() >= n:
        found = f"{np.array2string(rows, threshold=6)}, {rows.dtype} of shape {rows.shape}"
        raise InvalidInput(
            f"candidates are {found}. Give inputs (u, d), or row numbers (u,) of X, each once, "
            f"from 0 to {n - 1}; for a mask np.flatnonzero(mask)."
        )
    return rows


def _missing(labels: Array, label: Any) -> Array:
    """A mask of the rows without a label, (n,)."""
    if is_missing(label):
        found = [is_missing(one) for one in labels.tolist()]
    elif isinstance(label, (str, Real)):
        found = [not is_missing(one) and one == label for one in labels.tolist()]
    else:
        raise InvalidInput(f"missing_label={label!r}. Give NaN, None, a string or a number.")
    return np.array(found, dtype=bool)
