"""What an edit would change, found on a copy in memory: nothing is written."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from knowmore.edits import Add, Relabel, Remove
from knowmore.errors import InvalidInput
from knowmore.estimators.shell import unnamed
from knowmore.insight.asking import LINEAR
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
    other = _then(now, asked, pictures)
    then = other.left
    if then is None:
        raise InvalidInput("Nothing can be said of what would be left: that takes two examples.")
    before = dict(zip(now.left.ids.tolist(), now.left.predicted.tolist(), strict=True))
    after = zip(then.ids.tolist(), then.predicted.tolist(), strict=True)
    waiting = pictures.waiting(now)
    said = [_labels(estimator, waiting) for estimator in (now.estimator, other.estimator)]
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


def _then(now: Snapshot, asked: Relabelled | Forgotten | Learn, pictures: Pictures) -> Snapshot:
    """The file after an edit. Estimators share what they learnt with copies: these are edited."""
    assert now.examples is not None
    other, held = unnamed(now.estimator), now.examples
    linear = isinstance(other, LINEAR)
    if isinstance(asked, Learn):
        chosen = pictures.chosen(now, asked.pictures)
        X, y = np.stack([one.vector for one in chosen]), for_each(asked.y, len(chosen))
        (other.partial_fit if linear else other.add)(X, y)
        return now.with_estimator(other, held.apply(Add(X, np.array(y))))
    ids = tuple(asked.ids)
    rows = held.rows(ids)
    if isinstance(asked, Forgotten):
        return now.with_estimator(now.without(ids), held.apply(Remove(ids)))
    y = for_each(asked.y, len(ids))
    if linear:
        other.forget(held.X[rows], held.labels[rows], held.weights[rows])
        other.partial_fit(held.X[rows], y, sample_weight=held.weights[rows])
    else:
        other.relabel(ids, y)
    return now.with_estimator(other, held.apply(Relabel(ids, np.array(y))))
