"""The batch fit as the definition has it, in extended precision; imports nothing of knowmore.

In double precision a batch fit is itself off by about eps cond(K~). So kernel values are taken in
`longdouble`, and a double Cholesky solution is refined with residuals of that precision until it
no longer moves: what a model is off by is then the model's alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

Array = npt.NDArray[Any]

_STEPS = 50


def gram(X: Array, Y: Array, length: float, dtype: npt.DTypeLike = np.longdouble) -> Array:
    """exp(-|x - y|^2 / (2 length^2)) for all pairs, (n, m)."""
    difference = X.astype(dtype)[:, None] - Y.astype(dtype)[None]
    return np.asarray(np.exp(-(difference**2).sum(axis=2) / (2 * np.asarray(length, dtype) ** 2)))


def one_vs_all(labels: Array) -> Array:
    """1 for the class of the column, -1 for all others, (n, M)."""
    return np.where(labels[:, None] == np.unique(labels), 1.0, -1.0)


def refined(X: Array, T: Array, length: float, noise: float) -> Array:
    """(K + noise I)^-1 T, (n, M), to the last digits of `longdouble` over the condition."""
    K = gram(X, X, length) + np.longdouble(noise) * np.eye(len(X), dtype=np.longdouble)
    factor = linalg.cho_factor(K.astype(float), lower=True)
    A = np.zeros(T.shape, dtype=np.longdouble)
    last = np.inf
    for _ in range(_STEPS):
        step = linalg.cho_solve(factor, (T - K @ A).astype(float))
        A += step
        moved = float(abs(step).max())
        if moved >= last / 2:
            return A
        last = moved
    return A


def scores(X: Array, T: Array, Z: Array, length: float, noise: float) -> Array:
    """k_*' (K + noise I)^-1 T at Z, (m, M), correct to double precision."""
    return np.asarray(gram(Z, X, length) @ refined(X, T, length, noise), dtype=float)


def plain_scores(X: Array, T: Array, Z: Array, length: float, noise: float) -> Array:
    """Scores in double precision throughout, as any batch fit can give."""
    K = gram(X, X, length, float) + noise * np.eye(len(X))
    A = linalg.cho_solve(linalg.cho_factor(K, lower=True), T)
    return np.asarray(gram(Z, X, length, float) @ A)


def condition(X: Array, length: float, noise: float) -> float:
    """cond(K + noise I) in the 2-norm."""
    values = np.linalg.eigvalsh(gram(X, X, length, float) + noise * np.eye(len(X)))
    return float(values[-1] / values[0])
