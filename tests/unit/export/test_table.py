"""Tables of examples: what is in them, and what is refused."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)
from knowmore.errors import InvalidInput, InvalidType, NotFitted
from knowmore.export import to_table

pandas = pytest.importorskip("pandas")
OWN = ["id", "label", "weight", "loo_predicted", "loo_score", "loo_variance", "loo_silent"]


@pytest.fixture
def scene():
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(12, 2)), columns=["weight", "height"])
    return X, rng.choice(["a", "b", "c"], 12)


def read(model, path):
    to_table(model, path)
    return (
        pandas.read_csv(path, keep_default_na=False)
        if path.suffix == ".csv"
        else pandas.read_parquet(path)
    )


@pytest.mark.parametrize("form", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier, ForestGPClassifier])
def test_examples_with_what_is_said_of_each(kind, form, scene, tmp_path):
    X, y = scene
    clf = kind().fit(X, y, ids=[f"p{i}" for i in range(12)])
    clf.remove("p3")
    left = clf.leave_one_out()
    table = read(clf, tmp_path / f"t{form}")
    # A feature that has the name of another column gets an underscore.
    assert [*table] == [*OWN, "weight_", "height"]
    assert table["id"].tolist() == clf.ids_.tolist()
    assert table["label"].tolist() == left.labels.tolist()
    assert table["loo_predicted"].tolist() == left.predicted.tolist()
    own = left.scores[np.arange(11), np.searchsorted(left.names, left.labels)]
    assert table["loo_score"].tolist() == own.tolist()
    assert table["loo_variance"].tolist() == left.variance.tolist()
    assert table["loo_silent"].tolist() == left.silent.tolist()
    assert table[["weight_", "height"]].to_numpy().tolist() == X.drop(index=3).to_numpy().tolist()


def test_an_example_of_weight_zero_is_there(scene, tmp_path):
    X, y = scene
    y[0] = "alone"
    clf = GPClassifier().fit(X.to_numpy(), y, sample_weight=np.arange(12.0))
    table = read(clf, tmp_path / "t.parquet")
    assert table["weight"].tolist() == [*range(12)]
    # Nobody else has its label: there is no score.
    assert np.isnan(table["loo_score"][0])
    assert [*table][-2:] == ["x0", "x1"]


def test_regressors(scene, tmp_path):
    X, _ = scene
    one = read(GPRegressor().fit(X, X["height"]), tmp_path / "t.csv")
    assert [*one] == [name for name in OWN if name != "loo_score"] + ["weight_", "height"]
    two = read(GPRegressor().fit(X.to_numpy(), X.to_numpy()), tmp_path / "t.csv")
    assert [*two][:5] == ["id", "label_0", "label_1", "weight", "loo_predicted_0"]


def test_mixed_ids_and_awkward_words(tmp_path):
    clf = GPClassifier().fit([[0.0], [1.0]], ['a,"b"', "\n"], ids=[7, "x"])
    assert read(clf, tmp_path / "t.parquet")["id"].tolist() == ["7", "x"]
    to_table(clf, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        assert [line[1] for line in csv.reader(file)] == ["label", 'a,"b"', "'\n"]


def test_no_cell_runs_in_a_spreadsheet(tmp_path):
    X = pandas.DataFrame([[-1.5, 0.0], [-2.0, 1.0]], columns=["=now()", "-1"])
    clf = GPClassifier().fit(X, ["@sum", "-7"], ids=["+a", "\tb"])
    to_table(clf, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*OWN, "'=now()", "-1"]
    assert [row[:2] for row in rows] == [["'+a", "'@sum"], ["'\tb", "-7"]]
    assert [row[-2:] for row in rows] == [["-1.5", "0.0"], ["-2.0", "1.0"]]
    assert read(clf, tmp_path / "t.parquet")["id"].tolist() == ["+a", "\tb"]


@pytest.mark.parametrize("weights", [None, np.arange(12.0)])
def test_rows_of_a_linear_model_that_are_kept(weights, scene, tmp_path):
    X, y = scene
    clf = LinearGPClassifier().fit(X, y, sample_weight=weights)
    with knowmore.open(tmp_path / "m.km", LinearGPClassifier()) as store:
        store.add(X.to_numpy(), y, [*"abcdefghijkl"], weights)
        store.set_notes(columns=["weight", "height"])
        table = read(store, tmp_path / "t.csv")
    assert [*table][-2:] == ["weight_", "height"]
    learnt = slice(0 if weights is None else 1, None)
    w = None if weights is None else weights[learnt]
    left = clf.leave_one_out(X[learnt], y[learnt], sample_weight=w)
    assert table["id"].tolist() == [*"abcdefghijkl"]
    assert table["loo_variance"][learnt].tolist() == left.variance.tolist()
    assert table["loo_predicted"][learnt].tolist() == left.predicted.tolist()
    if weights is not None:
        assert table["loo_predicted"][0] == clf.predict(X[:1])[0]


def test_what_is_refused(tmp_path):
    X, y = [[0.0], [1.0]], [0.0, 1.0]
    path = tmp_path / "t.csv"
    with pytest.raises(InvalidType, match=r"^LinearGPRegressor keeps no rows, only their sums"):
        to_table(LinearGPRegressor().fit(X, y), path)
    with pytest.raises(
        InvalidType, match=r"^There is no table of a list. Give a knowmore estimator"
    ):
        to_table(X, path)
    with pytest.raises(NotFitted):
        to_table(GPClassifier(), path)
    with pytest.raises(InvalidInput, match=r"t.xlsx' does not end in .csv or .parquet. Name such"):
        to_table(GPRegressor().fit(X, y), tmp_path / "t.xlsx")
    odd = GPClassifier().fit(X, ["a", "\ud800"])
    with pytest.raises(InvalidInput, match=r"^Parquet cannot hold the ids, labels or column names"):
        to_table(odd, tmp_path / "t.parquet")
    assert not any(tmp_path.iterdir())
    to_table(odd, path)
    assert "\\ud800" in path.read_text()
