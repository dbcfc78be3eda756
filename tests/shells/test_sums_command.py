"""`knowmore sums`, as a user meets it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from knowmore import KnowmoreError, LinearGPClassifier, LinearGPRegressor
from knowmore.cli.app import app
from knowmore.distributed import fit

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(40, 3)), columns=[*"abc"]).assign(
    label=np.array(["x", "y"])[np.arange(40) % 2]
)


@pytest.fixture
def folder(tmp_path):
    for k in range(2):
        FRAME[20 * k : 20 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    return tmp_path


def sums(*arguments):
    result = CliRunner().invoke(app, ["sums", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_computed_skipped_stale_and_left_alone(folder):
    assert sums(folder, "--label", "label").stdout == (
        f"Computed: {folder}/0.parquet\nComputed: {folder}/1.parquet\n"
        f"2 computed, 0 stale and computed again, 0 up to date and skipped.\n"
    )
    clf = fit(LinearGPClassifier(), f"{folder}/*.kms")
    X, y = FRAME[[*"abc"]], FRAME["label"]
    assert clf.digest() == LinearGPClassifier().fit(X, y).digest()
    FRAME[:5].to_parquet(folder / "0.parquet")
    (folder / "1.parquet").unlink()
    FRAME[20:].assign(a=1000 * FRAME["a"]).to_parquet(folder / "2.parquet")
    again = sums(folder, "--label", "label", "--again")
    assert again.stdout == (
        f"Computed: {folder}/2.parquet\n"
        f"Computed again: {folder}/0.parquet: all were to be computed again\n"
        f"Left alone: {folder}/1.parquet.kms: its rows are gone, and the others are on a new grid. "
        f"Models cannot learn both: delete it, or move it elsewhere.\n"
        f"1 computed, 1 stale and computed again, 0 up to date and skipped, 1 left alone because "
        f"their rows are gone.\n"
    )


@pytest.mark.parametrize("kept", [0, 1])
def test_rows_that_are_gone_are_told_also_if_there_is_nothing_to_compute(kept, folder):
    sums(folder, "--label", "label")
    for k in range(kept, 2):
        (folder / f"{k}.parquet").unlink()
    told = sums(folder, "--label", "label").stdout
    assert told.startswith(f"Left alone: {folder}/{kept}.parquet.kms: its rows are gone, but mod")
    assert told.endswith(
        f" {kept} up to date and skipped, {2 - kept} left alone because their rows are gone.\n"
    )


def test_sums_that_no_longer_go_with_the_others_are_told(folder):
    sums(folder, "--label", "label")
    (folder / "1.parquet").unlink()
    FRAME.assign(a=1000 * FRAME["a"]).to_parquet(folder / "0.parquet")
    orphan = folder / "1.parquet.kms"
    told = sums(folder, "--label", "label", "--again").stdout
    assert (
        f"Left alone: {orphan}: its rows are gone, and the others are on a new grid. Models cannot "
        f"learn both: delete it, or move it elsewhere.\n"
    ) in told
    told = json.loads(sums(folder, "--label", "label", "--json").stdout)
    assert told["orphans"] == told["apart"] == [str(orphan)]


def test_bits_are_kept_until_all_are_computed_again(folder):
    sums(folder, "--label", "label", "--bits", 8)
    assert "2 up to date" in sums(folder, "--label", "label").stdout
    with pytest.raises(KnowmoreError, match=r"leave --bits out .* in a shell --again\.$"):
        sums(folder, "--label", "label", "--bits", 16)
    assert "2 stale" in sums(folder, "--label", "label", "--bits", 16, "--again").stdout
    clf = fit(LinearGPClassifier(resolution=16), f"{folder}/*.kms")
    X, y = FRAME[[*"abc"]], FRAME["label"]
    assert clf.digest() == LinearGPClassifier(resolution=16).fit(X, y).digest()


def test_json(folder):
    sums(folder, "--label", "label")
    FRAME[:5].to_parquet(folder / "0.parquet")
    assert json.loads(sums(folder, "--label", "label", "--json").stdout) == {
        "computed": [],
        "stale": {f"{folder}/0.parquet": "'0.parquet' has changed since its sums were computed"},
        "skipped": [f"{folder}/1.parquet"],
        "orphans": [],
        "apart": [],
    }


def test_regression_on_a_finer_grid(folder):
    for path in folder.iterdir():
        pd.read_parquet(path).drop(columns="label").to_parquet(path)
    sums(folder, "--label", "c", "--regression", "--bits", 42)
    reg = fit(LinearGPRegressor(resolution="exact"), f"{folder}/*.kms")
    X, y = FRAME[[*"ab"]], FRAME["c"]
    assert reg.digest() == LinearGPRegressor(resolution="exact").fit(X, y).digest()


def test_columns_and_weights_are_chosen(folder):
    for path in folder.iterdir():
        frame = pd.read_parquet(path)
        frame.assign(when=pd.Timestamp(0), w=frame["a"].abs().clip(0.5), v=1.5).to_parquet(path)
    with pytest.raises(KnowmoreError, match=r"\d.parquet': The column 'when' of X has dates"):
        sums(folder, "--label", "label")
    chosen = "--label", "label", "--weight", "w", "--columns", "c,a"
    assert "2 computed" in sums(folder, *chosen).stdout
    assert "2 up to date" in sums(folder, *chosen).stdout
    clf = fit(LinearGPClassifier(), f"{folder}/*.kms")
    X, y, w = FRAME[[*"ca"]], FRAME["label"], FRAME["a"].abs().clip(0.5)
    assert clf.digest() == LinearGPClassifier().fit(X, y, w).digest()
    assert clf.feature_names_in_.tolist() == ["c", "a"]
    # What is not said is as it was.
    assert "2 up to date" in sums(folder).stdout
    assert "2 stale" in sums(folder, "--again").stdout
    assert fit(LinearGPClassifier(), f"{folder}/*.kms").digest() == clf.digest()
    told = sums(folder, "--weight", "v").stdout
    assert told.count("the weights were in 'w'") == 2
    told = sums(folder, "--label", "label", "--columns", "a,c").stdout
    assert told.count("the columns were ('c', 'a')") == 2
    with pytest.raises(KnowmoreError) as caught:
        sums(folder, "--label", "label", "--columns", "a,C")
    assert str(caught.value).endswith(
        "parquet': The table has no column 'C': 'a', 'b', 'c', 'label', 'when' and 2 more, the "
        "last 'v'. Is it 'c'? Name others."
    )


def test_mistakes(folder, tmp_path):
    held, remedy = "the file holds the columns 'a', 'b', 'c', 'label'. Name", "in a shell --label."
    with pytest.raises(
        KnowmoreError, match=rf"^'.*\d.parquet': The targets .* are not named: {held} .* {remedy}"
    ):
        sums(folder)
    with pytest.raises(KnowmoreError, match=rf"are not in 'species': {held} .* {remedy}"):
        sums(folder, "--label", "species")
    (tmp_path / "arrays").mkdir()
    np.savez(tmp_path / "arrays" / "0.npz", X=np.eye(3))
    with pytest.raises(KnowmoreError, match=r"holds one array\. .* needs the arrays X and y\.$"):
        sums(tmp_path / "arrays")
    with pytest.raises(KnowmoreError, match="none' is not a folder"):
        sums(folder / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        KnowmoreError, match=r"^There are no rows in .*empty'.* \.npz or \.parquet\."
    ):
        sums(tmp_path / "empty")
