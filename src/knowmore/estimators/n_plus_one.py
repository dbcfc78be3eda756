"""From N to N+1 classes as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from knowmore.arguments import choice, flag
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError
from knowmore.estimators.checks import class_labels
from knowmore.estimators.least_squares import penalty
from knowmore.estimators.living import LivingClassifier, LivingEstimator
from knowmore.estimators.shell import names_in, same_features
from knowmore.examples import Examples
from knowmore.extras import optional
from knowmore.kernels import AnyKernel
from knowmore.linalg import Factor
from knowmore.models import KernelModel, Transfer, Weighting
from knowmore.models.transfer import interior, subgradient
from knowmore.unfitted import Unfitted

# Products of scores beyond this would overflow.
_LARGEST = 1e50

_OPTIMISERS = {"interior": interior, "subgradient": subgradient}


@final
class Scores:
    """A source for `NPlusOneClassifier` of which only the scores are known.

    classes : the N known classes
    of : a function of X (m, d) that returns their scores (m, N), columns as in `classes`, and must
        not change; None if the last N columns of X are the scores, and no features

    >>> Scores(["cat", "dog"]).decision_function(np.array([[5.0, 0.2, -0.9]]))
    array([[ 0.2, -0.9]])
    """

    def __init__(self, classes: Any, of: Callable[[Array], Any] | None = None) -> None:
        self.classes_ = np.array(classes)
        self.of = of

    def decision_function(self, X: Any) -> Array:
        """The scores of X, (m, N)."""
        if self.of is not None:
            return np.asarray(self.of(X))
        N = len(self.classes_)
        if X.shape[1] <= N:
            raise InvalidInput(
                f"X has {X.shape[1]} columns, but the last {N} are to be the scores of the {N} "
                f"known classes, with features before them."
            )
        return np.asarray(X[:, -N:])


@final
@dataclass(eq=False, repr=False)
class NPlusOneClassifier(LivingClassifier[KernelModel]):
    """Learns one class more than a known classifier, from few examples of all of them.

    MULTIpLE (Kuzborskij, Orabona and Caputo 2013): the known classes stay near what they were, the
    new one begins as a mixture beta of them, and beta is what leave-one-out likes best. The scores
    are [s, s beta] + k_*' A + b', s those of the source. After any history of edits it equals a
    fresh fit of the examples it holds. A further class is learnt by another `NPlusOneClassifier`
    with this one as its source.

    Parameters
    ----------
    source : a fitted classifier of N classes with `decision_function`, or `Scores`
        What it is at the time of `fit` counts: a copy is kept as `source_`. To survive `clone`, as
        in a grid search, it needs scikit-learn's `FrozenEstimator` around it.
    kernel, C, bias : as in `LSSVMClassifier`, None and its width too; "loo" is the best C of that,
        without a source
    positive : whether a known class can only be added to the mixture: beta >= 0
    optimiser : "interior", exact; or "subgradient", 2000 steps as in the paper
    solver, update, dtype : as in `GPClassifier`

    Examples
    --------
    >>> from knowmore import LSSVMClassifier
    >>> known = LSSVMClassifier().fit([[0.0], [1.0], [4.0], [5.0]], ["cold"] * 2 + ["mild"] * 2)
    >>> clf = NPlusOneClassifier(known).fit([[0.5], [4.5], [7.5]], ["cold", "mild", "hot"])
    >>> clf.predict([[1.0], [4.0], [8.0]])
    array(['cold', 'mild', 'hot'], dtype='<U4')
    >>> dict(zip(clf.source_.classes_.tolist(), clf.beta_.round(2).tolist()))
    {'cold': 0.0, 'mild': 0.7}
    """

    source: Any
    kernel: AnyKernel | None = None
    C: float | str = 1.0
    bias: bool = True
    _: KW_ONLY
    positive: bool = True
    optimiser: str = "interior"
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"

    def fit(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Self:
        """Learn X (n, d), y from scratch: examples of all N known classes and of one more.

        ids and sample_weight are as in `LSSVMClassifier`.
        """
        return super().fit(X, y, ids, sample_weight)

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        self.source_ = _snapshot(self.source)
        super()._learn(X, y, ids, sample_weight)

    def merge(self, other: Self) -> Self:
        """Learn all examples of another estimator of the same kind, settings and source.

        The two must not share an id.
        """
        if isinstance(other, NPlusOneClassifier) and other.__sklearn_is_fitted__():
            held = other._living.examples
            scores = held.side
            if np.array_equal(self._known, other._known) and not _gives_scores(self.source_):
                same_features(self, other)
                scores = self._scores(self._table(held.X), len(held))
            size = abs(held.side).max(initial=0)
            if not np.allclose(scores, held.side, rtol=0, atol=1e-9 * size):
                raise InvalidInput(
                    "The two models differ in source: it gives other scores for the same examples. "
                    "Models merge only if they began from the same classifier."
                )
        return super().merge(other)

    @property
    def beta_(self) -> Array:
        """How much of each class of `source_.classes_` goes into the new one, (N,)."""
        minimum = self._asked().minimum
        assert minimum is not None
        return minimum.beta[np.argsort(np.argsort(self.source_.classes_))]

    @property
    def C_(self) -> float:
        """The C in use."""
        return float(self._checked.settings.C)

    # -- inside ------------------------------------------------------------------------------

    @property
    def _known(self) -> Array:
        """The source's classes, (N,), sorted."""
        return np.sort(_classes_of(self.source_))

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return super()._labels(y, k, self._known if held is None else held)

    def _inputs(self, X: Any, *, reset: bool) -> tuple[Array, Array | None]:
        """The features of X, and the source's scores in the order of its sorted classes."""
        self._check_source()
        features, _ = super()._inputs(X, reset=reset)
        if _gives_scores(self.source_):
            scores = self._scores(features, len(features))
            return features[:, : -scores.shape[1]], scores
        # A table goes to the source as it is: its columns have names.
        return features, self._scores(X if hasattr(X, "columns") else features, len(features))

    def _check_source(self) -> None:
        if not hasattr(self, "source_"):
            self._check_fitted()

    def _table(self, X: Array) -> Any:
        """X with the names of its columns, if the estimator was given any."""
        names = names_in(self)
        if names is None:
            return X
        return optional("pandas", "tables").DataFrame(X, columns=list(names))

    def _scores(self, X: Any, m: int) -> Array:
        classes = _classes_of(self.source_)
        try:
            scores = np.asarray(self.source_.decision_function(X), dtype=float)
        except KnowmoreError:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"The source cannot tell scores of these examples: {error}"
            ) from error
        if scores.ndim == 1 and len(classes) == 2:
            scores = np.column_stack([-scores, scores])
        if scores.shape != (m, len(classes)):
            pairs = (
                " A classifier of pairs must be asked one-vs-rest (decision_function_shape='ovr')."
            )
            raise InvalidInput(
                f"The source gives scores of shape {scores.shape} for {m} examples, but it knows "
                f"{len(classes)} classes: ({m}, {len(classes)}) was expected."
                f"{'' if isinstance(self.source_, Scores) else pairs}"
            )
        if not abs(scores).max(initial=0) < _LARGEST:
            raise InvalidInput(
                f"The source gives scores that are NaN, infinite or beyond {_LARGEST:g}. "
                f"Scores near -1 and 1 are expected."
            )
        return scores[:, np.argsort(classes)]

    def _batch(self, kernel: AnyKernel, examples: Examples, empty: Factor) -> KernelModel:
        choice("optimiser", self.optimiser, _OPTIMISERS)
        bias, optimiser = flag("bias", self.bias), _OPTIMISERS[self.optimiser]
        known = tuple(self._known.tolist())
        coding = Transfer(known, flag("positive", self.positive), optimiser)
        coding.admit(examples)
        C = penalty(self.C, kernel, examples, Weighting(), bias=bias)
        return KernelModel.of(kernel, 1 / C, examples, coding, empty, update=self.update, bias=bias)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        coding = model.coding
        assert isinstance(coding, Transfer)
        return {
            "known classes": self._known.tolist(),
            "kernel": model.covariance.kernel,
            "C": model.C,
            "bias": model.bias,
            "positive": coding.positive,
            "optimiser": coding.optimiser,
        }


