"""The Matern kernel of any order, against an integral and closed forms."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern
from tolerance import assert_rounded

from knowmore import GPClassifier
from knowmore.errors import InvalidInput
from knowmore.kernels import corner, cross, diagonal, is_positive
from knowmore.kernels.standard import matern, matern_slope

R = np.array([0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0])
ORDERS = [0.01, 0.05, 0.3, 0.5, 0.7, 1.0, 1.5, 1.9, 2.5, 3.0, 7.0, 13.3, 19.9, 20.0, 33.0, 100.0]


def by_an_integral(r, nu):
    """int u^(nu - 1) exp(-u - nu r^2 / (2u)) du / Gamma(nu), u = e^t, by the trapezoidal rule.

    A mixture of Gaussian kernels; the rule converges like exp(-1 / step) for such an integrand.
    """
    t = np.linspace(-60 / min(nu, 1), 8, 200_001)
    with np.errstate(over="ignore"):
        prior = nu * t - np.exp(t)
        return np.exp(prior - nu * r**2 / 2 * np.exp(-t) - prior.max()).sum() / (
            np.exp(prior - prior.max()).sum()
        )


def by_a_polynomial(r, p):
    """Order p + 1/2: exp(-z) p! / (2p)! sum_i (p + i)! / (i! (p - i)!) (2z)^(p - i)."""
    z = Fraction(float(np.sqrt(2 * p + 1) * r))
    terms = (
        Fraction(factorial(p + i), factorial(i) * factorial(p - i)) * (2 * z) ** (p - i)
        for i in range(p + 1)
    )
    return float(Fraction(factorial(p), factorial(2 * p)) * sum(terms)) * np.exp(-float(z))


@pytest.mark.parametrize("nu", ORDERS)
def test_values_are_those_of_the_integral(nu):
    want = [by_an_integral(r, nu) for r in R[1:]]
    # The sum has two hundred thousand terms, added in pairs.
    assert_rounded(matern(np.sqrt(2 * nu) * R[1:], nu), want, 200)


@pytest.mark.parametrize("nu", ORDERS)
def test_slopes_are_those_of_the_integral(nu):
    """d/d log l of each Gaussian of the mixture is itself times nu r^2 / u."""
    r = R[3:]
    t = np.linspace(-60 / min(nu, 1), 8, 200_001)
    prior = nu * t - np.exp(t)
    with np.errstate(over="ignore"):
        mixture = [prior - nu * x**2 / 2 * np.exp(-t) - prior.max() for x in r]
    slopes = [log + np.log(nu * x**2) - t for x, log in zip(r, mixture, strict=True)]
    want = np.exp(slopes).sum(axis=1) / np.exp(prior - prior.max()).sum()
    # Where SciPy's Bessel functions of orders just below one change from a series to a recurrence,
    # at z = 2, they are off by a thousand roundings.
    assert_rounded(matern_slope(np.sqrt(2 * nu) * r, nu) * r**2, want, 2000)


@pytest.mark.parametrize("nu", [*ORDERS, 1e3, 1e8])
def test_slopes_vanish_at_zero_and_at_infinity(nu):
    r = np.array([0.0, 1e-300, 1e5, 1e300])
    slope = matern_slope(np.sqrt(2 * nu) * r, nu)
    assert np.isfinite(slope).all()
    np.testing.assert_array_equal(slope[2:], [0.0, 0.0])
    assert slope[0] * r[0] ** 2 == 0.0


@pytest.mark.parametrize("p", [0, 1, 2, 3, 10, 19, 20, 40, 100])
def test_half_orders_are_polynomials(p):
    want = [by_a_polynomial(r, p) for r in R]
    # z is rounded, and exp(-z) has z times that error.
    assert_rounded(matern(np.sqrt(2 * p + 1) * R, p + 0.5), want, 200)


@pytest.mark.parametrize("nu", [*ORDERS, 1e3, 1e8, np.inf])
def test_it_falls_from_one_to_zero(nu):
    r = np.concatenate([[0.0], np.logspace(-320, 300, 3000), [np.inf]])
    if nu == np.inf:
        k = cross(Matern(nu=nu), r[:, None], np.zeros((1, 1)))[:, 0]
    else:
        k = matern(np.sqrt(2 * nu) * r, nu)
    assert k[0] == 1.0
    assert k[-1] == 0.0
    # z^nu K_nu(z) is a product of two numbers of up to 300 digits before the point, or after it.
    rounding = 200 * np.finfo(float).eps
    assert ((k >= 0) & (k <= 1 + rounding)).all()
    assert (np.diff(k) <= rounding).all()


@pytest.mark.parametrize("nu", [0.0, -1.0, np.nan])
def test_an_order_that_is_none_is_refused_at_the_first_row(nu):
    with pytest.raises(InvalidInput, match=r"nu=.*: give an order above zero"):
        diagonal(Matern(nu=nu), np.ones((1, 2)))
    assert not is_positive(Matern(nu=nu))


@pytest.mark.parametrize("nu", ORDERS)
def test_scikit_learn_says_the_same_where_it_says_anything(nu):
    X = np.random.default_rng(0).normal(size=(20, 3))
    kernel = Matern(1.3, nu=nu)
    want = kernel(X)
    if np.isfinite(want).all():
        assert_rounded(corner(kernel, X), want, 1000)


@pytest.mark.parametrize("nu", [0.01, 0.05, 20.0, 57.3, 100.0])
def test_one_by_one_is_the_fit_at_any_order(nu):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    X[5:10] = X[:5]
    whole = GPClassifier(Matern(nu=nu), noise=0.1).fit(X, y)
    one_by_one = GPClassifier(Matern(nu=nu), noise=0.1).fit(X[:1], y[:1])
    for i in range(1, 40):
        one_by_one.add(X[i : i + 1], y[i : i + 1])
    K = corner(Matern(nu=nu), X) + 0.1 * np.eye(40)
    roundings = 40 * np.linalg.cond(K)
    assert_rounded(one_by_one.predict_variance(X), whole.predict_variance(X), roundings)
    assert_rounded(one_by_one.decision_function(X), whole.decision_function(X), roundings)
    assert cross(Matern(nu=nu), X, X[:1])[0, 0] == 1.0


def test_an_endless_order_is_the_gaussian():
    X = np.random.default_rng(2).normal(size=(20, 2))
    np.testing.assert_array_equal(corner(Matern(nu=np.inf), X), corner(RBF(), X))
    assert_rounded(corner(Matern(nu=1e15), X), corner(RBF(), X))
