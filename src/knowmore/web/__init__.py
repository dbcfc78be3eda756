"""The web layer: a service and a studio behind one guard, with one error shape and one follower.

Importing it loads neither scikit-learn nor FastAPI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from knowmore.web.access import Door as Door
from knowmore.web.access import Settings as Settings

if TYPE_CHECKING:
    from knowmore.web.pool import PoolQuestions as PoolQuestions
    from knowmore.web.pool import PoolReader as PoolReader
    from knowmore.web.routes import studio_application as studio_application
    from knowmore.web.service import service_application as service_application
    from knowmore.web.studio import Studio as Studio

_LAZY = {
    "PoolQuestions": "pool",
    "PoolReader": "pool",
    "Studio": "studio",
    "service_application": "service",
    "studio_application": "routes",
}


def __getattr__(name: str) -> Any:
    """A name of a module that is loaded when the name is first used."""
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
