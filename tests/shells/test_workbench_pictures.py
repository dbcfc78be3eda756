"""Models of pictures: every form of a picture is described in the same way for ever."""

from __future__ import annotations

import json
import shutil
import tarfile
import time

import numpy as np
import pytest
from labelled import served
from PIL import Image
from tolerance import assert_rounded, assert_within, expansion_error
from typer.testing import CliRunner

import knowmore
from knowmore.cli.app import app
from knowmore.errors import InvalidInput
from knowmore.images import PHOG, KMeansCodebook, feature_table
from knowmore.images.describing import WORDS
from knowmore.images.networks import is_installed
from knowmore.kernels import ChiSquared
from knowmore.web.answering import Answering


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
        assert isinstance(store.kernel_, ChiSquared)


def test_words_stay_and_the_kernel_comes_back_after_undo(model, folder):
    with knowmore.open(model) as store:
        words = store.arrays("words/")["centres"]
    run("undo", model)
    found = run("learn", model, folder / "photos", "--json")
    assert json.loads(found.stdout)["added"] == 12
    with knowmore.open(model) as store:
        assert (store.arrays("words/")["centres"] == words).all()
        assert isinstance(store.kernel_, ChiSquared)
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
        assert isinstance(store.kernel_, ChiSquared)


def copied(folder, tmp_path):
    """A model of a folder of its own: six pictures from Ann, one of them corrected by hand."""
    photos = tmp_path / "photos"
    for name in ("level", "upright"):
        (photos / name).mkdir(parents=True)
        for i in range(3):
            data = (folder / "photos" / name / f"{i}.png").read_bytes()
            (photos / name / f"{i}.png").write_bytes(data)
    path = tmp_path / "m.km"
    run("init", path, "--words", 20)
    run("learn", path, photos, "--contributor", "ann")
    run("relabel", path, "level/2.png", "upright")
    return path, photos


def known(path):
    with knowmore.open(path) as store:
        assert store.verify().ok
        return {one.id: (one.label, one.contributor) for one in store.records()}


def test_a_picture_that_moved_is_not_held_twice(folder, tmp_path):
    path, photos = copied(folder, tmp_path)
    before = known(path)
    (photos / "level/0.png").rename(photos / "upright/new.png")
    (photos / "level/2.png").rename(photos / "level/9.png")
    for option, words in ((["--dry-run"], ("Would be: ", "would hold")), ([], ("", "holds"))):
        found = run("learn", path, photos, *option)
        assert found.stdout == (
            f"{words[0]}0 added, 4 skipped, 0 replaced, 0 vanished, 2 moved. {path} {words[1]} 6 "
            f"examples.\n"
        )
        assert found.stderr == (
            "What moved has the label of its new folder, and its old id. To rename it: --sync.\n"
        )
    assert known(path) == before | {"level/0.png": ("upright", "ann")}
    run("undo", path)
    assert known(path) == before
    assert run("learn", path, photos, "--sync").exit_code == 0
    del before["level/0.png"], before["level/2.png"]
    moved = {"upright/new.png": ("upright", "ann"), "level/9.png": ("upright", "ann")}
    assert known(path) == before | moved
    assert json.loads(run("learn", path, photos, "--json").stdout)["skipped"] == 6


@pytest.mark.parametrize("sync", [True, False])
def test_a_picture_that_moved_keeps_who_gave_its_label(sync, folder, tmp_path):
    path, photos = copied(folder, tmp_path)
    run("relabel", path, "level/2.png", "level")
    run("relabel", path, "level/2.png", "upright", "--contributor", "cid")
    with knowmore.open(path) as store:
        store.keep(["level/2.png", "level/0.png"])
    (photos / "level/0.png").rename(photos / "upright/new.png")
    (photos / "level/2.png").rename(photos / "level/9.png")
    run("learn", path, photos, "--contributor", "bob", *["--sync"][:sync])
    with knowmore.open(path) as store:
        by_hand, new = (
            ("level/9.png", "upright/new.png") if sync else ("level/2.png", "level/0.png")
        )
        found = store.records([by_hand, new])
        assert [(one.label, one.contributor, one.labeller, one.kept) for one in found] == [
            ("upright", "ann", "cid", True),
            ("upright", "ann", "bob", False),
        ]
        assert store.verify().ok


