"""The least-squares SVM minimises what it says, and chooses C as refits would."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import GAP, assert_rounded, tolerance

from knowmore import GPClassifier, LSSVMClassifier, NPlusOneClassifier, Scores
from knowmore.errors import InvalidInput
from knowmore.models.noise import _NOISES

rng = np.random.default_rng(3)
X, y = rng.normal(size=(40, 3)), np.arange(40) % 4
X[np.arange(40), y % 3] += 1.5
LINEAR = DotProduct(0.0, "fixed")
Y = oracle.one_vs_all(y)[1]


def hyperplanes(clf):
    """w (d, M) and b (M,) of a linear machine."""
    b = clf.decision_function(np.zeros((1, 3)))[0]
    return clf.decision_function(np.eye(3)) - b, b


@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 3, 40)])
def test_the_gradient_of_the_primal_vanishes(weights):
    clf = LSSVMClassifier(LINEAR, C=2.0).fit(X, y, sample_weight=weights)
    w, b = hyperplanes(clf)
    errors = X @ w + b - Y
    zeta = np.ones(40) if weights is None else weights
    pull = 2.0 * X.T @ (zeta[:, None] * errors)
    roundings = tolerance(LINEAR(X) + np.eye(40) / 2) / np.finfo(float).eps
    size = 2.0 * (abs(X).T @ (zeta[:, None] * abs(errors))).max()
    assert_rounded(w + pull, np.zeros_like(w), roundings, size)
    assert_rounded(zeta @ errors, np.zeros(4), roundings, size)


@pytest.mark.parametrize("bias", [True, False])
def test_n_plus_one_minimises_the_distance_to_what_is_known(bias):
    known = rng.normal(size=(3, 3))
    offsets = rng.normal(size=3)
    source = Scores([0, 1, 2], lambda X: X @ known + offsets)
    clf = NPlusOneClassifier(source, LINEAR, C=2.0, bias=bias, scaled=False).fit(X, y)
    w, b = hyperplanes(clf)
    began = np.column_stack([known, known @ clf.beta_])
    # Without a bias the offsets are the source's own, mixed likewise.
    if not bias:
        assert_rounded(b, np.append(offsets, offsets @ clf.beta_), 1000)
    errors = X @ w + b - Y
    pull = 2.0 * X.T @ errors
    roundings = tolerance(LINEAR(X) + np.eye(40) / 2) / np.finfo(float).eps
    size = 2.0 * (abs(X).T @ abs(errors)).max()
    assert_rounded(w - began + pull, np.zeros_like(w), roundings, size)
    if bias:
        assert_rounded(errors.sum(axis=0), np.zeros(4), roundings, size)


def test_offsets_of_the_source_do_not_matter_with_a_bias():
    plain = Scores([0, 1, 2], lambda X: X[:, :3] ** 2)
    moved = Scores([0, 1, 2], lambda X: X[:, :3] ** 2 + [5.0, -3.0, 1.0])
    one, other = (
        NPlusOneClassifier(each, RBF(1.0), C=1.0, scaled=False).fit(X, y) for each in (plain, moved)
    )
    np.testing.assert_allclose(one.beta_, other.beta_, atol=GAP)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=GAP)


MACHINES = {
    "svm": LSSVMClassifier(RBF(1.0), C="loo"),
    "svm without bias": LSSVMClassifier(RBF(1.0), C="loo", bias=False),
    "gp": GPClassifier(RBF(1.0), noise="loo"),
}


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 3, 40)])
def test_the_noise_is_what_refits_like_best(machine, weights):
    clf, bias = clone(MACHINES[machine]).fit(X, y, sample_weight=weights), machine == "svm"
    zeta = np.ones(40) if weights is None else weights
    tried = {}
    for noise in _NOISES:
        mean, _ = oracle.left_out(RBF(1.0), noise / zeta, X, Y, np.arange(40), bias)
        wrong = zeta[mean.argmax(axis=1) != y].sum()
        tried[float(noise)] = (wrong, zeta @ ((Y - mean) ** 2).sum(axis=1))
    least = min(tried.values())
    chosen = clf.model_.covariance.noise
    wrong, squares = tried[min(tried, key=lambda noise: abs(noise - chosen))]
    assert wrong == least[0]
    np.testing.assert_allclose(squares, least[1])


def test_the_noise_is_kept_from_the_fit_on():
    clf = GPClassifier(RBF(1.0), noise="loo").fit(X, y)
    chosen = clf.noise_
    clf.add(X[:9] + 0.5, (y[:9] + 1) % 4)
    clf.remove([3, 4])
    assert clf.noise_ == clf.model_.covariance.noise == chosen
    assert clone(clf).get_params()["noise"] == "loo"
    fixed = GPClassifier(RBF(1.0), noise=chosen).fit(X, y)
    assert fixed.noise_ == chosen
    other = GPClassifier(RBF(1.0), noise="loo").fit(X, y, range(100, 140))
    assert len(fixed.merge(other).ids_) == 80
    # Of one class, or of two examples, any noise will do.
    assert GPClassifier(RBF(1.0), noise="loo").fit(X[:2], [0, 1]).noise_ > 0
    assert LSSVMClassifier(RBF(1.0), C="loo").fit(X[:2], [0, 1]).C_ == 1
    assert LSSVMClassifier(RBF(1.0), C="loo").fit(X, ["one"] * 40).C_ == 1


@pytest.mark.parametrize("machine", MACHINES)
def test_no_noise_is_chosen_where_the_examples_say_nothing_of_each_other(machine):
    clf, far = clone(MACHINES[machine]), 1e3 * X
    name = "noise" if machine == "gp" else "C"
    with pytest.raises(InvalidInput) as caught:
        clf.fit(far, y)
    assert str(caught.value) == (
        f"{name}='loo' predicts each example from the others, but under the kernel "
        f"RBF(length_scale=1) none of these 40 says anything of another. Either it is too narrow: "
        f"widen it, or scale the features; or all examples are the same to it. Or give a number."
    )
    assert not clf.__sklearn_is_fitted__()


@pytest.mark.parametrize("machine", MACHINES)
def test_silence_is_no_success(machine):
    """Half of the examples are far from all; of the rest, labels follow the neighbours."""
    t = np.arange(24.0)[:, None]
    inputs = np.vstack([t, 1e4 * (1 + t)])
    labels = np.r_[(t[:, 0] // 4) % 2, rng.integers(0, 2, 24)].astype(int)
    clf = clone(MACHINES[machine]).fit(inputs, labels)
    left = clf.leave_one_out()
    np.testing.assert_array_equal(left.silent, np.arange(48) >= 24)
    near = clone(MACHINES[machine]).fit(inputs[:24], labels[:24]).leave_one_out()
    right = (left.predicted == labels)[:24].mean()
    assert right >= (near.predicted == labels[:24]).mean() - 1 / 24


def test_the_chosen_C_does_not_depend_on_the_unit_of_the_features():
    one = LSSVMClassifier(LINEAR, C="loo").fit(X, y)
    other = LSSVMClassifier(LINEAR, C="loo").fit(1000 * X, y)
    np.testing.assert_allclose(other.C_ * 1e6, one.C_)


def test_without_a_bias_it_is_the_gaussian_process():
    svm = LSSVMClassifier(RBF(1.0), C=4.0, bias=False).fit(X, y)
    gp = GPClassifier(RBF(1.0), noise=0.25).fit(X, y)
    np.testing.assert_array_equal(svm.decision_function(X), gp.decision_function(X))
    np.testing.assert_array_equal(svm.leave_one_out().variance, gp.leave_one_out().variance)


@pytest.mark.parametrize("machine", [LSSVMClassifier, GPClassifier])
def test_balanced_classes_weigh_the_same(machine):
    rows = np.r_[0:40, 0, 4, 8, 12]
    clf = machine(RBF(1.0), class_weight="balanced").fit(X[rows], y[rows])
    weights = clf.model_.covariance.weights
    sums = np.bincount(y[rows], weights)
    assert_rounded(sums, np.full(4, 11.0))
    named = {c: float(weights[y[rows] == c][0]) for c in range(4)}
    other = machine(RBF(1.0), class_weight=named).fit(X[rows], y[rows])
    np.testing.assert_array_equal(clf.decision_function(X), other.decision_function(X))


def test_class_weights_are_part_of_what_merges():
    one = GPClassifier(RBF(1.0), class_weight={0: 2.0}).fit(X, y)
    other = GPClassifier(RBF(1.0)).fit(X, y, range(100, 140))
    with pytest.raises(InvalidInput, match=r"differ in class_weight: \{0: 2\.0\} here"):
        one.merge(other)
