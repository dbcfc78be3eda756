"""Stored features: what they depend on, the tables of `knowmore features`, and the cache.

A table, .npz or .parquet, records how its features were made. Those of two tables can be compared
if they are of the same kind, with the same settings and, where there are any, the same words.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Self, final

import numpy as np

from knowmore._base import (
    Array,
    Arrays,
    File,
    a_type,
    check_name,
    optional,
    require,
    undamaged,
    written,
)
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.images.codebooks import Codebook
from knowmore.images.embedding import Embedding, is_onnx
from knowmore.images.networks import EXTRA
from knowmore.images.reading import fitted

# Increase it when the same settings give other numbers: entries of older caches become invalid.
VERSION = 2
# Pictures are reduced to this longest side. Much more shows little that patches of 16 pixels need.
LONGEST = 480
# How the name of a table ends.
FORMS = (".npz", ".parquet")
_REMEDY = "it is cut off or damaged, or `knowmore features` did not write it."

FILE = "features.sqlite"
# Seconds to wait for another process that is writing.
_PATIENCE = 60
# Seconds between two attempts to prepare a file.
_PAUSE = 0.01
# The length of a SHA-256, which precedes each packed vector.
_SEAL = 32
_SETUP = (
    # Readers do not wait for writers, and a commit is one write.
    "pragma journal_mode = wal",
    "pragma synchronous = normal",
    "create table if not exists features (settings blob not null, picture blob not null, "
    "vector blob not null, primary key (settings, picture))",
)


# -- what features depend on ---------------------------------------------------------------------


def settings_of(steps: Sequence[Any], longest: int = LONGEST) -> str:
    """Everything but the picture that features depend on, as canonical JSON.

    A codebook counts by what it has learnt, not by how. Other versions of the libraries may round
    differently. The number of threads does not matter.
    """
    libraries = {name: optional(name, "images").__version__ for name in ("PIL", "cv2")}
    for step in steps:
        if isinstance(step, Embedding):
            # Loading it would take longer than looking up the features.
            require("onnxruntime", "onnx" if is_onnx(step.model) else EXTRA)
            libraries["onnxruntime"] = version("onnxruntime")
    facts = {"version": VERSION, "longest": longest, "libraries": libraries}
    return canonical(facts | {"steps": [[type(step).__name__, _facts(step)] for step in steps]})


def _facts(step: Any) -> Any:
    """The parameters of a step, or the digest of what a codebook has learnt."""
    if not isinstance(step, Codebook):
        facts = {name: value for name, value in step.get_params().items() if name != "n_jobs"}
        # A network counts by what the file contains, wherever it is.
        if isinstance(step, Embedding) and is_onnx(step.model):
            facts["model"] = digest(Path(step.model).read_bytes()).hex()
        return facts
    arrays = vars(fitted(step, "vocabulary_")).items()
    parts = [canonical([n, a.dtype.str, a.shape]).encode() + a.tobytes() for n, a in arrays]
    return digest(b"".join(parts)).hex()


def canonical(facts: Any) -> str:
    """JSON that is the same for the same facts."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        raise InvalidInput(f"A setting is {a_type(value)}, which cannot be stored. Use no cache.")

    return json.dumps(facts, sort_keys=True, separators=(",", ":"), default=plain)


def digest(data: bytes) -> bytes:
    """The SHA-256."""
    return sha256(data).digest()


def unlike(mine: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """How two ways to make features differ, in words; None if they do not."""
    if mine["kind"] != theirs["kind"]:
        return f"another kind, {mine['kind']} and not {theirs['kind']}"
    # Codebooks are recorded by a text, other steps by their parameters.
    words, others = (
        {name: value for name, value in about["steps"] if isinstance(value, str)}
        for about in (mine, theirs)
    )
    if words != others:
        return "other visual words"
    changed = [name for name in ("longest", "steps", "version") if mine[name] != theirs[name]]
    return f"other settings ({changed[0]})" if changed else None


# -- tables --------------------------------------------------------------------------------------


def feature_table(path: File, *, like: File | None = None) -> Examples:
    """The features in a table, with the ids and labels of their pictures.

    `like` names another table, such as the one that a model has learnt from. If this one was made
    differently, its numbers mean something else, and it is refused.
    """
    about = made_with(path)
    if like is not None and (difference := unlike(about, made_with(like))):
        here, there = os.fspath(path), os.fspath(like)
        problem = f"{here!r} cannot be compared with {there!r}: it has {difference}."
        raise InvalidInput(f"{problem} Make it again: knowmore features ... --like {there}")
    with undamaged(path, "a table of features", _REMEDY):
        if check_form(path):
            with Arrays(path) as arrays:
                ids, labels, features = (arrays[name] for name in ("ids", "labels", "features"))
        else:
            table = optional("pyarrow.parquet", "tables").read_table(path)
            ids, labels = (np.array(table[name].to_pylist()) for name in ("ids", "labels"))
            vectors = table["features"].combine_chunks()
            features = vectors.flatten().to_numpy().reshape(len(vectors), -1)
        return Examples.of(features, labels, tuple(ids.tolist()))


def write_table(
    path: File, ids: Sequence[str], labels: Sequence[str], features: Array, about: str
) -> None:
    """Write ids (k,), labels (k,), features (k, D) and how they were made; all or nothing."""
    with written(path) as file:
        if check_form(path):
            arrays = {"ids": np.array(ids), "labels": np.array(labels), "features": features}
            np.savez(file, allow_pickle=False, about=np.array(about), **arrays)
        else:
            pa = optional("pyarrow", "tables")
            d = features.shape[1]
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), d)
            columns = {"ids": pa.array(ids), "labels": pa.array(labels), "features": vectors}
            table = pa.table(columns).replace_schema_metadata({"about": about})
            optional("pyarrow.parquet", "tables").write_table(table, file)