def test_a_folder_that_is_renamed_keeps_its_contributor(folder, tmp_path):
    path, photos = copied(folder, tmp_path)
    (photos / "upright").rename(photos / "plumb")
    found = json.loads(run("learn", path, photos, "--sync", "--json").stdout)
    assert [found[name] for name in ("added", "moved", "vanished", "forgotten")] == [0, 3, 0, 0]
    assert {one: known(path)[one] for one in ("plumb/0.png", "level/2.png")} == {
        "plumb/0.png": ("plumb", "ann"),
        "level/2.png": ("upright", "ann"),
    }


@pytest.mark.parametrize("sync", [["--sync"], []])
def test_labels_of_pictures_that_moved_belong_to_who_gave_them(sync, folder, tmp_path):
    """A label corrected by hand stays with its giver; the label of a new folder is the source's."""
    photos, path = tmp_path / "photos", tmp_path / "m.km"
    shutil.copytree(folder / "photos", photos)
    run("init", path, "--words", 10)
    run("learn", path, photos, "--contributor", "ann")
    run("relabel", path, "level/0.png", "upright", "--contributor", "zoe")
    (photos / "level/0.png").rename(photos / "level/new.png")
    (photos / "level/1.png").rename(photos / "upright/other.png")
    run("learn", path, photos, *sync, "--contributor", "ben")
    with knowmore.open(path) as store:
        found = {r.id: (r.label, r.contributor, r.labeller) for r in store.records()}
    corrected, moved = (
        ("level/new.png", "upright/other.png") if sync else ("level/0.png", "level/1.png")
    )
    assert found[corrected] == ("upright", "ann", "zoe")
    assert found[moved] == ("upright", "ann", "ben")
    assert len(found) == 12


def test_what_cannot_be_read_is_counted_before_and_after(folder, tmp_path):
    path = tmp_path / "m.km"
    counts = "12 added, 0 skipped, 0 replaced, 0 vanished, 1 unreadable."
    for option, words in (
        (["--dry-run"], f"Would be: {counts} {path} would hold 12 examples.\n"),
        ([], f"{counts} {path} holds 12 examples.\n"),
    ):
        found = run("learn", path, folder / "photos", *option)
        assert (found.exit_code, found.stdout) == (3, words)
        assert found.stderr.startswith("Skipped: 'level/broken.png' cannot be read: it is not a ")


def test_one_class_more_is_seen_as_the_source_sees(model, folder, tmp_path):
    path, photos = tmp_path / "more.km", tmp_path / "photos"
    shutil.copytree(folder / "photos", photos, ignore=lambda *_: ["broken.png"])
    (photos / "slanted").mkdir()
    y, x = np.mgrid[:48, :64]
    for i in range(3):
        pixels = 128 + 80 * np.sin((x + y) / 2 + i)
        Image.fromarray(pixels.astype(np.uint8)).save(photos / "slanted" / f"{i}.png")
    kind = ("--kind", "n-plus-one", "--source", model)
    run("init", path, *kind)
    assert json.loads(run("learn", path, photos, "--json").stdout)["added"] == 15
    with knowmore.open(path) as more, knowmore.open(model) as known:
        assert more.notes["pictures"] == known.notes["pictures"]
        rows = [i for i, label in enumerate(more.examples.labels) if label != "slanted"]
        np.testing.assert_array_equal(more.examples.X[rows], known.examples.X)
    with pytest.raises(InvalidInput, match=r"as its source does, which has sift-pyramid\. Leave"):
        run(
            "init",
            tmp_path / "x.km",
            "--kind",
            "n-plus-one",
            "--source",
            model,
            "--features",
            "phog",
        )
    assert not (tmp_path / "x.km").exists()


# -- vectors of new pictures, for whatever answers by vectors ------------------------------------


