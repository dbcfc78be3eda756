"""Log densities of targets under a Gaussian process."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from knowmore.arrays import Array


def log_marginal_likelihood(fit: Any, logdet: Any, n: int, columns: int = 1) -> Any:
    """log N(T | 0, K~) for n rows, summed over the columns: numbers, or arrays of them.

    -1/2 tr(T'A) - M/2 log |K~| - nM/2 log 2 pi, where `fit` is tr(T'A), A = K~^-1 T.
    """
    return -0.5 * (fit + columns * (logdet + n * log(2 * pi)))


def log_density(t: Array, mean: Array, variance: Array) -> Array:
    """log N(t | mean, variance), element by element, of arrays that broadcast."""
    return np.asarray(-0.5 * ((t - mean) ** 2 / variance + np.log(2 * pi * variance)))
