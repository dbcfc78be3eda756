"""The rows and columns of tables by name: ids of examples, and names of columns.

An index of pandas other than the default 0, 1, ... becomes the ids, so `remove(index)` forgets
exactly those rows. Polars tables and arrays have no index: their rows get consecutive ids unless
`ids` are given. Names of columns are anything hashable, compared by value.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, KeysView, Set, Sized
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np

from knowmore._base.arguments import a_type, in_memory, is_missing, one_each
from knowmore.errors import InvalidInput, RepeatedId, warn

Id = int | str


def as_ids(ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
    """Ids as a tuple of unique strings and integers.

    ordered : whether the order matters, so that a set is refused

    >>> as_ids("left"), as_ids(np.array([3, 1]))
    (('left',), (3, 1))
    """
    if type(ids) is int:
        return (ids,)
    if type(ids) is list and len(ids) == 1 and type(ids[0]) is int:
        return (ids[0],)
    single = isinstance(ids, np.ndarray) and ids.ndim == 0
    if single or isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        ids = [ids]
    if len(getattr(ids, "shape", ())) > 1:
        raise InvalidInput(
            f"The ids are a table of shape {tuple(ids.shape)}. Give its index or one column."
        )
    if ordered and isinstance(ids, Set) and not isinstance(ids, KeysView):
        raise InvalidInput(f"The ids are {a_type(ids)}, whose order means nothing. Give a list.")
    found = tuple(_as_id(one) for one in ids)
    check_once(found)
    return found


def check_once(ids: Collection[Id]) -> None:
    """Raise RepeatedId if an id is given twice."""
    if len(ids) > 1 and len(set(ids)) < len(ids):
        one = next(one for one, count in Counter(ids).items() if count > 1)
        raise RepeatedId(f"The id {one!r} is given twice in one call. Each example is named once.")


def is_mask(ids: Any) -> bool:
    """Whether these are Booleans, which select examples and are never ids.

    >>> is_mask([True, False]), is_mask([1, 0]), is_mask([])
    (True, False, False)
    """
    if isinstance(ids, np.ndarray):
        return ids.dtype == bool and ids.ndim == 1
    if isinstance(ids, (int, str)) or not isinstance(ids, Sized) or not isinstance(ids, Iterable):
        return False
    # A sparse table has no length.
    if len(getattr(ids, "shape", ())) > 1:
        return False
    return len(ids) > 0 and all(isinstance(one, (bool, np.bool_)) for one in ids)


def _as_id(one: Any) -> Id:
    if isinstance(one, str):
        return str(one)
    if not isinstance(one, (bool, np.bool_)):
        with suppress(TypeError):
            return index(one)
    hint = " Floats are not exact enough." if isinstance(one, (float, np.floating)) else ""
    raise InvalidInput(f"An id is a string or an integer, but {one!r} is {a_type(one)}.{hint}")


def ids_of(ids: Any, **columns: Any) -> tuple[Id, ...] | None:
    """The ids of new examples: those given, or the first index that has names, or None.

    columns : tables, columns and arrays by the names of their arguments
    """
    check_aligned(**columns, ids=ids)
    if ids is not None:
        return as_ids(ids)
    numbered = False
    for name, value in columns.items():
        index = index_of(value)
        if _names_rows(index):
            try:
                return _as_names(name, index)
            except InvalidInput:
                # Rows that are already numbered do not need these names.
                if not numbered:
                    raise
        numbered |= index is not None
    return None


def check_aligned(**columns: Any) -> None:
    """Raise InvalidInput if two of these have rows of different examples, according to the index.

    A default index agrees with any other of its length.
    """
    for name, value in columns.items():
        in_memory(name, value)
    indices = [(name, index_of(value)) for name, value in columns.items()]
    named = [(name, index) for name, index in indices if index is not None]
    for name, other in named[1:]:
        first, index = named[0]
        if len(index) != len(other) or index.equals(other):
            continue
        if set(index) == set(other):
            raise InvalidInput(
                f"{first} and {name} have the same index in different orders. To match their rows "
                f"by name, give {name}.loc[{first}.index]; by position, {name}.to_numpy()."
            )
        if not (_is_default(index) or _is_default(other)):
            raise InvalidInput(
                f"{first} and {name} have different indices: {index[0]!r} ... and {other[0]!r} ... "
                f"To match their rows by position, give {name}.to_numpy()."
            )


def warn_if_renumbered(table: Any) -> None:
    """Warn if rows that a pandas table numbers 0, 1, ... by default get other numbers as ids."""
    index = index_of(table)
    if index is None or _is_time(index):
        return
    warn(
        f"The rows 0 to {len(index) - 1} of the table get other ids, since earlier examples may "
        f"have these. Edit them by the ids that add returns, or name them: ids=... or an index."
    )


def masked(mask: Any, held: tuple[Id, ...]) -> tuple[Id, ...]:
    """The ids that a Boolean mask selects, by its index if it has one, or in the order `held`."""
    index = index_of(mask)
    if index is not None and not _is_default(index):
        return _as_names("the mask", index[np.asarray(mask, dtype=bool)])
    flags = np.asarray(in_order("the mask", mask, held), dtype=bool)
    one_each("mask", flags.shape, len(held), "the order of ids_")
    return tuple(held[row] for row in np.flatnonzero(flags))


def in_order(name: str, values: Any, held: tuple[Id, ...]) -> Any:
    """The values in the order of the ids `held`, matched by their index if they have one."""
    index = index_of(values)
    if index is None:
        return values
    if not _is_default(index):
        return _selected(name, values, held, exact=False)
    if held != tuple(range(len(held))) and any(isinstance(one, int) for one in held):
        raise InvalidInput(
            f"The index 0, 1, ... of {name} may mean ids or positions in ids_, which differ here. "
            f"Give {name} with the ids as its index, or as an array in the order of ids_."
        )
    return values


def by_name(name: str, values: Any, ids: tuple[Id, ...], given: Any) -> Any:
    """The values in the order of these ids, matched by their index if it has names.

    given : the ids as the user gave them; columns of one table are matched by position
    """
    index, beside = index_of(values), index_of(given)
    if not _names_rows(index):
        return values
    if beside is not None and beside.equals(index) and not is_mask(given):
        return values
    return _selected(name, values, ids, exact=True)


def labels_by_id(series: Any) -> tuple[tuple[Id, ...], Any]:
    """The ids and labels in a Series of labels whose index is the ids."""
    index = index_of(series)
    if index is None or np.ndim(series) != 1:
        raise InvalidInput("Give ids and labels, or a pandas Series of labels with ids as index.")
    return _as_names("the labels", index), series


def index_of(values: Any) -> Any:
    """The index of a pandas table or column; None for anything else."""
    # If pandas is not imported, nothing is one of its tables.
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(values, (pandas.DataFrame, pandas.Series)):
        return None
    return values.index


def _names_rows(index: Any) -> bool:
    return index is not None and not _is_default(index) and not _is_time(index)


def _is_default(index: Any) -> bool:
    """Whether this is 0, 1, ..., the default of pandas."""
    # By value: versions of pandas differ in which selections of rows keep a RangeIndex.
    return index.dtype.kind in "iu" and bool((index == np.arange(len(index))).all())


def _is_time(index: Any) -> bool:
    """Whether these are times, which are never ids."""
    pandas = sys.modules["pandas"]
    return isinstance(index, (pandas.DatetimeIndex, pandas.TimedeltaIndex, pandas.PeriodIndex))


def _as_names(name: str, index: Any) -> tuple[Id, ...]:
    try:
        return as_ids(index)
    except InvalidInput as error:
        remedy = "Use reset_index(drop=True), or give ids."
        raise type(error)(f"The index of {name} cannot be ids. {error} {remedy}") from error


def _selected(name: str, values: Any, ids: tuple[Id, ...], *, exact: bool) -> Any:
    """The values in the order of these ids by their index; with `exact` it may have no others."""
    names, wanted = set(_as_names(name, values.index)), set(ids)
    if different := names ^ wanted if exact else wanted - names:
        one = min(different, key=str)
        raise InvalidInput(
            f"The index of {name} {'has' if one in names else 'lacks'} {one!r}. Give one row for "
            f"each of the {len(ids)} ids, or {name}.to_numpy() if the rows are in their order."
        )
    return values.loc[list(ids)]


Names = tuple[Hashable, ...] | None


def columns_of(X: Any) -> list[Any]:
    """The columns of a table under its own names; an empty list for anything else."""
    # The `columns` of pyarrow are the values. Ask the type: `column_names` could be a column of a
    # data frame.
    names = "column_names" if hasattr(type(X), "column_names") else "columns"
    columns = getattr(X, names, None)
    return [] if columns is None or callable(columns) else list(columns)


def column_names(X: Any) -> Names:
    """The names of a table's columns: strings, numbers, dates, tuples; None if it has none."""
    names = columns_of(X)
    hashable = all(isinstance(name, Hashable) for name in names)
    return tuple(map(_comparable, names)) if names and hashable else None


def _comparable(name: Any) -> Any:
    """The name, with None for what does not equal itself: NaN, and pandas' NA."""
    if isinstance(name, tuple):
        return tuple(map(_comparable, name))
    return None if is_missing(name) else name


def is_count(names: Names) -> bool:
    """Whether the columns have no names: None, or 0, 1, ..., the default of pandas.

    >>> is_count((0, 1, 2)), is_count((2, 1, 0))
    (True, False)
    """
    return names is None or names == tuple(range(len(names)))


def first_difference(here: Names, there: Names) -> int | None:
    """The first column whose names differ between two tables; None if there is none.

    Default names match any others, but not the same numbers in another order.

    >>> first_difference((2021, 2022), (2022, 2021)), first_difference((0, 1), (1, 0))
    (0, 0)
    >>> first_difference((0, 1), ("a", "b")) is None
    True
    """
    if here is None or there is None or len(here) != len(there):
        return None
    if (is_count(here) or is_count(there)) and set(here) != set(there):
        return None
    return next((j for j, name in enumerate(here) if name != there[j]), None)


def joint_names(here: Names, there: Names) -> Names:
    """The names of two tables that match: real names win over default ones."""
    return here if there is None or not is_count(here) else there
