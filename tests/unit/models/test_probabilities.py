"""How sharp probabilities are, by what is left out, and how many labels are wrong."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from scipy.special import expit, log_ndtr, logsumexp
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded, assert_solves

from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
)
from knowmore.errors import InvalidInput
from knowmore.insight import reliability
from knowmore.models.probabilities import Mislabelling, Trial, best_temperature, mislabelling

KERNEL = RBF(1.0)


def clouds(n=60, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + 1.5 * rng.normal(size=(classes, 2))[y], y


def loss(logs, codes, temperature, rate=0.0, weights=None):
    """Minus the log-likelihood of labels that are wrong with a chance, and the priors."""
    p = np.exp(logs / temperature - logsumexp(logs / temperature, axis=1, keepdims=True))
    true = (1 - rate) * p[np.arange(len(p)), codes] + rate / p.shape[1]
    prior = 0.125 * np.log(temperature) ** 2
    if rate:
        prior -= 0.5 * np.log(rate * (1 - rate))
    return prior - np.sum(np.log(true) * (1 if weights is None else weights))


def drawn(n, M, temperature, rate, seed=0):
    """Logarithms (n, M), and labels drawn by them, some of which are replaced blindly."""
    rng = np.random.default_rng(seed)
    logs = log_ndtr(rng.normal(size=(n, M)) * 2)
    p = np.exp(logs / temperature)
    codes = np.array([rng.choice(M, p=row / row.sum()) for row in p])
    wrong = rng.random(n) < rate
    return logs, np.where(wrong, rng.integers(0, M, n), codes), wrong


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_temperature_has_the_least_loss(weighted):
    logs, codes, _ = drawn(200, 4, 0.5, 0.0)
    weights = np.random.default_rng(1).uniform(0, 2, 200) if weighted else None
    found = best_temperature(logs, codes, weights)
    least = loss(logs, codes, found, weights=weights)
    for factor in 0.5, 0.99, 1.01, 2.0:
        assert loss(logs, codes, found * factor, weights=weights) > least


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4])
def test_temperature_and_rate_of_wrong_labels_have_the_least_loss(rate):
    logs, codes, wrong = drawn(2000, 8, 0.5, rate)
    found = mislabelling(logs, codes)
    least = loss(logs, codes, found.temperature, found.replaced)
    for factor in 0.9, 0.99, 1.01, 1.1:
        assert loss(logs, codes, found.temperature * factor, found.replaced) > least
        assert loss(logs, codes, found.temperature, found.replaced * factor) > least
    assert abs(found.replaced - rate) < 0.05
    odds = found.odds(logs, codes)
    if rate:
        assert odds[wrong].mean() > odds[~wrong].mean() + 1


@pytest.mark.parametrize("M", [2, 3, 8])
def test_doubts_are_the_chance_that_a_label_is_wrong(M):
    # By enumeration: the true class, whether it is replaced, and by which.
    found, logs = Mislabelling(0.5, 0.3, M), np.log(np.random.default_rng(M).uniform(size=(5, M)))
    p = np.exp(logs / found.temperature)
    p /= p.sum(axis=1, keepdims=True)
    codes = np.arange(5) % M
    wrong, all_ = np.zeros(5), np.zeros(5)
    for true in range(M):
        kept = p[:, true] * ((1 - found.replaced) * (codes == true) + found.replaced / M)
        all_ += kept
        wrong += kept * (codes != true)
    eps = np.finfo(float).eps
    np.testing.assert_allclose(expit(found.odds(logs, codes)), wrong / all_, rtol=64 * M * eps)
    assert found.rate == pytest.approx(0.3 * (M - 1) / M, rel=4 * eps)


@pytest.mark.parametrize("far", [1e-9, 1.0, 1e9, 1e15])
def test_extreme_chances_have_a_rate(far):
    logs = np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]) * far
    for codes in ([0, 1, 0], [1, 0, 1], [0, 0, 0]):
        found = mislabelling(logs, np.array(codes))
        assert 0 < found.rate < 1
        assert 0 < found.temperature < np.inf
        assert np.isfinite(found.odds(logs, np.array(codes))).all()


def test_the_others_of_a_class_stand_in_for_an_example():
    scores, backing = np.array([[0.5, -0.2], [0.1, 0.3], [0.4, 0.0]]), np.array([0.2, 0.3, 0.4])
    trial = Trial(
        scores, np.ones(3), np.zeros(3, bool), backing, np.array([0, 1, 0]), np.array([2, 1])
    )
    assert trial.telling.tolist() == [True, False, True]
    np.testing.assert_array_equal(
        trial.completed, [[0.5 + 2 * 0.2, -0.2], [0.1, 0.3], [0.4 + 2 * 0.4, 0.0]]
    )
    # Those that tell are of one class.
    assert trial.temperature == 1.0


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_the_backing_is_that_of_refits(bias, solver):
    X, y = clouds()
    svm = LSSVMClassifier(KERNEL, 10.0, bias, solver=solver).fit(X, y)
    Y = np.eye(3)[y]
    want, _ = oracle.left_out(KERNEL, 0.1, X, Y, np.arange(60), bias)
    K = oracle.covariance(KERNEL, X, 0.1)
    own = np.arange(60), y
    got = svm.model_.backing()[:, None]
    assert_solves(got, want[own][:, None], K, np.ones((60, 1)), solver=solver, left=K, bias=bias)


CLASSIFIERS = {
    "gp": GPClassifier(KERNEL),
    "single precision": GPClassifier(KERNEL, dtype="float32"),
    "balanced": GPClassifier(KERNEL, class_weight="balanced"),
    "loo": GPClassifier(KERNEL, noise="loo"),
    "little noise": GPClassifier(KERNEL, noise=1e-12),
    "much noise": GPClassifier(KERNEL, noise=1e12),
    "machine": LSSVMClassifier(KERNEL),
    "machine without bias": LSSVMClassifier(KERNEL, bias=False),
    "forest": ForestGPClassifier(KERNEL, capacity=16),
    "trees": ForestGPClassifier(KERNEL, capacity=16, n_trees=3),
    "linear": LinearGPClassifier(),
    "linear without intercept": LinearGPClassifier(intercept=False),
    "linear, loo": LinearGPClassifier(noise="loo"),
    "n + 1": NPlusOneClassifier(
        Scores([0, 1], lambda X: np.column_stack([-X[:, 0], X[:, 0]])), KERNEL
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_agree_with_predictions_and_follow_edits(name):
    X, y = clouds()
    Q = clouds(200, seed=1)[0]
    clf = CLASSIFIERS[name].set_params(probability="calibrated").fit(X, y)
    raw = {}
    for probability in ("calibrated", "raw"):
        clf.set_params(probability=probability)
        P = raw[probability] = clf.predict_proba(Q)
        assert np.isfinite(P).all()
        assert_rounded(P.sum(axis=1), np.ones(len(Q)))
        assert clf.classes_[P.argmax(axis=1)].tolist() == clf.predict(Q).tolist()
    assert clf.temperature_ == 1.0
    tau = clf.set_params(probability="calibrated").temperature_
    assert 0 < tau < np.inf
    powers = raw["raw"] ** (1 / tau)
    # Those that have lost no digits.
    whole = raw["raw"].min(axis=1) > 1e-100
    want = (powers / powers.sum(axis=1, keepdims=True))[whole]
    assert_rounded(raw["calibrated"][whole], want, 1e4 / min(tau, 1), 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "labels",
    [["a"], ["a", "a"], ["a", "b"], ["a", "b", "b"], ["a", "b", "c"], ["a", "a", "b", "b"]],
    ids="".join,
)
@pytest.mark.parametrize(
    "clf",
    [
        GPClassifier(),
        GPClassifier(KERNEL, 0.0),
        LSSVMClassifier(),
        ForestGPClassifier(capacity=2),
        LinearGPClassifier(),
    ],
    ids=repr,
)
def test_few_examples_have_probabilities(clf, labels):
    X = np.arange(len(labels))[:, None] * 1.0
    P = clf.fit(X, labels).predict_proba([[0.2], [50.0]])
    assert np.isfinite(P).all()
    assert 0 < clf.temperature_ < np.inf
    if len(set(labels)) == len(labels):
        assert clf.temperature_ == 1.0


def test_one_shot_probabilities_are_calibrated():
    X, y = clouds(40, classes=2)
    clf = OneShotClassifier(KERNEL, {"alike": X[y == 1][:5] + 0.1}).fit(X[10:], y[10:])
    P = clf.predict_proba(X)
    assert clf.temperature_ != 1.0
    assert clf.classes_[P.argmax(axis=1)].tolist() == clf.predict(X).tolist()
    clf.set_params(probability="raw")
    assert_rounded(clf.predict_proba(X).sum(axis=1), np.ones(len(X)))


def test_the_temperature_of_sums_is_near_that_of_the_rows():
    X, y = load_digits(return_X_y=True)
    clf = LinearGPClassifier(noise="loo").fit(X[:900], y[:900])
    raw = LinearGPClassifier(noise="loo", probability="raw").fit(X[:900], y[:900])
    assert reliability(clf, X[900:], y[900:]).error < 0.06
    assert reliability(raw, X[900:], y[900:]).error > 0.5
    there_and_back = clf.partial_fit(X[900:], y[900:]).forget(X[900:], y[900:])
    fresh = LinearGPClassifier(noise="loo", resolution=clf.grid_).fit(X[899::-1], y[899::-1])
    assert there_and_back.temperature_ == fresh.temperature_


@pytest.mark.parametrize("few", [3, 10])
def test_digits_are_calibrated_by_few_examples(few):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:few] for c in range(10)])
    new = np.setdiff1d(np.arange(len(y)), rows)
    for clf in (GPClassifier(), LSSVMClassifier()):
        errors = [
            reliability(
                clf.set_params(probability=probability).fit(X[rows], y[rows]), X[new], y[new]
            ).error
            for probability in ("calibrated", "raw")
        ]
        assert errors[0] < errors[1] / 2


def test_the_meaning_is_checked():
    X, y = clouds()
    text = "probability='sharp' is not known. Choose one of 'calibrated', 'raw'."
    for clf in CLASSIFIERS.values():
        with pytest.raises(InvalidInput) as caught:
            clf.set_params(probability="sharp").fit(X, y)
        assert str(caught.value) == text
        clf.set_params(probability="calibrated")
