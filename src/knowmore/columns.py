"""The names of a table's columns: anything hashable, compared by value."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from knowmore.arguments import is_missing

Names = tuple[Hashable, ...] | None


def columns_of(X: Any) -> list[Any]:
    """The columns of a table under its own names; an empty list for anything else."""
    # The `columns` of pyarrow are the values. Ask the type: `column_names` could be a column of a
    # data frame.
    names = "column_names" if hasattr(type(X), "column_names") else "columns"
    columns = getattr(X, names, None)
    return [] if columns is None or callable(columns) else list(columns)


def names_of(X: Any) -> Names:
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
