"""What an edit does to an estimator in memory, before anything is written.

Each function returns another estimator and the edit as a value, or raises; the estimator that it
starts from stays as it is. A linear model holds no rows: those that leave it are read from the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from knowmore._living import Living
from knowmore.arguments import shape_of, some
from knowmore.arrays import Array
from knowmore.columns import columns_of
from knowmore.edits import Add, Edit, Id, Relabel, Remove, Replace, as_ids, is_mask
from knowmore.errors import InvalidInput, KnowmoreError, RepeatedId, UnknownId
from knowmore.estimators.linear import LinearGP
from knowmore.estimators.living import _for_all
from knowmore.estimators.shell import unnamed
from knowmore.examples import Examples
from knowmore.linalg import Sums
from knowmore.models import LinearModel
from knowmore.models.forest import Forest
from knowmore.store import kinds
from knowmore.tables import by_name, labels_by_id, masked, names_of, warn_if_renumbered
from knowmore.unfitted import Unfitted


class Change(NamedTuple):
    """An estimator after an edit."""

    estimator: Any
    edit: Edit


class Rest(NamedTuple):
    """What is left when examples are forgotten.

    estimator : of the other examples; unfitted if there are none
    problem : why these cannot choose the settings, which are then those of before; "" if they can
    """

    estimator: Any
    problem: str = ""


class Numbered(NamedTuple):
    """The ids of new examples, and the first number that was never given to an example."""

    ids: tuple[Id, ...] | None
    next_id: int


@dataclass(frozen=True)
class Holding:
    """The state that an edit starts from.

    index : the ids of the examples, in their order
    next_id : the first number that was never given to an example
    read : examples with these ids
    """

    estimator: Any
    index: Mapping[Id, object]
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

    def numbered(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> Numbered:
        """The ids of new examples: those given, those of a table, or numbers.

        Numbers are never given twice. They do not follow from ids that were given: a number after
        such an id would still tell it when its example is forgotten.
        """
        names, shape = names_of(ids, X=X, y=y, sample_weight=sample_weight), shape_of("X", X)
        if names is not None or not shape:
            return Numbered(names, self.next_id)
        if self.index:
            warn_if_renumbered(X)
        free = (number for number in count(self.next_id) if number not in self.index)
        numbers = tuple(islice(free, shape[0]))
        return Numbered(numbers, numbers[-1] + 1 if numbers else self.next_id)

    def add(self, X: Any, y: Any, ids: tuple[Id, ...] | None, sample_weight: Any) -> Change:
        """Learn more examples with these ids."""
        after = copy(self.estimator)
        if isinstance(after, LinearGP):
            return self._add_rows(after, X, y, ids, sample_weight)
        if not self.fitted:
            held = after.fit(X, y, ids, sample_weight)._living.examples
            return Change(after, Add(held.X, held.labels, held.names, held.weights, held.side))
        edit = self._asked(X)._adding(X, y, ids, sample_weight)
        after._living = after._living.apply(edit)
        return Change(after, edit)

    def forget(self, ids: tuple[Id, ...]) -> Rest:
        """Forget examples that are held: the others choose again what the examples choose."""
        if len(ids) == len(self.index):
            return Rest(kinds.blank(self.estimator))
        after = copy(self.estimator)
        linear = isinstance(after, LinearGP)
        try:
            if linear:
                after.model_ = self._sums_without(after, ids)
            else:
                after._living = self._living_without(after, ids)
        except KnowmoreError as error:
            if linear:
                after.model_ = self._subtracted(after, ids)
            else:
                after._living = self.estimator._living.apply(Remove(ids))
            return Rest(after, str(error).removesuffix(" Nothing was changed."))
        return Rest(after)

    def _living_without(self, estimator: Any, ids: tuple[Id, ...]) -> Living[Any] | Forest:
        """The batch fit of all other examples, which choose the kernel and the noise.

        Where they choose what was chosen before, it follows from the value before.
        """
        value, edit = estimator._fitted, Remove(ids)
        if isinstance(value, Forest) and estimator.kernel is not None:
            return replace(value.apply(edit), next_id=self._next_id(ids))
        rest = _renewed(value.examples.apply(edit), self._next_id(ids))
        kernel, settled = estimator._kernel_for(rest)
        if kernel != value.kernel or not kinds.keeps_noise(estimator):
            fitted: Living[Any] | Forest = kinds.chosen_by(estimator, rest)._living
            return fitted
        if isinstance(value, Forest):
            value = replace(value, settled=True).apply(edit)
            return replace(value, settled=settled, next_id=rest.next_id)
        value.model.admit(rest.counted)
        model = replace(value, examples=rest, reserve=[]).current
        return Living.of(model, rest, settled=settled)

    def _sums_without(self, estimator: LinearGP, ids: tuple[Id, ...]) -> LinearModel:
        """The model of all other rows, which choose the grid."""
        if estimator._grid_given:
            return self._subtracted(estimator, ids)
        gone = set(ids)
        rest = self.read(tuple(one for one in self.index if one not in gone))
        model: LinearModel = kinds.chosen_by(estimator, rest).model_
        return model

    def _subtracted(self, estimator: LinearGP, ids: tuple[Id, ...]) -> LinearModel:
        """The model of all other rows on the same grid."""
        model: LinearModel = estimator.model_
        return model.of(model.sums - self._summed(estimator, self.read(ids)))

    def _next_id(self, ids: tuple[Id, ...]) -> int:
        """The number that an estimator gives to the next example when these are forgotten."""
        return next_id(self.next_id, self.index.keys() - ids)

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
        names, k = names or (), table.shape[0]
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


def next_id(least: int, ids: Iterable[Id]) -> int:
    """The first number from `least` on that is above all integers among the ids."""
    return max((least, *(one + 1 for one in ids if isinstance(one, int))))


def _renewed(examples: Examples, next_id: int) -> Examples:
    """The same examples with an index of their own, which knows no others."""
    columns = examples.X, examples.labels, examples.weights, examples.serials
    return Examples.restored(examples.names, *columns, next_id, examples.side)


def dense(X: Any) -> Array:
    """A table as an array in the type that it has."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
