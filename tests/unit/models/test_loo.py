"""Leave-one-out where the others are silent: no opinion looks like no opinion."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern
from tolerance import assert_rounded

from knowmore import (
    GPClassifier,
    GPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
)

NARROW = RBF(1.0)

MACHINES = {
    "gp": lambda kernel, noise, **kw: GPClassifier(kernel, noise, **kw),
    "svm": lambda kernel, noise, **kw: LSSVMClassifier(kernel, 1 / noise, **kw),
    "svm without bias": lambda kernel, noise, **kw: LSSVMClassifier(
        kernel, 1 / noise, bias=False, **kw
    ),
}


def digits(n=300):
    """Raw digits: under a kernel of width one, none says anything of another."""
    return load_digits().data[:n]


def clusters(rng, n=36, classes=3):
    """Some near each other, some far from all."""
    X = rng.normal(size=(n, 3))
    X[2 * n // 3 :] *= 50
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    return X, y


def refits(clf, X, y):
    """Scores (n, M) of each example by a fresh fit of all the others, by the library itself."""
    rest = ~np.eye(len(X), dtype=bool)
    return np.vstack([clone(clf).fit(X[r], y[r]).decision_function(X[~r]) for r in rest])


def closed_form(clf, groups=None):
    """The closed form as it is, and the bound of its rounding."""
    model = clf.model_
    left = model.left_out.moments(model.coefficients, model.targets.T, model.solution[1], groups)
    return left.mean, left.error


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("solver", "dtype"),
    [("cholesky", "float64"), ("inverse", "float64"), ("cholesky", "float32")],
)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_closed_form_is_within_its_bound_of_refits(machine, solver, dtype, grouped):
    rng = np.random.default_rng(3)
    # A factor of single precision cannot be had at the least noise.
    for noise in (1e-6, 1e-3, 0.1, 10.0)[dtype == "float32" :]:
        for width in (0.01, 1.0, 10.0, 100.0):
            X, y = clusters(rng, 26, classes=int(rng.integers(2, 7)))
            kernel = RBF(width)
            clf = MACHINES[machine](kernel, noise, solver=solver, dtype=dtype)
            clf.fit(X[:20], y[:20]).predict(X[:1])
            clf.add(X[20:], y[20:])
            clf.predict(X[:1])
            clf.remove([9, 22])
            X, y = np.delete(X, [9, 22], 0), np.delete(y, [9, 22])
            groups = rng.integers(0, 6, len(X)) if grouped else np.arange(len(X))
            _, T = oracle.one_vs_all(y.tolist())
            noises = np.full(len(X), noise)
            want = oracle.left_out_precisely(kernel(X), noises, T, groups, machine == "svm")
            mean, error = closed_form(clf, groups if grouped else None)
            assert (abs(mean - want) <= error).all(), (noise, width)


@pytest.mark.parametrize("kernel", [RBF(2.0), Matern(3.0, nu=0.5), DotProduct(0.0)])
@pytest.mark.parametrize("machine", MACHINES)
def test_who_is_not_silent_is_predicted_as_by_refits(machine, kernel):
    rng = np.random.default_rng(5)
    X, y = clusters(rng, 60)
    X[50] = 0
    clf = MACHINES[machine](kernel, 0.1).fit(X, y)
    left, (_, error) = clf.leave_one_out(), closed_form(clf)
    _, T = oracle.one_vs_all(y.tolist())
    noises = np.full(len(X), 0.1)
    want = oracle.left_out_precisely(kernel(X), noises, T, np.arange(len(X)), machine == "svm")
    assert (abs(left.scores - want) <= 3 * error).all()
    top = np.sort(want, axis=1)
    clear = top[:, -1] - top[:, -2] > 4 * error.max(axis=1)
    np.testing.assert_array_equal(left.predicted[clear], clf.classes_[want[clear].argmax(axis=1)])
    assert left.silent.any()
    assert not left.silent.all()


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_labels_are_not_known_where_nobody_is_near(solver, dtype):
    X, y = digits(), np.random.default_rng(0).integers(0, 10, 300)
    for noise in (1e-6, 0.1, 10.0):
        left = GPClassifier(NARROW, noise, solver=solver, dtype=dtype).fit(X, y).leave_one_out()
        assert left.silent.all()
        assert not left.scores.any()
        # Far from all, the first of the classes is predicted.
        assert set(left.predicted) == {0}


def test_a_bias_says_how_frequent_classes_are_among_the_others_and_no_more():
    X, y = digits(100), np.random.default_rng(1).integers(0, 4, 100)
    clf = LSSVMClassifier(NARROW, C=3.0).fit(X, y)
    left = clf.leave_one_out()
    assert left.silent.all()
    _, T = oracle.one_vs_all(y.tolist())
    offsets = (T.sum(axis=0) - T) / 99
    assert_rounded(left.scores, offsets)
    expected = [np.bincount(np.delete(y, i), minlength=4).argmax() for i in range(100)]
    np.testing.assert_array_equal(left.predicted, expected)


def test_a_stream_of_raw_wine_knows_no_more_than_its_refits_do():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:90]
    X, y = X[order], y[order]
    clf = GPClassifier(NARROW)
    for i in range(len(X)):
        clf.add(X[i : i + 1], y[i : i + 1])
    left, scores = clf.leave_one_out(), refits(clf, X, y)
    np.testing.assert_array_equal(
        clf.classes_[scores.argmax(axis=1)][~left.silent], left.predicted[~left.silent]
    )
    _, error = closed_form(clf)
    assert (abs(scores[left.silent]) <= 2 * error[left.silent]).all()
    assert 0 < left.silent.sum() < len(X)


def test_a_group_of_which_the_others_say_nothing_is_silent_whatever_it_says_of_itself():
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(8, 2)), 1e3 + rng.normal(size=(6, 2))])
    y, groups = np.array([0, 1] * 7), np.array([0] * 4 + [1] * 4 + [2] * 6)
    for clf in (GPClassifier(NARROW), LSSVMClassifier(NARROW, bias=False)):
        left = clf.fit(X, y).leave_one_out(groups)
        np.testing.assert_array_equal(left.silent, groups == 2)
        assert not left.scores[8:].any()
        assert not clf.leave_one_out().silent.any()
    svm = LSSVMClassifier(NARROW, C=10.0).fit(X, y)
    left = svm.leave_one_out(groups)
    rest = LSSVMClassifier(NARROW, C=10.0).fit(X[:8], y[:8])
    np.testing.assert_array_equal(left.silent, groups == 2)
    assert_rounded(left.scores[8:], np.tile(rest.model_.solution[1], (6, 1)), scale=1.0)


def test_a_regressor_says_its_prior_mean_where_nobody_is_near():
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(10, 2)), [[1e3, 0.0], [0.0, 1e3]]])
    Y = np.column_stack([1e6 + rng.normal(size=12), 1e-3 * rng.normal(size=12)])
    reg = GPRegressor(NARROW, 0.01, normalize_y=False).fit(X, Y)
    left, (_, error) = reg.leave_one_out(), closed_form(reg)
    np.testing.assert_array_equal(left.silent, [False] * 10 + [True] * 2)
    assert not left.predicted[10:].any()
    # Each column has a rounding of its own.
    want = oracle.left_out_precisely(NARROW(X), np.full(12, 0.01), Y, np.arange(12))
    assert (abs(left.predicted - want) <= error).all()
    assert error[:, 1].max() < error[:, 0].min()
    # Values that are normalised have the mean of the others there.
    left = GPRegressor(NARROW, 0.01).fit(X, Y).leave_one_out()
    np.testing.assert_array_equal(left.silent, [False] * 10 + [True] * 2)
    others = [np.delete(Y, i, axis=0).mean(axis=0) for i in (10, 11)]
    np.testing.assert_allclose(left.predicted[10:], others, rtol=4 * np.finfo(float).eps, atol=0)


def test_a_tie_of_two_classes_among_three_is_one_to_the_last_bit():
    # Left out, either twin of x = 0 finds one of each label there, and another class far off.
    X = np.array([[0.0], [0.0], [0.0], [40.0], [41.0]])
    y = np.array(["b", "b", "a", "c", "c"])
    left = GPClassifier(RBF(1.0), 0.1).fit(X, y).leave_one_out()
    assert (left.scores[:2, 0] == left.scores[:2, 1]).all()
    assert (left.scores[:2, 2] < left.scores[:2, 0]).all()
    assert left.predicted[:2].tolist() == ["a", "a"]
    assert not left.silent.any()


def test_with_a_source_silence_of_the_examples_leaves_its_word():
    X = np.array([[0.0], [100.0], [200.0], [300.0]])
    S = np.array([[0.9, -0.8], [-0.7, 0.6], [-0.5, -0.4], [0.3, -0.2]])
    table = dict(zip(X[:, 0], S, strict=True))
    source = Scores(["a", "b"], lambda X: np.array([table[x] for x in X[:, 0]]))
    clf = NPlusOneClassifier(source, NARROW, bias=False, scaled=False)
    clf.fit(X, ["a", "b", "c", "b"])
    left = clf.leave_one_out()
    np.testing.assert_array_equal(left.scores, np.column_stack([S, S @ clf.beta_]))
    assert not left.silent.any()


def test_one_shot_is_told_of_silence_too():
    X = np.vstack([digits(12)[:12]])
    y = np.array([1] + [0] * 11)
    clf = OneShotClassifier(NARROW, {"other": digits(20)[12:]}, noise=0.1).fit(X, y)
    left = clf.leave_one_out()
    assert left.silent.all()
    # What resembles nothing is background.
    assert (left.scores == left.scores[0]).all()
    assert (left.predicted == 0).all()
    assert clf.support_ is None
    paper = {"criterion": "ap", "prior": 0.0, "members": 1}
    clf = OneShotClassifier(NARROW, {"other": digits(20)[12:]}, noise=0.1, **paper).fit(X, y)
    assert not clf.leave_one_out().scores.any()
    assert clf.support_ is None
    assert clf.ranking_[0].value == 1 / 12


def test_silent_examples_are_the_same_after_any_history():
    rng = np.random.default_rng(8)
    X, y = clusters(rng, 40)
    clf = GPClassifier(NARROW).fit(X[:20], y[:20])
    clf.add(X[20:], y[20:])
    clf.remove([1, 30]).relabel([2], [1]).replace([5], X[30:31])
    held = clf.model_.examples
    fresh = GPClassifier(NARROW).fit(held.X, held.labels)
    np.testing.assert_array_equal(clf.leave_one_out().silent, fresh.leave_one_out().silent)


# -- the noise with the best predictions -----------------------------------------------------------


def refitted_error(make, noise, X, y, w):
    """The weight of the examples that a model without all that are equal to them has wrong."""
    wrong = 0.0
    for row in np.unique(X, axis=0):
        out = (row == X).all(axis=1)
        model = make(noise).fit(X[~out], y[~out], sample_weight=w[~out])
        wrong += w[out][model.predict(X[out]) != y[out]].sum()
    return wrong


CHOSEN = {
    "gp": (lambda noise: GPClassifier(RBF(1.0), noise), lambda clf: clf.noise_),
    "svm": (
        lambda noise: LSSVMClassifier(RBF(1.0), noise if noise == "loo" else 1 / noise),
        lambda clf: 1 / clf.C_,
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("seed", range(3))
def test_the_noise_is_chosen_by_examples_left_out_with_their_twins(name, seed):
    make, noise_of = CHOSEN[name]
    rng = np.random.default_rng(seed)
    X, y = clusters(rng, 20)
    X, y, w = X[:12], y[:12], rng.uniform(0.5, 2, 24)
    X, y = np.vstack([X, X[:8], X[:4]]), np.concatenate([y, y[:8], rng.integers(0, 3, 4)])
    chosen = noise_of(make("loo").fit(X, y, sample_weight=w))
    errors = [refitted_error(make, 10.0**k, X, y, w) for k in np.arange(-5, 5.5, 0.5)]
    assert_rounded(refitted_error(make, chosen, X, y, w), min(errors))


@pytest.mark.parametrize("name", CHOSEN)
def test_wrong_labels_that_occur_twice_do_not_speak_for_no_noise(name):
    make, noise_of = CHOSEN[name]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(460, 2)), np.arange(460) % 3
    X += 3 * np.column_stack([np.cos(2.1 * y), np.sin(2.1 * y)])
    labels = np.where(rng.random(60) < 0.3, rng.integers(0, 3, 60), y[:60])
    twice = np.append(np.arange(60), np.arange(40))
    chosen = noise_of(make("loo").fit(X[twice], labels[twice]))
    fixed = [make(10.0**k).fit(X[twice], labels[twice]).score(X[60:], y[60:]) for k in range(-4, 2)]
    got = make(chosen).fit(X[twice], labels[twice]).score(X[60:], y[60:])
    # Of 400 rows: two standard deviations.
    assert got >= max(fixed) - 2 * np.sqrt(0.25 / 400)


def test_an_example_of_weight_two_is_two_when_the_noise_is_chosen():
    rng = np.random.default_rng(1)
    X, y = clusters(rng, 30)
    for make, noise_of in CHOSEN.values():
        twice = make("loo").fit(np.vstack([X, X[:10]]), np.append(y, y[:10]))
        heavy = make("loo").fit(X, y, sample_weight=1.0 + (np.arange(30) < 10))
        assert_rounded(noise_of(twice), noise_of(heavy))
