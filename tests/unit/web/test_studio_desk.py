"""The desk: answers about pictures equal the library's; only remade ones are shown."""

from __future__ import annotations

import io
import json
import struct
import zlib
from copy import copy
from urllib.parse import quote

import numpy as np
import pytest
from fruit import COLOURS, SKY, encoded, fruit, painted, picture
from PIL import Image
from studied import KEYS, Visitor, enter, studying
from tolerance import assert_rounded, assert_within, tolerance

import knowmore
from knowmore import ForestGPClassifier, GPClassifier, LinearGPClassifier, LSSVMClassifier
from knowmore.images.sources import Picture
from knowmore.insight import explain, grounds
from knowmore.web import pictures as desk
from knowmore.workbench import Predictor, describer_of


@pytest.fixture
def path(tmp_path):
    return fruit(tmp_path)


@pytest.fixture
def visitor(path):
    with studying(path) as door:
        yield enter(door)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """For questions that change nothing."""
    path = fruit(tmp_path_factory.mktemp("desk"))
    with studying(path) as door:
        yield enter(door), path


def bring(visitor, data, name="new.png", **headers):
    kind = {"Content-Type": "application/octet-stream", **headers}
    return visitor("POST", f"/api/pictures?name={quote(name)}", data, kind)[:2]


def brought(visitor, data, name="new.png"):
    status, body = bring(visitor, data, name)
    assert status == 200, body
    return body


def thumbnail(visitor, **query):
    """The decoded picture that the page shows for an example or a waiting picture."""
    query = {name: json.dumps(one) for name, one in query.items()}
    words = "&".join(f"{name}={quote(one)}" for name, one in query.items())
    status, body, headers = visitor("GET", f"/api/thumbnail?{words}")
    assert status == 200, body
    image = Image.open(io.BytesIO(body))
    assert headers["content-type"] == f"image/{image.format.lower()}"
    return image


def same_picture(shown, image):
    """Is it the picture that was remade, but for what JPEG loses?"""
    assert (shown.format, shown.size) == ("JPEG", image.size)
    return abs(np.asarray(shown, float) - np.asarray(image.convert("RGB"), float)).mean() < 6


def pieces(data, size=12):
    """All runs of so many bytes. JPEG files share their tables, and what is plain in them."""
    return {data[i : i + size] for i in range(len(data) - size)}


# -- what is said -------------------------------------------------------------------------------


def test_the_board_is_what_the_file_says(shared):
    visitor, path = shared
    board = visitor.get("/api/desk")
    with knowmore.open(path) as store:
        left = store.leave_one_out()
        assert [one["id"] for one in board["examples"]] == store.ids_.tolist()
        assert [one["label"] for one in board["examples"]] == store.examples.labels.tolist()
        assert [one["predicted"] for one in board["examples"]] == left.predicted.tolist()
        wrong = (left.predicted != left.labels) & ~left.silent
        assert [one["wrong"] for one in board["examples"]] == wrong.tolist()
    assert visitor.get("/api/state")["pictures"] is True


def test_a_picture_is_answered_as_predict_answers(visitor, path, tmp_path):
    for seed, colour in enumerate([*COLOURS.values(), SKY]):
        data = picture(colour, 900 + seed)
        said = brought(visitor, data, f"{seed}.png")
        (tmp_path / "one.png").write_bytes(data)
        with knowmore.open(path) as store:
            (row,) = describer_of(store).vectors([Picture("one.png", tmp_path / "one.png")])
            (want,) = Predictor(store, 0.05, keep=False)(row[None])
        assert (said["label"], said["unknown"]) == (want.label, want.unknown)
        assert_rounded(said["probability"], want.probability)
        assert_rounded(said["std"], want.std)
        assert said["unknown"] == (colour == SKY)
    waiting = visitor.get("/api/desk")["waiting"]
    assert [one["name"] for one in waiting] == ["0.png", "1.png", "2.png", "3.png"]
    # The same once more is the same, whatever its name; and nothing was written.
    assert brought(visitor, data, "again.png")["picture"] == waiting[-1]["picture"]
    assert len(visitor.get("/api/desk")["waiting"]) == 4
    with knowmore.open(path) as store:
        assert [one.verb for one in store.log()] == ["learn"]


