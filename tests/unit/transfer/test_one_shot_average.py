"""The averages of several supports, background as the prior, and noise in proportion."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from laws.laws import assert_equal_models, batch
from one_shot_scene import KERNEL, SUPPORTS, X, Y, scene
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded

from knowmore import GPClassifier, OneShotClassifier
from knowmore.models.probabilities import log_density

QUERIES = np.random.default_rng(5).normal(size=(7, 3)) + 0.5


class Refits:
    """Everything by definition: an inverse for each support and rho."""

    def __init__(self, X, y, supports, noise, prior):
        self.X, self.y, self.supports, self.noise, self.prior = X, y, supports, noise, prior

    def parts(self, name, rho):
        """The inverse of K~(rho), and targets, of the examples and a support."""
        S = self.supports[name]
        joint, n = np.vstack([self.X, S]), len(self.X)
        same = (np.arange(len(joint)) < n)[:, None] == (np.arange(len(joint)) < n)
        K = KERNEL(joint) * np.where(same, 1, rho) + self.noise * np.eye(len(joint))
        return np.linalg.inv(K), np.append(self.y, np.ones(len(S))) - self.prior

    def left_out(self, name, rho):
        P, t = self.parts(name, rho)
        n = len(self.X)
        variance = 1 / np.diagonal(P)[:n]
        return self.y - (P @ t)[:n] * variance, variance

    def best(self, name):
        """(lpp, rho); of equal ones the smaller rho."""
        rhos = np.arange(101) / 100
        lpps = [log_density(self.y, *self.left_out(name, rho)).sum() for rho in rhos]
        return max(lpps), rhos[int(np.argmax(lpps))]

    def asked(self, name, rho, queries):
        P, t = self.parts(name, rho)
        k = np.vstack([KERNEL(self.X, queries), rho * KERNEL(self.supports[name], queries)])
        explained = np.einsum("ij,ij->j", k, P @ k)
        return self.prior + k.T @ (P @ t), 1 + self.noise - explained

    def condition(self):
        return max(np.linalg.cond(self.parts(name, 1.0)[0]) for name in self.supports)


def mixture(said):
    """Mean and variance of equal parts."""
    means, variances = (np.array(each) for each in zip(*said, strict=True))
    return means.mean(axis=0), (variances + (means - means.mean(axis=0)) ** 2).mean(axis=0)


@pytest.mark.parametrize("members", [1, 2, 10])
@pytest.mark.parametrize("prior", [-1.0, -0.5, 0.0])
@pytest.mark.parametrize("positives", [1, 3])
def test_the_answers_are_the_mean_of_the_best_supports_at_their_best_rho(positives, prior, members):
    X, y, supports = scene(positives)
    clf = OneShotClassifier(KERNEL, supports, prior=prior, members=members).fit(X, y)
    refits = Refits(X, np.where(y == "okapi", 1.0, -1.0), supports, clf.noise_, prior)
    best = {name: refits.best(name) for name in supports}
    order = sorted(best, key=best.get, reverse=True)
    assert [one.support for one in clf.ranking_] == order
    assert [one.rho for one in clf.ranking_] == [best[name][1] for name in order]
    assert (clf.support_, clf.rho_) == (order[0], best[order[0]][1])
    used, many = [(name, best[name][1]) for name in order[:members]], 100 * refits.condition()
    alone, variance = mixture([refits.left_out(*one) for one in used])
    left = clf.leave_one_out()
    background = alone[y != "okapi"]
    least = prior + (1 - prior) / 100
    border = np.clip(background.mean() + 2 * background.std(), least, 0) if prior else 0.0
    assert_rounded(clf.border_, border, many, 1.0)
    assert_rounded(left.scores[:, 1], alone - border, many, 1.0)
    assert_rounded(left.scores[:, 0], border - alone, many, 1.0)
    assert_rounded(left.variance, variance, many, 1.0)
    mean, variance = mixture([refits.asked(*one, QUERIES) for one in used])
    assert_rounded(clf.decision_function(QUERIES), mean - border, many, 1.0)
    assert_rounded(clf.predict_variance(QUERIES), variance, many, 1.0)


def test_one_positive_among_much_background_is_recognised():
    """The class and the background overlap; by the sign of the value few would be found."""
    rng = np.random.default_rng(0)
    known, asked = rng.normal(size=(101, 5)), rng.normal(size=(400, 5))
    known[0] += 1.5
    asked[:200] += 1.5
    y = np.where(np.arange(101) == 0, "okapi", "background")
    clf = OneShotClassifier(RBF(2.0), {}).fit(known, y)
    found = clf.predict(asked) == "okapi"
    assert found[:200].mean() > 0.5
    assert found[200:].mean() < 0.1
    assert (clf.decision_function(asked[:200]) + clf.border_ > 0).mean() < 0.2
    # One without weight says nothing.
    border = clf.border_
    clf.add(known[:1] + 9, ["background"], sample_weight=[0.0])
    assert_rounded(clf.border_, border)


def test_the_class_with_fewer_examples_is_the_one_to_learn():
    found = [
        OneShotClassifier(KERNEL, SUPPORTS).fit(X, np.where(Y == "okapi", name, "background"))
        for name in ("aardvark", "okapi")
    ]
    first, second = (one.decision_function(QUERIES) for one in found)
    np.testing.assert_array_equal(first, -second)
    # The classes swap their parts when there are more of it.
    clf = found[1]
    assert clf.model_.positive == "okapi"
    clf.relabel(clf.ids_[5:], "okapi")
    assert clf.model_.positive == "background"
    assert_equal_models(clf, batch(partial(OneShotClassifier, None, SUPPORTS), clf), X)


def test_groups_that_are_left_out_are_refits_without_them():
    X, y, supports = scene(4)
    clf = OneShotClassifier(KERNEL, supports).fit(X, y)
    groups = np.arange(len(X)) // 3
    left = clf.leave_one_out(groups)
    labels = np.where(y == "okapi", 1.0, -1.0)
    for g in 0, 1, 7:
        rest = groups != g
        refits = Refits(X[rest], labels[rest], supports, clf.noise_, -1.0)
        said = [refits.asked(one.support, one.rho, X[~rest]) for one in clf.ranking_]
        mean, variance = mixture(said)
        many = 100 * refits.condition()
        assert_rounded(left.scores[~rest, 1], mean - clf.border_, many, 1.0)
        assert_rounded(left.variance[~rest], variance, many, 1.0)


def test_an_unseen_row_of_the_same_place_is_the_example_left_out():
    X, y, supports = scene(3)
    clf = OneShotClassifier(KERNEL, supports).fit(X, y)
    unseen, left = clf.model_.left_out.unseen(), clf.leave_one_out()
    np.testing.assert_array_equal(unseen.scores, left.scores)
    # All weigh one.
    assert_rounded(unseen.variance, left.variance)


def test_what_weighs_nothing_is_judged_by_those_that_count():
    inputs, y, supports = scene(4)
    groups = np.arange(len(y)) // 3
    silent = np.arange(len(y)) % 5 == 3
    clf = OneShotClassifier(KERNEL, supports)
    clf.fit(inputs, y, sample_weight=np.where(silent, 0.0, 1.0))
    left, queries = clf.leave_one_out(), inputs[silent]
    many = 100 * np.linalg.cond(KERNEL(inputs) + clf.noise_ * np.eye(len(y)))
    assert_rounded(left.scores[silent, 1], clf.decision_function(queries), many, 1.0)
    assert_rounded(left.variance[silent], clf.predict_variance(queries), many, 1.0)
    labels = np.where(y == "okapi", 1.0, -1.0)
    left = clf.leave_one_out(groups)
    for i in np.flatnonzero(silent)[:3]:
        rest = ~silent & (groups != groups[i])
        refits = Refits(inputs[rest], labels[rest], supports, clf.noise_, -1.0)
        said = [refits.asked(one.support, one.rho, inputs[[i]]) for one in clf.ranking_]
        mean, variance = mixture(said)
        assert_rounded(left.scores[i, 1], mean[0] - clf.border_, many, 1.0)
        assert_rounded(left.variance[i], variance[0], many, 1.0)


def test_what_resembles_nothing_is_background():
    clf = OneShotClassifier(KERNEL, SUPPORTS).fit(X, Y)
    far = np.full((1, 3), 1e3)
    assert clf.decision_function(far) == -1 - clf.border_
    assert -1 < clf.border_ < 0
    assert clf.predict(far) == ["background"]
    assert clf.predict_variance(far) == 1 + clf.noise_
    turned = OneShotClassifier(KERNEL, SUPPORTS, name="a").fit(X, np.where(Y == "okapi", "a", "b"))
    assert turned.decision_function(far) == 1 + turned.border_
    assert OneShotClassifier(KERNEL, SUPPORTS, prior=0.0).fit(X, Y).decision_function(far) == 0


def test_supports_that_are_no_help_leave_independent_learning():
    far = {f"far {i}": X + 99 * (i + 1) for i in range(3)}
    clf, alone = (OneShotClassifier(KERNEL, each).fit(X, Y) for each in (far, {}))
    assert (clf.support_, clf.rho_) == (None, 0.0)
    assert len(clf.model_.members) == 1
    np.testing.assert_array_equal(clf.decision_function(X), alone.decision_function(X))
    # One that helps is averaged with what the others leave as it is.
    clf.add_support("near", SUPPORTS["gerenuk"])
    assert [one.weight for one in clf.model_.members] == [0.25, 0.75]


def test_with_no_supports_it_is_a_gaussian_process_of_labels_from_zero_to_two():
    """An offset of one: the background is the prior mean."""
    y = np.where(Y == "okapi", 1.0, -1.0)
    clf = OneShotClassifier(KERNEL, {}, noise=0.1).fit(X, Y)
    K = KERNEL(X) + 0.1 * np.eye(len(X))
    want = -1 + KERNEL(QUERIES, X) @ np.linalg.solve(K, y + 1) - clf.border_
    assert_rounded(clf.decision_function(QUERIES), want, 100 * np.linalg.cond(K), 1.0)
    zero = OneShotClassifier(KERNEL, {}, noise=0.1, prior=0.0).fit(X, Y)
    plain = GPClassifier(KERNEL, noise=0.1).fit(X, Y)
    assert_rounded(
        zero.decision_function(QUERIES), plain.decision_function(QUERIES), 100 * np.linalg.cond(K)
    )


@pytest.mark.parametrize("members", [2, 10])
def test_a_history_of_examples_and_supports_is_the_fit_of_what_is_left(members):
    make = partial(OneShotClassifier, members=members)
    inputs, y, supports = scene(2)
    clf, rng = make(KERNEL, supports).fit(inputs, y), np.random.default_rng(3)
    clf.add_support("cougar", rng.normal(size=(8, 3)) + 0.7)
    clf.add(rng.normal(size=(4, 3)), ["okapi", "background", "background", "okapi"])
    clf.remove_support("wrench").remove([0, 7])
    clf.replace([5], rng.normal(size=(1, 3)), ["okapi"]).relabel([1], ["background"])
    clf.add_support("wrench", SUPPORTS["wrench"] + 0.1)
    clf.merge(make(KERNEL, clf.supports_).fit(X + 0.1, Y, range(100, 131)))
    assert_equal_models(clf, batch(partial(make, None, clf.supports_), clf), X)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 3e6])
def test_the_noise_is_about_a_quarter_of_the_variance_and_a_power_of_two(scale):
    clf = OneShotClassifier(scale * RBF(1.5), SUPPORTS).fit(X, Y)
    assert np.frexp(clf.noise_)[0] == 0.5
    assert 2**-2.5 < clf.noise_ / scale < 2**-1.5
    # The variance of these differs from one example to the other.
    clf = OneShotClassifier(DotProduct(1.0), SUPPORTS).fit(X, Y)
    noise = clf.noise_
    assert noise == 1.0
    clf.add(X[3:5] + 0.1, ["background", "background"])
    assert clf.noise_ == noise


def test_an_example_of_a_support_is_no_mistake():
    """The noise is large enough for two things that look the same."""
    both = SUPPORTS | {"both": X[[3, 3]]}
    assert "both" in OneShotClassifier(KERNEL, both).fit(X, Y).supports_
