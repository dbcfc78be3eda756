"""What classifiers answer from the scores of a frozen model."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.base import ClassifierMixin

from knowmore.arrays import Array
from knowmore.models import class_probabilities


class Scorer(Protocol):
    """An estimator with a frozen model that has a column of scores for each class."""

    @property
    def _held(self) -> Any:
        """The model; raises NotFitted or NoExamples if there is nothing to predict from."""

    def model_inputs(self, X: Any) -> tuple[Any, Any]:
        """X as the model takes it, and its side information."""

    def _prediction(self, model: Any, scores: Array) -> Array:
        """The classes that follow from these scores (m, M)."""


class ScoringClassifier(ClassifierMixin):
    """A classifier by the largest score."""

    def _prediction(self, model: Any, scores: Array) -> Array:
        return np.asarray(model.names[scores.argmax(axis=1)])

    def predict(self: Scorer, X: Any) -> Array:
        """The class of the largest score, (m,). Eq. (5)."""
        model = self._held
        return self._prediction(model, model.mean(*self.model_inputs(X)))

    def decision_function(self: Scorer, X: Any) -> Array:
        """The scores, (m, M), columns as in `classes_`; (m,), the second's, if two. Eq. (4)."""
        scores: Array = self._held.mean(*self.model_inputs(X))
        return scores[:, 1] if scores.shape[1] == 2 else scores


class GaussianClassifier(ScoringClassifier):
    """A Gaussian process for each class, with a variance that all share."""

    def predict_proba(self: Scorer, X: Any) -> Array:
        """Phi(mu_*^(c) / sigma_*), scaled to sum to one, (m, M), columns as in `classes_`.

        Phi is the chance that the noisy target is above zero; the scaling is a convention.
        """
        model, (X, _) = self._held, self.model_inputs(X)
        return class_probabilities(model.mean(X), model.variance(X))