def test_pictures_are_learnt_undone_and_forgotten_for_ever(visitor, path):
    first, second = (
        brought(visitor, picture(SKY, seed), f"../sky/{seed}.png")["picture"] for seed in (1, 2)
    )
    shown = visitor("GET", f"/api/thumbnail?picture={first}")[1]
    status, edited = visitor.edit(key="learn once", verb="learn", pictures=[first, second], y="sky")
    assert (status, edited["ids"]) == (200, ["1.png", "2.png"])
    again = visitor.edit(key="learn once", verb="learn", pictures=[first, second], y="sky")
    assert again == (status, edited)
    assert visitor.get("/api/desk")["waiting"] == []
    status, body = visitor.edit(verb="learn", pictures=[first], y="sky")
    assert status == 422
    assert body["error"] == f"No picture {first} waits. It may be decided upon already."
    with knowmore.open(path) as store:
        record, other = store.records(["1.png", "2.png"])
        assert (record.label, record.contributor, record.origin) == ("sky", "studio", None)
        assert record.thumbnail == shown
        assert len(store) == 20
    assert same_picture(thumbnail(visitor, id="1.png"), painted(SKY, 1))
    # Undone it waits again, done again it does not.
    visitor.edit(verb="undo")
    assert [one["picture"] for one in visitor.get("/api/desk")["waiting"]] == [first, second]
    visitor.edit(verb="redo")
    assert visitor.get("/api/desk")["waiting"] == []
    # A new class of one that came back, under the next free name.
    third = brought(visitor, picture(SKY, 3), "1.png")["picture"]
    assert visitor.edit(verb="learn", pictures=[third], y=["sea"])[1]["ids"] == ["1 (2).png"]
    # Forgotten, no byte of it is left anywhere, and it does not wait again.
    own = pieces(shown) - pieces(other.thumbnail)
    before = path.read_bytes()
    assert sum(piece in before for piece in own) > 0.9 * len(own) > 100
    assert visitor.edit(verb="forget", ids=["1.png"], confirm=True)[0] == 200
    assert visitor.get("/api/desk")["waiting"] == []
    after = path.read_bytes()
    assert not any(piece in after for piece in own)
    assert visitor("GET", "/api/thumbnail?id=%221.png%22")[0] == 422
    assert same_picture(thumbnail(visitor, id="2.png"), painted(SKY, 2))
    with knowmore.open(path) as store:
        assert store.verify().ok


def test_one_that_waits_again_gives_its_name_away(visitor, path):
    first = brought(visitor, picture(SKY, 1))["picture"]
    visitor.edit(verb="learn", pictures=[first], y="sky")
    visitor.edit(verb="undo")
    second = brought(visitor, picture(SKY, 2))["picture"]
    assert visitor.edit(verb="learn", pictures=[second], y="sky")[1]["ids"] == ["new.png"]
    assert [one["picture"] for one in visitor.get("/api/desk")["waiting"]] == [first]
    with knowmore.open(path) as store:
        store.forget("new.png")
    assert [one["picture"] for one in visitor.get("/api/desk")["waiting"]] == [first]
    assert visitor.edit(verb="learn", pictures=[first], y="sky")[1]["ids"] == ["new.png"]
    assert same_picture(thumbnail(visitor, id="new.png"), painted(SKY, 1))


def test_what_was_learnt_is_seen_after_a_restart(path):
    with studying(path) as door:
        visitor = enter(door)
        number = brought(visitor, picture(SKY, 1))["picture"]
        visitor.edit(verb="learn", pictures=[number], y="sky")
        visitor.edit(verb="relabel", ids=["new.png"], y="plum")
    with studying(path) as door:
        visitor = enter(door)
        assert same_picture(thumbnail(visitor, id="new.png"), painted(SKY, 1))
        assert visitor.get("/api/desk")["waiting"] == []


