"""Data sets: where they are looked for, and what the real files hold."""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from damage import mutants
from sklearn.datasets import load_digits

import papers
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, MissingData, MissingExtra
from papers.data import (
    FACE_SHAPE,
    WORDS,
    animals_with_attributes,
    caltech101,
    caltech256,
    digits,
    fashion_mnist,
    fifteen_scenes,
    find,
    flights,
    kdd99,
    orl_faces,
)


def read(load, *arguments):
    """The loader's data, or a skip where they are absent."""
    try:
        return load(*arguments)
    except (MissingData, MissingExtra) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def faces():
    return read(orl_faces)


# -- where they are ------------------------------------------------------------------------------


def test_the_folder_named_is_the_only_one(tmp_path, monkeypatch):
    beside = tmp_path / "shared" / "data"
    beside.mkdir(parents=True)
    (beside / "some.npz").touch()
    (tmp_path / "project").mkdir()
    (tmp_path / "named").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.delenv("KNOWMORE_DATA", raising=False)
    assert find("some.npz") == beside / "some.npz"
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path / "named"))
    with pytest.raises(MissingData):
        find("some.npz")
    (tmp_path / "named" / "some.npz").touch()
    assert find("some.npz") == tmp_path / "named" / "some.npz"
    monkeypatch.setenv("KNOWMORE_DATA", "")
    assert find("some.npz") == beside / "some.npz"


