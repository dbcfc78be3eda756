"""The rules of scikit-learn's kernels: matrix products instead of its loops over pairs.

Each formula is scikit-learn's, so values are equal to rounding. A formula serves both the blocks
and the gradient.

The Matern family at any finite order nu: with z = sqrt(2 nu) r and K_nu the modified Bessel
function,

    k(r) = 2^(1 - nu) / Gamma(nu) z^nu K_nu(z),    k(0) = 1.

Up to an order of twenty this is evaluated as written: the Bessel function overflows only where
k(r) is one to the last digit. Beyond, Gamma and K_nu leave the range of a double for ordinary
r, and Debye's expansion of K_nu for large orders (DLMF 10.41.4) takes over. Stirling's series is
its value at r = 0, so all large factors cancel: with s = sqrt(1 + (z / nu)^2)

    k(r) = ((1 + s) / 2)^nu exp(-nu (s - 1)) / sqrt(s) S(1 / s) / S(1),
    S(p) = sum_k (-1)^k U_k(p) / nu^k.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from scipy.spatial.distance import cdist
from scipy.special import gamma, kve
from sklearn.gaussian_process import kernels as sk

from knowmore._base import Array, is_real
from knowmore.errors import InvalidInput
from knowmore.kernels import rules
from knowmore.kernels.distances import euclidean, of_squares, squared_distances, units
from knowmore.kernels.rules import RULES, Function, KernelRule, Pullback
from knowmore.linalg import product

# Orders from here on are large; this many terms of the expansion leave an error of about ten
# roundings.
_LARGE, _TERMS = 20.0, 14
# exp(-z) is zero from here on, times any power of z.
_VANISHED = 1e4

# K = f(D2), S = -2 f'(D2), and dK / d log p by the name of each parameter p but the length scale.
# D2 are squared distances in units of the length scale. A profile may overwrite them.
Profile = tuple[Array, Array, dict[str, Array]]

# -- functions of the distance in units of a length scale ----------------------------------------


def _scaled(cross: Function, profile: Function, is_positive: Function) -> KernelRule:
    """The rule of f(D2), D2 in units of one length scale or of one for each feature.

    profile(kernel, D2) : a `Profile`

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

    return KernelRule(cross, _scaled_corner, _constant_diagonal, prepare, gradient, is_positive)


def _scaled_corner(kernel: Any, X: Array) -> Array:
    return rules.mean_corner(kernel, X) if len(X) > 1 else _constant_diagonal(kernel, X)[:, None]


def _constant_diagonal(kernel: Any, X: Array) -> Array:
    """The diagonal: ones. A bad parameter raises here as well."""
    if _order(kernel) == np.inf:
        units(X, kernel.length_scale)
        return np.ones(len(X)) if np.isfinite(X).all() else np.where(_sound(X), 1.0, np.nan)
    return rules.cross(kernel, X[:1], X[:1])[:, 0].repeat(len(X)) if len(X) else np.empty(0)


def _sound(X: Array) -> Array:
    return np.asarray(np.isfinite(X).all(axis=1))


def _squares(X: Array, scale: float | Array) -> Array:
    return rules.symmetric(squared_distances(X, X, scale))


def _by_feature(V: Array, Z: Array) -> Array:
    """sum_ik V_ik (z_ij - z_kj)^2 for each feature j of Z (n, d), V (n, n) symmetric."""
    VZ = product(V, Z)
    return np.asarray(2 * (V.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, VZ)))


def _gaussian(D2: Array) -> Array:
    """exp(-D2 / 2), in place."""
    D2 *= -0.5
    return np.asarray(np.exp(D2, out=D2))


def _order(kernel: sk.RBF) -> float:
    """nu; RBF is the Matern kernel of infinite order."""
    if type(kernel) is not sk.Matern:
        return np.inf
    if not is_real(kernel.nu):
        raise _no_order(kernel.nu)
    with suppress(OverflowError):
        return float(kernel.nu)
    return np.inf


def _no_order(nu: Any) -> InvalidInput:
    return InvalidInput(f"A Matern kernel has nu={nu!r}: give an order above zero, such as 1.5.")


def _matern_cross(kernel: sk.RBF, X: Array, Y: Array) -> Array:
    nu, scale = _order(kernel), kernel.length_scale
    # Below 1/2 the slope at zero is so steep that distances count whose squares underflow.
    if nu < 0.5:
        return matern(np.sqrt(2 * nu) * euclidean(X, Y, scale), nu)
    if nu == np.inf:
        return of_squares(_gaussian, X, Y, scale)
    return of_squares(lambda D2: matern(_order_units(D2, nu), nu), X, Y, scale)


