"""The sharpness of probabilities by leave-one-out, and the number of wrong labels."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from scipy.special import expit, logsumexp, ndtr, softmax
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
from knowmore.models.probabilities import (
    Mislabelling,
    Trial,
    best_temperature,
    class_probabilities,
    mislabelling,
)

KERNEL = RBF(1.0)


def clouds(n=60, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + 1.5 * rng.normal(size=(classes, 2))[y], y


def loss(logs, codes, temperature, weights=None):
    """Minus the log-likelihood of labels, and the prior."""
    p = np.exp(logs / temperature - logsumexp(logs / temperature, axis=1, keepdims=True))
    true = p[np.arange(len(p)), codes]
    prior = 0.125 * np.log(temperature) ** 2
    return prior - np.sum(np.log(true) * (1 if weights is None else weights))


def drawn(n, M, temperature, blind=0.0, likely=0.0, seed=0):
    """Logarithms (n, M), labels drawn by them and changed by mistakes, and which are wrong."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(n, M)) * 2
    p = np.exp(logs / temperature)
    p /= p.sum(axis=1, keepdims=True)
    true = np.array([rng.choice(M, p=row) for row in p])
    others = np.where(np.arange(M) == true[:, None], 0, p)
    mistaken = np.array([rng.choice(M, p=row / row.sum()) for row in others])
    mistake = rng.choice(3, n, p=[1 - blind - likely, blind, likely])
    codes = np.choose(mistake, [true, rng.integers(0, M, n), mistaken])
    return logs, codes, codes != true


@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
def test_probabilities_are_a_softmax_of_moderated_scores(temperature):
    rng = np.random.default_rng(0)
    scores, variance = rng.normal(size=(50, 4)), rng.exponential(size=50)
    got = class_probabilities(scores, variance, temperature)
    want = softmax(oracle.moderated(scores, variance) / temperature, axis=1)
    assert_rounded(got, want, 100 * (1 + abs(scores).max() / temperature), 1.0)
    # The less is known, the more equal the classes; an offset of all scores says nothing.
    wide = class_probabilities(scores, 2 * variance, temperature)
    assert (wide.max(axis=1) <= got.max(axis=1)).all()
    moved = class_probabilities(scores + 1, variance, temperature)
    assert_rounded(moved, got, 100 * (1 + 4 / temperature), 1.0)


def test_raw_probabilities_are_near_the_chance_of_a_probit():
    z = np.linspace(-5, 5, 101)
    for variance in (0.0, 1.0, 30.0):
        scores = z[:, None] * [1, -1]
        got = class_probabilities(scores, np.full(101, variance))[:, 0]
        assert abs(got - ndtr(z / np.sqrt(1 + variance))).max() < 0.05


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("temperature", [np.exp(-50), 1.0, np.exp(50)])
@pytest.mark.parametrize("variance", [0.0, 1e-300, 1.0, 1e300])
@pytest.mark.parametrize("score", [1e-320, 1.0, 1e300, np.finfo(float).max])
def test_the_largest_score_wins_at_any_scale(score, variance, temperature):
    scores = score * np.array([[-1.0, 0.5, 1.0, 0.0], [1.0, np.nextafter(1, 0), 0.0, -1.0]])
    P = class_probabilities(scores, np.full(2, variance), temperature)
    assert np.isfinite(P).all()
    assert_rounded(P.sum(axis=1), np.ones(2))
    assert P.argmax(axis=1).tolist() == [2, 0]
    trial = Trial(
        scores.repeat(3, axis=0),
        np.full(6, variance),
        np.zeros(6, bool),
        np.zeros(6),
        np.array([2, 1, 2, 0, 1, 0]),
        np.array([2, 2, 2, 0]),
    )
    assert 0 < trial.temperature < np.inf
    found = mislabelling(trial.logs, trial.codes)
    assert 0 < found.rate < 1
    assert np.isfinite(found.odds(trial.logs, trial.codes)).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_temperature_has_the_least_loss(weighted):
    logs, codes, _ = drawn(200, 4, 0.5)
    weights = np.random.default_rng(1).uniform(0, 2, 200) if weighted else None
    found = best_temperature(logs, codes, weights)
    least = loss(logs, codes, found, weights=weights)
    for factor in 0.5, 0.99, 1.01, 2.0:
        assert loss(logs, codes, found * factor, weights=weights) > least


