"""After a forget nothing of the forgotten can be asked of a service that goes on running."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from served import serving
from sklearn.gaussian_process.kernels import RBF
from test_label_studio import VIEW, annotation, event

import knowmore
from knowmore import GPClassifier
from knowmore.serve import Settings, create_app
from knowmore.store import verification
from knowmore.store.verification import left

# Every name of what is forgotten has this in it. Its values are near that, and so are differences
# to what is held, which is within -1 and 1.
NAME, VALUE, REACH = "zqsecret", 213.4567, 2.5
RNG = np.random.default_rng(0)
HELD = RNG.uniform(-1, 1, (20, 2))


@pytest.fixture
def path(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier(RBF(0.7), noise=0.05)) as store:
        store.add(HELD, np.repeat(["near", "far"], 10), ids=[f"kept {i}" for i in range(20)])
    return tmp_path / "m.km"


def secret(number):
    data = {"x0": VALUE + number / 10, "x1": VALUE, "text": NAME}
    own = annotation(number, f"{NAME} class", completed_by=f"{NAME} person")
    return event("ANNOTATION_CREATED", own, data=data)


def questions(path, label_studio):
    """A question or more for every route of the service, as (method, path, body)."""
    rows = [HELD[0].tolist(), [VALUE, VALUE], [1e3, -1e3]]
    tasks = [{"id": i, "data": {"x0": x, "x1": y}} for i, (x, y) in enumerate(rows)]
    found = [("GET", one, None) for one in ("/healthz", "/readyz", "/metrics", "/openapi.json")]
    found.append(("POST", "/predict", {"rows": rows}))
    found.append(("POST", "/predict", {"rows": [{"x0": 1.0}]}))
    if label_studio:
        found.append(("GET", "/health", None))
        found.append(("POST", "/setup", {"schema": VIEW}))
        found.append(("POST", "/train", {}))
        found.append(("POST", "/predict", {"tasks": tasks, "label_config": VIEW}))
        found.append(("POST", "/predict", {"tasks": [{"data": {}}], "label_config": VIEW}))
        found.append(("POST", "/webhook", {"action": "PROJECT_UPDATED"}))
        found.append(("POST", "/webhook", {"action": "ANNOTATION_CREATED"}))
        # Forgotten already: there is nothing to forget.
        found.append(("POST", "/webhook", event("ANNOTATION_DELETED", {"id": 1})))
    app = create_app(Settings(path, label_studio=label_studio))
    served = {(way, one.path) for one in app.routes for way in one.methods if way != "HEAD"}
    assert {(method, one) for method, one, _ in found} == served
    return found


def said(ask, path, label_studio):
    """Answers to every question, by the question."""
    found = {}
    for method, one, body in questions(path, label_studio):
        status, answer, headers = ask(method, one, body)
        assert (status < 500, headers["cache-control"]) == (True, "no-store")
        found[method, one, json.dumps(body)] = status, answer
    return found


def near(answer):
    """The numbers in an answer that are near what was forgotten."""
    numbers = re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", json.dumps(answer))
    return [one for one in map(float, numbers) if abs(abs(one) - VALUE) < REACH]


def assert_nothing(answers):
    for question, (_, answer) in answers.items():
        assert NAME not in str(answer), question
        assert near(answer) == [], question


HOW = {
    "deleted": lambda ask, path: ask.post(
        "/webhook", event("ANNOTATIONS_DELETED", {"id": 1}, {"id": 2})
    ),
    "emptied": lambda ask, path: ask.post(
        "/webhook",
        event("ANNOTATIONS_UPDATED", *(annotation(i, "x", was_cancelled=True) for i in (1, 2))),
    ),
    "another process": lambda ask, path: subprocess.run(
        [sys.executable, "-m", "knowmore", "forget", str(path), *IDS],
        check=True,
        capture_output=True,
    ),
}
IDS = ["label-studio/1", "label-studio/2"]


@pytest.mark.slow(fast=["deleted"])
@pytest.mark.parametrize("how", [*HOW])
def test_no_route_tells_anything_of_the_forgotten(path, how):
    with serving(path, label_studio=True) as ask:
        for number in (1, 2):
            assert ask.post("/webhook", secret(number))[0] == 201
        before = said(ask, path, label_studio=True)
        assert any(NAME in str(answer) for _, answer in before.values())
        # The question said above deletes the first: it is learnt again.
        assert ask.post("/webhook", secret(1))[0] == 201
        HOW[how](ask, path)
        ask.when(lambda answer: "knowmore_examples 20\n" in answer[1], "/metrics")
        after = said(ask, path, label_studio=True)
        assert_nothing(after)
    with serving(path, label_studio=True) as ask:
        fresh = said(ask, path, label_studio=True)
    own = {question for question in fresh if question[1] == "/metrics"}
    assert {one: after[one] for one in after.keys() - own} == {
        one: fresh[one] for one in fresh.keys() - own
    }


def test_a_service_that_writes_nothing_follows_a_forget(path):
    with knowmore.open(path) as store:
        store.add([[VALUE, VALUE]], [f"{NAME} class"], ids=[f"{NAME} id"], contributor=NAME)
    with serving(path) as ask:
        assert any(NAME in str(one) for one in said(ask, path, False).values())
        with knowmore.open(path) as store:
            store.forget(f"{NAME} id")
        ask.when(lambda answer: "knowmore_examples 20\n" in answer[1], "/metrics")
        assert_nothing(said(ask, path, False))


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_bytes_that_may_be_left_are_told(path, how, monkeypatch, little_room, capfd):
    usual = verification.vacuum

    def vacuum(file):
        with little_room(20_000):
            usual(file)

    with serving(path, label_studio=True) as ask:
        for number in (1, 2):
            assert ask.post("/webhook", secret(number))[0] == 201
        monkeypatch.setattr(verification, "vacuum", vacuum)
        status, answer = HOW[how](ask, path)
        monkeypatch.undo()
        assert (status, answer["forgotten"]) == (201, 2)
        assert left(path)
        words = "Bytes of what was forgotten may be left in m.km: the disk or its limits refused"
        assert answer["warning"].startswith(words)
        assert f"knowmore: {words}" in capfd.readouterr().err
        # With room on the disk the next edit clears them, and nothing is to be told.
        status, answer = ask.post(
            "/webhook",
            event("ANNOTATION_CREATED", annotation(3, "near"), data={"x0": 0.1, "x1": 0.2}),
        )
        assert status == 201
        assert answer["warning"] == ""
        assert left(path) == []
