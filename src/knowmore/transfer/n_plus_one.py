"""N to N+1 classes: `NPlusOneClassifier`, and `Scores`, a source known only by its scores."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from knowmore._base import (
    Array,
    Unfitted,
    a_type,
    as_array,
    choice,
    columns_of,
    flag,
    leading,
    optional,
    some,
)
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators import (
    EditableEstimator,
    LeastSquares,
    check_mergeable,
    class_labels,
    fitted,
    names_in,
    unnamed,
)
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models import KernelModel
from knowmore.transfer.coding import Minimum, TransferCoding, interior, subgradient

# Products of scores beyond this would overflow.
_LARGEST = 1e50

_OPTIMISERS = {"interior": interior, "subgradient": subgradient}


@final
class Scores:
    """A source for `NPlusOneClassifier` that is known only by its scores.

    classes : the N known classes
    of : a function of X (m, d) that returns their scores (m, N), columns as in `classes`; it must
        always return the same. None if the last N columns of X are the scores, not features.

    >>> source = Scores(["cat", "dog"])
    >>> source, source.decision_function(np.array([[5.0, 0.2, -0.9]]))
    (Scores(['cat', 'dog']), array([[ 0.2, -0.9]]))
    """

    def __init__(self, classes: Any, of: Callable[[Array], Any] | None = None) -> None:
        self.classes_ = np.array(as_array("classes", classes))
        self.of = of

    def __repr__(self) -> str:
        of = "" if self.of is None else f", of={getattr(self.of, '__name__', self.of)}"
        return f"Scores([{some(self.classes_.tolist())}]{of})"

    def decision_function(self, X: Any) -> Array:
        """The scores of X, (m, N)."""
        if self.of is not None:
            return np.asarray(self.of(X))
        X, N = as_array("X", X), self.classes_.size
        if X.ndim != 2 or X.shape[1] <= N:
            raise InvalidInput(f"X has shape {X.shape}. Give features, then the {N} scores.")
        return np.asarray(X[:, -N:])


@final
@dataclass(eq=False, repr=False)
class NPlusOneClassifier(LeastSquares):
    """Learns one class more than a known classifier, from few examples of all of them.

    MULTIpLE (Kuzborskij, Orabona and Caputo 2013): the known classes stay close to what they were,
    the new one starts as a mixture of them, and leave-one-out chooses its weights beta. The scores
    are [s, s beta] + k_*' A + b', s those of the source. `fit` needs examples of all N known
    classes and of one more. After any history of edits it equals a fresh fit of the examples it
    holds. A further class is learnt by another `NPlusOneClassifier` with this one as its source.
    `C=1.0, scaled=False` is the paper's. In `model_` the columns of `examples.X` are the features,
    which the kernel sees, and behind them the scores of the source, in the order of its sorted
    classes.

    Parameters
    ----------
    source : a fitted classifier of N classes with `decision_function`, or `Scores`
        `fit` keeps a copy as `source_`. For `clone`, as in a grid search, wrap it in scikit-learn's
        `FrozenEstimator`.
    kernel, C, bias : as in `LSSVMClassifier`; "loo" is the best C without a source
    positive : whether beta >= 0: known classes are only added to the mixture
    scaled : whether s is brought to the scale of the labels -1 and 1 first, and the known classes
        go only that part of the way from there to the scores above which serves leave-one-out best
    optimiser : "interior", exact; or "subgradient", 2000 steps as in the paper
    probability, solver, update, dtype : as in `GPClassifier`

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import LSSVMClassifier
    >>> known = LSSVMClassifier(RBF(3.5), 1.0)
    >>> known = known.fit([[0.0], [1.0], [4.0], [5.0]], ["cold"] * 2 + ["mild"] * 2)
    >>> names = ["cold", "cold", "mild", "mild", "hot", "hot"]
    >>> clf = NPlusOneClassifier(known).fit([[0.2], [0.7], [4.2], [4.7], [6.5], [7.5]], names)
    >>> clf.predict([[1.0], [4.0], [8.0]])
    array(['cold', 'mild', 'hot'], dtype='<U4')
    >>> dict(zip(clf.source_.classes_.tolist(), clf.beta_.round(2).tolist()))
    {'cold': 0.0, 'mild': 0.83}
    """

    source: Any
    kernel: AnyKernel | None = None
    C: float | str = 25.0
    bias: bool = True
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    positive: bool = True
    optimiser: str = "interior"
    scaled: bool = True
    probability: str = "calibrated"

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        self.source_ = _snapshot(self.source)
        super()._learn(X, y, ids, sample_weight)

    def merge(self, other: Self) -> Self:
        """Learn all examples of another estimator of the same kind, settings and source.

        The two must not share an id.
        """
        check_mergeable(self, other, "_living")
        columns = _is_columns(self.source_) or _is_columns(other.source_)
        if np.array_equal(_known(self.source_), _known(other.source_)) and not columns:
            held, names = other.editable_.examples, names_in(self)
            X: Any = leading(held.X, self.width_for(held))
            S = held.X[:, X.shape[1] :]
            if names is not None:
                X = optional("pandas", "tables").DataFrame(X, columns=list(names))
            rounding = 1e-9 * abs(S).max(initial=0)
            if abs(self._scores(X, len(held)) - S).max(initial=0) > rounding:
                problem = "The two models differ in source: other scores."
                raise InvalidInput(f"{problem} Fit both with the same source to merge them.")
        return super().merge(other)

    @property
    def beta_(self) -> Array:
        """The weight of each class of `source_.classes_` in the mixture, (N,)."""
        minimum: Minimum = self.editable_.nonempty.minimum
        return minimum.beta[np.argsort(np.argsort(self.source_.classes_))]

    # -- inside ------------------------------------------------------------------------------

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return super()._labels(y, k, _known(self.source_) if held is None else held)

    def width_for(self, examples: Examples) -> int:
        """The number of features: the columns behind them are the source's scores."""
        width: int = examples.X.shape[1] - len(_known(self.source_))
        return width

    def as_given(self, examples: Examples) -> Examples:
        """Examples of `model_` with features as `add` takes them."""
        X = leading(examples.X, self.width_for(examples))
        if _is_columns(self.source_):
            order = np.argsort(np.argsort(_classes_of(self.source_)))
            X = np.hstack([X, examples.X[:, X.shape[1] :][:, order]])
        return examples.with_rows(X)

    def model_inputs(self, X: Any, *, reset: bool = False) -> Array:
        """The features of X, then the source's scores in the order of its sorted classes."""
        source = fitted(self, "source_")
        features = super().model_inputs(X, reset=reset)
        if _is_columns(source):
            scores = self._scores(features, len(features))
            features = features[:, : -scores.shape[1]]
        else:
            # A table is passed to the source unchanged: its columns have names.
            scores = self._scores(X if hasattr(X, "columns") else features, len(features))
        return np.hstack([features, scores])

    def _scores(self, X: Any, m: int) -> Array:
        """The source's scores of the m rows of X, (m, N), in the order of its sorted classes."""
        source, classes = self.source_, _classes_of(self.source_)
        # Names are asked for by this estimator alone, so that one warning is enough.
        if not columns_of(X) and hasattr(source, "feature_names_in_"):
            source = unnamed(source)
        try:
            scores = np.asarray(source.decision_function(X), dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"The source cannot score these examples: {error}") from error
        if scores.ndim == 1 and len(classes) == 2:
            scores = np.column_stack([-scores, scores])
        if scores.shape != (m, len(classes)):
            raise InvalidInput(
                f"The source gives scores of shape {scores.shape}, but ({m}, {len(classes)}) is "
                f"expected: a column for each class (of an SVC: decision_function_shape='ovr')."
            )
        if not abs(scores).max(initial=0) < _LARGEST:
            raise InvalidInput(f"The source's scores are NaN or beyond {_LARGEST:g}. Scale them.")
        return scores[:, np.argsort(classes)]

    def _coding(self, examples: Examples) -> TransferCoding:
        optimiser = _OPTIMISERS[choice("optimiser", self.optimiser, _OPTIMISERS)]
        positive, scaled = flag("positive", self.positive), flag("scaled", self.scaled)
        coding = TransferCoding(tuple(_known(self.source_).tolist()), positive, optimiser, scaled)
        coding.check_examples(examples)
        return coding

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        coding: Any = model.coding
        source = "columns of X" if _is_columns(self.source_) else "a classifier"
        known = {"source": source, "known classes": _known(self.source_).tolist()}
        parameters = {"positive": coding.positive, "optimiser": coding.optimiser.__name__}
        return known | super()._settings(model) | parameters | {"scaled": coding.scaled}


