"""Naive definitions: what the library promises, written without it.

Everything is solved from scratch with plain NumPy and SciPy. Nothing of knowmore is imported.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import linalg


def covariance(kernel, X, noise):
    """kappa(X, X) + noise I, (n, n), by scikit-learn's own evaluation; noise: one or (n,)."""
    return kernel(X) + noise * np.eye(len(X))


def one_vs_all(labels):
    """Sorted classes and targets of -1 and 1, (n, M), element by element."""
    classes = sorted(set(labels))
    return classes, np.array([[1.0 if y == c else -1.0 for c in classes] for y in labels])


def solve(K, T):
    """K^-1 T by a symmetric solve."""
    return linalg.solve(K, T, assume_a="pos")


def bordered(K):
    """[[K, 1], [1', 0]], (n + 1, n + 1): the matrix of a least-squares SVM with a bias."""
    ones = np.ones((len(K), 1))
    return np.block([[K, ones], [ones.T, np.zeros((1, 1))]])


def scores(kernel, noise, X, T, X_new, bias=False):
    """k_*' (K + noise I)^-1 T, (m, M), or with a bias by the whole bordered matrix."""
    K, k = covariance(kernel, X, noise), kernel(X_new, X)
    if not bias:
        return k @ solve(K, T)
    A = linalg.solve(bordered(K), np.vstack([T, np.zeros((1, T.shape[1]))]))
    return k @ A[:-1] + A[-1]


def variance(kernel, noise, X, X_new, bias=False, noise_new=None):
    """k_** - k_*' (K + noise I)^-1 k_* + noise, (m,), one by one; with a bias likewise."""
    K = covariance(kernel, X, noise)
    noise_new = np.full(len(X_new), noise) if noise_new is None else noise_new
    values = []
    for x, own in zip(X_new, noise_new, strict=True):
        k = kernel(X, x[None])[:, 0]
        if bias:
            k1 = np.append(k, 1.0)
            explained = k1 @ linalg.solve(bordered(K), k1)
        else:
            explained = k @ solve(K, k)
        values.append(kernel(x[None])[0, 0] - explained + own)
    return np.array(values)


def left_out(kernel, noise, X, T, groups, bias=False):
    """Means (n, M) and variances (n,) by one refit for each group."""
    mean, var = np.empty_like(T), np.empty(len(T))
    noise = np.broadcast_to(noise, len(T))
    for g in set(groups.tolist()):
        out = groups == g
        if out.all():
            mean[out], var[out] = 0.0, np.diagonal(kernel(X[out])) + noise[out]
            continue
        mean[out] = scores(kernel, noise[~out], X[~out], T[~out], X[out], bias)
        var[out] = variance(kernel, noise[~out], X[~out], X[out], bias, noise[out])
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


def precise_scatter(X):
    """`scatter` in long doubles."""
    X = np.asarray(X, dtype=np.longdouble)
    mean = X.sum(axis=0) / len(X)
    return mean, (X - mean).T @ (X - mean)


def exact_scatter(X):
    """`scatter` in fractions, rounded once at the end."""
    rows = [[Fraction(value) for value in row] for row in np.asarray(X).tolist()]
    D = range(len(rows[0]))
    mean = [sum(row[j] for row in rows) / len(rows) for j in D]
    S = [[sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows) for j in D] for i in D]
    return np.array(mean, dtype=float), np.array(S, dtype=float)


def scatter_between(X, Y):
    """sum_j n_j (m_j - mu)(m_j - mu)', (D, D), for parts Y (n, C) of each row in each class."""
    mean, S = sum(X) / len(X), np.zeros((X.shape[1], X.shape[1]))
    for parts in Y.T:
        n = sum(parts)
        if n > 0:
            m = sum(p * x for p, x in zip(parts, X, strict=True)) / n
            S += n * np.outer(m - mean, m - mean)
    return S
