"""The squared hinge: its minimum, what it leaves out, and the law."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, nnls
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_within, tolerance

from knowmore import GPClassifier, LSSVMClassifier
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.insight import explain, suspects
from knowmore.models import expansion, hinge

KERNEL, NOISE = RBF(1.0), 0.3
HINGE = {"loss": "squared_hinge"}


def clouds(n=60, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + 1.2 * rng.normal(size=(classes, 2))[y], y


def made(bias):
    return LSSVMClassifier(KERNEL, 1 / NOISE, bias, **HINGE)


def objective(K, t, a, b, noise):
    """a'Ka / 2 + sum max(0, 1 - tf)^2 / (2 noise), and its gradient."""
    f = K @ a + b
    missed = np.maximum(1 - t * f, 0)
    slope = -t * missed / noise
    value = a @ K @ a / 2 + (missed**2 / noise).sum() / 2
    return value, np.append(K @ (a + slope), slope.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_no_other_coefficients_have_a_smaller_loss(bias, weighted):
    X, y = clouds()
    weights = np.random.default_rng(1).uniform(0.2, 5, 60) if weighted else np.ones(60)
    model = made(bias).fit(X, y, sample_weight=weights).model_
    K, (A, offsets) = KERNEL(X), expansion(model)
    for c, t in enumerate(oracle.one_vs_all(y.tolist())[1].T):
        value, slope = objective(K, t, A[:, c], offsets[c], NOISE / weights)
        scale = abs(K).sum(axis=1).max() / (NOISE / weights).min()
        assert abs(slope[:60]).max() <= tolerance(K + NOISE * np.eye(60)) * scale
        if bias:
            assert abs(slope[60]) <= tolerance(K + NOISE * np.eye(60)) * scale
        found = minimize(
            lambda z, t=t: objective(K, t, z[:60], z[60] if bias else 0.0, NOISE / weights)[0],
            np.zeros(60 + bias),
            jac=lambda z, t=t: objective(K, t, z[:60], z[60] if bias else 0.0, NOISE / weights)[1][
                : 60 + bias
            ],
        )
        assert value <= found.fun * (1 + 1e-9)
    # Examples that are right by the margin have no part in it.
    assert 0 < (A == 0).mean() < 1


def dual(B, t):
    """The minimum without a bias by Lawson and Hanson: ta >= 0 of the least a'Ba / 2 - t'a."""
    R = np.linalg.cholesky(B * np.outer(t, t)).T
    return t * nnls(R, solve_triangular(R, np.ones(len(t)), trans=1))[0]


def test_whole_steps_would_go_round_in_circles():
    X = [
        [-3.3, -0.8, -4.6],
        [1.9, 3.0, 3.2],
        [-2.6, 7.2, -2.7],
        [-3.5, -0.6, 1.9],
        [-1.7, -2.1, 2.5],
        [-0.3, -1.0, 0.9],
        [3.6, 0.4, -0.1],
    ]
    kernel, t = DotProduct(1.0), np.array([-1.0, -1, -1, -1, 1, 1, 1])
    A, _ = expansion(GPClassifier(kernel, 0.1, **HINGE).fit(X, t).model_)
    K = kernel(np.array(X))
    B = K + 0.1 * np.eye(7)
    want = dual(B, t)
    assert_within(A[:, 1], want, tolerance(B) * np.linalg.norm(want))
    assert round(objective(K, t, A[:, 1], 0.0, 0.1)[0], 4) == 0.5012


SMALL = [
    pytest.param(kernel, noise, id=f"{type(kernel).__name__}-{noise}")
    for kernel in (DotProduct(1.0), RBF(1.0))
    for noise in (0.1, 1e-2, 1e-3, 1e-4)
]


def small(seed):
    """A few examples whose labels are chance; every third time on a grid, where some are equal."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 30), rng.integers(1, 6)
    X = 3 * rng.normal(size=(n, d))
    t = rng.choice([-1.0, 1.0], n)
    t[:2] = -1, 1
    return X.round() if seed % 3 == 0 else X, t


@pytest.mark.slow(fast=4)
@pytest.mark.parametrize(("kernel", "noise"), SMALL)
def test_the_minimum_is_that_of_the_dual(kernel, noise):
    for seed in range(80):
        X, t = small(seed)
        B = oracle.covariance(kernel, X, noise)
        A, _ = expansion(GPClassifier(kernel, noise, **HINGE).fit(X, t).model_)
        want = dual(B, t)
        # One solves with a factor of B, the other with an inverse of a part of it.
        bound = tolerance(B) * np.linalg.norm(want) + tolerance(B, "inverse") / noise
        assert_within(A, np.c_[-want, want], bound)


@pytest.mark.slow(fast=4)
@pytest.mark.parametrize(("kernel", "noise"), SMALL)
def test_with_a_bias_the_slope_is_zero(kernel, noise):
    for seed in range(80):
        X, t = small(seed)
        A, offsets = expansion(LSSVMClassifier(kernel, 1 / noise, **HINGE).fit(X, t).model_)
        a, b, K = A[:, 1], offsets[1], kernel(X)
        bound = tolerance(K + noise * np.eye(len(t))) * (1 + abs(b) + (abs(K) @ abs(a)).max())
        assert_within(noise * a, t * np.maximum(1 - t * (K @ a + b), 0), bound)
        assert_within(noise * a.sum(), 0.0, bound)


def test_a_minimum_that_is_not_found_is_said(monkeypatch):
    monkeypatch.setattr(hinge, "_TOO_MANY", 0)
    X, y = clouds()
    with pytest.raises(KnowmoreError) as caught:
        GPClassifier(KERNEL, NOISE, **HINGE).fit(X, y).decision_function(X)
    assert str(caught.value) == (
        "The minimum of the squared hinge was not found in 0 steps. Either the kernel is not "
        "positive semi-definite, or the noise is so small that rounding hides the minimum. Use a "
        "larger noise, or loss='squared'."
    )


@pytest.mark.parametrize("bias", [False, True])
def test_leaving_out_is_a_refit_unless_others_come_or_go(bias):
    X, y = clouds()
    left = made(bias).fit(X, y).leave_one_out()
    rest = ~np.eye(60, dtype=bool)
    want = np.vstack([made(bias).fit(X[r], y[r]).model_.mean(X[[i]]) for i, r in enumerate(rest)])
    apart = abs(left.scores - want)
    assert np.median(apart) < 1e-12
    assert apart.max() < 0.2
    assert (left.predicted == want.argmax(axis=1)).mean() > 0.95


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_any_history_is_the_batch_fit(solver):
    X, y = clouds(80)
    clf = GPClassifier(KERNEL, NOISE, **HINGE, solver=solver).fit(X[:50], y[:50])
    clf.add(X[50:], y[50:])
    clf.remove([3, 60]).relabel([5, 6], [0, 0]).replace([7], X[:1] + 0.1)
    clf.add([[3.0, 3.0]], [7])
    held = clf.model_.examples
    fresh = GPClassifier(KERNEL, NOISE, **HINGE).fit(held.X, held.labels)
    K = oracle.covariance(KERNEL, held.X, NOISE)
    roundings = len(held) * np.linalg.cond(K) * (100 if solver == "inverse" else 1)
    assert_rounded(clf.decision_function(X), fresh.decision_function(X), roundings)
    assert_rounded(clf.predict_proba(X), fresh.predict_proba(X), 1e4 * roundings, 1.0)
    assert clf.classes_[clf.predict_proba(X).argmax(axis=1)].tolist() == clf.predict(X).tolist()


@pytest.mark.parametrize(
    "labels", [["a"], ["a", "a"], ["a", "b"], ["a", "b", "b"], ["a", "b", "c"]], ids="".join
)
@pytest.mark.parametrize("bias", [False, True])
def test_few_examples(labels, bias):
    clf = made(bias).fit(np.arange(len(labels))[:, None] * 1.0, labels)
    assert np.isfinite(clf.decision_function([[0.1], [9.0]])).all()
    assert np.isfinite(clf.predict_proba([[0.1], [9.0]])).all()


def test_contributions_add_up_to_the_score():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE, **HINGE).fit(X, y)
    found = explain(clf, X[0])
    assert_rounded(found.score, clf.decision_function(X[:1]).max(), 1e4)


def test_a_wrong_label_is_found():
    X = np.vstack([np.random.default_rng(0).normal(size=(40, 2)) + shift for shift in (0, 9)])
    y = np.repeat(["a", "b"], 40)
    y[7] = "b"
    assert suspects(GPClassifier(KERNEL, NOISE, **HINGE).fit(X, y)).ids.tolist() == [7]


MISTAKES = {
    "loss": (
        lambda: GPClassifier(loss="hinge").fit([[0.0]], [0]),
        "loss='hinge' is not known. Choose one of 'squared', 'squared_hinge'.",
    ),
    "noise": (
        lambda: GPClassifier(noise=0.0, **HINGE).fit([[0.0]], [0]),
        "loss='squared_hinge' weighs errors by 1 / noise. Give a noise above zero.",
    ),
    "groups": (
        lambda: GPClassifier(**HINGE).fit([[0.0], [1.0]], [0, 1]).leave_one_out([0, 1]),
        "Groups are left out in closed form of least squares alone. Use loss='squared', or leave "
        "out one example at a time.",
    ),
    "merge": (
        lambda: (
            GPClassifier(KERNEL)
            .fit([[0.0]], [0])
            .merge(GPClassifier(KERNEL, **HINGE).fit([[1.0]], [1], ids=[7]))
        ),
        "The two models differ in loss: 'squared' here, 'squared_hinge' there. Fit both with the "
        "same loss to merge them.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    wrong, text = MISTAKES[name]
    with pytest.raises(InvalidInput) as caught:
        wrong()
    assert str(caught.value) == text
