"""Every estimator knows columns by their names, strings or not."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    GPClassifier,
    GPRegressor,
    Grid,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    SubspaceMonitor,
)
from knowmore.insight import tune

rng = np.random.default_rng(8)
X = rng.normal(size=(40, 3)) * [1, 2, 3]
Y = np.array(["a", "b"])[np.arange(40) % 2]

NAMES = {
    "integers": [2021, 2022, 2023],
    "counted": [0, 1, 2],
    "dates": list(pd.date_range("2021-01-01", periods=3)),
    "tuples": pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)]),
    "some missing": [1.0, 2.0, np.nan],
}
named = pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)


def frame(names, values=X):
    return pd.DataFrame(values, columns=names)


def turned(table):
    return table.iloc[:, ::-1]


def transfer():
    """With a source that was asked by name."""
    source = LSSVMClassifier(RBF(2.0)).fit(X[:20], Y[:20])
    return NPlusOneClassifier(source, RBF(2.0))


def three(y):
    return np.where(np.arange(len(y)) % 5 == 0, "c", y)


# How each learns, learns more, and is asked.
ESTIMATORS = {
    "EigenspacePCA": (
        lambda t: EigenspacePCA().fit(t),
        ("partial_fit", "forget", "transform", "score"),
    ),
    "EigenspaceLDA": (
        lambda t: EigenspaceLDA().fit(t, Y[: len(t)]),
        ("partial_fit y", "forget y", "absorb", "transform", "predict"),
    ),
    "SubspaceMonitor": (lambda t: SubspaceMonitor(1, 10, false_alarms=0.1).fit(t), ("observe",)),
    "GPClassifier": (
        lambda t: GPClassifier(RBF(2.0)).fit(t, Y[: len(t)]),
        ("add y", "predict", "predict_proba", "predict_variance"),
    ),
    "GPRegressor": (
        lambda t: GPRegressor(RBF(2.0)).fit(t, X[: len(t), 0]),
        ("predict", "predict_variance"),
    ),
    "LSSVMClassifier": (
        lambda t: LSSVMClassifier(RBF(2.0)).fit(t, Y[: len(t)]),
        ("add y", "decision_function"),
    ),
    "LinearGPClassifier": (
        lambda t: LinearGPClassifier().fit(t, Y[: len(t)]),
        ("partial_fit y", "forget y", "leave_one_out y", "predict_variance", "predict"),
    ),
    "LinearGPRegressor": (
        lambda t: LinearGPRegressor().fit(t, X[: len(t), 0]),
        ("predict_variance", "predict"),
    ),
    "NPlusOneClassifier": (
        lambda t: transfer().fit(t, three(Y[: len(t)])),
        ("add y", "predict"),
    ),
    "OneShotClassifier": (
        lambda t: OneShotClassifier(RBF(2.0), {"near": X[:3] + 0.1}, name="a").fit(t, Y[: len(t)]),
        ("add y", "predict"),
    ),
}
every = pytest.mark.parametrize("name", ESTIMATORS)


@named
@every
def test_columns_in_another_order_are_refused_by_every_verb_and_question(name, names):
    learn, verbs = ESTIMATORS[name]
    table = frame(names)
    model = learn(table[:30])
    before = pickle.dumps(model)
    for verb in verbs:
        method, *labels = verb.split()
        with pytest.raises(
            KnowmoreError, match=r"^Column 0 of X is .*, but .* in fit\. Keep the order"
        ):
            getattr(model, method)(turned(table)[30:], *[Y[30:] for _ in labels])
    assert pickle.dumps(model) == before
    for copy in (model, pickle.loads(before)):
        method = verbs[-1]
        getattr(copy, method)(table[30:])
        getattr(copy, method)(X[30:])


@every
def test_a_new_fit_learns_the_names_again(name):
    learn, verbs = ESTIMATORS[name]
    model = learn(frame(NAMES["integers"])[:30])
    fresh = clone(model)
    assert not any("names" in attribute for attribute in vars(fresh))
    again = three(Y[:30]) if name == "NPlusOneClassifier" else Y[:30]
    values = ("EigenspacePCA", "SubspaceMonitor", "GPRegressor", "LinearGPRegressor")
    fit = [again] if name not in values else [X[:30, 0]]
    model.fit(X[:30], *fit)
    getattr(model, verbs[-1])(turned(frame(NAMES["integers"]))[30:])


@pytest.mark.parametrize("names", [[2021, 2022, 2023], [0, 1, 2]], ids=["named", "counted"])
def test_estimators_of_columns_in_another_order_do_not_merge(names):
    table = frame(names)
    for learn in (
        lambda t, rows: EigenspacePCA().fit(t[rows]),
        lambda t, rows: EigenspaceLDA().fit(t[rows], Y[rows]),
        lambda t, rows: LinearGPClassifier(resolution=Grid([-9] * 3)).fit(t[rows], Y[rows]),
        lambda t, rows: GPClassifier(RBF(2.0)).fit(t[rows], Y[rows], ids=[*range(40)[rows]]),
    ):
        with pytest.raises(KnowmoreError, match=r"^The two models differ in their features: "):
            learn(table, slice(20)).merge(learn(turned(table), slice(20, 40)))
        learn(table, slice(20)).merge(learn(table, slice(20, 40)))


def test_default_columns_have_no_names():
    counted, years = frame([0, 1, 2]), frame([2021, 2022, 2023])
    EigenspacePCA().fit(counted).partial_fit(years).partial_fit(X)
    EigenspacePCA().fit(years).partial_fit(counted).partial_fit(X)
    EigenspacePCA().fit(counted).merge(EigenspacePCA().fit(X))


def test_names_of_another_kind_are_other_names():
    with pytest.raises(KnowmoreError, match=r"^Column 0 of X is 'a', but it was 2021 in fit"):
        EigenspacePCA().fit(frame([2021, 2022, 2023])).transform(frame([*"abc"]))
    with pytest.raises(KnowmoreError, match=r"^Column 0 of X is 2021, but it was 'a' in fit"):
        EigenspacePCA().fit(frame([*"abc"])).transform(frame([2021, 2022, 2023]))


@every
def test_strings_beside_integers_are_refused_in_words(name):
    learn, _ = ESTIMATORS[name]
    with pytest.raises(KnowmoreError, match=r"your input has \['int', 'str'\] as feature name"):
        learn(frame(["a", 1, 2]))


@pytest.mark.parametrize("kind", [pa.Table.from_pandas, pl.from_pandas])
def test_columns_of_tables_of_other_libraries_are_known_by_name(kind):
    table = frame([*"abc"])
    model = EigenspacePCA().fit(kind(table))
    assert model.eigenspace_.names == (*"abc",)
    with pytest.raises(KnowmoreError, match="must be in the same order"):
        model.partial_fit(kind(turned(table)))
    with pytest.raises(
        KnowmoreError, match=r"^The column 'c' of X has values that are not numbers"
    ):
        model.fit(kind(table.assign(c="red")))


def test_a_tuned_estimator_knows_the_names():
    table = frame(NAMES["integers"])
    tuned = tune(GPClassifier(RBF(2.0)).fit(table, X[:, 0] > 0)).estimator
    with pytest.raises(KnowmoreError, match=r"^Column 0 of X is 2023, but it was 2021 in fit"):
        tuned.predict(turned(table))


def test_a_source_that_learnt_from_named_columns_is_asked_by_their_names_when_models_merge():
    table = frame(NAMES["integers"])
    source = LSSVMClassifier(RBF(2.0)).fit(table[:20], Y[:20])
    halves = [
        NPlusOneClassifier(source, RBF(2.0)).fit(
            table[rows], three(Y[rows]), ids=[*range(40)[rows]]
        )
        for rows in (slice(20), slice(20, 40))
    ]
    assert len(halves[0].merge(halves[1]).ids_) == 40
