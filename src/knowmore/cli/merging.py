"""`knowmore merge`: all examples of another model."""

from __future__ import annotations

from knowmore.arguments import some
from knowmore.cli.model import Model
from knowmore.cli.showing import counted
from knowmore.errors import InvalidInput, RepeatedId
from knowmore.store.notes import check_same_features
from knowmore.unfitted import Unfitted


def merged(mine: Model, theirs: Model, dry_run: bool, again: bool) -> None:
    """Learn the examples of another model, or only raise what that would raise.

    again : whether what was forgotten may come back
    """
    if not again:
        _check_forgotten(mine, theirs)
    try:
        check_same_features(mine.store, theirs.store)
        if dry_run:
            _rehearse(mine, theirs)
        else:
            mine.store.merge(theirs.store)
    except RepeatedId:
        raise
    except InvalidInput as error:
        here, there = mine.store.path.name, theirs.store.path.name
        raise InvalidInput(
            f"{error} On the command line: knowmore learn {here} SOURCE, with the source of "
            f"{there}. In Python: give {there} the settings of {here} with set_parameters()."
        ) from error


def _check_forgotten(mine: Model, theirs: Model) -> None:
    """Raise InvalidInput if the other model holds examples that were forgotten here."""
    ids = theirs.store.ids_.tolist()
    marks = mine.store.was_forgotten(ids)
    held = set(mine.store.ids_.tolist())
    gone = [one for one, mark in zip(ids, marks, strict=True) if mark.id and one not in held]
    if gone:
        here, there = mine.store.path.name, theirs.store.path.name
        raise InvalidInput(
            f"{there} holds {counted(len(gone))} that {here} has forgotten: {some(gone)}. Forget "
            f"them there, too, or bring them back: --again."
        )


def _rehearse(mine: Model, theirs: Model) -> None:
    """Merge in memory."""
    if not len(theirs.store):
        return
    if not len(mine.store):
        raise Unfitted("The file holds no examples yet. Add some before merging.")
    held = set(mine.store.ids_.tolist())
    if repeated := [one for one in theirs.store.ids_.tolist() if one in held]:
        raise RepeatedId(
            f"Both models hold {some(repeated)}. Models merge only if they share no id."
        )
    mine.store.estimator.merge(theirs.store.estimator)
