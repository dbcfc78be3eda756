"""Products and decompositions are NumPy's and SciPy's, on the threads that they deserve."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore.linalg.factor import lost_pivots
from knowmore.linalg.products import eigh, evaluated, inverse, product, svd
from knowmore.linalg.threads import FEW

RNG = np.random.default_rng(0)


def matrix(n):
    Q = RNG.normal(size=(n, n))
    return Q @ Q.T + n * np.eye(n)


def threads_of_numpy():
    return {
        info["num_threads"]
        for info in threadpool_info()
        if info["user_api"] == "blas" and "numpy" in info["filepath"]
    }


@pytest.mark.parametrize("rows", [1, 200])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (300,), (300, 50)])
def test_a_product_is_that_of_numpy(shape, rows):
    A, B = RNG.normal(size=(rows, shape[0])), RNG.normal(size=shape)
    np.testing.assert_array_equal(product(A, B), A @ B)


def test_steps_that_belong_together_get_the_threads_of_the_whole():
    with threadpool_limits(2, user_api="blas"):
        for numbers, columns, threads in ((10, 2, 1), (FEW, 1, 1), (FEW, 2, 2)):
            assert evaluated(threads_of_numpy, numbers, columns) == {threads}
        assert threads_of_numpy() == {2}


def test_decompositions_are_those_of_their_matrix():
    A = matrix(40)
    # LAPACK's is a hundred roundings of the largest value, and a product of n terms n more.
    roundings, largest = 100 + 40, np.linalg.norm(A, 2)
    values, vectors = eigh(A)
    assert (np.diff(values) >= 0).all()
    assert_rounded((vectors * values) @ vectors.T, A, roundings, largest)
    U, s, Vt = svd(A[:, :7])
    assert (U.shape, s.shape, Vt.shape) == ((40, 7), (7,), (7, 7))
    assert_rounded((U * s) @ Vt, A[:, :7], roundings, largest)


def test_an_inverse_comes_with_its_pivots():
    A = matrix(40)
    P, pivots = inverse(A.copy())
    assert (P == P.T).all()
    assert_solves(P, np.linalg.inv(A), A, np.eye(40))
    # A pivot is one over an element of the inverse of leading rows, whose condition is no worse.
    want = np.diagonal(np.linalg.cholesky(A)) ** 2
    assert (abs(pivots / want - 1) <= tolerance(A)).all()
    assert inverse(-A) is None


def test_a_pivot_of_as_much_as_rounding_is_lost():
    eps = np.finfo(float).eps
    pivots = np.array([1.0, 10 * eps, 9 * eps, np.nan, -1.0])
    assert lost_pivots(pivots, 1.0, 9, float).tolist() == [False, False, True, True, True]
    assert lost_pivots(pivots[:2], 2.0, 9, float).tolist() == [False, True]
    assert lost_pivots(1e-6, 1.0, 9, np.float32)