def test_pictures_are_dismissed(visitor):
    number = brought(visitor, picture(SKY, 1))["picture"]
    assert visitor.post("/api/dismiss", {"pictures": [number]}) == (200, {"dismissed": 1})
    assert visitor.get("/api/desk")["waiting"] == []
    status, body = visitor.post("/api/dismiss", {"pictures": [number]})
    assert (status, "No picture" in body["error"]) == (422, True)
    assert visitor("GET", f"/api/thumbnail?picture={number}")[0] == 422


def test_answers_follow_edits(visitor, path):
    before = [brought(visitor, picture(SKY, seed)) for seed in (1, 2, 3)]
    assert all(one["unknown"] for one in before)
    asked = {"verb": "learn", "pictures": [before[0]["picture"]], "y": "sky"}
    status, would = visitor.post("/api/whatif", asked)
    assert status == 200
    visitor.edit(**asked)
    after = visitor.get("/api/desk")["waiting"]
    assert [one["label"] for one in after] == ["sky", "sky"]
    told = {one["picture"]: one["to"] for one in would["pictures"]}
    assert told == {one["picture"]: "sky" for one in (*before[:1], *after)}
    with knowmore.open(path) as store:
        X = store.examples.X
        (want,) = Predictor(store, 0.05, keep=False)(X[-1:])
        assert (want.label, len(X)) == ("sky", 19)


def test_what_if_is_what_happens(visitor, path):
    ids = ["apple/0.png", "apple/1.png", "apple/2.png", "apple/3.png"]
    before = {one["id"]: one["predicted"] for one in visitor.get("/api/desk")["examples"]}
    asked = {"verb": "relabel", "ids": ids, "y": "lime"}
    _, would = visitor.post("/api/whatif", asked)
    assert would["flips"]
    visitor.edit(**asked)
    after = {one["id"]: one["predicted"] for one in visitor.get("/api/desk")["examples"]}
    flips = {one["id"]: (one["from"], one["to"]) for one in would["flips"]}
    assert flips == {one: (before[one], after[one]) for one in before if before[one] != after[one]}
    assert visitor.get("/api/state")["loo_accuracy"] == would["accuracy_after"]


def naive(examples, rows, x, label, settings=(None, None)):
    """The score of a label at x by a fresh fit of some rows, and the kernel and noise."""
    ids = [examples.names[row] for row in rows]
    fresh = GPClassifier(*settings).fit(examples.X[rows], examples.labels[rows], ids)
    score = fresh.decision_function(x)[0][fresh.classes_.tolist().index(label)]
    return score, (fresh.kernel_, fresh.noise_)


@pytest.mark.parametrize("what", ["example", "picture"])
def test_explanations_are_exact(visitor, path, what):
    query, own = {"id": '"plum/2.png"'}, "plum/2.png"
    if what == "picture":
        query = {"picture": brought(visitor, picture(COLOURS["plum"], 77))["picture"]}
    found = visitor.get("/api/explain", **query)
    with knowmore.open(path) as store:
        examples = store.examples
        x = examples.X[examples.rows((own,))]
        if what == "picture":
            (row,) = describer_of(store).vectors([picture(COLOURS["plum"], 77)])
            x, own = row[None], None
        others = [i for i, one in enumerate(examples.names) if one != own]
        # An example is explained by the model that never saw it, with the settings of that.
        score, (kernel, noise) = naive(examples, others, x, "plum")
        K, k = kernel(examples.X) + noise * np.eye(len(examples)), kernel(examples.X, x)
        bound = tolerance(K) * np.linalg.norm(k) * np.linalg.norm(np.linalg.inv(K), 2) * len(K)
        assert found["label"] == "plum"
        assert_within(found["score"], score, bound)
        for one in found["nearest"] + found["against"]:
            rest = [i for i in others if examples.names[i] != one["id"]]
            without, _ = naive(examples, rest, x, "plum", (kernel, noise))
            assert_within(one["score_without"], without, bound)
            assert one["label"] == examples.labels[examples.names.index(one["id"])]
        near = np.argsort(-k[others, 0], kind="stable")[:4]
        assert [one["id"] for one in found["nearest"]] == [examples.names[others[i]] for i in near]
        fresh = GPClassifier(kernel).fit(
            examples.X[others], examples.labels[others], ids=[examples.names[i] for i in others]
        )
        want = explain(fresh, x, "plum")
        order = np.argsort(-want.score_without, kind="stable")[:4]
        higher = [i for i in order if want.score_without[i] > want.score]
        assert [one["id"] for one in found["against"]] == want.ids[higher].tolist()
        gone = []
        for one in found["grounds"]:
            gone += one["ids"]
            rest = [i for i in others if examples.names[i] not in gone]
            without, _ = naive(examples, rest, x, "plum", (kernel, noise))
            assert_within(one["score_left"], without, bound)
        assert found["instead"] == grounds(fresh, x, "plum", 4).instead


