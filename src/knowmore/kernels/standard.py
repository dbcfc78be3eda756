"""The rules of scikit-learn's kernels: matrix products instead of its loops over pairs.

Each formula is scikit-learn's, so values are equal to rounding. A formula is written once and
serves both the blocks and the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as sk

from knowmore.arrays import Array
from knowmore.kernels import rules
from knowmore.kernels.distances import distances, products, squared_distances
from knowmore.kernels.matern import matern, matern_slope
from knowmore.kernels.rules import RULES, Pullback, Rule
from knowmore.linalg.threads import threads_for

# K = f(D2), S = -2 f'(D2), and dK / d log p by the name of each parameter p but the length scale.
# D2 are squared distances in units of the length scale. A profile may overwrite them.
Profile = tuple[Array, Array, dict[str, Array]]

# -- functions of the distance in units of a length scale ----------------------------------------


def _scaled(
    cross: Callable[[Any, Array, Array], Array],
    profile: Callable[[Any, Array], Profile],
    is_positive: Callable[[Any], bool],
) -> Rule:
    """The rule of f(D2), D2 in units of one length scale or of one for each feature.

    dK / d log l = S o D2, and dK / d log l_j = S o (x_j - y_j)^2 / l_j^2.
    """

    def prepare(kernel: Any, X: Array) -> tuple[Array, Array | None]:
        X = X - X.mean(axis=0)
        return X, _squares(X, 1.0) if np.size(kernel.length_scale) == 1 else None

    def gradient(kernel: Any, fixed: tuple[Array, Array | None]) -> tuple[Array, Pullback]:
        (X, D2), scale = fixed, np.squeeze(kernel.length_scale)
        K, S, slopes = profile(kernel, _squares(X, scale) if D2 is None else D2 / scale**2)

        def pull(W: Array) -> Array:
            V = W * S
            by_scale = _by_feature(V, X / scale) if D2 is None else np.vdot(V, D2) / scale**2
            sums = {name: np.vdot(W, dK) for name, dK in slopes.items()}
            return np.hstack(rules.free(kernel, sums | {"length_scale": by_scale}))

        return K, pull

    return Rule(cross, rules.mean_corner, _constant_diagonal, prepare, gradient, is_positive)


def _constant_diagonal(kernel: Any, X: Array) -> Array:
    """One, but evaluated, so that a bad parameter raises here as well."""
    return rules.cross(kernel, X[:1], X[:1])[:, 0].repeat(len(X)) if len(X) else np.empty(0)


def _squares(X: Array, scale: float | Array) -> Array:
    with threads_for(len(X) ** 2, X.shape[1]):
        D2 = squared_distances(X, X, scale)
    return (D2 + D2.T) / 2


def _by_feature(V: Array, Z: Array) -> Array:
    """sum_ik V_ik (z_ij - z_kj)^2 for each feature j of Z (n, d), V (n, n) symmetric."""
    with threads_for(V.size, Z.shape[1]):
        VZ = V @ Z
    return np.asarray(2 * (V.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, VZ)))


def _gaussian(D2: Array) -> Array:
    """exp(-D2 / 2), in place."""
    D2 *= -0.5
    return np.asarray(np.exp(D2, out=D2))


def _rbf_cross(kernel: Any, X: Array, Y: Array) -> Array:
    return _gaussian(squared_distances(X, Y, kernel.length_scale))


def _rbf_profile(kernel: Any, D2: Array) -> Profile:
    K = _gaussian(D2)
    return K, K, {}


RULES[sk.RBF] = _scaled(_rbf_cross, _rbf_profile, rules.always)


def _matern_cross(kernel: sk.Matern, X: Array, Y: Array) -> Array:
    if kernel.nu == np.inf:
        return _rbf_cross(kernel, X, Y)
    # Below 1/2 the slope at zero is so steep that distances count whose squares underflow.
    if kernel.nu < 0.5:
        return matern(distances(X, Y, kernel.length_scale), kernel.nu)
    return matern(np.sqrt(squared_distances(X, Y, kernel.length_scale)), kernel.nu)


def _matern_profile(kernel: sk.Matern, D2: Array) -> Profile:
    if kernel.nu == np.inf:
        return _rbf_profile(kernel, D2)
    r = np.sqrt(D2)
    return matern(r, kernel.nu), matern_slope(r, kernel.nu), {}


RULES[sk.Matern] = _scaled(_matern_cross, _matern_profile, lambda kernel: kernel.nu > 0)


def _rational_quadratic(kernel: sk.RationalQuadratic, r: Array) -> Array:
    """(1 + r^2 / (2 a))^-a, also where the square of the distance overflows."""
    a = kernel.alpha
    return np.asarray(np.hypot(1, r / np.sqrt(2 * a)) ** (-2 * a))


def _rational_quadratic_profile(kernel: sk.RationalQuadratic, D2: Array) -> Profile:
    """With u = D2 / (2 a): S = K / (1 + u) and dK / d log a = a K (u / (1 + u) - log(1 + u))."""
    a = kernel.alpha
    K, u = _rational_quadratic(kernel, np.sqrt(D2)), D2 / (2 * a)
    return K, K / (1 + u), {"alpha": a * K * (u / (1 + u) - np.log1p(u))}


# Positive as a mixture of Gaussian kernels of many widths.
RULES[sk.RationalQuadratic] = _scaled(
    lambda kernel, X, Y: _rational_quadratic(kernel, distances(X, Y, kernel.length_scale)),
    _rational_quadratic_profile,
    lambda kernel: kernel.alpha > 0,
)

# -- other functions of a pair of rows -----------------------------------------------------------


def _periodic(kernel: sk.ExpSineSquared, r: Array) -> Array:
    """exp(-2 sin^2(pi r / p) / l^2)."""
    turns = r / kernel.periodicity
    return np.asarray(np.exp(-2 * (np.sin(np.pi * turns) / kernel.length_scale) ** 2))


def _periodic_slopes(kernel: sk.ExpSineSquared, r: Array, K: Array) -> dict[str, Array]:
    """With a = pi r / p: 4 sin^2(a) K / l^2 by log l, and 2 a sin(2 a) K / l^2 by log p."""
    a, square = np.pi * (r / kernel.periodicity), kernel.length_scale**2
    return {
        "length_scale": 4 * np.sin(a) ** 2 * K / square,
        "periodicity": 2 * a * np.sin(2 * a) * K / square,
    }


# Many periods away a rounding of the distance counts: it is computed in one way only. Not known to
# be positive: of distances in a plane the kernel can be indefinite.
RULES[sk.ExpSineSquared] = Rule(
    cross=lambda kernel, X, Y: _periodic(kernel, cdist(X, Y)),
    corner=rules.mean_corner,
    prepare=lambda kernel, X: cdist(X, X),
    gradient=rules.by_pairs(_periodic, _periodic_slopes),
)


def _dot_product(kernel: sk.DotProduct, G: Array) -> Array:
    """x . y + sigma_0^2."""
    return np.asarray(G + kernel.sigma_0**2)


RULES[sk.DotProduct] = Rule(
    cross=lambda kernel, X, Y: _dot_product(kernel, products(X, Y)),
    corner=rules.mean_corner,
    prepare=lambda kernel, X: products(X, X),
    gradient=rules.by_pairs(_dot_product, lambda kernel, G, K: {"sigma_0": 2 * kernel.sigma_0**2}),
    is_positive=rules.always,
)

RULES[sk.ConstantKernel] = Rule(
    cross=lambda kernel, X, Y: np.full((len(X), len(Y)), kernel.constant_value, dtype=float),
    corner=rules.mean_corner,
    gradient=rules.by_pairs(
        lambda kernel, X: np.array(kernel.constant_value, dtype=float),
        lambda kernel, X, K: {"constant_value": K},
    ),
    is_positive=lambda kernel: kernel.constant_value >= 0,
)

# Different examples have independent noise.
RULES[sk.WhiteKernel] = Rule(
    cross=lambda kernel, X, Y: np.zeros((len(X), len(Y))),
    corner=lambda kernel, X: kernel.noise_level * np.eye(len(X)),
    is_positive=lambda kernel: kernel.noise_level >= 0,
)

# -- kernels of kernels --------------------------------------------------------------------------


def _combined(
    operate: Callable[[Array, Array], Array],
    weights: Callable[[Array, Array, Array], tuple[Array, Array]],
) -> Rule:
    """A sum or a product; the weights are what W becomes for each of the two kernels.

    Schur: sums and products of positive kernels are positive.
    """

    def both(function: Any, kernel: Any, *inputs: Array) -> tuple[Any, Any]:
        return function(kernel.k1, *inputs), function(kernel.k2, *inputs)

    def gradient(kernel: Any, grams: Any) -> tuple[Array, Pullback]:
        (K1, pull1), (K2, pull2) = grams[0](kernel.k1), grams[1](kernel.k2)

        def pull(W: Array) -> Array:
            W1, W2 = weights(W, K1, K2)
            return np.concatenate([pull1(W1), pull2(W2)])

        return operate(K1, K2), pull

    return Rule(
        cross=lambda kernel, X, Y: operate(*both(rules.cross, kernel, X, Y)),
        corner=lambda kernel, X: operate(*both(rules.corner, kernel, X)),
        diagonal=lambda kernel, X: operate(*both(rules.diagonal, kernel, X)),
        prepare=lambda kernel, X: both(rules.prepared, kernel, X),
        gradient=gradient,
        is_positive=lambda kernel: all(both(rules.is_positive, kernel)),
    )


RULES[sk.Sum] = _combined(np.add, lambda W, K1, K2: (W, W))
RULES[sk.Product] = _combined(np.multiply, lambda W, K1, K2: (W * K2, W * K1))


def _power_gradient(kernel: sk.Exponentiation, base: rules.Gram) -> tuple[Array, Pullback]:
    (K, pull), e = base(kernel.kernel), kernel.exponent
    # Where the base is zero so is its slope; that of a root has a pole there, and is left out.
    S = np.power(K, e - 1, out=np.zeros_like(K), where=(K != 0) | (e >= 1))
    return K**e, lambda W: pull(e * W * S)


RULES[sk.Exponentiation] = Rule(
    cross=lambda kernel, X, Y: rules.cross(kernel.kernel, X, Y) ** kernel.exponent,
    corner=lambda kernel, X: rules.corner(kernel.kernel, X) ** kernel.exponent,
    diagonal=lambda kernel, X: rules.diagonal(kernel.kernel, X) ** kernel.exponent,
    prepare=lambda kernel, X: rules.prepared(kernel.kernel, X),
    gradient=_power_gradient,
    is_positive=lambda kernel: (
        rules.is_positive(kernel.kernel) and kernel.exponent >= 0 and kernel.exponent % 1 == 0
    ),
)
