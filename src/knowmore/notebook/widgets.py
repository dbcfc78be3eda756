"""The widgets: the page of the studio, in a part of the notebook's, and the service behind it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import MutableMapping
from functools import cache
from importlib.resources import files
from threading import Thread
from typing import Any, ClassVar, final
from urllib.parse import unquote
from weakref import WeakSet, WeakValueDictionary

import anywidget
import traitlets

from knowmore.errors import InvalidInput
from knowmore.estimators import EditableClassifier
from knowmore.notebook.memory import Memory
from knowmore.web import Door, Studio, studio_application

# Paths that the plane and the inbox ask for.
_SERVED = (
    "/api/state",
    "/api/classes",
    "/api/plane/",
    "/api/edit",
    "/api/whatif",
    "/api/suspects",
    "/api/log",
)
# The modules of the page that the widgets are made of, each after those that it imports.
_MODULES = ("page", "api", "draw", "example", "choosing", "shell", "plane", "inbox")


# -- the service ---------------------------------------------------------------------------------


@final
class WidgetService:
    """The studio of an estimator without a network: its widgets ask by messages.

    The caller waits for each answer: no cell runs while an edit is under way.
    """

    def __init__(self, estimator: Any) -> None:
        self.widgets: WeakSet[Any] = WeakSet()
        self._studio = Studio(Memory(estimator))
        # The only visitor is the widget, which is signed in.
        self._door = Door("localhost", 1)
        self._app = studio_application(self._studio, self._door)

    def __call__(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """The status and body that answer a request; all widgets are told what it changed."""
        if not path.startswith(_SERVED):
            return 404, b'{"error": "This is not in a notebook."}'
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
    ) -> tuple[int, bytes]:
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
        return status, bytes(parts)


_services: WeakValueDictionary[int, WidgetService] = WeakValueDictionary()


def service_of(estimator: Any) -> WidgetService:
    """The service shared by all widgets on this estimator; lives as long as any of them."""
    # The service keeps the estimator alive, so that no other gets its id.
    return _services.setdefault(id(estimator), WidgetService(estimator))


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """A loop in a thread of its own: the notebook's own loop is at work on the message."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="knowmore.notebook", daemon=True).start()
    return loop


# -- the widgets ---------------------------------------------------------------------------------


def _page() -> str:
    """The module that anywidget loads: the files of the studio as texts, and what puts them up."""
    static = files("knowmore.web").joinpath("static")
    texts = {name: static.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in _MODULES}
    html = static.joinpath("index.html").read_text(encoding="utf-8")
    body = re.sub(r"(?s).*<body>|<h1>.*?</h1>|<a class=\"skip\".*?</a>|</body>.*", "", html)
    style = static.joinpath("style.css").read_text(encoding="utf-8")
    # Nothing of it is about the rest of the notebook.
    style = re.sub(r":root\b|(?m:^html\b)", ":host", style)
    style = re.sub(r"(?m)^body\b", "#none", style)
    own = files("knowmore.notebook").joinpath("widget.js").read_text(encoding="utf-8")
    parts = {"MODULES": texts, "BODY": body, "STYLE": style}
    given = (f"const {name} = {json.dumps(value)};\n" for name, value in parts.items())
    return "".join(given) + own


class _Widget(anywidget.AnyWidget):
    """A view of the studio on an estimator, which every click and key edits exactly.

    estimator : a kernel or forest classifier, fitted or not
    """

    _esm = _page()
    _view: ClassVar[str]
    _shown = traitlets.Unicode().tag(sync=True)

    def __init__(self, estimator: Any) -> None:
        if not isinstance(estimator, EditableClassifier):
            raise InvalidInput(
                f"A widget edits a kernel or forest classifier, such as a GPClassifier, but "
                f"got {type(estimator).__name__}."
            )
        super().__init__(_shown=self._view)
        self._service = service_of(estimator)
        self._service.widgets.add(self)
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: dict[str, Any], __: Any) -> None:
        """A request of the page, which waits for the answer with its number."""
        status, body = self._service(
            content.get("method", "GET"),
            content["path"],
            content.get("headers", {}),
            content.get("body", "").encode(),
        )
        self.send({"id": content["id"], "status": status}, [body])


@final
class Plane(_Widget):
    """The plane of a classifier in a notebook: click to add, drag to move, right-click to forget.

    Parameters
    ----------
    estimator : a kernel or forest classifier, fitted or not. Every click is an exact edit
        of it: `add`, `replace`, `relabel`, `remove`. U brings back what it was before

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], ["no", "yes", "yes"])
    >>> widget = Plane(clf)  # as the last line of a cell it is shown
    """

    _view = "plane"


@final
class Inbox(_Widget):
    """The labels of a classifier that the others contradict, in a notebook; one key answers.

    Parameters
    ----------
    estimator : as for `Plane`. Both may look at the same one, and each sees what the other does
    """

    _view = "inbox"