@pytest.fixture(scope="module")
def new(folder):
    """Stripes of other phases, in coarser noise: pictures that no model has seen."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:48, :64]
    for name, waves in {"upright": x, "level": y, "slanted": x + y}.items():
        (folder / "new" / name).mkdir(parents=True)
        for i in range(4):
            pixels = 128 + 60 * np.sin(waves / 2 + i / 3) + 30 * rng.normal(size=x.shape)
            image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            image.save(folder / "new" / name / f"new {i}.png")
    return folder / "new"


def refused(*words):
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run(*words)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["sift-pyramid", "phog"])
def test_an_exported_model_of_pictures_answers_as_predict_does(kind, folder, new, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    path, graph, table = tmp_path / "m.km", tmp_path / "m.onnx", tmp_path / "new.npz"
    words = ["--words", 20] if kind == "sift-pyramid" else []
    run("init", path, "--features", kind, *words)
    run("learn", path, folder / "photos")
    told = run("export", path, "--onnx", graph)
    assert told.stderr == (
        f"m.onnx takes the vectors of pictures: knowmore features NEW -o new.npz --like {path}\n"
    )
    made = run("features", new, "-o", table, "--like", path, "--no-cache")
    assert "New visual words" not in made.stdout
    found = feature_table(table)
    names = ["label", "scores", "probabilities"]
    session = onnxruntime.InferenceSession(graph)
    labels, scores, probabilities = session.run(names, {"X": found.X})
    lines = run("predict", path, new, "--json").stdout.splitlines()
    want = [json.loads(line) for line in lines]
    assert [one["id"] for one in want] == list(found.names)
    assert [one["label"] for one in want] == labels.tolist()
    by_table = run("predict", path, table, "--json").stdout
    assert [json.loads(line) for line in by_table.splitlines()] == want
    with knowmore.open(path) as store:
        model = store.estimator.model_
        k, A = store.kernel_(found.X, store.examples.X), model.coefficients
        bound = expansion_error(k, A, np.zeros(A.shape[1]))
        assert_within(scores, model.mean(found.X), bound)
        # Chances are made of rounded scores, by a series that is right to 14 digits.
        assert_rounded(probabilities, store.predict_proba(found.X), 1000, 1.0)
        assert_rounded(probabilities.max(axis=1), [one["probability"] for one in want], 1000, 1.0)


def test_a_table_like_a_model_has_its_words_beside_it(model, new, tmp_path):
    table = tmp_path / "new.npz"
    run("features", new, "-o", table, "--like", model, "--no-cache")
    with knowmore.open(model) as store:
        words = store.arrays(WORDS)["centres"]
    saved = KMeansCodebook.load(tmp_path / "new.words.npz")
    np.testing.assert_array_equal(saved.vocabulary_.centres, words)
    # So what learns it is a model of the same features, and both can be merged.
    run("learn", tmp_path / "other.km", table)
    shutil.copy(model, tmp_path / "both.km")
    run("merge", tmp_path / "both.km", tmp_path / "other.km")
    with knowmore.open(tmp_path / "both.km") as store:
        assert len(store) == 12 + 12
    again = run("features", new, "-o", tmp_path / "again.npz", "--like", table, "--no-cache")
    assert again.exit_code == 0
    np.testing.assert_array_equal(feature_table(tmp_path / "again.npz").X, feature_table(table).X)


def test_options_that_contradict_a_model_are_refused(model, new, folder, tmp_path):
    common = new, "-o", tmp_path / "x.npz", "--no-cache"
    like = *common, "--like", model
    assert refused("features", *like, "--kind", "phog", "--words", 9) == (
        "--like settles how features are made. Leave --kind and --words out."
    )
    assert refused("features", *like, "--codebook", "w.npz") == (
        "--like settles how features are made. Leave --codebook out."
    )
    assert refused("features", *like, "--save-codebook", model) == (
        f"{str(model)!r} is what the features are to be like. Save the words in another file."
    )
    assert refused("features", *common, "--codebook", model) == (
        f"{str(model)!r} is a model, and --codebook takes saved visual words. To describe pictures "
        f"as the model does: --like {model}."
    )
    (folder / "b.csv").write_text("a,label\n1,x\n2,y\n")
    run("learn", tmp_path / "numbers.km", folder / "b.csv")
    assert refused("features", *common, "--like", tmp_path / "numbers.km") == (
        f"{str(tmp_path / 'numbers.km')!r} has learnt no pictures, so it does not say how features "
        f"are made. Name a model of pictures, or a table that `knowmore features` wrote."
    )
    run("init", tmp_path / "empty.km", "--features", "phog")
    assert "has learnt no pictures" in refused("features", *common, "--like", tmp_path / "empty.km")
    assert "none.km" in refused("features", *common, "--like", tmp_path / "none.km")
    assert not (tmp_path / "x.npz").exists()
    assert not (tmp_path / "none.km").exists()


def test_features_in_other_words_are_noticed_by_all_that_ask(model, new, tmp_path):
    table = tmp_path / "other.npz"
    run("features", new, "-o", table, "--words", 20, "--no-cache")
    with knowmore.open(model) as store:
        assert feature_table(table).X.shape[1] == store.n_features_in_
        before = store.log()
    want = (
        f"The features in {str(table)!r} cannot be used with this model: they have other visual "
        f"words. Give the pictures themselves, or make the table again: knowmore features NEW -o "
        f"new.npz --like {model}"
    )
    for command in "learn", "predict", "suggest", "novel":
        assert refused(command, model, table) == want, command
    X = PHOG().transform([new / "level/new 0.png"])
    np.savez(tmp_path / "plain.npz", X=X)
    assert refused("predict", model, tmp_path / "plain.npz") == (
        f"The model has learnt pictures, and {str(tmp_path / 'plain.npz')!r} holds plain numbers. "
        f"Teach these to a model of their own, or describe pictures as this one does: knowmore "
        f"features NEW -o new.npz --like {model}"
    )
    run("learn", tmp_path / "other.km", table)
    assert "made from pictures in another way" in refused("merge", model, tmp_path / "other.km")
    with knowmore.open(model) as store:
        assert store.log() == before


def test_a_test_set_may_have_files_of_the_same_names(model, folder, tmp_path):
    """train/upright/0.png is not test/upright/0.png; the same picture is held, though."""
    for name, other in {"upright": "level", "level": "upright"}.items():
        (tmp_path / "test" / name).mkdir(parents=True)
        shutil.copy(folder / f"photos/{other}/0.png", tmp_path / f"test/{name}/0.png")
        shutil.copy(folder / f"photos/{name}/1.png", tmp_path / f"test/{name}/1.png")
    result = run("evaluate", model, tmp_path / "test")
    assert result.stderr.startswith("Left out: 2 that the model holds.")
    assert result.stdout.startswith("0.0% right: 0 of 2, each of ")


def test_a_service_says_which_vectors_it_takes(model):
    with knowmore.open(model) as store, pytest.raises(InvalidInput) as caught:
        Answering(store, 0.05)([[1.0, 2.0]])
    assert str(caught.value) == (
        "Row 0 has 2 numbers, but the model has 420 features. They are those of a picture: "
        "knowmore features NEW -o new.npz --like m.km"
    )


@pytest.mark.slow
def test_a_service_for_label_studio_says_what_it_lacks_for_pictures(model, monkeypatch):
    for name in "LABEL_STUDIO_URL", "LABEL_STUDIO_API_KEY":
        monkeypatch.delenv(name, raising=False)
    with served(model, "a" * 16) as (_, printed):
        end = time.monotonic() + 30
        while len(lines := printed.read_text().splitlines()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
    assert lines[1:] == [
        "Set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY first: without them the pictures of tasks "
        "are fetched with a token that newer Label Studios refuse, and then nothing is learnt."
    ]


@pytest.mark.parametrize("is_there", [True, False])
def test_the_first_pictures_say_which_features_they_took(is_there, folder, tmp_path, monkeypatch):
    if is_there and not is_installed():
        pytest.skip("needs the extra embeddings")
    monkeypatch.setattr("knowmore.images.extraction.is_installed", lambda: is_there)
    learnt = "learn", tmp_path / "m.km", folder / "photos"
    note = (
        "Pictures are described by a network (efficientnet-lite0). Other features: knowmore init "
        "NEW.km --features sift-pyramid"
        if is_there
        else "Pictures are described by visual words; a network sees more: pip install "
        '"knowmore[embeddings]"'
    )
    assert note in run(*learnt).stderr.splitlines()
    with knowmore.open(tmp_path / "m.km") as store:
        kind = "embedding" if is_there else "sift-pyramid"
        assert store.notes["pictures"]["about"]["kind"] == kind
    # It is settled now, and who asked for features knows them.
    assert "Pictures are described" not in run(*learnt).stderr
    run("init", tmp_path / "asked.km", "--features", "phog")
    found = run("learn", tmp_path / "asked.km", folder / "photos")
    assert "Pictures are described" not in found.stderr
