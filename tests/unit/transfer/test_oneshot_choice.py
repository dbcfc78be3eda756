"""Criteria against their definitions, searches for rho against all its values, and rankings."""

from __future__ import annotations

import numpy as np
import pytest
from oneshot_tasks import pair_of
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from tolerance import assert_rounded

from knowmore.models.probabilities import log_density
from knowmore.transfer import Ranking
from knowmore.transfer.choice import (
    CRITERIA,
    RHOS,
    SEARCHES,
    Best,
    average_precision,
    balanced,
    golden,
    grid,
    roc_auc,
    squashed,
)

LENGTH = 2.0
# A point that is kept is off by a part of the bracket, which shrinks at each of 17 steps.
APART = 4 * np.finfo(float).eps * ((np.sqrt(5) + 1) / 2) ** 17
SHAPES = [(1, 1), (1, 20), (5, 30), (12, 12), (20, 1)]


def labels(positives, negatives, rng):
    return rng.permutation(np.repeat([1.0, -1.0], [positives, negatives]))


def estimates(positives, negatives, ties, seed=0, rhos=40):
    """Labels (n,) and scores (40, n); with ties, of few different values."""
    rng = np.random.default_rng(seed)
    y = labels(positives, negatives, rng)
    mean = rng.normal(size=(rhos, len(y))) + 0.5 * y
    return y, np.round(mean) if ties else mean


def area(y, scores):
    """VOC's area under the curve of precision, each step with the best precision still to come."""
    precision, recall, _ = precision_recall_curve(y > 0, scores)
    # scikit-learn's curve ends with a precision of one at recall zero, which no score has.
    precision, recall = precision[:-1], recall[:-1]
    steps = [(r, max(precision[recall >= r])) for r in sorted(set(recall) - {0.0})]
    before = [0.0] + [r for r, _ in steps[:-1]]
    return sum((r - last) * best for (r, best), last in zip(steps, before, strict=True))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_average_precision_is_the_area_of_the_voc(shape, ties):
    y, mean = estimates(*shape, ties)
    got = average_precision(y, mean)
    assert_rounded(got, [area(y, scores) for scores in mean])
    np.testing.assert_array_equal(got, [average_precision(y, scores) for scores in mean])


@pytest.mark.parametrize("ties", [False, True])
def test_with_one_positive_it_is_scikit_learns_and_one_over_the_rank(ties):
    y, mean = estimates(1, 25, ties)
    got = average_precision(y, mean)
    assert_rounded(got, [average_precision_score(y > 0, scores) for scores in mean])
    ranks = (mean >= mean[:, y > 0]).sum(axis=1)
    np.testing.assert_array_equal(got, 1 / ranks)


def test_the_order_of_examples_does_not_matter():
    y, mean = estimates(6, 20, ties=True)
    order = np.random.default_rng(5).permutation(26)
    np.testing.assert_array_equal(
        average_precision(y, mean), average_precision(y[order], mean[:, order])
    )


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_roc_curve_is_scikit_learns(shape, ties):
    y, mean = estimates(*shape, ties)
    assert_rounded(roc_auc(y, mean), [roc_auc_score(y > 0, scores) for scores in mean])
    pairs = mean[:, y > 0, None] - mean[:, None, y < 0]
    assert_rounded(roc_auc(y, mean), (0.5 + 0.5 * np.sign(pairs)).mean(axis=(1, 2)))


def test_the_log_predictive_probability_is_that_of_normal_densities():
    y, mean = estimates(4, 9, ties=False)
    variance = np.random.default_rng(1).uniform(0.1, 3, mean.shape)
    terms = norm.logpdf(y, mean, np.sqrt(variance))
    got = log_density(y, mean, variance)
    assert_rounded(got, terms, scale=abs(terms).max())


def test_squashed_errors_one_by_one():
    y, mean = estimates(3, 12, ties=False)
    weights = {1.0: 15 / 6, -1.0: 15 / 24}
    np.testing.assert_array_equal(balanced(y), [weights[label] for label in y])
    for zeta in (np.ones(15), balanced(y)):
        want = [
            -sum(
                z / (1 + np.exp(-10 * (label * (label - m) - 1)))
                for z, label, m in zip(zeta, y, scores, strict=True)
            )
            / 15
            for scores in mean
        ]
        # What rounds y (y - m) - 1 is multiplied by ten.
        assert_rounded(squashed(y, mean, zeta), want, roundings=10 * 15 * abs(mean).max())


