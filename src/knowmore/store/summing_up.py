"""What a file holds, in numbers."""

from __future__ import annotations

from json import loads
from pathlib import Path

from knowmore.store import codec, kinds
from knowmore.store.journal import moment_of
from knowmore.store.layout import File
from knowmore.store.reports import Status
from knowmore.store.work import Held


def status(path: Path, file: File, held: Held) -> Status:
    """All of it, within a transaction."""
    kind = str(held.facts["kind"])
    run = file.connection.execute
    grouped = "SELECT {0}, count(*) FROM examples WHERE live = 1 GROUP BY {0} ORDER BY {0}"
    classes, contributors = (
        run(grouped.format(column)).fetchall() for column in ("label", "contributor")
    )
    last, entries, undone = run("SELECT max(at), count(*), total(undone) FROM journal").fetchone()
    regression, linear = kind.endswith("regression"), kinds.is_linear(kind)
    columns = held.facts["columns"] or {"count": None, "names": None}
    with file.understood("examples"):
        return Status(
            path,
            kind,
            len(held.index),
            {} if regression else {loads(text): n for text, n in classes},
            columns["count"],
            codec.valued(columns["names"]),
            {codec.string(text): n for text, n in contributors},
            entries,
            int(undone),
            file.size(),
            held.estimator.get_params(deep=False),
            None if linear or not held.fitted else repr(held.estimator.kernel_),
            None if last is None else moment_of(last),
        )
