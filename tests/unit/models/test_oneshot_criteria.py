"""Criteria against scikit-learn and against their definitions, one example at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from tolerance import assert_rounded

from knowmore.models.oneshot import Pair, Side
from knowmore.models.oneshot_criteria import (
    CRITERIA,
    average_precision,
    balanced,
    log_predictive,
    roc_auc,
    squashed,
)

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
    got = log_predictive(y, mean, variance)
    assert_rounded(got, terms.sum(axis=1), scale=abs(terms).sum(axis=1).max())


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
    target, support = Side.of(kernel(X), y, 0.1), Side.of(kernel(Z), np.ones(6), 0.1)
    pair = Pair.of(target, support, kernel(X, Z))
    rhos = np.linspace(0, 1, 5)
    mean, variance = pair.leave_one_out(rhos)
    want = {
        "ap": average_precision(y, mean),
        "auc": roc_auc(y, mean),
        "lpp": log_predictive(y, mean, variance),
        "squashed": squashed(y, mean, np.ones(14)),
        "weighted": squashed(y, mean, balanced(y)),
        "likelihood": pair.conditional_likelihood(rhos),
    }
    assert list(CRITERIA) == list(want)
    for name, criterion in CRITERIA.items():
        np.testing.assert_array_equal(criterion(pair, rhos), want[name], err_msg=name)
        assert np.ndim(criterion(pair, 0.5)) == 0
