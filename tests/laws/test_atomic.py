"""An operation that raises, at whichever inner step, leaves everything as it was."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    ForestGPClassifier,
    GPClassifier,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
)


class Injected(Exception):
    """The fault."""


# What these raise is printed and not raised (a freed panel, a closed generator), would be a fault
# of the `with` statement itself, or is asked again (whether a verb is there).
NO_STEPS = {"__del__", "_give", "<genexpr>", "__exit__", "_limit", "<listcomp>", "_keeps_rows"}


class FaultAt:
    """Raises at the `step`-th call of a function of knowmore below the estimator's own verb."""

    def __init__(self, step):
        self.step, self.calls = step, 0

    def __enter__(self):
        sys.setprofile(self)

    def __exit__(self, *_):
        sys.setprofile(None)

    def __call__(self, frame, event, _):
        # Most events are returns or calls of C functions, so these are dismissed first.
        if event != "call" or frame.f_code.co_name in NO_STEPS:
            return
        if frame.f_globals.get("__name__", "").startswith("knowmore."):
            self.calls += 1
            if self.calls == self.step:
                raise Injected(frame.f_code.co_name)


def assert_atomic(estimator, act, ask):
    """Does a fault at any step of `act` leave the estimator, and what it answers, as they were?"""
    before, state = ask(), vars(estimator).copy()
    for step in range(1, 10_000):
        try:
            with FaultAt(step):
                act()
        except Injected:
            assert vars(estimator) == state
            for now, then in zip(ask(), before, strict=True):
                np.testing.assert_array_equal(now, then)
            continue
        break
    assert step > 10, "no step was hit"
    assert vars(estimator) != state


def make(solver, noise):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    return GPClassifier(RBF(0.5), noise, solver=solver).fit(X, y), X


OPERATIONS = {
    "fit": lambda clf, X: clf.fit(X[:5] + 1, [0, 1, 2, 3, 4]),
    "add": lambda clf, X: clf.add(X[:3] + 2, [7, 0, 1]),
    "declare": lambda clf, X: clf.partial_fit(X[:3] + 2, [7, 0, 1], classes=range(9)),
    "remove": lambda clf, X: clf.remove([0, 5, 39]),
    "remove many": lambda clf, X: clf.remove(range(30)),
    "replace": lambda clf, X: clf.replace([3, 4], X[:2] + 2, [0, 9]),
    "relabel": lambda clf, X: clf.relabel([3], [8]),
    "merge": lambda clf, X: clf.merge(GPClassifier(RBF(0.5), clf.noise).fit(X + 9, X[:, 0] > 0)),
}


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "merge"])
def test_a_fault_at_any_step_of_an_edit_changes_nothing(operation, solver):
    # With so little noise nothing is sure to succeed, so that edits are done at once.
    clf, X = make(solver, noise=1e-13)
    assert_atomic(
        clf,
        lambda: OPERATIONS[operation](clf, X),
        lambda: (clf.decision_function(X), clf.predict_variance(X), clf.ids_),
    )


@pytest.mark.slow(fast=["fit-0.1", "remove many-0.1", "relabel-1e-13"])
@pytest.mark.parametrize("noise", [0.1, 1e-13])
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "merge"])
def test_a_fault_at_any_step_of_an_edit_of_a_forest_changes_nothing(operation, noise):
    _, X = make("cholesky", 0.1)
    clf = ForestGPClassifier(RBF(0.5), noise, capacity=12).fit(X, np.arange(40) % 3)
    assert_atomic(
        clf,
        lambda: OPERATIONS[operation](clf, X),
        lambda: (clf.decision_function(X), clf.predict_variance(X), clf.ids_),
    )


@pytest.mark.slow(fast=["add", "declare", "replace"])
@pytest.mark.parametrize("operation", ["add", "declare", "remove", "replace", "relabel"])
def test_a_fault_at_any_step_of_an_edit_by_id_of_a_linear_model_changes_nothing(operation):
    _, X = make("cholesky", 0.1)
    clf = LinearGPClassifier().fit(X, np.arange(40) % 3, ids=range(40))
    assert_atomic(
        clf,
        lambda: OPERATIONS[operation](clf, X),
        lambda: (clf.decision_function(X), clf.ids_, np.array(list(clf.digest()))),
    )


