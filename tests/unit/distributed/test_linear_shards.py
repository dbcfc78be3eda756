"""Linear Gaussian processes of shards: the digest equals a fit in one process."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from dask import delayed
from dask.base import get_scheduler
from distributed import Client
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from knowmore import (
    EigenspacePCA,
    ForestGPClassifier,
    Grid,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
)
from knowmore.distributed import fit, save_sums
from knowmore.linalg.tasks import one_thread

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)) * [1, 100, 0.01, 0]
# The largest values come late, so that no shard alone has the grid of all.
X[-1] *= 50
Y = np.array(["a", "b", "c"])[np.arange(90) % 3]
Z = X @ [[1.0, 2.0], [0.0, 1.0], [3.0, 0.0], [1.0, 1.0]] + RNG.normal(size=(90, 2))
FRAME = pd.DataFrame(X, columns=[*"pqrs"]).assign(label=Y)
WHOLE = LinearGPClassifier().fit(X, Y)


def split(values, n=5):
    return np.array_split(values, n)


def pairs(rows, targets, n=5):
    return list(zip(split(rows, n), split(targets, n), strict=True))


def tables(folder):
    for k in range(5):
        FRAME[18 * k : 18 * (k + 1)].to_parquet(folder / f"{k}.parquet")
    return folder


def archives(folder):
    for k, (rows, labels) in enumerate(pairs(X, Y)):
        np.savez(folder / f"{k}.npz", X=rows, y=labels)
    return folder


def arrays(folder, name, values):
    paths = [folder / f"{name}{k}.npy" for k in range(5)]
    for path, part in zip(paths, split(values), strict=True):
        np.save(path, part)
    return paths


SHARDS = {
    "Dask arrays": lambda at: (da.from_array(X, chunks=(7, 3)), da.from_array(Y, chunks=7)),
    "a Dask data frame": lambda at: (dd.from_pandas(FRAME, npartitions=4), "label"),
    "two Dask data frames": lambda at: (
        dd.from_pandas(FRAME[[*"pqrs"]], npartitions=4),
        dd.from_pandas(FRAME["label"], npartitions=4),
    ),
    "arrays": lambda at: (split(X), split(Y)),
    "pairs": lambda at: (pairs(X, Y), None),
    "delayed pairs": lambda at: ([delayed(pair) for pair in pairs(X, Y)], None),
    "Polars tables": lambda at: ([pl.from_pandas(FRAME[:30]), pl.from_pandas(FRAME[30:])], "label"),
    "sparse": lambda at: ([sparse.csr_array(part) for part in split(X)], split(Y)),
    "a folder of tables": lambda at: (tables(at), "label"),
    "a list of folders": lambda at: ([str(tables(at))], "label"),
    "a pattern": lambda at: (f"{tables(at)}/*.parquet", "label"),
    "archives": lambda at: (archives(at), None),
    "archives by the name of the labels": lambda at: (archives(at), "y"),
    "files of arrays": lambda at: (arrays(at, "X", X), arrays(at, "y", Y)),
    "shards without rows": lambda at: ([X[:0], X, X[:0]], [Y[:0], Y, Y[:0]]),
}


@pytest.mark.parametrize("name", SHARDS)
def test_shards_of_any_kind(name, tmp_path):
    rows, labels = SHARDS[name](tmp_path)
    clf = LinearGPClassifier(noise=0.5)
    whole = fit(clf, rows, labels)
    assert whole.digest() == WHOLE.digest()
    assert whole.get_params() == clf.get_params()
    assert not hasattr(clf, "model_")
    assert whole.grid_ == WHOLE.grid_
    assert whole.classes_.tolist() == ["a", "b", "c"]
    if name == "a folder of tables":
        assert whole.feature_names_in_.tolist() == [*"pqrs"]


@pytest.mark.parametrize("resolution", [None, 8, "exact", Grid.covering(2 * X)])
@pytest.mark.parametrize("flat", [True, False])
def test_regression(resolution, flat):
    targets = Z[:, 0] if flat else Z
    reg = LinearGPRegressor(0.2, resolution=resolution)
    whole = fit(reg, split(X), split(targets))
    alone = LinearGPRegressor(0.2, resolution=resolution).fit(X, targets)
    assert whole.digest() == alone.digest()
    assert (whole.predict(X) == alone.predict(X)).all()
    assert whole.predict(X).shape == targets.shape


WEIGHTS = RNG.integers(0, 4, 90) / 4
# All rows of the first shard have weight zero.
WEIGHTS[:18] = 0
WEIGHED = {
    "a column": lambda at, clf: fit(
        clf, dd.from_pandas(FRAME.assign(w=WEIGHTS), 5), "label", sample_weight="w"
    ),
    "Dask arrays": lambda at, clf: fit(
        clf,
        da.from_array(X, chunks=(18, 4)),
        da.from_array(Y, chunks=18),
        sample_weight=da.from_array(WEIGHTS, chunks=18),
    ),
    "tuples": lambda at, clf: fit(
        clf, [(*pair, w) for pair, w in zip(pairs(X, Y), split(WEIGHTS), strict=True)]
    ),
    "pairs": lambda at, clf: fit(clf, pairs(X, Y), sample_weight=split(WEIGHTS)),
    "an archive": lambda at, clf: fit(clf, weighted_archives(at), sample_weight="w"),
}


def weighted_archives(folder):
    for k, (rows, labels) in enumerate(pairs(X, Y)):
        np.savez(folder / f"{k}.npz", X=rows, y=labels, w=split(WEIGHTS)[k])
    return folder


@pytest.mark.parametrize("grid", [None, Grid.covering(2 * X)])
@pytest.mark.parametrize("name", WEIGHED)
def test_weights(name, grid, tmp_path):
    clf = LinearGPClassifier(resolution=grid)
    alone = LinearGPClassifier(resolution=grid).fit(X, Y, WEIGHTS)
    assert WEIGHED[name](tmp_path, clf).digest() == alone.digest()


def test_weights_of_regression():
    alone = LinearGPRegressor().fit(X, Z, WEIGHTS)
    whole = fit(LinearGPRegressor(), pairs(X, Z), sample_weight=split(WEIGHTS))
    assert whole.digest() == alone.digest()
    assert whole.forget(X[18:36], Z[18:36], WEIGHTS[18:36]).n_samples_ < alone.n_samples_


def test_load_gets_a_path_and_returns_a_pair(tmp_path):
    asked = set()

    def load(path):
        asked.add(path)
        rows = slice(*map(int, path.read_text().split()))
        return X[rows], Y[rows]

    for name, rows in {"0.rows": "0 40", "1.rows": "40 90"}.items():
        (tmp_path / name).write_text(rows)
    whole = fit(LinearGPClassifier(), f"{tmp_path}/*.rows", load=load)
    assert whole.digest() == WHOLE.digest()
    assert asked == {tmp_path / "0.rows", tmp_path / "1.rows"}


def test_archives_beside_tables_need_a_load_that_returns_arrays(tmp_path):
    def load(path):
        if path.suffix == ".parquet":
            table = pd.read_parquet(path)
            return table[[*"pqrs"]].to_numpy(), table["label"]
        with np.load(path) as file:
            return file["X"], file["label"]

    FRAME[:40].to_parquet(tmp_path / "0.parquet")
    np.savez(tmp_path / "1.npz", X=X[40:], label=Y[40:])
    assert fit(LinearGPClassifier(), tmp_path, load=load).digest() == WHOLE.digest()
    with pytest.raises(KnowmoreError, match=r"0.parquet' and .*1.npz' do not go together: "):
        fit(LinearGPClassifier(), tmp_path, "label")


def test_a_grid_that_is_given_needs_one_pass():
    passes, grid = [], Grid.covering(2 * X)
    clf = LinearGPClassifier(resolution=grid)
    shards = [(X[:40], Y[:40]), (X[40:], Y[40:])]
    asked = [delayed(lambda k: passes.append(k) or shards[k])(k) for k in range(2)]
    assert fit(clf, asked).digest() == LinearGPClassifier(resolution=grid).fit(X, Y).digest()
    assert sorted(passes) == [0, 1]
    fit(LinearGPClassifier(), asked)
    assert sorted(passes) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("flat", [True, False])
def test_a_regressor_reads_once_on_both_its_grids(flat):
    targets = Z[:, 0] if flat else Z
    grids = {
        "resolution": Grid.covering(2 * X),
        "y_resolution": Grid.covering(2 * targets.reshape(90, -1)),
    }
    shards, passes = [*zip(split(X), split(targets), strict=True)], []
    asked = [delayed(lambda k: passes.append(k) or shards[k])(k) for k in range(len(shards))]
    whole = fit(LinearGPRegressor(**grids), asked)
    assert sorted(passes) == [*range(len(shards))]
    alone = LinearGPRegressor(**grids).fit(X, targets)
    assert whole.digest() == alone.digest()
    assert (whole.predict(X) == alone.predict(X)).all()


@pytest.mark.parametrize("split_every", [2, 3, 7])
def test_any_tree_and_order(split_every):
    order = RNG.permutation(90)
    whole = fit(LinearGPClassifier(), pairs(X[order], Y[order], 11), split_every=split_every)
    assert whole.digest() == WHOLE.digest()


def test_a_late_class_in_one_shard():
    labels = Y.astype("<U4")
    labels[-3:] = "late"
    whole = fit(LinearGPClassifier(), pairs(X, labels))
    assert whole.classes_.tolist() == ["a", "b", "c", "late"]
    assert whole.digest() == LinearGPClassifier().fit(X, labels).digest()


def test_a_shard_is_forgotten():
    whole = fit(LinearGPClassifier(), pairs(X, Y))
    kept = LinearGPClassifier(resolution=whole.grid_).fit(X[18:], Y[18:])
    assert whole.forget(X[:18], Y[:18]).digest() == kept.digest()
    one = LinearGPClassifier(resolution=whole.grid_).fit(X[18:36], Y[18:36])
    assert whole.split(one).n_samples_ == 54


BAD = X.copy()
BAD[40, 2] = np.nan
MISTAKES = {
    "NaN": (
        lambda at: fit(LinearGPClassifier(), pairs(BAD, Y)),
        "Shard 2: Input X contains NaN or infinity: row 4, column 2 (nan). Remove these rows, or "
        "fill in the values.",
    ),
    "NaN with a grid": (
        lambda at: fit(LinearGPClassifier(resolution=WHOLE.grid_), pairs(BAD, Y)),
        "Shard 2: Input X contains NaN or infinity: row 4, column 2 (nan). Remove these rows, or "
        "fill in the values.",
    ),
    "NaN in targets": (
        lambda at: fit(LinearGPRegressor(), pairs(X, BAD[:, 2])),
        "Shard 2: Input y contains NaN or infinity: 1 value(s), the first at row 4 (nan). Remove "
        "these examples or fill in the values.",
    ),
    "other widths": (
        lambda at: fit(LinearGPClassifier(), [(X, Y), (X[:0], Y[:0]), (X[:, :3], Y)]),
        "Shard 0 and Shard 2 do not go together: The two models differ in their features: 4 here, "
        "3 there. Models merge only if these are the same, in the same order.",
    ),
    "labels of mixed kinds": (
        lambda at: fit(LinearGPClassifier(), [(X, Y), (X, np.arange(90) % 3)]),
        "Shard 0 and Shard 1 do not go together: Unknown label type: int, str. Use only str, only "
        "int or only bool.",
    ),
    "labels of mixed kinds on a grid": (
        lambda at: fit(
            LinearGPClassifier(resolution=WHOLE.grid_), [(X, Y), (X, np.arange(90) % 3)]
        ),
        "Shard 0 and Shard 1 do not go together: The new labels are of type int, but those held "
        "are of type str, such as 'a'. Convert them first.",
    ),
    "other targets": (
        lambda at: fit(LinearGPRegressor(), [(X, Z), (X, Z[:, 0])]),
        "Shard 0 and Shard 1 do not go together: The targets of a row have shape (2,) here, () "
        "there. Give each row the same number of targets.",
    ),
    "no rows": (
        lambda at: fit(LinearGPClassifier(), [(X[:0], Y[:0])]),
        "None of the 1 shards has a row. A model needs at least one.",
    ),
    "no targets": (
        lambda at: fit(LinearGPClassifier(), [X]),
        "Shard 0: These rows have no targets. Name the column that has them, or give y beside X.",
    ),
    "no such column": (
        lambda at: fit(LinearGPClassifier(), [FRAME], "class"),
        "Shard 0: y='class' names no column of these rows: 'p', 'q', 'r', 's', 'label'. Name the "
        "column that has the targets, or give y in shards like X.",
    ),
    "no such column of many": (
        lambda at: fit(LinearGPClassifier(), [pd.DataFrame(np.eye(100)).add_prefix("f")], "class"),
        "Shard 0: y='class' names no column of these rows: 'f0', 'f1', 'f2', 'f3', 'f4' and 95 "
        "more, the last 'f99'. Name the column that has the targets, or give y in shards like X.",
    ),
    "a column by nearly its name": (
        lambda at: fit(LinearGPClassifier(), [FRAME], "Lable"),
        "Shard 0: y='Lable' names no column of these rows: 'p', 'q', 'r', 's', 'label'. Is it "
        "'label'? Name the column that has the targets, or give y in shards like X.",
    ),
    "a column of an array": (
        lambda at: fit(LinearGPClassifier(), [X], "class"),
        "Shard 0: y='class' names no column of these rows: an array has none. Name the column that "
        "has the targets, or give y in shards like X.",
    ),
    "an archive without X": (
        lambda at: (np.savez(at / "0.npz", a=X, y=Y), fit(LinearGPClassifier(), at)),
        "The file '{at}/0.npz' holds the arrays ['a', 'y'], but not ['X']: "
        "rows are read from 'X' and their targets from 'y'. Write it so: np.savez(path, X=..., "
        "y=...), or read it another way: fit and eigenspace take load=...",
    ),
    "no table": (
        lambda at: ((at / "0.parquet").write_text("no"), fit(LinearGPClassifier(), at, "label")),
        "The file '{at}/0.parquet' cannot be read as a Parquet table: it is damaged, or no such "
        "table. Write it again, or read it another way: fit and eigenspace take load=...",
    ),
    "an archive without weights": (
        lambda at: fit(LinearGPClassifier(), archives(at) / "0.npz", sample_weight="w"),
        "The file '{at}/0.npz' holds the arrays ['X', 'y'], but not ['w']: "
        "rows are read from 'X' and their targets from 'y', the weights from 'w'. Write it so: "
        "np.savez(path, X=..., y=..., w=...), or read it another way: fit and eigenspace take "
        "load=...",
    ),
    "weights in other shards": (
        lambda at: fit(LinearGPClassifier(), pairs(X, Y), sample_weight=split(WEIGHTS, 4)),
        "X has 5 shards, but sample_weight has 4. Cut both into shards of the same "
        "rows; for Dask arrays: sample_weight.rechunk({{0: X.chunks[0]}}).",
    ),
    "weights of zero": (
        lambda at: fit(LinearGPClassifier(), pairs(X, Y), sample_weight=split(0 * WEIGHTS)),
        "All weights are zero. Give some example a weight above zero.",
    ),
    "weights of zero on a grid": (
        lambda at: fit(
            LinearGPClassifier(resolution=WHOLE.grid_),
            pairs(X, Y),
            sample_weight=split(0 * WEIGHTS),
        ),
        "All weights are zero. Give some example a weight above zero.",
    ),
    "weights of sums": (
        lambda at: (
            save_sums(at / "0.kms", WHOLE),
            fit(LinearGPClassifier(), f"{at}/*.kms", sample_weight="w"),
        ),
        "sample_weight was given, but .kms files hold sums of rows, with their targets and "
        "weights. Leave it out, or give the files of the rows.",
    ),
    "targets of sums": (
        lambda at: (
            save_sums(at / "0.kms", WHOLE),
            fit(LinearGPClassifier(), f"{at}/*.kms", "label"),
        ),
        "y was given, but .kms files hold sums of rows, with their targets and weights. Leave it "
        "out, or give the files of the rows.",
    ),
    "a forest of sums": (
        lambda at: (
            save_sums(at / "0.kms", WHOLE),
            fit(ForestGPClassifier(), f"{at}/*.kms"),
        ),
        "'{at}/0.kms' holds sums of rows, which serve linear models; a ForestGPClassifier needs "
        "the rows. Give their files.",
    ),
    "sums twice": (
        lambda at: (
            save_sums(at / "0.kms", WHOLE),
            fit(LinearGPClassifier(), [at / "0.kms"] * 2),
        ),
        "The shard '{at}/0.kms' is given twice: its rows would be learnt twice. Give each file "
        "once.",
    ),
    "ids of a model without them": (
        lambda at: fit(LinearGPClassifier(), pairs(X, Y), ids="name"),
        "ids was given, but sums of shards keep no rows. Leave it out.",
    ),
    "weights of a model without them": (
        lambda at: fit(EigenspacePCA(), split(X), sample_weight=split(WEIGHTS)),
        "sample_weight was given, but EigenspacePCA.fit takes none. Leave it out.",
    ),
    "an empty folder": (
        lambda at: fit(LinearGPClassifier(), at),
        "There are no shards at '{at}': a file that ends in .npy, .npz, .parquet must be there, on "
        "this machine too. Check the path, or give a list of paths.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_with_words(name, tmp_path):
    act, words = MISTAKES[name]
    with pytest.raises(KnowmoreError) as caught:
        act(tmp_path)
    assert str(caught.value) == words.format(at=tmp_path)


def test_tables_with_columns_in_another_order_do_not_merge():
    with pytest.raises(KnowmoreError, match=r"Shard 0 and Shard 1 do not go together: .*order"):
        fit(LinearGPClassifier(), [FRAME, FRAME[[*"srqp", "label"]]], "label")


# -- where the work is done ----------------------------------------------------------------------


def blas_threads():
    """BLAS libraries of NumPy and SciPy only: other packages of the suite bring their own."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    ours = [
        pool for pool in pools if {"numpy.libs", "scipy.libs"} & {*Path(pool["filepath"]).parts}
    ]
    return [pool["num_threads"] for pool in ours]


def test_without_a_client_this_thread_does_the_work():
    seen = []

    def load():
        seen.append(get_scheduler())
        return X, Y

    fit(LinearGPClassifier(), [delayed(load)() for _ in range(3)])
    assert {*seen} == {dask.local.get_sync}
    seen.clear()
    with dask.config.set(scheduler="threads"):
        fit(LinearGPClassifier(), [delayed(load)()])
    assert dask.local.get_sync not in seen


def test_tasks_beside_each_other_have_one_blas_thread():
    """Also if they end in another order than they began; the setting is restored."""
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert {*blas_threads()} == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_futures():
    """In a cluster of threads: where the pairs are is left to Dask."""
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as one:
        futures = one.scatter(pairs(X, Y))
        before = blas_threads()
        assert fit(LinearGPClassifier(), futures).digest() == WHOLE.digest()
        futures = [one.submit(partial(lambda pair: pair, pair)) for pair in pairs(X, Y)]
        assert fit(LinearGPClassifier(), futures).digest() == WHOLE.digest()
        assert blas_threads() == before
