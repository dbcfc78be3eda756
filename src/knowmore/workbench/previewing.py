"""Previews of edits and merges, made on copies in memory: nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.base import is_classifier

from knowmore._base import Id, some
from knowmore.edits import Add, Edit, Relabel, Remove
from knowmore.errors import InvalidInput, KnowmoreError, RepeatedId
from knowmore.estimators import unnamed
from knowmore.examples import Examples
from knowmore.models import LeftOut, beside_rows
from knowmore.store import EditContext, Preview, Store, encoded
from knowmore.workbench.model import check_same_features


@final
@dataclass(frozen=True)
class AnswerChange:
    """An example that the others would predict otherwise."""

    id: Id
    before: Any
    after: Any


@final
@dataclass(frozen=True)
class EditPreview:
    """The answers that an edit would change.

    changes : examples held before and after that the others would predict otherwise
    accuracy_before, accuracy_after : the share of examples that the others recognise
    """

    changes: list[AnswerChange]
    accuracy_before: float | None
    accuracy_after: float | None


@final
@dataclass(frozen=True)
class MergePreview:
    """The examples that a merge would bring, and the answers that it would change.

    count : the number of its examples
    classes : its classes that are new here
    clashing : ids that both files hold; while there are any, nothing can be merged
    here, there : examples of each file that the others of both would predict otherwise than now
    accuracy_before, accuracy_theirs, accuracy_after : as of `EditPreview`
    """

    count: int
    classes: list[Any]
    clashing: list[Id]
    here: list[AnswerChange]
    there: list[AnswerChange]
    accuracy_before: float | None
    accuracy_theirs: float | None
    accuracy_after: float | None


def preview_forget(
    store: Store,
    ids: list[Id] | None = None,
    *,
    contributor: str | None = None,
    origin: str | None = None,
) -> tuple[Preview, int]:
    """The examples that `Store.forget` would reach, and the number of examples that would stay."""
    plan = store.preview_forget(ids, contributor=contributor, origin=origin)
    leaving = len({*plan.leaving} & {*store.ids_.tolist()})
    return plan, len(store) - leaving


def left_out(estimator: Any, examples: Examples | None) -> LeftOut | None:
    """The prediction for each example by the others; None if there can be none."""
    if examples is None or len(examples) < 2 or not is_classifier(estimator):
        return None
    try:
        value = beside_rows(estimator.editable_, examples)
        left: LeftOut = estimator.holding(value).leave_one_out()
        return left
    except KnowmoreError:
        return None


def accuracy(left: LeftOut | None) -> float | None:
    """The share of examples that the others recognise; None if they say nothing."""
    if left is None or not len(left.ids):
        return None
    return float(np.mean((left.predicted == left.labels) & ~left.silent))


def _held(estimator: Any, examples: Examples) -> EditContext:
    """The state that an edit of a file with this estimator and these examples starts from."""

    def read(ids: tuple[Id, ...]) -> Examples:
        rows = examples.rows(ids)
        return Examples.of(examples.X[rows], examples.labels[rows], ids, examples.weights[rows])

    return EditContext(estimator, dict.fromkeys(examples.names), examples.next_id, read)


def edited(estimator: Any, examples: Examples, edit: Edit) -> tuple[Any, Examples]:
    """An estimator of a file and its examples after an edit; those given stay as they are."""
    state = _held(unnamed(estimator), examples)
    changed: Any
    if isinstance(edit, Remove):
        names = state.chosen(edit.ids, ordered=False)
        return unnamed(state.forget(names).estimator), examples.apply(Remove(names))
    if isinstance(edit, Add):
        numbered = state.numbered(edit.X, edit.labels, edit.ids, edit.weights)
        changed = state.add(edit.X, edit.labels, numbered.ids, edit.weights)
    elif isinstance(edit, Relabel):
        changed = state.relabel(edit.ids, edit.labels)
    else:
        changed = state.replace(edit.ids, edit.X, edit.labels)
    if changed is None:
        return unnamed(estimator), examples
    # Checked labels have one type.
    checked = replace(edit, labels=changed.edit.labels)
    return unnamed(changed.estimator), examples.apply(checked)


def preview_edit(store: Store, edit: Edit) -> EditPreview:
    """Which examples the others would predict otherwise after an edit."""
    before = left_out(unnamed(store.estimator), store.examples) if len(store) else None
    after = None if before is None else left_out(*edited(store.estimator, store.examples, edit))
    return compared(before, after)


def compared(before: LeftOut | None, after: LeftOut | None) -> EditPreview:
    """What differs between leave-one-out before and after an edit; None is an error."""
    if before is None:
        raise InvalidInput("The model cannot say yet what would change: it needs two examples.")
    if after is None:
        raise InvalidInput("Nothing can be said of what would be left: that takes two examples.")
    return EditPreview(changed_answers(before, after), accuracy(before), accuracy(after))


def changed_answers(before: LeftOut, after: LeftOut) -> list[AnswerChange]:
    """Examples of both that are predicted otherwise."""
    then = dict(zip(after.ids.tolist(), after.predicted.tolist(), strict=True))
    pairs = zip(before.ids.tolist(), before.predicted.tolist(), strict=True)
    return [
        AnswerChange(name, label, then[name])
        for name, label in pairs
        if then.get(name, label) != label
    ]


# -- merging ---------------------------------------------------------------------------------


def preview_merge(store: Store, other: Store) -> MergePreview:
    """The effect of learning all of another classifier; its features must mean the same."""
    check_same_features(store, other)
    (mine, examples), (others, theirs) = _encoded_alike(store, other)
    here = left_out(unnamed(mine), examples if len(store) else None)
    there = left_out(unnamed(others), theirs if len(other) else None)
    held, labels = set(store.ids_.tolist()), set(store.examples.labels.tolist())
    new = np.unique(other.examples.labels).tolist()
    clashing = [name for name in other.ids_.tolist() if name in held]
    after = None
    if not clashing:
        both = _held(mine, examples).merge(others, theirs)
        after = left_out(unnamed(both.estimator), examples.apply(both.edit))
    return MergePreview(
        len(other),
        [label for label in new if label not in labels],
        clashing,
        [] if here is None or after is None else changed_answers(here, after),
        [] if there is None or after is None else changed_answers(there, after),
        accuracy(here),
        accuracy(there),
        accuracy(after),
    )


def _encoded_alike(store: Store, other: Store) -> tuple[tuple[Any, Examples], tuple[Any, Examples]]:
    """The estimators of two files and their examples, by one encoding of cells if they have any."""
    pairs = (store.estimator, store.examples), (other.estimator, other.examples)
    table = store.table
    if table is None or other.table is None or not len(other):
        return pairs
    mine, theirs = store.cells(), other.cells()
    if not table.covers(theirs):
        table = table.chosen([*mine, *theirs])
    if table != store.table:
        pairs = encoded(*pairs[0], mine, table), pairs[1]
    if table != other.table:
        pairs = pairs[0], encoded(*pairs[1], theirs, table)
    return pairs


def merge(store: Store, other: Store, *, again: bool, dry_run: bool = False) -> None:
    """Learn the examples of another model, or only raise what that would raise.

    again : whether forgotten examples may come back
    """
    if not again:
        _check_forgotten(store, other)
    try:
        check_same_features(store, other)
        if not dry_run:
            store.merge(other)
        elif len(other):
            (mine, examples), (others, theirs) = _encoded_alike(store, other)
            _held(mine, examples).merge(others, theirs)
    except RepeatedId:
        raise
    except InvalidInput as error:
        here, there = store.path.name, other.path.name
        raise InvalidInput(
            f"{error} On the command line: knowmore learn {here} SOURCE, with the source of "
            f"{there}. In Python: give {there} the settings of {here} with set_parameters()."
        ) from error


def _check_forgotten(store: Store, other: Store) -> None:
    """Raise InvalidInput if the other model holds examples that were forgotten here."""
    ids = other.ids_.tolist()
    marks = store.was_forgotten(ids)
    held = set(store.ids_.tolist())
    gone = [name for name, mark in zip(ids, marks, strict=True) if mark.id and name not in held]
    if gone:
        here, there = store.path.name, other.path.name
        count = f"{len(gone)} example{'s' * (len(gone) != 1)}"
        raise InvalidInput(
            f"{there} holds {count} that {here} has forgotten: {some(gone)}. Forget them there, "
            f"too, or bring them back: --again."
        )
