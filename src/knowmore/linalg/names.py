"""The names of columns: whatever a table calls them, as long as it can be compared."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from knowmore.arguments import is_missing

Names = tuple[Hashable, ...] | None


def columns_of(X: Any) -> list[Any]:
    """What a table calls its columns, in its own terms; of anything else nothing."""
    # The `columns` of pyarrow are the values. It is the type that tells: of a data frame
    # `column_names` might be a column.
    names = "column_names" if hasattr(type(X), "column_names") else "columns"
    columns = getattr(X, names, None)
    return [] if columns is None or callable(columns) else list(columns)


def names_of(X: Any) -> Names:
    """The names of the columns of a table: strings, numbers, dates, tuples; None if it has none."""
    names = columns_of(X)
    return tuple(map(_name, names)) if names and all(map(_is_hashable, names)) else None


def is_count(names: Names) -> bool:
    """Whether these are no names: none at all, or 0, 1, ..., as pandas counts columns by default.

    >>> is_count((0, 1, 2)), is_count((2, 1, 0))
    (True, False)
    """
    return names is None or names == tuple(range(len(names)))


def first_difference(here: Names, there: Names) -> int | None:
    """The first column that two tables call by different names; None if there is none.

    Columns that are merely counted go with any names but their own numbers in another order.

    >>> first_difference((2021, 2022), (2022, 2021)), first_difference((0, 1), (1, 0))
    (0, 0)
    >>> first_difference((0, 1), ("a", "b")) is None
    True
    """
    if here is None or there is None or len(here) != len(there):
        return None
    if (is_count(here) or is_count(there)) and set(here) != set(there):
        return None
    pairs = enumerate(zip(here, there, strict=True))
    return next((j for j, (one, other) in pairs if one != other), None)


def joint_names(here: Names, there: Names) -> Names:
    """Those of two tables that go together: what is named has its names from either."""
    return here if there is None or not is_count(here) else there


def _name(one: Any) -> Any:
    """The name as one that equals itself: NaN does not, and pandas' NA answers no comparison."""
    if isinstance(one, tuple):
        return tuple(map(_name, one))
    return None if is_missing(one) else one


def _is_hashable(one: Any) -> bool:
    return isinstance(one, Hashable)
