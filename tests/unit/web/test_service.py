"""The service answers as the model does, follows its file, and refuses what it must."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import closing
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection

import numpy as np
import pytest
from served import serving

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)
from knowmore.cli.serving import impatient, listening
from knowmore.errors import InvalidInput, MissingData, MissingExtra, NotEnoughMemory
from knowmore.serve import Settings, create_app
from knowmore.store import restore_schema
from knowmore.web import answering
from knowmore.web.following import ServedFile

TOKEN = "a-token-of-many-letters"


@pytest.fixture
def scene():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 4])
    return X, np.repeat(["near", "far"], 20)


@pytest.fixture
def flowers(scene, tmp_path):
    """A file of a model of two classes."""
    path = tmp_path / "flowers.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add(*scene, ids=[f"p{i}" for i in range(40)])
    return path


def test_answers_are_those_of_the_model(flowers, scene):
    X, _ = scene
    with serving(flowers) as ask, knowmore.open(flowers) as store:
        Q = [*X[:3].tolist(), [900.0, 900.0]]
        status, body = ask.post("/predict", {"rows": Q})
        assert status == 200
        assert body["version"] == 1
        assert [one["label"] for one in body["predictions"]] == store.predict(Q).tolist()
        P, std = store.predict_proba(Q), np.sqrt(store.predict_variance(Q))
        assert [one["probability"] for one in body["predictions"]] == P.max(axis=1).tolist()
        assert [one["std"] for one in body["predictions"]] == std.tolist()
        unknown = [one["unknown"] for one in body["predictions"]]
        assert unknown == (store.predict(Q, unknown="?") == "?").tolist()
        assert unknown[-1]
        assert ask.post("/predict", {"rows": []}) == (200, {"version": 1, "predictions": []})


def test_rows_by_name(tmp_path, scene):
    pandas = pytest.importorskip("pandas")
    X, y = scene
    table = pandas.DataFrame(X, columns=["width", "height"])
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(table, y)
    with serving(tmp_path / "m.km") as ask:
        by_name = {"rows": [{"height": X[0, 1], "width": X[0, 0], "more": "text"}]}
        assert ask.post("/predict", by_name) == ask.post("/predict", {"rows": [X[0].tolist()]})
        status, body = ask.post("/predict", {"rows": [[0, 0], {"width": 1.0}]})
        assert status == 422
        assert body["detail"] == (
            "Row 1 lacks 'height'. Give a number for each feature: 'width', 'height'."
        )


@pytest.mark.parametrize(
    ("estimator", "has"),
    [
        (LSSVMClassifier(), {"label", "probability"}),
        (LinearGPClassifier(), {"label", "probability", "std", "unknown"}),
        (ForestGPClassifier(), {"label", "probability", "std", "unknown"}),
        (GPRegressor(), {"value", "std"}),
        (LinearGPRegressor(), {"value", "std"}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_kind_answers(estimator, has, scene, tmp_path):
    X, y = scene
    y = (y == "far").astype(float) if "value" in has else y
    with knowmore.open(tmp_path / "m.km", estimator) as store:
        store.add(X, y)
        want = store.predict(X[:2]).tolist()
    with serving(tmp_path / "m.km") as ask:
        status, body = ask.post("/predict", {"rows": X[:2].tolist()})
    assert status == 200
    found = [{k: v for k, v in one.items() if v is not None} for one in body["predictions"]]
    assert {*found[0]} == has
    assert [one.get("label", one.get("value")) for one in found] == want


def test_it_follows_the_file(flowers):
    with serving(flowers) as ask, knowmore.open(flowers) as store:
        store.add([[50.0, 50.0]], ["strange"], ids=["s"])
        ask.when(lambda answer: "knowmore_version 2\n" in answer[1], "/metrics")
        status, body = ask.post("/predict", {"rows": [[50.0, 50.0]]})
        assert (status, body["version"]) == (200, 2)
        assert body["predictions"][0]["label"] == "strange"
        store.forget("s")
        ask.when(lambda answer: "knowmore_version 3\n" in answer[1], "/metrics")
        assert (
            ask.post("/predict", {"rows": [[50.0, 50.0]]})[1]["predictions"][0]["label"]
            != "strange"
        )


def test_an_edit_while_a_model_is_loaded_is_not_missed(flowers, monkeypatch):
    made, edits = answering.Predictor, [["s"]]

    def predictor(*given, **options):
        if edits:
            with knowmore.open(flowers) as other:
                other.add([[50.0, 50.0]], ["strange"], ids=edits.pop())
        return made(*given, **options)

    monkeypatch.setattr(answering, "Predictor", predictor)
    following = ServedFile(Settings(flowers))
    following.look()
    following._close()
    assert (following.now.version, following.now.count) == (2, 41)
    assert following.now([[50.0, 50.0]])[0].label == "strange"


def test_a_model_that_holds_what_was_forgotten_does_not_go_on_answering(flowers, monkeypatch):
    def lacking(*_, **__):
        raise NotEnoughMemory("There is not enough memory for the model.")

    made = answering.Predictor
    with serving(flowers) as ask, knowmore.open(flowers) as store:
        question = {"rows": [[0.0, 0.0]]}
        monkeypatch.setattr(answering, "Predictor", lacking)
        store.relabel("p0", "far")
        ask.when(lambda answer: answer == (503, {"status": "failing"}))
        assert ask.post("/predict", question)[1]["version"] == 1
        store.forget("p0")
        ask.when(lambda _: ask.post("/predict", question)[0] == 503)
        monkeypatch.setattr(answering, "Predictor", made)
        ask.when(lambda answer: answer[0] == 200)
        assert ask.post("/predict", question)[1]["version"] == 3


def test_it_writes_nothing(flowers):
    before, names = flowers.read_bytes(), {*flowers.parent.iterdir()}
    with serving(flowers) as ask:
        assert ask.post("/predict", {"rows": [[0.0, 0.0]]})[0] == 200
        for path in ("/webhook", "/train", "/setup"):
            assert ask.post(path, {"action": "ANNOTATION_DELETED"})[0] == 404
    assert flowers.read_bytes() == before
    assert {*flowers.parent.iterdir()} == names


def test_a_file_without_examples(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()):
        pass
    with serving(tmp_path / "m.km") as ask:
        status, body = ask.post("/predict", {"rows": [[1.0]]})
        assert status == 503
        assert body["detail"] == "The model holds no examples yet. Teach it: knowmore learn."


def test_a_file_that_vanishes_keeps_answering(flowers):
    with serving(flowers) as ask:
        flowers.write_bytes(b"")
        ask.when(lambda answer: answer == (503, {"status": "failing"}))
        assert ask.post("/predict", {"rows": [[0.0, 0.0]]})[0] == 200
        assert re.search(r"knowmore_file_failures_total [1-9]", ask.get("/metrics")[1])


def test_a_damaged_file_is_told_at_the_start(flowers):
    flowers.write_bytes(b"no model at all" * 1000)
    told = []
    with serving(flowers, ready=False, failed=told.append) as ask:
        ask.when(lambda answer: answer == (503, {"status": "failing"}))
        assert ask.get("/healthz") == (200, {"status": "ok"})
        assert ask.post("/predict", {"rows": [[0.0]]})[0] == 503
    assert len(told) == 1
    assert "flowers.km" in str(told[0])


def test_what_another_program_has_added_is_named(flowers):
    with serving(flowers) as ask:
        with closing(sqlite3.connect(flowers)) as other:
            other.execute("CREATE INDEX by_label ON examples(label)")
        ask.when(lambda answer: answer == (503, {"status": "failing"}))
        assert ask.post("/predict", {"rows": [[0.0, 0.0]]})[0] == 200
    told = []
    with serving(flowers, ready=False, failed=told.append) as ask:
        ask.when(lambda answer: answer == (503, {"status": "failing"}))
    assert "has added the index 'by_label'. An index has copies" in str(told[0])
    assert restore_schema(flowers) == ["the index 'by_label'"]
    with serving(flowers) as ask:
        assert ask.post("/predict", {"rows": [[0.0, 0.0]]})[0] == 200


# -- what is refused -----------------------------------------------------------------------------


ASK = (
    'Send {"rows": [...]}; each row is a list of numbers, an object of values by the names of the '
    "columns, or a text, as the model has learnt."
)
LARGEST = "1.8e308"


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "rows: Field required."),
        ({"rows": [[1.0, 2.0]], "more": 1}, "more: Extra inputs are not permitted."),
        ({"rows": "text"}, "rows: Input should be a valid list."),
        (
            {"rows": [["x", 1.0]]},
            f"Row 0 has no number at position 0, or one above {LARGEST}. {ASK}",
        ),
        (
            {"rows": [[1.0, 2.0], 7]},
            f"Row 1 is neither a list of numbers nor an object nor a text. {ASK}",
        ),
        (
            {"rows": [[1.0, 2.0], "x"]},
            "Row 1 is a text, and the model has learnt numbers. Give its 2 features.",
        ),
        ("[1", "The body is not JSON: "),
        ({"rows": [[1.0]]}, "Row 0 has 1 numbers, but the model has 2 features."),
        ({"rows": [{"x0": 1.0, "x1": "y"}]}, "Row 0, 'x1': 'y' is not a number."),
        ({"rows": [{"x0": 1.0, "x1": None}]}, "Row 0, 'x1': None is not a number."),
        ('{"rows": [[NaN, 1.0]]}', "Input X contains NaN or infinity"),
        ('{"rows": [[1e999, 1.0]]}', "Input X contains NaN or infinity"),
        ({"rows": [[1.0, 10**400]]}, f"Row 0 has no number at position 1, or one above {LARGEST}."),
        ({"rows": [{"x0": 10**400, "x1": 1.0}]}, "A number is too large"),
        ('{"rows": [[' + "9" * 5000 + ", 1.0]]}", "The body is not JSON"),
        ("[" * 100_000, "The body is not JSON"),
        ('{"rows": [], "\\ud800": 1}', "The body: Input should be a valid string"),
    ],
)
def test_bad_questions(body, detail, flowers):
    with serving(flowers) as ask:
        status, answer = ask.post("/predict", body)
    assert status == 422
    assert answer["detail"].startswith(detail)


def test_limits(flowers):
    with serving(flowers, most_rows=3, most_bytes=500) as ask:
        assert ask.post("/predict", {"rows": [[0.0, 0.0]] * 3})[0] == 200
        status, body = ask.post("/predict", {"rows": [[0.0, 0.0]] * 4})
        assert (status, body["detail"]) == (413, "A request may have at most 3 rows, not 4.")
        long = {"rows": [[0.0, 0.0]] * 100}
        status, body = ask.post("/predict", long)
        assert status == 413
        assert body["detail"].startswith("A request may have at most 500 bytes. Ask about fewer")
        # In pieces, without a length.
        chunked = (json.dumps(long).encode() for _ in range(1))
        assert ask("POST", "/predict", chunked)[0] == 413


def test_a_body_that_does_not_come(flowers):
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serving(flowers, seconds=0.2) as ask:
        slow = create_connection(("127.0.0.1", ask.port), timeout=30)
        slow.sendall(head + b"Content-Length: 10\r\n\r\n{")
        assert b" 408 " in slow.recv(1000).partition(b"\r\n")[0]
        slow.close()
    with serving(flowers, most_requests=1) as ask:
        with create_connection(("127.0.0.1", ask.port), timeout=30) as slow:
            slow.sendall(head + b"Content-Length: 10\r\n\r\n{")
            ask.when(lambda answer: answer[0] == 503, "/metrics")
            assert ask.get("/healthz")[0] == 200
        ask.when(lambda answer: answer[0] == 200, "/metrics")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT"])
def test_connections_that_ask_nothing_are_closed(sent, flowers):
    with serving(flowers, http=impatient(0.3)) as ask:
        idle = [create_connection(("127.0.0.1", ask.port), timeout=30) for _ in range(70)]
        for one in idle:
            one.sendall(sent)
        assert ask.get("/healthz")[0] == 200
        for one in idle:
            assert one.recv(1) == b""
            one.close()


def test_a_file_that_takes_the_place_of_another(flowers, scene, tmp_path):
    with serving(flowers) as ask:
        with knowmore.open(tmp_path / "new.km", GPClassifier()) as store:
            store.add(scene[0], np.repeat(["here", "there"], 20))
        os.replace(tmp_path / "new.km", flowers)
        ask.when(
            lambda _: (
                ask.post("/predict", {"rows": [[0.0, 0.0]]})[1]["predictions"][0]["label"] == "here"
            )
        )
        ask.when(lambda answer: answer[0] == 200)


def test_time(flowers, monkeypatch):
    monkeypatch.setattr(answering, "_AT_ONCE", 1)
    slow = answering.Predictor.__call__
    monkeypatch.setattr(
        answering.Predictor, "__call__", lambda self, X: time.sleep(0.2) or slow(self, X)
    )
    with serving(flowers, seconds=0.1) as ask:
        status, body = ask.post("/predict", {"rows": [[0.0, 0.0]] * 5})
    assert status == 503
    assert body["detail"] == "5 rows take longer than 0.1 s. Ask about fewer at a time."


def test_a_token(flowers):
    with serving(flowers, token=TOKEN) as ask:
        question = {"rows": [[0.0, 0.0]]}
        for path in ("/healthz", "/readyz"):
            assert ask.get(path)[0] == 200
        for path in ("/metrics", "/openapi.json"):
            assert ask.get(path)[0] == 401
        status, body, headers = ask("POST", "/predict", question)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert body["detail"] == "Give the token of this service: Authorization: Bearer TOKEN."
        basic = b64encode(f"anyone:{TOKEN}".encode()).decode()
        good = [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"]
        bad = ["Bearer", f"Bearer {TOKEN}x", f"Token {TOKEN}", "Basic !", "Bearer é", TOKEN]
        for value in good:
            assert ask.post("/predict", question, Authorization=value)[0] == 200
        for value in bad:
            assert ask.post("/predict", question, Authorization=value)[0] == 401


def test_other_names_of_this_machine_are_refused(flowers):
    with serving(flowers) as ask:
        for host in ("localhost", "127.0.0.1:80", "LOCALHOST:1", "[::1]", "[::1]:99"):
            assert ask.get("/healthz", Host=host)[0] == 200
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "", "[::2]:1"):
            status, body = ask.get("/healthz", Host=host)
            assert status == 421
            assert body["detail"] == "This service answers only to localhost and 127.0.0.1."


def test_only_json_is_read(flowers):
    with serving(flowers) as ask:
        headers = {"Content-Type": "text/plain"}
        status, body, _ = ask("POST", "/predict", '{"rows": []}', headers)
    assert status == 415
    assert body["detail"].startswith("Send JSON, with Content-Type: application/json. A model of")


def test_what_it_says_of_itself(flowers):
    with serving(flowers) as ask:
        status, api = ask.get("/openapi.json")
        assert status == 200
        assert {*api["paths"]} == {"/predict", "/healthz", "/readyz", "/metrics"}
        assert "/docs" not in api["paths"]
        # Pages that load scripts from elsewhere are not there.
        assert ask.get("/docs")[0] == ask.get("/redoc")[0] == ask.get("/nowhere")[0] == 404
        ask.post("/predict", {"rows": [[0.0, 0.0]] * 2})
        status, text, headers = ask("GET", "/metrics")
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert 'knowmore_requests_total{path="/predict",status="200"} 1' in text
        assert 'knowmore_requests_total{path="other",status="404"} 3' in text
        for line in ("knowmore_rows_total 2", "knowmore_examples 40", "knowmore_ready 1"):
            assert line in text.splitlines()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_other_machines_need_a_token(host, flowers):
    with pytest.raises(
        InvalidInput, match=f"^The host '{host}' lets other machines ask, so a token"
    ):
        Settings(flowers, host=host)
    assert not Settings(flowers, host=host, token=TOKEN).is_local
    for local in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert Settings(flowers, host=local).is_local


def test_settings_that_cannot_be(flowers, tmp_path):
    with pytest.raises(
        MissingData, match=r"^There is no file .*none.km' to serve. Make one: knowmo"
    ):
        Settings(tmp_path / "none.km")
    for token in ("short", "", "é" * 20):
        with pytest.raises(
            InvalidInput, match=r"^The token must have at least 16 ASCII characters"
        ):
            Settings(flowers, token=token)


def test_the_service_is_up_before_the_model_is_loaded():
    code = "import sys, knowmore.web.service, knowmore.web.label_studio as _"
    code += "\nprint('sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_fastapi_is_asked_for_in_words(flowers, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(
        MissingExtra, match=r"fastapi is not installed. It comes with the extra 'serve'"
    ):
        create_app(Settings(flowers))


def test_an_answer_in_two_parts_does_not_wait_for_the_first_to_be_acknowledged():
    with (
        listening("127.0.0.1", 0) as bound,
        create_connection(bound.getsockname()),
        bound.accept()[0] as visit,
    ):
        assert visit.getsockopt(IPPROTO_TCP, TCP_NODELAY)
