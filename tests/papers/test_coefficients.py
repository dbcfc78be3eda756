"""Picks by the coefficients that rows would get, against conditioning again on each pick."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern
from tests import oracle

from knowmore import GPClassifier
from papers.practice.coefficients import CRITERIA, suggested


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
        labels = [[1.0 if m == max(row) else -1.0 for m in row] for row in mean]
        values = {
            j: np.mean([abs(t - m) for t, m in zip(labels[j], mean[j], strict=True)])
            / (C[j, j] + noise)
            * (1 + abs(B[:, j]).sum() if criterion == "impact" else 1)
            for j in range(len(pool))
            if j not in chosen
        }
        chosen.append(max(values, key=values.__getitem__))
        T = np.vstack([T, labels[chosen[-1]]])
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
