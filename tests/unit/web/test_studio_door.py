"""Only the signed-in browser reaches anything, by any route."""

from __future__ import annotations

import re
from importlib.resources import files
from socket import create_connection

import pytest
from studied import Visitor, enter, studying

import knowmore
from knowmore import GPClassifier
from knowmore.studio import Door, create_app
from knowmore.web.guard import PICTURES, TABLES

# What a path must not be written as: nothing of the studio has a name that needs it.
TRICKS = [
    "/..%2f..{path}",
    "/%2e%2e{path}",
    "/x/..{path}",
    "/{path}",
    "{path}/",
    "{path}%00",
    "{path}%2f",
    "{path};x",
    "{path}/..%2f..%2fplane.km",
    "/%2f{bare}",
    "/%{code}{rest}",
    "http://evil.example{path}",
    "https://127.0.0.1{path}",
    "{path}\\..\\plane.km",
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


@pytest.fixture(scope="module")
def routes(plane):
    """Every way in, (method, path): routes of the application, and of its description."""
    app = create_app(plane, Door("127.0.0.1", 1))
    served = {(method, one.path) for one in app.routes for method in one.methods}
    told = {
        (method.upper(), path) for path, ways in app.openapi()["paths"].items() for method in ways
    }
    assert told < served
    # The names of parts of a path stand for any.
    found = sorted((method, re.sub(r"{.*?}", "1", path)) for method, path in served)
    assert {("GET", "/"), ("GET", "/app.js"), ("POST", "/api/edit")} < set(found)
    return [(method, path) for method, path in found if method != "HEAD"]


def asking(routes, *, writes=False):
    """Each route, and a body that it may be asked with."""
    for method, path in routes:
        if method != "GET" or not writes:
            yield method, path, None if method == "GET" else b"{}"


def kind_of(path):
    """The body of a route."""
    return "application/octet-stream" if path == PICTURES else "application/json"


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
        status, body, _ = stranger("GET", address)
        assert status == 403
        assert body["error"].startswith("This link has been used, or replaced by a newer one")
        # A signed-in browser needs no link: it is led to the page.
        status, _, headers = known("GET", address)
        assert (status, headers["location"], headers["set-cookie"]) == (303, "/", None)
        assert known("POST", address, {})[0] == 403
        assert known("GET", "/")[0] == 200
        assert stranger("GET", "/?token=spent")[0] == 403


def test_a_fresh_link_lets_one_more_in_and_ends_the_one_before(plane):
    def entered(address):
        status, _, headers = Visitor(door)("GET", address.partition(str(door.port))[2])
        assert status in (303, 403)
        return headers["set-cookie"]

    with studying(plane) as door:
        first, second = door.address, door.fresh()
        assert first != second
        assert entered(first) is None
        cookie = entered(second)
        assert Visitor(door, cookie.partition(";")[0]).get("/api/state")["n"] == 3
        assert entered(second) is None
        third = door.fresh()
        assert third not in (first, second)
        assert entered(third) == cookie
        assert [entered(one) for one in (first, second, third)] == [None] * 3


def test_a_browser_that_is_not_let_in_is_told_so_on_a_page(door, visitor):
    page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    used = "/?token=used"
    for path, status in ((used, 403), ("/", 401), ("/api/state", 401), ("/nowhere", 401)):
        found, body, headers = Visitor(door)("GET", path, headers=page)
        assert (found, headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert headers["cache-control"] == "no-store"
        text = body.decode()
        assert text.startswith("<!doctype html>")
        assert "press Enter" in text
        assert '<a href="/">' in text
        # Clients other than browsers are told in JSON.
        assert set(Visitor(door)("GET", path)[1]) == {"error"}
    said = Visitor(door)("GET", used, headers=page)[1].decode()
    assert "This link has been used" in said
    assert "This browser has not been let in" in Visitor(door)("GET", "/", headers=page)[1].decode()


def test_nothing_without_the_cookie(door, visitor, routes):
    wrong = [None, "", f"knowmore-studio-{door.port}=wrong", f"other={'x' * 43}"]
    for method, path, body in asking(routes):
        for cookie in [*wrong, f"knowmore-studio-{door.port}"]:
            status, said, headers = Visitor(door, cookie)(method, path, body)
            assert (status, method, path) == (401, method, path)
            assert said["error"].startswith("This browser has not been let in.")
            assert headers["x-content-type-options"] == "nosniff"
        # The token is for the front door, once, and has been spent.
        for token in ("wrong", "", "spent"):
            status = Visitor(door)(method, f"{path}?token={token}", body)[0]
            assert status == (403 if path == "/" else 401), path


def test_no_body_of_a_stranger_is_read(door, routes):
    """The answer comes while the body is still to come."""
    for method, path, _ in asking(routes):
        for target in (path, f"{path}?token=wrong", f"{path}/nowhere"):
            head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n"
            head += f"Content-Type: {kind_of(path)}\r\nContent-Length: 900000\r\n\r\n{{"
            with create_connection(("127.0.0.1", door.port), timeout=30) as slow:
                slow.sendall(head.encode())
                status = int(slow.makefile("rb").readline().split()[1])
            assert status in (401, 403), (method, target)


def test_no_edit_from_elsewhere(door, visitor, routes):
    port, long = door.port, b"x" * 25_000_001
    for method, path, body in asking(routes, writes=True):
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
            status, said, _ = visitor(method, path, body, {"Origin": origin})
            assert (status, "Origin" in said["error"]) == (403, True), (path, origin)
        for kind in (
            None,
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        ):
            assert visitor(method, path, body, {"Content-Type": kind})[0] == 415, (path, kind)
        most = {PICTURES: 25_000_001, TABLES: 10_000_001}.get(path, 1_000_001)
        for sent, headers in [
            (long[:most], {}),
            (b"{}", {"Content-Length": "99999999999"}),
            (b"{}", {"Content-Length": "-1"}),
            (iter([long[: most // 2], long[: most // 2 + 1]]), {"Transfer-Encoding": "chunked"}),
        ]:
            try:
                own = {"Content-Type": kind_of(path)} | headers
                status = visitor(method, path, sent, own)[0]
            except ConnectionError:
                # It hung up while the rest still came.
                continue
            assert status in (400, 413), (path, headers)


def test_no_page_of_another_site_may_ask(visitor, routes):
    for method, path, body in asking(routes):
        for site in ("cross-site", "same-site"):
            status = visitor(method, path, body, {"Sec-Fetch-Site": site})[0]
            assert (status, path) == (403, path)


def test_only_its_own_names(door, visitor, routes):
    port = door.port
    for method, path, body in asking(routes):
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
            status = visitor(method, path, body, {"Host": host})[0]
            assert status in (400, 421), (path, host)
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert visitor("GET", "/api/state", headers={"Host": host})[0] == 200


def test_every_route_has_one_name(door, visitor, routes):
    for method, path, body in asking(routes):
        if path == "/":
            continue
        parts = {"path": path, "bare": path[1:], "code": f"{ord(path[1]):x}", "rest": path[2:]}
        for trick in TRICKS:
            other = trick.format(**parts)
            status, said, _ = visitor(method, other, body, {"Content-Type": kind_of(path)})
            assert (status, set(said)) in ((404, {"error"}), (415, {"error"})), other
            assert Visitor(door)(method, other, body)[0] == 401, other


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
    static = [*files("knowmore.web").joinpath("static").iterdir()]
    assert sum(len(one.read_bytes()) for one in static) <= 200_000
    for one in static:
        text = one.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"(^|\s)// .*", "", text, flags=re.MULTILINE), one.name
        assert not re.search(r"\son\w+=|style=|javascript:|eval\(", text), one.name
