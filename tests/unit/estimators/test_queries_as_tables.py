"""Tables of polars and Arrow are read; a query that has no rows yet is refused at every door."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import knowmore
from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    IntersectionMap,
    Landmarks,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    SubspaceMonitor,
)
from knowmore.errors import InvalidType
from knowmore.insight import SuggestQuery, calibrate, explain, novelty, reliability, suggest

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
X = abs(RNG.normal(size=(40, 3)))
Y = np.where(X[:, 0] > 0.6, "yes", "no")
TABLE = pandas.DataFrame(X, columns=["x", "y", "z"])
LABELS = pandas.DataFrame({"label": Y})


def arrow(table):
    return pytest.importorskip("pyarrow").Table.from_pandas(table)


def polars(table):
    return pytest.importorskip("polars").from_pandas(table)


def lazy(table):
    return polars(table).lazy()


def relation(table):
    return pytest.importorskip("duckdb", reason="needs duckdb").connect().from_df(table)


def reader(table):
    return arrow(table).to_reader()


# -- tables that are read ------------------------------------------------------------------------

LEARNERS = {
    "gp": GPClassifier(),
    "lssvm": LSSVMClassifier(),
    "forest": ForestGPClassifier(capacity=8),
    "linear": LinearGPClassifier(),
    "lda": EigenspaceLDA(),
}


@pytest.mark.parametrize("kind", [arrow, polars])
@pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)
def test_rows_of_other_tables_are_read(model, kind):
    table = kind(TABLE)
    clf = clone(model).fit(table, kind(LABELS)["label"])
    known = clone(model).fit(X, Y)
    assert clf.predict(table).tolist() == known.predict(X).tolist()
    clf.partial_fit(table[:3], Y[:3])
    known.partial_fit(X[:3], Y[:3])
    assert clf.predict(table).tolist() == known.predict(X).tolist()
    if hasattr(clf, "digest"):
        assert clf.digest() == known.digest()
    elif hasattr(clf, "ids_"):
        assert np.array_equal(clf.editable_.examples.X, known.editable_.examples.X)


# -- queries -------------------------------------------------------------------------------------

QUERIES = {
    lazy: ("a LazyFrame", "collect()"),
    relation: ("a DuckDBPyRelation", "to_arrow_table()"),
    reader: ("a RecordBatchReader", "read_all()"),
}
GP, SUMS = GPClassifier().fit(X, Y), LinearGPClassifier().fit(X, Y)
SOURCE = FrozenEstimator(GPClassifier().fit(X, Y))
FITTED = {
    "GPClassifier": GP,
    "GPRegressor": GPRegressor().fit(X, X[:, 0]),
    "LSSVMClassifier": LSSVMClassifier().fit(X, Y),
    "ForestGPClassifier": ForestGPClassifier().fit(X, Y),
    "LinearGPClassifier": SUMS,
    "LinearGPRegressor": LinearGPRegressor().fit(X, X[:, 0]),
    "EigenspaceLDA": EigenspaceLDA().fit(X, Y),
    "EigenspacePCA": EigenspacePCA(2).fit(X),
    "Landmarks": Landmarks().fit(X),
    "IntersectionMap": IntersectionMap().fit(X),
    "OneShotClassifier": OneShotClassifier(supports={"s": X[:4]}).fit(X[4:], Y[4:]),
    "NPlusOneClassifier": NPlusOneClassifier(SOURCE).fit(X, ["no", "yes", "new", "no"] * 10),
    "SubspaceMonitor": SubspaceMonitor(1, window=4).fit(np.tile(X, (5, 1))),
}
ASKING = ("predict", "predict_proba", "decision_function", "predict_variance", "transform")
DOORS = {
    "fit y": lambda t, y: GPClassifier().fit(X, y),
    "add": lambda t, y: clone(GP).fit(X, Y).add(t, Y),
    "add y": lambda t, y: clone(GP).fit(X, Y).add(X, y),
    "replace": lambda t, y: clone(GP).fit(X, Y).replace(range(40), t),
    "relabel": lambda t, y: clone(GP).fit(X, Y).relabel(range(40), y),
    "partial_fit": lambda t, y: clone(SUMS).fit(X, Y).partial_fit(t, Y),
    "partial_fit y": lambda t, y: clone(SUMS).fit(X, Y).partial_fit(X, y),
    "partial_fit classes": lambda t, y: clone(SUMS).fit(X, Y).partial_fit(X, Y, classes=y),
    "forget": lambda t, y: clone(SUMS).fit(X, Y).forget(t, Y),
    "leave_one_out": lambda t, y: SUMS.leave_one_out(t, Y),
    "weights": lambda t, y: GPClassifier().fit(X, Y, sample_weight=y),
    "suggest": lambda t, y: suggest(GP, t),
    "novelty": lambda t, y: novelty(GP, t),
    "explain": lambda t, y: explain(GP, t),
    "calibrate": lambda t, y: calibrate(SUMS, t, Y),
    "reliability": lambda t, y: reliability(GP, t, Y),
    "query": lambda t, y: SuggestQuery().query(t, [*Y[:20], *[None] * 20], GPClassifier()),
    "query y": lambda t, y: SuggestQuery().query(X, y, GPClassifier()),
}


def refused(kind, act):
    name, read = QUERIES[kind]
    with pytest.raises(InvalidType) as caught:
        act(kind(TABLE), kind(LABELS))
    told = str(caught.value)
    assert f" is {name}, a query that may give its rows in another order each time. Read" in told
    assert told.endswith(f".{read}.")


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("name", FITTED)
def test_estimators_refuse_queries(name, kind):
    model = FITTED[name]
    refused(kind, lambda table, _: clone(model).fit(table, Y))
    for question in ASKING:
        if hasattr(model, question):
            refused(kind, lambda table, _, name=question: getattr(model, name)(table))


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("door", DOORS)
def test_no_door_takes_a_query(door, kind):
    refused(kind, DOORS[door])


@pytest.mark.parametrize("kind", QUERIES)
def test_a_file_takes_no_query(kind, tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        refused(kind, lambda table, _: store.add(table, Y))
        store.add(X, Y)
        refused(kind, lambda table, _: store.add(table, Y))
        refused(kind, lambda table, _: store.predict(table))
        assert len(store) == 40
