"""A page on a living file: every click is an edit of its journal. Extra `studio`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import knowmore
from knowmore.extras import require
from knowmore.studio.door import Door

if TYPE_CHECKING:
    from fastapi import FastAPI

    from knowmore.studio.pool import Pool
    from knowmore.studio.questions import Reader

__all__ = ["Door", "create_app"]


def create_app(
    path: Path, door: Door, pool: Pool | None = None, reader: Reader | None = None
) -> FastAPI:
    """The studio of a file as an ASGI application; `door.address` lets the first visitor in.

    path : a .km file
    door : where it is served, and who may enter
    pool : rows without labels to ask about
    reader : what reads a table that a page gives as such a pool; None: no page may
    """
    require("fastapi", "studio")
    from knowmore.studio.app import application
    from knowmore.studio.pool import Questions
    from knowmore.studio.studio import Studio

    # A pool that is refused leaves no file open.
    questions = Questions(pool)
    return application(Studio(knowmore.open(path), questions), door, reader)
