"""A small service that answers about a model in a file, and follows the file. Extra `serve`.

Importing it loads neither scikit-learn nor the model: the service says that it is up at once, and
that it is ready when it can answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from knowmore._base import require
from knowmore.web import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["Settings", "create_app"]


def create_app(settings: Settings, **callbacks: Any) -> FastAPI:
    """The service as an ASGI application, for uvicorn or any other server.

    settings : which file, who may ask, and how much at once
    callbacks : `failed`, a function of the error if the model cannot be loaded at the start;
        `ready`, a function of nothing that is called once, when the model is loaded
    """
    require("fastapi", "serve")
    from knowmore.web import service_application

    return service_application(settings, **callbacks)
