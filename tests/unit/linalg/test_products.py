"""Products and decompositions are NumPy's and SciPy's, on the threads that they deserve."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from knowmore.linalg import Cholesky
from knowmore.linalg.factor import grown, lost_pivots
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


@pytest.mark.parametrize("shape", [(3,), (3, 2), (300,), (300, 50)])
def test_a_product_is_that_of_numpy(shape):
    A, B = RNG.normal(size=(200, shape[0])), RNG.normal(size=shape)
    np.testing.assert_array_equal(product(A, B), A @ B)


def test_steps_that_belong_together_get_the_threads_of_the_whole():
    with threadpool_limits(2, user_api="blas"):
        for numbers, columns, threads in ((10, 2, 1), (FEW, 1, 1), (FEW, 2, 2)):
            assert evaluated(threads_of_numpy, numbers, columns) == {threads}
        assert threads_of_numpy() == {2}


def test_blocks_appended_to_a_factor_may_be_lazy():
    A, seen = matrix(20), []

    def blocks():
        for i in range(0, 20, 5):
            seen.append(threads_of_numpy())
            yield A[:i, i : i + 5], A[i : i + 5, i : i + 5]

    with threadpool_limits(2, user_api="blas"):
        factor = grown(Cholesky(), blocks(), 20)
    whole = Cholesky().append(np.empty((0, 20)), A)
    np.testing.assert_allclose(factor.lower(), whole.lower(), rtol=100 * np.finfo(float).eps)
    assert seen == 4 * [{1}]


def test_decompositions_are_those_of_their_matrix():
    A = matrix(40)
    error = 1e3 * np.finfo(float).eps * np.linalg.norm(A)
    values, vectors = eigh(A)
    assert (np.diff(values) >= 0).all()
    assert abs((vectors * values) @ vectors.T - A).max() <= error
    U, s, Vt = svd(A[:, :7])
    assert (U.shape, s.shape, Vt.shape) == ((40, 7), (7,), (7, 7))
    assert abs((U * s) @ Vt - A[:, :7]).max() <= error


def test_an_inverse_comes_with_its_pivots():
    A = matrix(40)
    P, pivots = inverse(A.copy())
    assert (P == P.T).all()
    assert abs(A @ P - np.eye(40)).max() <= 1e3 * np.finfo(float).eps * np.linalg.cond(A)
    np.testing.assert_allclose(pivots, np.diagonal(np.linalg.cholesky(A)) ** 2, rtol=1e-12)
    assert inverse(-A) is None


def test_a_pivot_of_as_much_as_rounding_is_lost():
    eps = np.finfo(float).eps
    pivots = np.array([1.0, 10 * eps, 9 * eps, np.nan, -1.0])
    assert lost_pivots(pivots, 1.0, 9, float).tolist() == [False, False, True, True, True]
    assert lost_pivots(pivots[:2], 2.0, 9, float).tolist() == [False, True]
    assert lost_pivots(1e-6, 1.0, 9, np.float32)
