"""What was measured is kept in the user's cache: a later run computes only what is missing."""

from __future__ import annotations

import json
import sqlite3
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, final

import knowmore
from knowmore._base import user_folder

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS measured (task TEXT, rows INTEGER, seed INTEGER, model TEXT, "
    "version TEXT, measures TEXT, PRIMARY KEY (task, rows, seed, model, version))"
)
# Several processes may write at once: seconds that one waits for another.
_PATIENCE = 60.0


class Key(NamedTuple):
    """What was measured: a task with so many rows learnt, the seed of the split, and a model.

    version : of the model's library
    """

    task: str
    rows: int
    seed: int
    model: str
    version: str


@final
class Remembered:
    """A file of measures by their keys; without a name it is in memory and gone at the end.

    >>> with Remembered("") as kept:
    ...     kept[Key("iris", 100, 0, "SVC", "1.0")] = {"accuracy": 0.9}
    ...     kept.get(Key("iris", 100, 0, "SVC", "1.0")), kept.get(Key("iris", 99, 0, "SVC", "1.0"))
    ({'accuracy': 0.9}, None)
    """

    def __init__(self, path: str | Path) -> None:
        self._file = sqlite3.connect(path or ":memory:", timeout=_PATIENCE)
        self._file.execute(_SCHEMA)

    def get(self, key: Key) -> dict[str, float] | None:
        """The measures of a key, or None."""
        columns = " AND ".join(f"{name} = ?" for name in Key._fields)
        row = self._file.execute(f"SELECT measures FROM measured WHERE {columns}", key).fetchone()
        return None if row is None else json.loads(row[0])

    def __setitem__(self, key: Key, measures: dict[str, float]) -> None:
        with self._file:
            self._file.execute(
                "INSERT OR REPLACE INTO measured VALUES (?, ?, ?, ?, ?, ?)",
                (*key, json.dumps(measures)),
            )

    def __enter__(self) -> Remembered:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()


def kept_file() -> Path:
    """The file in the user's cache."""
    folder = user_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "tables.db"


@cache
def digest_of_knowmore() -> str:
    """Of all code of knowmore: what its models measured with other code is not theirs any more."""
    folder = Path(knowmore.__file__).parent
    digest = blake2b(digest_size=8)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
