"""Edits that leave a model hard to make: far rows, twins, threads, and tables that lost names."""

from __future__ import annotations

import pickle
import threading
from copy import deepcopy

import laws.laws as laws
import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import rounded

from knowmore import (
    EigenspaceLDA,
    GPClassifier,
    GPRegressor,
    LSSVMClassifier,
    living,
)
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.insight import novelty, tune

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)


# -- widths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [GPClassifier, GPRegressor, LSSVMClassifier])
@pytest.mark.parametrize("far", [1e160, 1e200, 1e300, 1e-200])
def test_the_width_of_rows_that_are_far_apart_is_a_number(make, far):
    clf = make().fit(np.r_[np.arange(8.0), far][:, None], np.arange(9) % 2)
    clf.remove([1, 2, 3, 4, 5, 6])
    clf.add([[2 * far], [3 * far]], [1, 0])
    for each in (clf, pickle.loads(pickle.dumps(clf)), deepcopy(clf)):
        assert np.isfinite(each.kernel_.theta).all()
        laws.assert_equal_models(each, laws.batch(make, each), np.arange(8.0)[:, None])


def test_a_width_beyond_the_range_is_refused_and_leaves_all_as_it_was():
    near, far = np.eye(9)[:2], 1.7e308 * np.ones((4, 9))
    clf = GPClassifier(settings="median").fit(near, [0, 1])
    before = clf.decision_function(near)
    with pytest.raises(InvalidInput, match="The median distance between the examples, inf,"):
        clf.add(far * [[1], [-1], [0.9], [-0.9]], [0, 1, 0, 1])
    np.testing.assert_array_equal(clf.decision_function(near), before)


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_what_is_held_can_be_forgotten_even_if_the_rest_has_no_width_of_its_own(solver):
    rows = np.r_[np.arange(8) * 1e-6, 1000.0, 2000.0, 3000.0][:, None]
    reg = GPRegressor(noise=1e-15, solver=solver).fit(rows[[0, 8, 9, 10]], np.arange(4.0))
    assert len(reg.remove([2, 3]).ids_) == 2
    reg = GPRegressor(noise=0.0).fit(rows, np.arange(11.0))
    assert reg.remove([2, 3, 4, 5, 6, 7]).ids_.tolist() == [0, 1, 8, 9, 10]
    assert np.isfinite(reg.predict(rows)).all()


# -- threads ---------------------------------------------------------------------------------------


def test_a_model_can_be_pickled_while_others_ask():
    clf, stop = GPClassifier().fit(X, Y), threading.Event()
    lda = EigenspaceLDA().fit(X, Y)

    def ask():
        while not stop.is_set():
            clf.add(X[:1], Y[:1])
            clf.leave_one_out()
            lda.partial_fit(X[:1], Y[:1]).predict(X[:2])

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(100):
            pickle.dumps((clf, lda))
            deepcopy((clf, lda))
    finally:
        stop.set()
        asking.join()


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 50])
def test_the_residual_of_values_that_are_all_the_same_is_rounding(n):
    reg = GPRegressor(RBF(1.0)).fit(X[:n], np.full(n, 0.1))
    assert reg.residual() <= 4 * n * np.finfo(float).eps


def test_no_threshold_separates_silent_examples_from_new_rows():
    clf = GPClassifier(RBF(1e-3)).fit(X, Y)
    with pytest.warns(KnowmoreWarning, match="For 60 of 60 examples the others say nothing"):
        clf.predict([[1e4, 1e4]], unknown=-1)
    with pytest.warns(KnowmoreWarning, match="widen it, tune it, or scale the features"):
        novelty(clf, X[:3]).threshold(0.9)


def test_a_class_is_no_label_for_the_unknown():
    with pytest.raises(InvalidInput, match="unknown=1 is a class of the model"):
        GPClassifier().fit(X, Y).predict(X, unknown=1)


