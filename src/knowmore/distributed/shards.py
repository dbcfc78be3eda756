"""What users hand in, as shards: parts of the rows that are read and learnt on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.files import Arrays, array_in

File = str | PathLike[str]
Load = Callable[[Any], Any]


class Shard(NamedTuple):
    """Some rows X (n, D), perhaps with targets y (n,): values, files, or promises of Dask."""

    name: str
    X: Any
    y: Any


def shards_of(X: Any, y: Any = None) -> list[Shard]:
    """X, and y sharded alike, in parts."""
    parts = _parts("X", X)
    if not parts:
        raise NoExamples("X has no shards: a model needs rows. Was the list of files empty?")
    targets = [None] * len(parts) if y is None else _parts("y", y)
    if len(targets) != len(parts):
        raise InvalidInput(
            f"X has {len(parts)} shards, but y has {len(targets)}. Shard both alike; for Dask "
            f"arrays: y.rechunk({{0: X.chunks[0]}})."
        )
    return [Shard(_name(k, part), part, targets[k]) for k, part in enumerate(parts)]


def read(path: File, name: str | None = None) -> Array:
    """The array in a file of NumPy's: `.npy`, or `.npz` with one array or the one called `name`.

    Nothing in the file is run: arrays of Python objects, which are pickles, are refused.
    """
    try:
        with Path(path).open("rb") as file:
            is_archive = file.read(2) == b"PK"
            file.seek(0)
            if not is_archive:
                return array_in(file)
        with Arrays(path) as held:
            return held[_chosen(list(held), name, path)]
    except InvalidInput:
        raise
    except OSError as error:
        raise InvalidInput(
            f"The file {str(path)!r} cannot be read: {error.strerror or error}. On a cluster every "
            f"worker must find it under this name."
        ) from error
    # A damaged file can make NumPy, zipfile and tokenize raise whatever they like.
    except Exception as error:
        why = str(error) or type(error).__name__
        raise InvalidInput(
            f"The file {str(path)!r} holds no plain array: {why}. Write it with numpy.save or "
            f"numpy.savez, or give a function that reads it: load=..."
        ) from error


def rows(shard: Any, load: Load) -> Any:
    """The rows of a shard, read first if it is a file."""
    return load(shard) if isinstance(shard, (str, PathLike)) else shard


def _parts(name: str, data: Any) -> list[Any]:
    if isinstance(data, da.Array):
        return _row_blocks(name, data)
    if _is_frame(data):
        return list(data.to_delayed())
    if _is_single(data):
        raise InvalidType(
            f"{name} is a single {type(data).__name__}, but shards are needed: a Dask array "
            f"or data frame, or a list of arrays, delayed values or files. What is in one place "
            f"needs no merging."
        )
    if isinstance(data, np.ndarray) and data.ndim > 1:
        if data.shape[1] > 1:
            raise InvalidInput(
                f"{name} has shards in {data.shape[1]} columns, but each must hold whole rows. For "
                f"a Dask array: rechunk it, or give the array itself."
            )
        data = data.ravel()
    return list(data)


def _is_single(data: Any) -> bool:
    if is_dask_collection(data) or isinstance(data, (str, bytes, PathLike, Mapping)):
        return True
    if isinstance(data, np.ndarray):
        # An array of objects is a list, such as Dask's to_delayed returns.
        return bool(data.dtype.kind != "O")
    return not isinstance(data, Iterable) or hasattr(data, "shape")


def _is_frame(data: Any) -> bool:
    """Whether it is a data frame or a column of Dask's, by what it can do: partitions are shards.

    Its module takes seconds to load. A delayed value says that it can do anything.
    """
    return (
        is_dask_collection(data)
        and not isinstance(data, Delayed)
        and all(hasattr(data, verb) for verb in ("to_delayed", "partitions", "map_partitions"))
    )


def _row_blocks(name: str, data: da.Array) -> list[Any]:
    """The blocks of a Dask array, each with all columns."""
    if data.ndim == 0:
        raise InvalidInput(f"{name} is a Dask array of one number, but rows are needed, (n, D).")
    return list(data.rechunk(dict.fromkeys(range(1, data.ndim), -1)).to_delayed().ravel())


def _name(k: int, part: Any) -> str:
    return f"Shard {k} ({str(part)!r})" if isinstance(part, (str, PathLike)) else f"Shard {k}"


def _chosen(names: list[str], name: str | None, path: File) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name not in names:
        raise InvalidInput(
            f"The file {str(path)!r} holds the arrays {names}, but name={name!r} is none of them. "
            f"Say which one: load=functools.partial(read, name=...)."
        )
    return str(name)
