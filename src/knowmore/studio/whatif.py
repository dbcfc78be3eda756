"""What an edit would change, found on a copy in memory: nothing is written."""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.studio.edits import Asked, Ids, Label, Labels, Learn, for_each
from knowmore.studio.pictures import Brought, Pictures
from knowmore.studio.snapshot import Snapshot


class Relabelled(Asked):
    """Had these examples other labels, one each or one for all."""

    verb: Literal["relabel"]
    ids: Ids
    y: Labels | Label


class Forgotten(Asked):
    """Had the model never seen these examples."""

    verb: Literal["forget"]
    ids: Ids


Question = Annotated[Relabelled | Forgotten | Learn, Field(discriminator="verb")]


def flips(
    now: Snapshot, asked: Relabelled | Forgotten | Learn, pictures: Pictures
) -> dict[str, Any]:
    """Which examples the others would predict otherwise, and how many rightly, then and now.

    And which of the pictures that wait the model would predict otherwise.
    """
    if now.left is None or now.examples is None:
        raise InvalidInput("The model cannot say yet what would change: it needs two examples.")
    if not hasattr(now.estimator, "relabel"):
        raise InvalidInput("A model of this kind holds no examples, so it cannot say what if.")
    # Estimators share what they learnt with their copies, which alone are edited.
    other = copy(now.estimator)
    if isinstance(asked, Relabelled):
        other.relabel(asked.ids, for_each(asked.y, len(asked.ids)))
    elif isinstance(asked, Learn):
        chosen = pictures.chosen(now, asked.pictures)
        other.add(np.stack([one.vector for one in chosen]), for_each(asked.y, len(chosen)))
    else:
        other.remove(asked.ids)
    try:
        then = other.leave_one_out()
    except KnowmoreError as error:
        raise InvalidInput(f"Nothing can be said of what would be left: {error}") from error
    before = dict(zip(now.left.ids.tolist(), now.left.predicted.tolist(), strict=True))
    after = zip(then.ids.tolist(), then.predicted.tolist(), strict=True)
    waiting = pictures.waiting(now)
    said = [_labels(estimator, waiting) for estimator in (now.estimator, other)]
    right = (then.predicted == then.labels) & ~then.silent
    return {
        "number": now.number,
        "flips": [
            {"id": one, "from": before[one], "to": label}
            for one, label in after
            if before.get(one, label) != label
        ],
        "pictures": [
            {"picture": one.number, "from": old, "to": new}
            for one, old, new in zip(waiting, *said, strict=True)
            if old != new
        ],
        "accuracy_before": now.accuracy,
        "accuracy_after": float(np.mean(right)) if len(right) else None,
    }


def _labels(estimator: Any, waiting: list[Brought]) -> list[Any]:
    if not waiting:
        return []
    return [*estimator.predict(np.stack([one.vector for one in waiting])).tolist()]