def test_tuning_does_not_count_faint_neighbours_for_nothing():
    """Predictions follow kernel values of 1e-30 to the nearest example: that is not to be lost."""
    rng = np.random.default_rng(1)
    rows, ask = rng.normal(size=(45, 1)) * 100, rng.normal(size=(500, 1)) * 100
    y, want = (np.digitize(each[:, 0], [-50, 50]) for each in (rows, ask))
    clf = GPClassifier(RBF(1.0), 0.001).fit(rows, y)
    wrong = [
        GPClassifier(RBF(1.0), 0.001).fit(np.delete(rows, i, 0), np.delete(y, i)).predict(rows[[i]])
        != y[[i]]
        for i in range(45)
    ]
    with pytest.warns(KnowmoreWarning):
        tuned = tune(clf)
    # Of one the others say nothing at all: a refit predicts the first class, by chance the right.
    assert tuned.loss_before == rounded(np.mean(wrong) + 1 / 45)
    assert tuned.estimator.score(ask, want) >= clf.score(ask, want)


# -- tables and pipelines --------------------------------------------------------------------------


def test_the_first_index_that_names_rows_names_the_examples():
    named = pd.DataFrame(X[1:12], index=range(1, 12))
    y = pd.Series(Y[1:12], named.index)
    bare = pd.DataFrame(named.to_numpy())
    clf = GPClassifier().fit(bare, y).remove(y.index[:2])
    np.testing.assert_array_equal(clf.model_.examples.X, X[3:12])


def test_a_warning_says_that_rows_get_other_ids_than_in_their_table():
    clf = GPClassifier().fit(pd.DataFrame(X[:30]), Y[:30])
    with pytest.warns(KnowmoreWarning, match="The rows 0 to 9 of the table get other ids"):
        ids = clf.add(pd.DataFrame(X[30:40]), Y[30:40])
    assert ids.tolist() == list(range(30, 40))


def test_words_among_the_features_are_told_by_their_column():
    table = pd.DataFrame({"age": [20.0, 30.0], "city": ["ann", "bob"]})
    with pytest.raises(
        InvalidInput, match="The column 'city' of X has values that are not numbers"
    ):
        GPClassifier().fit(table, [0, 1])
    with pytest.raises(InvalidInput, match="X has values that are not numbers"):
        GPClassifier().fit([["ann"], ["bob"]], [0, 1])


def test_one_label_may_be_for_all_that_are_added():
    clf = GPClassifier().fit(X, Y.astype(str))
    clf.add(X[:3], "new")
    assert clf.model_.examples.labels[-3:].tolist() == ["new"] * 3


def test_to_replace_none_changes_nothing():
    clf = GPClassifier().fit(X, Y)
    assert clf.replace([], X[:0]).ids_.tolist() == list(range(60))


def test_a_living_pipeline_is_asked_as_its_last_step_is():
    pipe = make_pipeline(StandardScaler(), GPClassifier()).fit(X, Y)
    alive, last, Z = living(pipe), pipe[-1], pipe[0].transform(X)
    np.testing.assert_array_equal(
        alive.predict(X * 9, unknown=-1), last.predict(pipe[0].transform(X * 9), unknown=-1)
    )
    assert alive.log_marginal_likelihood() == last.log_marginal_likelihood()
    groups = np.arange(60) // 3
    assert tune(alive, groups=groups).after == tune(last, groups=groups).after
    assert len(alive.partial_fit(X[:2], Y[:2]).ids_) == 62
    assert {"ids_", "classes_", "kernel_"} <= set(dir(alive))
    reg = living(make_pipeline(StandardScaler(), GPRegressor()).fit(X, X[:, 1]))
    mean, deviation = reg.predict(X, return_std=True)
    assert mean.shape == deviation.shape == (len(Z),)


def test_groups_of_examples_that_weigh_nothing_are_passed_over_in_tuning():
    weights = np.where(np.arange(60) % 4 == 3, 0.0, 1.0)
    clf = GPClassifier(RBF(1.0)).fit(X, Y, sample_weight=weights)
    counted = GPClassifier(RBF(1.0)).fit(X[weights > 0], Y[weights > 0])
    groups = np.arange(60) // 5
    one, other = tune(clf, groups=groups), tune(counted, groups=groups[weights > 0])
    assert one.after == other.after
