"""skops writes and reads every estimator: equal answers to the bit, and it goes on learning."""

from __future__ import annotations

import io
import pickle
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    IntersectionMap,
    Landmarks,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    living,
)
from knowmore.insight import suspects
from knowmore.subspaces import EigenspaceLDA, EigenspacePCA, SubspaceMonitor

skops = pytest.importorskip("skops.io", reason="needs skops")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3)) + np.arange(240)[:, None] % 3 * 2
Y = np.array(["a", "b", "c"])[np.arange(240) % 3]
Q = RNG.normal(size=(20, 3)) * 3
# A few examples still choose, many have chosen.
CLASSIFIERS = {
    "gp": GPClassifier(),
    "several kernels": GPClassifier([RBF(1.0), RBF(3.0)]),
    "inverse": GPClassifier(solver="inverse"),
    "float32": GPClassifier(dtype="float32", loss="squared_hinge", noise=0.1),
    "living": GPClassifier(settings="living", class_weight={"a": 2.0}),
    "lssvm": LSSVMClassifier(),
    "n plus one": NPlusOneClassifier(GPClassifier(RBF(1.0)).fit(X[Y != "c"], Y[Y != "c"])),
    "forest": ForestGPClassifier(capacity=32, n_trees=2),
}
REGRESSORS = {"gp": GPRegressor(), "forest": ForestGPRegressor(capacity=32)}
LINEAR = {"classes": LinearGPClassifier(), "values": LinearGPRegressor()}
SPACES = {
    "lda": EigenspaceLDA(shrinkage="ledoit-wolf"),
    "pca": EigenspacePCA(2),
    "monitor": SubspaceMonitor(window=10),
    "landmarks": Landmarks(),
    "intersection map": IntersectionMap(),
}


def through(model):
    """The model, written and read again; only what it says it is made of is trusted."""
    file = io.BytesIO()
    skops.dump(model, file)
    kinds = skops.get_untrusted_types(data=file.getvalue())
    assert not [
        one
        for one in kinds
        if one.split(".")[0] not in ("knowmore", "sklearn", "numpy", "functools")
    ]
    return skops.load(io.BytesIO(file.getvalue()), trusted=kinds)


def assert_equal(one, other, Q=Q):
    for question in ("predict", "predict_proba", "predict_variance", "transform", "score_samples"):
        if hasattr(one, question):
            assert np.array_equal(getattr(one, question)(Q), getattr(other, question)(Q)), question


def assert_lives(model, y, more):
    """Do both learn and forget alike after the journey?"""
    found = through(model)
    assert_equal(found, model)
    assert found.ids_.tolist() == model.ids_.tolist()
    assert found.leave_one_out().predicted.tolist() == model.leave_one_out().predicted.tolist()
    first = model.ids_[0]
    for one in (model, found):
        one.add(Q[:3], more, ids=["p", "q", "r"])
        one.remove([first, "q"])
        one.relabel("p", y)
    assert_equal(found, model)
    assert_equal(through(found), pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize("rows", [60, 240])
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(model, rows):
    weights = np.arange(rows) % 4 / 2 + 0.5
    weights[5] = 0
    clf = clone(model) if not hasattr(model, "source") else NPlusOneClassifier(model.source)
    clf.fit(X[:rows], Y[:rows], sample_weight=weights)
    if not hasattr(clf, "n_trees"):
        assert suspects(through(clf)).ids.tolist() == suspects(clf).ids.tolist()
    assert_lives(clf, "a", ["a", "b", "c"])


@pytest.mark.parametrize("rows", [60, 240])
@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors(model, rows):
    assert_lives(clone(model).fit(X[:rows], X[:rows, 0] ** 2), 7.0, [1.0, 2.0, 3.0])


def test_one_shot():
    clf = OneShotClassifier(supports={"one": X[:5] + 1, "two": X[:5] - 1}).fit(X[:9], Y[:9] == "a")
    found = through(clf)
    assert_equal(found, clf)
    for one in (clf, found):
        one.add(Q[:2], [True, False]).tolist()
    assert_equal(found, clf)


@pytest.mark.parametrize("ids", [None, range(240)], ids=["sums", "rows"])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models(name, ids):
    y = Y if name == "classes" else X @ [1.0, 2.0, 3.0]
    for labels in (y, Y == "a", np.arange(240) % 3) if name == "classes" else (y, X):
        model = clone(LINEAR[name]).fit(X, labels, ids=ids)
        found = through(model)
        assert_equal(found, model)
        assert found.digest() == model.digest()
        for one in (model, found):
            one.partial_fit(Q[:2], labels[:2])
        assert_equal(found, model)
        assert found.digest() == model.digest()


@pytest.mark.parametrize("model", SPACES.values(), ids=SPACES)
def test_spaces_and_maps(model):
    one = clone(model).fit(abs(X), Y) if hasattr(model, "priors") else clone(model).fit(abs(X))
    assert_equal(through(one), one, abs(Q))


@pytest.mark.parametrize(
    "ids", [["a", 1, "b\0", 2**70, "c", -3], [*"abcdef"], [5, 3, 9, -1, 0, 2]], ids=str
)
def test_ids_of_all_kinds(ids):
    clf = GPClassifier(RBF(1.0)).fit(X[:6], Y[:6], ids=ids).remove(ids[1])
    found = through(clf)
    assert [*map(repr, found.ids_.tolist())] == [*map(repr, clf.ids_.tolist())]
    assert found.remove(ids[2]).ids_.tolist() == [ids[0], *ids[3:]]


def test_declared_classes_and_names_of_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["x", "y", "z"])
    clf = GPClassifier().partial_fit(table, Y, classes=["a", "b", "c", "d"])
    found = through(clf)
    assert found.classes_.tolist() == ["a", "b", "c", "d"]
    assert found.predict(table).tolist() == clf.predict(table).tolist()
    with pytest.raises(ValueError, match="feature names"):
        found.predict(table[["y", "x", "z"]])


def test_pipelines():
    pipe = make_pipeline(StandardScaler(), GPClassifier()).fit(X, Y)
    found = through(pipe)
    for one in (pipe, found):
        living(one).remove([0, 3])
    assert_equal(found, pipe)


def test_nothing_of_what_was_removed_is_written():
    secret = 1234.5678
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    clf.add(np.full((1, 3), secret), ["a"], ids=["secret"])
    clf.remove("secret")
    file = io.BytesIO()
    skops.dump(clf, file)
    with ZipFile(file) as parts:
        texts = [parts.read(name) for name in parts.namelist()]
    assert not any(np.float64(secret).tobytes() in text or b"secret" in text for text in texts)