def mistaken(p, codes):
    """The chance that a likely mistake ends at each of these labels (n,), by its definition."""
    n, M = p.shape
    ends = np.zeros(n)
    for i, y in enumerate(codes):
        for c in range(M):
            if c != y:
                rest = sum(p[i, other] for other in range(M) if other != c)
                ends[i] += p[i, c] * p[i, y] / rest
    return ends


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("likely", [0.0, 0.2])
@pytest.mark.parametrize("blind", [0.0, 0.1, 0.4])
def test_temperature_and_chances_of_mistakes_have_the_least_loss(blind, likely):
    M = 8
    logs, codes, wrong = drawn(2000, M, 0.1, blind, likely)
    found = mislabelling(logs, codes)
    best = np.array([found.temperature, found.blind, found.likely + found.hard])

    def loss_at(parameters):
        temperature, *mistakes = parameters
        p = np.exp(logs / temperature - logsumexp(logs / temperature, axis=1, keepdims=True))
        shares = np.array([1 - sum(mistakes), *mistakes])
        chances = shares @ [p[np.arange(len(p)), codes], np.full(len(p), 1 / M), mistaken(p, codes)]
        prior = 0.125 * np.log(temperature) ** 2 - 0.5 * np.log(shares).sum()
        return prior - np.log(chances).sum()

    least = loss_at(best)
    for factor in 0.9, 1.1:
        for one in np.eye(3, dtype=bool):
            assert loss_at(np.where(one, factor * best, best)) > least
    assert abs(found.blind - blind) < 0.05
    assert abs(found.likely - likely) < 0.05
    assert abs(found.rate - wrong.mean()) < 0.05
    odds = found.odds(logs, codes)
    if wrong.any():
        assert odds[wrong].mean() > odds[~wrong].mean() + 1


@pytest.mark.parametrize("M", [2, 3, 8])
def test_doubts_are_the_chance_that_a_label_is_wrong(M):
    # By enumeration: the true class, what happens to its label, and which label comes of it.
    found = Mislabelling(0.5, 0.3, 0.2, 0.1, M)
    logs = np.log(np.random.default_rng(M).uniform(size=(5, M)))
    p = np.exp(logs / found.temperature)
    p /= p.sum(axis=1, keepdims=True)
    codes = np.arange(5) % M
    q = mistaken(p, codes)
    # A hard example has the right label, however unlikely.
    wrong, all_ = found.likely * q, (found.likely + found.hard) * q
    for true in range(M):
        kept = 1 - found.blind - found.likely - found.hard
        drawn = p[:, true] * (kept * (codes == true) + found.blind / M)
        all_ += drawn
        wrong += drawn * (codes != true)
    eps = np.finfo(float).eps
    np.testing.assert_allclose(expit(found.odds(logs, codes)), wrong / all_, rtol=64 * M * eps)
    assert found.rate == pytest.approx(0.3 * (M - 1) / M + 0.2, rel=4 * eps)


@pytest.mark.parametrize("far", [1e-9, 1.0, 1e9, 1e15])
def test_extreme_chances_have_a_rate(far):
    logs = np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]) * far
    for codes in ([0, 1, 0], [1, 0, 1], [0, 0, 0]):
        found = mislabelling(logs, np.array(codes))
        assert 0 < found.rate < 1
        assert 0 < found.temperature < np.inf
        assert np.isfinite(found.odds(logs, np.array(codes))).all()


def test_the_others_of_a_class_stand_in_for_an_example():
    scores, class_support = (
        np.array([[0.5, -0.2], [0.1, 0.3], [0.4, 0.0]]),
        np.array([0.2, 0.3, 0.4]),
    )
    trial = Trial(
        scores, np.ones(3), np.zeros(3, bool), class_support, np.array([0, 1, 0]), np.array([2, 1])
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
    got = svm.model_.left_out.class_support()[:, None]
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
