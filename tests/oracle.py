"""Naive definitions: what the library promises, written without it.

Everything is solved from scratch with plain NumPy and SciPy. Nothing of knowmore is imported.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg


def covariance(kernel, X, noise):
    """kappa(X, X) + noise I, (n, n), by scikit-learn's own evaluation."""
    return kernel(X) + noise * np.eye(len(X))


def one_vs_all(labels):
    """Sorted classes and targets of -1 and 1, (n, M), element by element."""
    classes = sorted(set(labels))
    return classes, np.array([[1.0 if y == c else -1.0 for c in classes] for y in labels])


def solve(K, T):
    """K^-1 T by a symmetric solve."""
    return linalg.solve(K, T, assume_a="pos")


def scores(kernel, noise, X, T, X_new):
    """k_*' (K + noise I)^-1 T, (m, M)."""
    return kernel(X_new, X) @ solve(covariance(kernel, X, noise), T)


def variance(kernel, noise, X, X_new):
    """k_** - k_*' (K + noise I)^-1 k_* + noise, (m,), one by one."""
    K = covariance(kernel, X, noise)
    values = []
    for x in X_new:
        k = kernel(X, x[None])[:, 0]
        values.append(kernel(x[None])[0, 0] - k @ solve(K, k) + noise)
    return np.array(values)


def left_out(kernel, noise, X, T, groups):
    """Means (n, M) and variances (n,) by one refit for each group."""
    mean, var = np.empty_like(T), np.empty(len(T))
    for g in set(groups.tolist()):
        out = groups == g
        mean[out] = scores(kernel, noise, X[~out], T[~out], X[out]) if (~out).any() else 0.0
        var[out] = (
            variance(kernel, noise, X[~out], X[out])
            if (~out).any()
            else np.diagonal(kernel(X[out])) + noise
        )
    return mean, var


def log_marginal_likelihood(kernel, noise, X, T):
    """The logarithm of the Gaussian density of each target column, summed."""
    K = covariance(kernel, X, noise)
    sign, logdet = np.linalg.slogdet(K)
    assert sign == 1
    fits = [t @ solve(K, t) for t in T.T]
    return sum(-0.5 * (fit + logdet + len(X) * np.log(2 * np.pi)) for fit in fits)


def scatter(X):
    """The mean (D,) and the sum of the outer products of deviations from it, (D, D), by rows."""
    mean = sum(X) / len(X)
    return mean, sum(np.outer(x - mean, x - mean) for x in X)


def scatter_between(X, Y):
    """sum_j n_j (m_j - mu)(m_j - mu)', (D, D), for parts Y (n, C) of each row in each class."""
    mean, S = sum(X) / len(X), np.zeros((X.shape[1], X.shape[1]))
    for parts in Y.T:
        n = sum(parts)
        if n > 0:
            m = sum(p * x for p, x in zip(parts, X, strict=True)) / n
            S += n * np.outer(m - mean, m - mean)
    return S
