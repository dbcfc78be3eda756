"""A page on a living file: every click is an edit of its journal. Extra `studio`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import knowmore
from knowmore.extras import require
from knowmore.studio.door import Door

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["Door", "create_app"]


def create_app(path: Path, door: Door) -> FastAPI:
    """The studio of a file as an ASGI application; `door.address` lets the first visitor in.

    path : a .km file
    door : where it is served, and who may enter
    """
    require("fastapi", "studio")
    from knowmore.studio.app import application
    from knowmore.studio.studio import Studio

    return application(Studio(knowmore.open(path)), door)
