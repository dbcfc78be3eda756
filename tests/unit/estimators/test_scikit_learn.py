"""The estimators keep scikit-learn's contract and work with its tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerance import assert_rounded, assert_solves

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
)
from knowmore.insight import suspects, tune

_ONCE_EACH = "{} looks at each example once, whatever its weight"


class LearnsItsSource(NPlusOneClassifier):
    """An NPlusOneClassifier for any labels: its source learns all classes but the last.

    A source belongs to certain classes and features, but scikit-learn's checks bring their own.
    """

    def __init__(self, source=None, kernel=None, C=1.0, bias=True):
        super().__init__(source, kernel, C, bias)

    def fit(self, X, y, ids=None, sample_weight=None):
        given, whole = self.source, LSSVMClassifier(self.kernel).fit(X, y)
        if len(whole.classes_) < 2:
            raise ValueError("There is one class only: no source can know a part of them.")
        held = whole.model_.examples
        known = held.labels != whole.classes_[-1]
        self.source = Scores(
            whole.classes_[:-1],
            LSSVMClassifier(self.kernel).fit(held.X[known], held.labels[known]).model_.mean,
        )
        try:
            return super().fit(X, y, ids, sample_weight)
        finally:
            self.source = given


class LearnsItsSupports(OneShotClassifier):
    """A OneShotClassifier for any inputs: its supports lie to both sides of them.

    Supports belong to certain features, but scikit-learn's checks bring their own.
    """

    def __init__(self, kernel=None, supports=None, noise="adaptive"):
        super().__init__(kernel, supports, noise=noise)

    def fit(self, X, y, ids=None, sample_weight=None):
        given, held = self.supports, GPClassifier().fit(X, y).model_.examples.X[:10]
        self.supports = {"near": held + 0.1, "far": held - 3.03}
        try:
            return super().fit(X, y, ids, sample_weight)
        finally:
            self.supports = given


def expected_failures(estimator):
    failures = {}
    chooses = isinstance(estimator, (NPlusOneClassifier, OneShotClassifier))
    if isinstance(estimator, (LinearGPClassifier, LinearGPRegressor)):
        reasons = {
            None: "in thelikelihood an example of weight two is one with half the noise",
            "evidence": "in the likelihood an example of weight two is one with half the noise",
            "loo": "an example of weight two is left out as one",
        }
        names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
        reason = reasons.get(estimator.noise)
        if getattr(estimator, "probability", "raw") == "calibrated":
            reason = reasons["loo"]
        return failures if reason is None else dict.fromkeys(names, reason)
    cuts = getattr(estimator, "capacity", np.inf) < 15
    sharp = getattr(estimator, "probability", "raw") == "calibrated"
    if chooses or cuts or sharp:
        what = "the choice of what to transfer" if chooses else "the temperature"
        what = "the shape of a tree" if cuts else what
        for kind in ("dense", "sparse"):
            check = f"check_sample_weight_equivalence_on_{kind}_data"
            failures[check] = _ONCE_EACH.format(what)
    if isinstance(estimator, (GPClassifier, ForestGPClassifier, OneShotClassifier)):
        failures["check_decision_proba_consistency"] = (
            "the probability of a class depends on the score and on the variance at that input, "
            "so that it need not rank inputs as the score alone does"
        )
    if isinstance(estimator, GPClassifier) and estimator.kernel is not None:
        failures["check_class_weight_classifiers"] = (
            "there is no bias: under a narrow kernel a class weighs more near its own examples "
            "alone"
        )
    return failures


@pytest.mark.slow(fast=400)
@parametrize_with_checks(
    [
        GPClassifier(),
        GPRegressor(),
        GPClassifier(solver="inverse"),
        GPRegressor(solver="inverse", update="iterative"),
        GPClassifier(dtype="float32"),
        GPClassifier(RBF(1.0)),
        GPRegressor(RBF(1.0)),
        LSSVMClassifier(RBF(1.0), class_weight="balanced"),
        GPClassifier(noise="loo", class_weight="balanced"),
        LSSVMClassifier(),
        LSSVMClassifier(C="loo", class_weight="balanced"),
        LSSVMClassifier(bias=False, solver="inverse"),
        LearnsItsSource(),
        OneShotClassifier(None, {}),
        LearnsItsSupports(),
        LearnsItsSupports(noise=0.1),
        LinearGPClassifier(),
        LinearGPClassifier("loo", resolution=8, intercept=False),
        LinearGPClassifier("evidence", resolution="exact"),
        LinearGPRegressor(),
        LinearGPRegressor("evidence", resolution=8, normalize_y=False),
        LinearGPRegressor("loo", resolution="exact", intercept=False),
        ForestGPClassifier(),
        ForestGPRegressor(),
        ForestGPClassifier(capacity=5, n_trees=3),
        ForestGPRegressor(RBF(1.0), capacity=5, n_trees=2),
        ForestGPRegressor(RBF(1.0)),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def test_it_works_in_a_pipeline_and_in_cross_validation():
    pipeline = make_pipeline(StandardScaler(), GPClassifier())
    assert cross_val_score(pipeline, X, NAMES[y], cv=5).mean() > 0.9
    search = GridSearchCV(pipeline, {"gpclassifier__noise": [1.0, 0.01]}, cv=3).fit(X, y)
    assert search.best_params_["gpclassifier__noise"] in (1.0, 0.01)


def test_a_clone_is_unfitted_and_equal_in_parameters():
    clf = GPClassifier(RBF(2.0), noise=0.5, solver="inverse", update="direct").fit(X, y)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert not copy.__sklearn_is_fitted__()


def test_a_kernel_changed_outside_does_not_change_the_model():
    kernel = RBF(2.0)
    clf = GPClassifier(kernel).fit(X, y)
    before = clf.decision_function(X)
    kernel.length_scale = 0.1
    clf.add(X[:1], y[:1])
    clf.remove(clf.ids_[-1:])
    K, T = RBF(2.0)(X) + 0.1 * np.eye(len(X)), clf.model_.targets.T
    assert_solves(clf.decision_function(X), before, K, T, left=RBF(2.0)(X))
    assert clf.kernel_ == RBF(2.0)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_bring_their_feature_names(frame):
    columns = ["length", "width", "petal length", "petal width"]
    table = frame(dict(zip(columns, X.T, strict=True)))
    labels = (pd.Series if frame is pd.DataFrame else pl.Series)(NAMES[y].tolist())
    clf = GPClassifier().fit(table[:100], labels[:100])
    assert clf.feature_names_in_.tolist() == columns
    assert clf.classes_.tolist() == ["setosa", "versicolor"]
    clf.add(table[100:], labels[100:])
    assert clf.classes_.tolist() == NAMES.tolist()
    plain = GPClassifier(clf.kernel_).fit(X, NAMES[y])
    np.testing.assert_array_equal(clf.predict(table), plain.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.add(table[:1][columns[::-1]], labels[:1])
    assert len(clf.ids_) == 150


def test_ids_may_come_from_an_index():
    table = pd.DataFrame(X[:5], index=[f"flower {i}" for i in range(5)])
    clf = GPClassifier().fit(table.to_numpy(), y[:5], ids=table.index)
    assert clf.ids_.tolist() == table.index.tolist()
    assert clf.remove(table.index[1]).ids_.tolist() == [f"flower {i}" for i in (0, 2, 3, 4)]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_tables_are_learnt_as_if_they_were_dense(kind):
    def scores(_):
        return np.zeros((len(_), 2))

    for make, labels in (
        (lambda: GPClassifier(RBF(1.0)), NAMES[y]),
        (lambda: GPRegressor(RBF(1.0)), X[:, 0]),
        (lambda: LSSVMClassifier(RBF(1.0)), NAMES[y]),
        (lambda: NPlusOneClassifier(Scores(NAMES[:2], scores), RBF(1.0)), NAMES[y]),
        (lambda: OneShotClassifier(RBF(1.0), {"near": kind(X[:3] + 1)}), y > 1),
    ):
        one, other = make().fit(kind(X), labels), make().fit(X, labels)
        for clf, each in ((one, kind), (other, np.asarray)):
            clf.add(each(X[:5]), labels[:5])
            clf.replace([3, 4], each(X[5:7]))
        np.testing.assert_array_equal(one.predict(kind(X)), other.predict(X))


def test_encoded_categories_are_learnt():
    words = np.array([["red", "round"], ["red", "long"], ["blue", "long"], ["blue", "round"]])
    clf = make_pipeline(OneHotEncoder(), GPClassifier()).fit(words, ["apple", "bean", "pen", "pen"])
    assert clf.predict(words).tolist() == ["apple", "bean", "pen", "pen"]


@pytest.mark.parametrize("weighted", [False, True])
def test_bags_of_examples_that_leave_some_out_by_weight_are_learnt(weighted):
    weights = np.where(np.arange(len(X)) % 3 == 0, 0.0, 2.0) if weighted else None
    bags = BaggingClassifier(GPClassifier(), n_estimators=5, random_state=0)
    assert bags.fit(X, NAMES[y], sample_weight=weights).score(X, NAMES[y]) > 0.9
    few = BaggingClassifier(LSSVMClassifier(), n_estimators=5, max_samples=8, random_state=0)
    assert few.fit(X, NAMES[y]).predict_proba(X).shape == (len(X), 3)
    values = BaggingRegressor(GPRegressor(), n_estimators=5, random_state=0)
    assert values.fit(X, X[:, 0], sample_weight=weights).score(X, X[:, 0]) > 0.9


def test_what_weighs_nothing_stays_through_tuning_and_merging():
    weights = np.where(np.arange(30) < 5, 0.0, 1.0)
    clf = GPClassifier(RBF(1.0)).fit(X[::5], NAMES[y[::5]], sample_weight=weights)
    tuned = tune(clf).estimator
    assert tuned.ids_.tolist() == clf.ids_.tolist()
    assert len(suspects(tuned).model.examples) == 25
    other = GPClassifier(RBF(1.0)).fit(X[1::5], y[1::5].astype(str), range(30, 60))
    clf = GPClassifier(RBF(1.0)).fit(X[::5], y[::5].astype(str), sample_weight=weights)
    assert len(other.merge(clf).ids_) == 60
    assert len(other.model_.examples) == 55
    # Without those that count there is no model, and with one there is again.
    clf.remove(clf.ids_[5:])
    with pytest.raises(ValueError, match="holds no examples: all have weight zero"):
        clf.predict(X)
    clf.add(X[:1], ["0"])
    assert clf.predict(X[:2]).tolist() == ["0", "0"]


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("columns", [1, 2])
def test_the_regressor_is_scikit_learn_s_posterior(columns, normalize_y):
    rng = np.random.default_rng(0)
    targets = 5 + rng.normal(size=(len(X), 2)) * [1.0, 30.0]
    targets = targets if columns == 2 else targets[:, 1]
    # Of an observation: scikit-learn's standard deviation has the noise of a WhiteKernel in it.
    noisy = RBF(1.0) + WhiteKernel(0.1)
    ours = GPRegressor(RBF(1.0), noise=0.1, normalize_y=normalize_y).fit(X, targets)
    theirs = GaussianProcessRegressor(noisy, alpha=0, optimizer=None, normalize_y=normalize_y)
    theirs.fit(X, targets)
    K, k = RBF(1.0)(X) + 0.1 * np.eye(len(X)), RBF(1.0)(X, X + 0.1)
    T = np.reshape(targets, (len(X), -1))
    for asked in {}, {"return_std": True}, {"return_cov": True}:
        got, want = ours.predict(X + 0.1, **asked), theirs.predict(X + 0.1, **asked)
        got, want = (one if asked else (one, one) for one in (got, want))
        for one, other in zip(got, want, strict=True):
            assert one.shape == other.shape
        mean, other = (np.reshape(one[0], (len(X), -1)) for one in (got, want))
        assert_solves(mean, other, K, T, left=k)
        units = T.std(axis=0) if normalize_y else np.ones(columns)
        square = units**2 if columns == 2 else units[0] ** 2
        if "return_std" in asked:
            np.testing.assert_array_equal(got[1], np.sqrt(ours.predict_variance(X + 0.1)))
        if "return_cov" in asked:
            mine, other = (np.reshape(one[1] / square, (len(X), -1)) for one in (got, want))
            assert_solves(mine, other, K, np.repeat(k, columns, axis=1), left=k)
            diagonal = np.einsum("ii...->i...", got[1])
            np.testing.assert_array_equal(diagonal, ours.predict_variance(X + 0.1))
    likelihood, cond = theirs.log_marginal_likelihood(), np.linalg.cond(K)
    assert_rounded(ours.log_marginal_likelihood(), likelihood, 100 * cond, abs(likelihood))