@pytest.mark.slow(fast=4)
@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
@pytest.mark.parametrize("operation", ["add", "remove", "replace", "relabel"])
def test_a_fault_while_a_question_folds_edits_loses_none(operation, solver):
    clf, X = make(solver, noise=0.1)
    undisturbed, _ = make(solver, noise=0.1)
    OPERATIONS[operation](undisturbed, X)
    want = undisturbed.decision_function(X)
    for step in range(1, 10_000):
        clf, _ = make(solver, noise=0.1)
        OPERATIONS[operation](clf, X)
        try:
            with FaultAt(step):
                clf.decision_function(X)
        except Injected:
            np.testing.assert_array_equal(clf.decision_function(X), want)
            continue
        break
    assert step > 5, "no step was hit"


TRANSFERS = {
    "fit": lambda clf, X: clf.fit(X[:5] + 1, [0, 1, 2, 3, 3]),
    "add": lambda clf, X: clf.add(X[:3] + 2, [3, 0, 1]),
    "remove": lambda clf, X: clf.remove([0, 5]),
    "replace": lambda clf, X: clf.replace([3, 4], X[:2] + 2, [0, 3]),
    "relabel": lambda clf, X: clf.relabel([3], [2]),
}


@pytest.mark.slow(fast=5)
@pytest.mark.parametrize("operation", TRANSFERS)
@pytest.mark.parametrize("C", [10.0, 1e14])
def test_a_fault_at_any_step_of_a_transfer_changes_nothing(operation, C):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 4
    source = LSSVMClassifier(RBF(0.5)).fit(X[y < 3], y[y < 3])
    clf = NPlusOneClassifier(source, RBF(0.5), C=C).fit(X, y)
    act, ask = partial(TRANSFERS[operation], clf, X), partial(clf.decision_function, X)
    assert_atomic(clf, act, lambda: (ask(),))


ONE_SHOTS = {
    "fit": lambda clf, X: clf.fit(X[:5] + 1, [0, 1, 1, 0, 0]),
    "add": lambda clf, X: clf.add(X[:3] + 2, [0, 0, 1]),
    "remove": lambda clf, X: clf.remove([0, 5]),
    "replace": lambda clf, X: clf.replace([3, 4], X[:2] + 2, [0, 1]),
    "relabel": lambda clf, X: clf.relabel([3], [0]),
    "add_support": lambda clf, X: clf.add_support("third", X[:4] + 1),
    "remove_support": lambda clf, X: clf.remove_support("first"),
}


@pytest.mark.slow(
    fast=[
        "adaptive-add",
        "adaptive-remove",
        "adaptive-replace",
        "adaptive-relabel",
        "adaptive-remove_support",
        "1e-12-add",
        "1e-12-remove",
        "1e-12-relabel",
        "1e-12-add_support",
        "1e-12-remove_support",
    ]
)
@pytest.mark.parametrize("operation", ONE_SHOTS)
@pytest.mark.parametrize("noise", ["adaptive", 1e-12])
def test_a_fault_at_any_step_of_a_one_shot_edit_changes_nothing(operation, noise):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 3)), np.arange(8) % 4 // 3
    # With a twin only noise that adapts will do.
    twins = [4, 4] if noise == "adaptive" else [4, 5]
    supports = {"first": rng.normal(size=(4, 3)) + 0.5, "second": X[twins] + 0.1}
    clf = OneShotClassifier(RBF(0.5), supports, noise=noise).fit(X, y)
    act, ask = partial(ONE_SHOTS[operation], clf, X), partial(clf.decision_function, X)
    assert_atomic(clf, act, lambda: (ask(),))


