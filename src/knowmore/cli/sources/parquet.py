"""Parquet files, with pyarrow. Also the tables that `knowmore features` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.cli.sources.arrays import of_arrays
from knowmore.cli.sources.records import ROWS, Block, Source, Wanted
from knowmore.cli.sources.tables import check_finite, contributors_of, ids_of, labels_of, layout
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.extras import optional


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
    types = {column: schema.field(column).type for column in plan.features}
    columns = [*plan.features, *filter(None, (plan.label, plan.id, plan.contributor))]

    def blocks() -> Iterator[Block]:
        done = 0
        with _explained(name), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS, columns=columns):
                places = [f"row {done + i}" for i in range(len(batch))]
                done += len(batch)

                def plain(column: str | None, batch: Any = batch) -> list[Any] | None:
                    return None if column is None else batch.column(column).to_pylist()

                known = None if wanted.gaps else places
                X = np.column_stack(
                    [_numbers(name, batch, one, types[one], known) for one in plan.features]
                )
                if known is not None:
                    check_finite(name, X, plan.features, known)
                labels, ids, who = map(plain, (plan.label, plan.id, plan.contributor))
                yield Block(
                    X,
                    labels_of(name, labels, places) if labels and wanted.labelled else None,
                    ids_of(name, ids, places) if ids else None,
                    contributors_of(name, who or [None] * len(X), places),
                    places,
                )

    return Source(name, blocks, plan.features, ignored=plan.ignored, label=plan.label, id=plan.id)


def _numbers(name: str, batch: Any, column: str, kind: Any, places: list[str] | None) -> Array:
    """A column as float64; a missing value is refused by its place, or NaN without places."""
    types = optional("pyarrow.types", "tables")
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    values = batch.column(column)
    if not any(test(kind) for test in plain):
        raise InvalidInput(
            f"{name!r}: the column {column!r} holds {kind}, not numbers. Take it out, or say what "
            f"it is by --label or --id."
        )
    if values.null_count and places is not None:
        first = values.is_null().to_pylist().index(True)
        raise InvalidInput(
            f"{name!r}, {places[first]}, column {column!r}: there is no value. Fill it in, or "
            f"leave the row out."
        )
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=float)


def _feature_table(path: Path, about: Any, wanted: Wanted) -> Source:
    """What `knowmore features` wrote: ids, labels, and lists of numbers."""
    table = optional("pyarrow.parquet", "tables").read_table(path)
    vectors = table["features"].combine_chunks()
    arrays = {
        "X": vectors.flatten().to_numpy().reshape(len(vectors), -1),
        "ids": np.array(table["ids"].to_pylist()),
    }
    if wanted.labelled:
        arrays["y"] = np.array(table["labels"].to_pylist())
    words = path.with_suffix(".words.npz")
    return of_arrays(str(path), arrays, about=about, words=words, gaps=wanted.gaps)


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
