"""Random histories with forgetting, and a search of every byte of every file afterwards.

The values of all examples are random, so that any eight bytes of one are found nowhere by chance.
The search knows nothing of SQLite: it looks at all bytes of all files in the folder.
"""

from __future__ import annotations

import sqlite3
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import knowmore
from benchmarks.crash.kills import Tally, folder
from benchmarks.crash.sequences import NAMES, gp
from knowmore import KnowmoreError, LinearGPClassifier
from knowmore.errors import NotWritten

_PIECE = 8


class _History:
    """A file, the values of the examples held, and the values of the examples forgotten."""

    def __init__(self, path: Path, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.path, self.d = path, int(self.rng.choice([2, 9, 60, 700]))
        linear = seed % 5 == 4
        self.store = knowmore.open(path, LinearGPClassifier() if linear else gp(), timeout=0.3)
        self.values: dict[str, list[bytes]] = {}
        self.gone: list[bytes] = []
        self.says: list[str] = []

    def step(self) -> None:
        """Make a random edit."""
        rng, ids = self.rng, sorted(self.values)
        some = [ids[i] for i in rng.permutation(len(ids))[: rng.integers(1, 9)]]
        match rng.choice(["add", "add", "relabel", "replace", "forget", "undo", "reopen"]):
            case "relabel" if some:
                self.store.relabel(some, str(rng.choice(NAMES)))
            case "replace" if some:
                X, thumbnails = self._new(len(some))
                self.store.replace(some, X, thumbnails=thumbnails)
                for name, x, picture in zip(some, X, thumbnails, strict=True):
                    self.values[name] += [x.tobytes(), picture]
            case "forget" if len(ids) > 10:
                self._forget(some)
            case "undo" if ids:
                self._undo()
            case "reopen":
                self.store.close()
                self.store = knowmore.open(self.path, timeout=0.3)
            case _:
                self._add(int(rng.integers(1, 12)))

    def _new(self, k: int) -> tuple[Any, list[bytes]]:
        # Within the grid that the first rows of a linear model decide.
        X = self.rng.uniform(1.0, 1.9, size=(k, self.d))
        return X, [self.rng.bytes(int(self.rng.integers(8, 900))) for _ in range(k)]

    def _add(self, k: int) -> None:
        X, thumbnails = self._new(k)
        names = [self.rng.bytes(8).hex() for _ in range(k)]
        labels = self.rng.choice(NAMES, k).tolist()
        contents = [self.rng.bytes(32) for _ in range(k)]
        more = {
            "contents": contents,
            "thumbnails": thumbnails,
            "origins": [f"from {n}" for n in names],
        }
        self.store.add(X, labels, ids=names, **more)
        for i, name in enumerate(names):
            self.values[name] = [X[i].tobytes(), name.encode(), contents[i], thumbnails[i]]

    def _undo(self) -> None:
        try:
            self.store.undo()
        except KnowmoreError:
            return
        # What was undone may come back until the next edit; here it never does.
        held = {str(name) for name in self.store.ids_}
        self._add(1)
        for name in [one for one in self.values if one not in held]:
            if name not in {str(one) for one in self.store.ids_}:
                self.gone += self.values.pop(name)

    def _forget(self, some: list[str]) -> None:
        try:
            done = self.store.forget(some)
        except NotWritten:
            # Somebody reads: nothing was forgotten, and it says so.
            self.says.append("refused")
            return
        for name in some:
            self.gone += self.values.pop(name)
        self.says.append("traces" if done.traces else "clean")

    def found(self) -> list[bytes]:
        """The forgotten values with bytes left in any file."""
        left = []
        for file in self.path.parent.iterdir():
            data = np.frombuffer(file.read_bytes(), np.uint8)
            left += _there(data, self.gone)
        return left


def _there(data: Any, needles: list[bytes]) -> list[bytes]:
    """The needles with some eight bytes in the data."""
    if len(data) < _PIECE:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(data, _PIECE)
    words = np.sort(np.ascontiguousarray(windows).view("<u8").ravel())
    found = []
    for needle in needles:
        pieces = [needle[i : i + _PIECE] for i in range(0, len(needle) - _PIECE + 1, _PIECE)]
        values = np.array([struct.unpack("<Q", piece)[0] for piece in pieces], dtype="<u8")
        at = np.searchsorted(words, values).clip(max=len(words) - 1)
        if (words[at] == values).any():
            found.append(needle)
    return found


def forgetting(histories: int, first: int = 0) -> tuple[Tally, dict[str, int]]:
    """Histories without readers and with one that holds on; what `forget` said."""
    total, said = Tally(), {"clean": 0, "traces": 0, "refused": 0}
    for seed in range(first, first + histories):
        with folder() as where:
            history = _History(where / "model.km", seed)
            reader = None
            for step in range(int(history.rng.integers(6, 25))):
                if seed % 2 and step % 5 == 3:
                    reader = sqlite3.connect(where / "model.km", isolation_level=None)
                    reader.execute("BEGIN")
                    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
                with suppress(NotWritten):
                    history.step()
                if reader is not None:
                    reader.close()
                    reader = None
            left, verified = history.found(), history.store.verify()
            clean = not history.says or history.says[-1] != "traces"
            for one in history.says:
                said[one] += 1
            total += Tally(1, len(history.gone))
            if left and clean and verified.ok:
                total.wrong.append(f"history {seed}: {len(left)} values are left unsaid")
            if not verified.ok and clean:
                total.wrong.append(f"history {seed}: {verified}")
            history.store.close()
    return total, said
