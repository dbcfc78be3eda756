"""Picks by earlier criteria, against conditioning again on each pick."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, Matern
from tests import oracle
from tests.tolerance import assert_rounded

from knowmore import GPClassifier
from papers.practice.criteria import CRITERIA, _values, suggested


def value(criterion, mean, variance, C, b):
    """The criterion of one row, as the papers have it; mean (M,), C (u,) its covariances.

    b : the weights of the examples in its score
    """
    M, sigma = len(mean), np.sqrt(variance)
    targets = [[1.0 if c == k else -1.0 for c in range(M)] for k in range(M)]
    surprise = [sum(abs(t - m) for t, m in zip(ts, mean, strict=True)) / M for ts in targets]
    p = [norm.cdf(m / sigma) for m in mean]
    weight = surprise[int(np.argmax(mean))] / variance
    return {
        "uncertainty": lambda: -min(abs(m) for m in mean) / sigma,
        "weight": lambda: weight,
        "impact": lambda: weight * (1 + abs(b).sum()),
        "emoc": lambda: (
            sum(q * s for q, s in zip(p, surprise, strict=True))
            / sum(p)
            / variance
            * np.mean(abs(C))
        ),
    }[criterion]()


def brute_force(kernel, noise, X, y, pool, n, criterion):
    """The rows picked; the joint covariance of all is conditioned again for every pick."""
    _, T = oracle.one_vs_all(y.tolist())
    joint = kernel(np.vstack([X, pool]))
    chosen = []
    for _ in range(n):
        held = [*range(len(X)), *(len(X) + p for p in chosen)]
        rest = np.arange(len(X), len(joint))
        cross = joint[np.ix_(held, rest)]
        B = oracle.solve(joint[np.ix_(held, held)] + noise * np.eye(len(held)), cross)
        mean, C = B.T @ T, joint[np.ix_(rest, rest)] - cross.T @ B
        values = {
            j: value(criterion, mean[j], C[j, j] + noise, C[j], B[:, j])
            for j in range(len(pool))
            if j not in chosen
        }
        chosen.append(max(values, key=values.__getitem__))
        best = mean[chosen[-1]]
        T = np.vstack([T, [1.0 if m == max(best) else -1.0 for m in best]])
    return chosen


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("classes", "kernel", "noise"),
    [(3, RBF(1.5), 0.1), (2, Matern(2.0, nu=1.5), 1e-3)],
    ids=["rbf", "two classes"],
)
def test_picks_match_conditioning_again_on_each(criterion, classes, kernel, noise):
    rng = np.random.default_rng(7)
    X, y, pool = rng.normal(size=(25, 3)), np.arange(25) % classes, 1.5 * rng.normal(size=(30, 3))
    clf = GPClassifier(kernel, noise).fit(X, y)
    before = clf.decision_function(pool)
    chosen = brute_force(kernel, noise, X, y, pool, 12, criterion)
    assert suggested(clf, pool, 12, criterion).tolist() == chosen
    np.testing.assert_array_equal(clf.decision_function(pool), before)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_twin_of_a_pick_waits_until_no_others_are_left(criterion):
    rng = np.random.default_rng(1)
    clf = GPClassifier().fit(rng.normal(size=(12, 2)), np.arange(12) % 3)
    pool = np.repeat(rng.normal(size=(4, 2)), 2, axis=0)
    picks = suggested(clf, pool, 8, criterion)
    assert sorted(picks // 2)[::2] == sorted(picks[:4] // 2) == [0, 1, 2, 3]
    assert sorted(picks) == [*range(8)]


def test_the_first_pick_of_two_classes_is_kapoors():
    rng = np.random.default_rng(7)
    clf = GPClassifier(RBF(1.5)).fit(rng.normal(size=(25, 3)), np.arange(25) % 2)
    pool = 1.5 * rng.normal(size=(30, 3))
    want = abs(clf.decision_function(pool)) / np.sqrt(clf.predict_variance(pool))
    assert suggested(clf, pool, 1, "uncertainty").tolist() == [int(want.argmin())]
    assert_rounded(_values(clf.model_, pool, "uncertainty"), -want)


def test_expected_output_change_is_what_adding_the_row_does():
    """The definition: add the row under each label, look at the pool, weigh by probability."""
    rng = np.random.default_rng(7)
    X, y, pool = rng.normal(size=(25, 3)), np.arange(25) % 3, 1.5 * rng.normal(size=(30, 3))
    clf = GPClassifier(RBF(1.5), 0.1).fit(X, y)
    (row,) = suggested(clf, pool, 1, "emoc")
    x, before = pool[[row]], clf.model_.mean(pool)
    above = norm.cdf(clf.decision_function(x)[0] / np.sqrt(clf.predict_variance(x)))
    change = 0.0
    for label, p in zip(clf.classes_, above / above.sum(), strict=True):
        after = GPClassifier(RBF(1.5), 0.1).fit(np.vstack([X, x]), [*y, label]).model_.mean(pool)
        change += p * abs(after - before).mean()
    assert_rounded(_values(clf.model_, pool, "emoc")[row], change, 1e4)


def test_one_class_can_be_asked():
    clf = GPClassifier(RBF(1.0)).fit([[0.0, 0.0]], ["only"])
    pool = np.array([[0.1, 0.0], [5.0, 0.0]])
    assert suggested(clf, pool, 1, "uncertainty").tolist() == [1]
    assert sorted(suggested(clf, pool, 2, "emoc").tolist()) == [0, 1]