# -- what is shown ------------------------------------------------------------------------------


def test_thumbnails_are_those_of_the_source(shared):
    visitor, path = shared
    shown = thumbnail(visitor, id="lime/3.png")
    assert same_picture(shown, Image.open(path.parent / "fruit/lime/3.png"))


def test_a_source_that_is_gone_or_changed_is_not_shown(visitor, path):
    folder = path.parent / "fruit"
    (folder / "apple/0.png").unlink()
    painted(SKY, 5).save(folder / "apple/1.png")
    (folder / "apple/2.png").write_bytes(b"no picture")
    (folder / "apple/3.png").rename(path.parent / "outside.png")
    (folder / "apple/3.png").symlink_to(path.parent / "outside.png")
    for i in range(4):
        assert thumbnail(visitor, id=f"apple/{i}.png").size == (1, 1)
    assert thumbnail(visitor, id="apple/4.png").size == (64, 48)


@pytest.mark.parametrize(
    "one",
    [
        '"../fruit.km"',
        '"../../etc/passwd"',
        '"/etc/passwd"',
        '"apple/../apple/0.png"',
        '"apple\\u0000/0.png"',
        '"apple/0.png/"',
        '"%2e%2e/x.png"',
        '"apple/9.png"',
        "7",
        "true",
        "1e400",
        "[1]",
        '{"a": 1}',
        '"',
        "",
        '"\\ud800"',
        '"' + "x" * 300 + '"',
        "[" * 5000,
    ],
)
def test_only_examples_are_shown(shared, one):
    for route in ("thumbnail", "explain"):
        status, body, _ = shared[0]("GET", f"/api/{route}?id={quote(one)}")
        assert (status, set(body)) == (422, {"error"}), body


def test_ids_of_a_hostile_file_lead_nowhere(path):
    """A file that somebody else wrote may name anything as its source."""
    outside = path.parent / "secret.png"
    painted(SKY, 1).save(outside)
    names = ["../secret.png", str(outside), "fruit/../../secret.png", "a\0.png", "x" * 150 + ".png"]
    with knowmore.open(path) as store:
        X = store.examples.X[: len(names)]
        contents = [desk.content(outside.read_bytes(), Picture(n, outside).label) for n in names]
        store.add(X, ["lime"] * len(names), names, origins="fruit", contents=contents)
        store.add(X[:1], ["lime"], ["page"], thumbnails=[b"<script>alert(1)</script>"])
        kept = encoded(painted(SKY, 2).resize((900, 300)), comment=b"<script>")
        store.add(X[:1], ["lime"], ["big"], thumbnails=[kept])
    with studying(path) as door:
        visitor = enter(door)
        for name in [*names, "page"]:
            assert thumbnail(visitor, id=name).size == (1, 1)
        shown = thumbnail(visitor, id="big")
        assert (shown.size, shown.format, "comment" in shown.info) == ((192, 64), "JPEG", False)


