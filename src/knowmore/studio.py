"""A page on a living file: every click is an edit of its journal. Extra `studio`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import knowmore
from knowmore._base import require
from knowmore.web import Door

if TYPE_CHECKING:
    from fastapi import FastAPI

    from knowmore.web import PoolReader
    from knowmore.workbench import UnlabelledPool

__all__ = ["Door", "create_app"]


def create_app(
    path: Path,
    door: Door,
    pool: UnlabelledPool | None = None,
    reader: PoolReader | None = None,
) -> FastAPI:
    """The studio of a file as an ASGI application; `door.address` lets the first visitor in.

    path : a .km file
    door : where it is served, and who may enter
    pool : rows without labels to ask about
    reader : what reads a table that a page gives as such a pool; None: no page may
    """
    require("fastapi", "studio")
    from knowmore.web import PoolQuestions, Studio, studio_application

    # A pool that is refused leaves no file open.
    questions = PoolQuestions(pool, reader)
    return studio_application(Studio(knowmore.open(path), questions), door)
