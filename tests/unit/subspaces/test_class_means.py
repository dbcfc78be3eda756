"""The sums that Ledoit and Wolf need of a class merge and split as its rows do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage
from tolerance import assert_rounded, rounded

from knowmore import KnowmoreError
from knowmore.subspaces.class_means import Spread

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 25)) * rng.uniform(0.5, 2, 25)
ONES = np.ones(40)


def naive(X, p):
    """The sums by their definitions: scatter, third and fourth moment."""
    mean = sum(w * x for w, x in zip(p, X, strict=True)) / sum(p)
    E = X - mean
    S = sum(w * np.outer(e, e) for w, e in zip(p, E, strict=True))
    third = sum(w * (e @ e) * e for w, e in zip(p, E, strict=True))
    return mean, S, third, sum(w * (e @ e) ** 2 for w, e in zip(p, E, strict=True))


def assert_is_spread_of(spread, X, p, roundings=1000):
    mean, S, third, fourth = naive(X, p)
    assert_rounded(spread.count, p.sum(), roundings)
    assert_rounded(spread.mean, mean, roundings, abs(X).max())
    found = (spread.axes.T * spread.lengths) @ spread.axes
    assert_rounded(found, S, roundings, np.linalg.norm(S, 2))
    assert_rounded(spread.third, third, roundings, fourth**0.75)
    assert_rounded(spread.fourth, fourth, roundings, fourth)


@pytest.mark.parametrize("D", [1, 2, 10, 25])
def test_the_coefficient_is_scikit_learn_s(D):
    for n in 2, 3, 11, 40:
        found = Spread.of(X[:n, :D], ONES[:n]).shrinkage[0]
        assert_rounded(found, ledoit_wolf_shrinkage(X[:n, :D]), 1000, 1.0)


def test_rows_join_and_leave_in_any_pieces():
    whole = Spread.of(X[:4], ONES[:4])
    for some in np.array_split(np.arange(4, 40), 7):
        whole = whole.merge(Spread.of(X[some], ONES[some]))
    assert_is_spread_of(whole, X, ONES)
    for some in np.array_split(np.arange(12, 40), 5):
        whole = whole.merge(Spread.of(X[some], ONES[some]), sign=-1)
    assert_is_spread_of(whole, X[:12], ONES[:12], 10**4)
    assert_rounded(whole.shrinkage[0], ledoit_wolf_shrinkage(X[:12]), 10**4, 1.0)


def test_parts_of_rows_count_as_parts():
    p = rng.uniform(size=40)
    one, two = Spread.of(X[:15], p[:15]), Spread.of(X[15:], p[15:])
    assert_is_spread_of(one.merge(two), X, p)
    assert_is_spread_of(one.merge(two).merge(two, sign=-1), X[:15], p[:15], 10**4)
    # A whole number of parts is that many rows.
    twice = Spread.of(X, 2 * ONES)
    assert_is_spread_of(twice, np.repeat(X, 2, axis=0), np.ones(80))


@pytest.mark.parametrize("far", [1e3, 1e6, 1e8])
def test_rows_far_from_zero_keep_their_digits(far):
    rows = X + far
    found = Spread.of(rows[:20], ONES[:20]).merge(Spread.of(rows[20:], ONES[20:]))
    # What the rows themselves lost when they were moved, and as much again.
    assert_rounded(found.shrinkage[0], ledoit_wolf_shrinkage(X), 100 * far, 1.0)


def test_what_an_outlier_took_is_known():
    for far in 1e2, 1e3, 1e4, 1e5, 1e6, 1e10:
        outlier = Spread.of(np.eye(25)[:1] * far, np.ones(1))
        left = Spread.of(X, ONES).merge(outlier).merge(outlier, sign=-1)
        coefficient, estimate = left.shrinkage
        assert abs(coefficient - ledoit_wolf_shrinkage(X)) <= 64 * estimate
    assert estimate == rounded(1)
    assert 0 <= coefficient <= 1


@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_a_fourth_power_beyond_double_precision_raises(scale):
    with pytest.raises(KnowmoreError, match="the fourth power of that, which shrinkage="):
        Spread.of(X * scale, ONES)
