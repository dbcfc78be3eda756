"""The index of a table names its rows, and values with an index are matched by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knowmore import (
    EigenspaceLDA,
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
)
from knowmore.errors import KnowmoreWarning

N = 24
COLUMNS = ["width", "height"]
rng = np.random.default_rng(5)
X = rng.normal(size=(N, 2))
Y = np.array(["a", "b", "c"])[np.arange(N) % 3]
NAMES = [f"row {i}" for i in rng.permutation(N)]
SOURCE = Scores(["a", "b"], lambda table: np.tanh(np.asarray(table)))


def frame(names=NAMES, values=X):
    return pd.DataFrame(values, index=names, columns=COLUMNS)


def series(values, names=NAMES):
    return pd.Series(values, index=names)


LIVING = {
    "GPClassifier": (lambda: GPClassifier(RBF(1.0)), Y),
    "LSSVMClassifier": (lambda: LSSVMClassifier(RBF(1.0)), Y),
    "NPlusOneClassifier": (lambda: NPlusOneClassifier(SOURCE, RBF(1.0)), Y),
    "OneShotClassifier": (
        lambda: OneShotClassifier(RBF(1.0), {"near": X[:3] + 0.1}),
        np.where(Y == "a", "a", "b"),
    ),
    "GPRegressor": (lambda: GPRegressor(RBF(1.0)), X[:, 0] * 2),
}
living = pytest.mark.parametrize("name", LIVING)


@living
def test_the_index_of_a_table_is_the_ids_and_removes_its_own_rows(name):
    make, y = LIVING[name]
    table = frame()
    model = make().fit(table[:20], series(y)[:20])
    assert model.ids_.tolist() == NAMES[:20]
    assert model.add(table[20:], y[20:]).tolist() == NAMES[20:]
    gone = table.index[table["width"] > 0.8]
    model.remove(gone)
    kept = ~table.index.isin(gone)
    assert model.ids_.tolist() == table.index[kept].tolist()
    np.testing.assert_array_equal(model.model_.examples.X[:, :2], X[kept])


@living
def test_labels_and_features_of_known_examples_are_matched_by_name(name):
    make, y = LIVING[name]
    model = make().fit(frame(), y)
    some = [NAMES[3], NAMES[0], NAMES[7]]
    turned = series(y)[some[::-1]]
    model.relabel(turned)
    model.relabel(some, turned)
    np.testing.assert_array_equal(model.model_.examples.labels, y)
    model.replace(some, frame().loc[some[::-1]] + 1, turned)
    held = model.model_.examples
    rows = held.rows(tuple(some))
    np.testing.assert_array_equal(held.X[rows, :2], frame().loc[some].to_numpy() + 1)
    np.testing.assert_array_equal(held.labels[rows], series(y)[some])


def test_a_column_of_labels_names_the_rows_of_an_array():
    clf = GPClassifier().fit(X, series(Y))
    assert clf.ids_.tolist() == NAMES
    other = pd.Series(Y[:2], index=["x", "y"])
    assert clf.add(X[:2], other).tolist() == ["x", "y"]


def test_a_table_with_a_default_index_is_numbered_whatever_the_index_of_its_labels():
    repeated = pd.Series(Y, index=["a", "b"] * 12)
    assert GPClassifier().fit(pd.DataFrame(X), repeated).ids_.tolist() == list(range(N))


def test_ids_that_are_given_count_more_than_an_index():
    assert GPClassifier().fit(frame(), Y, ids=range(N)).ids_.tolist() == list(range(N))


def test_the_default_index_gives_consecutive_ids():
    table = pd.DataFrame(X)
    clf = GPClassifier().fit(table[:10], Y[:10])
    with pytest.warns(KnowmoreWarning, match="The rows 0 to 4 of the table get other ids"):
        ids = clf.add(table[:5].reset_index(drop=True), Y[:5])
    assert ids.tolist() == [10, 11, 12, 13, 14]
    chunk = table[20:]
    assert clf.add(chunk, Y[20:]).tolist() == [20, 21, 22, 23]
    with pytest.raises(KnowmoreError) as caught:
        clf.add(table.iloc[[7]], Y[:1])
    assert str(caught.value) == (
        "The model already holds 7. "
        "Use replace() to change them, or give new examples other ids, by ids=... (to "
        "merge: in the second fit) or by the index of their table "
        "(reset_index(drop=True) numbers rows instead)."
    )


def test_times_cannot_be_ids_so_rows_are_numbered():
    times = pd.date_range("2026-01-01", periods=N)
    reg = GPRegressor().fit(frame(times), series(X[:, 0], times))
    assert reg.ids_.tolist() == list(range(N))
    with pytest.raises(KnowmoreError, match="is a Timestamp"):
        reg.remove(times[3])
    assert len(reg.add(frame(times), X[:, 0])) == N


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b"] * 12, "The index of X cannot be ids. The id 'a' is given twice"),
        (np.arange(N) / 2, "An id is a string or an integer, but 0.0 is a float"),
        ([*NAMES[:-1], None], "The index of X cannot be ids"),
        (
            pd.MultiIndex.from_product([range(N // 2), range(2)]),
            "An id is a string or an integer, but (0, 0) is a tuple. Use "
            "reset_index(drop=True), or give ids.",
        ),
    ],
)
def test_an_index_that_cannot_name_examples_is_reported(names, words):
    clf = GPClassifier()
    with pytest.raises(KnowmoreError) as caught:
        clf.fit(frame(names), Y)
    assert words in str(caught.value)
    assert not clf.__sklearn_is_fitted__()
    assert GPClassifier().fit(frame(names), Y, ids=range(N)).ids_.tolist() == list(range(N))


def test_an_index_in_another_order_or_of_others_is_reported():
    clf, order = GPClassifier(), np.arange(N)[::-1]
    table = frame()
    with pytest.raises(KnowmoreError) as caught:
        clf.fit(table, series(Y).iloc[order])
    assert str(caught.value) == (
        "X and y have the same index in different orders. To match their rows by name, give "
        "y.loc[X.index]; by position, y.to_numpy()."
    )
    clf.fit(table, Y)
    others = [f"other {i}" for i in range(N)]
    with pytest.raises(KnowmoreError, match=r"X and y have different indices: 'row .*y\.to_numpy"):
        clf.add(table, series(Y, others))
    with pytest.raises(KnowmoreError, match="X and sample_weight have the same index in diff"):
        clf.add(table, Y, sample_weight=series(np.ones(N)).iloc[order])
    with pytest.raises(KnowmoreError, match="The index of y has "):
        clf.relabel(NAMES[:2], series(Y)[1:3])
    with pytest.raises(KnowmoreError, match="The index of X has "):
        clf.replace(NAMES[0], table[1:2])
    assert clf.ids_.tolist() == NAMES
    # If one side has a default index, rows are matched by position, as in scikit-learn.
    assert GPClassifier().fit(table, pd.Series(Y)).ids_.tolist() == NAMES


def test_columns_of_one_table_are_matched_by_position():
    clf = GPClassifier().fit(frame(), Y)
    mends = pd.DataFrame({"name": [NAMES[5], NAMES[2]], "label": ["x", "y"]}, index=[70, 30])
    clf.relabel(mends["name"], mends["label"])
    clf.replace(mends["name"], frame([70, 30], X[:2]), mends["label"])
    held = clf.model_.examples
    rows = held.rows((NAMES[5], NAMES[2]))
    assert held.labels[rows].tolist() == ["x", "y"]
    np.testing.assert_array_equal(held.X[rows], X[:2])
    assert clf.add(frame([1, 5], X[:2]), Y[:2], ids=pd.Series(["p", "q"], [1, 5])).tolist() == [
        "p",
        "q",
    ]
    with pytest.raises(KnowmoreError, match="X and ids have the same index in different orders"):
        clf.add(frame([1, 5], X[:2]), Y[:2], ids=pd.Series(["r", "s"], [5, 1]))


def test_a_table_is_no_list_of_ids():
    clf = GPClassifier().fit(frame(), Y)
    for table in (frame()[:3], X[:3], pl.DataFrame(X[:3])):
        with pytest.raises(KnowmoreError) as caught:
            clf.remove(table)
        assert str(caught.value) == (
            "The ids are a table of shape (3, 2). Give its index or one column."
        )


def test_discriminants_are_not_learnt_from_labels_in_another_order():
    order = np.arange(N)[::-1]
    lda = EigenspaceLDA().fit(frame(), series(Y))
    for verb in (lda.fit, lda.partial_fit, lda.forget):
        with pytest.raises(KnowmoreError, match="X and y have the same index in different orders"):
            verb(frame(), series(Y).iloc[order])


def test_polars_has_no_index_so_that_rows_are_numbered_or_named():
    table = pl.DataFrame(dict(zip(COLUMNS, X.T, strict=True)))
    names = pl.Series("name", NAMES)
    clf = GPClassifier().fit(table[:20], pl.Series(Y[:20].tolist()))
    assert clf.ids_.tolist() == list(range(20))
    assert clf.add(table[20:], pl.Series(Y[20:].tolist()), ids=names[20:]).tolist() == NAMES[20:]
    clf.remove(names[20:22]).relabel(names[22:], pl.Series(["a", "b"]))
    clf.replace(names[22:], table[:2])
    assert clf.ids_.tolist() == [*range(20), *NAMES[22:]]
    clf.remove(pl.Series([*[False] * 20, True, False]))
    assert clf.ids_.tolist() == [*range(20), NAMES[23]]
    with pytest.raises(KnowmoreError) as caught:
        clf.relabel(pl.Series(["a", "b"]))
    assert str(caught.value) == (
        "Give ids and labels, or a pandas Series of labels with ids as index."
    )


def test_scikit_learn_s_tools_take_tables_with_any_index():
    for names in (NAMES, pd.date_range("2026-01-01", periods=N), range(100, 100 + N)):
        table, y = frame(names), series(Y, names)
        train, test, y_train, y_test = train_test_split(table, y, random_state=0)
        pipeline = make_pipeline(StandardScaler(), GPClassifier())
        pipeline.fit(train, y_train).score(test, y_test)
        cross_val_score(GPClassifier(), table, y, cv=3, error_score="raise")
        GridSearchCV(pipeline, {"gpclassifier__noise": [0.1, 1.0]}, cv=2, error_score="raise").fit(
            table, y
        )
        learning_curve(
            GPClassifier(), table, y, cv=2, exploit_incremental_learning=True, error_score="raise"
        )


# -- masks, no ids, one label ----------------------------------------------------------------------


@living
def test_a_mask_names_examples_in_the_order_of_ids(name):
    make, y = LIVING[name]
    for mask in (np.arange(N) % 5 == 0, (np.arange(N) % 5 == 0).tolist()):
        model = make().fit(frame(), y).remove(mask)
        assert model.ids_.tolist() == np.array(NAMES)[np.arange(N) % 5 != 0].tolist()


def test_a_pandas_mask_is_matched_by_its_index():
    table = frame()
    clf = GPClassifier().fit(table, Y)
    clf.replace(NAMES[0], table[:1])
    wide = (table["width"] > 0).astype("boolean")
    clf.relabel(wide, "wide").remove(wide[::-1])
    assert set(clf.ids_) == set(table.index[~wide])
    with pytest.raises(KeyError, match="holds no example"):
        clf.remove(wide)


def test_a_mask_that_may_mean_two_things_is_reported():
    clf = GPClassifier().fit(pd.DataFrame(X), Y)
    mask = pd.Series(np.arange(N) < 3)
    assert clf.remove(mask).ids_.tolist() == list(range(3, N))
    with pytest.raises(KnowmoreError) as caught:
        clf.remove(mask[: N - 3])
    assert str(caught.value) == (
        "The index 0, 1, ... of the mask may mean ids or positions in ids_, which differ here. "
        "Give the mask with the ids as its index, or as an array in the order of ids_."
    )
    assert clf.remove(mask.to_numpy()[: N - 3]).ids_.tolist() == list(range(6, N))
    named = GPClassifier().fit(frame(), Y).remove(mask)
    assert named.ids_.tolist() == NAMES[3:]


@living
def test_no_ids_change_nothing(name):
    make, y = LIVING[name]
    model = make().fit(X, y)
    frozen = model.model_
    for nothing in ([], (), np.array([]), pd.Index([]), np.zeros(N, dtype=bool)):
        assert model.remove(nothing) is model
    assert model.relabel([], []).relabel([], y[0]) is model
    assert model.model_ is frozen
    with pytest.raises(KnowmoreError, match=r"y has shape \(2,\), but there are 0 examples"):
        model.relabel([], y[:2])


@living
def test_one_label_applies_to_all(name):
    make, y = LIVING[name]
    one, other = make().fit(X, y), make().fit(X, y)
    last = y[-1]
    one.relabel([0, 3, 5], last).replace([1, 2], X[:2], last)
    other.relabel([0, 3, 5], [last] * 3).replace([1, 2], X[:2], [last] * 2)
    np.testing.assert_array_equal(one.model_.examples.labels, other.model_.examples.labels)


def test_groups_with_an_index_are_matched_by_name():
    clf = GPClassifier(RBF(1.0)).fit(frame(), Y)
    clf.replace(NAMES[0], frame()[:1])
    groups = series(np.arange(N) % 4)
    want = clf.leave_one_out(groups[clf.ids_].to_numpy())
    np.testing.assert_array_equal(clf.leave_one_out(groups).scores, want.scores)
    with pytest.raises(KnowmoreError, match="The index of groups lacks 'row"):
        clf.leave_one_out(groups[1:])


# -- ids -------------------------------------------------------------------------------------------


def test_a_set_has_no_order_to_name_examples_by():
    clf = GPClassifier().fit(X, Y, ids=dict.fromkeys(NAMES))
    for act in (
        lambda: clf.add(X[:2], Y[:2], ids={"x", "y"}),
        lambda: clf.relabel(frozenset(NAMES[:2]), Y[:2]),
        lambda: clf.replace(set(NAMES[:2]), X[:2]),
    ):
        with pytest.raises(KnowmoreError, match=r"set, whose order means nothing. Give a list\."):
            act()
    # What is to be removed needs none.
    assert clf.remove(set(NAMES[:2])).ids_.tolist() == NAMES[2:]


def test_ids_of_any_size_can_be_given_back():
    for ids in ([-1, 2**63], [0, 2**63], [2**70, 1], [-(2**63), 2**63 - 1]):
        clf = GPClassifier().fit(X[:2], Y[:2], ids=ids)
        assert clf.ids_.tolist() == ids
        assert len(clf.remove(clf.ids_).ids_) == 0


def test_a_repeated_id_among_many_is_found_in_one_pass():
    # Looking back from each would take minutes here.
    with pytest.raises(KnowmoreError, match="The id '199999' is given twice"):
        GPClassifier().fit(X, Y).remove([*map(str, range(200_000)), "199999"])
