"""What a file holds, in numbers."""

from __future__ import annotations

from collections import Counter
from json import loads
from pathlib import Path

from knowmore.store import codec, kinds
from knowmore.store.journal import Journal, moment_of
from knowmore.store.layout import File
from knowmore.store.reports import Status
from knowmore.store.work import Held


def status(path: Path, file: File, held: Held) -> Status:
    """All of it, within a transaction."""
    kind = str(held.facts["kind"])
    run = file.connection.execute
    grouped = "SELECT label, count(*) FROM examples WHERE live = 1 GROUP BY label ORDER BY label"
    classes = run(grouped).fetchall()
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
            _contributors(Journal(file, held.numbers), held),
            entries,
            int(undone),
            file.size(),
            held.estimator.get_params(deep=False),
            None if linear or not held.fitted else repr(held.estimator.kernel_),
            None if last is None else moment_of(last),
        )


def _contributors(journal: Journal, held: Held) -> dict[str | None, int]:
    """Of how many examples each contributor gave the features or the label."""
    features = journal.feature_givers()
    rows = "SELECT row, contributor FROM examples WHERE live = 1"
    labels = dict(journal.file.connection.execute(rows)) | journal.labellers()
    counts: Counter[str | None] = Counter()
    for row, vector in held.index.values():
        givers = {features[vector], labels[row]}
        counts.update(givers - {None} or givers)
    known = sorted((name for name in counts if name is not None), key=str)
    return {codec.string(name): counts[name] for name in (None, *known) if counts[name]}
