"""Structure as well as value: what is shared, what runs, what stays a triangle."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from tolerance import assert_rounded, assert_solves

from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import Cholesky, cholesky, removal, tasks
from knowmore.linalg.panels import PANEL

sweep = import_module("knowmore.linalg.sweep")


def matrix(n, seed=0):
    Q = np.random.default_rng(seed).normal(size=(n, n))
    return Q @ Q.T + n * np.eye(n)


def factor_of(A):
    return Cholesky().append(np.empty((0, len(A))), A)


def assert_is_lower_factor(factor, A):
    L = factor.lower()
    assert (np.triu(L, 1) == 0).all()
    assert (np.diagonal(L) > 0).all()
    assert_rounded(L, np.linalg.cholesky(A), 100 * np.linalg.cond(A))


def test_an_append_shares_all_panels_and_factorises_only_the_new_rows(monkeypatch):
    A = matrix(300)
    old = factor_of(A[:290, :290])
    sizes = []
    potrf = cholesky._potrf["d"]

    def spied(a, **options):
        sizes.append(len(a))
        return potrf(a, **options)

    monkeypatch.setitem(cholesky._potrf, "d", spied)
    new = old.append(A[:290, 290:], A[290:, 290:])
    assert sizes == [10]
    assert all(a is b for a, b in zip(old.panels, new.panels, strict=True))
    assert_is_lower_factor(new, A)


def test_a_deletion_shares_the_panels_above_and_factorises_nothing(monkeypatch):
    A = matrix(400)
    old = factor_of(A)
    monkeypatch.delitem(cholesky._potrf, "d")
    new = old.delete(np.array([PANEL + 5, 300]))
    assert new.panels[0] is old.panels[0]
    assert new.panels[1] is not old.panels[1]
    kept = np.delete(np.arange(400), [PANEL + 5, 300])
    assert_is_lower_factor(new, A[np.ix_(kept, kept)])


def test_cutting_off_the_end_copies_nothing():
    A = matrix(300)
    old = factor_of(A)
    new = old.delete(np.arange(200, 300))
    assert [a is b for a, b in zip(new.panels, old.panels, strict=False)] == [True, True]
    assert_is_lower_factor(new, A[:200, :200])


@pytest.mark.parametrize("k", [1, 2, 16, 17, 60])
@pytest.mark.parametrize("first", [0, 5, PANEL - 1, PANEL, 200])
def test_rotations_and_reflectors_agree(k, first, monkeypatch):
    A = matrix(300)
    rows = np.sort(np.random.default_rng(k).permutation(np.arange(first, 300))[:k])
    rows[0] = first
    kept = np.delete(np.arange(300), rows)
    for sweeps in (0, 1000):
        monkeypatch.setattr(removal, "_SWEEPS", sweeps)
        assert_is_lower_factor(factor_of(A).delete(rows), A[np.ix_(kept, kept)])


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_makes_the_same_factor_and_answers(threads, monkeypatch):
    n, k = 700, 40
    A, B = matrix(n), np.random.default_rng(1).normal(size=(n, 130))
    monkeypatch.setattr(tasks, "FEW", 1)
    monkeypatch.setattr(tasks, "blas_threads", lambda: threads)
    whole = factor_of(A[:300, :300]).append(A[:300, 300:], A[300:, 300:])
    assert_is_lower_factor(whole, A)
    assert_solves(whole.solve(B), np.linalg.solve(A, B), A, B)
    inverse = np.linalg.inv(A)
    assert_solves(np.diag(whole.inverse_diagonal()), np.diag(np.diagonal(inverse)), A, np.eye(n))
    H = whole.forward(B)
    for first in (0, 200):
        rows = np.append(first, first + 1 + np.random.default_rng(2).permutation(400)[: k - 1])
        kept = np.delete(np.arange(n), rows)
        for sweeps in (0, 1000):
            monkeypatch.setattr(removal, "_SWEEPS", sweeps)
            left, turned = whole.without(rows, H)
            C = A[np.ix_(kept, kept)]
            assert_is_lower_factor(left, C)
            solved = left.backward(left.forward(B[kept], turned))
            assert_solves(solved, np.linalg.solve(C, B[kept]), C, B[kept])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_compiled_solve_is_that_of_blas(dtype, monkeypatch):
    A, b = matrix(300).astype(dtype), np.random.default_rng(1).normal(size=(300, 1)).astype(dtype)
    empty = Cholesky(np.dtype(dtype))
    factor = empty.append(np.empty((0, 300), dtype), A)
    want = np.linalg.solve(factor.lower().astype(float), b)
    for cached in (0, 1000):
        monkeypatch.setattr(cholesky, "_CACHED", cached)
        roundings = 100 * np.finfo(dtype).eps / np.finfo(float).eps
        assert_rounded(factor.forward(b), want, roundings)


def test_a_pivot_that_is_only_rounding_counts_as_none():
    A = matrix(50)
    twin = np.vstack([A, A[7]])
    twin = np.hstack([twin, np.append(A[7], A[7, 7])[:, None]])
    with pytest.raises(NotPositiveDefinite, match="The pivot of row 50 vanishes"):
        factor_of(A).append(twin[:50, 50:], twin[50:, 50:])


def test_a_pivot_of_one_rounding_counts_as_none():
    eps = np.finfo(float).eps
    with pytest.raises(NotPositiveDefinite):
        factor_of(np.array([[1.0, 1.0], [1.0, 1.0 + eps]]))
    assert factor_of(np.array([[1.0, 1.0], [1.0, 1.0 + 8 * eps]])).size == 2


def test_deleting_nothing_is_the_same_factor():
    old = factor_of(matrix(10))
    assert old.delete(np.array([], dtype=int)).panels == old.panels


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_diagonal_of_the_inverse_follows_appends(dtype, monkeypatch):
    A = matrix(300)
    factor = Cholesky(np.dtype(dtype)).append(np.empty((0, 280)), A[:280, :280])
    factor.inverse_diagonal()
    # Rows that came before anybody asked again, one by one and at once.
    for end in (281, 282, 290, 300):
        begin = factor.size
        factor = factor.append(A[:begin, begin:end], A[begin:end, begin:end])
        if end == 282:
            monkeypatch.setattr(Cholesky, "forward", None)
            factor.inverse_diagonal()
            monkeypatch.undo()
    roundings = 100 * np.linalg.cond(A) * np.finfo(dtype).eps / np.finfo(float).eps
    assert_rounded(factor.inverse_diagonal(), np.diagonal(np.linalg.inv(A)), roundings)
    # After a deletion, or an append of many, it is computed anew.
    kept = np.arange(300) != 7
    without = factor.delete(np.array([7])).inverse_diagonal()
    assert_rounded(without, np.diagonal(np.linalg.inv(A[np.ix_(kept, kept)])), roundings)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 16, 17, PANEL, PANEL + 1, 2 * PANEL, 2 * PANEL + 1, 300])
def test_one_row_goes_in_one_pass_as_several_do(n, dtype):
    A, B = matrix(n), np.random.default_rng(1).normal(size=(n, 3))
    factor = Cholesky(dtype=np.dtype(dtype)).append(np.empty((0, n)), A)
    before, half = factor.lower(), factor.forward(B)
    roundings = 10 * n * np.finfo(dtype).eps / np.finfo(float).eps
    for row in {0, 1, n // 2, n - 2, min(PANEL, n - 2), min(PANEL - 1, n - 2)}:
        for known in {0, row, row + 1, n // 2, n}:
            one, H = factor.without(np.array([row]), half[:known])
            removing = removal._Removal(factor.panels, np.array([row]), n, half[:known])
            several = removing.rotated()
            L = Cholesky(one.dtype, n - 1, (*factor.panels[: row // PANEL], *several)).lower()
            assert_rounded(one.lower(), L, roundings)
            assert_rounded(H, removing.H, roundings)
    assert np.array_equal(factor.lower(), before)


@pytest.mark.parametrize("rows", [[3], [127], [128], [3, 5], [0, 128, 129], [*range(0, 100, 9)]])
def test_the_loops_stay_within_their_arrays(rows, monkeypatch):
    # Python refuses an index that compiled code would read.
    loops = sweep
    monkeypatch.setattr(removal, "sweep", lambda dtype: loops)
    A, B = matrix(2 * PANEL + 4), np.ones((2 * PANEL + 4, 1))
    factor = factor_of(A)
    kept = np.delete(np.arange(len(A)), rows)
    left, _ = factor.without(np.array(rows), factor.forward(B))
    assert_is_lower_factor(left, A[np.ix_(kept, kept)])