def _order_units(D2: Array, nu: float) -> Array:
    """z = sqrt(2 nu) r from the squares of r, in place."""
    D2 *= 2 * nu
    return np.asarray(np.sqrt(D2, out=D2))


def _matern_profile(kernel: sk.RBF, D2: Array) -> Profile:
    nu = _order(kernel)
    if nu == np.inf:
        K = _gaussian(D2)
        return K, K, {}
    z = _order_units(D2, nu)
    decay = np.exp(-z)
    return matern(z, nu, decay), matern_slope(z, nu, decay), {}


RULES[sk.RBF] = RULES[sk.Matern] = _scaled(
    _matern_cross, _matern_profile, lambda kernel: _order(kernel) > 0
)


def slopes(kernel: sk.RBF, X: Array) -> Array:
    """S (n, n) with dk(x, z) / dx_j = -S(x, z) (x_j - z_j) / l_j^2, of RBF and Matern kernels.

    >>> slopes(sk.RBF(2.0), np.array([[0.0], [2.0]])).round(2)
    array([[1.  , 0.61],
           [0.61, 1.  ]])
    """
    return _matern_profile(kernel, _squares(X, kernel.length_scale))[1]


def matern(z: Array, nu: float, decay: Array | None = None) -> Array:
    """k for z = sqrt(2 nu) r of any shape; `decay` is exp(-z), if that is known.

    >>> matern(np.array([0.0, 1.0, np.inf]), 0.5)
    array([1.        , 0.36787944, 0.        ])
    """
    if not nu > 0:
        raise _no_order(nu)
    if nu >= _LARGE:
        return _debye(z, nu)
    z = np.minimum(z, _VANISHED)
    E = np.exp(-z) if decay is None else decay
    if nu == 0.5:
        return np.asarray(E)
    if nu == 1.5:
        return np.asarray((1 + z) * E)
    if nu == 2.5:
        return np.asarray((1 + z + z**2 / 3) * E)
    # Where the Bessel function overflows (at zero, and next to it) k is one to the last digit.
    with np.errstate(over="ignore", invalid="ignore"):
        k = 2 ** (1 - nu) / gamma(nu) * z**nu * kve(nu, z) * E
    return np.where(np.isfinite(k), np.minimum(k, 1), 1.0)


def matern_slope(z: Array, nu: float, decay: Array | None = None) -> Array:
    """S = -2 dk / d(r^2), so that dk / d log l = S r^2; its pole at zero, for nu <= 1, is left out.

    (z^nu K_nu)' = -z^nu K_(nu - 1) (DLMF 10.29.4): above nu = 1 it is the kernel of order nu - 1
    at the same z, times nu / (nu - 1).

    >>> matern_slope(np.array([0.0, 1.0]), 1.5), 3 * matern(np.array([0.0, 1.0]), 0.5)
    (array([3.        , 1.10363832]), array([3.        , 1.10363832]))
    """
    if nu > 1:
        return nu / (nu - 1) * matern(z, nu - 1, decay)
    z = np.minimum(z, _VANISHED)
    E = np.exp(-z) if decay is None else decay
    with np.errstate(all="ignore"):
        if nu == 0.5:
            S = E / z
        else:
            S = 2 ** (2 - nu) * nu / gamma(nu) * z ** (nu - 1) * kve(1 - nu, z) * E
    return np.where(np.isfinite(S), S, 0.0)


def _debye(z: Array, nu: float) -> Array:
    x2 = np.minimum(z / nu, _VANISHED / np.sqrt(nu)) ** 2
    s = np.sqrt(1 + x2)
    more = x2 / (1 + s)  # s - 1
    terms = [(-1 / nu) ** k * U for k, U in enumerate(_debye_polynomials())]
    S = sum(terms, start=Polynomial([0]))
    log_k = nu * (np.log1p(more / 2) - more)
    return np.asarray(np.exp(log_k) / np.sqrt(s) * (S(1 / s) / S(1.0)))


@cache
def _debye_polynomials() -> tuple[Polynomial, ...]:
    """U_0 ... U_k (DLMF 10.41.9): U' = p^2 (1 - p^2) U' / 2 + 1/8 int_0^p (1 - 5 t^2) U(t) dt."""
    p2 = Polynomial([0, 0, 1])
    U = [Polynomial([1])]
    for _ in range(_TERMS - 1):
        last = U[-1]
        U.append(p2 * (1 - p2) * last.deriv() / 2 + ((1 - 5 * p2) * last).integ() / 8)
    return tuple(U)


