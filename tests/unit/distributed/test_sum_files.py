"""Files of sums: what comes back, what is refused, and when they are computed again."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from damage import mutants

from knowmore import (
    EigenspacePCA,
    ForestGPClassifier,
    Grid,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
)
from knowmore.distributed import fit, load_sums, refresh_sums, refreshing, save_sums
from knowmore.linalg import Sums
from knowmore.linalg.sums import Group
from knowmore.linalg.totals import Products

FORMATS = Path(__file__).parents[2] / "formats"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.arange(60) % 3
Z = RNG.normal(size=(60, 2))
LABELS = {
    "int": Y,
    "str": np.array(["ä", "\udcff", "c"])[Y],
    "bool": Y == 0,
    "float": Y.astype(float),
}


def saved(path, model, **options):
    save_sums(path, model, **options)
    return load_sums(path)


# -- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize("resolution", [None, 8, "exact"])
@pytest.mark.parametrize("kind", LABELS)
def test_a_classifier_comes_back(kind, resolution, tmp_path):
    clf = LinearGPClassifier(resolution=resolution).fit(X, LABELS[kind], 0.25 + Y)
    back = saved(tmp_path / "1.kms", clf)
    assert back.digest() == clf.digest()
    assert back.get_params() == clf.get_params()
    assert back.classes_.tolist() == clf.classes_.tolist()
    assert (back.decision_function(X) == clf.decision_function(X)).all()
    assert back.log_marginal_likelihood() == clf.log_marginal_likelihood()
    assert back.split(clf).n_samples_ == 0


@pytest.mark.parametrize("targets", [Z, Z[:, 0]], ids=["two", "flat"])
def test_a_regressor_comes_back(targets, tmp_path):
    reg = LinearGPRegressor().fit(X, targets)
    back = saved(tmp_path / "1.kms", reg)
    assert back.digest() == reg.digest()
    assert (back.predict(X) == reg.predict(X)).all()
    assert back.partial_fit(X, targets).n_samples_ == 120


def test_settings_are_those_of_the_estimator_that_is_given(tmp_path):
    save_sums(tmp_path / "1.kms", LinearGPClassifier().fit(X, Y))
    wanted = LinearGPClassifier(noise="loo", intercept=False)
    back = load_sums(tmp_path / "1.kms", wanted)
    alone = LinearGPClassifier(noise="loo", intercept=False).fit(X, Y)
    assert back.noise_ == alone.noise_
    assert (back.coef_ == alone.coef_).all()
    assert not hasattr(wanted, "model_")


@pytest.mark.parametrize("names", [[*"abc"], [2021, 2022, 2023]])
def test_the_names_of_columns_come_back(names, tmp_path):
    frame = pd.DataFrame(X, columns=names)
    back = saved(tmp_path / "1.kms", LinearGPClassifier().fit(frame, Y))
    assert back.merge(LinearGPClassifier(resolution=back.grid_).fit(frame, Y)).n_samples_ == 120
    with pytest.raises(KnowmoreError, match="order"):
        back.partial_fit(frame[names[::-1]], Y)


def test_the_file_holds_no_pickle_and_no_row(tmp_path):
    path = tmp_path / "1.kms"
    row = np.array([[1.5, -2.25, 3.0]])
    save_sums(path, LinearGPClassifier().fit(np.vstack([X, row]), np.append(Y, 0)))
    with np.load(path, allow_pickle=False) as arrays:
        assert {*arrays} == {"about", "exponents", "centres", "counts", "first", "words"}
        assert arrays["words"].shape == (2, 6)
    assert row.tobytes() not in path.read_bytes()


# -- what is refused -----------------------------------------------------------------------------


def rewritten(path, **changes):
    """The file with some of its parts exchanged, by a writer that makes no other mistake."""
    with np.load(path) as file:
        arrays = {**file}
    about = json.loads(str(arrays["about"]))
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value
        else:
            (about if name in about else about["settings"])[name] = value
    with path.open("wb") as file:
        np.savez(file, **arrays | {"about": np.array(json.dumps(about))})


DAMAGED = (
    "The file '{path}' cannot be read as sums: it is damaged, or save_sums did not write it. "
    "Compute it again: knowmore sums."
)


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": "0" * 64},
        {"bits": 8},
        {"bits": 7},
        {"keys": [0, 1]},
        {"keys": [0, 1, 1]},
        {"keys": [0, 1, "2"]},
        {"keys": [[], 1, 2]},
        {"log_weights": 1},
        {"log_weights": "0"},
        {"log_weights": 0.0},
        {"log_weights": True},
        {"bits": 21.0},
        {"label": 5},
        {"sample_weight": 5},
        {"columns": 5},
        {"columns": "ab"},
        {"source": "0.npz"},
        {"source": {"size": 3}},
        {"source": {"size": 3, "changed": "now"}},
        {"names": "abc"},
        {"names": [None] * 3},
        {"names": [["a"], ["b"], ["c"]]},
        {"targets": [0.5]},
        {"targets": 0},
        {"keys": "012"},
        {"names": ["a"]},
        {"targets": [10**12]},
        {"targets": [0]},
        {"targets": [1, 1]},
        {"exponents": np.zeros(2, np.int64)},
        {"exponents": np.zeros(3)},
        {"counts": np.zeros((3, 2))},
        {"first": np.zeros((3, 4), np.int64)},
        {"words": np.zeros((2, 6), np.int64)},
        {"words": np.zeros((2, 3, 3), np.int64)},
    ],
    ids=str,
)
def test_parts_that_do_not_go_together(changes, tmp_path):
    path = tmp_path / "1.kms"
    save_sums(path, LinearGPClassifier().fit(X, Y))
    rewritten(path, **changes)
    with pytest.raises(KnowmoreError) as caught:
        load_sums(path)
    assert str(caught.value) == DAMAGED.format(path=path)


def test_a_setting_that_is_missing(tmp_path):
    path = tmp_path / "1.kms"
    for name in ("source", "label", "names", "targets", "log_weights", "keys", "bits", "digest"):
        save_sums(path, LinearGPClassifier().fit(X, Y))
        with np.load(path) as file:
            arrays = {**file}
        about = json.loads(str(arrays["about"]))
        del about["settings"][name]
        with path.open("wb") as file:
            np.savez(file, **arrays | {"about": np.array(json.dumps(about))})
        with pytest.raises(KnowmoreError) as caught:
            load_sums(path)
        assert str(caught.value) == DAMAGED.format(path=path)


def digest_of(path):
    """The digest of what a file holds, whether or not any rows have such sums."""
    with np.load(path) as file:
        arrays = {**file}
    settings = json.loads(str(arrays["about"]))["settings"]
    D = len(arrays["exponents"])
    square = np.zeros((2, D, D), np.int64)
    square[:, *np.tril_indices(D)] = arrays["words"]
    groups = zip(settings["keys"], arrays["counts"].tolist(), arrays["first"], strict=True)
    groups = {key: Group(*counts, first) for key, counts, first in groups}
    grid = Grid(arrays["exponents"], settings["bits"])
    return Sums(grid, groups, settings["log_weights"], Products.summed(square)).digest()


IMPOSSIBLE = {
    "no rows in a class": lambda a: {"counts": a["counts"] * [[0, 1], [1, 1], [1, 1]]},
    "rows below zero": lambda a: {"counts": a["counts"] * [[-1, 1], [1, 1], [1, 1]]},
    "a weight below zero": lambda a: {"counts": a["counts"] * [[1, -1], [1, 1], [1, 1]]},
    "too much weight": lambda a: {"counts": a["counts"] + [[0, 2**40], [0, 2**40], [0, 2**40]]},
    "sums beyond the grid": lambda a: {"first": a["first"] + 2**40},
    "squares too small": lambda a: {"words": a["words"] // 1000},
    "squares below zero": lambda a: {"words": -a["words"]},
    "products too large": lambda a: {"words": a["words"] + np.eye(2, 6, 1, np.int64) * 2**60},
    "words in another form": lambda a: {
        "words": a["words"] + np.array([[1], [-(2**62)]]) * (np.arange(6) == 0)
    },
    "logarithms of weights too large": lambda a: {"log_weights": 10**30},
    "keys of two kinds": lambda a: {"keys": [0, "1", 2]},
    "keys that are one": lambda a: {"keys": [0, True, 2]},
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_sums_of_no_rows_are_damage_although_the_digest_is_right(what, tmp_path):
    path = tmp_path / "1.kms"
    save_sums(path, LinearGPClassifier().fit(X, Y))
    with np.load(path) as file:
        changes = IMPOSSIBLE[what]({**file})
    rewritten(path, **changes)
    rewritten(path, digest=digest_of(path))
    with pytest.raises(KnowmoreError) as caught:
        load_sums(path)
    assert str(caught.value) == DAMAGED.format(path=path)


@pytest.mark.parametrize("kind", ["classifier", "exact", "regressor"])
def test_sums_of_an_earlier_version_are_the_sums_of_the_same_rows(kind):
    """Files of version 1, of these rows: its grids had no centres, and numbers two words."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-50, 50, (40, 3)) / 8, np.arange(40) % 3
    Y, weights = X @ rng.normal(size=(3, 2)).round(2) + 1, rng.integers(1, 4, 40)
    held = load_sums(FORMATS / f"1-sums-{kind}.kms")
    if kind == "regressor":
        fresh = LinearGPRegressor(resolution=held.grid_, y_resolution=held.y_grid_)
        fresh.fit(X, Y, weights)
    else:
        fresh = LinearGPClassifier(resolution=held.grid_).fit(X, y, weights)
    assert held.digest() == fresh.digest()
    assert (held.predict(X) == fresh.predict(X)).all()


