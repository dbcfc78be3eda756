"""How new an input is to a Gaussian process, measured against the examples it holds."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import log_ndtr

from knowmore.arguments import number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.models.kernel_model import KernelModel
from knowmore.models.probabilities import standardised

# Values that differ by less than this fraction of the largest are equal.
_ROUNDINGS = 64 * float(np.finfo(float).eps)


def unseen(model: KernelModel) -> tuple[Array, Array]:
    """Scores (n, M) and variances of the examples, each predicted as a new row by the others.

    The variances are (n,), or (n, M) if the columns have units. Leave-one-out includes the noise
    sigma^2 / w of an example of weight w; a new row weighs one.
    """
    scores, variance = model.leave_one_out()
    rest = model.targets.rest()
    noise, w = np.asarray(model.covariance.noise), model.covariance.weights
    if rest is not None:
        noise, w = noise * rest.scale**2, w[:, None]
    return scores, np.maximum(variance + noise * (1 - 1 / w), noise)


def loo_prediction(gp: KernelModel) -> tuple[Array, Array]:
    """`unseen`, but the only example of a class takes the class with it: that mean is -infinity."""
    mean, variance = unseen(gp)
    E = gp.targets.basis
    only = E * (E.sum(axis=0) == 1)
    return np.where(only == 1, -np.inf, mean), variance


def improbability(mean: Array, variance: Array) -> Array:
    """log Phi(-max_c mu^(c) / sigma), (m,): the chance that no class's target is above zero.

    The logarithm does not underflow where the noise is small.
    """
    best = mean.max(axis=1, keepdims=True)
    return np.asarray(log_ndtr(-standardised(best, variance))[:, 0])


def threshold(gp: KernelModel, values: Array, q: float) -> float:
    """The q-quantile of the examples' left-out values (n,); warns where it separates nothing."""
    n, silent = len(values), int(gp.loo().silent.sum())
    found = float(np.quantile(values, q))
    if silent > (1 - q) * n and found >= values.max() - _ROUNDINGS * abs(values).max():
        warnings.warn(
            f"For {silent} of {n} examples the others say nothing, so no threshold separates known "
            f"from new. The kernel is too narrow: widen it, tune it, or scale the features.",
            KnowmoreWarning,
            stacklevel=3,
        )
    return found


def check_several(gp: KernelModel) -> None:
    """Raise InvalidInput if only one example is held: nothing is left when it is left out."""
    if len(gp.examples) < 2:
        raise InvalidInput("A threshold needs two examples, but the model holds one. Add more.")


def unknown_rows(gp: KernelModel, X: Array, rate: float) -> Array:
    """Which rows of X (m, d) belong to no class of the model, (m,), by `improbability`.

    rate : the fraction of the examples held that would also be called unknown if left out
    """
    hint = "It is the fraction of known examples that may be called unknown."
    q = 1 - number("rate", rate, "[0, 1]", hint)
    check_several(gp)
    values = improbability(gp.mean(X), gp.variance(X))
    return np.asarray(values > threshold(gp, improbability(*loo_prediction(gp)), q))
