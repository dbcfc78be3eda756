"""The service of the studio without a network: the widgets of an estimator ask it by messages."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from functools import cache
from threading import Thread
from typing import Any, NamedTuple, final
from urllib.parse import unquote
from weakref import WeakSet, WeakValueDictionary

from knowmore.notebook.memory import Memory
from knowmore.studio import Door
from knowmore.studio.app import application
from knowmore.studio.studio import Studio

# What the plane and the inbox ask for.
_SERVED = (
    "/api/state",
    "/api/classes",
    "/api/plane/",
    "/api/edit",
    "/api/whatif",
    "/api/suspects",
    "/api/log",
)


class Answered(NamedTuple):
    """An answer of the service."""

    status: int
    body: bytes


@final
class Service:
    """The studio of an estimator, and the widgets that ask it.

    The caller waits for each answer: no cell runs while an edit is under way.
    """

    def __init__(self, estimator: Any) -> None:
        self.widgets: WeakSet[Any] = WeakSet()
        self._studio = Studio(Memory(estimator))
        # Its only visitor has been let in.
        self._door = Door("localhost", 1)
        self._app = application(self._studio, self._door)

    def __call__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answered:
        """The answer to a request; whoever looks at the estimator is told what it changed."""
        if not path.startswith(_SERVED):
            return Answered(404, b'{"error": "This is not in a notebook."}')
        events = self._studio.events
        count = events.count
        found = asyncio.run_coroutine_threadsafe(
            self._answer(method, path, headers, body), _loop()
        ).result()
        for event in events.newer(count) or ():
            for widget in [*self.widgets]:
                widget.send({"heard": event.data})
        return found

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Answered:
        name, _, query = path.partition("?")
        own = {
            "host": "localhost:1",
            "origin": "http://localhost:1",
            "cookie": self._door.cookie.partition(";")[0],
        }
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(name),
            "raw_path": name.encode(),
            "query_string": query.encode(),
            "headers": [
                (key.lower().encode(), value.encode()) for key, value in (headers | own).items()
            ],
        }
        status, parts = 0, bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.extend(message.get("body", b""))

        await self._app(scope, receive, send)
        return Answered(status, bytes(parts))


_services: WeakValueDictionary[int, Service] = WeakValueDictionary()


def service_of(estimator: Any) -> Service:
    """That of the widgets which look at this estimator: there is one as long as one of them is."""
    # It keeps the estimator, whose number is its own so long.
    return _services.setdefault(id(estimator), Service(estimator))


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """A loop in a thread of its own: that of a notebook is at work on the message."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="knowmore.notebook", daemon=True).start()
    return loop
