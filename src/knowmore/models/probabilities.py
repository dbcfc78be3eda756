"""From scores to the probabilities of classes."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp

from knowmore.arrays import Array


def standardised(mean: Array, variance: Array) -> Array:
    """mu^(c) / sigma, (m, M); mean (m, M), variance (m,) with noise.

    A variance is a difference, so below the rounding of mu^2 it is noise: that is its lower limit.
    An example that is held without noise is therefore almost certain, but not infinitely so.
    """
    eps, tiny = np.finfo(float).eps, np.finfo(float).tiny
    # In units of mu: its square may be beyond the range.
    least = np.sqrt(eps) * abs(mean).max(axis=1) + np.sqrt(tiny)
    return np.asarray(mean / np.maximum(np.sqrt(variance), least)[:, None])


def log_chances(mean: Array, variance: Array) -> Array:
    """log Phi(mu^(c) / sigma), (m, M); mean (m, M), variance (m,) with noise.

    Phi is the chance that the noisy target is above zero.
    """
    return np.asarray(log_ndtr(standardised(mean, variance)))


def class_probabilities(mean: Array, variance: Array, temperature: float = 1.0) -> Array:
    """Phi(mu^(c) / sigma)^(1 / temperature), scaled to sum to one, (m, M).

    The scaling is a convention. A temperature above one levels the classes, below one sharpens.

    >>> class_probabilities(np.array([[1.0, -1.0], [0.0, 0.0]]), np.ones(2)).round(2)
    array([[0.84, 0.16],
           [0.5 , 0.5 ]])
    """
    logs = log_chances(mean, variance) / temperature
    chances = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    # Logarithms of tiny chances are large, and so is their rounding.
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))
