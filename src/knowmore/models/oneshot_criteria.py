"""How good a rho is: what the target's examples say of each other with it, the more the better.

They are functions of leave-one-out estimates of the target's examples: y (n,) of -1 and 1, mean
and variance (..., n), with a result of shape (...). With one positive example, leaving it out
leaves none: what is then said of it comes from the support task and the background alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from knowmore.arrays import Array
from knowmore.models.likelihood import log_density
from knowmore.models.oneshot import Pair


def average_precision(y: Array, mean: Array) -> Array:
    """The area under the curve of precision over recall, as the PASCAL VOC takes it since 2010.

    The precision at a recall is the largest at that recall or above. Examples with equal scores
    are found together, so that their order does not matter. With one positive example this is
    1 / rank, as with every other definition of average precision.

    >>> float(average_precision(np.array([1, -1, 1]), np.array([0.3, 0.2, 0.1])))
    0.833
    """
    hits = np.sort(mean[..., y > 0], axis=-1)
    precision = _count(np.greater_equal, hits, hits) / _count(np.greater_equal, mean, hits)
    # From the lowest score, which has the largest recall, upwards.
    return np.asarray(np.maximum.accumulate(precision, axis=-1).mean(axis=-1))[()]


def roc_auc(y: Array, mean: Array) -> Array:
    """How many of the pairs of a positive and a negative example are in order; equal ones, half.

    >>> float(roc_auc(np.array([1, -1, 1, -1]), np.array([0.3, 0.2, 0.2, 0.1])))
    0.875
    """
    hits, others = mean[..., y > 0], mean[..., y <= 0]
    above = _count(np.greater_equal, others, hits) + _count(np.greater, others, hits)
    return np.asarray(1 - above.mean(axis=-1) / (2 * others.shape[-1]))[()]


def _count(compare: np.ufunc, scores: Array, hits: Array) -> Array:
    """How many scores (..., n) are so compared to each of the hits (..., p).

    Positive examples are few here: to compare each with all is faster than to sort.
    """
    counts = [compare(scores, hits[..., [i]]).sum(axis=-1) for i in range(hits.shape[-1])]
    return np.stack(counts, axis=-1)


def log_predictive(y: Array, mean: Array, variance: Array) -> Array:
    """The log predictive probability, summed over the examples. Eq. (5), Rodner and Denzler."""
    return np.asarray(log_density(y, mean, variance).sum(axis=-1))[()]


def squashed(y: Array, mean: Array, weights: Array) -> Array:
    """Minus the weighted mean of a smooth count of errors, 1 / (1 + exp(10 y mean)).

    After Tommasi and Caputo (2009), who write it with residuals: y (y - mean) - 1 = -y mean.
    """
    return np.asarray(-(expit(-10 * y * mean) @ weights) / len(y))[()]


def balanced(y: Array) -> Array:
    """Weights with which both classes count alike: n / (2 n_+) and n / (2 n_-), (n,)."""
    positive = y > 0
    n, count = len(y), int(positive.sum())
    return np.where(positive, n / (2 * count), n / (2 * (n - count)))


Criterion = Callable[[Pair, Array], Array]


def _ap(pair: Pair, rho: Array) -> Array:
    return average_precision(pair.target.y, pair.leave_one_out(rho)[0])


def _auc(pair: Pair, rho: Array) -> Array:
    return roc_auc(pair.target.y, pair.leave_one_out(rho)[0])


def _lpp(pair: Pair, rho: Array) -> Array:
    return log_predictive(pair.target.y, *pair.leave_one_out(rho))


def _squashed(pair: Pair, rho: Array) -> Array:
    y = pair.target.y
    return squashed(y, pair.leave_one_out(rho)[0], np.ones(len(y)))


def _weighted(pair: Pair, rho: Array) -> Array:
    y = pair.target.y
    return squashed(y, pair.leave_one_out(rho)[0], balanced(y))


# By the names that users give them; the last is no leave-one-out estimate, but log p(y_T | y_S).
CRITERIA: dict[str, Criterion] = {
    "ap": _ap,
    "auc": _auc,
    "lpp": _lpp,
    "squashed": _squashed,
    "weighted": _weighted,
    "likelihood": Pair.conditional_likelihood,
}
