"""Fixed questions whose answers follow a model through its edits.

K~ = LL'. For rows X* and W = L^-1 kappa(X, X*) (n, m) the scores are W' L^-1 T and the variances
kappa(x*, x*) - sum_i W_i*^2 + sigma^2. Leading rows of W depend on the leading examples alone:
those before the first that was changed are kept. Labels do not enter W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from knowmore.arrays import Array, Frozen, derived
from knowmore.models import KernelModel
from knowmore.models.covariance import Covariance


@final
@dataclass(frozen=True, eq=False, repr=False)
class Following(Frozen):
    """The answers of a model for rows X (m, d); `follow` gives those of another at less cost.

    model : a Gaussian process of classes, on a triangular factor: see `is_followed`
    known : leading rows of W
    """

    model: KernelModel
    X: Array
    known: Array | None = None

    @derived
    def W(self) -> Array:
        """L^-1 kappa(X, X*), (n, m)."""
        covariance, h = self.model.covariance, 0 if self.known is None else len(self.known)
        n = len(covariance.examples)
        if self.known is not None and h == n:
            return self.known
        K = np.zeros((n, len(self.X)))
        K[h:] = np.asarray(covariance.kernel(covariance.X[h:], self.X))
        return covariance.factor.forward(K, self.known)

    @derived
    def scores(self) -> Array:
        """`model.mean(X)`, (m, M)."""
        return np.asarray(self.W.T @ (self.model.half @ self.model.targets.mix))

    @derived
    def variance(self) -> Array:
        """`model.variance(X)`, (m,)."""
        covariance = self.model.covariance
        explained = np.einsum("ij,ij->j", self.W, self.W)
        return np.asarray(np.maximum(covariance.prior(self.X) - explained, 0) + covariance.noise)

    def follow(self, model: KernelModel) -> Following:
        """The answers of this model, from ours as far as the two share leading examples."""
        shared = _unchanged(self.model.covariance, model.covariance)
        return Following(model, self.X, self.W[:shared])


def is_followed(model: KernelModel) -> bool:
    """Whether a model is a plain Gaussian process on a triangular factor of full precision."""
    factor, targets = model.covariance.factor, model.targets
    plain = model.classes and not model.bias and targets.units is None and targets.transfer is None
    plain = plain and model.loss == "squared"
    return plain and factor.traits.nested and factor.dtype == np.float64


def _unchanged(before: Covariance, after: Covariance) -> int:
    """The number of leading rows of the factor that are the same."""
    if before.noise != after.noise or before.kernel != after.kernel:
        return 0
    mine, theirs = after.examples.serials, before.examples.serials
    shared = min(len(mine), len(theirs))
    same = mine[:shared] == theirs[:shared]
    same &= before.weights[:shared] == after.weights[:shared]
    return shared if same.all() else int(same.argmin())
