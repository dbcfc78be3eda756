"""Models of pictures: described in the same way for ever, in whatever form they come."""

from __future__ import annotations

import json
import tarfile

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import knowmore
from knowmore.cli.app import app


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stripes in two directions, and a file that is no picture."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:48, :64]
    for name, waves in {"upright": x, "level": y}.items():
        (root / "photos" / name).mkdir(parents=True)
        for i in range(6):
            pixels = 128 + 80 * np.sin(waves / 2 + i) + 10 * rng.normal(size=x.shape)
            image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            image.save(root / "photos" / name / f"{i}.png")
    (root / "photos/level/broken.png").write_text("no picture")
    return root


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "m.km"
    run("init", path, "--words", 20)
    result = run("learn", path, folder / "photos", "--json")
    assert result.exit_code == 3
    assert result.stderr.startswith("Skipped: 'level/broken.png' cannot be read: it is not a ")
    assert json.loads(result.stdout)["added"] == 12
    return path


def test_a_picture_is_predicted(model, folder):
    found = json.loads(run("predict", model, folder / "photos/level/3.png", "--json").stdout)
    assert (found["id"], found["label"]) == ("3.png", "level")
    many = run("predict", model, folder / "photos", "--json")
    assert many.exit_code == 3
    labels = [json.loads(line)["label"] for line in many.stdout.splitlines()]
    assert labels == ["level"] * 6 + ["upright"] * 6


def test_the_words_and_the_kernel_are_kept(model):
    with knowmore.open(model) as store:
        assert store.notes["pictures"]["about"]["kind"] == "sift-pyramid"
        assert store.arrays("words/")["centres"].shape[0] == 20
        assert repr(store.kernel_) == "HistogramIntersection()"


def test_words_stay_and_the_kernel_comes_back_after_undo(model, folder):
    with knowmore.open(model) as store:
        words = store.arrays("words/")["centres"]
    run("undo", model)
    found = run("learn", model, folder / "photos", "--json")
    assert json.loads(found.stdout)["added"] == 12
    with knowmore.open(model) as store:
        assert (store.arrays("words/")["centres"] == words).all()
        assert repr(store.kernel_) == "HistogramIntersection()"
        assert [entry.verb for entry in store.log()] == ["learn"]


def test_an_archive_of_the_same_pictures_is_known(model, folder):
    with tarfile.open(folder / "photos.tar", "w") as archive:
        archive.add(folder / "photos", ".")
    again = json.loads(run("learn", model, folder / "photos.tar", "--json").stdout)
    assert (again["added"], again["skipped"], again["unreadable"]) == (0, 12, 1)


def test_another_picture_of_the_same_name_is_not_replaced(model, folder):
    other = folder / "others/level"
    other.mkdir(parents=True)
    (other / "0.png").write_bytes((folder / "photos/upright/0.png").read_bytes())
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("learn", model, folder / "others")
    assert str(caught.value) == (
        "The model holds another picture 'level/0.png', from 'photos'. Rename one of them; or, if "
        "this is the same folder elsewhere, say --origin photos."
    )


def test_numbers_and_pictures_do_not_mix(model, folder):
    (folder / "a.csv").write_text("a,label\n1,x\n2,y\n")
    with pytest.raises(
        knowmore.KnowmoreError, match=r"^The model has learnt pictures, and .*a\.csv"
    ):
        run("learn", model, folder / "a.csv")
    run("learn", folder / "n.km", folder / "a.csv")
    with pytest.raises(
        knowmore.KnowmoreError, match=r"^The model has learnt numbers, and .*photos"
    ):
        run("learn", folder / "n.km", folder / "photos")


def test_a_table_of_features_brings_its_words(folder):
    table = folder / "t.npz"
    run("features", folder / "photos", "-o", table, "--words", 20, "--no-cache")
    run("learn", folder / "t.km", table)
    found = json.loads(
        run("predict", folder / "t.km", folder / "photos/level/3.png", "--json").stdout
    )
    assert found["label"] == "level"


def test_supports_of_pictures_bring_the_words(model, folder, tmp_path):
    path, photos = tmp_path / "one.km", folder / "photos"
    for part, number in (("others", 3), ("few", 4)):
        for name in ("level", "upright"):
            (tmp_path / part / name).mkdir(parents=True)
            picture = (photos / name / f"{number}.png").read_bytes()
            (tmp_path / part / name / f"{name}.png").write_bytes(picture)
    run("init", path, "--kind", "one-shot", "--words", 20, "--supports", tmp_path / "others")
    found = run("learn", path, tmp_path / "few", "--json")
    assert json.loads(found.stdout)["added"] == 2
    with knowmore.open(path) as store:
        assert list(store.supports_) == ["level", "upright"]
        assert store.arrays("words/")["centres"].shape[0] == 20
        assert repr(store.kernel_) == "HistogramIntersection()"
