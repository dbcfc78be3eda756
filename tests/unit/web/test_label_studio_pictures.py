"""Pictures come from the Label Studio that asks, and from nowhere else, whatever a task says."""

from __future__ import annotations

import io
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from served import serving
from test_label_studio import annotation

import knowmore
from knowmore.errors import InvalidInput
from knowmore.serve import Settings
from knowmore.web.label_studio import LabelStudioServer, pictures
from knowmore.workbench import LearnOptions, learn

images = pytest.importorskip("PIL.Image")

VIEW = """<View><Image name="it" value="$image"/>
<Choices name="kind" toName="it"><Choice value="upright"/></Choices></View>"""
PERSONAL = "head.body.signature"
SILENT = {"log_message": lambda *_: None}


class Site:
    """A server that has files at paths, each wanting a header, and notes what it was asked."""

    def __init__(self):
        self.files, self.wanted, self.asked, self.delay = {}, "Token old", [], 0.0
        self.exchanged = "fresh"


@contextmanager
def site():
    about = Site()

    def answer(self):
        about.asked.append((self.command, self.path, self.headers.get("Authorization")))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(about.delay)
        status, headers, data = 404, {}, b""
        if self.path == "/api/token/refresh":
            good = json.loads(body) == {"refresh": PERSONAL}
            access = json.dumps({"access": about.exchanged}).encode()
            status, data = (200, access) if good else (401, b"")
            about.wanted = "Bearer fresh"
        elif self.headers.get("Authorization") != about.wanted:
            status = 401
        elif (found := about.files.get(self.path)) is not None:
            status, headers, data = found if isinstance(found, tuple) else (200, {}, found)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    handler = type("Handler", (BaseHTTPRequestHandler,), SILENT | {"do_GET": answer})
    handler.do_POST = answer
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    about.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield about
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def later():
    return time.monotonic() + 10


def test_files_by_their_paths():
    with site() as about:
        server = LabelStudioServer(about.address + "/", "old")
        about.files = {
            "/data/upload/1/a%20b.png": b"one",
            "/data/local-files/?d=set/c.png": b"two",
        }
        given = ["/data/upload/1/a b.png", f"{about.address}/data/local-files/?d=set/c.png"]
        assert list(server.fetched(given, later()).values()) == [b"one", b"two"]


def test_a_personal_access_token_is_exchanged_and_again_when_it_has_run_out():
    with site() as about:
        about.files = {"/data/upload/1/a.png": b"one"}
        server = LabelStudioServer(about.address, PERSONAL)
        for _ in range(2):
            assert server.fetch("/data/upload/1/a.png", later()) == b"one"
        assert [one[0] for one in about.asked] == ["POST", "GET", "GET"]
        server._access = "stale"
        assert server.fetch("/data/upload/1/a.png", later()) == b"one"
        assert about.asked[-1][2] == "Bearer fresh"
        with pytest.raises(InvalidInput, match=r"^Label Studio refused the token\. Make a perso"):
            LabelStudioServer(about.address, "other.personal.token").fetch(
                "/data/upload/1/a.png", later()
            )


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/data/upload/1/a.png",
        "//evil.example/data/upload/1/a.png",
        "https://127.0.0.1/data/upload/a.png",
        "http://[::1/data/upload/a.png",
        "file:///data/upload/a.png",
        "s3://bucket/data/upload/a.png",
        "/api/projects/1/export?a.png",
        "/data/upload/../../api/a.png",
        "/data/upload/%2e%2e/%2e%2e/api/a.png",
        "/data/upload/..\\api/a.png",
        "/data/local-files/?d=../../etc/a.png",
        "/data/local-files/?d=a&d=%2e%2e/a.png",
        "/data/local-files/?d=a%5C..%5Ca.png",
        "/user/logout?a.png",
        "data/upload/1/a.png",
    ],
)
def test_addresses_that_are_no_files_of_it_are_never_asked_for(address):
    with site() as about:
        (why,) = LabelStudioServer(about.address, "old").fetched([address], later()).values()
        assert "is not at 127.0.0.1" in why or "is neither an upload" in why
        assert about.asked == []


