"""Classes that are declared by partial_fit have a column, whether or not they have an example."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    living,
)
from knowmore.errors import InvalidInput
from knowmore.insight import calibrate, reliability, suspects, tune
from knowmore.subspaces import EigenspaceLDA
from knowmore.transfer import Scores

RNG = np.random.default_rng(0)
CLASSES = np.array(["a", "b", "c", "d"])
X = RNG.normal(size=(30, 2)) + np.arange(30)[:, None] % 2 * 3
Y = CLASSES[[1, 3]][np.arange(30) % 2]
Q = RNG.normal(size=(9, 2)) * 3
MODELS = {
    "gp": GPClassifier(),
    "hinge": GPClassifier(RBF(1.0), noise=0.1, loss="squared_hinge"),
    "lssvm": LSSVMClassifier(),
    "forest": ForestGPClassifier(capacity=8, n_trees=2),
    "linear": LinearGPClassifier(),
    "lda": EigenspaceLDA(),
    "one shot": OneShotClassifier(supports={"e": RNG.normal(size=(5, 2))}),
}
# A one-shot classifier always has examples of two classes.
ANY_CLASSES = [one for one in MODELS if one != "one shot"]
WITH_IDS = [one for one in ANY_CLASSES if one not in ("linear", "lda")]
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
any_classes = pytest.mark.parametrize(
    "model", [MODELS[one] for one in ANY_CLASSES], ids=ANY_CLASSES
)
with_ids = pytest.mark.parametrize("model", [MODELS[one] for one in WITH_IDS], ids=WITH_IDS)


def declared(model, rows=slice(None), classes=CLASSES):
    return clone(model).partial_fit(X[rows], Y[rows], classes=classes)


def assert_declared(clf, known, classes=CLASSES):
    """Are its answers those of an estimator that knows only its examples, in other columns?"""
    assert clf.classes_.tolist() == [*classes]
    assert clf.predict(Q).tolist() == known.predict(Q).tolist()
    at, held = np.searchsorted(classes, known.classes_), known.classes_
    P = clf.predict_proba(Q)
    assert P.shape == (len(Q), len(classes))
    assert np.array_equal(P[:, at], known.predict_proba(Q))
    assert not np.delete(P, at, axis=1).any()
    scores = clf.decision_function(Q)
    if len(classes) > 2:
        assert scores.shape == P.shape
        assert np.array_equal(np.array(classes)[scores.argmax(axis=1)], clf.predict(Q))
        others = np.delete(scores, at, axis=1)
        assert len(held) == len(classes) or (others < scores[:, at].min(axis=1)[:, None]).all()
    else:
        assert scores.shape == (len(Q),)
        assert np.array_equal(np.array(classes)[(scores > 0).astype(int)], clf.predict(Q))


# -- columns -------------------------------------------------------------------------------------


@models
def test_declared_classes_have_columns(model):
    assert_declared(declared(model), clone(model).fit(X, Y))


@models
def test_they_stay_when_later_calls_leave_them_out(model):
    clf = declared(model, slice(20)).partial_fit(X[20:], Y[20:])
    known = clone(model).partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    assert_declared(clf, known)


@any_classes
def test_a_single_example_of_a_declared_class(model):
    clf = declared(model, slice(1))
    known = clone(model).fit(X[:1], Y[:1])
    assert clf.classes_.tolist() == CLASSES.tolist()
    assert np.array_equal(clf.predict_proba(Q)[:, 1], known.predict_proba(Q)[:, 0])
    for pair in (["a", "b"], ["b", "c"]):
        assert_declared(declared(model, slice(1), pair), known, pair)


@any_classes
def test_more_can_be_declared_and_learnt_later(model):
    clf = declared(model, classes=["b", "d"]).partial_fit(X[:1], Y[:1], classes=["b", "z"])
    assert clf.classes_.tolist() == ["b", "d", "z"]
    clf.partial_fit(Q[:2], ["new", "new"])
    assert clf.classes_.tolist() == ["b", "d", "new", "z"]
    assert clf.predict_proba(Q).shape == (9, 4)


@models
def test_a_fit_declares_nothing(model):
    clf = declared(model).fit(X, Y)
    assert clf.classes_.tolist() == ["b", "d"]
    assert not hasattr(clone(declared(model)), "_declared")


@models
def test_a_label_outside_of_the_classes_changes_nothing(model):
    clf = declared(model)
    before = clf.predict_proba(Q)
    with pytest.raises(InvalidInput, match=r"y has the label 'b', which is not in classes"):
        clf.partial_fit(X[:1], Y[:1], classes=["a", "c", "more"])
    with pytest.raises(InvalidInput):
        clf.partial_fit(X[:1, :1], Y[:1], classes=[*CLASSES, "more"])
    assert clf.classes_.tolist() == CLASSES.tolist()
    assert np.array_equal(clf.predict_proba(Q), before)


@models
def test_numbers_and_truth_values(model):
    y = np.arange(30) % 2 == 0
    clf = clone(model).partial_fit(X, y, classes=[0, 1])
    assert clf.classes_.tolist() == [False, True]
    clf = clone(model).partial_fit(X, y.astype(int), classes=np.array([2.0, 1.0, 0.0]))
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.classes_.dtype == np.int64


@models
def test_pickles_and_merges_keep_them(model):
    clf = declared(model)
    assert_declared(pickle.loads(pickle.dumps(clf)), clone(model).fit(X, Y))


def test_merges_declare_the_classes_of_both():
    for model in (GPClassifier(RBF(1.0), 0.1), ForestGPClassifier(RBF(1.0), 0.1)):
        other = clone(model).fit(X, Y, ids=range(100, 130))
        other.partial_fit(X[:1], Y[:1], classes=CLASSES)
        one = clone(model).fit(X, Y).merge(other)
        assert one.classes_.tolist() == CLASSES.tolist()
    for model in (
        LinearGPClassifier(resolution=LinearGPClassifier().fit(X, Y).grid_),
        MODELS["lda"],
    ):
        assert clone(model).fit(X, Y).merge(declared(model)).classes_.tolist() == CLASSES.tolist()


# -- edits by id ---------------------------------------------------------------------------------


@with_ids
def test_edits_follow_the_law(model):
    clf = declared(model, slice(20))
    clf.add(X[20:], Y[20:])
    assert_declared(clf, clone(model).fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:]))
    given = {"kernel": RBF(1.0)}
    clf = declared(clone(model).set_params(**given))
    known = clone(model).set_params(**given).fit(X, Y)
    for one in (clf, known):
        one.remove(Y == "d")
    assert_declared(clf, known)
    for one in (clf, known):
        one.relabel(one.ids_[:-1], "c")
        one.relabel(one.ids_[-1], "a")
    # The last example of b has another label now.
    assert_declared(clf, known)
    left = clf.leave_one_out()
    assert left.names.tolist() == known.leave_one_out().names.tolist()
    assert np.array_equal(left.scores, known.leave_one_out().scores)


@with_ids
def test_labels_of_another_type_after_the_last_example_has_gone(model):
    clf = declared(model)
    clf.remove(clf.ids_)
    assert clf.classes_.tolist() == CLASSES.tolist()
    clf.add(X, np.arange(30) % 3)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.predict_proba(Q).shape == (9, 3)


def test_linear_rows_that_are_forgotten():
    clf = declared(LinearGPClassifier())
    clf.forget(X[Y == "d"], Y[Y == "d"])
    assert clf.classes_.tolist() == CLASSES.tolist()
    assert clf.predict_proba(Q)[:, 1].tolist() == [1.0] * 9
    clf = LinearGPClassifier().fit(X, Y, ids=range(30)).partial_fit(X[:1], Y[:1], classes=CLASSES)
    assert clf.remove(Y_ids(clf, "d")).classes_.tolist() == CLASSES.tolist()


def Y_ids(clf, label):
    examples = clf.editable_.examples
    return examples.ids[examples.labels == label]


# -- files ---------------------------------------------------------------------------------------


@models
def test_files_keep_them(model, tmp_path):
    clf = declared(model)
    clf.save(tmp_path / "m.km")
    assert_declared(knowmore.load(tmp_path / "m.km"), clone(model).fit(X, Y))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "lda"])
def test_stores_keep_them(name, tmp_path):
    path, model = tmp_path / "m.km", MODELS[name]
    with knowmore.open(path, clone(model)) as store:
        store.partial_fit(X[:20], Y[:20], classes=CLASSES)
        assert store.classes_.tolist() == CLASSES.tolist()
        store.add(X[20:], Y[20:])
        want = store.predict_proba(Q)
        assert want.shape == (9, 4)
        store.partial_fit(X[:1], Y[:1], classes=["b", "z"])
        assert store.classes_.tolist() == [*CLASSES, "z"]
        store.undo()
        assert store.classes_.tolist() == CLASSES.tolist()
        with pytest.raises(InvalidInput, match="which is not in classes"):
            store.partial_fit(X[:1], Y[:1], classes=["d"])
    with knowmore.open(path) as store:
        assert store.classes_.tolist() == CLASSES.tolist()
        assert np.array_equal(store.predict_proba(Q), want)
        if name == "one shot":
            return
        store.remove([i for i, label in zip(store.ids_, [*Y], strict=True) if label == "d"])
        assert store.classes_.tolist() == CLASSES.tolist()
    assert knowmore.load(path).classes_.tolist() == CLASSES.tolist()


# -- those who ask -------------------------------------------------------------------------------


def test_pipelines_declare_them():
    pipe = make_pipeline(StandardScaler(), GPClassifier()).fit(X, Y)
    assert living(pipe).partial_fit(X[:2], Y[:2], classes=CLASSES).classes_.tolist() == [*CLASSES]
    assert pipe.predict_proba(Q).shape == (9, 4)
    linear = make_pipeline(StandardScaler(), LinearGPClassifier()).fit(X, Y)
    living(linear).partial_fit(X[:2], Y[:2], classes=CLASSES)
    assert linear.predict_proba(Q).shape == (9, 4)


def test_questions_of_insight_take_them():
    clf = declared(GPClassifier())
    known = GPClassifier().fit(X, Y)
    P = calibrate(clf).predict_proba(Q)
    assert np.array_equal(P[:, [1, 3]], calibrate(known).predict_proba(Q))
    assert not P[:, [0, 2]].any()
    assert reliability(clf, X, Y).error == reliability(known, X, Y).error
    assert np.array_equal(suspects(clf).ids, suspects(known).ids)
    assert tune(clf).estimator.classes_.tolist() == CLASSES.tolist()


def test_a_source_may_have_them():
    source = declared(GPClassifier(RBF(1.0)), classes=["a", "b", "d"])
    y = np.array(["a", "b", "d", "new"])[np.arange(30) % 4]
    clf = NPlusOneClassifier(source).fit(X, y)
    S = source.decision_function(X)
    scores = Scores(["a", "b", "d"], of=source.decision_function)
    same = NPlusOneClassifier(FrozenEstimator(source)).fit(X, y)
    assert np.array_equal(clf.predict_proba(Q), same.predict_proba(Q))
    assert S.shape == (30, 3)
    assert np.array_equal(
        NPlusOneClassifier(scores).fit(X, y).predict_proba(Q), clf.predict_proba(Q)
    )


def test_a_source_that_declares_more_is_another_source(tmp_path):
    source = GPClassifier(RBF(1.0)).fit(X, Y)
    source.save(tmp_path / "source.km")
    clf = NPlusOneClassifier(source).fit(X, np.array(["b", "d", "new"])[np.arange(30) % 3])
    clf.save(tmp_path / "m.km")
    declared(GPClassifier(RBF(1.0))).save(tmp_path / "source.km")
    with pytest.raises(InvalidInput, match="which has been changed since"):
        knowmore.load(tmp_path / "m.km")
