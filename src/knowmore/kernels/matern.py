"""The Matern family at any finite order nu.

With z = sqrt(2 nu) r and K_nu the modified Bessel function,

    k(r) = 2^(1 - nu) / Gamma(nu) z^nu K_nu(z),    k(0) = 1.

Up to an order of twenty this is evaluated as written: the Bessel function overflows only where
k(r) is one to the last digit. Beyond, Gamma and K_nu leave the range of a double for ordinary
r, and Debye's expansion of K_nu for large orders (DLMF 10.41.4) takes over. Stirling's series is
its value at r = 0, so all large factors cancel: with s = sqrt(1 + (z / nu)^2)

    k(r) = ((1 + s) / 2)^nu exp(-nu (s - 1)) / sqrt(s) S(1 / s) / S(1),
    S(p) = sum_k (-1)^k U_k(p) / nu^k.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import gamma, kve

from knowmore.arrays import Array
from knowmore.errors import InvalidInput

# Orders from here on are large; this many terms of the expansion leave an error of about ten
# roundings.
_LARGE, _TERMS = 20.0, 14
# exp(-z) is zero from here on, whatever power of z stands before it.
_VANISHED = 1e4


def matern(r: Array, nu: float) -> Array:
    """k(r) for distances r in units of the length scale, of any shape.

    >>> matern(np.array([0.0, 1.0, np.inf]), 0.5)
    array([1.        , 0.36787944, 0.        ])
    """
    if not nu > 0:
        raise InvalidInput(
            f"A Matern kernel has the order nu={nu}, but it must be above zero. "
            f"Usual orders are 0.5, 1.5 and 2.5."
        )
    if nu < _LARGE:
        return _bessel(np.minimum(np.sqrt(2 * nu) * r, _VANISHED), nu)
    return _debye(r, nu)


def matern_slope(r: Array, nu: float) -> Array:
    """-2 dk / d(r^2), which times r^2 is dk / d log l; for nu <= 1 its pole at r = 0 is left out.

    (z^nu K_nu)' = -z^nu K_(nu - 1) (DLMF 10.29.4): above nu = 1 the slope is a Matern kernel of
    order nu - 1 at the same z, times nu / (nu - 1).

    >>> matern_slope(np.array([0.0, 1.0]), 1.5), 3 * matern(np.sqrt([0.0, 3.0]), 0.5)
    (array([3.        , 0.53076362]), array([3.        , 0.53076362]))
    """
    if nu > 1:
        ratio = nu / (nu - 1)
        return ratio * matern(np.sqrt(ratio) * r, nu - 1)
    z = np.minimum(np.sqrt(2 * nu) * r, _VANISHED)
    with np.errstate(all="ignore"):
        if nu == 0.5:
            S = np.exp(-z) / z
        else:
            S = 2 ** (2 - nu) * nu / gamma(nu) * z ** (nu - 1) * kve(1 - nu, z) * np.exp(-z)
    return np.where(np.isfinite(S), S, 0.0)


def _bessel(z: Array, nu: float) -> Array:
    """2^(1 - nu) / Gamma(nu) z^nu K_nu(z)."""
    if nu == 0.5:
        return np.asarray(np.exp(-z))
    if nu == 1.5:
        return np.asarray((1 + z) * np.exp(-z))
    if nu == 2.5:
        return np.asarray((1 + z + z**2 / 3) * np.exp(-z))
    # Where the Bessel function overflows (at zero, and next to it) k is one to the last digit.
    with np.errstate(over="ignore", invalid="ignore"):
        k = 2 ** (1 - nu) / gamma(nu) * z**nu * kve(nu, z) * np.exp(-z)
    return np.where(np.isfinite(k), np.minimum(k, 1), 1.0)


def _debye(r: Array, nu: float) -> Array:
    x2 = 2 * np.minimum(r, _VANISHED) ** 2 / nu
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
