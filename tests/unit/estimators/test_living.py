"""Promises of all living estimators: beginnings, endings, threads, the default kernel."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from functools import partial
from threading import Barrier, Event

import numpy as np
import pytest
from laws import laws
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded

from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
)
from knowmore.edits import Add, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, NoExamples, RepeatedId
from knowmore.kernels import SETTLED

RNG = np.random.default_rng(7)
X = 50 * RNG.normal(size=(90, 3)) + 1000
Y = np.arange(90) % 3
SUPPORTS = {"alike": X[:6] + 1, "other": X[3:9] - 20}


def scores_of(A):
    return np.column_stack([A[:, 0], A[:, 1]]) / 1000


# Estimators whose kernel is that of the median distance, and the labels that they take.
AT_MEDIAN = {"settings": "median"}
DEFAULTS = {
    "GPClassifier": (partial(GPClassifier, **AT_MEDIAN), Y),
    "GPRegressor": (partial(GPRegressor, **AT_MEDIAN), X[:, 0] - 1000),
    "LSSVMClassifier": (partial(LSSVMClassifier, C=10.0, **AT_MEDIAN), Y),
    "NPlusOneClassifier": (partial(NPlusOneClassifier, Scores([0, 1], scores_of)), Y),
    "OneShotClassifier": (partial(OneShotClassifier, None, SUPPORTS), np.minimum(Y, 1)),
}
defaults = pytest.mark.parametrize(("make", "y"), DEFAULTS.values(), ids=DEFAULTS)
EMPTIED = ["GPClassifier", "GPRegressor", "LSSVMClassifier"]


def median_of(rows):
    distances = [np.linalg.norm(a - b) for i, a in enumerate(rows) for b in rows[:i]]
    return np.median([d for d in distances if d > 0])


# -- the default kernel ----------------------------------------------------------------------------


@defaults
def test_a_few_rows_are_learnt_alike_at_once_and_one_by_one(make, y):
    whole = make().fit(X[:12], y[:12])
    stream = make()
    stream.add(X[:4], y[:4])
    for i in range(4, 12):
        stream.add(X[i : i + 1], y[i : i + 1])
    assert stream.kernel_ == whole.kernel_
    laws.assert_equal_models(stream, whole, X)


@defaults
def test_the_width_follows_the_examples_until_there_are_enough(make, y):
    clf = make().fit(X[:5], y[:5])
    assert_rounded(clf.kernel_.length_scale, median_of(X[:5]))
    clf.add(X[5:20], y[5:20])
    assert_rounded(clf.kernel_.length_scale, median_of(X[:20]))
    clf.remove([5, 6]).replace([7], X[30:31])
    assert_rounded(clf.kernel_.length_scale, median_of(laws.features(clf)))
    laws.assert_equal_models(clf, laws.batch(make, clf), X)
    # Now it is decided, by the first that are enough, and stays.
    clf.add(X[40:80], y[40:80])
    decided = clf.kernel_
    assert_rounded(decided.length_scale, median_of(laws.features(clf)[:SETTLED]))
    clf.remove(clf.ids_[-50:])
    assert clf.kernel_ == decided
    clf.add(X[80:] * 9, y[80:])
    assert clf.kernel_ == decided
    laws.assert_equal_models(clf, laws.batch(make, clf), X)


@defaults
def test_adding_many_across_the_decision_is_adding_one_by_one(make, y):
    clf = make().fit(X[:20], y[:20])
    other = deepcopy(clf)
    clf.add(X[20:60], y[20:60])
    for i in range(20, 60):
        other.add(X[i : i + 1], y[i : i + 1])
        assert len(other.predict(X[:1])) == 1
    assert clf.kernel_ == other.kernel_
    laws.assert_equal_models(clf, other, X)


@defaults
def test_a_fit_of_enough_rows_decides_by_all_of_them(make, y):
    clf = make().fit(X, y)
    assert_rounded(clf.kernel_.length_scale, median_of(X))
    decided = clf.kernel_
    clf.add(X[:5] * 7, y[:5])
    assert clf.kernel_ == decided


def test_rows_that_are_all_the_same_decide_nothing():
    clf = GPClassifier(**AT_MEDIAN).fit(np.ones((50, 2)), ["one"] * 50)
    assert clf.kernel_ == RBF(1.0)
    clf.add([[4.0, 5.0]], ["other"])
    assert clf.kernel_ == RBF(5.0)
    clf.add(np.full((5, 2), 100.0), ["far"] * 5)
    assert clf.kernel_ == RBF(5.0)
    assert clf.predict([[1, 1], [4, 5], [100, 100]]).tolist() == ["one", "other", "far"]


def test_a_kernel_that_is_given_stays_whatever_comes():
    clf = GPClassifier(RBF(3.0)).fit(X[:1], Y[:1])
    clf.add(X[1:50], Y[1:50])
    assert clf.kernel_ == RBF(3.0)


@defaults
def test_copies_and_pickles_keep_the_decision_open(make, y):
    clf = make().fit(X[:6], y[:6])
    clf.add(X[6:9], y[6:9])
    for other in (deepcopy(clf), pickle.loads(pickle.dumps(clf)), copy(clf)):
        other.add(X[9:15], y[9:15])
        assert_rounded(other.kernel_.length_scale, median_of(X[:15]))
        laws.assert_equal_models(other, laws.batch(make, other), X)
    assert_rounded(clf.kernel_.length_scale, median_of(X[:9]))


@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier])
@pytest.mark.parametrize(("mine", "theirs"), [(6, 9), (6, 60), (60, 6), (20, 20)])
def test_an_undecided_model_merges_with_any(kind, mine, theirs):
    make = partial(kind, **AT_MEDIAN)
    one = make().fit(X[:mine], Y[:mine])
    rows = slice(90 - theirs, 90)
    other = make().fit(X[rows], Y[rows], np.arange(200, 200 + theirs))
    decided = one if mine >= SETTLED else other if theirs >= SETTLED else None
    expected = decided and decided.kernel_
    one.merge(other)
    if expected is None:
        held = laws.features(one)[:SETTLED]
        assert_rounded(one.kernel_.length_scale, median_of(held))
    else:
        assert one.kernel_ == expected
    laws.assert_equal_models(one, laws.batch(make, one), X)


def test_models_that_decided_otherwise_keep_what_the_first_decided():
    make = partial(GPClassifier, **AT_MEDIAN)
    one, other = make().fit(X[:40], Y[:40]), make().fit(X[40:] * 2, Y[40:], np.arange(40, 90))
    decided = one.kernel_
    assert decided != other.kernel_
    assert one.merge(other).kernel_ == decided
    laws.assert_equal_models(one, laws.batch(make, one), X)


def test_a_kernel_that_was_given_does_not_merge_with_one_that_was_decided():
    one, other = GPClassifier(RBF(3.0)).fit(X[:40], Y[:40]), GPClassifier().fit(X[40:], Y[40:])
    with pytest.raises(InvalidInput, match=r"differ in kernel: RBF.* here, Matern.* there"):
        one.merge(other)


def test_c_by_leave_one_out_is_kept_while_the_width_follows():
    clf = LSSVMClassifier(C="loo").fit(X[:8], Y[:8])
    C = clf.C_
    clf.add(X[8:12], Y[8:12])
    assert clf.remove(clf.ids_[1:]).C_ == C
    assert len(clf.predict(X)) == len(X)


@pytest.mark.parametrize("load", [load_digits, load_wine])
@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier])
@pytest.mark.parametrize("in_order", [False, True], ids=["shuffled", "class by class"])
def test_a_stream_from_nothing_is_about_as_good_as_a_fit(load, kind, in_order):
    rows, labels = load(return_X_y=True)
    rows = rows / np.maximum(rows.std(axis=0), 1)
    order = np.random.default_rng(0).permutation(len(rows))[:500]
    n = len(order) * 2 // 3
    train, test = order[:n], order[n:]
    if in_order:
        train = train[np.argsort(labels[train], kind="stable")]
    stream = kind()
    for i in train:
        stream.add(rows[i : i + 1], labels[i : i + 1])
    whole = kind().fit(rows[train], labels[train])
    # Three standard deviations of an accuracy that is measured on so few.
    accuracy = whole.score(rows[test], labels[test])
    spread = np.sqrt(accuracy * (1 - accuracy) / len(test))
    assert stream.score(rows[test], labels[test]) >= accuracy - 3 * spread
    assert accuracy > 0.6


# -- nothing left ----------------------------------------------------------------------------------


def plain(A, B=None):
    return RBF(40.0)(A, B)


@pytest.mark.parametrize("name", EMPTIED)
@pytest.mark.parametrize(
    "words",
    [{}, {"kernel": plain}, {"solver": "inverse"}, {"kernel": RBF(1.0), "update": "iterative"}],
    ids=["default", "callable", "inverse", "iterative"],
)
def test_the_last_example_can_be_forgotten_and_others_learnt(name, words):
    make, y = DEFAULTS[name]
    for targets in (y, np.column_stack([y, y])) if name == "GPRegressor" else (y,):
        clf = make(**words).fit(X[:9], targets[:9])
        clf.remove(clf.ids_[1:]).remove(clf.ids_)
        for each in (clf, copy(clf), deepcopy(clf), pickle.loads(pickle.dumps(clf))):
            assert len(each.ids_) == 0
            for ask in (each.predict, each.residual, each.leave_one_out):
                with pytest.raises(NoExamples, match="holds no examples: all were removed"):
                    ask(*[X] if ask == each.predict else [])
            each.add(X[:50], targets[:50])
            laws.assert_equal_models(each, laws.batch(partial(make, **words), each), X)


# -- first adds ------------------------------------------------------------------------------------


def test_a_kernel_that_begins_a_model_itself_does_not_hang():
    def kernel(A, B):
        inner = GPClassifier(RBF(40.0))
        inner.add(A, np.arange(len(A)) % 2)
        EigenspacePCA().partial_fit(A)
        return RBF(40.0)(A, B)

    clf = GPClassifier(kernel)
    clf.add(X[:20], Y[:20])
    np.testing.assert_array_equal(
        clf.predict(X), GPClassifier(RBF(40.0)).fit(X[:20], Y[:20]).predict(X)
    )


def test_a_source_that_begins_a_model_itself_does_not_hang():
    def of(A):
        inner = LSSVMClassifier()
        inner.add(X[:20], Y[:20])
        return inner.decision_function(A)[:, :2]

    clf = NPlusOneClassifier(Scores([0, 1], of))
    clf.add(X[:20], Y[:20])
    assert len(clf.predict(X)) == len(X)


def test_first_adds_of_different_estimators_do_not_wait_for_each_other():
    both = Barrier(2, timeout=60)

    def kernel(A, B):
        both.wait()
        return RBF(1.0)(A, B)

    with ThreadPoolExecutor(2) as pool:
        begun = [pool.submit(GPClassifier(kernel).add, X[:1], Y[:1]) for _ in range(2)]
        assert [each.result().tolist() for each in begun] == [[0], [0]]


@defaults
def test_of_several_first_adds_of_one_estimator_none_is_lost(make, y):
    for _ in range(5):
        clf, meet = make(), Barrier(4, timeout=60)

        def begin(i, clf=clf, meet=meet):
            meet.wait()
            rows = slice(6 * i, 6 * i + 6)
            return clf.add(X[rows], y[rows], ids=range(6 * i, 6 * i + 6))

        with ThreadPoolExecutor(4) as pool:
            ids = [each.tolist() for each in pool.map(begin, range(4))]
        assert ids == [list(range(6 * i, 6 * i + 6)) for i in range(4)]
        assert sorted(clf.ids_) == list(range(24))
        laws.assert_equal_models(clf, laws.batch(make, clf), X)


def test_a_first_add_that_fails_leaves_an_estimator_without_features():
    for bad in ([[1.0, np.nan]], [["a", "b"]]):
        for clf in (GPClassifier(), EigenspacePCA(), EigenspaceLDA()):
            begin = getattr(clf, "add", None) or clf.partial_fit
            before = vars(clf).copy()
            with pytest.raises(InvalidInput):
                begin(bad, ["x"])
            assert vars(clf) == before


def test_an_estimator_is_asked_as_it_was_while_it_is_fitted_anew():
    held, go = Event(), Event()

    def kernel(A, B):
        if A.shape[1] == 2:
            held.set()
            go.wait(60)
        return RBF(40.0)(A, B)

    clf = GPClassifier(kernel).fit(X[:20], Y[:20])
    before = clf.predict(X)
    with ThreadPoolExecutor(1) as pool:
        fitting = pool.submit(clf.fit, X[:20, :2], Y[:20])
        held.wait(60)
        assert clf.n_features_in_ == 3
        np.testing.assert_array_equal(clf.predict(X), before)
        clf.add(X[20:22], Y[20:22])
        go.set()
        fitting.result()
    assert (clf.n_features_in_, len(clf.ids_)) == (2, 20)


def test_fits_in_several_threads_leave_one_of_them_whole():
    for _ in range(20):
        clf, meet = GPClassifier(RBF(40.0)), Barrier(3, timeout=60)

        def fit(d, clf=clf, meet=meet):
            meet.wait()
            clf.fit(X[: 10 + d, :d], Y[: 10 + d])

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(fit, (1, 2, 3)))
        d = clf.n_features_in_
        assert clf.model_.examples.X.shape == (10 + d, d)


@pytest.mark.parametrize(("columns", "y"), [(2, Y), (3, Y.astype(str))])
def test_an_edit_that_a_fit_of_another_thread_overtakes_is_refused(columns, y):
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    checked = Add(X[:1], Y[:1])
    clf.fit(X[:, :columns], y)
    with pytest.raises(InvalidInput, match="another thread has fitted the model to other data"):
        clf.editable_.apply(checked)
    assert len(clf.ids_) == 90


@pytest.mark.parametrize(
    "edit",
    [
        Add(X[:2], Y[:2], ("new", "new")),
        Remove((1, 1)),
        Replace((1, 1), X[:2]),
        Relabel((1, 1), Y[:2]),
    ],
    ids=lambda edit: type(edit).__name__,
)
@pytest.mark.parametrize("make", [GPClassifier, ForestGPClassifier, LinearGPClassifier])
def test_an_edit_that_names_an_example_twice_is_refused(make, edit):
    value = make().fit(X, Y, ids=range(90)).editable_
    with pytest.raises(RepeatedId, match="is given twice in one call"):
        value.apply(edit)
