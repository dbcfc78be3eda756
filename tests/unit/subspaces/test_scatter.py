"""Means to twice the digits of a double, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerance import assert_rounded

from knowmore.errors import InvalidInput
from knowmore.subspaces.scatter import Mean

EPS = np.finfo(float).eps


def column(rng, n):
    """Numbers at any distance from zero, some with one far out."""
    X = rng.normal(size=(n, 1)) * 10 ** rng.uniform(-8, 3)
    X = X + rng.normal() * 10 ** rng.uniform(-3, 10)
    X[rng.integers(n)] *= 10 ** rng.choice([0.0, rng.uniform(0, 15)])
    return X


def exact(mean):
    return Fraction(float(mean.value[0])) + Fraction(float(mean.rest[0]))


@given(st.integers(0, 10000), st.integers(1, 60), st.booleans())
def test_the_mean_is_exact_to_roundings_of_the_differences(seed, n, soft):
    rng = np.random.default_rng(seed)
    X, p = column(rng, n), rng.uniform(0.1, 1, n) if soft else np.ones(n)
    mean, E = Mean.of(X, p if soft else None)
    pairs = [(Fraction(float(a)), Fraction(float(x))) for a, x in zip(p, X[:, 0], strict=True)]
    want = sum(a * x for a, x in pairs) / sum(a for a, _ in pairs)
    spread = max(abs(x - want) for _, x in pairs)
    assert abs(exact(mean) - want) <= 4 * n * EPS * spread
    assert abs(mean.rest[0]) <= EPS * abs(mean.value[0])
    rows = np.array([float(x - want) for _, x in pairs])
    assert_rounded(E[:, 0], rows, 4 * n)
    assert_rounded(mean.centred(X)[:, 0], rows, 4 * n)


@given(st.integers(0, 10000), st.integers(1, 10**6), st.integers(1, 10**6))
def test_merging_is_exact_to_roundings_of_roundings(seed, n, k):
    rng = np.random.default_rng(seed)
    (one, _), (two, _) = Mean.of(column(rng, 9)), Mean.of(column(rng, 9))
    size = max(abs(exact(one)), abs(exact(two)))
    both = one.merge(n, two, k)
    want = (n * exact(one) + k * exact(two)) / (n + k)
    assert abs(exact(both) - want) <= 16 * EPS * EPS * size
    back = both.merge(n + k, two, -k)
    assert abs(exact(back) - exact(one)) <= 64 * EPS * EPS * size * (n + k) / n
    np.testing.assert_array_equal(both, two.merge(k, one, n))


@given(st.floats(-1e300, 1e300), st.integers(1, 1000), st.integers(1, 1000))
def test_the_mean_of_equal_numbers_is_that_number(value, n, k):
    (one, E), (two, _) = Mean.of(np.full((n, 1), value)), Mean.of(np.full((k, 1), value))
    assert not E.any()
    for mean in (one, two, one.merge(n, two, k), one.merge(n + k, two, -k)):
        assert mean.value[0] == value
        assert mean.rest[0] == 0
    assert (one - two)[0] == 0


def test_rounded_weights_move_no_mean_that_is_far_from_zero():
    rng = np.random.default_rng(0)
    X, p = 1e12 + rng.normal(size=(50, 1)), rng.uniform(size=50)
    (whole, _), (one, _), (two, _) = (
        Mean.of(X[i], p[i]) for i in (np.s_[:], np.s_[:20], np.s_[20:])
    )
    parts = one.merge(p[:20].sum(), two, p[20:].sum())
    assert_rounded(whole - parts, [0.0], 4 * 50, np.ptp(X))


def test_a_step_is_added_with_what_it_rounds_off():
    mean = Mean(np.array([1.0])).moved(np.array([EPS / 8]))
    assert (mean.value[0], mean.rest[0]) == (1.0, EPS / 8)


@pytest.mark.parametrize("weights", [None, np.ones(3)])
def test_sums_beyond_double_precision(weights):
    with pytest.raises(InvalidInput, match="too large for double precision"):
        Mean.of(np.array([[1.7e308], [-1.7e308], [1.7e308]]), weights)
