"""Searches for rho against all its values, and against golden section search as it is defined."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded

from knowmore.models.oneshot import Pair, Side
from knowmore.models.oneshot_criteria import CRITERIA
from knowmore.models.oneshot_search import RHOS, SEARCHES, Best, golden, grid, ranking

LENGTH = 2.0
# A point that is kept is off by a part of the bracket, which shrinks at each of 17 steps.
APART = 4 * np.finfo(float).eps * ((np.sqrt(5) + 1) / 2) ** 17


def made(seed, positives=1, relation=1.0):
    """A target with background, and a support task that is more or less related to it."""
    rng = np.random.default_rng(seed)
    centre = 1.2 * rng.normal(size=6)
    X = np.vstack([rng.normal(size=(positives, 6)) + centre, rng.normal(size=(40, 6))])
    y = np.repeat([1.0, -1.0], [positives, 40])
    Z = rng.normal(size=(15, 6)) + relation * centre + (1 - relation) * 1.2 * rng.normal(size=6)
    kernel = RBF(LENGTH)
    target, support = Side.of(kernel(X), y, 1e-3), Side.of(kernel(Z), np.ones(15), 1e-3)
    return Pair.of(target, support, kernel(X, Z))


def curve(function):
    """A criterion that is a function of rho alone."""
    return lambda pair, rho: np.asarray(function(np.asarray(rho)), dtype=float)


def section(f, evaluations):
    """Golden section search, as Kiefer defines it: each step divides the bracket in that ratio.

    The point that is kept divides the new bracket too, so one evaluation is enough. Written with
    both points looked up anew each time.
    """
    g, low, high = (np.sqrt(5) - 1) / 2, 0.0, 1.0
    looked = []
    for _ in range(evaluations - 1):
        left, right = high - g * (high - low), low + g * (high - low)
        looked += [left, right]
        low, high = (low, right) if f(left) > f(right) else (left, high)
    return low, high, looked


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("seed", range(5))
def test_the_grid_finds_the_best_of_its_points(seed, name):
    pair = made(seed, positives=3)
    found = grid(pair, CRITERIA[name])
    values = CRITERIA[name](pair, RHOS)
    assert found.value == values.max()
    lpps = CRITERIA["lpp"](pair, RHOS)
    best = [i for i in range(101) if values[i] == values.max()]
    best = [i for i in best if lpps[i] == max(lpps[best])]
    assert found.rho == RHOS[best[0]]


def test_the_grid_has_a_hundred_steps_and_both_ends():
    assert (len(RHOS), RHOS[0], RHOS[-1]) == (101, 0.0, 1.0)


def test_equal_values_are_told_apart_by_the_predictive_probability():
    pair = made(1)
    found = grid(pair, curve(lambda rho: rho >= 0.25))
    lpps = CRITERIA["lpp"](pair, RHOS)
    among = RHOS >= 0.25
    assert found.value == 1
    assert found.rho == RHOS[among][lpps[among].argmax()]
    assert found.rho > 0.25


def test_of_all_alike_the_least_transfer_wins():
    """Two tasks of which neither says anything of the other: each rho gives the same model."""
    kernel, X = RBF(1e-3), np.arange(8.0)[:, None]
    target = Side.of(kernel(X[:5]), np.array([1.0, -1, -1, -1, -1]), 0.1)
    pair = Pair.of(target, Side.of(kernel(X[5:]), np.ones(3), 0.1), kernel(X[:5], X[5:]))
    for search in SEARCHES.values():
        assert search(pair, CRITERIA["ap"]).rho == 0


@pytest.mark.parametrize("peak", [0.05, 0.3141, 0.5, 0.9])
def test_golden_section_finds_a_single_peak(peak):
    parabola = curve(lambda rho: -((rho - peak) ** 2))
    assert abs(golden(made(0), parabola).rho - peak) < 1e-3


@pytest.mark.parametrize("positives", [1, 5])
@pytest.mark.parametrize("seed", range(6))
def test_golden_section_is_that_of_the_definition(seed, positives):
    pair, criterion = made(seed, positives, relation=seed / 6), CRITERIA["ap"]
    asked = []

    def noted(pair, rho):
        asked.append(np.array(rho))
        return criterion(pair, rho)

    found = golden(pair, noted)
    singles, last = np.array([rho for rho in asked if rho.ndim == 0]), asked[-1]
    low, high, looked = section(lambda rho: criterion(pair, np.array(rho)), 17)
    assert len(singles) == 17
    assert abs(np.sort(singles) - _distinct(looked)).max() <= APART
    assert high - low < 1e-3
    np.testing.assert_array_equal(last, np.sort([0.0, *singles]))
    assert found.value == criterion(pair, last).max()
    assert found.value <= grid(pair, criterion, np.union1d(RHOS, last)).value


def _distinct(values):
    values = np.sort(values)
    return values[np.concatenate([[True], np.diff(values) > APART])]


def test_golden_section_walks_a_plateau_to_its_right_end():
    asked = []

    def flat(pair, rho):
        asked.append(float(np.max(rho)))
        return np.zeros(np.shape(rho))

    golden(made(0), flat)
    assert max(asked) > 0.999


def test_no_transfer_is_a_candidate_of_both():
    descending = curve(lambda rho: -rho)
    for search in SEARCHES.values():
        assert search(made(0), descending)[:2] == (0.0, 0.0)


def test_golden_section_may_miss_what_the_grid_finds():
    """Why it is not the default."""
    missed = [
        golden(pair, CRITERIA["ap"]).value < grid(pair, CRITERIA["ap"]).value
        for pair in (made(seed, 5, np.random.default_rng(seed).random()) for seed in range(20))
    ]
    assert any(missed)


def test_support_tasks_are_ranked_by_value_then_probability_then_rho():
    found = {
        "late": Best(0.5, 0.8, -3.0),
        "worse": Best(0.0, 0.7, 9.0),
        "far": Best(0.5, 0.8, -2.0),
        "near": Best(0.4, 0.8, -2.0),
        "as near": Best(0.4, 0.8, -2.0),
    }
    assert ranking(found) == ["near", "as near", "far", "late", "worse"]


def test_a_related_task_is_preferred():
    """The same target with a support task around its positive example, and one far from it."""
    rng, kernel = np.random.default_rng(0), RBF(LENGTH)
    centre = np.full(6, 1.5)
    X = np.vstack([rng.normal(size=(1, 6)) + centre, rng.normal(size=(40, 6))])
    target = Side.of(kernel(X), np.repeat([1.0, -1.0], [1, 40]), 1e-3)
    found = {}
    for name, at in {"far": -centre, "near": centre}.items():
        Z = rng.normal(size=(15, 6)) + at
        support = Side.of(kernel(Z), np.ones(15), 1e-3)
        found[name] = grid(Pair.of(target, support, kernel(X, Z)), CRITERIA["ap"])
    assert ranking(found)[0] == "near"
    assert found["near"].value == 1
    assert found["near"].rho > 0


@pytest.mark.parametrize("name", ["ap", "auc"])
@pytest.mark.parametrize("positives", [1, 3])
def test_rounding_wins_no_criterion(name, positives):
    """Nobody is near to anybody, so that no rho puts an example before another."""
    X = 100 * np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(np.arange(30) < positives, 1.0, -1.0)
    K = RBF(1.0)(X)
    target, support = Side.of(K[:30, :30], y, 0.3), Side.of(K[30:, 30:], np.ones(10), 0.3)
    pair = Pair.of(target, support, K[:30, 30:])
    assert not pair.leave_one_out(RHOS)[0].any()
    best = grid(pair, CRITERIA[name])
    assert best.rho == 0
    assert_rounded(best.value, positives / 30 if name == "ap" else 0.5)
