"""What a model says of every place of a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore.arrays import Array, Frozen
from knowmore.models import Following, KernelModel


@final
@dataclass(frozen=True, eq=False, repr=False)
class Answers(Frozen):
    """Scores (m, M) and variances (m,) of rows X (m, d) by a frozen model.

    variance : None if the kind of model has none
    following : what the next answers start from; None if the model is asked anew each time
    """

    X: Array
    scores: Array
    variance: Array | None
    following: Following | None = None

    @classmethod
    def of(cls, estimator: Any, X: Array, before: Following | None = None) -> Answers:
        """By the model of a fitted estimator, from earlier answers as far as they last."""
        model = estimator.model_
        if not isinstance(model, KernelModel) or model.targets.transfer is not None:
            return cls.anew(estimator, X)
        following = Following(model, X) if before is None else before.follow(model)
        return cls(X, following.scores, following.variance, following)

    def follow(self, estimator: Any) -> Answers:
        """The same rows, by the model that an estimator has now."""
        return Answers.of(estimator, self.X, self.following)

    @classmethod
    def anew(cls, estimator: Any, X: Array) -> Answers:
        """By any model, which is asked as if for the first time."""
        scores, variance = np.asarray(estimator.model_.mean(*estimator.model_inputs(X))), None
        if hasattr(estimator, "predict_variance"):
            variance = np.asarray(estimator.predict_variance(X))
        return cls(X, scores, variance)
