"""The model asks what the library suggests, and says what the answer will bring."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from studied import enter, studying
from tolerance import assert_rounded, tolerance

import knowmore
from knowmore import ForestGPClassifier, GPClassifier, LinearGPClassifier, LSSVMClassifier
from knowmore.errors import InvalidInput
from knowmore.estimators.shell import unnamed
from knowmore.insight import suggest
from knowmore.web.pool import PoolQuestions
from knowmore.workbench import UnlabelledPool, pool_for

RNG = np.random.default_rng(3)
HELD = RNG.uniform(-1, 1, (12, 2))
LABELS = np.where(HELD[:, 0] > 0, "east", "west")
ROWS = RNG.uniform(-1, 1, (30, 2))
IDS = tuple(f"row {i}" for i in range(30))
KINDS = {
    "gp": lambda: GPClassifier(RBF(0.5), noise=0.05),
    "inverse": lambda: GPClassifier(RBF(0.5), noise=0.05, solver="inverse"),
    "linear": lambda: LinearGPClassifier(noise=0.1),
}


def made(folder, estimator):
    path = folder / "model.km"
    with knowmore.open(path, estimator) as store:
        store.add(HELD, LABELS, contributor="ann")
    return path


@pytest.fixture
def path(tmp_path, request):
    return made(tmp_path, KINDS[getattr(request, "param", "gp")]())


@pytest.fixture
def visitor(path):
    with studying(path, UnlabelledPool("pool.csv", IDS, ROWS, ("x", "y")), pool_for) as door:
        yield enter(door)


def asked(visitor, **body):
    status, found = visitor.post("/api/question", body)
    assert status == 200, found
    return found


def variance(path, rows):
    with knowmore.open(path) as store:
        return store.predict_variance(rows).sum()


@pytest.mark.parametrize("path", [*KINDS], indirect=True)
def test_the_question_is_the_suggestion_and_its_drop_that_of_learning_it(visitor, path):
    left = list(range(30))
    for turn in range(6):
        found = asked(visitor)
        with knowmore.open(path) as store:
            best = suggest(store.estimator, ROWS[left])
            K = RBF(0.5)(store.examples.X) + 0.05 * np.eye(len(store))
        row = left[int(best.indices[0])]
        question = found["question"]
        assert question["id"] == IDS[row]
        assert question["reason"] == best.reasons[0]
        assert question["shown"]["values"] == dict(zip("xy", ROWS[row].tolist(), strict=True))
        before = variance(path, ROWS[left])
        bound = tolerance(K, "inverse") * before * 100
        assert abs(question["variance"] - before) <= bound
        chances = {one["label"]: one["probability"] for one in question["chances"]}
        assert set(chances) == {"east", "west"} | ({"north"} if turn > 2 else set())
        # Whatever its label is.
        label = ("west", "east", "north")[turn % 3]
        status, body = visitor.edit(verb="answer", id=question["id"], y=label)
        assert (status, body["ids"], body["n"]) == (200, [IDS[row]], 13 + turn)
        assert abs(question["drop"] - (before - variance(path, ROWS[left]))) <= bound
        left.remove(row)


def test_an_answer_is_an_edit_that_can_be_undone_and_the_curve_follows(visitor, path):
    first = asked(visitor)
    assert first["pool"] | {"left": 30, "rows": 30, "open": 30} == first["pool"]
    visitor.edit(verb="answer", id=first["question"]["id"], y="east")
    second = asked(visitor)
    assert second["pool"]["left"] == 29
    assert second["question"]["id"] != first["question"]["id"]
    with knowmore.open(path) as store:
        entry, (record,) = store.log()[-1], store.records([first["question"]["id"]])
        left = store.leave_one_out()
    assert (entry.verb, entry.count, entry.contributor) == ("add", 1, "studio")
    assert (record.label, record.origin, record.contributor) == ("east", "pool.csv", "studio")
    right = float(((left.predicted == left.labels) & ~left.silent).mean())
    assert second["curve"] == [[0, first["curve"][0][1]], [1, right]]
    assert visitor.edit(verb="undo")[0] == 200
    third = asked(visitor)
    assert third["question"]["id"] == first["question"]["id"]
    assert_rounded(third["question"]["drop"], first["question"]["drop"], 10_000)
    assert third["curve"] == first["curve"]


def test_skipped_rows_are_not_asked_about(visitor, path):
    first = asked(visitor)["question"]["id"]
    found = asked(visitor, skip=[first])
    with knowmore.open(path) as store:
        rest = [i for i in range(30) if IDS[i] != first]
        best = suggest(store.estimator, ROWS[rest])
    assert found["question"]["id"] == IDS[rest[int(best.indices[0])]]
    assert (found["pool"]["left"], found["pool"]["open"]) == (30, 29)
    assert asked(visitor, skip=[*IDS[:-1]])["question"]["id"] == IDS[-1]
    assert asked(visitor, skip=[*IDS])["question"] is None


def test_what_cannot_be_answered_is_told(visitor):
    for body in (
        {"id": "row 99", "y": "east"},
        {"id": "row 1", "y": None},
        {"id": "row 1"},
        {"id": "row 1", "y": "east", "X": [[0, 0]]},
        {"id": ["row 1"], "y": "east"},
        {"id": "row 1", "y": 7.5},
    ):
        status, found = visitor.edit(verb="answer", **body)
        assert status == 422
        assert found["error"]
    assert visitor.edit(verb="answer", id="row 1", y="east")[0] == 200
    assert visitor.edit(verb="answer", id="row 1", y="east")[0] == 422
    for skip in ("row 1", [None], [[]], ["x"] * 20_001):
        assert visitor.post("/api/question", {"skip": skip})[0] == 422
    assert visitor("GET", "/api/pool/picture?name=row+1")[0] == 422
    assert visitor("GET", "/api/pool/picture")[0] == 422


def test_a_table_is_given_on_the_page(visitor, path):
    text = "id,y,note,x\na,0.25,,0.5\n"
    status, found = visitor.post("/api/pool", {"name": "new.csv", "text": text})
    assert status == 422
    # The model was taught arrays, whose columns have no names.
    assert "'new.csv' has 3 numbers in a row, but the model has learnt 2" in found["error"]
    text = "id,y,x\na,0.25,0.5\nb,,0.75\n70,-0.5,-0.5\na,1,1\n"
    status, found = visitor.post("/api/pool", {"name": "new.csv", "text": "\ufeff" + text})
    assert status == 200, found
    pool = found["pool"]
    # Of two rows with one id the first counts, and a gap is no number.
    assert (pool["name"], pool["rows"], pool["unusable"]) == ("new.csv", 2, 1)
    assert found["question"]["id"] in ("a", "70")
    assert found["curve"][0][0] == 0
    rows = np.array([[0.25, 0.5], [-0.5, -0.5]])
    with knowmore.open(path) as store:
        best = int(suggest(store.estimator, rows).indices[0])
    assert found["question"]["id"] == ("a", "70")[best]


@pytest.mark.slow(fast=2)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2,3\n", "line 2: it has 3 values"),
        ("1,2\n3,4\n", "has numbers in its first line"),
        ('x,y\n"1,2\n', "not CSV"),
        ("x,y\n,\n1,\n", "Nothing in 'new.csv' can be used"),
    ],
)
def test_a_table_that_cannot_be_read(visitor, text, words):
    status, found = visitor.post("/api/pool", {"name": "new.csv", "text": text})
    assert (status, words in found["error"]) == (422, True), found
    assert asked(visitor)["pool"]["name"] == "pool.csv"


def test_a_table_that_is_too_large(visitor):
    rows = "\n".join(f"{i},{i}" for i in range(20_001))
    status, found = visitor.post("/api/pool", {"name": "new.csv", "text": f"x,y\n{rows}"})
    assert status == 422
    assert "has 20,001 rows, but a pool may have 20,000" in found["error"]
    assert visitor.post("/api/pool", {"name": "new.csv", "text": "x" * 8_000_001})[0] == 422
    assert visitor("POST", "/api/pool", {}, {"Content-Length": "10000001"})[0] == 413


def test_rows_without_ids_go_by_their_contents(tmp_path):
    path = made(tmp_path, KINDS["gp"]())
    with knowmore.open(path) as store:
        found = pool_for(store, "new.csv", "x,y\n0,1\n1,0\n0,1\n")
        assert len(found.ids) == 2
        again = pool_for(store, "new.csv", "x,y\n1,0\n0,1\n")
        assert set(again.ids) == set(found.ids)


def test_an_empty_model_begins_anywhere_and_learns_the_names(tmp_path):
    path = tmp_path / "empty.km"
    knowmore.open(path, KINDS["gp"]()).close()
    with studying(path, reader=pool_for) as door:
        visitor = enter(door)
        assert asked(visitor)["pool"] is None
        assert visitor.edit(verb="answer", id="a", y="east")[0] == 422
        text = "id,left,up\na,0,1\nb,1,0\nc,1,1\n"
        found = visitor.post("/api/pool", {"name": "new.csv", "text": text})[1]
        assert found["question"]["id"] == "a"
        assert visitor.edit(verb="answer", id="a", y="one")[0] == 200
        found = asked(visitor)
        assert found["question"]["id"] in ("b", "c")
        assert set(found["question"]["shown"]["values"]) == {"left", "up"}
    with knowmore.open(path) as store:
        assert store.feature_names_in_.tolist() == ["left", "up"]


def test_a_forest_has_no_drop_and_others_do_not_ask(tmp_path):
    questions = PoolQuestions(UnlabelledPool("pool.csv", IDS, ROWS))
    with knowmore.open(made(tmp_path, ForestGPClassifier(RBF(0.5)))) as store:
        from knowmore.web.snapshot import Snapshot

        found = questions.ask(Snapshot(store), ())
        best = suggest(store.estimator, ROWS)
    assert (found["question"]["id"], found["question"]["drop"]) == (IDS[best.indices[0]], None)
    other = tmp_path / "other"
    other.mkdir()
    with studying(made(other, LSSVMClassifier()), UnlabelledPool("pool.csv", IDS, ROWS)) as door:
        visitor = enter(door)
        status, found = visitor.post("/api/question", {})
        assert (status, "GPClassifier" in found["error"]) == (422, True)
        status, found = visitor.post("/api/pool", {"name": "a.csv", "text": "x\n1\n"})
        assert (status, "reads no tables" in found["error"]) == (422, True)


def test_a_pool_as_large_as_the_model_is_not_followed(tmp_path):
    path = tmp_path / "many.km"
    rng = np.random.default_rng(0)
    with knowmore.open(path, GPClassifier(RBF(0.5))) as store:
        store.add(rng.normal(size=(2001, 1)), rng.integers(0, 2, 2001))
    with studying(
        path, UnlabelledPool("p", tuple(map(str, range(20_000))), np.zeros((20_000, 1)))
    ) as door:
        status, found = enter(door).post("/api/question", {})
    assert status == 422
    assert "holds 2,001 examples: a pool for it may have 19,990 rows" in found["error"]


def test_pictures_are_asked_about_and_seen(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    from typer.testing import CliRunner

    from knowmore.cli.app import app

    def painted(name, colour):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.clip(RNG.normal(colour, 20, (48, 800, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(path)

    for i in range(4):
        painted(f"known/red/{i}.png", (200, 40, 40))
        painted(f"known/blue/{i}.png", (40, 40, 200))
        painted(f"pool/{i}.png", (40, 200, 40))
    (tmp_path / "pool" / "broken.png").write_text("no picture")
    path, run = tmp_path / "m.km", CliRunner().invoke
    assert run(app, ["init", str(path), "--features", "colours"]).exit_code == 0
    with knowmore.open(path) as store, pytest.raises(InvalidInput, match="learnt no pictures"):
        pool_for(store, str(tmp_path / "pool"))
    assert run(app, ["learn", str(path), str(tmp_path / "known")]).exit_code == 0
    with knowmore.open(path) as store:
        pool = pool_for(store, str(tmp_path / "pool"))
        best = int(suggest(unnamed(store.estimator), pool.X).indices[0])
    assert (pool.name, pool.skipped, pool.ids) == ("pool", 1, tuple(f"{i}.png" for i in range(4)))
    with studying(path, pool, pool_for) as door:
        visitor = enter(door)
        question = asked(visitor)["question"]
        assert (question["id"], question["shown"]) == (f"{best}.png", {"kind": "picture"})
        status, content, headers = visitor("GET", f"/api/pool/picture?name={best}.png")
        assert (status, headers["content-type"]) == (200, "image/jpeg")
        assert Image.open(BytesIO(content)).size == (640, 38)
        assert visitor.edit(verb="answer", id=question["id"], y="green")[0] == 200
        assert visitor("GET", "/api/pool/picture?name=../m.km")[0] == 422
        (tmp_path / "pool" / "0.png").unlink()
        assert visitor("GET", "/api/pool/picture?name=0.png")[0] == 422
    with knowmore.open(path) as store:
        assert store.predict(pool.X).tolist() == ["green"] * 4


@pytest.mark.parametrize("undone", [False, True])
def test_a_row_that_was_forgotten_leaves_the_pool(visitor, path, undone):
    one = asked(visitor)["question"]["id"]
    visitor.edit(verb="answer", id=one, y="east")
    assert asked(visitor)["curve"][-1][0] == 1
    if undone:
        visitor.edit(verb="undo")
        assert asked(visitor)["question"]["id"] == one
    with knowmore.open(path) as store:
        store.forget(one)
    found = asked(visitor)
    assert (found["pool"]["rows"], found["pool"]["left"]) == (29, 29)
    # The accuracies before counted it.
    assert [number for number, _ in found["curve"]] == [0]
    others = [name for name in IDS if name != one]
    assert asked(visitor, skip=others)["question"] is None
    status, body = visitor.edit(verb="answer", id=one, y="east")
    assert (status, "The pool has no row" in body["error"]) == (422, True)