def test_no_header_is_slipped_in_through_an_address():
    with site() as about:
        address = "/data/upload/a.png HTTP/1.1\r\nX-Evil: 1\r\n\r\n?d=\r\nb"
        LabelStudioServer(about.address, "old").fetched([address], later())
        assert all("\r" not in path and " " not in path for _, path, _ in about.asked)


def test_what_is_not_followed_or_too_large_or_cut_off(monkeypatch):
    monkeypatch.setattr(pictures, "MOST_BYTES", 1000)
    with site() as about, site() as other:
        other.files = {"/data/upload/1/a.png": b"one"}
        about.files = {
            "/data/upload/1/to.png": (
                302,
                {"Location": f"{other.address}/data/upload/1/a.png"},
                b"",
            ),
            "/data/upload/1/large.png": b"x" * 1001,
            "/data/upload/1/cut.png": (200, {"Content-Length": "100"}, b"x"),
            "/data/upload/1/none.png": (404, {}, b""),
        }
        found = LabelStudioServer(about.address, "old").fetched(about.files, later())
        assert other.asked == []
    for (_, why), words in zip(
        found.items(),
        [
            "leads elsewhere, to ",
            "A picture has more than the 1,000 bytes allowed.",
            "A picture was cut off while it came.",
            "answered 404.",
        ],
        strict=True,
    ):
        assert words in why


def test_what_is_too_slow(monkeypatch):
    monkeypatch.setattr(pictures, "_SECONDS", 0.2)
    with site() as about:
        about.delay = 1.0
        (why,) = (
            LabelStudioServer(about.address, "old")
            .fetched(["/data/upload/a.png"], later())
            .values()
        )
        assert "could not be fetched from 127.0.0.1" in why
        about.asked.clear()
        server = LabelStudioServer(about.address, "old")
        assert (
            "There was no time" in server.fetched(["/data/upload/a.png"], 0.0)["/data/upload/a.png"]
        )
        assert about.asked == []


def test_a_wrong_token_and_a_server_that_is_away():
    with site() as about:
        found = LabelStudioServer(about.address, "wrong").fetched(["/data/upload/a.png"], later())
        assert "LABEL_STUDIO_API_KEY" in found["/data/upload/a.png"]
        away = about.address
    found = LabelStudioServer(away, "old").fetched(["/data/upload/a.png"], later())
    assert "could not be fetched from 127.0.0.1" in found["/data/upload/a.png"]


@pytest.mark.parametrize("token", ["", "a b", "a\nX-Evil: 1", "\u202e", "caf\u00e9", " old"])
def test_tokens_that_no_header_can_carry(token):
    with pytest.raises(InvalidInput, match=r"^The token of Label Studio is empty or has blanks"):
        LabelStudioServer("http://localhost", token)


def test_a_token_in_exchange_that_no_header_can_carry_is_none():
    with site() as about:
        about.exchanged = "fresh\nX-Evil: 1"
        server = LabelStudioServer(about.address, PERSONAL)
        found = server.fetched(["/data/upload/1/a.png"], later())
        assert "Label Studio refused the token" in found["/data/upload/1/a.png"]


def test_a_password_in_the_address_is_not_told():
    server = LabelStudioServer("http://me:secret@127.0.0.1:1", "old")
    assert "secret" not in str(server.fetched(["/data/upload/a.png", "//b/c"], later()))


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8080",
        "ftp://a",
        "http://",
        "http://a:b",
        "http://a..b",
        f"http://{'a' * 99}",
        "http://\ud800",
        "http://a/\u202e",
    ],
)
def test_addresses_of_no_server(address):
    with pytest.raises(InvalidInput, match=r"is no address of a Label Studio. It begins with"):
        LabelStudioServer(address, "old")


def test_a_token_needs_an_address(tmp_path):
    (tmp_path / "m.km").touch()
    with pytest.raises(InvalidInput, match=r"^There is a token for a Label Studio, but not where"):
        Settings(tmp_path / "m.km", label_studio_token="old")


# -- a model of pictures -------------------------------------------------------------------------


