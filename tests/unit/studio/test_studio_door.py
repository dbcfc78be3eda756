"""Nobody but the one who was let in reaches anything, by any route."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from studied import Visitor, enter, studying

import knowmore
from knowmore import GPClassifier
from knowmore.studio import Door, create_app

PATHS = ["/", "/app.js", "/style.css", "/events", "/openapi.json", "/api/state", "/api/log"]
PATHS += ["/api/plane/points", "/api/plane/field?x0=0&x1=1&y0=0&y1=1", "/api/suspects"]
PATHS += ["/api/plane/check?x0=0&x1=1&y0=0&y1=1", "/api/pool/picture?name=a", "/api/merge/files"]
PATHS += ["/api/desk", "/api/thumbnail?id=0", "/api/explain?id=0"]
POSTS = [
    "/api/plane/moved",
    "/api/edit",
    "/api/whatif",
    "/api/state-at",
    "/api/preview-forget",
    "/api/verify",
    "/api/dismiss",
    "/api/question",
    "/api/pool",
    "/api/rows",
    "/api/merge/preview",
]


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio") / "plane.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add([[0.0, 0.1], [0.5, 0.5], [0.7, 0.6]], ["a", "b", "b"])
    return path


@pytest.fixture(scope="module")
def door(plane):
    with studying(plane) as door:
        yield door


@pytest.fixture(scope="module")
def visitor(door):
    return enter(door)


def test_the_lists_here_are_complete(plane):
    routes = create_app(plane, Door("127.0.0.1", 1)).routes
    # That pictures are brought by nobody else is asked with the desk.
    named = {path.partition("?")[0] for path in [*PATHS, *POSTS, "/api/pictures"]}
    assert {one.path for one in routes if not one.path.count(".") or one.path in named} == named


def test_the_token_lets_one_in_once(plane):
    with studying(plane) as door:
        address = door.address.partition(str(door.port))[2]
        stranger = Visitor(door)
        assert stranger("GET", "/?token=wrong")[0] == 403
        assert stranger("POST", address, {})[0] == 403
        status, _, headers = stranger("GET", address)
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
        assert cookie.startswith(f"knowmore-studio-{door.port}=")
        assert address.partition("=")[2] not in cookie
        assert door.address.endswith("?token=spent")
        known = Visitor(door, cookie.partition(";")[0])
        for who in (stranger, known):
            status, body, _ = who("GET", address)
            assert status == 403
            assert body["error"].startswith("This address has been used, or was never right")
        assert known("GET", "/")[0] == 200
        assert stranger("GET", "/?token=spent")[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_no_page_without_the_cookie(door, path):
    wrong = [None, "", f"knowmore-studio-{door.port}=wrong", f"other={'x' * 43}"]
    for cookie in [*wrong, f"knowmore-studio-{door.port}"]:
        status, body, headers = Visitor(door, cookie)("GET", path)
        assert status == 401
        assert body["error"].startswith("Nobody let this browser in.")
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", POSTS)
def test_no_edit_without_the_cookie_or_from_elsewhere(door, visitor, path):
    assert Visitor(door)("POST", path, {})[0] == 401
    port = door.port
    for origin in [
        None,
        "",
        "null",
        "http://evil.example",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port + 1}",
        f"http://localhost:{port}",
        f"http://127.0.0.1:{port}.evil.example",
    ]:
        status, body, _ = visitor("POST", path, {}, {"Origin": origin})
        assert (status, "Origin" in body["error"]) == (403, True), origin
    assert visitor("POST", path, {}, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert visitor("POST", path, b"{}", {"Content-Type": kind})[0] == 415
    # A table may be longer.
    long = b"x" * (10_000_001 if path == "/api/pool" else 1_000_001)
    half = long[: 6 * len(long) // 10]
    for body, headers in [
        (long, {}),
        (b"{}", {"Content-Length": "99999999999"}),
        (b"{}", {"Content-Length": "-1"}),
        (iter([half, half]), {"Transfer-Encoding": "chunked"}),
    ]:
        try:
            status = visitor("POST", path, body, headers)[0]
        except ConnectionError:
            # It hung up while the rest still came.
            continue
        assert status in (400, 413)


@pytest.mark.parametrize("path", PATHS + POSTS)
def test_only_its_own_names(door, visitor, path):
    method, port = "POST" if path in POSTS else "GET", door.port
    for host in [
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.evil.example:{port}",
        f"127.0.0.1:{port}:{port}",
        f"[::2]:{port}",
        "",
    ]:
        status, *_ = visitor(method, path, {} if path in POSTS else None, {"Host": host})
        assert status in (400, 421), host
    if path == "/api/state":
        for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert visitor("GET", path, headers={"Host": host})[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../plane.km",
        "/..%2fplane.km",
        "/%2e%2e/plane.km",
        "/static/app.js",
        "//app.js",
        "/app.js/../../door.py",
        "/app.js%00.html",
        "/index.html",
        "/door.py",
        "/api/../app.js",
        "/api/state/",
        "/plane.km",
        "/C:/windows",
        "/....//....//etc/passwd",
    ],
)
def test_paths_lead_nowhere_else(visitor, door, path):
    status, body, _ = visitor("GET", path)
    assert (status, set(body)) == (404, {"error"})
    assert Visitor(door)("GET", path)[0] == 401


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"])
def test_other_methods_do_nothing(visitor, method):
    headers = {
        "Content-Type": "application/json",
        "Origin": f"http://127.0.0.1:{visitor.door.port}",
    }
    assert visitor(method, "/api/state", headers=headers)[0] == 405


def test_every_answer_has_its_headers(visitor):
    for path in ("/", "/app.js", "/api/state", "/nowhere"):
        headers = visitor("GET", path)[2]
        assert headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_door_on_a_network_answers_to_its_host():
    door = Door("192.168.0.7", 8000)
    assert door.address.startswith("http://192.168.0.7:8000/?token=")
    assert door.answers_to("192.168.0.7:8000")
    assert not door.answers_to("192.168.0.8:8000")
    assert not door.is_local
    assert Door("::1", 8000).is_local
    assert Door("::1", 8000).address.startswith("http://[::1]:8000/")
    assert not Door("studio.example", 80).is_local
    assert Door("studio.example", 80).answers_to("Studio.example")


def test_the_page_is_small_and_asks_nobody_else():
    static = [*files("knowmore.studio").joinpath("static").iterdir()]
    assert sum(len(one.read_bytes()) for one in static) <= 150_000
    for one in static:
        text = one.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"(^|\s)// .*", "", text, flags=re.MULTILINE), one.name
        assert not re.search(r"\son\w+=|style=|javascript:|eval\(", text), one.name
