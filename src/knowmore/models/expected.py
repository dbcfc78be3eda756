"""What leave-one-out would say of rows that are not there, from the sums of these.

A linear model holds sums of its rows. They give the mean score of every class and the scatter of
scores within classes, all that a Gaussian needs; how much a row has pulled its own score is known
on average, as in generalised cross-validation. Scores of real rows have longer tails than a
Gaussian, most of all those that are confused: they are drawn from Student's t, whose degrees of
freedom, five, are a choice by experience.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import gammaincinv, ndtri

from knowmore.arrays import Array
from knowmore.linalg.products import eigh
from knowmore.models.probabilities import Trial

_FREEDOM: Final = 5.0
# Scores that are drawn, and the rows of them at most.
_NUMBERS, _ROWS = 2**19, 8192
_SEED: Final = 0


def expected_trial(means: Array, scatter: Array, counts: Array, h: float, noise: float) -> Trial:
    """Scores as rows of a linear model would have them if each were left out.

    means : (M, M), row c the mean scores of the rows of class c
    scatter : (M, M), that of the scores about these means, over its degrees of freedom
    counts : (M,), the rows of each class; those of a single row are left out
    h : the mean leverage of the rows, below one
    noise : sigma^2

    Left out, a row of target t and score s has the score (s - ht) / (1 - h). The draws are always
    the same, and classes are drawn as often as they have rows.
    """
    M = len(means)
    R = int(np.clip(_NUMBERS // M, 1, _ROWS))
    several = np.where(counts > 1, counts, 0).cumsum()
    codes = np.searchsorted(several, (np.arange(R) + 0.5) / R * several[-1], side="right")
    U = np.random.default_rng(_SEED).random((R, M + 1))
    # Of the roots of a matrix the symmetric one does not depend on signs of eigenvectors.
    values, V = eigh(scatter)
    root = (V * np.sqrt(np.maximum(values, 0))) @ V.T
    stretch = np.sqrt(_FREEDOM / (2 * gammaincinv(_FREEDOM / 2, U[:, M:])))
    scores = means[codes] + (ndtri(U[:, :M]) * stretch) @ root
    own = np.arange(R), codes
    T = np.full((R, M), -1.0)
    T[own] = 1.0
    scores = (scores - h * T) / (1 - h)
    backing = (scores[own] + 1) / 2
    nothing = np.zeros(R, dtype=bool)
    return Trial(scores, np.full(R, noise / (1 - h)), nothing, backing, codes, counts)
