"""Gram blocks are scikit-learn's values, to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from threadpoolctl import threadpool_limits
from tolerance import assert_rounded

from knowmore.errors import InvalidInput
from knowmore.kernels import corner, cross, diagonal, is_positive, median_rbf, squared_distances

KERNELS = [
    RBF(2.0),
    RBF([0.5, 1.0, 2.0, 4.0, 8.0]),
    RBF(0.05),
    Matern(1.3, nu=0.5),
    Matern(1.3, nu=1.5),
    Matern([0.5, 1.0, 2.0, 4.0, 8.0], nu=2.5),
    Matern(1.0, nu=np.inf),
    Matern(1.0, nu=0.8),
    RationalQuadratic(1.5, 0.7),
    DotProduct(0.3),
    ConstantKernel(2.0),
    WhiteKernel(0.3),
    ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1),
    RBF(1.0) * DotProduct(1.0) * WhiteKernel(0.5) + Matern(),
    DotProduct(1.0) ** 2,
    ExpSineSquared(),
]


def inputs(offset):
    """Rows of all kinds: far, near, equal."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 5)) + offset
    Y = np.vstack([rng.normal(size=(40, 5)) + offset, X[:5], X[5:10] + 1e-5])
    return X, Y


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_blocks_equal_scikit_learn(kernel, offset):
    X, Y = inputs(offset)
    scale = kernel.diag(X).max()
    # scikit-learn divides by the length scale first, which rounds the inputs themselves.
    roundings = 100 * (1 + abs(X).max())
    for A, B in [(X, Y), (X[:1], Y), (X, Y[:1]), (X, X[:0])]:
        assert_rounded(cross(kernel, A, B), kernel(A, B), roundings, scale)
    assert_rounded(corner(kernel, X), kernel(X), roundings, scale)
    assert_rounded(diagonal(kernel, X), np.diagonal(kernel(X)), roundings, scale)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_corners_are_symmetric_to_the_last_bit(kernel):
    K = corner(kernel, inputs(0.0)[0])
    np.testing.assert_array_equal(K, K.T)


def test_a_callable_is_a_kernel():
    def laplace(A, B):
        return np.exp(-cdist(A, B, "cityblock"))

    X, Y = inputs(0.0)
    np.testing.assert_array_equal(cross(laplace, X, Y), laplace(X, Y))
    assert_rounded(corner(laplace, X), laplace(X, X))
    np.testing.assert_array_equal(diagonal(laplace, X), np.ones(60))
    assert diagonal(laplace, X[:0]).shape == (0,)


def test_a_block_of_the_wrong_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"block of shape \(60, 50\) and gave \(60,\)"):
        cross(lambda A, B: A[:, 0], *inputs(0.0))


def test_what_is_known_to_be_positive():
    assert is_positive(ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1) ** 2)
    assert not is_positive(PairwiseKernel(metric="sigmoid") + RBF())
    assert not is_positive(ConstantKernel(-1.0) * RBF(1.0))
    assert not is_positive(RBF(1.0) ** 0.5)
    assert not is_positive(lambda A, B: A @ B.T)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_squared_distances_keep_their_digits(offset):
    X, Y = inputs(offset)
    want = cdist(X, Y, "sqeuclidean")
    got = squared_distances(X, Y, 1.0)
    assert (abs(got - want) <= 1000 * np.finfo(float).eps * want).all()
    crowd = X[:1] + 1e-7 * np.random.default_rng(0).normal(size=(50, 5))
    np.testing.assert_array_equal(squared_distances(X, crowd, 1.0).shape, (60, 50))
    assert_rounded(squared_distances(crowd, crowd, 1.0), cdist(crowd, crowd, "sqeuclidean"))


def test_a_crowd_does_not_change_the_distances_of_others():
    rng = np.random.default_rng(0)
    Y = np.vstack([rng.normal(size=(40, 5)), 100 + 1e-3 * rng.normal(size=(40, 5))])
    others = 100 * rng.normal(size=(32, 5))
    for beside in (others, Y[40:72]):
        X = np.vstack([others, beside])
        got = squared_distances(X, Y, 1.0)
        assert_rounded(got, cdist(X, Y, "sqeuclidean"), 1000)
        assert (got[:32] == squared_distances(np.vstack([others, others]), Y, 1.0)[:32]).all()


def test_the_default_length_scale_is_the_median_distance():
    X = np.random.default_rng(1).normal(size=(100, 3))
    D = cdist(X, X)
    median = np.median(D[np.triu_indices(100, 1)])
    assert_rounded(median_rbf(X).length_scale, median)
    assert median_rbf(np.ones((5, 2))).length_scale == 1.0
    assert median_rbf(np.ones((1, 2))).length_scale == 1.0


@pytest.mark.parametrize("threads", [1, 2])
def test_a_block_of_several_strips_is_that_of_scikit_learn(threads):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(700, 3)), rng.normal(size=(400, 3))
    # Rows that are near to others, one among many of them, and one that is far away.
    X[:2], Y[0], X[3] = Y[7] + 1e-9, Y[7] + 1e-7, 1e6
    Y[20:80] = X[4] + 1e-8 * rng.normal(size=(60, 3))
    with threadpool_limits(threads, user_api="blas"):
        for kernel in (RBF(1.5), Matern(1.5, nu=1.5), 2.0 * RBF([1.0, 2.0, 3.0]) + WhiteKernel()):
            assert_rounded(cross(kernel, X, Y), kernel(X, Y))
        K = DotProduct()(X[4:], Y)
        assert_rounded(cross(DotProduct(), X[4:], Y), K)
