"""Linear discriminants that learn, forget and merge."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self, final

import numpy as np
from scipy.special import log_softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags

from knowmore.arguments import choice
from knowmore.arrays import Array, bounded
from knowmore.errors import InvalidInput, KnowmoreWarning, LostVariance
from knowmore.estimators.checks import class_labels, inputs, memberships
from knowmore.estimators.shell import (
    exchange,
    held,
    learnt,
    same_features,
    same_kind,
)
from knowmore.linalg import Eigenspace, Truncation
from knowmore.models import Discriminant
from knowmore.models.discriminant import LEDOIT_WOLF
from knowmore.tables import in_step

# A shrinkage that is off by less changes no figure that anybody prints.
_UNSURE = 1e-3


@final
class EigenspaceLDA(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
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
    n_components : how many discriminants `transform` returns at most; None: all, classes - 1
    rank : how many directions of the total scatter are kept, or a `Truncation`; None keeps all.
        Few make edits fast and regularise, since the weakest directions are the noisiest;
        `total_.discarded` says how much they held.
    priors : "frequency", as often as the classes were seen, or "equal": the nearest class mean
    shrinkage : how much of the covariance within the classes is replaced by I times the mean of
        its diagonal, 0 to 1, as scikit-learn has it; None: nothing. "ledoit-wolf": the mean of the
        classes' coefficients of Ledoit and Wolf, weighted by their scatters; it keeps the scatter
        of every class besides. `shrinkage_` is the number. A change takes effect when something is
        learnt or forgotten next.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        rank: int | Truncation | None = None,
        priors: str = "frequency",
        shrinkage: float | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.priors = priors
        self.shrinkage = shrinkage

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn X (n, D) and labels y (n,) from scratch.

        y may be soft: (n, C), how far each row belongs to each of the `classes`, one in sum.
        """
        learnt(self, lambda double: double._learn(X, y, classes))
        return self

    def _learn(self, X: Any, y: Any, classes: Any) -> None:
        rule, shrinkage = self._rule(), self._shrinkage()
        in_step(X=X, y=y)
        X = inputs(self, X, reset=True)
        names, Y = memberships(y, len(X), classes, None)
        self.model_ = Discriminant.of(X, Y, names, rule, shrinkage)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more rows, of known or new classes. Soft labels have a column for each class."""
        while not hasattr(self, "model_"):
            if learnt(self, lambda double: double.fit(X, y, classes), unless="model_"):
                return self
        X, Y, names, rule = self._labelled(X, y, classes)
        self._exchange(lambda model: model.add_rows(X, Y, names, rule))
        return self

    def forget(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Take out rows that were learnt with these labels, as if they had never been there.

        A class without rows is gone. With shrinkage="ledoit-wolf" rows that lay far out take
        digits of the shrinkage with them; without shrinkage, those of the spread of classes far
        apart. A warning says if that matters.
        """
        X, Y, names, rule = self._labelled(X, y, classes)

        def without(model: Discriminant) -> Discriminant:
            left = model.remove_rows(X, Y, names, rule)
            # Before the exchange: whoever turns warnings into errors keeps what was there.
            if left.alpha_unsure > _UNSURE:
                warnings.warn(
                    f"The shrinkage of {left.alpha:.2g} may be off by {left.alpha_unsure:.1g}: "
                    f"rows that were forgotten lay so far out that little is left of the fourth "
                    f"powers of the others. Fit again, or give the shrinkage as a number.",
                    KnowmoreWarning,
                    stacklevel=6,
                )
            if left.undecided:
                warnings.warn(
                    f"Along {left.undecided} of {len(left.strengths)} discriminants the classes "
                    f"may have a little spread or none: rows that were forgotten lay so far out "
                    f"that their rounding hides it. Predictions depend on it. Fit again.",
                    LostVariance,
                    stacklevel=6,
                )
            return left

        self._exchange(without)
        return self

    def merge(self, other: EigenspaceLDA) -> Self:
        """Learn all that another one has learnt."""
        same_kind(self, other)
        classes, joining, rule = self.classes_, held(other, "model_"), self._rule()
        same_features(self, other)
        class_labels(joining.between.names, len(joining.between.names), classes)
        self._exchange(lambda model: model.merge(joining, rule))
        return self

    def absorb(self, X: Any, rounds: int = 20) -> Array:
        """Learn rows without labels, and return how far each belongs to each class, (n, C).

        Expectation-maximisation: the probabilities under the model so far are the soft labels of
        the next one. The total scatter does not depend on them and is updated once. What is
        returned is what `forget` needs, should the rows be taken out again.
        """
        held(self, "model_")
        X, rule = inputs(self, X, reset=False), self._rule()
        if not isinstance(rounds, Integral) or rounds < 1:
            raise InvalidInput(f"rounds={rounds!r}, but at least one round is needed.")
        found = []

        def absorbed(before: Discriminant) -> Discriminant:
            names = before.between.names
            Y = self._probabilities(before, X)
            model = before.add_rows(X, Y, names, rule)
            for _ in range(rounds - 1):
                last, Y = Y, self._probabilities(model, X)
                model = model.relabelled(before.between.merge(before.classes(X, Y, names)))
                if abs(Y - last).max() < np.sqrt(np.finfo(float).eps):
                    break
            found[:] = [Y]
            return model

        self._exchange(absorbed)
        return np.asarray(found[0])

    # -- asking ------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """X (m, D) along the discriminants, (m, q), where each class has the covariance I."""
        return self._held.coordinates(inputs(self, X, reset=False))[:, : self._most()]

    def predict(self, X: Any) -> Array:
        """The class of the nearest mean along all discriminants, nearer the more frequent, (m,)."""
        model = self._held
        scores = self._scores(model, inputs(self, X, reset=False))
        return np.asarray(model.between.names[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> Array:
        """The log posterior up to a constant of each row, (m, C); for two classes the second's
        minus the first's, (m,)."""
        scores = self._scores(self._held, inputs(self, X, reset=False))
        return bounded(lambda: scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`, (m, C)."""
        scores = self._scores(self._held, inputs(self, X, reset=False))
        return np.asarray(log_softmax(scores, axis=1))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, all spread alike around their means, (m, C)."""
        return self._probabilities(self._held, inputs(self, X, reset=False))

    @property
    def classes_(self) -> Array:
        """The classes that have rows now, (C,), sorted."""
        return self._held.between.names

    @property
    def means_(self) -> Array:
        """The class means, (C, D)."""
        return self._held.between.means

    @property
    def priors_(self) -> Array:
        """The prior probability of each class, (C,)."""
        return np.exp(self._log_priors(self._held))

    @property
    def xbar_(self) -> Array:
        """The mean of all rows, (D,)."""
        return self._held.total.mean

    @property
    def scalings_(self) -> Array:
        """The discriminants, (D, q), best first, as `transform` uses them."""
        return self._held.scalings[:, : self._most()]

    @property
    def shrinkage_(self) -> float:
        """How much of the covariance within the classes is replaced by a multiple of I."""
        return self._held.alpha

    @property
    def explained_variance_ratio_(self) -> Array:
        """The part of the variance between classes, within-class variance one, of each, (q,)."""
        between = self._held.strengths
        return between[: self._most()] / (between.sum() or 1.0)

    @property
    def total_(self) -> Eigenspace:
        """The eigenspace of all rows."""
        return self._held.total

    @property
    def between_(self) -> Eigenspace:
        """The eigenspace of the class means, each as often as it has rows."""
        model = self._held
        return model.between.eigenspace(model.total)

    # -- inside ------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    @property
    def _held(self) -> Discriminant:
        model: Discriminant = held(self, "model_")
        return model

    def _exchange(self, change: Callable[[Discriminant], Discriminant]) -> None:
        shrinkage = self._shrinkage()
        exchange(self, "model_", lambda model: change(model.shrunk(shrinkage)))

    def _labelled(self, X: Any, y: Any, classes: Any) -> tuple[Array, Array, Array, Truncation]:
        known = self.classes_
        in_step(X=X, y=y)
        X = inputs(self, X, reset=False)
        names, Y = memberships(y, len(X), classes, known)
        return X, Y, names, self._rule()

    def _probabilities(self, model: Discriminant, X: Array) -> Array:
        return np.asarray(np.exp(log_softmax(self._scores(model, X), axis=1)))

    def _scores(self, model: Discriminant, X: Array) -> Array:
        return bounded(lambda: model.log_likelihood(X) + self._log_priors(model))

    def _log_priors(self, model: Discriminant) -> Array:
        choice("priors", self.priors, ("frequency", "equal"))
        counts = model.between.counts
        weights = counts if self.priors == "frequency" else np.ones(len(counts))
        return np.asarray(np.log(weights / weights.sum()))

    def _rule(self) -> Truncation:
        self._most()
        choice("priors", self.priors, ("frequency", "equal"))
        return Truncation.by(self.rank)

    def _shrinkage(self) -> float | str:
        wanted = self.shrinkage
        if wanted is None or (isinstance(wanted, str) and wanted == LEDOIT_WOLF):
            return wanted or 0.0
        real = isinstance(wanted, Real) and not isinstance(wanted, bool)
        if not real or not 0 <= float(wanted) <= 1:
            raise InvalidInput(
                f"shrinkage={wanted!r}, but it is a part of the whole, 0 to 1, or 'ledoit-wolf', "
                f"or None for nothing."
            )
        return float(wanted)

    def _most(self) -> int | None:
        wanted = self.n_components
        if wanted is not None and not (isinstance(wanted, Integral) and wanted >= 1):
            raise InvalidInput(
                f"n_components={wanted!r}, but the number of discriminants is a whole number from "
                f"1 on, or None for all."
            )
        return wanted

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