def test_each_class_weighs_half():
    y = np.array([1.0, -1, -1, -1])
    wrong = np.array([-100 * y, np.full(4, -100.0), np.full(4, 100.0)])
    assert_rounded(squashed(y, wrong, balanced(y)), [-1, -0.5, -0.5])


def test_a_criterion_judges_a_pair_for_each_rho():
    rng = np.random.default_rng(2)
    X, Z, kernel = rng.normal(size=(14, 3)), rng.normal(size=(6, 3)), RBF(2.0)
    y = labels(3, 11, rng)
    pair = pair_of(kernel, X, y, Z, noise=0.1)
    rhos = np.linspace(0, 1, 5)
    mean, variance = pair.leave_one_out(rhos)
    want = {
        "ap": average_precision(y, mean),
        "auc": roc_auc(y, mean),
        "lpp": log_density(y, mean, variance).sum(axis=1),
        "squashed": squashed(y, mean, np.ones(14)),
        "weighted": squashed(y, mean, balanced(y)),
        "likelihood": pair.conditional_likelihood(rhos),
    }
    assert list(CRITERIA) == list(want)
    for name, criterion in CRITERIA.items():
        np.testing.assert_array_equal(criterion(pair, rhos), want[name], err_msg=name)
        assert np.ndim(criterion(pair, 0.5)) == 0


# -- searches ------------------------------------------------------------------------------------


def made(seed, positives=1, relation=1.0):
    """A target with background, and a support task that is more or less related to it."""
    rng = np.random.default_rng(seed)
    centre = 1.2 * rng.normal(size=6)
    X = np.vstack([rng.normal(size=(positives, 6)) + centre, rng.normal(size=(40, 6))])
    y = np.repeat([1.0, -1.0], [positives, 40])
    Z = rng.normal(size=(15, 6)) + relation * centre + (1 - relation) * 1.2 * rng.normal(size=6)
    return pair_of(RBF(LENGTH), X, y, Z, noise=1e-3)


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
    """Neither task says anything of the other: each rho gives the same model."""
    X, y = np.arange(8.0)[:, None], np.array([1.0, -1, -1, -1, -1])
    pair = pair_of(RBF(1e-3), X[:5], y, X[5:], noise=0.1)
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
    ranking = Ranking.of("ap", found)
    assert [one.support for one in ranking] == ["near", "as near", "far", "late", "worse"]
    assert ranking[0] == ("near", 0.4, 0.8, -2.0)


def test_a_related_task_is_preferred():
    """A target with a support task around its positive example, and one far from it."""
    rng, y = np.random.default_rng(0), np.repeat([1.0, -1.0], [1, 40])
    centre = np.full(6, 1.5)
    X = np.vstack([rng.normal(size=(1, 6)) + centre, rng.normal(size=(40, 6))])
    found = {}
    for name, at in {"far": -centre, "near": centre}.items():
        Z = rng.normal(size=(15, 6)) + at
        found[name] = grid(pair_of(RBF(LENGTH), X, y, Z, noise=1e-3), CRITERIA["ap"])
    assert Ranking.of("ap", found)[0].support == "near"
    assert found["near"].value == 1
    assert found["near"].rho > 0


@pytest.mark.parametrize("name", ["ap", "auc"])
@pytest.mark.parametrize("positives", [1, 3])
def test_rounding_wins_no_criterion(name, positives):
    """Nobody is near to anybody, so that no rho puts an example before another."""
    X = 100 * np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(np.arange(30) < positives, 1.0, -1.0)
    pair = pair_of(RBF(1.0), X[:30], y, X[30:], noise=0.3)
    assert not pair.leave_one_out(RHOS)[0].any()
    best = grid(pair, CRITERIA[name])
    assert best.rho == 0
    assert_rounded(best.value, positives / 30 if name == "ap" else 0.5)
