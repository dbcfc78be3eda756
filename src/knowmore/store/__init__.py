"""Living models in files: SQLite, no pickles, every edit durable and what is forgotten gone."""

from __future__ import annotations

import os
from typing import Any

from knowmore.store.journal import Entry
from knowmore.store.reports import Forgotten, Record, Status
from knowmore.store.store import Store
from knowmore.store.traces import Trace

__all__ = ["Entry", "Forgotten", "Record", "Status", "Store", "Trace", "load", "open"]


def open(path: str | os.PathLike[str], estimator: Any = None, **options: Any) -> Store:  # noqa: A001
    """The living model in the file at `path`; with an unfitted estimator it is made if need be.

    estimator : its settings are those of a new file; an existing one must be of the same kind
    """
    return Store(path, estimator, **options)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator in a file, in memory: to edit it does not touch the file."""
    with Store(path) as store:
        return store.estimator
