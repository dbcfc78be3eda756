"""Rows of any size, near zero or far from it: the bits, and the answers, of the survivors."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from benchmarks.histories import History
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from tolerance import assert_rounded

from knowmore import Grid, LinearGPClassifier, LinearGPRegressor

SEEDS = range(8)


def drawn(seed, n=120, D=4):
    """Rows from 1e-30 to 1e30, with offsets of up to 1e15 spreads, and cells far from all."""
    rng = np.random.default_rng(seed)
    spread = 10.0 ** rng.integers(-30, 15, D)
    X = spread * (rng.normal(size=(n, D)) + 10.0 ** rng.integers(0, 16, D) * rng.integers(0, 2, D))
    far = rng.random((n, D)) < 0.03
    X[far] = rng.choice([-1, 1], far.sum()) * 10.0 ** rng.integers(-30, 31, far.sum())
    return X, rng


@pytest.mark.slow(fast=8)
@pytest.mark.parametrize("resolution", [None, 8, "exact"])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_history_of_any_rows_is_the_fit_of_the_survivors(seed, resolution):
    X, rng = drawn(seed)
    if seed % 2:
        estimator, y = LinearGPClassifier(resolution=resolution), rng.integers(0, 3, len(X))
    else:
        estimator = LinearGPRegressor(resolution=resolution)
        y = rng.integers(-3, 4, len(X)) * 10.0 ** rng.integers(-20, 20) + 1e9
    weights = rng.integers(1, 2**16, len(X)) / 256 if seed % 3 == 0 else None
    empty = deepcopy(estimator).fit(X, y).forget(X, y)
    past = History(empty, X, y, weights, rng, most=40)
    for shard in past.edits(25):
        assert shard.estimator.digest() == past.fresh(shard).digest()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_far_row_that_came_and_went_leaves_no_bit(seed):
    X, rng = drawn(seed)
    y = rng.integers(0, 3, len(X))
    clf = LinearGPClassifier().fit(X, y)
    before = clf.digest()
    for size in (1e5, 1e30, 1e100, 1e-100):
        row = size * rng.normal(size=(1, 4))
        assert clf.partial_fit(row, [1]).digest() != before
        assert clf.forget(row, [1]).digest() == before


def in_the_first_fit(estimator, X, y, row, target):
    """The estimator after it learnt a row together with all others, and forgot it."""
    return estimator.fit(np.vstack([X, row]), np.append(y, target)).forget(row, [target])


@pytest.mark.parametrize("value", [1e4, 99999.0, 1e6, 1e30, -1e30])
def test_one_row_of_the_first_fit_ruins_no_column(value):
    X, y = load_iris(return_X_y=True)
    row = np.full((1, 4), value)
    spoilt = in_the_first_fit(LinearGPClassifier(), X, y, row, 0)
    never = LinearGPClassifier().fit(X, y)
    assert spoilt.score(X, y) == never.score(X, y)
    assert abs(spoilt.grid_.exponents - never.grid_.exponents).max() <= 1
    reg = in_the_first_fit(LinearGPRegressor(), X[:, :3], X[:, 3], row[:, :3], value)
    want = LinearGPRegressor().fit(X[:, :3], X[:, 3]).predict(X[:, :3])
    # Each has its own rounding: half a step of a column.
    moved = 4 * abs(reg.coef_) @ (reg.grid_.steps + never.grid_.steps[:3])
    assert abs(reg.predict(X[:, :3]) - want).max() <= moved


FAR = {
    "10,000 ± 1": (1e4, 1.0, 0.0, 1.0),
    "Unix seconds of eight days": (1.7e9, 2e5, 0.0, 1.0),
    "targets of 1.7e9 ± 0.01": (0.0, 1.0, 1.7e9, 0.01),
    "both far": (-1e12, 1.0, 1e12, 1e3),
}


@pytest.mark.parametrize("name", FAR)
def test_columns_far_from_zero_say_what_they_say_near_it(name, recwarn):
    offset, spread, target, size = FAR[name]
    rng = np.random.default_rng(0)
    X = offset + spread * rng.normal(size=(200, 2))
    t = target + size * ((X - offset) @ [1.0, -2.0] / spread + 0.1 * rng.normal(size=200))
    reg = LinearGPRegressor().fit(X, t)
    near = Ridge(0.1).fit(X - X.mean(axis=0), t - t.mean())
    want = r2_score(t - t.mean(), near.predict(X - X.mean(axis=0)))
    assert want > 0.9
    assert abs(r2_score(t, reg.predict(X)) - want) < 1e-3 * (1 - want)
    assert not recwarn


@pytest.mark.parametrize("noise", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_those_of_ridge_regression_of_the_rows_as_they_are_read(noise, intercept):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3)) * [1, 30, 0.1] + [100, 0, -7]
        X[3] = [1e4, -1e4, 1e3]
        t = rng.normal(size=60)
        reg = LinearGPRegressor(noise, intercept=intercept).fit(X, t)
        Z = reg.grid_.offsets(X) if intercept else reg.grid_.rounded(X)
        y = reg.y_grid_.rounded(t[:, None])[:, 0]
        if intercept:
            Z, y = Z - Z.mean(axis=0), y - y.mean()
        A = Z.T @ Z + noise * np.eye(3)
        assert_rounded(reg.coef_, np.linalg.solve(A, Z.T @ y), 60 * np.linalg.cond(A))


def test_a_stream_that_begins_with_one_row_loses_nothing():
    X, y = load_iris(return_X_y=True)
    for shift in (0.0, 1.7e9):
        stream = LinearGPClassifier().fit(X[:1] + shift, y[:1])
        for i in range(1, len(X)):
            stream.partial_fit(X[i : i + 1] + shift, y[i : i + 1])
        assert stream.score(X + shift, y) == LinearGPClassifier().fit(X, y).score(X, y)


def test_columns_that_say_nothing_at_first_may_say_something_later():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 1] *= 1e-6
    X[:, 2] = 5 + 1e-9 * X[:, 2]
    first = X[:50].copy()
    first[:, 1], first[:, 2] = 0.0, 5.0
    t = X @ [1.0, 1e6, 0.0, 0.0] + 1e9 * (X[:, 2] - 5)
    reg = LinearGPRegressor(1e-20).fit(first, first[:, 0]).forget(first, first[:, 0])
    assert r2_score(t, reg.partial_fit(X, t).predict(X)) > 1 - 1e-9


def test_a_grid_that_is_given_is_kept():
    X, y = load_iris(return_X_y=True)
    grid = Grid([-3, -3, -3, -3], 21, [5, 3, 4, 1])
    clf = LinearGPClassifier(resolution=grid).fit(X, y)
    assert clf.grid_ == grid
    assert clf.digest() == LinearGPClassifier(resolution=grid).fit(grid.rounded(X), y).digest()
