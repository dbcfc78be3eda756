"""Gradients of kernels against scikit-learn, an integral, and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from tolerance import assert_rounded

from knowmore.kernels import (
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
    On,
    Task,
    corner,
)
from knowmore.kernels.rules import prepared

EPS = np.finfo(float).eps
KERNELS = [
    RBF(1.5),
    RBF([0.5, 1.0, 2.0]),
    Matern(1.2, nu=0.5),
    Matern([1.2, 0.7, 2.0], nu=0.5),
    Matern(1.2, nu=1.5),
    Matern([1.2, 0.7, 2.0], nu=1.5),
    Matern(1.2, nu=2.5),
    Matern([1.2, 0.7, 2.0], nu=2.5),
    Matern(1.2, nu=np.inf),
    RationalQuadratic(1.1, 0.6),
    RationalQuadratic(1.1, 0.6, alpha_bounds="fixed"),
    RationalQuadratic(1.1, 0.6, length_scale_bounds="fixed"),
    ExpSineSquared(1.1, 0.6),
    ExpSineSquared(1.1, 0.6, periodicity_bounds="fixed"),
    ExpSineSquared(1.1, 0.6, length_scale_bounds="fixed"),
    DotProduct(0.7),
    ConstantKernel(0.3),
    WhiteKernel(0.2),
    ChiSquared(0.4),
    ExponentialIntersection(0.4),
    Task(0.3),
    ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.01),
    RBF(1.0) * DotProduct(0.5) + ConstantKernel(0.1) * HistogramIntersection(),
    RationalQuadratic(2.0, 0.5) * ExpSineSquared(0.8, 1.5) + ConstantKernel(0.1),
    (DotProduct(1.0) + RBF(2.0)) ** 2,
    ConstantKernel(0.4) * On(slice(0, 2), RBF([0.8, 1.5])) + On(slice(2, 3), Matern(1.0, nu=1.5)),
    ConstantKernel(2.0, "fixed") * RBF(1.0) * RBF(3.0, "fixed"),
]
# scikit-learn differentiates these orders numerically.
ODD_ORDERS = [Matern(1.2, nu=nu) for nu in (0.8, 1.0, 1.2, 3.0, 19.0)]
ODD_ORDERS += [Matern([1.2, 0.7, 2.0], nu=0.8)]
# It has no correct value at a distance of zero below an order of 1/2, and none above about 100.
OTHERS = [Matern(1.2, nu=nu) for nu in (0.1, 0.3, 20.5, 300.0)]


def inputs(n=25, seed=0):
    """Rows that are not negative, for histograms; two of them alike."""
    X = abs(np.random.default_rng(seed).normal(size=(n, 3)))
    X[-1] = X[0]
    return X


def weights(n=25):
    W = np.random.default_rng(1).normal(size=(n, n))
    return W + W.T


def pulled(kernel, X, W):
    """K and <W, dK / d theta>, prepared at other parameters: nothing of theta may be kept."""
    K, pull = prepared(kernel.clone_with_theta(kernel.theta + 0.3), X)(kernel)
    return np.broadcast_to(K, (len(X), len(X))), pull(W)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sums_are_those_of_scikit_learn_s_gradient(kernel):
    X, W = inputs(), weights()
    K, sums = pulled(kernel, X, W)
    want, gradient = kernel(X, eval_gradient=True)
    assert_rounded(K, want)
    assert_rounded(K, corner(kernel, X))
    for got, dK in zip(sums, np.moveaxis(gradient, 2, 0), strict=True):
        assert_rounded(got, np.vdot(W, dK), scale=np.vdot(abs(W), abs(dK)) + abs(W).max())


@pytest.mark.parametrize("kernel", ODD_ORDERS, ids=repr)
def test_sums_are_those_of_scikit_learn_s_differences(kernel):
    X, W = inputs(), weights()
    K, sums = pulled(kernel, X, W)
    want, gradient = kernel(X, eval_gradient=True)
    assert_rounded(K, want, 1000)
    assert_rounded(K, corner(kernel, X), 1000)
    # It takes differences of K, each a thousand roundings off, over a step of 1e-10.
    assert_rounded(sums, np.tensordot(W, gradient, 2), 2000, abs(W).sum() / 1e-10)


@pytest.mark.parametrize("kernel", KERNELS + ODD_ORDERS + OTHERS, ids=repr)
def test_sums_are_those_of_finite_differences(kernel):
    X, W = inputs(), weights()
    _, sums = pulled(kernel, X, W)
    scale = np.vdot(abs(W), abs(corner(kernel, X)))

    def difference(step):
        up, down = (corner(kernel.clone_with_theta(kernel.theta + s), X) for s in (step, -step))
        return np.vdot(W, up - down) / (2 * np.linalg.norm(step))

    for axis, got in zip(np.eye(len(sums)), sums, strict=True):
        # Halving the step shows what is left of its error, and the rounding of K counts over it.
        h = 1e-3
        coarse, fine = difference(h * axis), difference(h / 2 * axis)
        assert abs(got - fine) <= abs(coarse - fine) + 100 * EPS * scale / h


@pytest.mark.parametrize(
    "kernel", [RationalQuadratic(1.1, 0.6), ExpSineSquared(1.1, 0.6)], ids=repr
)
def test_scikit_learn_is_not_asked_for_the_gradients_of_kernels_with_rules(kernel, monkeypatch):
    X, W = inputs(), weights()
    want = pulled(kernel, X, W)[1]

    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr(type(kernel), "__call__", never)
    np.testing.assert_array_equal(pulled(kernel, X, W)[1], want)


def test_no_matrix_is_made_for_each_length_scale(monkeypatch):
    def never(*_, **__):
        raise AssertionError

    kernel = ConstantKernel(0.5) * RBF(np.ones(3)) + Matern(np.ones(3), nu=1.5)
    for one in RBF, Matern, ConstantKernel:
        monkeypatch.setattr(one, "__call__", never)
    _, pull = prepared(kernel, inputs())(kernel)
    assert pull(np.ones((25, 25))).shape == (7,)


def test_a_subclass_is_asked_itself():
    class Halved(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            if eval_gradient:
                K, gradient = super().__call__(X, Y, eval_gradient)
                return K / 2, gradient / 2
            return super().__call__(X, Y) / 2

        def diag(self, X):
            return super().diag(X) / 2

    X, W = inputs(), weights()
    (K, sums), (whole, twice) = pulled(Halved(1.5), X, W), pulled(RBF(1.5), X, W)
    assert_rounded(2 * K, whole)
    assert_rounded(corner(Halved(1.5), X), K)
    assert_rounded(2 * sums, twice, scale=abs(W).sum())
