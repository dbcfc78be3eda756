"""The only tolerances of the suite, computed from the matrix and how it is kept.

Solving with a backward stable factor moves the solution by about eps cond(K) of its norm; both the
library and the oracle do so. An explicit inverse is allowed the residual at which it refreshes
itself, eps |K| |K^-1| in the 1-norm.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest

EPS = np.finfo(float).eps
# The interior method for N+1 ends at a gap of this part of the loss. Its minimum is flat: mixtures
# and scores of two runs, or of a run and the paper's subgradient, differ by as much.
GAP = 1e-6
# Two runs on the same numbers in another order end at the same mixture to nine digits.
SAME_GAP = 1e-9
# Temperatures end a search over their logarithm; the search is good to nine digits.
SEARCHED = 1e-9
# Rates of wrong labels are a fixed point that is iterated to six digits.
ITERATED = 1e-6
# A residual of a well-conditioned model that was edited a few times.
RESIDUAL = 1e-9
# Values that pass through float32, which has seven digits.
SINGLE = 1e-6
# Nearly noiseless models of a smooth target follow it to a thousandth.
INTERPOLATED = 1e-3
# Three significant digits on a page.
THREE_DIGITS = 5e-3
# A click lands on a pixel; the planes of the tests are two wide and at least 200 pixels.
PIXEL = 0.01
# A slider has a hundred steps a decade: a factor of 1.023.
SLIDER = 0.02


def rounded(want, roundings=1000):
    """A number, or several, to compare with: equal up to that many roundings."""
    return pytest.approx(want, rel=roundings * EPS, abs=roundings * EPS)


def as_shown(want, decimals):
    """A number to compare with one that a page shows with so many decimals."""
    return pytest.approx(want, abs=0.51 * 10.0**-decimals)


def close(want, part):
    """A number to compare with: equal up to this part of itself, one of the parts above."""
    return pytest.approx(want, rel=part)


def tolerance(K, solver="cholesky", dtype=np.float64):
    """The relative error that a solve with K may have."""
    eps = np.finfo(dtype).eps
    if len(K) == 0:
        return eps
    if solver == "cholesky":
        # Sums of n terms are rounded n times; that shows where the condition is small.
        return 4 * eps * (np.linalg.cond(K) + np.sqrt(len(K)))
    return 4 * eps * np.linalg.cond(K, 1)


def assert_solves(got, want, K, B, *, solver="cholesky", dtype=np.float64, left=None, bias=False):
    """Is `got` equal to `want` = left' K^-1 B to the error that solving with K must have?

    `left` (n, m) defaults to the identity, B is (n, q). Column j of the solution has norm at most
    |K^-1| |b_j|; what an inverse computes is off by a part of that, what a factor computes by a
    part of the norm of the solution itself. A value that the solution is taken from or added to
    (a prior variance) is rounded too. With a bias there are v = K^-1 1 and z = v'B / 1'v besides:
    the solution is K^-1 B - v z', and z is added.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if solver == "cholesky":
        size = np.linalg.norm(np.linalg.solve(K, B), axis=0) if len(K) else np.zeros(B.shape[1])
    else:
        size = np.linalg.norm(B, axis=0) * np.linalg.norm(np.linalg.inv(K), 2)
    offset = np.zeros(B.shape[1])
    if bias:
        v = np.linalg.solve(K, np.ones(len(K)))
        offset = np.linalg.norm(v) * np.linalg.norm(B, axis=0) / v.sum()
        size = size + np.linalg.norm(v) * offset
    scale = size[None, :] * (1.0 if left is None else np.linalg.norm(left, axis=0)[:, None])
    scale = scale + offset
    rounding = 4 * np.finfo(dtype).eps * abs(want).max(initial=0)
    bound = tolerance(K, solver, dtype) * scale + rounding + np.finfo(dtype).tiny
    excess = (abs(got - want) / bound).max(initial=0)
    assert excess <= 1, f"{excess:.2g} times the tolerance"


def assert_rounded(got, want, roundings=100, scale=None):
    """Are two evaluations of one formula equal to that many roundings of the largest value?"""
    got, want = np.asarray(got, dtype=float), np.asarray(want, dtype=float)
    assert got.shape == want.shape
    scale = abs(want).max(initial=0) if scale is None else scale
    error = abs(got - want).max(initial=0)
    assert error <= roundings * np.finfo(float).eps * scale, f"{error:.2g} at scale {scale:.2g}"


