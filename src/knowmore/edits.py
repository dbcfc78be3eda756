"""The four edits, as values, and the ids that they name examples by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, KeysView, Set, Sized
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from knowmore.arguments import a_type
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, RepeatedId

__all__ = ["Add", "Edit", "Id", "Relabel", "Remove", "Replace"]

Id = int | str


@dataclass(frozen=True, eq=False)
class Add:
    """New examples: X (k, d) and labels (k,).

    ids: None for consecutive integers; weights (k,): None for one each; side (k, q): side
    information such as the scores of another classifier, or None.
    """

    X: Array
    labels: Array
    ids: tuple[Id, ...] | None = None
    weights: Array | None = None
    side: Array | None = None


@dataclass(frozen=True, eq=False)
class Remove:
    """Forget these examples."""

    ids: tuple[Id, ...]


@dataclass(frozen=True, eq=False)
class Replace:
    """Give these examples new features X (k, d) and side (k, q), and new labels unless None.

    Their weights stay.
    """

    ids: tuple[Id, ...]
    X: Array
    labels: Array | None = None
    side: Array | None = None


@dataclass(frozen=True, eq=False)
class Relabel:
    """Give these examples new labels (k,)."""

    ids: tuple[Id, ...]
    labels: Array


Edit = Add | Remove | Replace | Relabel


def check_kind(edit: Edit, X: Array, labels: Array) -> None:
    """Raise InvalidInput if an edit does not go with these X and labels that are held.

    Estimators check what they are given, so another thread has fitted other data since then.
    """
    given = [(edit.X, X)] if isinstance(edit, (Add, Replace)) else []
    if isinstance(edit, (Add, Replace, Relabel)) and edit.labels is not None:
        given += [(edit.labels, labels)]
    for new, old in given:
        if new.shape[1:] != old.shape[1:] or (new.dtype.kind != old.dtype.kind and len(old)):
            raise InvalidInput(
                "Features or labels do not match those held: another thread has fitted the "
                "model to other data in the meantime. Nothing was changed."
            )


def as_ids(ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
    """One id or several, as a tuple of unique strings and integers.

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
    if len(set(found)) < len(found):
        one = next(one for one, count in Counter(found).items() if count > 1)
        raise RepeatedId(f"The id {one!r} is given twice in one call. Each example is named once.")
    return found


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
