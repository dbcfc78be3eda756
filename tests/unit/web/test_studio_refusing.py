"""Not this class: in the file for examples, and until the studio ends for all else."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO

import numpy as np
import pytest
from fruit import COLOURS, encoded, fruit, painted, picture
from PIL import Image
from sklearn.gaussian_process.kernels import RBF
from studied import enter, studying

import knowmore
from knowmore import GPClassifier
from knowmore.insight import suspects
from knowmore.web import Door, Studio, studio_application
from knowmore.workbench import UnlabelledPool


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    labels = np.where(X[:, 0] > 0, "a", "b")
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(X, labels, [f"n{i}" for i in range(30)], columns=["left", "up"])
    return tmp_path / "m.km"


def test_an_example_is_put_aside_and_comes_back(path):
    with studying(path) as door:
        visitor = enter(door)
        assert visitor.get("/api/state")["refuses"]
        assert visitor.get("/api/aside")["aside"] == []
        status, done = visitor.edit(verb="refuse", ids=["n3"])
        assert (status, done["n"]) == (200, 29)
        with knowmore.open(path) as store:
            label, (x, y) = store.refused()["n3"][0], store.aside_features()[0].tolist()
        (found,) = visitor.get("/api/aside")["aside"]
        shown = {"kind": "features", "values": {"left": x, "up": y}, "count": 2}
        other = {"a": "b", "b": "a"}[label]
        assert (found.pop("preferred"), found.pop("probability")) == (other, 1.0)
        assert found == {"id": "n3", "refused": [label], "shown": shown}
        assert visitor.edit(verb="refuse", ids=["n3"])[0] == 422
        assert visitor.edit(verb="undo")[1]["n"] == 30
        assert visitor.get("/api/aside")["aside"] == []
        visitor.edit(verb="redo")
        assert visitor.edit(verb="relabel", ids=["n3"], y="c")[1]["n"] == 30
        assert visitor.get("/api/aside")["aside"] == []
        last = visitor.get("/api/log")["entries"][0:2]
        assert [(one["verb"], one["id"]) for one in last][1] == ("refuse", "n3")
        visitor.edit(verb="refuse", ids=["n3"])
        visitor.edit(verb="forget", ids=["n3"], confirm=True)
        assert visitor.get("/api/aside")["aside"] == []


def test_what_the_others_say_of_one_that_was_put_aside_is_told(tmp_path):
    rng = np.random.default_rng(0)
    centres, names = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]), np.array(["a", "b", "c"])
    X, labels = np.repeat(centres, 8, axis=0) + rng.normal(size=(24, 2)), np.repeat(names, 8)
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(X, labels, [f"n{i}" for i in range(24)])
        store.relabel("n3", "b")
    with studying(tmp_path / "m.km") as door:
        visitor = enter(door)
        visitor.edit(verb="refuse", ids=["n3"])
        (found,) = visitor.get("/api/aside")["aside"]
        with knowmore.open(tmp_path / "m.km") as store:
            (a, _, c), *_ = store.estimator.predict_proba(X[3:4])
        assert (found["preferred"], found["refused"]) == ("a", ["b"])
        assert found["probability"] == a / (a + c)


def test_a_row_of_the_pool_is_asked_about_without_the_class(path):
    rows = np.array([[2.0, 0.0], [-2.0, 0.0]])
    with studying(path, UnlabelledPool("p.csv", ("one", "two"), rows)) as door:
        visitor = enter(door)

        def asked():
            return visitor.post("/api/question", {"skip": []})[1]["question"]

        first = asked()
        guess = first["chances"][0]["label"]
        assert (first["refused"], first["alike"]) == ([], 0)
        body = {"row": first["id"], "label": guess}
        assert visitor.post("/api/refuse", body)[0] == 200
        again = asked()
        assert (again["id"], again["refused"]) == (first["id"], [guess])
        assert guess not in [one["label"] for one in again["chances"]]
        # Answered, put aside and so asked about again, it is neither of both.
        visitor.edit(verb="answer", id=first["id"], y="c")
        assert asked()["id"] != first["id"]
        visitor.edit(verb="refuse", ids=[first["id"]])
        assert {*asked()["refused"]} in ({"c", guess}, set())
        for body, words in (
            ({"row": "nobody", "label": "a"}, "The pool has no row 'nobody'."),
            ({"label": "a"}, "Give either the id of a row of the pool or the number of a picture."),
        ):
            status, said = visitor.post("/api/refuse", body)
            assert (status, said["error"]) == (422, words)


def test_a_picture_that_waits_is_taken_for_another_class(tmp_path):
    path = fruit(tmp_path)
    with studying(path) as door:
        visitor = enter(door)
        kind = {"Content-Type": "application/octet-stream"}
        brought = visitor(
            "POST", "/api/pictures?name=new.png", picture(COLOURS["apple"], 900), kind
        )[1]
        assert brought["label"] == "apple"
        for left in (2, 1, 0):
            (one,) = visitor.get("/api/desk")["waiting"]
            body = {"picture": one["picture"], "label": one["label"]}
            assert visitor.post("/api/refuse", body)[0] == 200
            (after,) = visitor.get("/api/desk")["waiting"]
            assert (after["label"] is None) == (left == 0)
            assert after["label"] != one["label"]
        assert (after["unknown"], visitor.get("/api/state")["number"]) == (True, 1)


def test_a_suspect_and_what_contradicts_it_are_seen(tmp_path):
    """Large, from the folder where they were learnt; a held thumbnail as it is."""
    path = fruit(tmp_path)
    big = encoded(painted(COLOURS["plum"], 7).resize((900, 700)))
    (tmp_path / "fruit" / "plum" / "0.png").write_bytes(big)
    with knowmore.open(path) as store:
        store.relabel("lime/0.png", "apple")
        found = suspects(store.estimator)
        at = found.ids.tolist().index("lime/0.png")
        want = [*found.part([at]).contradicting[0]]
    with studying(path) as door:
        visitor = enter(door)
        listed = visitor.get("/api/suspects")["suspects"]
        (one,) = [each for each in listed if each["id"] == "lime/0.png"]
        assert one["shown"] == {"kind": "picture"}
        against = visitor.get("/api/against", id=json.dumps("lime/0.png"))["against"]
        assert against == [{"id": name, "label": "lime"} for name in want]
        assert visitor.get("/api/against", id=json.dumps("plum/1.png"))["against"] == []
        sizes = []
        for large in ("false", "true"):
            query = {"id": json.dumps("lime/1.png"), "large": large}
            sizes.append(Image.open(BytesIO(visitor.get("/api/thumbnail", **query))).size)
        # The painted one is no larger than that.
        assert sizes == [(64, 48)] * 2
        visitor.edit(verb="refuse", ids=["lime/0.png"])
        aside = visitor.get("/api/thumbnail", id=json.dumps("lime/0.png"))
        assert Image.open(BytesIO(aside)).size == (64, 48)


def test_settings_are_looked_for_and_can_be_taken_back(tmp_path):
    path = tmp_path / "m.km"
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(40, 2))
    with knowmore.open(path, GPClassifier(RBF(0.01), noise=0.1)) as store:
        store.add(X, np.where(X[:, 0] > 0, "a", "b"))
    with studying(path) as door:
        visitor = enter(door)
        # It is told what is done while the file is opened; then nothing is.
        assert set(visitor.get("/api/progress")) == {"open", "doing", "share"}
        before = visitor.get("/api/state")
        assert visitor.get("/api/progress") == {"open": True, "doing": "", "share": None}
        assert "can say nothing" in visitor.get("/api/advice")["tune"]
        status, done = visitor.edit(verb="tune")
        assert (status, done["number"]) == (200, 2)
        after = visitor.get("/api/state")
        assert after["settings"] != before["settings"]
        assert after["loo_accuracy"] > before["loo_accuracy"]
        assert visitor.get("/api/advice")["tune"] == ""
        assert visitor.get("/api/progress")["doing"] == ""
        visitor.edit(verb="undo")
        assert visitor.get("/api/state")["settings"] == before["settings"]
        # It was looked for a moment ago.
        assert visitor.get("/api/advice")["tune"] == ""


def test_a_file_that_cannot_be_opened_is_told(tmp_path):
    told = []

    def opens(progress):
        progress.tell("Opening")
        return Studio(knowmore.open(tmp_path / "nowhere.km"))

    app = studio_application(opens, Door("127.0.0.1", 1), told.append)

    async def lived():
        async with app.router.lifespan_context(app):
            while not told:
                await asyncio.sleep(0.01)

    asyncio.run(lived())
    assert "nowhere.km" in str(told[0])


def test_chances_are_of_the_classes_that_are_left_and_what_is_unlike_all_is_said(tmp_path):
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    X = np.repeat(centres, 8, axis=0) + rng.normal(size=(24, 2))
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(X, np.repeat(["a", "b", "c"], 8))
    rows = np.array([[1.0, 0.5], [90.0, 90.0]])
    with studying(tmp_path / "m.km", UnlabelledPool("p.csv", ("near", "far"), rows)) as door:
        visitor = enter(door)

        def asked(skip):
            return visitor.post("/api/question", {"skip": [skip]})[1]["question"]

        assert asked("near")["unknown"]
        before = asked("far")
        assert not before["unknown"]
        first = before["chances"][0]
        visitor.post("/api/refuse", {"row": "near", "label": first["label"]})
        after = asked("far")
        assert first["label"] not in [one["label"] for one in after["chances"]]
        assert after["reason"].endswith(f"; it is not {first['label']}")
        left = sum(one["probability"] for one in before["chances"][1:])
        want = [one["probability"] / left for one in before["chances"][1:]]
        assert [one["probability"] for one in after["chances"]] == want
