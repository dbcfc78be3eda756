"""The four edits, as values. Library, journal, command line and service share these words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from knowmore.errors import InvalidInput, RepeatedId

Array = npt.NDArray[Any]
Id = int | str


@dataclass(frozen=True, eq=False)
class Add:
    """New examples: X (k, d) and labels (k,).

    ids: None for consecutive integers; weights (k,): None for one each.
    """

    X: Array
    labels: Array
    ids: tuple[Id, ...] | None = None
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class Remove:
    """These examples are to be forgotten."""

    ids: tuple[Id, ...]


@dataclass(frozen=True, eq=False)
class Replace:
    """These examples have other features X (k, d) now, and other labels (k,) unless None.

    Their weights stay.
    """

    ids: tuple[Id, ...]
    X: Array
    labels: Array | None = None


@dataclass(frozen=True, eq=False)
class Relabel:
    """These examples have other labels (k,) now."""

    ids: tuple[Id, ...]
    labels: Array


Edit = Add | Remove | Replace | Relabel


def as_ids(ids: Any) -> tuple[Id, ...]:
    """One id or several, as a tuple of unique strings and integers.

    >>> as_ids("left"), as_ids(np.array([3, 1]))
    (('left',), (3, 1))
    """
    single = isinstance(ids, np.ndarray) and ids.ndim == 0
    if single or isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        ids = [ids]
    found = tuple(_as_id(one) for one in ids)
    if not found:
        raise InvalidInput("No ids were given. Name at least one example.")
    if len(set(found)) < len(found):
        twice = next(one for i, one in enumerate(found) if one in found[:i])
        raise RepeatedId(
            f"The id {twice!r} is given twice in one call. Each example is named once."
        )
    return found


def _as_id(one: Any) -> Id:
    if isinstance(one, str):
        return str(one)
    if not isinstance(one, (bool, np.bool_)):
        try:
            return index(one)
        except TypeError:
            pass
    hint = " A float is not exact enough to name a thing by: use int or str."
    raise InvalidInput(
        f"An id is a string or an integer, but {one!r} is a {type(one).__name__}."
        + (hint if isinstance(one, (float, np.floating)) else "")
    )
