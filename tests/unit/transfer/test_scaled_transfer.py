"""From N to N+1 on the scale of the labels: gauge, share and beta against their definitions."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import GAP, assert_rounded, assert_solves, tolerance

from knowmore import LSSVMClassifier, NPlusOneClassifier, Scores

rng = np.random.default_rng(5)
KERNEL, C = RBF(1.5), 4.0
Y = np.array(["ant", "bee", "cow", "dog"])[np.r_[np.arange(40) % 4, np.arange(8) % 2]]
CENTRES = {"ant": (0.0, 0.0), "bee": (2.0, 0.0), "cow": (0.0, 2.0), "dog": (2.0, 2.0)}
X = np.array([CENTRES[name] for name in Y]) + rng.normal(size=(48, 2))
W = rng.uniform(0.5, 2.0, size=48)
Q = rng.normal(1.0, 1.5, size=(9, 2))
# Known are ant, cow and dog.
KNOWN, COLUMNS = ["ant", "cow", "dog"], [0, 2, 3]


def known(X):
    """Scores that are neither near -1 and 1 nor free of mistakes."""
    places = np.array([CENTRES[name] for name in KNOWN])
    return 3.0 - 0.7 * ((X[:, None] - places) ** 2).sum(axis=2) + [0.0, 5.0, -2.0]


def balanced():
    """The weights that make all classes count the same."""
    sums = {name: W[name == Y].sum() for name in np.unique(Y)}
    return W * W.sum() / (4 * np.array([sums[name] for name in Y]))


def gauge():
    """a and o by a general solver of least squares."""
    rows = Y != "bee"
    S, T, root = known(X[rows]), oracle.one_vs_all(Y)[1][rows][:, COLUMNS], balanced()[rows] ** 0.5
    A, w = np.column_stack([S.ravel(), np.ones(S.size)]), np.repeat(root, 3)
    a, o = np.linalg.lstsq(A * w[:, None], T.ravel() * w, rcond=None)[0]
    return a, o


def left_out(T, side, noise):
    """Left-out scores by refits, where `side` (n, M) is added to what is learnt."""
    return oracle.left_out(KERNEL, noise, X, T - side, np.arange(48), True)[0] + side


CLF = NPlusOneClassifier(Scores(KNOWN, known), KERNEL, C).fit(X, Y, sample_weight=W)
A_, O_ = gauge()
NOISE, T = 1 / (C * W), oracle.one_vs_all(Y)[1]
K = oracle.covariance(KERNEL, X, NOISE)
ROUNDINGS = tolerance(K) / np.finfo(float).eps * len(X)


def share():
    B = A_ * known(X) + O_
    away = left_out(T[:, COLUMNS], B, NOISE) - B
    w = balanced()[:, None]
    return np.clip((w * away * (T[:, COLUMNS] - B)).sum() / (w * away**2).sum(), 0, 1)


def test_the_scores_are_brought_to_the_labels_by_least_squares():
    coding, examples = CLF.model_.coding, CLF.model_.examples
    scale, offset = coding.gauge(examples)
    assert_rounded(scale, A_, 1e4)
    assert_rounded(offset, O_, 1e4)


def test_the_share_has_the_least_squared_error_of_refits():
    got = CLF.model_.minimum.share
    assert 0.01 < got < 0.99
    assert_rounded(got, share(), ROUNDINGS)


def test_known_classes_go_that_far_from_the_source():
    B = A_ * known(X) + O_
    far = oracle.scores(KERNEL, NOISE, X, T[:, COLUMNS] - B, Q, bias=True)
    source = A_ * known(Q) + O_
    got = CLF.decision_function(Q)[:, COLUMNS]
    left = KERNEL(X, Q)
    assert_solves(got - source, share() * far, K, T[:, COLUMNS] - B, left=left, bias=True)


def test_the_new_class_starts_from_the_scaled_mixture():
    mixed, at = A_ * known(X) @ CLF.beta_, A_ * known(Q) @ CLF.beta_
    t = T[:, [1]] - mixed[:, None]
    want = oracle.scores(KERNEL, NOISE, X, t, Q, bias=True)
    got = CLF.decision_function(Q)[:, [1]] - at[:, None]
    assert_solves(got, want, K, t, left=KERNEL(X, Q), bias=True)


def loss(beta):
    """The hinges of refits; all classes weigh the same."""
    B = A_ * known(X) + O_
    scores = np.empty((48, 4))
    scores[:, COLUMNS] = B + share() * (left_out(T[:, COLUMNS], B, NOISE) - B)
    mixed = A_ * known(X) @ beta
    scores[:, 1] = left_out(T[:, [1]], mixed[:, None], NOISE)[:, 0]
    own = T == 1
    theirs, rival = scores[own], np.where(own, -np.inf, scores)
    known_rival = scores[:, 1]
    new = Y == "bee"
    z = np.where(new, 1 + rival.max(axis=1) - theirs, 1 + known_rival - theirs)
    return float(balanced() @ np.maximum(z, 0))


@pytest.mark.slow
def test_beta_has_the_least_loss():
    found = CLF.model_.minimum
    assert_rounded(found.value, loss(CLF.beta_), ROUNDINGS)
    for _ in range(50):
        other = abs(rng.normal(size=3))
        other *= rng.random() / np.linalg.norm(other)
        assert loss(other) >= found.value - found.gap - ROUNDINGS * np.finfo(float).eps


@pytest.mark.parametrize("factor", [1e-3, 0.2, 50.0])
def test_the_units_of_the_source_do_not_matter(factor):
    other = Scores(KNOWN, lambda X: factor * known(X) + 9.0)
    clf = NPlusOneClassifier(other, KERNEL, C).fit(X, Y, sample_weight=W)
    np.testing.assert_allclose(clf.beta_, CLF.beta_, atol=GAP)
    np.testing.assert_allclose(clf.decision_function(Q), CLF.decision_function(Q), atol=GAP)


@pytest.mark.parametrize("of", [lambda X: -known(X), lambda X: np.ones((len(X), 3))])
def test_from_scores_that_tell_nothing_the_new_class_takes_nothing(of):
    clf = NPlusOneClassifier(Scores(KNOWN, of), KERNEL, C).fit(X, Y)
    alone = LSSVMClassifier(KERNEL, C).fit(X, Y).decision_function(Q)
    K = oracle.covariance(KERNEL, X, 1 / C)
    got = clf.decision_function(Q)[:, [1]]
    assert_solves(
        got, alone[:, [1]], K, oracle.one_vs_all(Y)[1][:, [1]], left=KERNEL(X, Q), bias=True
    )


def test_a_source_of_one_class_is_only_moved():
    some = np.isin(Y, ["ant", "bee"])
    clf = NPlusOneClassifier(Scores(["ant"], lambda X: known(X)[:, :1]), KERNEL, C)
    clf.fit(X[some], Y[some])
    scale, offset = clf.model_.coding.gauge(clf.model_.examples)
    assert scale == 1
    mean = known(X[Y == "ant"])[:, 0].mean()
    assert_rounded(offset, 1 - mean, 100, scale=abs(mean))


def few(of):
    """Three known classes with two or three examples each, and a new one with one."""
    X = np.random.default_rng(0).standard_normal((9, 2))
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1, 3])
    return NPlusOneClassifier(Scores([0, 1, 2], of)), X, y


@pytest.mark.parametrize("size", [0.0, 1e-200, 0.3, 3e7, 1e12])
@pytest.mark.parametrize("part", [0.0, 1e-16, 1e-12])
def test_scores_that_differ_by_rounding_tell_nothing_in_any_order(size, part):
    clf, X, y = few(lambda X: size * (1 + part * np.sin(7 * X[:, :1] * [1, 2, 3])))
    nothing = few(lambda X: np.zeros((len(X), 3)))[0].fit(X, y).decision_function(X)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(9)
        clf.fit(X[order], y[order])
        assert clf.model_.coding.gauge(clf.model_.examples)[0] == 0
        assert_rounded(clf.decision_function(X), nothing, 1e3)


def test_scores_too_small_to_square_tell_nothing():
    clf, X, y = few(lambda X: 1e-300 * X @ np.ones((2, 3)))
    clf.fit(X, y)
    assert clf.model_.coding.gauge(clf.model_.examples)[0] == 0


def test_a_source_that_knows_more_keeps_the_order_of_its_classes():
    """An offset for each class, fitted to one example of each, turned near ranks upside down."""
    draw = np.random.default_rng(2)
    places = draw.normal(size=(12, 30))

    def ranks(X):
        near = -((X[:, None] - places) ** 2).sum(axis=2)
        return near.argsort(axis=1).argsort(axis=1) + 0.3 * np.tanh(near / 60)

    y = np.r_[np.arange(12), [12] * 5]
    X = np.vstack([places, np.full((1, 30), 3.0)])[y] + draw.normal(size=(17, 30))
    clf = NPlusOneClassifier(Scores(range(12), ranks)).fit(X, y)
    rows = np.repeat(places, 10, axis=0) + draw.normal(size=(120, 30))
    got = clf.decision_function(rows)[:, :12]
    assert clf.model_.minimum.share == 0
    np.testing.assert_array_equal(got.argsort(axis=1), ranks(rows).argsort(axis=1))
