"""Tables of pandas: their index says which example a row is.

An index that is not the default range 0, 1, ... becomes the ids, so that `remove(index)` forgets
those very rows. Polars has no index, nor has an array: their rows get consecutive ids unless `ids`
names them.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from knowmore.edits import Id, as_ids, is_mask
from knowmore.errors import InvalidInput, KnowmoreWarning, RepeatedId

_NUMBERED = "reset_index(drop=True) gives them consecutive numbers; ids=... names them otherwise."


def names_of(ids: Any, **columns: Any) -> tuple[Id, ...] | None:
    """The ids of new examples: those given, else those of the first index that names any.

    `columns` are tables, columns and arrays by what they are called: see `in_step`.
    """
    in_step(**columns, ids=ids)
    if ids is not None:
        return as_ids(ids)
    numbered = False
    for name, value in columns.items():
        index = index_of(value)
        if index is None:
            continue
        if _is_default(index) or _is_time(index):
            numbered = True
            continue
        try:
            return _as_names(name, index)
        except InvalidInput:
            # Beside a table that is numbered, what cannot name its rows need not.
            if not numbered:
                raise
    return None


def in_step(**columns: Any) -> None:
    """Complain of tables and columns whose rows belong to different examples by their index."""
    indices = {name: index_of(value) for name, value in columns.items()}
    named = [(name, index) for name, index in indices.items() if index is not None]
    for name, index in named[1:]:
        _agree(*named[0], name, index)


def of_index(error: RepeatedId) -> RepeatedId:
    """What to say of ids that are held already and came from an index, unasked."""
    return RepeatedId(f"{error} These ids are the index of the table: {_NUMBERED}")


def is_named(table: Any) -> bool:
    """Whether this is a table or column of pandas, which calls its rows 0, 1, ... if nothing else.

    What counts time calls them otherwise, and by nothing that could be taken for an id.
    """
    index = index_of(table)
    return index is not None and not _is_time(index)


def warn_renumbered(k: int) -> None:
    """Say that k rows have other ids than their own table's numbers, which name other examples."""
    warnings.warn(
        f"The table calls these {k} rows 0 to {k - 1}, as pandas does by default. Other examples "
        f"may have these ids, so they get the next ones: remove and relabel them by the ids that "
        f"add returns, or name them with ids=... or an index of their own.",
        KnowmoreWarning,
        stacklevel=4,
    )


def masked(mask: Any, held: tuple[Id, ...]) -> tuple[Id, ...]:
    """The ids that a Boolean mask names: by its index if it has one, else among those `held`."""
    index = index_of(mask)
    if index is not None and not _is_default(index):
        return _as_names("the mask", index[np.asarray(mask, dtype=bool)])
    flags = np.asarray(in_order("the mask", mask, held), dtype=bool)
    if flags.shape != (len(held),):
        raise InvalidInput(
            f"A mask of {len(flags)} truth values was given, but there are {len(held)} examples. "
            f"Give one for each, in the order of ids_, or name the examples."
        )
    return tuple(held[row] for row in np.flatnonzero(flags))


def in_order(name: str, values: Any, held: tuple[Id, ...]) -> Any:
    """Values with an index, one for each example `held`, in that order; others as they are."""
    index = index_of(values)
    if index is None:
        return values
    if not _is_default(index):
        names = _as_names(name, index)
        if missing := [one for one in held if one not in set(names)]:
            raise InvalidInput(
                f"The index of {name} lacks the example {missing[0]!r}, which is held. "
                f"Give a value for each of ids_, or an array in that order."
            )
        return values.loc[list(held)]
    if held != tuple(range(len(held))) and any(isinstance(one, int) for one in held):
        raise InvalidInput(
            f"The index 0, 1, ... of {name} may mean ids or places in ids_, which are not the same "
            f"here. Give {name} with the ids as its index, or as an array in the order of ids_."
        )
    return values


def by_name(name: str, values: Any, ids: tuple[Id, ...], given: Any) -> Any:
    """Values for these ids in their order: by their index if they have one that is not 0, 1, ...

    Not so if the ids were `given` as a column of the same table: then they stand side by side.
    """
    index, beside = index_of(values), index_of(given)
    if index is None or _is_default(index) or _is_time(index):
        return values
    if beside is not None and beside.equals(index) and not is_mask(given):
        return values
    names = _as_names(name, index)
    if set(names) != set(ids):
        strange = next(iter(set(names) ^ set(ids)))
        raise InvalidInput(
            f"{name} goes by its index, which has not the {len(ids)} names that ids has: they "
            f"differ in {strange!r}. Give {name}.to_numpy() if the rows are in the order of ids."
        )
    return values.loc[list(ids)]


def labels_by_id(series: Any) -> tuple[tuple[Id, ...], Any]:
    """The ids and the labels of a column of labels whose index is the ids."""
    index = index_of(series)
    if index is None or np.ndim(series) != 1:
        raise InvalidInput(
            "Which labels? Give relabel(ids, labels), or a pandas Series of labels whose index is "
            "the ids."
        )
    return _as_names("the labels", index), series


def index_of(values: Any) -> Any:
    """The index of a table or column of pandas, None of anything else."""
    # Nothing is pandas' own where pandas was never loaded.
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(values, (pandas.DataFrame, pandas.Series)):
        return None
    return values.index


def _is_default(index: Any) -> bool:
    """0, 1, ..., as pandas counts rows that were never named."""
    # By value: versions of pandas differ in which selections of rows keep a RangeIndex.
    return index.dtype.kind in "iu" and bool((index == np.arange(len(index))).all())


def _is_time(index: Any) -> bool:
    """Times are no ids, and are never mistaken for one: rows with these are numbered."""
    pandas = sys.modules["pandas"]
    return isinstance(index, (pandas.DatetimeIndex, pandas.TimedeltaIndex, pandas.PeriodIndex))


def _as_names(name: str, index: Any) -> tuple[Id, ...]:
    try:
        return as_ids(index)
    except InvalidInput as error:
        raise type(error)(
            f"The index of {name} cannot name the examples. {error} For its rows, {_NUMBERED}"
        ) from error


def _agree(first: str, index: Any, name: str, other: Any) -> None:
    if len(index) != len(other) or index.equals(other):
        return
    if set(index) == set(other):
        raise InvalidInput(
            f"{first} and {name} have the same index in different orders. If their rows belong "
            f"together by name, give {name}.loc[{first}.index]; if as they stand, "
            f"{name}.to_numpy()."
        )
    if not (_is_default(index) or _is_default(other)):
        raise InvalidInput(
            f"{first} and {name} have different indices: {index[0]!r} ... and {other[0]!r} ... If "
            f"their rows belong together as they stand, give {name}.to_numpy()."
        )