def test_any_damage_raises_or_changes_nothing(tmp_path):
    path, clf = tmp_path / "1.kms", LinearGPClassifier().fit(X, Y)
    save_sums(path, clf)
    whole = path.read_bytes()
    for data in [*mutants(whole, np.random.default_rng(0), 300), whole[:-1], b"", b"PK"]:
        path.write_bytes(data)
        try:
            back = load_sums(path)
        except KnowmoreError as error:
            assert str(path) in str(error)  # noqa: PT017  it is one of two outcomes
        else:
            assert back.digest() == clf.digest()


def test_nothing_absurd_is_allocated(tmp_path):
    path = tmp_path / "1.kms"
    save_sums(path, LinearGPClassifier().fit(X, Y))
    header = io.BytesIO()
    claim = {"descr": "<i8", "fortran_order": False, "shape": (2, 10**13)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, part in parts.items():
            file.writestr(name, header.getvalue() if name == "words.npy" else part)
    with pytest.raises(KnowmoreError) as caught:
        load_sums(path)
    assert str(caught.value) == DAMAGED.format(path=path)
    assert str(caught.value.__cause__) == "an array is larger than the file"


@pytest.mark.parametrize("kind", ["foreign", "text", "missing"])
def test_files_of_others(kind, tmp_path):
    path = tmp_path / "1.kms"
    if kind == "foreign":
        np.savez(tmp_path / "1.npz", X=X, y=Y)
        (tmp_path / "1.npz").rename(path)
    elif kind == "text":
        path.write_text("1,2,3\n")
    words = DAMAGED if kind != "missing" else "The file '{path}' does not exist."
    with pytest.raises(KnowmoreError) as caught:
        load_sums(path)
    assert str(caught.value) == words.format(path=path)


def test_a_later_version(tmp_path):
    path = tmp_path / "1.kms"
    save_sums(path, LinearGPClassifier().fit(X, Y))
    rewritten(path, version=3)
    with pytest.raises(KnowmoreError) as caught:
        load_sums(path)
    assert str(caught.value) == (
        f"{str(path)!r} holds a Sums of version 3, but a Sums of version 2 is needed. A later "
        f"knowmore may have written it: update this one, or compute again."
    )


def test_another_estimator_or_resolution(tmp_path):
    path = tmp_path / "1.kms"
    save_sums(path, LinearGPClassifier().fit(X, Y))
    with pytest.raises(
        KnowmoreError, match=r"holds the sums of a LinearGPClassifier, not of Linea"
    ):
        load_sums(path, LinearGPRegressor())
    for resolution in 8, "exact", Grid.covering(100 * X):
        with pytest.raises(KnowmoreError, match=r"Give resolution=None, or that grid\.$"):
            load_sums(path, LinearGPClassifier(resolution=resolution))
    with pytest.raises(KnowmoreError, match=r"has no sums to write: give a fitted LinearGP"):
        save_sums(path, EigenspacePCA().fit(X))
    with pytest.raises(KnowmoreError, match="is not fitted yet"):
        save_sums(path, LinearGPClassifier())
    dates = pd.DataFrame(X, columns=pd.date_range("2026-01-01", periods=3))
    with pytest.raises(KnowmoreError, match="can be written only if they are strings"):
        save_sums(path, LinearGPClassifier().fit(dates, Y))
    assert load_sums(path).n_samples_ == 60


def test_a_full_disk_leaves_the_old_file(tmp_path, little_room):
    path = tmp_path / "1.kms"
    save_sums(path, LinearGPClassifier().fit(X, Y))
    before = path.read_bytes()
    with little_room(1000), pytest.raises(KnowmoreError, match="cannot be written"):
        save_sums(path, LinearGPClassifier().fit(RNG.normal(size=(60, 30)), Y))
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


# -- a folder that grows -------------------------------------------------------------------------


def write(folder, k, rows, labels=Y):
    np.savez(folder / f"{k}.npz", X=X[rows], y=labels[rows])
    return folder / f"{k}.npz"


@pytest.fixture
def folder(tmp_path):
    for k in range(3):
        write(tmp_path, k, slice(15 * k, 15 * (k + 1)))
    return tmp_path


def names(found):
    return [path.name for path in found]


def test_a_new_shard_costs_only_itself(folder):
    assert names(refresh_sums(folder).computed) == ["0.npz", "1.npz", "2.npz"]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.kms")}
    write(folder, 3, slice(45, 60))
    found = refresh_sums(folder)
    assert names(found.computed) == ["3.npz"]
    assert names(found.skipped) == ["0.npz", "1.npz", "2.npz"]
    assert (found.stale, found.orphans) == ({}, [])
    assert before == {path: path.stat().st_mtime_ns for path in before}
    whole = fit(LinearGPClassifier(0.3), f"{folder}/*.kms")
    assert whole.digest() == LinearGPClassifier(resolution=whole.grid_).fit(X, Y).digest()
    rest = whole.split(load_sums(folder / "1.npz.kms"))
    kept = np.r_[0:15, 30:60]
    alone = LinearGPClassifier(resolution=whole.grid_).fit(X[kept], Y[kept])
    assert rest.digest() == alone.digest()


def test_sums_of_data_that_changed_are_stale(folder):
    refresh_sums(folder)
    old = load_sums(folder / "1.npz.kms")
    changed = write(folder, 1, slice(45, 60))
    os.utime(changed, ns=(0, 0))
    with pytest.raises(KnowmoreError, match=r"holds the sums of other data: '1.npz' has changed"):
        fit(LinearGPClassifier(), f"{folder}/*.kms")
    assert load_sums(folder / "1.npz.kms").digest() == old.digest()
    found = refresh_sums(folder)
    assert found.stale == {changed: "'1.npz' has changed since its sums were computed"}
    assert names(found.skipped) == ["0.npz", "2.npz"]
    rows = np.r_[0:15, 30:60]
    whole = fit(LinearGPClassifier(), f"{folder}/*.kms")
    assert (
        whole.digest() == LinearGPClassifier(resolution=whole.grid_).fit(X[rows], Y[rows]).digest()
    )


def test_sums_that_cannot_stay_are_computed_again(folder):
    refresh_sums(folder)
    (folder / "0.npz.kms").write_bytes(b"PK")
    other = LinearGPClassifier(resolution=Grid.covering(64 * X)).fit(X[30:45], Y[30:45])
    save_sums(folder / "2.npz.kms", other, source=folder / "2.npz")
    found = refresh_sums(folder)
    assert list(found.stale.values()) == [
        "they could not be read",
        "the grid was not that of the others",
    ]
    assert refresh_sums(folder, "y").stale == {
        folder / f"{k}.npz": "the targets were in None" for k in range(3)
    }


COARSE = LinearGPClassifier(resolution=8)


def bits(folder):
    return [load_sums(path).grid_.bits for path in sorted(folder.glob("*.kms"))]


@pytest.mark.parametrize("other", [LinearGPClassifier(resolution=21), LinearGPRegressor()])
def test_another_resolution_or_kind_is_refused_unless_again(other, folder):
    refresh_sums(folder, estimator=COARSE)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(KnowmoreError) as caught:
        refresh_sums(folder, estimator=other)
    assert str(caught.value).startswith(f"'{folder}/0.npz.kms' holds ")
    assert str(caught.value).endswith(
        " In a shell, leave --bits out and give --regression as before. To change it, compute all "
        "sums again: again=True, in a shell --again."
    )
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    assert len(refresh_sums(folder, estimator=other, again=True).stale) == 3
    assert len(refresh_sums(folder, estimator=other).skipped) == 3


@pytest.mark.parametrize("again", [True, False])
def test_a_resolution_that_is_not_given_is_that_of_the_folder(again, folder):
    refresh_sums(folder, estimator=COARSE)
    (folder / "0.npz.kms").write_bytes(b"PK")
    write(folder, 2, slice(45, 60))
    os.utime(folder / "2.npz", ns=(0, 0))
    write(folder, 3, slice(45, 60))
    found = refresh_sums(folder, again=again)
    assert names(found.computed) == ["3.npz"]
    assert names(found.stale) == (["0.npz", "1.npz", "2.npz"] if again else ["0.npz", "2.npz"])
    assert bits(folder) == [8] * 4


def test_a_change_of_resolution_that_was_interrupted_goes_on(folder):
    refresh_sums(folder)
    save_sums(
        folder / "0.npz.kms",
        LinearGPClassifier(resolution=8).fit(X[:15], Y[:15]),
        source=folder / "0.npz",
    )
    found = refresh_sums(folder, estimator=COARSE)
    assert {*found.stale.values()} == {"they were for another kind of model or resolution"}
    assert bits(folder) == [8] * 3


def test_a_new_grid_on_demand(folder):
    refresh_sums(folder)
    np.savez(folder / "3.npz", X=1000 * X, y=Y)
    refresh_sums(folder)
    held = fit(LinearGPClassifier(), f"{folder}/*.kms")
    assert held.grid_ == LinearGPClassifier().fit(X[:45], Y[:45]).grid_
    found = refresh_sums(folder, again=True)
    assert {*found.stale.values()} == {"all were to be computed again"}
    whole = fit(LinearGPClassifier(), f"{folder}/*.kms")
    together = np.vstack([X[:45], 1000 * X]), np.append(Y[:45], Y)
    assert whole.digest() == LinearGPClassifier().fit(*together).digest()


@pytest.mark.parametrize("fault", ["a column renamed", "a column fewer", "NaN"])
def test_a_file_that_does_not_go_with_the_others_is_named(fault, tmp_path):
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(y=Y)
    frame.to_parquet(tmp_path / "0.parquet")
    refresh_sums(tmp_path, "y")
    wrong = {
        "a column renamed": frame.rename(columns={"b": "B"}),
        "a column fewer": frame.drop(columns="b"),
        "NaN": frame.assign(b=np.nan),
    }[fault]
    wrong.to_parquet(tmp_path / "1.parquet")
    with pytest.raises(KnowmoreError, match=r"^'.*1.parquet': ") as caught:
        refresh_sums(tmp_path, "y")
    assert "again" not in str(caught.value)


@pytest.mark.parametrize("later", [True, False])
def test_archives_do_not_go_with_tables(later, folder):
    if later:
        refresh_sums(folder, "y")
    pd.DataFrame(X[45:]).add_prefix("f").assign(y=Y[45:]).to_parquet(folder / "3.parquet")
    with pytest.raises(KnowmoreError) as caught:
        refresh_sums(folder, "y")
    assert str(caught.value) == (
        f"The folder '{folder}' has both .npz and .parquet files, but arrays have no names of "
        f"columns to compare with those of tables. Write all rows as one kind."
    )
    assert not (folder / "3.parquet.kms").exists()


def test_what_is_no_folder_of_rows(tmp_path):
    np.save(tmp_path / "0.npy", X)
    words = (
        f"There are no rows in the folder '{tmp_path}': sums are computed of files that end in "
        f".npz or .parquet. Check the path, or write the rows so."
    )
    with pytest.raises(KnowmoreError) as caught:
        refresh_sums(tmp_path)
    assert str(caught.value) == words
    for path in f"{tmp_path}/0.npy", f"{tmp_path}/*.npz":
        with pytest.raises(KnowmoreError) as caught:
            refresh_sums(path)
        assert str(caught.value) == f"{path!r} is not a folder. Name the one that has the rows."


def test_shards_without_rows_and_sums_without_shards(folder):
    write(folder, 1, slice(0, 0))
    refresh_sums(folder)
    (folder / "2.npz").unlink()
    found = refresh_sums(folder)
    assert names(found.skipped) == ["0.npz", "1.npz"]
    assert names(found.orphans) == ["2.npz.kms"]
    assert load_sums(folder / "1.npz.kms").n_samples_ == 0
    assert fit(LinearGPClassifier(), f"{folder}/*.kms").n_samples_ == 30
    assert fit(LinearGPClassifier(), f"{folder}/[01].npz.kms").n_samples_ == 15
    with pytest.raises(KnowmoreError, match="None of the 1 shards has a row"):
        fit(LinearGPClassifier(), [folder / "1.npz.kms"])
    for k in range(2):
        (folder / f"{k}.npz").unlink()
    assert refresh_sums(folder) == ([], {}, [], sorted(folder.glob("*.kms")), [])


@pytest.mark.parametrize("again", [True, False])
def test_sums_without_rows_do_not_go_with_a_new_grid(again, folder):
    refresh_sums(folder)
    (folder / "2.npz").unlink()
    for k in range(2):
        np.savez(folder / f"{k}.npz", X=1000 * X, y=Y)
    found = refresh_sums(folder, again=again)
    assert names(found.orphans) == names(found.apart) == ["2.npz.kms"]
    with pytest.raises(KnowmoreError) as caught:
        fit(LinearGPClassifier(), f"{folder}/*.kms")
    assert str(caught.value) == (
        f"'{folder}/0.npz.kms' and '{folder}/2.npz.kms' do not go together: These sums are on "
        "different grids. If the rows of one of them are gone, its sums cannot be brought to the "
        "grid of the others: delete the file, or move it elsewhere. Otherwise compute all sums of "
        "the folder again: knowmore sums --again."
    )
    found.apart[0].unlink()
    assert fit(LinearGPClassifier(), f"{folder}/*.kms").n_samples_ == 2 * len(X)


def test_folders_that_are_named_like_shards_are_passed_over(folder):
    (folder / "9.npz").mkdir()
    (folder / "8.parquet").mkdir()
    assert names(refresh_sums(folder).computed) == ["0.npz", "1.npz", "2.npz"]
    (folder / "8.parquet").rmdir()
    assert fit(LinearGPClassifier(), folder).n_samples_ == 45


def test_an_error_names_the_first_bad_shard(folder):
    for k in (1, 2):
        np.savez(folder / f"{k}.npz", X=X[:15] * np.nan, y=Y[:15])
    with pytest.raises(KnowmoreError, match=r"^'.*1\.npz': "):
        refresh_sums(folder)
    write(folder, 0, slice(15))
    grid = Grid.covering(X)
    for estimator in (LinearGPClassifier(), LinearGPClassifier(resolution=grid)):
        with pytest.raises(KnowmoreError, match=r"^'.*1\.npz': "):
            fit(estimator, folder)
    with pytest.raises(KnowmoreError, match=r"^'.*1\.npz': "):
        fit(ForestGPClassifier(), folder)


def test_regression_in_a_folder(tmp_path):
    for k in range(3):
        write(tmp_path, k, slice(20 * k, 20 * (k + 1)), Z)
    wanted = LinearGPRegressor()
    refresh_sums(tmp_path, estimator=wanted)
    write(tmp_path, 3, slice(0, 20), Z / 2)
    refresh_sums(tmp_path, estimator=wanted)
    whole = fit(wanted, f"{tmp_path}/*.kms")
    assert whole.n_samples_ == 80
    rest = whole.split(load_sums(tmp_path / "3.npz.kms"))
    assert rest.digest() == LinearGPRegressor().fit(X, Z).digest()


def test_a_file_that_changes_while_it_is_read_is_stale(folder, monkeypatch):
    def read(path, *names):
        found = real(path, *names)
        os.utime(path, (0, next(times)))
        return found

    real, times = refreshing.read_examples, iter(range(100))
    monkeypatch.setattr(refreshing, "read_examples", read)
    assert len(refresh_sums(folder).computed) == 3
    monkeypatch.undo()
    assert len(refresh_sums(folder).stale) == 3
    assert len(refresh_sums(folder).skipped) == 3


@pytest.mark.parametrize("columns", ["a", [], ["a", "a"], [1], 3], ids=str)
def test_columns_are_a_list_of_names(columns, folder):
    with pytest.raises(KnowmoreError) as caught:
        refresh_sums(folder, columns=columns)
    assert str(caught.value) == f"columns={columns!r}. Give a list of names of columns, each once."


def test_archives_have_weights_but_no_columns(folder):
    weights = np.linspace(0.5, 2, 15)
    for k in range(3):
        rows = slice(15 * k, 15 * (k + 1))
        np.savez(folder / f"{k}.npz", X=X[rows], y=Y[rows], w=weights)
    with pytest.raises(KnowmoreError) as caught:
        refresh_sums(folder, columns=["a"])
    assert str(caught.value) == (
        "columns was given, but .npz files have one array of features, X, without names. Leave it "
        "out."
    )
    with pytest.raises(KnowmoreError) as caught:
        refresh_sums(folder, sample_weight=3)
    assert (
        str(caught.value) == "sample_weight=3 is an int. Give the name of a column, a str, or None."
    )
    refresh_sums(folder, sample_weight="w")
    clf = fit(LinearGPClassifier(), f"{folder}/*.kms")
    alone = LinearGPClassifier().fit(X[:45], Y[:45], np.tile(weights, 3))
    assert clf.digest() == alone.digest()


def test_what_is_not_named_is_as_in_the_sums_of_the_folder(tmp_path):
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(t=X[:, 0], w=1.5, y=Y)
    frame.to_parquet(tmp_path / "0.parquet")
    refresh_sums(tmp_path, "y", sample_weight="w", columns=["t", "b"])
    frame.to_parquet(tmp_path / "1.parquet")
    found = refresh_sums(tmp_path, "y")
    assert (names(found.computed), names(found.skipped)) == (["1.parquet"], ["0.parquet"])
    clf = fit(LinearGPClassifier(), f"{tmp_path}/*.kms")
    twice = np.tile(X[:, [0, 1]], (2, 1)), np.tile(Y, 2), np.full(2 * len(X), 1.5)
    alone = LinearGPClassifier(resolution=clf.grid_).fit(*twice)
    assert clf.digest() == alone.digest()
    assert clf.feature_names_in_.tolist() == ["t", "b"]
    for path in tmp_path.glob("*.kms"):
        path.unlink()
    assert len(refresh_sums(tmp_path, "y").computed) == 2
    assert load_sums(tmp_path / "0.parquet.kms").feature_names_in_.tolist() == [*"abctw"]
