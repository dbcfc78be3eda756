"""Tables of features, as `knowmore features` writes them: .npz or .parquet.

A table records how its features were made. Those of two tables can be compared if they are of the
same kind, with the same settings and, where there are any, the same visual words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.extras import optional, require
from knowmore.files import Arrays, File, undamaged, written

_REMEDY = "it is cut off or damaged, or `knowmore features` did not write it."


def feature_table(path: File, *, like: File | None = None) -> Examples:
    """The features in a table, with the ids and labels of their pictures.

    `like` names another table, such as the one that a model has learnt from. If this one was made
    differently, its numbers mean something else, and it is refused.
    """
    about = made_with(path)
    if like is not None and (difference := unlike(about, made_with(like))):
        raise InvalidInput(
            f"The features of {os.fspath(path)!r} cannot be compared with those of "
            f"{os.fspath(like)!r}: they have {difference}. Make them again: knowmore features "
            f"... --like {os.fspath(like)}"
        )
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
    is_npz = check_form(path)
    with written(path) as file:
        if is_npz:
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
    ending = Path(path).suffix
    if ending not in (".npz", ".parquet"):
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
        about: dict[str, Any] = json.loads(text)
        # A file of another program fails here, and not when it is compared.
        dict(about["steps"])
        return {name: about[name] for name in ("kind", "version", "longest", "steps")}


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
    for name in "longest", "steps", "version":
        if mine[name] != theirs[name]:
            return f"other settings ({name})"
    return None
