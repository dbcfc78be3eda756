"""`knowmore merge`: all examples of another model."""

from __future__ import annotations

from knowmore.arguments import some
from knowmore.cli.model import Model
from knowmore.errors import InvalidInput, RepeatedId
from knowmore.store.notes import check_same_features
from knowmore.unfitted import Unfitted


def merged(mine: Model, theirs: Model, dry_run: bool) -> None:
    """Learn the examples of another model, or only raise what that would raise."""
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
            f"{there}. Or begin {there} as a copy: cp {here} {there}, forget what is in the copy "
            f"with knowmore forget --origin, and learn there."
        ) from error


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
