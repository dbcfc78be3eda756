"""Tables of features, as `knowmore features` writes them: .npz or .parquet.

A table says what its features were made with. Two tables can be compared if they were made alike:
of one kind, with the same settings and, where there are any, the same visual words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.extras import optional, require
from knowmore.files import Arrays, undamaged, written

File = str | os.PathLike[str]

# The libraries' versions are told too, but they round otherwise at most.
_TOLD = ("kind", "version", "longest", "steps")
_REMEDY = "it is cut off or damaged, or `knowmore features` did not write it."


def feature_table(path: File, *, like: File | None = None) -> Examples:
    """The features in a table, with the ids and labels of their pictures.

    `like` names another table, such as the one that a model has learnt from. If this table was not
    made as that one was, its numbers mean something else, and it is refused.
    """
    about = made_with(path)
    difference = None if like is None else unlike(about, made_with(like))
    if like is not None and difference:
        raise InvalidInput(
            f"The features of {os.fspath(path)!r} cannot be compared with those of "
            f"{os.fspath(like)!r}: they have {difference}. Make them again: knowmore features "
            f"... --like {os.fspath(like)}"
        )
    read = _from_npz if _is_npz(path) else _from_parquet
    with undamaged(path, "a table of features", _REMEDY):
        ids, labels, features = read(path)
        return Examples.of(features, labels, tuple(ids.tolist()))


def made_with(path: File) -> dict[str, Any]:
    """What the features of a table were made with, as far as they depend on it."""
    is_npz = _is_npz(path)
    check_form(path)
    with undamaged(path, "a table of features", _REMEDY):
        if is_npz:
            with Arrays(path) as arrays:
                text = str(arrays["about"])
        else:
            text = optional("pyarrow.parquet", "tables").read_schema(path).metadata[b"about"]
        about: dict[str, Any] = json.loads(text)
        # What something else has written shows now, not when it is compared.
        dict(about["steps"])
        return {name: about[name] for name in _TOLD}


def unlike(mine: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """In what two ways to make features differ, in words; None if in nothing."""
    if mine["kind"] != theirs["kind"]:
        return f"another kind, {mine['kind']} and not {theirs['kind']}"
    words = [
        {name: value for name, value in about["steps"] if isinstance(value, str)}
        for about in (mine, theirs)
    ]
    if words[0] != words[1]:
        return "other visual words"
    for name in "longest", "steps", "version":
        if mine[name] != theirs[name]:
            return f"other settings ({name})"
    return None


def write_table(
    path: File, ids: Sequence[str], labels: Sequence[str], features: Array, about: str
) -> None:
    """ids (k,), labels (k,), features (k, D) and what they were made with; wholly or not at all."""
    write = _to_npz if _is_npz(path) else _to_parquet
    with written(path) as file:
        write(file, ids, labels, features, about)


def check_form(path: File) -> None:
    """Complain of a table that is of no known form, or whose form needs a library."""
    if not _is_npz(path):
        require("pyarrow", "tables")


def _is_npz(path: File) -> bool:
    suffix = Path(path).suffix
    if suffix not in (".npz", ".parquet"):
        raise InvalidInput(
            f"The table {os.fspath(path)!r} must end in .npz or .parquet: that says what form "
            f"it has."
        )
    return suffix == ".npz"


def _to_npz(file: BinaryIO, ids: Any, labels: Any, features: Array, about: str) -> None:
    arrays = {"ids": np.array(ids), "labels": np.array(labels), "features": features}
    np.savez(file, allow_pickle=False, about=np.array(about), **arrays)


def _from_npz(path: File) -> tuple[Array, Array, Array]:
    with Arrays(path) as arrays:
        return arrays["ids"], arrays["labels"], arrays["features"]


def _to_parquet(file: BinaryIO, ids: Any, labels: Any, features: Array, about: str) -> None:
    pa = optional("pyarrow", "tables")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
    columns = {"ids": pa.array(ids), "labels": pa.array(labels), "features": vectors}
    table = pa.table(columns).replace_schema_metadata({"about": about})
    optional("pyarrow.parquet", "tables").write_table(table, file)


def _from_parquet(path: File) -> tuple[Array, Array, Array]:
    table = optional("pyarrow.parquet", "tables").read_table(path)
    vectors = table["features"].combine_chunks()
    features = vectors.flatten().to_numpy().reshape(len(vectors), -1)
    return np.array(table["ids"].to_pylist()), np.array(table["labels"].to_pylist()), features
