"""A studio on a free port of this machine, in a thread, and a signed-in visitor."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from urllib.parse import urlencode

import numpy as np
import pytest

uvicorn = pytest.importorskip("uvicorn")

from knowmore.studio import Door, create_app  # noqa: E402

KEYS = count()
SQUARE = {"x0": -1, "x1": 1, "y0": -1, "y1": 1}


class Visitor:
    """Asks a studio as a browser does."""

    def __init__(self, door, cookie=None):
        self.door, self.cookie = door, cookie

    def __call__(self, method, path, body=None, headers=None):
        """The status, the body (as JSON if it is) and the headers; None drops a header."""
        own = {"Host": f"127.0.0.1:{self.door.port}", "Cookie": self.cookie}
        if body is not None or method == "POST":
            own["Content-Type"] = "application/json"
            own["Origin"] = f"http://127.0.0.1:{self.door.port}"
        sent = {name: one for name, one in (own | (headers or {})).items() if one is not None}
        connection = HTTPConnection("127.0.0.1", self.door.port, timeout=60)
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if data is not None and not hasattr(data, "__next__"):
                sent.setdefault("Content-Length", str(len(data)))
            for name, one in sent.items():
                connection.putheader(name, one)
            connection.endheaders(data, encode_chunked="Transfer-Encoding" in sent)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        is_json = content and answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(content) if is_json else content, answer.headers

    def get(self, path, **query):
        status, body, _ = self("GET", f"{path}?{urlencode(query)}" if query else path)
        assert status == 200, body
        return body

    def post(self, path, body):
        return self("POST", path, body)[:2]

    def edit(self, key=None, **body):
        key = {"Idempotency-Key": key or f"a key of {next(KEYS)}"}
        return self("POST", "/api/edit", body, key)[:2]

    def field(self, **query):
        """The header and the layers: winners, scores, variances, the unknown, second scores."""
        return unpacked(self.get("/api/plane/field", **{**SQUARE, "w": 16, "h": 12, **query}))

    @contextmanager
    def listening(self, after=None, last=None):
        """An open stream; a function that returns the next event as (id, name, data)."""
        connection = HTTPConnection("127.0.0.1", self.door.port, timeout=30)
        headers = {"Host": f"127.0.0.1:{self.door.port}", "Cookie": self.cookie}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        connection.request(
            "GET", "/events" + (f"?after={after}" if after is not None else ""), headers=headers
        )
        answer = connection.getresponse()
        assert answer.status == 200

        def following():
            parts = {}
            while True:
                line = answer.readline().decode().rstrip("\n")
                if not line and "data" in parts:
                    return int(parts["id"]), parts["event"], json.loads(parts["data"])
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    parts[name] = value

        try:
            yield following
        finally:
            connection.close()


def unpacked(found):
    """The header and the layers of a field that was sent."""
    length = int.from_bytes(found[:4], "little")
    header, rest = json.loads(found[4 : 4 + length]), found[4 + length :]
    m = header["w"] * header["h"]
    if not header["classes"]:
        assert rest == b""
        return header, ()
    byte, real = ("u1", m), ("<f4", 4 * m)
    kinds = [byte, real, real, byte, real]
    ends = np.cumsum([size for _, size in kinds])
    assert len(rest) == ends[-1]
    return header, tuple(
        np.frombuffer(rest[end - size : end], kind)
        for (kind, size), end in zip(kinds, ends, strict=True)
    )


def enter(door):
    """A visitor who came by the address with the token."""
    visitor = Visitor(door)
    status, _, headers = visitor("GET", door.address.partition(str(door.port))[2])
    assert status == 303
    return Visitor(door, headers["set-cookie"].partition(";")[0])


@contextmanager
def studying(path, pool=None, reader=None, **options):
    """A studio of a file, and of a pool if there is one; yields its door."""
    bound = socket.create_server(("127.0.0.1", 0))
    door = Door("127.0.0.1", bound.getsockname()[1])
    config = uvicorn.Config(
        create_app(path, door, pool, reader),
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=2,
        **options,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield door
    finally:
        door.closing = server.should_exit = True
        thread.join()
        bound.close()
