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


def completed(mean, class_support, codes):
    """Left-out scores (n, M) in which the others of its class stand in for each example.

    class_support : (n, M), the predictions for each example, left out, from targets of one for the
        examples of a class and zero for all others
    """
    scores = np.array(mean)
    for i, c in enumerate(codes):
        p = sum(other == c for other in codes)
        if p > 1:
            scores[i][c] = mean[i][c] + 2 * class_support[i][c] * (p / (p - 1) - 1)
    return scores


def moderated(scores, variance):
    """Logarithms of the chances of classes, but for a term of each row: scores (n, M), which count
    the less the larger their variance (n,)."""
    return np.array([np.asarray(s) / np.sqrt(1 + v) for s, v in zip(scores, variance, strict=True)])


def left_out_precisely(K, noise, T, groups, bias=False):
    """The means (n, M) of `left_out` in extended precision, from kernel values K without noise.

    Gaussian elimination with row pivots, line by line.
    """
    precise, mean = np.longdouble, np.empty(T.shape)
    for g in set(groups.tolist()):
        out = groups == g
        A = K[np.ix_(~out, ~out)].astype(precise) + np.diag(noise[~out].astype(precise))
        k, B = K[np.ix_(out, ~out)].astype(precise), T[~out].astype(precise)
        if bias:
            A, B = bordered(A), np.vstack([B, np.zeros((1, T.shape[1]))])
            k = np.hstack([k, np.ones((len(k), 1))])
        mean[out] = k @ _eliminated(A.astype(precise), B.astype(precise))
    return mean


def _eliminated(A, B):
    """A^-1 B in the precision of A, both overwritten."""
    for j in range(len(A)):
        p = j + int(abs(A[j:, j]).argmax())
        A[[j, p]], B[[j, p]] = A[[p, j]], B[[p, j]]
        factors = A[j + 1 :, j] / A[j, j]
        A[j + 1 :] -= np.outer(factors, A[j])
        B[j + 1 :] -= np.outer(factors, B[j])
    for j in reversed(range(len(A))):
        B[j] = (B[j] - A[j, j + 1 :] @ B[j + 1 :]) / A[j, j]
    return B


def linear_left_out(X, T, weights, noise, groups, intercept=True):
    """Means (n, M) and variances (n,) of ridge regression by one refit for each group.

    In fractions, rounded once at the end.
    """
    X, T = ([[Fraction(value) for value in row] for row in np.asarray(A).tolist()] for A in (X, T))
    w, noise, groups = [*map(Fraction, weights.tolist())], Fraction(noise), groups.tolist()
    mean, var = np.empty((len(T), len(T[0]))), np.empty(len(T))
    for g in set(groups):
        rest = [i for i, own in enumerate(groups) if own != g]
        N = sum(w[i] for i in rest)

        def about_mean(A, rest=rest, N=N):
            means = [intercept * sum(w[i] * A[i][j] for i in rest) / N for j in range(len(A[0]))]
            return means, [[a - m for a, m in zip(row, means, strict=True)] for row in A]

        (_, Z), (offsets, Y) = about_mean(X), about_mean(T)
        D = range(len(Z[0]))
        A = [[sum(w[i] * Z[i][a] * Z[i][b] for i in rest) for b in D] for a in D]
        A = [[A[a][b] + noise * (a == b) for b in D] for a in D]
        C = [[sum(w[i] * Z[i][a] * Y[i][c] for i in rest) for c in range(len(Y[0]))] for a in D]
        out = [i for i, own in enumerate(groups) if own == g]
        solved = _solved([[*A[a], *C[a], *(Z[i][a] for i in out)] for a in D])
        for k, i in enumerate(out):
            said = [sum(Z[i][a] * solved[a][c] for a in D) for c in range(len(offsets) + len(out))]
            mean[i] = [float(s + b) for s, b in zip(said, offsets, strict=False)]
            var[i] = float(noise * (1 / w[i] + intercept / N + said[len(offsets) + k]))
    return mean, var


