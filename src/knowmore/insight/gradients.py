"""How a matrix of kernel values changes with the kernel's parameters, without a matrix for each.

A question about parameters needs only sums <W, dK / d theta_j> with one matrix W. Each kernel gives
K (n, n) and a `Pull` from W to all these sums at once; sums and products of kernels pass W on to
their parts. So memory stays at a few matrices, however many parameters there are. What no parameter
enters, distances above all, is computed once.

theta are scikit-learn's: the logarithms of the parameters that are not fixed, in its order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    Sum,
    WhiteKernel,
)

from knowmore.arrays import Array
from knowmore.kernels import (
    AnyKernel,
    ChiSquared,
    ExponentialIntersection,
    On,
    corner,
    squared_distances,
)
from knowmore.kernels.sums import Term, pair_sums
from knowmore.linalg.products import product

# From a symmetric W (n, n) to <W, dK / d theta>, (p,).
Pull = Callable[[Array], Array]
# From a kernel, the prepared one with other parameters, to K, (n, n) or one number for all pairs,
# not to be written to.
Gram = Callable[[Any], tuple[Array, Pull]]


def prepared(kernel: AnyKernel, X: Array) -> Gram:
    """What is needed to evaluate K and its gradient for kernels that differ in theta alone.

    >>> X = np.array([[0.0], [1.0]])
    >>> K, pull = prepared(RBF(1.0), X)(RBF(2.0))
    >>> pull(np.ones((2, 2))), RBF(2.0)(X, eval_gradient=True)[1].sum(axis=(0, 1))
    (array([0.44124845]), array([0.44124845]))
    """
    if not isinstance(kernel, Kernel) or kernel.n_dims == 0:
        K = corner(kernel, X)
        return lambda _: (K, lambda _: np.empty(0))
    return _RULES.get(type(kernel), _asked)(kernel, X)


def _asked(kernel: Kernel, X: Array) -> Gram:
    """Any other kernel is asked for its gradient: n x n x p numbers for its own p parameters."""

    def gram(kernel: Kernel) -> tuple[Array, Pull]:
        K, gradient = kernel(X, eval_gradient=True)
        return np.asarray(K), lambda W: np.tensordot(W, gradient, 2)

    return gram


def _sum(kernel: Sum, X: Array) -> Gram:
    one, other = prepared(kernel.k1, X), prepared(kernel.k2, X)

    def gram(kernel: Sum) -> tuple[Array, Pull]:
        (K1, pull1), (K2, pull2) = one(kernel.k1), other(kernel.k2)
        return K1 + K2, lambda W: np.concatenate([pull1(W), pull2(W)])

    return gram


def _product(kernel: Product, X: Array) -> Gram:
    one, other = prepared(kernel.k1, X), prepared(kernel.k2, X)

    def gram(kernel: Product) -> tuple[Array, Pull]:
        (K1, pull1), (K2, pull2) = one(kernel.k1), other(kernel.k2)
        return K1 * K2, lambda W: np.concatenate([pull1(W * K2), pull2(W * K1)])

    return gram


def _power(kernel: Exponentiation, X: Array) -> Gram:
    base = prepared(kernel.kernel, X)

    def gram(kernel: Exponentiation) -> tuple[Array, Pull]:
        K, pull = base(kernel.kernel)
        e = kernel.exponent
        # Where the base is zero so is its slope: a root's, which has a pole there, is not asked.
        S = np.power(K, e - 1, out=np.zeros_like(K), where=(K != 0) | (e >= 1))
        return K**e, lambda W: pull(e * W * S)

    return gram


def _on(kernel: On, X: Array) -> Gram:
    inner = prepared(kernel.kernel, kernel.of(X))
    return lambda kernel: inner(kernel.kernel)


def _constant(kernel: ConstantKernel, X: Array) -> Gram:
    def gram(kernel: ConstantKernel) -> tuple[Array, Pull]:
        c = float(kernel.constant_value)
        return np.array(c), lambda W: np.array([c * W.sum()])

    return gram


def _white(kernel: WhiteKernel, X: Array) -> Gram:
    eye = np.eye(len(X))

    def gram(kernel: WhiteKernel) -> tuple[Array, Pull]:
        level = kernel.noise_level
        return level * eye, lambda W: np.array([level * np.trace(W)])

    return gram


def _dot_product(kernel: DotProduct, X: Array) -> Gram:
    G = X @ X.T

    def gram(kernel: DotProduct) -> tuple[Array, Pull]:
        square = kernel.sigma_0**2
        return G + square, lambda W: np.array([2 * square * W.sum()])

    return gram


def _decay(distance: Term) -> Callable[[Kernel, Array], Gram]:
    """exp(-gamma D)."""

    def rule(kernel: Kernel, X: Array) -> Gram:
        D = pair_sums(distance, X)

        def gram(kernel: Any) -> tuple[Array, Pull]:
            gamma = float(kernel.gamma)
            K = np.exp(-gamma * D)
            return K, lambda W: np.array([-gamma * _inner(W, K, D)])

        return gram

    return rule


def _stationary(kernel: Any, X: Array) -> Gram:
    """f(D2), D2 the squared distances in units of one length scale or of one for each feature.

    With S = -2 f'(D2): dK / d log l = S o D2, and dK / d log l_j = S o (x_j - y_j)^2 / l_j^2.
    """
    if getattr(kernel, "nu", np.inf) not in _PROFILES:
        return _asked(kernel, X)
    X = X - X.mean(axis=0)
    if kernel.anisotropic:
        return lambda kernel: _by_feature(kernel, X)
    D2 = squared_distances(X, X, 1.0)
    D2 = (D2 + D2.T) / 2

    def gram(kernel: Any) -> tuple[Array, Pull]:
        square = float(np.squeeze(kernel.length_scale)) ** 2
        K, S = _profile(kernel, D2 / square)
        return K, lambda W: np.array([_inner(W, S, D2) / square])

    return gram


def _by_feature(kernel: Any, X: Array) -> tuple[Array, Pull]:
    D2 = squared_distances(X, X, kernel.length_scale)
    K, S = _profile(kernel, (D2 + D2.T) / 2)
    Z = X / kernel.length_scale

    def pull(W: Array) -> Array:
        """sum_ik V_ik (z_ij - z_kj)^2 for each feature j, V = W o S symmetric."""
        V = W * S
        VZ = product(V, Z)
        return np.asarray(2 * (V.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, VZ)))

    return K, pull


def _profile(kernel: Any, D2: Array) -> tuple[Array, Array]:
    """f(D2) and -2 f'(D2)."""
    return _PROFILES[getattr(kernel, "nu", np.inf)](D2)


