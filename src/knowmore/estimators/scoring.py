"""Classes and probabilities from the scores of a frozen model."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.base import ClassifierMixin

from knowmore._base import Array, choice
from knowmore.models import class_probabilities

# The values of `probability`.
_MEANINGS = ("calibrated", "raw")
_LOSSES = ("squared", "squared_hinge")


class Scorer(Protocol):
    """An estimator with a frozen model that has a column of scores for each class."""

    probability: str

    @property
    def _held(self) -> Any:
        """The model; raises NotFitted or NoExamples if there is nothing to predict from."""

    def model_inputs(self, X: Any) -> Any:
        """X as the model takes it."""

    def model_temperature(self, model: Any) -> float:
        """The temperature of the probabilities of a model."""

    def _prediction(self, model: Any, scores: Array) -> Array:
        """The classes that follow from these scores (m, M)."""

    def _score_variance(self, model: Any, X: Any) -> Array:
        """The variance of the scores of X (m, d), (m,)."""


class ScoringClassifier(ClassifierMixin):
    """A classifier by the largest score, with probabilities.

    A Gaussian process for each class, with a variance that all share.
    """

    def _prediction(self, model: Any, scores: Array) -> Array:
        return np.asarray(model.names[scores.argmax(axis=1)])

    def _score_variance(self, model: Any, X: Any) -> Array:
        variance: Array = model.variance(X)
        return variance

    def predict(self: Scorer, X: Any) -> Array:
        """The class of the largest score, (m,). Eq. (5)."""
        model = self._held
        return self._prediction(model, model.mean(self.model_inputs(X)))

    def decision_function(self: Scorer, X: Any) -> Array:
        """The scores, (m, M), columns as in `classes_`; (m,), the second's, if two. Eq. (4)."""
        scores: Array = self._held.mean(self.model_inputs(X))
        return scores[:, 1] if scores.shape[1] == 2 else scores

    @property
    def temperature_(self: Scorer) -> float:
        """tau of `predict_proba`: above one it levels the classes, below one it sharpens."""
        return self.model_temperature(self._held)

    def model_temperature(self: Scorer, model: Any) -> float:
        """The temperature of a frozen model of this estimator, which may have been edited since."""
        return float(model.temperature) if is_calibrated(self) else 1.0

    def predict_proba(self: Scorer, X: Any) -> Array:
        """Phi(mu_*^(c) / sigma_*)^(1 / tau), scaled to sum to one, (m, M), columns as `classes_`.

        Phi, the normal distribution function, is the chance that the noisy target is above zero. A
        least-squares SVM has no variance: sigma_* is one there. The temperature tau makes these
        probabilities: of predictions made with 80 %, four in five are right. Under tau the labels
        of the examples held are most likely, each left out: the first question after an edit takes
        about as long as `leave_one_out`. With probability="raw" tau is one.
        """
        model, rows = self._held, self.model_inputs(X)
        scores, variance = model.mean(rows), self._score_variance(model, rows)
        return class_probabilities(scores, variance, self.model_temperature(model))


def is_calibrated(estimator: Any) -> bool:
    """Whether the probabilities of an estimator have a temperature other than one."""
    return check_meaning(estimator.probability) == "calibrated"


def check_meaning(probability: Any) -> str:
    """The parameter `probability`; raises InvalidInput unless it is known."""
    return choice("probability", probability, _MEANINGS)


def check_loss(loss: Any) -> str:
    """The parameter `loss`; raises InvalidInput unless it is known."""
    return choice("loss", loss, _LOSSES)
