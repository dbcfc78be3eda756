"""The only tolerances of the suite, computed from the matrix and how it is kept.

Solving with a backward stable factor moves the solution by about eps cond(K) of its norm; both the
library and the oracle do so. An explicit inverse is allowed the residual at which it refreshes
itself, eps |K| |K^-1| in the 1-norm.
"""

from __future__ import annotations

import numpy as np


def tolerance(K, solver="cholesky", dtype=np.float64):
    """The relative error that a solve with K may have."""
    eps = np.finfo(dtype).eps
    if len(K) == 0:
        return eps
    if solver == "cholesky":
        # Sums of n terms are rounded n times; that shows where the condition is small.
        return 4 * eps * (np.linalg.cond(K) + np.sqrt(len(K)))
    return 4 * eps * np.linalg.cond(K, 1)


def assert_solves(got, want, K, B, *, solver="cholesky", dtype=np.float64, left=None):
    """Is `got` equal to `want` = left' K^-1 B to the error that solving with K must have?

    `left` (n, m) defaults to the identity, B is (n, q). Column j of the solution has norm at most
    |K^-1| |b_j|; what an inverse computes is off by a part of that, what a factor computes by a
    part of the norm of the solution itself. A value that the solution is taken from or added to
    (a prior variance) is rounded too.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if solver == "cholesky":
        size = np.linalg.norm(np.linalg.solve(K, B), axis=0) if len(K) else np.zeros(B.shape[1])
    else:
        size = np.linalg.norm(B, axis=0) * np.linalg.norm(np.linalg.inv(K), 2)
    scale = size[None, :] * (1.0 if left is None else np.linalg.norm(left, axis=0)[:, None])
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
