"""A page on a living file: every click is an edit of its journal. Extra `studio`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import knowmore
from knowmore._base import require
from knowmore.errors import KnowmoreError
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
    failed: Callable[[KnowmoreError], None] | None = None,
) -> FastAPI:
    """The studio of a file as an ASGI application; `door.address` lets the first visitor in.

    The file is opened when the application starts, in a thread: until then the page says so.

    path : a .km file
    door : where it is served, and who may enter
    pool : rows without labels to ask about
    reader : what reads a table that a page gives as such a pool; None: no page may
    failed : is told why the file cannot be opened
    """
    require("fastapi", "studio")
    from knowmore.web import PoolQuestions, Studio, studio_application

    # A pool is refused at once.
    questions = PoolQuestions(pool, reader)

    def opens(progress: Any) -> Any:
        progress.tell(f"Opening {path.name}")
        store = knowmore.open(path)
        progress.tell(f"Reading {len(store):,} examples")
        studio = Studio(store, questions, progress)
        progress.tell(f"Asking of each of {len(store):,} examples what the others say")
        with suppress(KnowmoreError):
            # The page asks for it first, and is told of errors then.
            studio.state()
        return studio

    return studio_application(opens, door, failed)