def _snapshot(source: Any) -> Any:
    """A copy of the source that later changes of the source do not affect."""
    if not hasattr(source, "decision_function") or isinstance(source, type):
        problem = f"source={source!r} has no decision_function."
        raise InvalidType(f"{problem} Wrap its scores in knowmore.Scores.")
    try:
        if not isinstance(source, Scores):
            check_is_fitted(source)
    except NotFittedError as error:
        raise Unfitted(
            f"The source, {a_type(source)}, is not fitted. Fit it first. (For clone and "
            f"grid searches, which unfit it, wrap it in sklearn.frozen.FrozenEstimator.)"
        ) from error
    if not hasattr(source, "classes_"):
        raise InvalidType(f"source={source!r} has no classes_. Give a fitted classifier.")
    classes = _classes_of(source)
    if len(classes) == 0 or len(np.unique(classes)) != len(classes):
        raise InvalidInput(f"The source has the classes {classes.tolist()}. Name each class once.")
    # A living estimator is fitted by replacing a frozen value, which two can share.
    return copy(source) if isinstance(source, (EditableEstimator, Scores)) else deepcopy(source)


def _classes_of(source: Any) -> Array:
    """The classes of a source, (N,), of one type, in its own order."""
    classes = as_array("classes", source.classes_)
    if classes.ndim != 1:
        raise InvalidInput(
            f"The source has the classes {reprlib.repr(source.classes_)}. Give a list of known "
            f"classes, one for each column of its scores."
        )
    return class_labels(classes, len(classes), None)


def _known(source: Any) -> Array:
    """The classes of a source, (N,), sorted."""
    return np.sort(_classes_of(source))


def _is_columns(source: Any) -> bool:
    """Whether the scores of this source are columns of X."""
    return isinstance(source, Scores) and source.of is None