def check_form(path: File) -> bool:
    """Whether a table is .npz, and not .parquet; it must be one, and its library installed."""
    check_name(path)
    ending = Path(path).suffix
    if ending not in FORMS:
        raise InvalidInput(f"The table {os.fspath(path)!r} must end in .npz or .parquet.")
    if ending == ".parquet":
        require("pyarrow", "tables")
    return ending == ".npz"


def made_with(path: File) -> dict[str, Any]:
    """How the features of a table were made, but for the libraries' versions, which only round."""
    is_npz = check_form(path)
    with undamaged(path, "a table of features", _REMEDY):
        if is_npz:
            with Arrays(path) as arrays:
                text = str(arrays["about"])
        else:
            text = optional("pyarrow.parquet", "tables").read_schema(path).metadata[b"about"]
        about = json.loads(text)
        # A file of another program fails here, and not when it is compared.
        dict(about["steps"])
        return {name: about[name] for name in ("kind", "version", "longest", "steps")}


# -- the cache -----------------------------------------------------------------------------------


@final
class Cache:
    """Vectors by settings and picture, in one SQLite file of a folder, which is created if needed.

    An entry belongs to the bytes of a picture and to everything else that its features depend on,
    both given by their SHA-256. It is written completely or not at all, whatever ends the process,
    and sealed by a SHA-256 of what it belongs to and what it holds; a damaged one counts as
    missing. Several processes may share a file.

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
        for (entry,) in self._run(query, [(settings, picture)]):
            # Another program may have stored something else than bytes.
            if isinstance(entry, bytes) and entry == _sealed(entry[_SEAL:], settings, picture):
                vector = np.frombuffer(zlib.decompress(entry[_SEAL:]), dtype="<f8").astype(float)
                return vector if np.isfinite(vector).all() else None
        return None

    def put(self, settings: bytes, vectors: Mapping[bytes, Array]) -> None:
        """Store the finite vectors (d,) of pictures; all of them or, if that fails, none."""
        rows = []
        for picture, vector in vectors.items():
            packed = zlib.compress(np.asarray(vector, dtype="<f8").tobytes(), 1)
            rows.append((settings, picture, _sealed(packed, settings, picture)))
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
        """Results of the query for all rows, in one transaction; a damaged file is replaced."""
        try:
            with self._lock:
                try:
                    return self._transaction(query, rows)
                except sqlite3.DatabaseError as error:
                    # Damage is that very type; a locked or closed file raises a subclass of it.
                    if type(error) is not sqlite3.DatabaseError:
                        raise
                    # All entries of the file can be computed again.
                    self.close()
                    for end in "", "-wal", "-shm":
                        self.path.with_name(FILE + end).unlink(missing_ok=True)
                    self._connection = None
                    return self._transaction(query, rows)
        except (sqlite3.Error, OSError) as error:
            problem = f"The cache {str(self.path)!r} cannot be used: {error}."
            raise InvalidInput(f"{problem} Name another folder, or use no cache.") from error

    def _transaction(self, query: str, rows: Sequence[tuple[bytes, ...]]) -> list[Any]:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
            try:
                _set_up(new)
            except BaseException:
                new.close()
                raise
            self._connection = new
        with self._connection as connection:
            return [found for row in rows for found in connection.execute(query, row)]


def _set_up(connection: sqlite3.Connection) -> None:
    """Prepare a file that other processes may be preparing at the same moment.

    SQLite does not wait for a lock when it changes the journal mode, whatever the timeout.
    """
    end = monotonic() + _PATIENCE
    while True:
        try:
            for statement in _SETUP:
                connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > end:
                raise
        sleep(_PAUSE)


def _sealed(packed: bytes, settings: bytes, picture: bytes) -> bytes:
    """A packed vector after the digest of it and of what it belongs to."""
    lengths = ",".join(str(len(part)) for part in (settings, picture, packed)).encode()
    return digest(lengths + settings + picture + packed) + packed
