"""Forests of shards: leaves, members and answers equal a fit in one process."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import made_up
import numpy as np
import pandas as pd
import polars as pl
import pytest
from dask import delayed
from distributed import Client
from same_forest import assert_same_forest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from knowmore import ForestGPClassifier, ForestGPRegressor, KnowmoreError
from knowmore.distributed import fit
from knowmore.models.trees import Leaf

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3)) * [1, 50, 0.7]
# A class of the last shard alone, with a longer name.
Y = np.array(["a", "b", "c"], "<U4")[np.arange(N) % 3]
Y[-5:] = "late"
Z = X @ [[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]] + RNG.normal(size=(N, 2))
W = RNG.integers(0, 3, N) / 2
IDS = np.array([f"row {k}" for k in RNG.permutation(N)])
FRAME = pd.DataFrame(X, columns=[*"pqr"]).assign(label=Y, weight=W, name=IDS)
FOREST = ForestGPClassifier(capacity=8, n_trees=2, seed=3)
WHOLE = ForestGPClassifier(capacity=8, n_trees=2, seed=3).fit(X, Y)
ALL = ForestGPClassifier(capacity=8, n_trees=2, seed=3).fit(X, Y, IDS, W)


def split(values, n=5):
    return np.array_split(values, n)


def shards(*columns, n=5):
    return list(zip(*(split(column, n) for column in columns), strict=True))


def tables(folder, frame):
    for k, rows in enumerate(split(np.arange(N))):
        frame.iloc[rows].to_parquet(folder / f"{k}.parquet")
    return folder


def archives(folder):
    for k, (rows, labels, weights, ids) in enumerate(shards(X, Y, W, IDS)):
        np.savez(folder / f"{k}.npz", X=rows, y=labels, w=weights, i=ids)
    return folder


PLAIN = FRAME[[*"pqr", "label"]]
SHARDS = {
    "Dask arrays": lambda at: (da.from_array(X, chunks=(70, 2)), da.from_array(Y, chunks=70)),
    "a Dask data frame": lambda at: (dd.from_pandas(PLAIN, npartitions=4), "label"),
    "arrays": lambda at: (split(X), split(Y)),
    "one array": lambda at: ([X], [Y]),
    "as many shards as rows": lambda at: (split(X, N), split(Y, N)),
    "pairs": lambda at: (shards(X, Y), None),
    "delayed pairs": lambda at: ([delayed(pair) for pair in shards(X, Y)], None),
    "Polars tables": lambda at: ([pl.from_pandas(PLAIN[:70]), pl.from_pandas(PLAIN[70:])], "label"),
    "tables that number their own rows": lambda at: (
        [PLAIN[:90], PLAIN[90:].reset_index(drop=True)],
        "label",
    ),
    "tables that number all rows": lambda at: ([PLAIN[:90], PLAIN[90:]], "label"),
    "sparse": lambda at: ([sparse.csr_array(part) for part in split(X)], split(Y)),
    "a pattern": lambda at: (f"{tables(at, PLAIN)}/*.parquet", "label"),
    "archives": lambda at: (archives(at), None),
    "shards without rows": lambda at: (
        [X[:0], X[:10], X[:0], X[10:]],
        [Y[:0], Y[:10], Y[:0], Y[10:]],
    ),
}


@pytest.mark.slow(
    fast=[
        "Dask arrays",
        "a Dask data frame",
        "arrays",
        "one array",
        "delayed pairs",
        "Polars tables",
        "tables that number their own rows",
        "tables that number all rows",
        "sparse",
        "a pattern",
        "archives",
        "shards without rows",
    ]
)
@pytest.mark.parametrize("name", SHARDS)
def test_shards_of_any_kind(name, tmp_path):
    rows, labels = SHARDS[name](tmp_path)
    whole = fit(FOREST, rows, labels)
    assert_same_forest(WHOLE, whole, X)
    assert whole.get_params() == FOREST.get_params()
    assert not hasattr(FOREST, "_living")
    assert whole.classes_.tolist() == ["a", "b", "c", "late"]
    if name == "a pattern":
        assert whole.feature_names_in_.tolist() == [*"pqr"]


WEIGHED = {
    "columns": lambda at: fit(
        FOREST, dd.from_pandas(FRAME, 4), "label", sample_weight="weight", ids="name"
    ),
    "columns of files": lambda at: fit(
        FOREST, tables(at, FRAME), "label", sample_weight="weight", ids="name"
    ),
    "an index": lambda at: fit(
        FOREST, tables(at, FRAME.set_index("name")), "label", sample_weight="weight"
    ),
    "arrays of files": lambda at: fit(FOREST, archives(at), sample_weight="w", ids="i"),
    "Dask arrays": lambda at: fit(
        FOREST,
        *(da.from_array(column, chunks=(40, *column.shape[1:])) for column in (X, Y)),
        sample_weight=da.from_array(W, chunks=40),
        ids=[*split(IDS[:280], 7), IDS[280:]],
    ),
    "tuples": lambda at: fit(FOREST, shards(X, Y, W, IDS)),
    "tuples, and ids beside them": lambda at: fit(FOREST, shards(X, Y, W), ids=split(IDS)),
    "tuples, and a column": lambda at: fit(
        FOREST,
        [
            (part[[*"pqr", "name"]], part["label"], part["weight"])
            for part in (FRAME[:9], FRAME[9:])
        ],
        ids="name",
    ),
}


@pytest.mark.parametrize("name", WEIGHED)
def test_weights_and_ids(name, tmp_path):
    assert_same_forest(ALL, WEIGHED[name](tmp_path), X)


def test_a_shard_whose_weights_are_all_zero():
    weights = np.repeat([0.0, 1.0], [90, N - 90])
    whole = fit(FOREST, shards(X, Y, weights))
    assert_same_forest(
        ForestGPClassifier(capacity=8, n_trees=2, seed=3).fit(X, Y, None, weights), whole, X
    )


def test_an_index_of_numbers_in_another_order():
    """As of a fit of the tables one below the other."""
    parts = [PLAIN[200:], PLAIN[:200]]
    below = pd.concat(parts)
    alone = ForestGPClassifier(capacity=8).fit(below[[*"pqr"]], below["label"])
    whole = fit(ForestGPClassifier(capacity=8), parts, "label")
    assert_same_forest(alone, whole, below[[*"pqr"]])
    assert whole.ids_[:2].tolist() == [200, 201]


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("kernel", [None, RBF(50.0)])
def test_regression(flat, kernel):
    targets = Z[:, 0] if flat else Z
    reg = ForestGPRegressor(kernel, capacity=8, n_trees=3)
    whole = fit(reg, split(X), split(targets))
    assert_same_forest(ForestGPRegressor(kernel, capacity=8, n_trees=3).fit(X, targets), whole, X)
    assert whole.predict(X).shape == targets.shape


@pytest.mark.parametrize(
    "rows",
    [X[:20], np.zeros((90, 2)), np.repeat(X[:3], 40, axis=0), np.eye(60), X[:, :1]],
    ids=["few", "all the same", "three places", "indicators", "one feature"],
)
@pytest.mark.parametrize("capacity", [2, 8, 1000])
def test_any_rows(rows, capacity):
    labels = np.arange(len(rows)) % 2
    alone = ForestGPClassifier(capacity=capacity).fit(rows, labels)
    whole = fit(ForestGPClassifier(capacity=capacity), shards(rows, labels, n=3))
    assert_same_forest(alone, whole, rows)


def test_little_noise_and_a_kernel_of_ones_own():
    def kernel(A, B):
        return np.exp(-abs(A[:, None, 0] - B[None, :, 0]))

    alone = ForestGPClassifier(kernel, 1e-9, capacity=8).fit(X, Y)
    assert_same_forest(alone, fit(ForestGPClassifier(kernel, 1e-9, capacity=8), shards(X, Y)), X)


def test_leaves_come_factorised():
    leaves = [leaf for tree in fit(FOREST, shards(X, Y)).model_.trees for leaf in tree.leaves()]
    assert all(len(leaf.model.examples) == len(leaf.members) for leaf in leaves)


def test_a_shard_is_taken_out_and_put_back():
    whole = fit(FOREST, shards(X, Y))
    whole.remove(range(60, 120))
    rest = np.delete(np.arange(N), np.s_[60:120])
    never = ForestGPClassifier(WHOLE.kernel_, capacity=8, n_trees=2, seed=3)
    never.fit(X[rest], Y[rest], rest)
    assert np.allclose(whole.decision_function(X), never.decision_function(X))
    assert whole.add(X[60:120], Y[60:120], ids=range(60, 120)).tolist() == [*range(60, 120)]
    assert np.allclose(whole.decision_function(X), WHOLE.decision_function(X))
    assert whole.add(X[:1], ["a"]).tolist() == [N]
    assert isinstance(whole.model_.trees[0].first, Leaf)


def test_shards_are_read_once():
    passes = []

    def load(k):
        passes.append(k)
        return shards(X, Y)[k]

    fit(FOREST, [delayed(load)(k) for k in range(5)])
    assert sorted(passes) == [0, 1, 2, 3, 4]


def test_progress(capsys):
    fit(FOREST, shards(X, Y), progress=True)
    assert "100% Completed" in capsys.readouterr().out


def test_futures():
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as one:
        assert_same_forest(ALL, fit(FOREST, one.scatter(shards(X, Y, W, IDS))), X)


BAD = X.copy()
BAD[140, 2] = np.nan
MISTAKES = {
    "NaN": (
        lambda: fit(FOREST, shards(BAD, Y)),
        "Shard 2: Input X contains NaN or infinity: 1 value(s), the first at row 20, column 2 "
        "(nan). Remove these examples or fill in the values.",
    ),
    "other widths": (
        lambda: fit(FOREST, [(X, Y), (X[:0], Y[:0]), (X[:, :2], Y)]),
        "Shard 0 and Shard 2 do not go together: The two models differ in their features: 3 here, "
        "2 there. Models merge only if these are the same, in the same order.",
    ),
    "labels of mixed kinds": (
        lambda: fit(FOREST, [(X, Y), (X, np.arange(N) % 3)]),
        "Shard 0 and Shard 1 do not go together: The new labels are of type int, but those held "
        "are of type str, such as 'a'. Convert them first.",
    ),
    "other targets": (
        lambda: fit(ForestGPRegressor(), [(X, Z), (X, Z[:, 0])]),
        "Shard 0 and Shard 1 do not go together: y has shape (1,), but the targets held have (1, "
        "2). Give each example the same number of values.",
    ),
    "no rows": (
        lambda: fit(FOREST, [(X[:0], Y[:0])]),
        "None of the 1 shards has a row. A model needs at least one.",
    ),
    "no targets": (
        lambda: fit(FOREST, [X]),
        "Shard 0: These rows have no targets. Name the column that has them, or give y beside X.",
    ),
    "weights of zero": (
        lambda: fit(FOREST, shards(X, Y, 0 * W)),
        "All weights are zero. Give some example a weight above zero.",
    ),
    "a negative weight": (
        lambda: fit(FOREST, shards(X, Y, np.where(np.arange(N) == 70, -0.5, W))),
        "Shard 1: sample_weight[10]=-0.5 is below zero. Give weights from 0 on.",
    ),
    "no such column": (
        lambda: fit(FOREST, [FRAME], "label", sample_weight="w"),
        "Shard 0: sample_weight='w' names no column of these rows: 'p', 'q', 'r', 'label', "
        "'weight' and 1 more, the last 'name'. Name the column that has the weights, or give "
        "sample_weight in shards like X.",
    ),
    "ids of other rows": (
        lambda: fit(FOREST, split(X), split(Y), ids=split(IDS[:-1])),
        "Shard 4: X has shape (60, 3), but ids has (59,). Cut both into shards of the same "
        "rows; for Dask arrays: ids.rechunk({0: X.chunks[0]}).",
    ),
    "repeated ids": (
        lambda: fit(FOREST, split(X), split(Y), ids=split(np.arange(N) % 290)),
        "More than one row of the shards has the id 0, 1, 2, 3, 4 and 5 more. Give each its own: "
        "ids=..., or an index; reset_index(drop=True) in each shard numbers all rows instead.",
    ),
    "a capacity of one": (
        lambda: fit(ForestGPClassifier(capacity=1), shards(X, Y)),
        "capacity=1. Give a whole number of at least 2.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_with_words(name):
    act, words = MISTAKES[name]
    with pytest.raises(KnowmoreError) as caught:
        act()
    assert str(caught.value) == words


def test_ids_that_were_made_up_give_the_same_deep_forest():
    ids = made_up.chain(72) + [made_up.with_key(2**bit) for bit in range(64)]
    features, labels = np.arange(len(ids))[:, None] * 1.0, np.resize([*"ab"], len(ids))
    weights = np.where(np.arange(len(ids)) % 7, 1.0, 0.0)
    weights[: 72 * 16] = 1.0
    estimator = ForestGPClassifier(RBF(1.0), capacity=3)
    whole = ForestGPClassifier(RBF(1.0), capacity=3).fit(features, labels, ids, weights)
    parts = shards(features, labels, weights, np.array(ids, dtype=object), n=3)
    parts = [(*part, own.tolist()) for *part, own in parts]
    assert_same_forest(fit(estimator, parts), whole, features[::50])
