"""Strategies for Hypothesis: matrices of a known condition, labelled examples, settings."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)

seeds = st.integers(0, 2**32 - 1)
solvers = st.sampled_from(["cholesky", "inverse"])
updates = st.sampled_from(["auto", "direct", "iterative"])
noises = st.sampled_from([1e-1, 1e-2, 1e-4, 1e-6, 1e-8])

kernels = st.sampled_from(
    [
        RBF(1.5),
        RBF([0.5, 1.0, 2.0]),
        Matern(1.0, nu=0.5),
        Matern(2.0, nu=2.5),
        DotProduct(1.0),
        ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.01),
        RBF(1.0) * DotProduct(0.5) + ConstantKernel(0.1),
    ]
)


@st.composite
def spd_matrices(draw, min_size=1, max_size=200, max_log_condition=8.0):
    """A symmetric positive definite matrix with a given spectrum, and its condition number."""
    n = draw(st.integers(min_size, max_size))
    log_condition = draw(st.floats(0, max_log_condition))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e4]))
    rng = np.random.default_rng(draw(seeds))
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    spectrum = scale * np.logspace(0, -log_condition, n)
    A = (Q * spectrum) @ Q.T
    return (A + A.T) / 2


@st.composite
def row_sets(draw, n, min_size=1):
    """A set of rows of an n x n matrix: single, scattered, a block, or a tail."""
    rows = np.arange(n)
    kind = draw(st.sampled_from(["one", "scattered", "block", "tail"]))
    if kind == "one":
        return rows[[draw(st.integers(0, n - 1))]]
    if kind == "scattered":
        rng = np.random.default_rng(draw(seeds))
        k = draw(st.integers(min_size, n))
        return rng.permutation(rows)[:k]
    begin = draw(st.integers(0, n - 1))
    end = n if kind == "tail" else draw(st.integers(begin + 1, n))
    return rows[begin:end]


def examples(rng, n, d=3, classes=4):
    """n inputs (n, d) and labels (n,)."""
    return rng.normal(size=(n, d)), rng.integers(0, classes, n)


@st.composite
def row_tables(draw, max_rows=30, max_columns=12):
    """X (N, D): a decaying spectrum, a shift, perhaps constant columns and repeated rows."""
    N, D = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    rng = np.random.default_rng(draw(seeds))
    X = rng.normal(size=(N, D)) * np.logspace(0, -draw(st.floats(0, 4)), D)
    X = X @ np.linalg.qr(rng.normal(size=(D, D)))[0]
    X += draw(st.sampled_from([0.0, 1.0, 100.0]))
    if draw(st.booleans()):
        X[:, rng.integers(D)] = 3.0
    if draw(st.booleans()):
        X[rng.integers(N, size=N // 2)] = X[0]
    return X * draw(st.sampled_from([1.0, 1e-3, 1e5]))