def _gaussian(D2: Array) -> tuple[Array, Array]:
    K = np.exp(-0.5 * D2)
    return K, K


def _half(D2: Array) -> tuple[Array, Array]:
    """exp(-r), r the distance. Its slope has a pole at zero, but is only taken times D2."""
    r = np.sqrt(D2)
    K = np.exp(-r)
    return K, np.divide(K, r, out=np.zeros_like(K), where=r > 0)


def _three_halves(D2: Array) -> tuple[Array, Array]:
    r = np.sqrt(3 * D2)
    E = np.exp(-r)
    return (1 + r) * E, 3 * E


def _five_halves(D2: Array) -> tuple[Array, Array]:
    r = np.sqrt(5 * D2)
    E = np.exp(-r)
    return (1 + r + r**2 / 3) * E, 5 / 3 * (1 + r) * E


def _inner(A: Array, B: Array, C: Array) -> float:
    return float(np.einsum("ij,ij,ij->", A, B, C))


# By Matern's nu; infinity is RBF.
_PROFILES = {0.5: _half, 1.5: _three_halves, 2.5: _five_halves, np.inf: _gaussian}

# By the very type: a subclass may compute another thing.
_RULES: dict[type, Callable[[Any, Array], Gram]] = {
    Sum: _sum,
    Product: _product,
    Exponentiation: _power,
    On: _on,
    ConstantKernel: _constant,
    WhiteKernel: _white,
    DotProduct: _dot_product,
    ChiSquared: _decay(Term.DISTANCE),
    ExponentialIntersection: _decay(Term.DIFFERENCE),
    RBF: _stationary,
    Matern: _stationary,
}
