"""What an edit would change, found on a copy in memory: nothing is written."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from knowmore.edits import Relabel, Remove
from knowmore.errors import InvalidInput
from knowmore.estimators.shell import unnamed
from knowmore.insight.asking import LINEAR
from knowmore.studio.edits import Asked, Ids, Label, Labels
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


Question = Annotated[Relabelled | Forgotten, Field(discriminator="verb")]


def flips(now: Snapshot, asked: Relabelled | Forgotten) -> dict[str, Any]:
    """Which examples the others would predict otherwise, and how many rightly, then and now."""
    if now.left is None or now.examples is None:
        raise InvalidInput("The model cannot say yet what would change: it needs two examples.")
    then = _then(now, asked).left
    if then is None:
        raise InvalidInput("Nothing can be said of what would be left: that takes two examples.")
    before = dict(zip(now.left.ids.tolist(), now.left.predicted.tolist(), strict=True))
    after = zip(then.ids.tolist(), then.predicted.tolist(), strict=True)
    right = (then.predicted == then.labels) & ~then.silent
    return {
        "number": now.number,
        "flips": [
            {"id": one, "from": before[one], "to": label}
            for one, label in after
            if before[one] != label
        ],
        "accuracy_before": now.accuracy,
        "accuracy_after": float(np.mean(right)) if len(right) else None,
    }


def _then(now: Snapshot, asked: Relabelled | Forgotten) -> Snapshot:
    """The file after an edit. Estimators share what they learnt with copies: these are edited."""
    assert now.examples is not None
    other, ids = unnamed(now.estimator), tuple(asked.ids)
    held, rows = now.examples, now.examples.rows(ids)
    if isinstance(other, LINEAR):
        other.forget(held.X[rows], held.labels[rows], held.weights[rows])
    if isinstance(asked, Forgotten):
        if not isinstance(other, LINEAR):
            other.remove(ids)
        return now.with_estimator(other, held.apply(Remove(ids)))
    y = asked.y if isinstance(asked.y, list) else [asked.y] * len(ids)
    if isinstance(other, LINEAR):
        other.partial_fit(held.X[rows], y, sample_weight=held.weights[rows])
    else:
        other.relabel(ids, y)
    return now.with_estimator(other, held.apply(Relabel(ids, np.array(y))))