def _rational_quadratic_cross(kernel: sk.RationalQuadratic, X: Array, Y: Array) -> Array:
    """(1 + D2 / (2 a))^-a, also where the square of the distance overflows."""
    a, r = kernel.alpha, euclidean(X, Y, kernel.length_scale)
    return np.asarray(np.hypot(1, r / np.sqrt(2 * a)) ** (-2 * a))


def _rational_quadratic_profile(kernel: sk.RationalQuadratic, D2: Array) -> Profile:
    """With B = 1 + D2 / (2 a): K = B^-a, S = K / B and dK / d log a = a K (1 - 1 / B - log B)."""
    a = kernel.alpha
    B = 1 + D2 / (2 * a)
    L = np.log(B)
    K = np.exp(-a * L)
    return K, K / B, {"alpha": a * K * (1 - 1 / B - L)}


# Positive as a mixture of Gaussian kernels of many widths.
RULES[sk.RationalQuadratic] = _scaled(
    _rational_quadratic_cross, _rational_quadratic_profile, lambda kernel: kernel.alpha > 0
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
RULES[sk.ExpSineSquared] = KernelRule(
    cross=lambda kernel, X, Y: _periodic(kernel, cdist(X, Y)),
    corner=rules.mean_corner,
    prepare=lambda kernel, X: cdist(X, X),
    gradient=rules.by_pairs(_periodic, _periodic_slopes),
)


def _everywhere(value: float, X: Array, Y: Array) -> Array:
    """A constant for all pairs, (n, m), read-only."""
    return np.broadcast_to(float(value), (X.shape[0], Y.shape[0]))


def _raised(K: Array, by: float) -> Array:
    """K + by, in place where that is possible."""
    return np.add(K, by, out=K if K.dtype == float else None, dtype=float)


# The corners of these three by scikit-learn are fast, and symmetric to the last bit. A dot
# product may overflow on its way to a finite value, but by Cauchy-Schwarz only if the variance of
# one of the two rows overflows as well.
RULES[sk.DotProduct] = KernelRule(
    cross=lambda kernel, X, Y: _raised(product(X, Y.T), kernel.sigma_0**2),
    corner=rules.own_corner,
    prepare=lambda kernel, X: product(X, X.T),
    gradient=rules.by_pairs(
        lambda kernel, G: G + kernel.sigma_0**2,
        lambda kernel, G, K: {"sigma_0": 2 * kernel.sigma_0**2},
    ),
    is_positive=rules.always,
)
RULES[sk.ConstantKernel] = KernelRule(
    cross=lambda kernel, X, Y: _everywhere(kernel.constant_value, X, Y),
    corner=rules.own_corner,
    gradient=rules.by_pairs(
        lambda kernel, X: np.array(kernel.constant_value, dtype=float),
        lambda kernel, X, K: {"constant_value": K},
    ),
    is_positive=lambda kernel: kernel.constant_value >= 0,
)
RULES[sk.WhiteKernel] = KernelRule(
    cross=lambda kernel, X, Y: _everywhere(0.0, X, Y),
    corner=rules.own_corner,
    is_positive=lambda kernel: kernel.noise_level >= 0,
)

# -- kernels of kernels --------------------------------------------------------------------------

# Schur: sums and products of positive kernels are positive.
RULES[sk.Sum] = rules.composite(
    parts=lambda kernel: (kernel.k1, kernel.k2),
    operate=lambda kernel, K1, K2: K1 + K2,
    weights=lambda kernel, W, K1, K2: (W, W),
)
RULES[sk.Product] = rules.composite(
    parts=lambda kernel: (kernel.k1, kernel.k2),
    operate=lambda kernel, K1, K2: K1 * K2,
    weights=lambda kernel, W, K1, K2: (W * K2, W * K1),
)


def _power_weights(kernel: sk.Exponentiation, W: Array, K: Array) -> tuple[Array]:
    """The slope is zero where K is. The slope of a root has a pole there, and is left out."""
    e = kernel.exponent
    return (e * W * np.power(K, e - 1, out=np.zeros_like(K), where=(K != 0) | (e >= 1)),)


RULES[sk.Exponentiation] = rules.composite(
    parts=lambda kernel: (kernel.kernel,),
    operate=lambda kernel, K: K**kernel.exponent,
    weights=_power_weights,
    keeps_positive=lambda kernel: kernel.exponent >= 0 and kernel.exponent % 1 == 0,
)
