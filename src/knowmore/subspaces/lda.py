"""Linear discriminants that learn, forget and merge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast, final

import numpy as np
from scipy.special import log_softmax
from sklearn import base

from knowmore._base import (
    Array,
    Savable,
    as_array,
    bounded,
    check_aligned,
    choice,
    number,
    shape_of,
    whole_number,
)
from knowmore.errors import warn
from knowmore.estimators import (
    check_mergeable,
    class_labels,
    declared,
    declared_classes,
    declared_too,
    fit_copy,
    fitted,
    in_classes,
    inputs,
    joint_classes,
    memberships,
    update_fitted,
)
from knowmore.subspaces.discriminant import LEDOIT_WOLF, Discriminant
from knowmore.subspaces.eigenspace import Eigenspace
from knowmore.subspaces.spectrum import Truncation


@final
@dataclass(eq=False, repr=False)
class EigenspaceLDA(
    Savable,
    base.ClassNamePrefixFeaturesOutMixin,
    base.ClassifierMixin,
    base.TransformerMixin,
    base.BaseEstimator,
):
    """Linear discriminant analysis that adds, forgets and merges rows and classes.

    The three steps of Kim et al.: an eigenspace of all rows, one of the class means, and the
    discriminants in the span of both. With all directions kept it equals scikit-learn's
    `LinearDiscriminantAnalysis(solver="eigen")` of the rows it holds now. Where rows of one class
    do not differ along some direction in which others do (fewer rows than features) that cannot
    be fitted, and this is null-space LDA, the limit of a vanishing shrinkage: along such
    directions the nearest class mean decides, and the others where it leaves a tie. Classes need
    not be declared.

    Parameters
    ----------
    n_components : the maximum number of discriminants that `transform` returns; None: all,
        classes - 1
    rank : how many directions of the total scatter to keep, or a `Truncation`; None keeps all.
        Few make edits fast and regularise, since the weakest directions are the noisiest;
        `total_.discarded` is the variance of the others.
    priors : "frequency", as often as the classes were seen, or "equal": the nearest class mean
    shrinkage : how much of the covariance within the classes is replaced by I times the mean of
        its diagonal, 0 to 1, as in scikit-learn; None: nothing. "ledoit-wolf": the mean of the
        classes' coefficients of Ledoit and Wolf, weighted by their scatters; it also keeps the
        scatter of every class. `shrinkage_` is the number. A change takes effect with the next rows
        that are learnt or forgotten.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = EigenspaceLDA().fit(X[:100], y[:100])          # two kinds of iris
    >>> lda = lda.partial_fit(X[100:], y[100:])              # a third one turns up
    >>> lda.transform(X).shape, lda.score(X, y)
    ((150, 2), 0.98)
    >>> lda.forget(X[:50], y[:50]).classes_
    array([1, 2])
    """

    n_components: int | None = None
    _: KW_ONLY
    rank: int | Truncation | None = None
    priors: str = "frequency"
    shrinkage: float | str | None = None

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn X (n, D) and labels y (n,) from scratch.

        y may be soft: (n, C), how far each row belongs to each of the `classes`, with sum one.
        """
        fit_copy(self, lambda copy: copy._learn(X, y, classes))
        return self

    def _learn(self, X: Any, y: Any, classes: Any) -> None:
        rows = self._labelled(X, y, classes, reset=True)
        self.model_ = Discriminant.of(*rows, _shrinkage(self))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more rows, of known or new classes. Soft labels have a column for each class.

        classes : as for `GPClassifier.partial_fit`; for soft labels the names of their columns
        """
        soft = len(shape_of("y", y)) == 2
        known = self.classes_ if hasattr(self, "model_") else None
        given = None if classes is None else as_array("classes", classes)
        names = None if soft else declared_classes(y, given, known)
        with declared_too(self, names):
            if not fit_copy(self, lambda copy: copy.fit(X, y, classes), unless="model_"):
                rows = self._labelled(X, y, classes)
                self._exchange(lambda model: model.add_rows(*rows))
        return self

    def forget(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Remove rows that were learnt with these labels, as if they had never been there.

        A class without rows is gone. With shrinkage="ledoit-wolf" rows that lay far out take
        digits of the shrinkage with them; without shrinkage, those of the spread of classes far
        apart. A warning says if that matters.
        """
        rows = self._labelled(X, y, classes)

        def without(model: Discriminant) -> Discriminant:
            left = model.remove_rows(*rows)
            # Before the exchange: where warnings are errors, the estimator stays unchanged.
            for doubt in left.doubts():
                warn(doubt)
            return left

        self._exchange(without)
        return self

    def merge(self, other: EigenspaceLDA) -> Self:
        """Learn all that another one has learnt."""
        check_mergeable(self, other, "model_")
        classes, joining, rank = self._held.between.names, other.model_, _rank(self)
        class_labels(joining.between.names, len(joining.between.names), classes)
        with declared_too(self, declared(other)):
            self._exchange(lambda model: model.merge(joining, rank))
        return self

    def absorb(self, X: Any, rounds: int = 20) -> Array:
        """Learn rows without labels, and return how far each belongs to each class, (n, C).

        Expectation-maximisation: the probabilities under the model so far are the soft labels of
        the next one. The return value is what `forget` needs to remove the rows again.
        """
        fitted(self, "model_")
        X, rank = inputs(self, X, reset=False), _rank(self)
        whole_number("rounds", rounds, 1)
        found: list[Array] = []

        def absorbed(before: Discriminant) -> Discriminant:
            model, Y = before.absorb(X, self.priors, rounds, rank)
            found[:] = [Y]
            return model

        self._exchange(absorbed)
        return found[0]

    # -- asking ------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """X (m, D) along the discriminants, (m, q), where each class has the covariance I."""
        return self._held.coordinates(inputs(self, X, reset=False))[:, : _most(self)]

    def predict(self, X: Any) -> Array:
        """The class of the nearest mean along all discriminants, nearer the more frequent, (m,)."""
        model, scores = self._scores(X)
        return np.asarray(model.between.names[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> Array:
        """The log posterior up to a constant of each row, (m, C); for two classes the second's
        minus the first's, (m,). A class that was declared and has no rows is one below the lowest.
        """
        model, known = self._scores(X)
        scores = in_classes(self, model.between.names, known, known.min(axis=1) - 1)
        return bounded(lambda: scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`, (m, C)."""
        model, scores = self._scores(X)
        chances = np.asarray(log_softmax(scores, axis=1))
        return in_classes(self, model.between.names, chances, -np.inf)

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, all with the same covariance, (m, C).

        A class that was declared and has no rows has the probability zero.
        """
        return np.exp(self.predict_log_proba(X))

    @property
    def classes_(self) -> Array:
        """The classes that have rows now or were declared, (C,), sorted."""
        return joint_classes(self, self._held.between.names)

    @property
    def means_(self) -> Array:
        """The class means, (C, D)."""
        return self._held.between.means

    @property
    def priors_(self) -> Array:
        """The prior probability of each class, (C,)."""
        return np.exp(self._held.log_priors(_priors(self)))

    @property
    def xbar_(self) -> Array:
        """The mean of all rows, (D,)."""
        return self._held.total.mean

    @property
    def scalings_(self) -> Array:
        """The discriminants, (D, q), best first, as `transform` uses them."""
        return self._held.scalings[:, : _most(self)]

    @property
    def shrinkage_(self) -> float:
        """How much of the covariance within the classes is replaced by a multiple of I."""
        return self._held.alpha

    @property
    def explained_variance_ratio_(self) -> Array:
        """The fraction of the variance between classes along each discriminant, (q,).

        In units of the variance within the classes.
        """
        between = self._held.strengths
        return between[: _most(self)] / (between.sum() or 1.0)

    @property
    def total_(self) -> Eigenspace:
        """The eigenspace of all rows."""
        return self._held.total

    @property
    def between_(self) -> Eigenspace:
        """The eigenspace of the class means, each counted as often as it has rows."""
        model = self._held
        return model.between.eigenspace(model.total)

    # -- internals ------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    @property
    def _held(self) -> Discriminant:
        return cast("Discriminant", fitted(self, "model_"))

    def _exchange(self, change: Callable[[Discriminant], Discriminant]) -> None:
        shrinkage = _shrinkage(self)
        update_fitted(self, "model_", lambda model: change(model.shrunk(shrinkage)))

    def _labelled(
        self, X: Any, y: Any, classes: Any, reset: bool = False
    ) -> tuple[Array, Array, Array, Truncation]:
        """X (n, D), the memberships of its rows (n, C), the names of these classes, the rank."""
        known = None if reset else self._held.between.names
        check_aligned(X=X, y=y)
        X = inputs(self, X, reset=reset)
        names, Y = memberships(y, len(X), classes, known)
        return X, Y, names, _rank(self)

    def _scores(self, X: Any) -> tuple[Discriminant, Array]:
        """The model, and its log posterior of the rows of X, (m, C)."""
        model = self._held
        return model, model.log_posterior(inputs(self, X, reset=False), _priors(self))


def _priors(lda: EigenspaceLDA) -> str:
    return choice("priors", lda.priors, ("frequency", "equal"))


def _rank(lda: EigenspaceLDA) -> Truncation:
    _most(lda)
    _priors(lda)
    return Truncation.by(lda.rank)


def _shrinkage(lda: EigenspaceLDA) -> float | str:
    wanted = 0.0 if lda.shrinkage is None else lda.shrinkage
    if isinstance(wanted, str) and wanted == LEDOIT_WOLF:
        return wanted
    return number("shrinkage", wanted, "[0, 1]", "'ledoit-wolf' estimates it; None is 0.")


def _most(lda: EigenspaceLDA) -> int | None:
    wanted = lda.n_components
    return None if wanted is None else whole_number("n_components", wanted, 1)