@pytest.mark.parametrize(
    ("load", "name"), [(orl_faces, "orl_faces.npz"), (animals_with_attributes, "awa_features.npz")]
)
def test_absent_data_say_what_to_do(load, name, tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    words = (
        f"The data file '{name}' is not in {tmp_path} (KNOWMORE_DATA or --data names it). knowmore "
        f"does not come with data: set KNOWMORE_DATA to the folder that holds the file or name it "
        f"with --data, or put that folder at ../shared/data and leave KNOWMORE_DATA unset."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(words)}$") as caught:
        load()
    assert isinstance(caught.value, KnowmoreError)
    assert isinstance(caught.value, FileNotFoundError)


def test_both_places_are_named_where_no_folder_is(tmp_path, monkeypatch):
    monkeypatch.delenv("KNOWMORE_DATA", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    with pytest.raises(
        MissingData, match=r"KNOWMORE_DATA is not set, so \.\./shared/data was searched"
    ) as caught:
        find("never.npz")
    checkout = Path(papers.__file__).resolve().parents[1]
    for beside in tmp_path / "project", checkout:
        assert str(beside.parent / "shared" / "data") in str(caught.value)


# -- damage --------------------------------------------------------------------------------------


def small_faces(path):
    pixels = np.arange(2 * 112 * 92, dtype=np.uint8).reshape(2, 112, 92)
    np.savez(path, images=pixels, names=np.array(["s1/1.pgm", "s2/1.pgm"]))


def small_animals(path):
    features = {name: np.eye(3) for name in ("sift", "surf", "lss", "rgsift", "phog")}
    names = np.array(["cat", "dog"])
    np.savez(path, labels=[0, 0, 1], class_names=names, index_in_class=[1, 2, 1], **features)


SETS = {
    "orl_faces.npz": (orl_faces, small_faces),
    "awa_features.npz": (animals_with_attributes, small_animals),
}


@pytest.mark.parametrize("name", SETS)
def test_damaged_data_are_told(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    read, write = SETS[name]
    path = tmp_path / name
    write(path)
    want, whole = read(), path.read_bytes()
    words = (
        f"The file {str(path)!r} cannot be read as a data set: it is cut off, damaged, or another "
        f"file of that name. Fetch it again."
    )
    damaged = [b"", b"no zip", whole[:-30], whole[: len(whole) // 2]]
    for data in [*damaged, *mutants(whole, np.random.default_rng(0), 300)]:
        path.write_bytes(data)
        try:
            found = read()
        except KnowmoreError as error:
            told = str(error)
        else:
            np.testing.assert_array_equal(found.X, want.X)
            assert found.names == want.names
            continue
        assert told == words


@pytest.mark.parametrize("name", SETS)
def test_other_content_is_told(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    read, write = SETS[name]
    for change in (
        {"images": np.zeros((2, 5, 5)), "labels": np.array([0, 0, 7])},
        {"names": np.array(["s1/1.pgm"]), "surf": np.eye(2)},
        {"names": np.array([{"a": 1}, {}], dtype=object), "class_names": np.array([{}, {}])},
    ):
        write(tmp_path / name)
        with np.load(tmp_path / name) as file:
            arrays = dict(file)
        np.savez(tmp_path / name, **arrays | {n: a for n, a in change.items() if n in arrays})
        with pytest.raises(InvalidInput, match="cannot be read as a data set"):
            read()


@pytest.mark.parametrize(("load", "name"), [(kdd99, "kdd99.tar"), (flights, "flights_3m.parquet")])
def test_tables_that_are_damaged_are_told(load, name, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    path = tmp_path / name
    for data in (b"", b"no table", b"PAR1" * 10):
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match=r"cannot be read as a data set: it is cut off, dam"):
            load()


# -- what they hold ------------------------------------------------------------------------------


def test_faces_are_the_pictures_in_their_order(faces):
    assert faces.X.shape == (400, FACE_SHAPE[0] * FACE_SHAPE[1])
    assert faces.X.dtype == np.float64
    # Division only: every number is a grey level again.
    levels = faces.X * 255
    assert faces.X.min() >= 0
    assert faces.X.max() <= 1
    np.testing.assert_array_equal(levels.round().astype(np.uint8) / 255, faces.X)
    assert faces.names[:2] == ("s1/1.pgm", "s1/2.pgm")
    assert faces.names[-1] == "s40/10.pgm"
    assert Counter(faces.labels.tolist()) == {f"s{i}": 10 for i in range(1, 41)}
    assert all(
        name.startswith(f"{label}/") for name, label in zip(faces.ids, faces.labels, strict=True)
    )


def test_nearest_neighbours_recognise_faces_as_published(faces):
    early = np.array([int(name.partition("/")[2].partition(".")[0]) <= 5 for name in faces.names])
    A, B = faces.X[~early], faces.X[early]
    squares = (A**2).sum(axis=1)[:, None] - 2 * A @ B.T + (B**2).sum(axis=1)
    found = faces.labels[early][squares.argmin(axis=1)]
    assert f"{(found == faces.labels[~early]).mean():.2f}" == "0.90"


@pytest.mark.parametrize(
    ("feature", "columns"),
    [("sift", 2000), ("surf", 2000), ("lss", 2000), ("rgsift", 2000), ("phog", 252)],
)
def test_animals_are_sixty_of_each(feature, columns):
    animals = read(animals_with_attributes, feature)
    assert animals.X.shape == (3000, columns)
    assert animals.X.dtype == np.float64
    assert animals.X.min() >= 0
    assert (animals.X.sum(axis=1) > 0).all()
    counts = Counter(animals.labels.tolist())
    assert len(counts) == 50
    assert set(counts.values()) == {60}
    if feature in ("sift", "surf", "lss"):
        np.testing.assert_array_equal(animals.X, animals.X.round())


def test_ids_of_animals_do_not_depend_on_the_feature():
    one, two = (read(animals_with_attributes, feature) for feature in ("sift", "phog"))
    assert one.names == two.names
    assert len(set(one.names)) == 3000
    assert all(
        re.fullmatch(rf"{re.escape(label)}/\d+", name)
        for name, label in zip(one.names, one.labels, strict=True)
    )


def test_a_feature_that_is_not_there():
    words = "feature='colour' is not among the features of the animals. Choose one of sift, surf,"
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}"):
        animals_with_attributes("colour")


# -- pictures and digits -------------------------------------------------------------------------


def test_scenes_are_all_there():
    scenes = read(fifteen_scenes)
    counts = Counter(scenes.labels.tolist())
    assert len(scenes) == 4485
    assert len(counts) == 15
    assert counts["bedroom"] == 216
    assert counts["MITopencountry"] == 410
    assert "bedroom/image_0001.jpg" in scenes.ids
    with tarfile.open(find("15scenes.tar")) as archive:
        for one in scenes.X[::1000]:
            assert one.read() == archive.extractfile(f"15scenes/{one.name}").read()


@pytest.mark.parametrize(
    ("load", "most", "fewer", "left_out"),
    [
        (caltech101, (9144, 102), (8242, 100), {"BACKGROUND_Google", "Faces_easy"}),
        (caltech256, (2965, 121), None, {"257.clutter"}),
    ],
)
def test_things_are_all_there(load, most, fewer, left_out):
    whole, usual = read(load, ()), read(load)
    assert (len(whole), len(set(whole.labels))) == most
    assert set(whole.labels) - set(usual.labels) == left_out
    kept = ~np.isin(whole.labels, list(left_out))
    assert usual.ids.tolist() == whole.ids[kept].tolist()
    if fewer is not None:
        assert (len(usual), len(set(usual.labels))) == fewer
    assert all(one.read().startswith(b"\xff\xd8") for one in usual.X[::500])


def test_classes_that_are_not_there_cannot_be_left_out():
    with pytest.raises(InvalidInput, match=r"leave_out names 'cat', but there is no such class"):
        read(caltech101, ["Faces", "cat"])
    with pytest.raises(InvalidType, match=r"leave_out='Faces' must be a list of classes: \['Faces"):
        caltech101("Faces")


def test_digits_are_those_of_scikit_learn():
    X, y = load_digits(return_X_y=True)
    found = digits()
    np.testing.assert_array_equal(found.X * 16, X)
    np.testing.assert_array_equal(found.labels, y)
    np.testing.assert_array_equal(found.ids, np.arange(1797))


# -- many rows -----------------------------------------------------------------------------------


def test_clothes_are_all_there():
    clothes = read(fashion_mnist)
    assert clothes.X.shape == (60_000, 28, 28)
    assert clothes.X_test.shape == (10_000, 28, 28)
    for labels, each in ((clothes.y, 6000), (clothes.y_test, 1000)):
        assert Counter(labels.tolist()) == dict.fromkeys(range(10), each)


def test_connections_are_there_once():
    connections = read(kdd99)
    assert connections.X.shape == (145_586, 41)
    assert connections.X_test.shape == (77_291, 41)
    assert np.isfinite(connections.X).all()
    assert len(set(connections.y)) == 23
    assert len(set(connections.y_test)) == 38
    assert connections.y[0] == "normal"
    words = [len(set(connections.X[:, column])) for column in WORDS]
    assert words == [3, 66, 11]
    # The first line of the file: 181 bytes were sent and 5450 received.
    assert connections.X[0, 4:6].tolist() == [181, 5450]


def test_flights_are_in_order():
    found = read(flights, 100)
    assert len(found.delay) == 30_000
    assert found.departure[0] == np.datetime64("2001-01-01T00:01")
    assert (np.diff(found.departure) >= np.timedelta64(0)).all()
    assert found.airports[[found.origin[0], found.destination[0]]].tolist() == ["LAS", "PHL"]
    assert (found.delay[0], found.distance[0]) == (33, 2176)