def test_what_is_shown_is_made_anew(visitor):
    """Neither notes nor other bytes of what was sent are in what is shown."""
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = "secret place", 6
    image = painted(SKY, 1, size=(640, 480))
    data = encoded(image, "JPEG", exif=exif, comment=b"secret word") + b"<script>"
    number = brought(visitor, data, "<img>.jpg")["picture"]
    status, body, headers = visitor("GET", f"/api/thumbnail?picture={number}")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert headers["x-content-type-options"] == "nosniff"
    assert b"secret" not in body
    assert b"script" not in body
    assert Image.open(io.BytesIO(body)).size == (144, 192)


# -- hostile pictures ---------------------------------------------------------------------------


def bomb(width=60_000, height=60_000):
    """A small PNG file of many pixels."""

    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(bytes(10_000)))
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is not a picture in"),
        (b"no picture", "it is not a picture in"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "it is not a picture in"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "it is not a picture in"),
        (picture(SKY, 1)[:60], "cannot be read"),
        (picture(SKY, 1, kind="JPEG")[:700], "It may be cut off"),
        (bomb(), "pixels"),
        (bomb(9_500, 9_500), "pixels"),
        (bomb(2**31 - 1, 2**31 - 1), ""),
        (bomb(0, 7), ""),
        (b"RIFF\xff\xff\xff\xffWEBPVP8 " + bytes(50), ""),
        (b"GIF89a" + bytes(40), ""),
        (b"II*\0\xff\xff\xff\x7f", ""),
    ],
)
def test_what_is_no_picture_is_refused_in_words(shared, data, words):
    visitor, _ = shared
    status, body = bring(visitor, data, "odd.png")
    assert (status, words in body["error"]) == (422, True), body
    assert body["error"].startswith("'odd.png' ")
    assert visitor.get("/api/desk")["waiting"] == []


