"""Nobody without the token makes the service read: bodies wait outside, slow or large as they are.

The service is a real one, on this machine; the bodies are announced, and never come to their end.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from served import serving

import knowmore
from knowmore import GPClassifier
from knowmore.serve import Settings, create_app
from knowmore.web import bodies
from knowmore.web.guard import BodyLimit, Refusal
from knowmore.web.questions import PredictionRequest

TOKEN = "a-token-of-many-letters"
LARGE = 7_900_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "m.km"
    rng = np.random.default_rng(0)
    with knowmore.open(path, GPClassifier()) as store:
        store.add(rng.normal(size=(20, 2)), np.repeat(["near", "far"], 10))
    return path


@contextmanager
def begun(port, method, target, body=b"{", announced=LARGE, **headers):
    """A request whose body has begun, but does not end."""
    sent = {"Host": "localhost", "Content-Type": "application/json", **headers}
    if announced is None:
        sent["Transfer-Encoding"] = "chunked"
        body = b"%x\r\n%b\r\n" % (len(body), body)
    else:
        sent["Content-Length"] = str(announced)
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    with socket.create_connection(("127.0.0.1", port), timeout=30) as open_:
        open_.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
        yield open_


def status(open_):
    """The status of the answer, which does not wait for the body."""
    line = open_.makefile("rb").readline()
    return int(line.split()[1])


def ways(path, label_studio):
    """Every route with every method that it may be asked by, and some that lead nowhere."""
    app = create_app(Settings(path, label_studio=label_studio))
    paths = {one.path for one in app.routes} | {"/nowhere", "/healthz/", "/docs"}
    for target in sorted(paths):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            yield method, target


@pytest.mark.parametrize("label_studio", [False, True])
@pytest.mark.parametrize("announced", [LARGE, None], ids=["announced", "chunked"])
def test_nothing_is_read_before_the_token_is_known(path, label_studio, announced):
    # A service that waited for the body would say 408.
    options = {"token": TOKEN, "label_studio": label_studio, "seconds": 0.5}
    with serving(path, **options) as ask:
        for method, target in ways(path, label_studio):
            with begun(ask.port, method, target, announced=announced) as open_:
                assert status(open_) in (200, 401, 404, 405), (method, target)


@pytest.mark.slow
def test_what_takes_no_body_reads_none_of_those_who_may_ask(path):
    with serving(path, label_studio=True, seconds=0.5) as ask:
        reads = {"/predict", "/setup", "/webhook"}
        for method, target in ways(path, True):
            waits = method == "POST" and target in reads
            with begun(ask.port, method, target) as open_:
                found = status(open_)
            assert (found == 408) == waits, (method, target, found)


@pytest.mark.parametrize("target", ["/healthz", "/readyz", "/health", "/nowhere", "/predict"])
def test_slow_posts_of_strangers_keep_nobody_waiting(path, target):
    mine = {"Authorization": f"Bearer {TOKEN}"}
    with serving(path, token=TOKEN, most_requests=4) as ask, ExitStack() as slow:
        for _ in range(65):
            slow.enter_context(begun(ask.port, "POST", target))
        assert ask.post("/predict", {"rows": [[0.0, 0.0]]}, **mine)[0] == 200
        assert ask.get("/healthz")[0] == 200


@pytest.mark.parametrize("target", ["/healthz", "/predict"])
def test_large_posts_of_strangers_take_no_memory(path, target):
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        pytest.skip("needs the counters of Linux")

    def held():
        return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    body = b" " * LARGE
    with serving(path, token=TOKEN) as ask, ExitStack() as slow:
        before = held()
        for _ in range(30):
            one = slow.enter_context(begun(ask.port, "POST", target, announced=LARGE + 2))
            with suppress(ConnectionError):
                one.sendall(body)
        assert ask.get("/healthz")[0] == 200
        # Had they been kept, it would be 30 times as much.
        assert held() - before < 5 * LARGE


def test_those_who_may_ask_are_limited_as_before(path):
    with serving(path, most_requests=2, most_bytes=1000, seconds=30) as ask:
        with begun(ask.port, "POST", "/predict", b"x" * 1001, announced=None) as open_:
            assert status(open_) == 413
        with begun(ask.port, "POST", "/predict", announced=1001) as open_:
            assert status(open_) == 413
        with ExitStack() as slow:
            for _ in range(2):
                slow.enter_context(begun(ask.port, "POST", "/predict", announced=10))
            ask.when(lambda answer: answer[0] == 503, "/metrics")
        ask.when(lambda answer: answer[0] == 200, "/metrics")


@pytest.mark.parametrize("length", ["101", "9" * 5000, "-1", "\u00b2", "1e1", ""])
def test_a_length_that_is_too_large_or_none_is_refused(length):
    with pytest.raises(Refusal, match="at most 100 bytes") as refusal:
        BodyLimit(100).check({"content-type": "application/json", "content-length": length})
    assert refusal.value.status_code == 413


@pytest.mark.parametrize("rows", [[None] * 1000, [["a"] * 1000], [["a"]] * 1000])
def test_wrong_rows_are_told_by_the_first(rows):
    """An error of each wrong number of a long request would take gigabytes."""
    for body in (
        lambda: PredictionRequest(rows=rows),
        lambda: bodies.AddBody(verb="add", X=rows, y=["a"]),
    ):
        with pytest.raises(ValidationError) as caught:
            body()
        assert caught.value.error_count() <= 3