def stripes(upright, phase):
    y, x = np.mgrid[:40, :40]
    pixels = 128 + 80 * np.sin((x if upright else y) / 2 + phase)
    file = io.BytesIO()
    images.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    for name in ("upright", "level"):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(4):
            (folder / f"photos/{name}/{i}.png").write_bytes(stripes(name == "upright", i))
    with knowmore.open(folder / "m.km", knowmore.GPClassifier()) as store:
        store.set_notes(features={"kind": "phog", "words": 5})
    learn(LearnOptions(folder / "m.km", str(folder / "photos")), lambda share, step: None)
    return (folder / "m.km").read_bytes()


@pytest.fixture
def path(taught, tmp_path):
    (tmp_path / "m.km").write_bytes(taught)
    return tmp_path / "m.km"


def told(action, number, choice, task):
    said = annotation(number, choice, task=task["id"])
    return {"action": action, "annotation": said, "task": task, "project": {"label_config": VIEW}}


def test_pictures_are_predicted_learnt_corrected_and_forgotten(path, capfd):
    tasks = [{"id": i, "data": {"image": f"/data/upload/1/{i}.png"}} for i in range(4)]
    with site() as about, serving(path, label_studio=True) as ask:
        about.files = {f"/data/upload/1/{i}.png": stripes(i % 2, 0.3 + i) for i in (0, 1)}
        about.files["/data/upload/1/2.png"] = b"no picture"
        before = ask.post("/predict", {"tasks": tasks, "label_config": VIEW})[1]["results"]
        assert [one["result"] for one in before] == [[]] * 4
        assert "has not told where it is" in capfd.readouterr().err
        known = {"hostname": about.address, "access_token": "old", "schema": VIEW}
        assert ask.post("/setup", known)[0] == 200
        found = ask.post("/predict", {"tasks": tasks, "label_config": VIEW})[1]["results"]
        said = [one["result"] and one["result"][0]["value"]["choices"][0] for one in found]
        assert said == ["level", "upright", [], []]
        words = capfd.readouterr().err
        assert "knowmore: task 2 gets no suggestion: cannot be read: it is not a picture" in words
        assert "task 3 gets no suggestion: '/data/upload/1/3.png' could not be fetched" in words
        made = told("ANNOTATION_CREATED", 7, "level", tasks[0])
        assert [ask.post("/webhook", made)[1]["added"] for _ in range(2)] == [1, 0]
        later = told("ANNOTATION_UPDATED", 7, "upright", tasks[0])
        assert [ask.post("/webhook", later)[1]["changed"] for _ in range(2)] == [1, 0]
        with knowmore.open(path) as store:
            (record,) = store.records(["label-studio/7"])
            assert (record.label, record.origin) == ("upright", "label-studio/task/0")
        bad = told("ANNOTATION_CREATED", 8, "level", tasks[2])
        assert ask.post("/webhook", bad)[0] == 422
        gone = {"action": "TASKS_DELETED", "tasks": [{"id": 0}]}
        assert ask.post("/webhook", gone)[1]["forgotten"] == 1
    with knowmore.open(path) as store:
        assert len(store) == 8
        assert store.verify().ok


def test_an_adversary_writes_a_task(path):
    """Its address is of another server, which nobody asks."""
    with site() as about, site() as other, serving(path, label_studio=True) as ask:
        other.files = {"/data/upload/1/a.png": stripes(upright=True, phase=0)}
        ask.post("/setup", {"hostname": about.address, "access_token": "old"})
        task = {"id": 1, "data": {"image": f"{other.address}/data/upload/1/a.png"}}
        status, body = ask.post("/webhook", told("ANNOTATION_CREATED", 7, "level", task))
        assert status == 422
        assert "pictures are fetched from there alone" in body["detail"]
        assert about.asked == other.asked == []


def test_what_the_settings_say_counts_and_not_what_setup_says(path):
    with site() as about, site() as other:
        known = {"label_studio_url": about.address, "label_studio_token": PERSONAL}
        with serving(path, label_studio=True, **known) as ask:
            ask.post("/setup", {"hostname": other.address, "access_token": "old"})
            task = {"id": 1, "data": {"image": "/data/upload/1/a.png"}}
            ask.post("/predict", {"tasks": [task], "label_config": VIEW})
        assert [one[0] for one in about.asked] == ["POST", "GET"]
        assert other.asked == []
