"""Many readers and writers at once: no error, and each view is a prefix of the journal.

Every writer adds one example after the other, whose id says who wrote it and its number there. A
reader that sees n entries must see exactly their examples, and never fewer than before.
"""

from __future__ import annotations

import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import knowmore
from benchmarks.crash.kills import Tally, folder
from knowmore import GPClassifier


def _write(path: Path, writer: int, end: float) -> tuple[int, list[str]]:
    rng, count = np.random.default_rng(writer), 0
    try:
        with knowmore.open(path, timeout=60) as store:
            while time.monotonic() < end:
                label, name = "ab"[count % 2], f"{writer}-{count}"
                store.add(rng.normal(size=(1, 3)), [label], ids=[name], contributor=str(writer))
                count += 1
    except Exception as error:
        return count, [f"writer {writer}: {type(error).__name__}: {error}"]
    return count, []


def _read(path: Path, reader: int, end: float) -> tuple[int, list[str]]:
    views, before, wrong = 0, 0, []
    try:
        with knowmore.open(path, timeout=60) as store:
            while time.monotonic() < end and not wrong:
                store.refresh()
                ids, n = store.ids_.tolist(), len(store)
                entries = store.log()
                # The journal, and the examples with it, may have grown in the meantime.
                seen = [one.contributor for one in entries[1 : n - 1]]
                order = [name.partition("-")[0] for name in ids[2:]]
                if order != seen:
                    wrong.append(f"reader {reader}: {n} examples are no prefix of the journal")
                for writer in set(order):
                    own = [name for name in ids[2:] if name.startswith(f"{writer}-")]
                    if own != [f"{writer}-{i}" for i in range(len(own))]:
                        wrong.append(f"reader {reader}: edits of writer {writer} are missing")
                if n < before:
                    wrong.append(f"reader {reader}: {n} examples after {before}")
                if n and not np.isfinite(store.predict_proba(np.zeros((1, 3)))).all():
                    wrong.append(f"reader {reader}: no probability")
                views, before = views + 1, n
    except Exception as error:
        wrong.append(f"reader {reader}: {type(error).__name__}: {error}")
    return views, wrong


def crowd(seconds: float, readers: int = 8, writers: int = 4) -> tuple[Tally, int]:
    """A tally (`confirmed` are edits, `kills` processes), and the number of views by readers."""
    with folder() as where:
        path = where / "model.km"
        with knowmore.open(path, GPClassifier(kernel=RBF(2.0), noise=0.1)) as store:
            store.add(np.eye(3)[:2], ["a", "b"], ids=["first", "second"])
        end = time.monotonic() + seconds
        with get_context("fork").Pool(readers + writers) as pool:
            written: Any = [pool.apply_async(_write, (path, i, end)) for i in range(writers)]
            read: Any = [pool.apply_async(_read, (path, i, end)) for i in range(readers)]
            edits, views = [one.get() for one in written], [one.get() for one in read]
        wrong = [text for _, each in (*edits, *views) for text in each]
        count = sum(n for n, _ in edits)
        with knowmore.open(path) as store:
            if len(store) != count + 2:
                wrong.append(f"{count} edits were confirmed, but {len(store) - 2} are there")
            found = store.verify()
            if not found.ok:
                wrong.append(f"verify says {found}")
    return Tally(readers + writers, count, wrong), sum(n for n, _ in views)