def _snapshot(source: Any) -> Any:
    """The source as it is now, whatever becomes of it."""
    if not hasattr(source, "decision_function") or isinstance(source, type):
        raise InvalidType(
            f"source={source!r} has no decision_function. Give a fitted classifier that has one, "
            f"or knowmore.Scores(classes, function of X) around anything that gives scores."
        )
    if not isinstance(source, Scores):
        try:
            check_is_fitted(source)
        except NotFittedError as error:
            raise Unfitted(
                f"The source, a {type(source).__name__}, has learnt nothing yet. Fit it first. "
                f"(scikit-learn's clone, as in a grid search, empties it, unless it is wrapped in "
                f"sklearn.frozen.FrozenEstimator.)"
            ) from error
    if not hasattr(source, "classes_"):
        raise InvalidType(f"source={source!r} has no classes_. Give a fitted classifier.")
    classes = _classes_of(source)
    if len(classes) == 0 or len(np.unique(classes)) != len(classes):
        raise InvalidInput(
            f"The source has the classes {classes.tolist()}. A list of different names is expected."
        )
    # All that a living estimator learnt is one frozen value, which two may share.
    return copy(source) if isinstance(source, (LivingEstimator, Scores)) else deepcopy(source)


def _classes_of(source: Any) -> Array:
    """The classes of a source, (N,), of one kind, in its own order."""
    return class_labels(source.classes_, len(source.classes_), None)


def _gives_scores(source: Any) -> bool:
    """Are the scores columns of the inputs?"""
    return isinstance(source, Scores) and source.of is None
