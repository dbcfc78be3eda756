"""A service on a free port of this machine, in a thread, and one way to ask it."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

uvicorn = pytest.importorskip("uvicorn")

from knowmore.serve import Settings, create_app  # noqa: E402


class Asked:
    """Asks a service at a port."""

    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, body=None, headers=None):
        """The status, the body (as JSON if it is) and the headers of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, data, sent | (headers or {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(text) if is_json else text, answer.headers

    def get(self, path, **headers):
        return self("GET", path, headers=headers)[:2]

    def post(self, path, body, **headers):
        return self("POST", path, body, headers)[:2]

    def when(self, holds, path="/readyz"):
        """Wait until this holds of the answer to a question."""
        end = time.monotonic() + 30
        while not holds(self.get(path)):
            assert time.monotonic() < end
            time.sleep(0.02)


@contextmanager
def serving(path, *, ready=True, failed=None, http="auto", **settings):
    app = create_app(Settings(path, **{"follow": 0.05} | settings), failed=failed)
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="on", http=http)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        ask = Asked(server.servers[0].sockets[0].getsockname()[1])
        if ready:
            ask.when(lambda answer: answer[0] == 200)
        yield ask
    finally:
        server.should_exit = True
        thread.join()
