"""Features that were computed before, in one SQLite file.

An entry belongs to the bytes of a picture and to everything that its features depend on, both by
their SHA-256. It is there wholly or not at all, whatever ends the process. Several processes may
use one file. What does not come out of it as it went in counts as absent: an entry is sealed by the
SHA-256 of what it belongs to and what it is.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Self, final

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput

FILE = "features.sqlite"
# Seconds to wait for another process that is writing.
_PATIENCE = 60
# The bytes of a SHA-256, before those of a packed vector.
_SEAL = 32
_TABLE = """
create table if not exists features (
  settings blob not null, picture blob not null, vector blob not null,
  primary key (settings, picture)
)"""


@final
class Cache:
    """Vectors by settings and picture, in a folder that is made if it is missing.

    Use it in a `with` block, in as many threads as you like.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Cache(folder) as cache:
    ...     cache.put(b"settings", {b"picture": np.arange(3.0)})
    ...     cache.get(b"settings", [b"picture", b"another"])
    {b'picture': array([0., 1., 2.])}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / FILE
        self._lock = Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        with self._told():
            try:
                self._connection = self._connected()
            except sqlite3.DatabaseError as error:
                self._start_anew(error)

    def get(self, settings: bytes, pictures: Sequence[bytes]) -> dict[bytes, Array]:
        """The vectors, float64 (d,), of those of the pictures that are known."""
        marks = ", ".join("?" * len(pictures))
        query = f"select picture, vector from features where settings = ? and picture in ({marks})"
        with self._lock, self._told():
            try:
                rows = self._connection.execute(query, (settings, *pictures)).fetchall()
            except sqlite3.DatabaseError as error:
                self._start_anew(error)
                return {}
        found = {picture: _vector(packed, settings, picture) for picture, packed in rows}
        return {picture: vector for picture, vector in found.items() if vector is not None}

    def put(self, settings: bytes, vectors: Mapping[bytes, Array]) -> None:
        """Keep finite vectors (d,); all of them or, if that fails, none."""
        rows = [
            (settings, picture, _packed(vector, settings, picture))
            for picture, vector in vectors.items()
        ]
        with self._lock, self._told():
            try:
                self._insert(rows)
            except sqlite3.DatabaseError as error:
                self._start_anew(error)
                self._insert(rows)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
        try:
            # Readers do not wait for writers, and a commit is one write.
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _insert(self, rows: list[tuple[bytes, bytes, bytes]]) -> None:
        with self._connection:
            self._connection.executemany("insert or replace into features values (?, ?, ?)", rows)

    def _start_anew(self, error: sqlite3.DatabaseError) -> None:
        """Give up a file that is damaged: whatever was in it can be computed again."""
        # Only that type itself: a file that is locked or closed has other names.
        if type(error) is not sqlite3.DatabaseError:
            raise error
        if "_connection" in vars(self):
            self._connection.close()
        for end in "", "-wal", "-shm":
            self.path.with_name(FILE + end).unlink(missing_ok=True)
        self._connection = self._connected()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(str(error)) from error

    def _unusable(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"The cache {str(self.path)!r} cannot be used: {why}. Name another folder, or do "
            f"without a cache."
        )


def _packed(vector: Array, settings: bytes, picture: bytes) -> bytes:
    packed = zlib.compress(np.asarray(vector, dtype="<f8").tobytes(), 1)
    return _seal(settings, picture, packed) + packed


def _vector(entry: Any, settings: bytes, picture: bytes) -> Array | None:
    """What was packed, or None if this is not it."""
    if not isinstance(entry, bytes):
        return None
    seal, packed = entry[:_SEAL], entry[_SEAL:]
    if seal != _seal(settings, picture, packed):
        return None
    vector = np.frombuffer(zlib.decompress(packed), dtype="<f8").astype(float, copy=False)
    return vector if np.isfinite(vector).all() else None


def _seal(*parts: bytes) -> bytes:
    lengths = ",".join(str(len(part)) for part in parts).encode()
    return hashlib.sha256(b"".join([lengths, *parts])).digest()
