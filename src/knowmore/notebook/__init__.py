"""The plane and the inbox of the studio in a notebook, on an estimator. Extra `notebook`."""

from knowmore._base import require

require("anywidget", "notebook")
require("fastapi", "notebook")

from knowmore.notebook.widgets import Inbox, Plane  # noqa: E402

__all__ = ["Inbox", "Plane"]
