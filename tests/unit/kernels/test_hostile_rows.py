"""A kernel value is a matter of its own two rows, however large, small or many the others are."""

from __future__ import annotations

import numpy as np
import pytest
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
from tolerance import assert_rounded

from knowmore.errors import InvalidInput
from knowmore.kernels import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
    On,
    Task,
    corner,
    cross,
    diagonal,
    squared_distances,
)
from knowmore.kernels.distances import euclidean

HISTOGRAMS = [
    HistogramIntersection(),
    AdditiveChiSquared(),
    ChiSquared(0.3),
    ExponentialIntersection(0.3),
    On(slice(0, 2), ChiSquared()) + HistogramIntersection(),
]
BOUNDED = [
    RBF(2.0),
    RBF([0.5, 1.0, 2.0]),
    RBF(1e160),
    RBF(1e-160),
    RBF([1e-200, 1.0, 1e200]),
    *[Matern(1.3, nu=nu) for nu in (0.05, 0.5, 0.8, 1.5, 2.5, 7.0, 20.0, 100.0, np.inf)],
    Matern([1e-200, 1.0, 1e200], nu=1.5),
    RationalQuadratic(1.5, 0.7),
    RationalQuadratic(1.5, 0.01),
    ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1),
    RBF(1.0) ** 2,
    On(slice(0, 2), RBF(1.0)) * Task(0.5),
]
GROWING = [
    DotProduct(0.3),
    DotProduct(1.0) ** 2,
    RBF(1.0) * DotProduct(1.0) + Matern(),
    PairwiseKernel(metric="laplacian"),
    ExpSineSquared(),
]
SIZES = [1e6, 1e100, 1e154, 1e160, 1e300, 1e308, 1e-160, 1e-300, 5e-324, 0.0]


def rows(rng, n, signed=True):
    """Ordinary rows, (n, 3), then one of each hostile size, and mixtures of sizes."""
    X = rng.normal(size=(n, 3))
    wild = [[size, -size if i % 2 else size, 1.0] for i, size in enumerate(SIZES)]
    wild += [[1e300, 1e-300, 1.0], [-1e308, 1e308, 0.0]]
    X = np.vstack([X, wild])[rng.permutation(n + len(wild))]
    return X if signed else np.minimum(abs(X), 1e300)


def assert_independent(kernel, X, Y):
    """Is each value of a block what the kernel says of these two rows alone?"""
    K = cross(kernel, X, Y)
    alone = np.array([[cross(kernel, x[None], y[None])[0, 0] for y in Y] for x in X])
    # Products are rounded relative to the prior variances of the two rows; where these are beyond
    # the range nothing is promised but a value or an infinity.
    scale = np.sqrt(np.outer(diagonal(kernel, X), diagonal(kernel, Y)))
    sure = np.isfinite(scale)
    scale = scale[sure] + np.finfo(float).tiny
    assert_rounded(K[sure] / scale, alone[sure] / scale, 1000, 1.0)
    return K


@pytest.mark.parametrize("kernel", BOUNDED + GROWING + HISTOGRAMS, ids=str)
def test_values_do_not_depend_on_the_other_rows(kernel):
    rng = np.random.default_rng(3)
    signed = kernel not in HISTOGRAMS
    if isinstance(kernel, ExpSineSquared):
        # Beyond 1e16 periods a distance says nothing of where in its period it ends.
        assert_independent(kernel, rng.normal(size=(30, 3)) * 1e3, rng.normal(size=(20, 3)))
        return
    with np.errstate(over="ignore"):
        K = assert_independent(kernel, rows(rng, 30, signed), rows(rng, 20, signed))
    if kernel in BOUNDED:
        assert np.isfinite(K).all()


@pytest.mark.parametrize("kernel", BOUNDED, ids=str)
def test_a_bounded_kernel_is_finite_for_every_row(kernel):
    X = rows(np.random.default_rng(4), 40)
    K = corner(kernel, X)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(np.diagonal(K), diagonal(kernel, X))


def test_distances_reach_the_ends_of_the_range():
    X = np.array([[1e300, 0.0], [1e-300, 0.0], [1.7e308, -1.7e308], [3e-320, 4e-320]])
    zero = np.zeros((1, 2))
    np.testing.assert_array_equal(
        squared_distances(X, zero, 1.0)[:, 0] > [1e308, -1, 1e308, -1], [True, True, True, True]
    )
    assert_rounded(euclidean(X[:2], zero, 1.0)[:, 0] / [1e300, 1e-300], np.ones(2))
    assert_rounded(euclidean(X[[2]], zero, 1e308)[0, 0], 1.7 * np.sqrt(2))
    assert_rounded(euclidean(X[[2]], -X[[2]], 1e308)[0, 0], 3.4 * np.sqrt(2))
    # Numbers this small have three digits.
    assert abs(euclidean(X[[3]], zero, 1e-320)[0, 0] - 5) < 5e-3
    for apart in (squared_distances, euclidean):
        assert apart(X, X, 1e-300).max() == np.inf
        np.testing.assert_array_equal(np.diagonal(apart(X, X, 1e-300)), np.zeros(4))


def test_far_away_a_rational_quadratic_still_has_its_tail():
    K = cross(RationalQuadratic(1.0, 0.01), np.array([[1e160]]), np.array([[0.0]]))
    assert_rounded(K[0, 0], np.exp(-0.02 * (160 * np.log(10) - np.log(0.02) / 2)), 1000)


@pytest.mark.parametrize("kernel", [RBF, Matern, RationalQuadratic])
@pytest.mark.parametrize("length", [0.0, np.nan, np.inf])
def test_a_length_scale_that_divides_nothing_is_refused_at_the_first_row(kernel, length):
    for ask in (corner, diagonal):
        with pytest.raises(InvalidInput, match="give a finite number that is not zero"):
            ask(kernel(length), np.ones((1, 2)))


def test_the_number_of_length_scales_is_looked_at_with_the_first_row():
    for ask in (corner, diagonal):
        with pytest.raises(InvalidInput, match=r"2 length scales, but there are 3 features"):
            ask(RBF([1.0, 2.0]), np.ones((1, 3)))
    # As scikit-learn has it, a list of one is one for all.
    assert_rounded(corner(RBF([2.0]), np.eye(3)), RBF([2.0])(np.eye(3)))


def test_histograms_beyond_half_the_range_are_refused():
    X = np.array([[1.0, 2.0], [1.5e308, 1.0]])
    for kernel in HISTOGRAMS:
        with pytest.raises(InvalidInput, match=r"too large: 1.5e\+308 in row 1, column 0"):
            cross(kernel, X, X)
    K = HistogramIntersection()(np.array([[4e4]], dtype=np.float16))
    assert K == 4e4
