"""Living models in files: SQLite, no pickles, every edit durable and what is forgotten gone."""

from __future__ import annotations

import os
from typing import Any

from knowmore.store.browsing import to_sqlite
from knowmore.store.changing import EditContext as EditContext
from knowmore.store.file import PATIENCE
from knowmore.store.journal import FORGETS as FORGETS
from knowmore.store.journal import Entry, Marked
from knowmore.store.kinds import KINDS
from knowmore.store.schema import restore_schema
from knowmore.store.state import Restored, load, restore, save
from knowmore.store.store import Store
from knowmore.store.store import past as past
from knowmore.store.work import TUNE as TUNE
from knowmore.store.work import Forgotten, Preview, Record, Status
from knowmore.store.work import content as content

__all__ = [
    "KINDS",
    "Entry",
    "Forgotten",
    "Marked",
    "Preview",
    "Record",
    "Restored",
    "Status",
    "Store",
    "load",
    "open",
    "restore",
    "restore_schema",
    "save",
    "to_sqlite",
]


def open(  # noqa: A001  as in gzip
    path: str | os.PathLike[str], estimator: Any = None, *, timeout: float = PATIENCE
) -> Store:
    """The living model in a file, ready for edits and questions: see `Store`.

    estimator : unfitted, of knowmore; if there is no file, one is made with its settings. An
        existing file must be of the same kind, and keeps its own settings
    timeout : how many seconds an edit waits while another process writes to the file
    """
    return Store(path, estimator, timeout=timeout)
