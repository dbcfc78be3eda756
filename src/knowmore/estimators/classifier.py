"""What all living classifiers share: labels, and predictions from scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from knowmore.arrays import Array
from knowmore.estimators.checks import among, class_labels
from knowmore.estimators.living import LivingEstimator, M


class LivingClassifier(ClassifierMixin, LivingEstimator[M]):
    """A living estimator with one column of scores for each class."""

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return class_labels(y, k, held)

    def _prediction(self, model: M, scores: Array) -> Array:
        return np.asarray(model.targets.names[scores.argmax(axis=1)])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`. Classes that are declared bind y; none need be."""
        among(y, classes)
        self.add(X, y, sample_weight=sample_weight)
        return self

    @property
    def classes_(self) -> Array:
        """The classes that have examples now, (M,), sorted; those of weight zero are none."""
        self._check_fitted()
        return np.unique(self._state.examples.counted.labels)

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (m,). Eq. (5)."""
        model = self._asked()
        return self._prediction(model, model.mean(self._inputs(X, reset=False)))

    def decision_function(self, X: Any) -> Array:
        """The scores, (m, M), columns as in `classes_`; (m,), the second's, if two. Eq. (4)."""
        scores = self._asked().mean(self._inputs(X, reset=False))
        return scores[:, 1] if scores.shape[1] == 2 else scores
