"""The four edits, as values."""

from __future__ import annotations

from dataclasses import dataclass

from knowmore._base import Array, Id, check_once
from knowmore.errors import InvalidInput

__all__ = ["Add", "Edit", "Id", "Relabel", "Remove", "Replace"]


@dataclass(frozen=True, eq=False)
class Add:
    """New examples: X (k, d) and labels (k,).

    ids: None for consecutive integers; weights (k,): None for ones.
    """

    X: Array
    labels: Array
    ids: tuple[Id, ...] | None = None
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class Remove:
    """Forget these examples."""

    ids: tuple[Id, ...]


@dataclass(frozen=True, eq=False)
class Replace:
    """Give these examples new features X (k, d), and new labels unless None.

    Their weights stay.
    """

    ids: tuple[Id, ...]
    X: Array
    labels: Array | None = None


@dataclass(frozen=True, eq=False)
class Relabel:
    """Give these examples new labels (k,)."""

    ids: tuple[Id, ...]
    labels: Array


Edit = Add | Remove | Replace | Relabel


def check_kind(edit: Edit, X: Array, labels: Array) -> None:
    """Raise InvalidInput if an edit does not go with these X and labels that are held.

    An edit that names an example twice would count it twice. Estimators check what they are given,
    so if the types do not match, another thread has fitted other data since then.
    """
    if edit.ids is not None:
        check_once(edit.ids)
    given = [(edit.X, X)] if isinstance(edit, (Add, Replace)) else []
    if isinstance(edit, (Add, Replace, Relabel)) and edit.labels is not None:
        given += [(edit.labels, labels)]
    for new, old in given:
        if new.shape[1:] != old.shape[1:] or (new.dtype.kind != old.dtype.kind and len(old)):
            raise InvalidInput(
                "Features or labels do not match those held: another thread has fitted the "
                "model to other data in the meantime. Nothing was changed."
            )
