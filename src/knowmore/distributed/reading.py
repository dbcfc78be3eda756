"""Shards: what data in many places may be given as, and how one of them is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from glob import glob
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, Final, final

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed

from knowmore._base import (
    Array,
    Arrays,
    array_in,
    check_name,
    columns_of,
    optional,
    shape_of,
    some,
    undamaged,
)
from knowmore.errors import InvalidInput, InvalidType, NoExamples

Load = Callable[[Any], Any]
_OR_LOAD: Final = "or read it another way: fit and eigenspace take load=..."
_ALIKE = "Cut both into shards of the same rows; for Dask arrays: {}.rechunk({{0: X.chunks[0]}})."
# So many names `some` shows.
_LISTED: Final = 5
# The files of a folder that are shards.
KINDS: Final = (".npy", ".npz", ".parquet")


# A name for errors, and a value, file or delayed value of Dask for each of the roles.
Shard = tuple[Any, ...]
# The values that a model learns from, in the order of `load`'s tuples. All but X may be None.
ROLES: Final = ("X", "y", "sample_weight", "ids")
# Columns of tables, or arrays of archives, by the roles that they have.
Names = Mapping[str, str]
_MEANING: Final = {"y": "the targets", "sample_weight": "the weights", "ids": "the ids"}


def read(path: str | PathLike[str], name: str | None = None) -> Array:
    """The array in a NumPy file: `.npy`, or `.npz` with one array or the one called `name`.

    Nothing in the file is run: arrays of Python objects, which are pickles, are refused.
    """
    try:
        with Path(path).open("rb") as file:
            is_archive = file.read(2) == b"PK"
            file.seek(0)
            if not is_archive:
                return array_in(file)
        with Arrays(path) as arrays:
            names = list(arrays)
            if name in names or (name is None and len(names) == 1):
                return arrays[names[0] if name is None else name]
    # A damaged file can make NumPy, zipfile and tokenize raise anything.
    except Exception as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        problem = f"The file {str(path)!r} cannot be read as an array: {why}."
        lost = isinstance(error, OSError)
        remedy = "Put it where workers find it" if lost else "If it is damaged, write it again"
        raise InvalidInput(f"{problem} {remedy}, {_OR_LOAD}") from error
    problem = f"The file {str(path)!r} holds the arrays {names}, but name={name!r} is none of them."
    raise InvalidInput(f"{problem} Say which one: load=functools.partial(read, name=...).")


def read_examples(
    path: str | PathLike[str], wanted: Names, columns: Sequence[str] | None = None
) -> Any:
    """The rows of a file, with their targets if it has any: a table, an array, or (X, y, ...).

    A Parquet table is read whole, or these columns and those that are wanted. An archive of several
    arrays has the rows in `X`, the targets in `y` unless they are `wanted` under another name, and
    weights and ids if these are wanted.
    """
    if Path(path).suffix == ".parquet":
        parquet = optional("pyarrow.parquet", "tables")
        damaged = f"it is damaged, or no such table. Write it again, {_OR_LOAD}"
        with undamaged(path, "a Parquet table", damaged):
            if columns is None:
                return parquet.read_table(path).to_pandas()
            held, asked = parquet.read_schema(path).names, [*columns, *wanted.values()]
            if not (lacking := [one for one in asked if one not in held]):
                return parquet.read_table(path, columns=asked).to_pandas()
        raise InvalidInput(
            f"The table has no column {lacking[0]!r}: {listed(lacking[0], held)} Name others."
        )
    names: list[str] = []
    # What is no archive, `read` can read, or say what is wrong with it.
    with suppress(Exception), Arrays(path) as arrays:
        names = list(arrays)
    if not names or (len(names) == 1 and not wanted):
        return read(path)
    wanted = {"X": "X", "y": "y", **wanted}
    if missing := {*wanted.values()} - {*names}:
        places = f"rows are read from 'X' and their targets from {wanted['y']!r}"
        places += "".join(f", {_MEANING[one]} from {wanted[one]!r}" for one in [*wanted][2:])
        written = ", ".join(f"{name}=..." for name in wanted.values())
        raise InvalidInput(
            f"The file {str(path)!r} holds the arrays {names}, but not {sorted(missing)}: "
            f"{places}. Write it so: np.savez(path, {written}), {_OR_LOAD}"
        )
    return tuple(read(path, wanted[role]) if role in wanted else None for role in ROLES)


@final
@dataclass(frozen=True)
class Reader:
    """Gives the rows of a shard, reading them if they are in files.

    names : X is without these columns
    """

    load: Load
    names: Names

    def __post_init__(self) -> None:
        if not callable(self.load):
            raise InvalidType(
                f"load={self.load!r} cannot be called. Give a function that reads a file: it gets "
                f"its path, and returns the rows."
            )

    def __call__(self, *shard: Any) -> tuple[Any, ...]:
        """The arrays by their roles: X, y, sample_weight, ids; all but X may be None."""
        X, *others = (self.load(data) if is_file(data) else data for data in shard)
        if others[0] is None and isinstance(X, tuple) and 2 <= len(X) <= len(ROLES):
            X, *own = X
            pairs = zip_longest(others, own)
            others = [mine if given is None else given for given, mine in pairs]
        rows = dict(zip(ROLES, (X, *others), strict=True))
        wanted = {role: name for role, name in self.names.items() if rows[role] is None}
        columns = columns_of(X)
        for role, name in wanted.items():
            if name not in columns:
                held = listed(name, columns) or "an array has none."
                raise InvalidInput(
                    f"{role}={name!r} names no column of these rows: {held} Name the column that "
                    f"has {_MEANING[role]}, or give {role} in shards like X."
                )
            rows[role] = X[name]
        if wanted:
            rows["X"] = X[[name for name in columns if name not in wanted.values()]]
        for role, values in rows.items():
            if values is not None and shape_of(role, values)[:1] != shape_of("X", rows["X"])[:1]:
                shapes = f"X has shape {np.shape(rows['X'])}, but {role} has {np.shape(values)}"
                raise InvalidInput(f"{shapes}. {_ALIKE.format(role)}")
        return tuple(rows.values())


def listed(name: str | None, columns: list[Any]) -> str:
    """The first and last columns, and which is most like a name that is not among them.

    >>> listed("Label", ["length", "width", "label"])
    "'length', 'width', 'label'. Is it 'label'?"
    """
    if not columns:
        return ""
    last = f", the last {columns[-1]!r}" if len(columns) > _LISTED else ""
    near = {str(one).casefold(): one for one in columns}
    found = get_close_matches(str(name).casefold(), near, 1)
    guess = f" Is it {near[found[0]]!r}?" if name is not None and found else ""
    return f"{some(columns)}{last}.{guess}"


def shards_of(X: Any, *beside: Any) -> list[Shard]:
    """The shards of X, with what is given of each of its rows: y, sample_weight and ids."""
    parts = _parts("X", X)
    if not parts:
        raise NoExamples("X has no shards: a model needs rows. Was the list of files empty?")
    _check_different(parts)
    others = []
    for role, given in zip_longest(ROLES[1:], beside):
        others.append([None] * len(parts) if given is None else _parts(role, given))
        if len(others[-1]) != len(parts):
            counts = f"X has {len(parts)} shards, but {role} has {len(others[-1])}"
            raise InvalidInput(f"{counts}. {_ALIKE.format(role)}")
    names = [repr(str(X)) if is_file(X) else f"Shard {k}" for k, X in enumerate(parts)]
    return list(zip(names, parts, *others, strict=True))


def _check_different(parts: list[Any]) -> None:
    """Raise InvalidInput if two shards are the same file, whose rows would be learnt twice."""
    found = dict[str, str]()
    for path in map(str, filter(is_file, parts)):
        check_name(path)
        place = os.path.realpath(path)
        if place in found:
            other = "" if found[place] == path else f", also as {found[place]!r}"
            raise InvalidInput(
                f"The shard {path!r} is given twice{other}: its rows would be learnt twice. Give "
                f"each file once."
            )
        found[place] = path


def files_at(path: str | PathLike[str]) -> list[Path]:
    """The file at a path, files of a folder that can be shards, or files that match a pattern."""
    place = Path(path)
    if place.is_dir():
        # A table may be a folder of its parts.
        found = [
            file
            for file in sorted(place.iterdir())
            if file.suffix in KINDS and (file.is_file() or file.suffix == ".parquet")
        ]
        wanted = f"a file that ends in {', '.join(KINDS)}"
    else:
        found = (
            [place]
            if place.exists()
            else [Path(p) for p in sorted(glob(str(path), recursive=True))]
        )
        wanted = "a file, a folder, or files that match the pattern"
    if not found:
        raise InvalidInput(
            f"There are no shards at {str(path)!r}: {wanted} must be there, on this machine too. "
            f"Check the path, or give a list of paths."
        )
    return found


def is_file(data: Any) -> bool:
    """Whether this is the path of a file."""
    return isinstance(data, (str, PathLike))


def _parts(name: str, data: Any) -> list[Any]:
    # Data frames are known by a method: importing Dask's module of data frames takes seconds. A
    # delayed value claims to have any method.
    is_other = not is_dask_collection(data) or isinstance(data, (Delayed, da.Array))
    is_frame = not is_other and hasattr(data, "partitions")
    if isinstance(data, da.Array) and data.ndim:
        data = data.rechunk(dict.fromkeys(range(1, data.ndim), -1)).to_delayed()
    elif is_frame:
        data = data.to_delayed()
    elif name == "X" and is_file(data):
        data = files_at(data)
    elif _is_single(data):
        shards = "a Dask array or frame with rows, or a list of arrays, delayed values or files"
        raise InvalidType(f"{name} is a single {type(data).__name__}. Give shards: {shards}.")
    if isinstance(data, np.ndarray):
        if data.ndim > 1 and data.shape[1] > 1:
            problem = (
                f"{name} has shards in {data.shape[1]} columns, but each must hold whole rows."
            )
            raise InvalidInput(f"{problem} Give the Dask array itself.")
        data = data.ravel()
    return [
        part
        for one in data
        for part in (files_at(one) if is_file(one) and Path(one).is_dir() else [one])
    ]


def _is_single(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        # An array of objects is a list, such as Dask's to_delayed returns.
        return bool(data.dtype.kind != "O")
    if is_dask_collection(data) or isinstance(data, (str, bytes, PathLike, Mapping)):
        return True
    return not isinstance(data, Iterable) or hasattr(data, "shape")