def _solved(rows):
    """A^-1 B for rows of [A, B], by elimination without pivots: A is positive definite."""
    D = len(rows)
    for j in range(D):
        rows[j] = [value / rows[j][j] for value in rows[j]]
        for i in range(D):
            if i != j:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [row[D:] for row in rows]


def units(Y, weights):
    """Mean and standard deviation (M,) of values (n, M) of such weights (n,); of constants one."""
    if weights.sum() == 0:
        return np.zeros(Y.shape[1]), np.ones(Y.shape[1])
    mean = np.array([np.average(y, weights=weights) for y in Y.T])
    square = np.array([np.average(y**2, weights=weights) for y in (Y - mean).T])
    constant = (Y[weights > 0] == Y[weights > 0][0]).all(axis=0)
    return mean, np.where(constant, 1.0, np.sqrt(square))


def normalised_left_out(kernel, noise, X, Y, groups, weights):
    """Means and variances (n, M) of values Y by one refit of normalised values for each group."""
    mean, var = np.empty_like(Y), np.empty_like(Y)
    for g in set(groups.tolist()):
        out = groups == g
        m, s = units(Y[~out], weights[~out])
        one_mean, one_var = left_out(kernel, noise, X, (Y - m) / s, out)
        mean[out], var[out] = m + s * one_mean[out], s**2 * one_var[out, None]
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


def within(X, labels):
    """Class means (C, D), the classes in order, and each row minus the mean of its class."""
    names = np.unique(labels)
    means = np.array([sum(X[labels == name]) / (labels == name).sum() for name in names])
    return names, means, X - means[np.searchsorted(names, labels)]


def null_space_lda(X, labels, queries, scatter_rank):
    """Squared distances (m, C) of the queries to the class means, first in the null space of the
    scatter within the classes, which has this rank, then in its range, by its covariance (1/N)."""
    _, means, E = within(X, labels)
    values, W = np.linalg.svd(E)[1:]
    values, W = values[:scatter_rank], W[:scatter_rank]
    gaps = queries[:, None] - means[None]
    inside = gaps @ W.T
    empty = gaps - inside @ W
    return (empty**2).sum(axis=-1), len(X) * ((inside / values) ** 2).sum(axis=-1)


def shrunk_lda(X, labels, alpha):
    """log p(class | x) up to a constant, as coefficients (C, D) and intercepts (C,), by the
    covariance (1 - alpha) S_W / N + alpha (tr S_W / (N D)) I and frequencies as priors."""
    names, means, E = within(X, labels)
    D = X.shape[1]
    S = E.T @ E / len(X)
    S = (1 - alpha) * S + alpha * np.trace(S) / D * np.eye(D)
    counts = np.array([(labels == name).sum() for name in names])
    coefficients = np.linalg.solve(S, means.T).T
    return coefficients, np.log(counts / len(X)) - 0.5 * (coefficients * means).sum(axis=1)


def whole_sums(rows, units):
    """The sum (D,) and the sum of products (D, D) of whole rows of whole weights, in integers."""
    D = range(len(rows[0]))
    weighted = [*zip(units, rows, strict=True)]
    first = [sum(w * row[j] for w, row in weighted) for j in D]
    return first, [[sum(w * row[i] * row[j] for w, row in weighted) for j in D] for i in D]


def whole_scatter(total, first, second):
    """The scatter (D, D) about the mean from integers, in fractions."""
    D = range(len(first))
    return [[Fraction(total * second[i][j] - first[i] * first[j], total) for j in D] for i in D]


def gradient(image):
    """Correlation with x g(x) g(y), scaled so that its positive values sum to one."""
    t = np.arange(-2, 3)
    gauss = np.exp(-(t**2) / (2 * 0.8**2))
    slope = np.outer(gauss, t * gauss)
    slope = 2 * slope / abs(slope).sum()
    padded = np.pad(image, 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    return (windows * slope).sum(axis=(2, 3)), (windows * slope.T).sum(axis=(2, 3))
