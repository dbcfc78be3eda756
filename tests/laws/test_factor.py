"""The laws of a Factor, on every representation: it is the matrix that its history says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import row_sets, seeds, spd_matrices
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import Cholesky, Inverse

FACTORS = {"cholesky": Cholesky, "inverse": Inverse}
both = pytest.mark.parametrize("solver", FACTORS)


def grown(solver, A, sizes):
    """The factor of A, appended in blocks of the given sizes."""
    factor = FACTORS[solver]()
    begin = 0
    for k in [*sizes, len(A)]:
        end = min(begin + k, len(A))
        if end > begin:
            factor = factor.append(A[:begin, begin:end], A[begin:end, begin:end])
        begin = end
    return factor


def assert_is_factor_of(factor, A, solver, seed=0):
    """All six verbs agree with A."""
    n = len(A)
    rng = np.random.default_rng(seed)
    B, C = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    assert factor.size == n
    solution = np.linalg.solve(A, B)
    assert_solves(factor.solve(B), solution, A, B, solver=solver)
    assert_solves(factor.backward(factor.forward(B)), solution, A, B, solver=solver)
    half = factor.half_solve(B).T @ factor.half_solve(C)
    assert_solves(half, B.T @ np.linalg.solve(A, C), A, C, solver=solver, left=B)
    P = np.linalg.inv(A)
    assert_solves(
        np.diag(factor.inverse_diagonal()), np.diag(np.diagonal(P)), A, np.eye(n), solver=solver
    )
    # Each pivot is off by a part of itself, and the logarithms of n pivots are added up.
    pivots = np.log(np.diagonal(np.linalg.cholesky(A)))
    error = n * tolerance(A, solver) + n * np.finfo(float).eps * abs(pivots).sum()
    assert abs(factor.logdet() - 2 * pivots.sum()) <= error


@both
@settings(max_examples=40)
@given(A=spd_matrices(), sizes=st.lists(st.integers(1, 150), max_size=4), single=st.booleans())
def test_any_blocks_give_the_factor_of_the_whole(solver, A, sizes, single):
    ones = [1] * (len(A) - sum(sizes)) if single else []
    assert_is_factor_of(grown(solver, A, [*sizes, *ones]), A, solver)


@both
@settings(max_examples=60)
@given(data=st.data(), A=spd_matrices(min_size=2), single=st.booleans())
def test_deleting_rows_gives_the_factor_of_the_rest(solver, data, A, single):
    rows = data.draw(row_sets(len(A)))
    kept = np.setdiff1d(np.arange(len(A)), rows)
    factor = grown(solver, A, [100])
    for some in np.unique(rows)[::-1, None] if single else [rows]:
        factor = factor.delete(some)
    assert_is_factor_of(factor, A[np.ix_(kept, kept)], solver)


@both
@settings(max_examples=20)
@given(data=st.data(), A=spd_matrices(min_size=2), seed=seeds)
def test_append_undoes_delete(solver, data, A, seed):
    rows = data.draw(row_sets(len(A)))
    kept = np.setdiff1d(np.arange(len(A)), rows)
    rows = np.unique(rows)
    factor = grown(solver, A, []).delete(rows)
    factor = factor.append(A[np.ix_(kept, rows)], A[np.ix_(rows, rows)])
    order = np.concatenate([kept, rows])
    assert_is_factor_of(factor, A[np.ix_(order, order)], solver, seed)


@both
@settings(max_examples=20)
@given(A=spd_matrices(min_size=3), known=st.integers(0, 300), seed=seeds)
def test_a_known_head_is_extended(solver, A, known, seed):
    factor = grown(solver, A, [])
    B = np.random.default_rng(seed).normal(size=(len(A), 2))
    whole = factor.forward(B)
    again = factor.forward(B, whole[: min(known, len(A))])
    assert_rounded(again, whole, roundings=100 * np.linalg.cond(A))


@both
@settings(max_examples=20)
@given(A=spd_matrices(min_size=3), known=st.integers(0, 300), seed=seeds)
def test_rows_behind_a_head_are_found_without_it(solver, A, known, seed):
    factor, h = grown(solver, A, []), min(known, len(A) - 1)
    B = np.random.default_rng(seed).normal(size=(len(A), 2))
    whole = factor.forward(B)
    assert_rounded(
        factor.extend(whole[:h], B[h:]),
        whole[h:],
        roundings=100 * np.linalg.cond(A),
        scale=abs(whole).max(),
    )


@both
@settings(max_examples=40)
@given(A=spd_matrices(min_size=3), data=st.data(), known=st.integers(0, 300), seed=seeds)
def test_what_was_half_solved_loses_rows_with_the_factor(solver, A, data, known, seed):
    factor, rows = grown(solver, A, []), data.draw(row_sets(len(A)))
    B = np.random.default_rng(seed).normal(size=(len(A), 3))
    head = factor.forward(B)[:known]
    kept = np.delete(np.arange(len(A)), rows)
    left, H = factor.without(rows, head)
    assert left.size == len(kept)
    solution = left.backward(left.forward(B[kept], H))
    R = A[np.ix_(kept, kept)]
    assert_solves(solution, np.linalg.solve(R, B[kept]), A, B, solver=solver)
    if known >= len(A) and len(rows) <= 64:
        assert len(H) == len(kept)


@both
def test_old_values_are_unchanged_when_two_grow_from_one(solver):
    rng = np.random.default_rng(3)
    Q = rng.normal(size=(200, 200))
    A = Q @ Q.T + 200 * np.eye(200)
    old = grown(solver, A[:130, :130], [])
    before = old.solve(np.eye(130))
    first = old.append(A[:130, 130:150], A[130:150, 130:150])
    second = old.append(A[:130, 150:], A[150:, 150:])
    third = old.delete(np.array([0, 64, 129]))
    np.testing.assert_array_equal(old.solve(np.eye(130)), before)
    assert_is_factor_of(first, A[:150, :150], solver)
    rest = np.r_[0:130, 150:200]
    assert_is_factor_of(second, A[np.ix_(rest, rest)], solver)
    kept = np.setdiff1d(np.arange(130), [0, 64, 129])
    assert_is_factor_of(third, A[np.ix_(kept, kept)], solver)


@both
def test_it_shrinks_to_nothing_and_grows_again(solver):
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    factor = grown(solver, A, []).delete(np.array([0, 1]))
    assert factor.size == 0
    assert factor.solve(np.empty((0, 2))).shape == (0, 2)
    assert factor.logdet() == 0
    assert_is_factor_of(factor.append(np.empty((0, 2)), A), A, solver)


@both
def test_a_singular_matrix_is_refused_with_its_row(solver):
    A = np.ones((3, 3)) + np.diag([1.0, 1.0, 0.0])
    A[2] = A[:, 2] = A[1]
    A[2, 2] = A[1, 1]
    factor = grown(solver, A[:2, :2], [])
    with pytest.raises(NotPositiveDefinite) as caught:
        factor.append(A[:2, 2:], A[2:, 2:])
    assert caught.value.row == 2


@both
def test_it_survives_pickling(solver):
    rng = np.random.default_rng(5)
    Q = rng.normal(size=(150, 150))
    A = Q @ Q.T + np.eye(150)
    factor = grown(solver, A, [140])
    copy = pickle.loads(pickle.dumps(factor))
    np.testing.assert_array_equal(copy.solve(np.eye(150)), factor.solve(np.eye(150)))


@both
def test_float32_stays_float32_and_as_good_as_that(solver):
    rng = np.random.default_rng(7)
    Q = rng.normal(size=(150, 150))
    A = (Q @ Q.T + 150 * np.eye(150)).astype(np.float32)
    factor = FACTORS[solver](dtype=np.dtype(np.float32))
    factor = factor.append(np.empty((0, 140)), A[:140, :140])
    factor = factor.append(A[:140, 140:], A[140:, 140:]).delete(np.array([3, 77]))
    kept = np.setdiff1d(np.arange(150), [3, 77])
    A = A[np.ix_(kept, kept)].astype(float)
    B = rng.normal(size=(148, 2))
    solution = factor.solve(B)
    assert solution.dtype == np.float32
    assert_solves(solution, np.linalg.solve(A, B), A, B, solver=solver, dtype=np.float32)
