"""What a model says of every place of a plane, after each edit: it follows, it is not asked anew.

K~ = LL'. For the places X* and W = L^-1 kappa(X, X*) (n, m) the scores are W' L^-1 T and the
variances kappa(x*, x*) - sum_i W_i*^2 + sigma^2. Leading rows of W depend on the leading examples
alone: those before the first that was changed are kept. Labels do not enter W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore.arrays import Array, Frozen
from knowmore.models import KernelModel
from knowmore.models.covariance import Covariance


@final
@dataclass(frozen=True, eq=False, repr=False)
class Answers(Frozen):
    """Scores (m, M) and variances (m,) of rows X (m, d) by a frozen model.

    variance : None if the kind of model has none
    solved : W and the covariance that it was solved with; None if the model cannot be followed
    """

    X: Array
    scores: Array
    variance: Array | None
    solved: tuple[Array, Covariance] | None = None

    @classmethod
    def of(cls, estimator: Any, X: Array) -> Answers:
        """By the model of a fitted estimator, from scratch."""
        nothing = np.empty((len(X), 0))
        return cls(X, nothing, None).follow(estimator)

    def follow(self, estimator: Any) -> Answers:
        """The same rows, by the model that an estimator has now."""
        model = estimator.model_
        if not _is_followed(model):
            return asked(estimator, self.X)
        covariance = model.covariance
        W = self._solved(covariance)
        explained = np.einsum("ij,ij->j", W, W)
        variance = np.maximum(covariance.prior(self.X) - explained, 0) + covariance.noise
        scores = W.T @ (model.half @ model.targets.mix)
        return Answers(self.X, scores, variance, (W, covariance))

    def _solved(self, covariance: Covariance) -> Array:
        """W for another covariance; leading rows that stay are not computed again."""
        n, known = len(covariance.examples), 0
        if self.solved is not None:
            known = _unchanged(self.solved[1], covariance)
        if self.solved is not None and known == n:
            return self.solved[0][:n]
        K = np.zeros((n, len(self.X)))
        K[known:] = np.asarray(covariance.kernel(covariance.X[known:], self.X))
        head = None if self.solved is None else self.solved[0][:known]
        return covariance.factor.forward(K, head)


def _is_followed(model: Any) -> bool:
    """Whether a model is a plain Gaussian process on a triangular factor of full precision."""
    return (
        isinstance(model, KernelModel)
        and model.classes
        and not model.bias
        and model.targets.units is None
        and model.targets.transfer is None
        and model.covariance.factor.traits.nested
        and model.covariance.factor.dtype == np.float64
    )


def _unchanged(before: Covariance, after: Covariance) -> int:
    """The number of leading rows of the factor that are the same."""
    if before.noise != after.noise or before.kernel != after.kernel:
        return 0
    mine, theirs = after.examples.serials, before.examples.serials
    shared = min(len(mine), len(theirs))
    same = mine[:shared] == theirs[:shared]
    same &= before.weights[:shared] == after.weights[:shared]
    return shared if same.all() else int(same.argmin())


def asked(estimator: Any, X: Array) -> Answers:
    """By any model, from scratch."""
    model, inputs = estimator.model_, estimator.model_inputs(X)
    scores, variance = np.asarray(model.mean(*inputs)), None
    if hasattr(estimator, "predict_variance"):
        variance = np.asarray(estimator.predict_variance(X))
    return Answers(X, scores, variance)
