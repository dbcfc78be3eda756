"""Arrays in .npz files, and Parquet files: rows, or a table that `knowmore features` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from knowmore._base import Array, Arrays, optional, some, undamaged
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.workbench.sources.cells import tabled
from knowmore.workbench.sources.records import (
    ROWS,
    NotNumbers,
    RecordBlock,
    Source,
    Wanted,
    check_finite,
    checked_block,
    layout,
    texts,
)

# Names of arrays in a plain file, and in a table by `knowmore features`.
_ROLES = {
    "X": ("X", "features"),
    "y": ("y", "labels", "label"),
    "ids": ("ids", "id"),
    "contributors": ("contributors", "contributor"),
}


def npz_source(path: Path, wanted: Wanted) -> Source:
    """The rows of X (n, d), with y (n,) as labels and ids (n,) if there are such arrays."""
    name = str(path)
    if wanted.text is not None:
        raise InvalidInput(
            f"{name!r} holds arrays of numbers, so it has no column of texts. Leave --text out, or "
            f"give a .csv, .jsonl or .parquet file."
        )
    remedy = "it is cut off or damaged, or holds Python objects. Save plain arrays by numpy.savez."
    with undamaged(path, "an .npz file of arrays", remedy), Arrays(path) as file:
        names = list(file)
        # A column that a table had may be asked for; arrays have their own names.
        asked = {"y": wanted.label, "ids": wanted.id}
        arrays: dict[str, Array] = {}
        for role, usual in _ROLES.items():
            chosen = [one for one in (asked.get(role), *usual) if one in names]
            if chosen and (wanted.labelled or role != "y"):
                arrays[role] = file[chosen[0]]
        about = json.loads(str(file["about"])) if "about" in names else None
    if "X" not in arrays:
        raise InvalidInput(f"{name!r} has no array 'X' of rows. There are {some(names)}.")
    if wanted.labelled and "y" not in arrays:
        raise InvalidInput(
            f"{name!r} has no array 'y' of labels. Name it: --label ARRAY. There are {some(names)}."
        )
    return _of_arrays(path, arrays, about, gaps=wanted.gaps)


def _of_arrays(path: Path, arrays: dict[str, Array], about: Any, *, gaps: bool) -> Source:
    """The rows of X (n, d), with y, ids and contributors, (n,) each, as far as there are any."""
    name, X = str(path), arrays["X"]
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name!r}: the rows have shape {X.shape} and type {X.dtype}, not (n, d) numbers."
        )
    if 0 in X.shape:
        raise InvalidInput(f"{name!r} has no rows of numbers: their array has shape {X.shape}.")
    for role, array in arrays.items():
        if role != "X" and array.shape != (len(X),):
            raise InvalidInput(
                f"{name!r}: {role!r} has shape {array.shape}, but there are {len(X)} rows."
            )

    def blocks() -> Iterator[RecordBlock]:
        for begin in range(0, len(X), ROWS):
            part = slice(begin, begin + ROWS)
            places = [f"row {i}" for i in range(begin, min(begin + ROWS, len(X)))]
            rows = X[part]
            if not gaps:
                check_finite(name, rows, range(X.shape[1]), places)
            plain = {role: array[part].tolist() for role, array in arrays.items() if role != "X"}
            columns = plain.get("y"), plain.get("ids"), plain.get("contributors")
            yield checked_block(name, rows, columns, places)

    return Source(name, blocks, about=about, words=path.with_suffix(".words.npz"))


# -- Parquet ------------------------------------------------------------------------------------


def parquet_source(path: Path, wanted: Wanted) -> Source:
    """The rows of a Parquet file."""
    name = str(path)
    parquet = optional("pyarrow.parquet", "tables")
    with _explained(name):
        schema = parquet.read_schema(path)
        if schema.metadata and b"about" in schema.metadata and "features" in schema.names:
            return _feature_table(path, json.loads(schema.metadata[b"about"]), wanted)
        if not parquet.read_metadata(path).num_rows:
            raise InvalidInput(f"{name!r} has no rows.")
    plan = layout(name, schema.names, wanted)
    features = plan.columns or tuple(filter(None, [plan.text]))
    types = {column: schema.field(column).type for column in features}
    columns = [*features, *filter(None, (plan.label, plan.id, plan.contributor))]

    def blocks(*, as_cells: bool = False) -> Iterator[RecordBlock]:
        done = 0
        with _explained(name), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS, columns=columns):
                places = [f"row {done + i}" for i in range(len(batch))]
                done += len(batch)

                def plain(column: str | None, batch: Any = batch) -> list[Any] | None:
                    return None if column is None else batch.column(column).to_pylist()

                known = None if wanted.gaps else places
                X: Any
                if plan.text is not None:
                    X = texts(name, plain(plan.text) or [], plan.text, places)
                elif as_cells:
                    X = [*zip(*map(plain, features), strict=True)]
                else:
                    X = np.column_stack(
                        [_numbers(name, batch, one, types[one], known) for one in features]
                    )
                    if known is not None:
                        check_finite(name, X, features, known)
                labels, ids, who = map(plain, (plan.label, plan.id, plan.contributor))
                given = labels if wanted.labelled else None, ids, who
                yield checked_block(name, X, given, places)

    return tabled(replace(plan, blocks=blocks), lambda: blocks(as_cells=True), wanted)


def _numbers(name: str, batch: Any, column: str, kind: Any, places: list[str] | None) -> Array:
    """A column as float64; a missing value is refused by its place, or NaN without places."""
    types = optional("pyarrow.types", "tables")
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    values = batch.column(column)
    if not any(test(kind) for test in plain):
        raise NotNumbers(
            f"{name!r}: the column {column!r} holds {kind}, not numbers. Take it out, or say what "
            f"it is by --label or --id."
        )
    if values.null_count and places is not None:
        first = values.is_null().to_pylist().index(True)
        raise NotNumbers(
            f"{name!r}, {places[first]}, column {column!r}: there is no value. Fill it in, or "
            f"leave the row out."
        )
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=float)


def _feature_table(path: Path, about: Any, wanted: Wanted) -> Source:
    """A table by `knowmore features`: ids, labels, and lists of numbers."""
    table = optional("pyarrow.parquet", "tables").read_table(path)
    vectors = table["features"].combine_chunks()
    arrays = {
        "X": vectors.flatten().to_numpy().reshape(len(vectors), -1),
        "ids": np.array(table["ids"].to_pylist()),
    }
    if wanted.labelled:
        arrays["y"] = np.array(table["labels"].to_pylist())
    return _of_arrays(path, arrays, about, gaps=wanted.gaps)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except KnowmoreError:
        raise
    # Damaged files make pyarrow raise errors of many types.
    except Exception as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(f"{name!r} cannot be read as Parquet: {why}.") from error
