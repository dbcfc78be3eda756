"""What an edit does to an estimator in memory, before anything is written.

Each function returns another estimator and the edit as a value, or raises; what is held stays as it
is. A linear model holds no rows: those that leave it are read from the file.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from knowmore.arguments import shape_of, some
from knowmore.arrays import Array
from knowmore.columns import columns_of
from knowmore.edits import Add, Edit, Id, Relabel, Remove, Replace, as_ids, is_mask
from knowmore.errors import InvalidInput, RepeatedId, UnknownId
from knowmore.estimators.linear import LinearGP
from knowmore.estimators.living import _for_all
from knowmore.estimators.shell import unnamed
from knowmore.examples import Examples
from knowmore.linalg import Sums
from knowmore.tables import by_name, labels_by_id, masked, names_of
from knowmore.unfitted import Unfitted


class Change(NamedTuple):
    """An estimator after an edit."""

    estimator: Any
    edit: Edit


@dataclass(frozen=True)
class Holding:
    """What is held: the estimator, its rows by id, and how to read examples from the file."""

    estimator: Any
    index: dict[Id, tuple[int, int]]
    next_id: int
    read: Callable[[tuple[Id, ...]], Examples]

    @property
    def fitted(self) -> bool:
        """Whether it has learnt anything yet."""
        return bool(hasattr(self.estimator, "_living") or hasattr(self.estimator, "model_"))

    def _asked(self, X: Any) -> Any:
        """The estimator that checks X: an array has no names that could differ from those known."""
        return self.estimator if columns_of(X) else unnamed(self.estimator)

    # -- the verbs ---------------------------------------------------------------------------

    def add(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> Change:
        """Learn more examples."""
        after = copy(self.estimator)
        if isinstance(after, LinearGP):
            return self._add_rows(after, X, y, ids, sample_weight)
        if not self.fitted:
            held = after.fit(X, y, ids, sample_weight)._living.examples
            return Change(after, Add(held.X, held.labels, held.names, held.weights, held.side))
        edit = self._asked(X)._adding(X, y, ids, sample_weight)
        after._living = after._living.apply(edit)
        names = edit.ids or tuple(range(self.next_id, self.next_id + len(edit.X)))
        return Change(after, replace(edit, ids=names))

    def remove(self, ids: tuple[Id, ...]) -> Change:
        """Forget examples that are held."""
        after, edit = copy(self.estimator), Remove(ids)
        if not isinstance(after, LinearGP):
            after._living = after._living.apply(edit)
            return Change(after, edit)
        sums = self._summed(after, self.read(ids))
        after.model_ = after.model_.of(after.model_.sums - sums)
        return Change(after, edit)

    def replace(self, ids: Any, X: Any, y: Any) -> Change | None:
        """Give examples other features, and other labels unless y is None."""
        after, edit = copy(self.estimator), self._replacing(ids, X, y)
        if edit is None:
            return None
        if not isinstance(after, LinearGP):
            after._living = after._living.apply(edit)
            return Change(after, edit)
        held = self.read(edit.ids)
        labels = held.labels if edit.labels is None else edit.labels
        new = after._sums(after.model_, edit.X, labels, held.weights)
        # Added first: it may lie beyond the grid.
        sums = after.model_.sums + new - self._summed(after, held)
        after.model_ = after.model_.of(sums)
        return Change(after, edit)

    def relabel(self, ids: Any, y: Any) -> Change | None:
        """Give examples other labels."""
        after, edit = copy(self.estimator), self._relabelling(ids, y)
        if edit is None:
            return None
        if not isinstance(after, LinearGP):
            after._living = after._living.apply(edit)
            return Change(after, edit)
        held = self.read(edit.ids)
        new = after._sums(after.model_, held.X, edit.labels, held.weights)
        after.model_ = after.model_.of(after.model_.sums + new - self._summed(after, held))
        return Change(after, edit)

    def merge(self, other: Any, theirs: Examples) -> Change:
        """Learn all examples of another fitted estimator; of a linear one they are given."""
        if not self.fitted:
            raise Unfitted("The file holds no examples yet. Add some before merging.")
        after = copy(self.estimator)
        if repeated := [one for one in theirs.names if one in self.index]:
            raise RepeatedId(
                f"Both models hold {some(repeated)}. Models merge only if they share no id."
            )
        after.merge(copy(other))
        return Change(
            after, Add(theirs.X, theirs.labels, theirs.names, theirs.weights, theirs.side)
        )

    def chosen(self, ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
        """The ids that these ids or this mask select, all held."""
        names = masked(ids, tuple(self.index)) if is_mask(ids) else as_ids(ids, ordered=ordered)
        if strange := [one for one in names if one not in self.index]:
            raise UnknownId(self._unknown(strange))
        return names

    def _unknown(self, strange: list[Id]) -> str:
        kinds = set(map(type, self.index))
        they = "It" if len(strange) == 1 else "They"
        hint = f"{they} may have been forgotten before; ids_ lists those that are there."
        if len(kinds) == 1 and all(type(one) not in kinds for one in strange):
            (kind,) = kinds
            hint = f"All its ids are of type {kind.__name__}: 1 and '1' are different ids."
        return f"The model holds no example {some(strange)}. {hint}"

    # -- linear models -----------------------------------------------------------------------

    def _add_rows(self, after: LinearGP, X: Any, y: Any, ids: Any, sample_weight: Any) -> Change:
        names = names_of(ids, X=X, y=y, sample_weight=sample_weight)
        if y is not None and not shape_of("y", y):
            y = _for_all(y, X.shape[0] if hasattr(X, "shape") else len(X))
        if self.fitted:
            rows = self._asked(X)._rows(X, y, sample_weight, reset=False)
            after.model_ = after.model_.of(after.model_.sums + after._sums(after.model_, *rows))
        else:
            after.fit(X, y, sample_weight)
            rows = after._rows(X, y, sample_weight, reset=False)
        table, labels, weights = rows
        k = table.shape[0]
        names = tuple(range(self.next_id, self.next_id + k)) if names is None else names
        if len(names) != k:
            raise InvalidInput(f"{len(names)} ids were given for {k} examples. Give one each.")
        if held := [one for one in names if one in self.index]:
            raise RepeatedId(
                f"The model already holds {some(held)}. Use replace() to change them, or give new "
                f"examples other ids, by ids=... or by the index of their table "
                f"(reset_index(drop=True) numbers rows instead)."
            )
        return Change(after, Add(dense(table), labels, names, weights))

    def _replacing(self, ids: Any, X: Any, y: Any) -> Replace | None:
        estimator = self._asked(X)
        if not isinstance(estimator, LinearGP):
            edit: Replace | None = estimator._replacing(ids, X, y)
            return edit
        chosen = self.chosen(ids)
        if not chosen and shape_of("X", X)[:1] == (0,):
            return None
        rows = dense(estimator._asked(by_name("X", X, chosen, ids)))
        if len(chosen) != len(rows):
            raise InvalidInput(f"X has {len(rows)} rows for {len(chosen)} examples. Give one each.")
        labels = None if y is None else self._new_labels(chosen, y, ids)
        return Replace(chosen, rows, labels)

    def _relabelling(self, ids: Any, y: Any) -> Relabel | None:
        estimator = self.estimator
        if not isinstance(estimator, LinearGP):
            edit: Relabel | None = estimator._relabelling(ids, y)
            return edit
        if y is None:
            ids, y = labels_by_id(ids)
        chosen = self.chosen(ids)
        return Relabel(chosen, self._new_labels(chosen, y, ids)) if chosen else None

    def _new_labels(self, chosen: tuple[Id, ...], y: Any, given: Any) -> Array:
        y = by_name("y", _for_all(y, len(chosen)), chosen, given)
        labels: Array = self.estimator._targets(y, len(chosen), self.estimator.model_)
        return labels

    def _summed(self, estimator: LinearGP, held: Examples) -> Sums:
        """The sums of examples that are held."""
        return estimator._sums(estimator.model_, held.X, held.labels, held.weights)


def dense(X: Any) -> Array:
    """A table as an array in the type that it has."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
