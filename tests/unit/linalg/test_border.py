"""The eliminated border is the inverse of the whole bordered matrix."""

from __future__ import annotations

import numpy as np
import oracle
from hypothesis import given
from strategies import seeds, spd_matrices
from tolerance import assert_solves

from knowmore.linalg import Border, Cholesky


@given(spd_matrices(min_size=2, max_size=30, max_log_condition=4), seeds)
def test_it_solves_the_bordered_system(A, seed):
    rng = np.random.default_rng(seed)
    n = len(A)
    B, ones = rng.normal(size=(n, 3)), np.ones(n)
    factor = Cholesky().append(np.empty((0, n)), A)
    border = Border(ones, factor.solve(ones[:, None])[:, 0])
    Z, z = border.eliminated(B, factor.solve(B))
    whole = np.linalg.solve(oracle.bordered(A), np.vstack([B, np.zeros((1, 3))]))
    assert_solves(Z, whole[:-1], A, B, bias=True)
    # z alone is what is said far from all examples.
    far = np.zeros((n, 1))
    assert_solves(z[None], whole[-1:], A, B, left=far, bias=True)


@given(spd_matrices(min_size=2, max_size=30, max_log_condition=4), seeds)
def test_blocks_are_those_of_the_whole_inverse(A, seed):
    n = len(A)
    rows = np.random.default_rng(seed).permutation(n)[: n // 2 + 1]
    P, ones = np.linalg.inv(A), np.ones(n)
    border, whole = Border(ones, P @ ones), np.linalg.inv(oracle.bordered(A))
    identity = np.eye(n)
    diagonal = border.inverse_diagonal(np.diagonal(P))
    assert_solves(np.diag(diagonal), np.diag(np.diagonal(whole)[:-1]), A, identity, bias=True)
    cut = np.ix_(rows, rows)
    got = np.zeros((n, n))
    got[cut] = border.inverse_block(rows, P[cut])
    want = np.zeros((n, n))
    want[cut] = whole[cut]
    assert_solves(got, want, A, identity, bias=True)
