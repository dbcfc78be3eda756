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
        f"2 computed, 0 stale and computed again, 0 skipped: they were up to date.\n"
    )
    clf = fit(LinearGPClassifier(), f"{folder}/*.kms")
    X, y = FRAME[[*"abc"]], FRAME["label"]
    assert clf.digest() == LinearGPClassifier().fit(X, y).digest()
    FRAME[:5].to_parquet(folder / "0.parquet")
    (folder / "1.parquet").rename(folder / "2.parquet")
    again = sums(folder, "--label", "label", "--again")
    assert again.stdout == (
        f"Computed: {folder}/2.parquet\n"
        f"Computed again: {folder}/0.parquet: all were to be computed again\n"
        f"1 computed, 1 stale and computed again, 0 skipped: they were up to date.\n"
    )
    assert again.stderr == (
        f"Left alone: {folder}/1.parquet.kms: its rows are gone. Delete it to forget them.\n"
    )


def test_json(folder):
    sums(folder, "--label", "label")
    FRAME[:5].to_parquet(folder / "0.parquet")
    assert json.loads(sums(folder, "--label", "label", "--json").stdout) == {
        "computed": [],
        "stale": {f"{folder}/0.parquet": "'0.parquet' was changed since"},
        "skipped": [f"{folder}/1.parquet"],
        "orphans": [],
    }


def test_regression_on_a_finer_grid(folder):
    for path in folder.iterdir():
        pd.read_parquet(path).drop(columns="label").to_parquet(path)
    sums(folder, "--label", "c", "--regression", "--bits", 42)
    reg = fit(LinearGPRegressor(resolution="exact"), f"{folder}/*.kms")
    X, y = FRAME[[*"ab"]], FRAME["c"]
    assert reg.digest() == LinearGPRegressor(resolution="exact").fit(X, y).digest()


def test_mistakes(folder, tmp_path):
    with pytest.raises(
        KnowmoreError, match=r"Shard \d .* These rows have no targets. Name the col"
    ):
        sums(folder)
    with pytest.raises(KnowmoreError, match=r"Shard \d .*: y='species' names no column of these"):
        sums(folder, "--label", "species")
    assert CliRunner().invoke(app, ["sums", str(folder / "none")]).exit_code == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(KnowmoreError, match=r"^There are no shards at '.*empty': a file that ends"):
        sums(tmp_path / "empty")