def assert_within(got, want, bound):
    """Are the values no further apart than the bound, which broadcasts?"""
    error = abs(np.asarray(got) - want)
    excess = (error / (bound + np.finfo(float).tiny)).max(initial=0)
    assert excess <= 1, f"{excess:.2g} times the tolerance"


def expansion_error(k, A, b):
    """How far two evaluations of k A + b may be apart, (m, 1); k (m, n), A (n, M), b (M,).

    A sum of n products is rounded n times, and kernel values by a hundred roundings of themselves.
    """
    terms = (abs(k) @ abs(A)).max(axis=1, keepdims=True, initial=0)
    return np.finfo(float).eps * (100 + len(A)) * (terms + abs(b).max())


def variance_error(k, R, prior, noise):
    """How far two evaluations of prior - |R k'|^2 + noise may be apart, (m,); k (m, n), R (n, n).

    The product with a triangle's inverse differs from a solve with the triangle by eps times its
    condition, relative to the result.
    """
    q = ((k @ R.T) ** 2).sum(axis=1)
    condition = np.linalg.cond(R)
    return np.finfo(float).eps * ((100 + len(R)) * (prior + q + noise) + 4 * condition * q)


def scatter_error(X, held=None, edits=1):
    """The error that the scatter of X, kept over some edits, may have.

    LAPACK's singular values are good to about ninety roundings of the largest. Each edit adds
    that once, for the largest set `held` on the way. Means are rounded, which shows in rows that
    lie far from zero: a shift of e moves a scatter by N e times the spread.
    """
    held = X if held is None else held
    _, S = oracle.scatter(np.asarray(held))
    largest, eps = np.linalg.norm(S, 2), np.finfo(float).eps
    shift = 4 * eps * abs(held).max() * np.sqrt(X.shape[1] * len(held))
    return 100 * edits * (eps * largest + shift * (np.sqrt(largest) + shift))


def assert_models(eigenspace, X, held=None, edits=1):
    """Is this the eigenspace of the rows X, as far as rounding over so many edits allows?"""
    held = X if held is None else held
    mean, S = oracle.scatter(X)
    N, D = X.shape
    assert eigenspace.n_samples == N
    assert_rounded(eigenspace.mean, mean, 4 * edits * len(held) / N, abs(held).max())
    P, variances = eigenspace.components, eigenspace.variances
    # Directions may be read off products of rows, as far apart as the squares of their lengths;
    # from 1e-12 on they are made orthogonal anew.
    apart = min(variances[0] / variances[-1], 1e-12 / np.finfo(float).eps) if len(P) else 1
    assert_rounded(P @ P.T, np.eye(len(P)), 100 * max(P.shape) + 10 * apart, 1.0)
    assert (np.diff(variances) <= 0).all()
    assert (variances > 0).all()
    assert len(P) <= min(N - 1, D)
    assert eigenspace.discarded == 0
    error = abs(N * eigenspace.covariance() - S).max(initial=0)
    bound = scatter_error(X, held, edits)
    assert error <= bound, f"{error / bound:.2g} times the tolerance"


def assert_models_each_feature(eigenspace, X, held, edits=1):
    """Is this the eigenspace of the rows X, each feature on its own scale?

    Everything is divided by the length of each column of the rows that were `held` on the way. One
    decomposition is a hundred roundings of the largest feature; those within a factor of 32 share
    one, and a scatter is moved by the square of that. How far the rows are from zero is nothing to
    it: their differences are exact where they are small.
    """
    near = held[0]
    mean, S = oracle.precise_scatter(X - near)
    _, H = oracle.precise_scatter(held - near)
    lengths = np.sqrt(np.diag(H).astype(float))
    D = X.shape[1]
    assert eigenspace.n_samples == len(X)
    assert len(eigenspace.variances) == D
    assert (eigenspace.discarded, eigenspace.blurred, eigenspace.lost) == (0, 0, 0)
    eps = np.finfo(float).eps
    # Rounded once, and to a rounding of the differences.
    off = abs((eigenspace.mean - near) + eigenspace.mean_rest - mean)
    assert (off <= eps * edits * lengths).all()
    assert (abs(eigenspace.mean_rest) <= eps * abs(eigenspace.mean)).all()
    P = eigenspace.components
    assert_rounded(P @ P.T, np.eye(D), 100 * D + 32**2, 1.0)
    P = P.astype(np.longdouble)
    got = eigenspace.n_samples * (P.T * eigenspace.variances) @ P
    error = abs(got - S) / lengths / lengths[:, None]
    bound = eps * edits * (100 + 32**2)
    assert (error <= bound).all(), f"{(error / bound).max():.2g} times the tolerance"