def test_only_a_page_of_the_studio_brings_pictures(shared):
    visitor, _ = shared
    data, port = picture(SKY, 1), visitor.door.port
    assert bring(Visitor(visitor.door), data)[0] == 401
    for origin in (None, "null", "http://evil.example", f"http://localhost:{port}"):
        assert bring(visitor, data, Origin=origin)[0] == 403
    assert bring(visitor, data, Host=f"evil.example:{port}")[0] == 421
    assert bring(visitor, data, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    for kind in (None, "image/png", "text/plain", "multipart/form-data; boundary=x"):
        status, body = bring(visitor, data, **{"Content-Type": kind})
        assert (status, "application/octet-stream" in body["error"]) == (415, True)
    status, body = bring(visitor, data, **{"Content-Length": "25000001"})
    assert (status, "25,000,000 bytes" in body["error"]) == (413, True)
    assert bring(visitor, data, "x" * 301)[0] == 422
    assert visitor("GET", "/api/pictures")[0] == 405
    assert visitor.get("/api/desk")["waiting"] == []


def test_so_many_may_wait(visitor, monkeypatch):
    monkeypatch.setattr(desk, "MOST_PICTURES", 3)
    numbers = [brought(visitor, picture(SKY, seed))["picture"] for seed in range(3)]
    status, body = bring(visitor, picture(SKY, 9))
    assert status == 422
    assert body["error"].startswith("3 pictures wait already, and no more can.")
    # Those that were learnt make room, and as many are kept at most.
    for turn in range(3):
        visitor.edit(verb="learn", pictures=numbers, y="sky")
        numbers = [brought(visitor, picture(SKY, 20 + 5 * turn + i))["picture"] for i in range(3)]
    assert len(visitor.get("/api/desk")["waiting"]) == 3
    for _ in range(3):
        visitor.edit(verb="undo")
    assert len(visitor.get("/api/desk")["waiting"]) == 6


@pytest.mark.parametrize(
    "body",
    [
        {"pictures": [1], "y": "sky"},
        {"pictures": [], "y": "sky"},
        {"pictures": [-1], "y": "sky"},
        {"pictures": [10**30], "y": "sky"},
        {"pictures": ["1"], "y": []},
        {"pictures": [1.5], "y": "sky"},
        {"pictures": [1] * 201, "y": "sky"},
        {"pictures": "1", "y": "sky"},
        {"pictures": [1], "y": "sky", "ids": ["a"]},
        {"pictures": [1], "y": ""},
    ],
)
def test_what_cannot_be_learnt_is_said(shared, body):
    visitor, _ = shared
    for status, said in (
        visitor.edit(verb="learn", **body),
        visitor.post("/api/whatif", {"verb": "learn", **body}),
        visitor.post("/api/dismiss", body),
    ):
        assert (status, set(said)) == (422, {"error"})


def test_a_label_of_another_kind_changes_nothing(visitor, path):
    number = brought(visitor, picture(SKY, 1))["picture"]
    for y in ([["a"]], ["a", "b"], 1.5, [None]):
        status, body = visitor.edit(verb="learn", pictures=[number], y=y)
        assert (status, set(body)) == (422, {"error"}), y
    assert visitor.edit(verb="learn", pictures=[number, number], y="sky")[0] == 422
    assert len(visitor.get("/api/desk")["waiting"]) == 1
    with knowmore.open(path) as store:
        assert len(store) == 18


# -- other models -------------------------------------------------------------------------------


@pytest.mark.slow(fast=["estimator0"])
@pytest.mark.parametrize(
    "estimator", [LSSVMClassifier(), LinearGPClassifier(), ForestGPClassifier(capacity=8)]
)
def test_other_kinds_of_models(tmp_path, estimator):
    path = fruit(tmp_path, estimator=copy(estimator))
    with studying(path) as door:
        visitor = enter(door)
        said = brought(visitor, picture(COLOURS["lime"], 60))
        with knowmore.open(path) as store:
            (row,) = describer_of(store).vectors([picture(COLOURS["lime"], 60)])
            (want,) = Predictor(store, 0.05, keep=False)(row[None])
        assert [said[name] for name in want._fields] == [*want]
        assert len(visitor.get("/api/desk")["examples"]) == 18
        query = {"picture": said["picture"]}, {"id": '"lime/2.png"'}
        for one in query:
            words = "&".join(f"{name}={quote(str(value))}" for name, value in one.items())
            status, body, _ = visitor("GET", f"/api/explain?{words}")
            linear = isinstance(estimator, LinearGPClassifier)
            assert status == (422 if linear else 200), body
        asked = {"verb": "learn", "pictures": [said["picture"]], "y": "lime"}
        assert visitor.post("/api/whatif", asked)[0] in (200, 422)
        assert visitor.edit(**asked)[1]["ids"] == ["new.png"]


def test_a_model_of_numbers_has_no_desk(tmp_path):
    path = tmp_path / "numbers.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    with studying(path) as door:
        visitor = enter(door)
        assert visitor.get("/api/state")["pictures"] is False
        status, body = bring(visitor, picture(SKY, 1))
        assert (status, body["error"][:17]) == (422, "This is no model ")
        assert thumbnail(visitor, id=0).size == (1, 1)
        assert visitor("GET", "/api/explain?id=0")[0] == 200
        assert visitor("GET", "/api/thumbnail?id=0&picture=1")[0] == 422
        assert visitor("GET", "/api/thumbnail")[0] == 422


def test_a_model_that_has_forgotten_all(visitor, path):
    brought(visitor, picture(SKY, 1))
    with knowmore.open(path) as store:
        store.forget(store.ids_.tolist())
    board = visitor.get("/api/desk")
    assert (board["examples"], len(board["waiting"])) == ([], 1)
    status, body = bring(visitor, picture(SKY, 2))
    assert (status, "holds no examples" in body["error"]) == (422, True)
    key = {"Idempotency-Key": f"a key of {next(KEYS)}"}
    asked = {"verb": "learn", "pictures": [board["waiting"][0]["picture"]], "y": "sky"}
    assert visitor("POST", "/api/edit", asked, key)[0] == 200