SHRUNK = partial(EigenspaceLDA, shrinkage="ledoit-wolf")
SUBSPACES = {
    "PCA fit": (EigenspacePCA, lambda pca, X, y: pca.fit(X + 1)),
    "PCA partial_fit": (EigenspacePCA, lambda pca, X, y: pca.partial_fit(X[:3])),
    "PCA forget": (EigenspacePCA, lambda pca, X, y: pca.forget(X[:3])),
    "PCA merge": (EigenspacePCA, lambda pca, X, y: pca.merge(pca)),
    "LDA fit": (EigenspaceLDA, lambda lda, X, y: lda.fit(X + 1, y)),
    "LDA partial_fit": (EigenspaceLDA, lambda lda, X, y: lda.partial_fit(X[:3], y[:3] + 5)),
    "LDA declare": (
        EigenspaceLDA,
        lambda lda, X, y: lda.partial_fit(X[:3], y[:3] + 5, classes=range(9)),
    ),
    "LDA forget": (EigenspaceLDA, lambda lda, X, y: lda.forget(X[:3], y[:3])),
    "LDA merge": (EigenspaceLDA, lambda lda, X, y: lda.merge(lda)),
    "LDA absorb": (EigenspaceLDA, lambda lda, X, y: lda.absorb(X[:5] + 0.1)),
    "LDA shrinkage partial_fit": (SHRUNK, lambda lda, X, y: lda.partial_fit(X[:3], y[:3] + 5)),
    "LDA shrinkage forget": (SHRUNK, lambda lda, X, y: lda.forget(X[:3], y[:3])),
    "LDA shrinkage absorb": (SHRUNK, lambda lda, X, y: lda.absorb(X[:5] + 0.1, rounds=2)),
}


@pytest.mark.slow(
    fast=[
        "PCA fit",
        "PCA partial_fit",
        "PCA forget",
        "PCA merge",
        "LDA fit",
        "LDA partial_fit",
        "LDA declare",
        "LDA forget",
        "LDA merge",
        "LDA shrinkage partial_fit",
    ]
)
@pytest.mark.parametrize("operation", SUBSPACES)
def test_a_fault_at_any_step_of_an_eigenspace_changes_nothing(operation):
    kind, act = SUBSPACES[operation]
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    estimator = kind().fit(X, y)
    assert_atomic(estimator, lambda: act(estimator, X, y), lambda: (estimator.transform(X),))


LINEAR = {
    "fit": lambda model, X, y: model.fit(X[:5] + 1, y[:5]),
    "partial_fit": lambda model, X, y: model.partial_fit(X[:3] / 2, y[:3]),
    "partial_fit many": lambda model, X, y: model.partial_fit(np.tile(X, (4, 1)), np.tile(y, 4)),
    "forget": lambda model, X, y: model.forget(X[:3], y[:3]),
    "forget all": lambda model, X, y: model.forget(X, y),
    "merge": lambda model, X, y: model.merge(model),
    "split": lambda model, X, y: model.split(model),
}


@pytest.mark.parametrize("operation", LINEAR)
@pytest.mark.parametrize("kind", [LinearGPClassifier, LinearGPRegressor])
def test_a_fault_at_any_step_of_sums_changes_nothing(kind, operation):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    model = kind("evidence").fit(X, y)
    act = partial(LINEAR[operation], model, X, y)
    assert_atomic(model, act, lambda: (model.digest(), model.predict(X), model.n_samples_))


def test_a_fault_while_rows_that_wait_are_summed_loses_none():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    want = LinearGPClassifier().fit(X, y).forget(X[:5], y[:5]).decision_function(X)
    for step in range(1, 10_000):
        model = LinearGPClassifier().fit(X, y).forget(X[:5], y[:5])
        try:
            with FaultAt(step):
                model.decision_function(X)
        except Injected:
            np.testing.assert_array_equal(model.decision_function(X), want)
            continue
        break
    assert step > 5, "no step was hit"


def test_the_threads_are_given_back_after_a_fault():
    from knowmore.linalg import threads

    clf, X = make("cholesky", noise=1e-13)
    for step in range(1, 400):
        try:
            with FaultAt(step):
                clf.add(X[:1] + step, [0])
        except Injected:
            assert threads._users == {}
