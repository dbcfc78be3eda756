"""A cache of features in one SQLite file.

An entry belongs to the bytes of a picture and to everything else that its features depend on, both
given by their SHA-256. It is written completely or not at all, whatever ends the process. Several
processes may share a file. Entries are sealed by a SHA-256 of what they belong to and what they
hold; a damaged one counts as missing.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Self, final

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.files import File

FILE = "features.sqlite"
# Seconds to wait for another process that is writing.
_PATIENCE = 60
# The length of a SHA-256, which precedes each packed vector.
_SEAL = 32
_SETUP = (
    # Readers do not wait for writers, and a commit is one write.
    "pragma journal_mode = wal",
    "pragma synchronous = normal",
    "create table if not exists features (settings blob not null, picture blob not null, "
    "vector blob not null, primary key (settings, picture))",
)


@final
class Cache:
    """Vectors by settings and picture, in a folder that is created if it is missing.

    Use it in a `with` block, in as many threads as you like.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Cache(folder) as cache:
    ...     cache.put(b"settings", {b"picture": np.arange(3.0)})
    ...     cache.get(b"settings", b"picture")
    array([0., 1., 2.])
    """

    def __init__(self, folder: File) -> None:
        self.path = Path(folder) / FILE
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._run("select 1", [()])

    def get(self, settings: bytes, picture: bytes) -> Array | None:
        """The vector of the picture, float64 (d,), if it is known."""
        query = "select vector from features where settings = ? and picture = ?"
        found = self._run(query, [(settings, picture)])
        return _unpacked(found[0][0], settings, picture) if found else None

    def put(self, settings: bytes, vectors: Mapping[bytes, Array]) -> None:
        """Store the finite vectors (d,) of pictures; all of them or, if that fails, none."""
        rows = [(settings, key, _packed(each, settings, key)) for key, each in vectors.items()]
        self._run("insert or replace into features values (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, query: str, rows: Sequence[tuple[bytes, ...]]) -> list[Any]:
        """What the query finds for all rows, in one transaction; a damaged file is replaced."""
        try:
            with self._lock:
                try:
                    return self._transaction(query, rows)
                except sqlite3.DatabaseError as error:
                    # Damage is that very type; a locked or closed file raises a subclass of it.
                    if type(error) is not sqlite3.DatabaseError:
                        raise
                    # Whatever the file held can be computed again.
                    self.close()
                    for end in "", "-wal", "-shm":
                        self.path.with_name(FILE + end).unlink(missing_ok=True)
                    self._connection = None
                    return self._transaction(query, rows)
        except (sqlite3.Error, OSError) as error:
            raise InvalidInput(
                f"The cache {str(self.path)!r} cannot be used: {error}. Name another folder, or do "
                f"without a cache."
            ) from error

    def _transaction(self, query: str, rows: Sequence[tuple[bytes, ...]]) -> list[Any]:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
            try:
                for statement in _SETUP:
                    new.execute(statement)
            except BaseException:
                new.close()
                raise
            self._connection = new
        with self._connection as connection:
            return [found for row in rows for found in connection.execute(query, row)]


def _packed(vector: Array, settings: bytes, picture: bytes) -> bytes:
    packed = zlib.compress(np.asarray(vector, dtype="<f8").tobytes(), 1)
    return _seal(settings, picture, packed) + packed


def _unpacked(entry: Any, settings: bytes, picture: bytes) -> Array | None:
    """The vector in an entry; None if it is damaged."""
    if not isinstance(entry, bytes) or entry[:_SEAL] != _seal(settings, picture, entry[_SEAL:]):
        return None
    vector = np.frombuffer(zlib.decompress(entry[_SEAL:]), dtype="<f8").astype(float, copy=False)
    return vector if np.isfinite(vector).all() else None


def _seal(*parts: bytes) -> bytes:
    lengths = ",".join(str(len(part)) for part in parts).encode()
    return hashlib.sha256(b"".join([lengths, *parts])).digest()
