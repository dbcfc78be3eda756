"""Edits of an estimator in memory, before anything is written.

Each function returns another estimator and the edit as a value, or raises; the first estimator
stays as it is. A linear model keeps its rows in the file, which is read for those that leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, NamedTuple

from knowmore._base import (
    Id,
    Unfitted,
    as_ids,
    columns_of,
    ids_of,
    is_mask,
    masked,
    shape_of,
    some,
    warn_if_renumbered,
)
from knowmore._living import Living
from knowmore.edits import Add, Edit, Remove
from knowmore.errors import InvalidInput, KnowmoreError, RepeatedId
from knowmore.estimators import grids_are_given, unnamed
from knowmore.examples import Examples, check_new_ids, unknown_ids
from knowmore.models import beside_rows
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
class EditContext:
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
        estimator = self.estimator.holding(self._value)
        return estimator if columns_of(X) else unnamed(estimator)

    @property
    def _value(self) -> Any:
        """The fitted value, with the rows of the file if it has none."""
        return beside_rows(self.estimator.editable_, FileRows(self.index, self.read))

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
        if not self.fitted:
            after = copy(self.estimator).fit(X, y, ids=ids, sample_weight=sample_weight)
            held = after.editable_.examples
            edit = Add(held.X, held.labels, held.names, held.weights)
            return Change(kinds.in_file(after), edit)
        return self._applied(self._asked(X).adding(X, y, ids, sample_weight))

    def _applied(self, edit: Edit) -> Change:
        """The estimator after an edit."""
        return Change(self.estimator.holding(self._value.apply(edit)), edit)

    def forget(self, ids: tuple[Id, ...]) -> Rest:
        """Forget examples that are held: the others choose again what the examples choose."""
        if len(ids) == len(self.index):
            return Rest(kinds.blank(self.estimator))
        try:
            value = self._without(ids)
        except KnowmoreError as error:
            value = self._value.apply(Remove(ids))
            problem = str(error).removesuffix(" Nothing was changed.")
            return Rest(self.estimator.holding(value), problem)
        return Rest(self.estimator.holding(value))

    def _without(self, ids: tuple[Id, ...]) -> Any:
        """The value of the batch fit of all other examples, which choose what was not given.

        Where they choose what was chosen before, it follows from the value before.
        """
        estimator: Any = self.estimator
        value, edit = self._value, Remove(ids)
        can = kinds.capabilities(kinds.kind_of(estimator))
        if can.has_sums and grids_are_given(estimator):
            return value.apply(edit)
        if can.has_sums:
            gone = set(ids)
            others = self.read(tuple(one for one in self.index if one not in gone))
            return kinds.chosen_by(estimator, others).editable_
        leaves = not can.has_factor
        if leaves and value.choice.rule.is_given:
            return replace(value.apply(edit), next_id=self._next_id(ids))
        rest = _renewed(value.examples.apply(edit), self._next_id(ids))
        if len(rest.counted) < 2:
            return kinds.chosen_by(estimator, rest).editable_
        choice = estimator.rule_for(rest).chosen(rest)
        if not choice.settings.agree(value.choice.settings):
            return kinds.chosen_by(estimator, rest).editable_
        if leaves:
            value = replace(value, choice=replace(value.choice, settled=True)).apply(edit)
            return replace(value, choice=choice, next_id=rest.next_id)
        value.model.check_examples(rest.counted)
        model = replace(value, examples=rest, reserve=[]).current
        return Living.of(model, rest, choice)

    def put_aside(self, ids: tuple[Id, ...]) -> Any:
        """The estimator without examples that are held, which may come back."""
        if len(ids) == len(self.index):
            raise InvalidInput(
                "Without these examples the model would hold none: leave one, or forget them all."
            )
        return self.estimator.holding(self._value.apply(Remove(ids)))

    def _next_id(self, ids: tuple[Id, ...]) -> int:
        """The number that an estimator gives to the next example when these are forgotten."""
        return next_id(self.next_id, self.index.keys() - ids)

    def replace(self, ids: Any, X: Any, y: Any) -> Change | None:
        """Give examples other features, and other labels unless y is None."""
        edit = self._asked(X).replacing(ids, X, y)
        return None if edit is None else self._applied(edit)

    def relabel(self, ids: Any, y: Any) -> Change | None:
        """Give examples other labels."""
        edit = self.estimator.holding(self._value).relabelling(ids, y)
        return None if edit is None else self._applied(edit)

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
        return FileRows(self.index, self.read).known(names)


@dataclass(frozen=True)
class FileRows:
    """The rows of a linear model that are in its file.

    index : the ids of the rows, in their order
    read : rows with these ids
    """

    index: Mapping[Id, object]
    read: Callable[[tuple[Id, ...]], Examples]

    @property
    def names(self) -> tuple[Id, ...]:
        """The ids, in the order of the rows."""
        return tuple(self.index)

    def known(self, ids: tuple[Id, ...]) -> tuple[Id, ...]:
        """The ids; raises UnknownId unless each has a row."""
        if strange := [one for one in ids if one not in self.index]:
            raise unknown_ids(strange, self.index, "forgotten")
        return ids

    def part(self, ids: tuple[Id, ...]) -> Examples:
        """Some of the rows."""
        return self.read(self.known(ids))

    def apply(self, edit: Edit) -> None:
        """None: the next edit reads the file anew. Raises if the edit is impossible."""
        if isinstance(edit, Add):
            ids = edit.ids or ()
            check_new_ids(ids, len(edit.X), [one for one in ids if one in self.index])


def next_id(least: int, ids: Iterable[Id]) -> int:
    """The first number from `least` on that is above all integers among the ids."""
    return max((least, *(one + 1 for one in ids if isinstance(one, int))))


def _renewed(examples: Examples, next_id: int) -> Examples:
    """Examples with a new index, free of forgotten ids."""
    columns = examples.X, examples.labels, examples.weights, examples.serials
    return Examples.restored(examples.names, *columns, next_id)
