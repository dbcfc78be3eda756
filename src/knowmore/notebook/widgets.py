"""The widgets: the page of the studio, in a part of the notebook's."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any, ClassVar, final

import anywidget
import traitlets

from knowmore.errors import InvalidInput
from knowmore.estimators.living import EditableClassifier
from knowmore.notebook.service import service_of

# The modules of the page that the widgets are made of, each after those that it imports.
_MODULES = ("page", "api", "draw", "shell", "plane", "inbox")


def _page() -> str:
    """The module that anywidget loads: the files of the studio as texts, and what puts them up."""
    static = files("knowmore.studio").joinpath("static")
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

    estimator : a classifier that holds its examples, fitted or not
    """

    _esm = _page()
    _view: ClassVar[str]
    _shown = traitlets.Unicode().tag(sync=True)

    def __init__(self, estimator: Any) -> None:
        if not isinstance(estimator, EditableClassifier):
            raise InvalidInput(
                f"A widget edits a classifier that holds its examples, such as a GPClassifier, but "
                f"got {type(estimator).__name__}."
            )
        super().__init__(_shown=self._view)
        self._service = service_of(estimator)
        self._service.widgets.add(self)
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: dict[str, Any], __: Any) -> None:
        """A request of the page, which waits for the answer with its number."""
        found = self._service(
            content.get("method", "GET"),
            content["path"],
            content.get("headers", {}),
            content.get("body", "").encode(),
        )
        self.send({"id": content["id"], "status": found.status}, [found.body])


@final
class Plane(_Widget):
    """The plane of a classifier in a notebook: click to add, drag to move, right-click to forget.

    Parameters
    ----------
    estimator : a classifier that holds its examples, fitted or not. Every click is an exact edit
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
