"""Files as shards, and errors for shards that cannot be learnt."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from damage import fewer_rows, mutants
from dask import delayed
from tolerance import assert_models

from knowmore import EigenspaceLDA, EigenspacePCA, GPClassifier, GPRegressor, KnowmoreError
from knowmore.distributed import eigenspace, fit, read

X = np.random.default_rng(0).normal(size=(40, 4))
Y = np.arange(40) % 3
PARTS = np.array_split(X, 5)
SPREAD = da.from_array(X, chunks=(10, 4))


@pytest.fixture
def files(tmp_path):
    """The parts of X in .npy and .npz files, alternating."""
    paths = []
    for k, part in enumerate(PARTS):
        paths.append(tmp_path / f"{k}.{'npz' if k % 2 else 'npy'}")
        np.savez(paths[-1], part) if k % 2 else np.save(paths[-1], part)
    return paths


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_files(files, kind):
    assert_models(eigenspace([kind(file) for file in files]), X, edits=6)


def test_folders_and_patterns(files, tmp_path):
    assert_models(eigenspace(tmp_path), X, edits=6)
    assert_models(eigenspace([tmp_path]), X, edits=6)
    assert_models(eigenspace(f"{tmp_path.parent}/**/{tmp_path.name}/*.np?"), X, edits=6)
    assert_models(fit(EigenspacePCA(), str(files[0])).eigenspace_, PARTS[0], edits=1)


def test_files_by_the_name_of_the_array(tmp_path):
    files = [tmp_path / f"{k}.npz" for k in range(5)]
    for file, rows, labels in zip(files, PARTS, np.array_split(Y, 5), strict=True):
        np.savez_compressed(file, X=rows, y=labels)
    assert_models(eigenspace(files, load=partial(read, name="X")), X, edits=6)
    rows, labels = ([delayed(read)(file, name) for file in files] for name in "Xy")
    assert_models(fit(EigenspaceLDA(), rows, labels).total_, X, edits=6)


@pytest.mark.parametrize("end", ["npy", "npz"])
def test_any_damage_of_a_file_raises(end, tmp_path):
    """By a `KnowmoreError`. What has a checksum is right if it is read."""
    path, want = tmp_path / f"one.{end}", PARTS[0]
    np.savez(path, want) if end == "npz" else np.save(path, want)
    whole = path.read_bytes()
    for data in mutants(whole, np.random.default_rng(0), 300):
        path.write_bytes(data)
        try:
            found = read(path)
        except KnowmoreError as error:
            assert str(path) in str(error)  # noqa: PT017  it is one of two outcomes
        else:
            assert end == "npy" or found.tobytes() == want.tobytes()
    path.write_bytes(fewer_rows(whole))
    with pytest.raises(KnowmoreError, match="cannot be read as an array: "):
        read(path)


def test_labels_in_files(files, tmp_path):
    labels = [tmp_path / f"y{k}.npy" for k in range(5)]
    for file, part in zip(labels, np.array_split(Y, 5), strict=True):
        np.save(file, np.array(["a", "b", "c"])[part])
    assert fit(EigenspaceLDA(), files, labels).classes_.tolist() == ["a", "b", "c"]


def test_blocks_of_a_dask_array_as_delayed_values():
    spread = da.from_array(X, chunks=(7, -1))
    assert_models(eigenspace(spread.to_delayed()), X, edits=30)
    columns = da.from_array(X, chunks=(7, 1)).to_delayed()
    with pytest.raises(KnowmoreError, match=r"^X has shards in \d+ columns, but each must hold"):
        eigenspace(columns)
    with pytest.raises(KnowmoreError, match=r"^X is a single dict. Give shards: "):
        eigenspace({"a": X})


def test_files_of_any_other_kind(tmp_path):
    files = [tmp_path / f"{k}.csv" for k in range(5)]
    for file, part in zip(files, PARTS, strict=True):
        np.savetxt(file, part, delimiter=",")
    load = partial(np.loadtxt, delimiter=",")
    assert_models(fit(EigenspacePCA(), files, load=load).eigenspace_, X, edits=6)


FRAME = pd.DataFrame(X, columns=[*"abcd"])


def test_the_partitions_of_a_dask_data_frame_are_shards():
    spread = dd.from_pandas(FRAME.assign(y=Y), npartitions=4)
    whole = eigenspace(spread[[*"abcd"]])
    assert_models(whole, X, edits=6)
    assert whole.names == (*"abcd",)
    lda = fit(EigenspaceLDA(), spread[[*"abcd"]], spread["y"])
    assert lda.feature_names_in_.tolist() == [*"abcd"]
    assert lda.classes_.tolist() == [0, 1, 2]
    assert_models(lda.total_, X, edits=6)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("learn", [eigenspace, partial(fit, EigenspacePCA())])
def test_columns_in_another_order_do_not_merge(kind, learn):
    shards = [kind(FRAME), kind(FRAME[[*"dcba"]])]
    with pytest.raises(
        KnowmoreError, match=r"Shard 0 and Shard 1 do not go together: .*same order"
    ):
        learn(shards)
    both = learn([kind(FRAME), kind(FRAME)])
    assert getattr(both, "eigenspace_", both).names == (*"abcd",)


@pytest.mark.parametrize("names", [[2021, 2022, 2023, 2024], range(4)], ids=["years", "counted"])
@pytest.mark.parametrize(
    "learn",
    [
        eigenspace,
        partial(fit, EigenspacePCA()),
        lambda shards: fit(EigenspaceLDA(), shards, [Y, Y]),
    ],
    ids=["eigenspace", "pca", "lda"],
)
def test_columns_that_are_no_strings_in_another_order_do_not_merge(names, learn):
    frame = pd.DataFrame(X, columns=names)
    with pytest.raises(KnowmoreError, match=r"Shard 0 and Shard 1 do not go together: .*order"):
        learn([frame, frame.iloc[:, ::-1]])
    learn([frame, frame])


@pytest.mark.parametrize("bad", [np.ma.masked_greater(X, 1), X + 1j], ids=["masked", "complex"])
def test_masked_and_complex_shards_are_refused(bad):
    with pytest.raises(KnowmoreError, match=r"^Shard 1: X has .*(masked value|type complex128)"):
        eigenspace([X, bad])
    with pytest.raises(KnowmoreError, match=r"^Shard 0: X has .*(masked value|type complex128)"):
        eigenspace(da.from_array(bad, chunks=(-1, -1), asarray=False))


MISTAKES = {
    "no shards": (
        lambda: eigenspace([]),
        ValueError,
        "X has no shards: a model needs rows. Was the list of files empty?",
    ),
    "no rows": (
        lambda: eigenspace([X[:0], X[:0]]),
        ValueError,
        "None of the 2 shards has a row. A model needs at least one.",
    ),
    "a Dask array without rows": (
        lambda: eigenspace(da.zeros((0, 4))),
        ValueError,
        "None of the 1 shards has a row. A model needs at least one.",
    ),
    "different columns": (
        lambda: eigenspace([X, X, X, X[:, :3]]),
        ValueError,
        "Shard 2 and Shard 3 do not go together: The model has 4 columns and the other 3. "
        "Both need the same columns in the same order.",
    ),
    "different columns of estimators": (
        lambda: fit(EigenspacePCA(), [X, X[:0], X[:, :3]]),
        ValueError,
        "Shard 0 and Shard 2 do not go together: The two models differ in their features: 4 here, "
        "3 there. Models merge only if these are the same, in the same order.",
    ),
    "different labels": (
        lambda: fit(EigenspaceLDA(), [X, X], [Y, Y.astype(str)]),
        ValueError,
        "Shard 0 and Shard 1 do not go together: The new labels are of type str, but those held "
        "are of type int, such as 0. Convert them first.",
    ),
    "a file twice": (
        lambda: eigenspace(["no/such.npy", "other.npy", "no/such.npy"]),
        ValueError,
        "The shard 'no/such.npy' is given twice: its rows would be learnt twice. Give each file "
        "once.",
    ),
    "a file by two names": (
        lambda: fit(EigenspacePCA(), ["a.npy", Path("no/../a.npy")]),
        ValueError,
        "The shard 'no/../a.npy' is given twice, also as 'a.npy': its rows would be learnt twice. "
        "Give each file once.",
    ),
    "a kernel model": (
        lambda: fit(GPClassifier(), [X, X], [Y, Y]),
        TypeError,
        "GPClassifier compares each example with those of all other shards, so it cannot be "
        "learnt in parts. Give a ForestGPClassifier or a LinearGPClassifier; or bring the rows to "
        "one place, and call its own fit.",
    ),
    "a kernel model of numbers": (
        lambda: fit(GPRegressor(), ["no/such.npy"], "y"),
        TypeError,
        "GPRegressor compares each example with those of all other shards, so it cannot be learnt "
        "in parts. Give a ForestGPRegressor or a LinearGPRegressor; or bring the rows to one "
        "place, and call its own fit.",
    ),
    "NaN": (
        lambda: fit(EigenspacePCA(), [X, np.full((1, 4), np.nan)]),
        ValueError,
        "Shard 1: Input X contains NaN or infinity: 4 value(s), the first at row 0, column 0 "
        "(nan). Remove these examples or fill in the values.",
    ),
    "NaN in an eigenspace": (
        lambda: eigenspace([X, np.full((1, 4), np.nan)]),
        ValueError,
        "Shard 1: X contains NaN or infinity, first at row 0, column 0 (nan). Remove these rows "
        "or fill in the values.",
    ),
    "more shards than labels have": (
        lambda: fit(EigenspaceLDA(), [X, X], [Y]),
        ValueError,
        "X has 2 shards, but y has 1. Cut both into shards of the same "
        "rows; for Dask arrays: y.rechunk({0: X.chunks[0]}).",
    ),
    "labels of another size": (
        lambda: fit(EigenspaceLDA(), [X, X[1:]], [Y, Y]),
        ValueError,
        "Shard 1: X has shape (39, 4), but y has (40,). Cut both into shards of the same "
        "rows; for Dask arrays: y.rechunk({0: X.chunks[0]}).",
    ),
    "labels in other chunks": (
        lambda: fit(EigenspaceLDA(), SPREAD, da.from_array(Y[1:], chunks=((10, 10, 9, 10),))),
        ValueError,
        "Shard 2: X has shape (10, 4), but y has (9,). Cut both into shards of the same "
        "rows; for Dask arrays: y.rechunk({0: X.chunks[0]}).",
    ),
    "no labels": (
        lambda: fit(EigenspaceLDA(), [X]),
        ValueError,
        "Shard 0: Expected array-like (array or non-string sequence), got None as y.",
    ),
    "a missing file": (
        lambda: eigenspace(["no/such.npy"]),
        ValueError,
        "The file 'no/such.npy' cannot be read as an array: No such file "
        "or directory. Put it where workers find it, or read it another way: fit and eigenspace "
        "take load=...",
    ),
    "one array": (
        lambda: eigenspace(X),
        TypeError,
        "X is a single ndarray. Give shards: a Dask array or frame with rows, or a "
        "list of arrays, delayed values or files.",
    ),
    "labels in one place": (
        lambda: fit(EigenspaceLDA(), SPREAD, Y),
        TypeError,
        "y is a single ndarray. Give shards: a Dask array or frame with rows, or a "
        "list of arrays, delayed values or files.",
    ),
    "one file": (
        lambda: eigenspace("no/all.npy"),
        ValueError,
        "There are no shards at 'no/all.npy': a file, a folder, or files that match the pattern "
        "must be there, on this machine too. Check the path, or give a list of paths.",
    ),
    "one promise": (
        lambda: eigenspace(delayed(X)),
        TypeError,
        "X is a single DelayedLeaf. Give shards: a Dask array or frame with rows, or a "
        "list of arrays, delayed values or files.",
    ),
    "no collection": (
        lambda: eigenspace(3),
        TypeError,
        "X is a single int. Give shards: a Dask array or frame with rows, or a "
        "list of arrays, delayed values or files.",
    ),
    "a Dask array of one number": (
        lambda: eigenspace(SPREAD.sum()),
        TypeError,
        "X is a single Array. Give shards: a Dask array or frame with rows, or a "
        "list of arrays, delayed values or files.",
    ),
    "a Dask array of one column": (
        lambda: eigenspace(da.from_array(Y, chunks=-1)),
        ValueError,
        "Shard 0: X has shape (40,), not (N, D). A single row x is x[None].",
    ),
    "a merge of one": (
        lambda: eigenspace([X], split_every=1),
        ValueError,
        "split_every=1. Give a whole number of at least 2.",
    ),
    "a rank below zero": (
        lambda: eigenspace([X], -1),
        ValueError,
        "rank=-1. Give a whole number of at least 0.",
    ),
    "no estimator": (
        lambda: fit("pca", [X]),
        TypeError,
        "'pca' cannot be learnt in parts: that needs an estimator with fit and merge, such as "
        "EigenspacePCA().",
    ),
    "a class": (
        lambda: fit(EigenspacePCA, [X]),
        TypeError,
        "<class 'knowmore.subspaces.pca.EigenspacePCA'> cannot be learnt in parts: that needs an "
        "estimator with fit and merge, such as EigenspacePCA().",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_with_words(name):
    act, kind, words = MISTAKES[name]
    with pytest.raises(KnowmoreError) as caught:
        act()
    assert isinstance(caught.value, kind)
    assert str(caught.value) == words


def write_objects(path):
    np.save(path, np.array([{}, {}]), allow_pickle=True)


def write_half(path):
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:300])


def write_half_of_an_archive(path):
    with path.open("wb") as file:
        np.savez(file, X)
    path.write_bytes(path.read_bytes()[:300])


@pytest.mark.parametrize(
    "write",
    [
        write_objects,
        write_half,
        write_half_of_an_archive,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("1,2,3\n"),
    ],
    ids=["objects", "half a file", "half an archive", "nothing", "text"],
)
def test_files_that_hold_no_array(write, tmp_path):
    path = tmp_path / "0.npy"
    write(path)
    with pytest.raises(
        KnowmoreError,
        match=r"^The file .* cannot be read as an array: .* If it is damaged, write it again, or ",
    ):
        eigenspace([path])


@pytest.mark.parametrize("arrays", [{"X": X, "y": Y}, {}], ids=["two", "none"])
@pytest.mark.parametrize("name", [None, "Z"])
def test_archives_without_the_one_array(arrays, name, tmp_path):
    path = tmp_path / "0.npz"
    np.savez(path, **arrays)
    words = rf"holds the arrays \[.*\], but name={name!r} is none of them. Say which one: load="
    with pytest.raises(KnowmoreError, match=words):
        eigenspace([path], load=partial(read, name=name))


def test_errors_of_others_keep_their_type_and_get_a_note(tmp_path):
    def load(path):
        raise LookupError("my own")

    with pytest.raises(LookupError, match="my own") as caught:
        eigenspace([tmp_path / "0"], load=load)
    assert caught.value.__notes__ == [f"In {str(tmp_path / '0')!r}."]
