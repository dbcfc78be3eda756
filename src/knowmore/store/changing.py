"""Edits of an estimator in memory, before anything is written.

Each function returns another estimator and the edit as a value, or raises; the first estimator
stays as it is. A linear model holds no rows: the file is read for the rows that leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from knowmore._base import (
    Array,
    Id,
    Unfitted,
    as_ids,
    by_name,
    columns_of,
    ids_of,
    is_mask,
    labels_by_id,
    masked,
    shape_of,
    some,
    warn_if_renumbered,
)
from knowmore._living import Living
from knowmore.edits import Add, Edit, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, KnowmoreError, RepeatedId
from knowmore.estimators import _for_all, unnamed
from knowmore.examples import Examples, repeated_ids, unknown_ids
from knowmore.linalg import Sums
from knowmore.models import LinearModel
from knowmore.store import kinds


class Change(NamedTuple):
    """An estimator after an edit."""

    estimator: Any
    edit: Edit


class Rest(NamedTuple):
    """The estimator after examples were forgotten.

    estimator : of the other examples; unfitted if there are none
    problem : why the other examples cannot choose the settings, so that the old ones stay; or ""
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
        return kinds.is_fitted(self.estimator)

    def _asked(self, X: Any) -> Any:
        """The estimator that checks X: an array has no names that could differ from those known."""
        return self.estimator if columns_of(X) else unnamed(self.estimator)

    # -- the verbs ---------------------------------------------------------------------------

    def numbered(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> Numbered:
        """The ids of new examples: given ids, the index of a table, or numbers.

        Numbers are never given twice. They do not continue after given ids: the next number would
        still tell an id whose example is forgotten.
        """
        names, shape = ids_of(ids, X=X, y=y, sample_weight=sample_weight), shape_of("X", X)
        if names is not None or not shape:
            return Numbered(names, self.next_id)
        if self.index:
            warn_if_renumbered(X)
        free = (number for number in count(self.next_id) if number not in self.index)
        numbers = tuple(islice(free, shape[0]))
        return Numbered(numbers, numbers[-1] + 1 if numbers else self.next_id)

    def add(self, X: Any, y: Any, ids: tuple[Id, ...] | None, sample_weight: Any) -> Change:
        """Learn more examples with these ids."""
        if not self.estimator.keeps_rows:
            return self._add_rows(X, y, ids, sample_weight)
        if not self.fitted:
            after = copy(self.estimator).fit(X, y, ids, sample_weight)
            held = after.editable_.examples
            return Change(after, Add(held.X, held.labels, held.names, held.weights))
        return self._applied(self._asked(X).adding(X, y, ids, sample_weight))

    def _applied(self, edit: Edit) -> Change:
        """The estimator after an edit that its own value can apply."""
        return Change(self.estimator.holding(self.estimator.editable_.apply(edit)), edit)

    def forget(self, ids: tuple[Id, ...]) -> Rest:
        """Forget examples that are held: the others choose again what the examples choose."""
        if len(ids) == len(self.index):
            return Rest(kinds.blank(self.estimator))
        estimator, rows = self.estimator, self.estimator.keeps_rows
        try:
            value = self._living_without(ids) if rows else self._sums_without(ids)
        except KnowmoreError as error:
            value = estimator.editable_.apply(Remove(ids)) if rows else self._subtracted(ids)
            problem = str(error).removesuffix(" Nothing was changed.")
            return Rest(estimator.holding(value), problem)
        return Rest(estimator.holding(value))

    def _living_without(self, ids: tuple[Id, ...]) -> Any:
        """The value of the batch fit of all other examples, which choose the kernel and the noise.

        Where they choose what was chosen before, it follows from the value before.
        """
        estimator: Any = self.estimator
        value, edit = estimator.editable_, Remove(ids)
        leaves = not kinds.capabilities(kinds.kind_of(estimator)).has_factor
        if leaves and estimator.kernel is not None:
            return replace(value.apply(edit), next_id=self._next_id(ids))
        rest = _renewed(value.examples.apply(edit), self._next_id(ids))
        kernel, settled = estimator.kernel_for(rest)
        if kernel != value.kernel or not kinds.keeps_noise(estimator):
            return kinds.chosen_by(estimator, rest).editable_
        if leaves:
            value = replace(value, settled=True).apply(edit)
            return replace(value, settled=settled, next_id=rest.next_id)
        value.model.admit(rest.counted)
        model = replace(value, examples=rest, reserve=[]).current
        return Living.of(model, rest, settled=settled)

    def _sums_without(self, ids: tuple[Id, ...]) -> LinearModel:
        """The model of all other rows, which choose the grid."""
        if self.estimator.grid_is_given:
            return self._subtracted(ids)
        gone = set(ids)
        rest = self.read(tuple(one for one in self.index if one not in gone))
        model: LinearModel = kinds.chosen_by(self.estimator, rest).model_
        return model

    def _subtracted(self, ids: tuple[Id, ...]) -> LinearModel:
        """The model of all other rows on the same grid."""
        model: LinearModel = self.estimator.model_
        return model.of(model.sums - self._summed(self.read(ids)))

    def _next_id(self, ids: tuple[Id, ...]) -> int:
        """The number that an estimator gives to the next example when these are forgotten."""
        return next_id(self.next_id, self.index.keys() - ids)

    def replace(self, ids: Any, X: Any, y: Any) -> Change | None:
        """Give examples other features, and other labels unless y is None."""
        if self.estimator.keeps_rows:
            edit = self._asked(X).replacing(ids, X, y)
            return None if edit is None else self._applied(edit)
        edit = self._replacing(ids, X, y)
        if edit is None:
            return None
        held = self.read(edit.ids)
        labels = held.labels if edit.labels is None else edit.labels
        return self._exchanged(edit, held, edit.X, labels)

    def relabel(self, ids: Any, y: Any) -> Change | None:
        """Give examples other labels."""
        if self.estimator.keeps_rows:
            edit = self.estimator.relabelling(ids, y)
            return None if edit is None else self._applied(edit)
        if y is None:
            ids, y = labels_by_id(ids)
        chosen = self.chosen(ids)
        if not chosen:
            return None
        edit, held = Relabel(chosen, self._new_labels(chosen, y, ids)), self.read(chosen)
        return self._exchanged(edit, held, held.X, edit.labels)

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
        return Change(after, Add(theirs.X, theirs.labels, theirs.names, theirs.weights))

    def chosen(self, ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
        """The ids that these ids or this mask select, all held."""
        names = masked(ids, tuple(self.index)) if is_mask(ids) else as_ids(ids, ordered=ordered)
        if strange := [one for one in names if one not in self.index]:
            raise unknown_ids(strange, self.index, "forgotten")
        return names

    # -- linear models -----------------------------------------------------------------------

    def _add_rows(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> Change:
        names = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
        if y is not None and not shape_of("y", y):
            y = _for_all(y, X.shape[0] if hasattr(X, "shape") else len(X))
        if self.fitted:
            rows = self._asked(X).checked_rows(X, y, sample_weight, reset=False)
            model = self.estimator.model_
            after = self.estimator.holding(model.of(model.sums + self.estimator.sums_of(*rows)))
        else:
            after = copy(self.estimator).fit(X, y, sample_weight)
            rows = after.checked_rows(X, y, sample_weight, reset=False)
        table, labels, weights = rows
        names, k = names or (), table.shape[0]
        if len(names) != k:
            raise InvalidInput(f"{len(names)} ids were given for {k} examples. Give one each.")
        if held := [one for one in names if one in self.index]:
            raise repeated_ids(held)
        return Change(after, Add(dense(table), labels, names, weights))

    def _exchanged(self, edit: Edit, held: Examples, X: Array, labels: Array) -> Change:
        """The estimator with rows X and labels in the place of the examples held."""
        model, new = self.estimator.model_, self.estimator.sums_of(X, labels, held.weights)
        # Added first: it may lie beyond the grid.
        sums = model.sums + new - self._summed(held)
        return Change(self.estimator.holding(model.of(sums)), edit)

    def _replacing(self, ids: Any, X: Any, y: Any) -> Replace | None:
        chosen = self.chosen(ids)
        if not chosen and shape_of("X", X)[:1] == (0,):
            return None
        rows = dense(self._asked(X).model_inputs(by_name("X", X, chosen, ids)))
        if len(chosen) != len(rows):
            raise InvalidInput(f"X has {len(rows)} rows for {len(chosen)} examples. Give one each.")
        labels = None if y is None else self._new_labels(chosen, y, ids)
        return Replace(chosen, rows, labels)

    def _new_labels(self, chosen: tuple[Id, ...], y: Any, given: Any) -> Array:
        y = by_name("y", _for_all(y, len(chosen)), chosen, given)
        labels: Array = self.estimator.checked_targets(y, len(chosen))
        return labels

    def _summed(self, held: Examples) -> Sums:
        """The sums of examples that are held."""
        sums: Sums = self.estimator.sums_of(held.X, held.labels, held.weights)
        return sums


def next_id(least: int, ids: Iterable[Id]) -> int:
    """The first number from `least` on that is above all integers among the ids."""
    return max((least, *(one + 1 for one in ids if isinstance(one, int))))


def _renewed(examples: Examples, next_id: int) -> Examples:
    """Examples with a new index, free of forgotten ids."""
    columns = examples.X, examples.labels, examples.weights, examples.serials
    return Examples.restored(examples.names, *columns, next_id)


def dense(X: Any) -> Array:
    """A table as an array in the type that it has."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
