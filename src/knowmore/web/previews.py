"""Questions about states of a model that need no page: suspects, and previews of edits.

Edits are tried on copies in memory: nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from knowmore._base import Id
from knowmore.edits import Add, Edit, Relabel, Remove
from knowmore.errors import InvalidInput
from knowmore.estimators import unnamed
from knowmore.examples import Examples
from knowmore.insight import suspects
from knowmore.store.changing import Holding
from knowmore.web.snapshot import Snapshot

# Suspects whose contradicting examples are named: each takes a solve.
_NAMED = 5
# Features that are shown of an example.
_SHOWN = 12
# The most that is listed; counts are of all.
_LISTED = 1000


# -- suspects ------------------------------------------------------------------------------------


def doubts(now: Snapshot, limit: int, kept: Collection[Any]) -> dict[str, Any]:
    """The first suspects, each with the label that the others prefer, and the accuracy.

    kept : the ids of examples whose labels somebody has confirmed: they are left out and counted
    """
    known = {"number": now.number, "accuracy": now.accuracy}
    if now.examples is None or not now.is_classifier or len(now.labels) < 2:
        return known | {"judged": 0, "silent": 0, "kept": 0, "suspects": []}
    if not hasattr(now.estimator, "relabel"):
        raise InvalidInput("A model of this kind holds no examples that the others could judge.")
    every = suspects(now.estimator)
    left = every.without(kept)
    return known | {
        "judged": len(left.codes),
        "silent": len(left.silent),
        "kept": len(every) - len(left),
        "total": len(left),
        "suspects": _listed(now, left, limit),
    }


def _listed(now: Snapshot, suspected: Any, limit: int) -> list[dict[str, Any]]:
    """The first suspects with their features, and the examples that contradict the very first."""
    assert now.examples is not None
    first = suspected.part(slice(limit))
    against = [*suspected.part(slice(_NAMED)).contradicting, *[()] * max(limit - _NAMED, 0)]
    rows = now.examples.rows(tuple(first.ids.tolist()))
    columns = {
        "id": first.ids.tolist(),
        "label": first.labels.tolist(),
        "preferred": first.preferred.tolist(),
        "margin": first.margin.tolist(),
        "doubt": first.doubt.tolist(),
        "probability": first.probabilities[first.rows].max(axis=1).tolist(),
        "features": [
            dict(zip(now.columns, values, strict=False))
            for values in now.examples.X[rows][:, :_SHOWN].tolist()
        ],
        "contradicting": [[*others] for others in against],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=False)]


# -- previews of edits ---------------------------------------------------------------------------


def after(now: Snapshot, edit: Edit) -> Snapshot:
    """The file after an edit. Estimators share what they learnt with copies: these are edited."""
    assert now.examples is not None
    other, held = unnamed(now.estimator), now.examples
    by_id = hasattr(other, "relabel")
    if isinstance(edit, Remove):
        return now.with_estimator(_without(now, edit.ids), held.apply(edit))
    assert isinstance(edit, (Add, Relabel))
    y = edit.labels.tolist()
    if isinstance(edit, Add):
        (other.add if by_id else other.partial_fit)(edit.X, y)
    elif by_id:
        other.relabel(edit.ids, y)
    else:
        rows = held.rows(edit.ids)
        other.forget(held.X[rows], held.labels[rows], held.weights[rows])
        other.partial_fit(held.X[rows], y, sample_weight=held.weights[rows])
    return now.with_estimator(other, held.apply(replace(edit, labels=np.array(y))))


def _without(now: Snapshot, ids: tuple[Id, ...]) -> Any:
    """The estimator as `forget` would leave it."""
    held = now.examples
    assert held is not None
    if not now.in_file:
        return unnamed(now.estimator).remove(ids)

    def read(some: tuple[Id, ...]) -> Examples:
        rows = held.rows(some)
        return Examples.of(held.X[rows], held.labels[rows], some, held.weights[rows])

    index = dict.fromkeys(held.names)
    return Holding(now.estimator, index, held.next_id, read).forget(ids).estimator


def edit_preview(now: Snapshot, edit: Edit, waiting: dict[int, Any]) -> dict[str, Any]:
    """Which examples the others would predict otherwise, and how many rightly, then and now.

    waiting : vectors (d,) of pictures by their numbers; those that the model would predict
        otherwise are told, too
    """
    if now.left is None or now.examples is None:
        raise InvalidInput("The model cannot say yet what would change: it needs two examples.")
    other = after(now, edit)
    then = other.left
    if then is None:
        raise InvalidInput("Nothing can be said of what would be left: that takes two examples.")
    before = dict(zip(now.left.ids.tolist(), now.left.predicted.tolist(), strict=True))
    predicted = zip(then.ids.tolist(), then.predicted.tolist(), strict=True)
    said = [_predicted(estimator, waiting) for estimator in (now.estimator, other.estimator)]
    right = (then.predicted == then.labels) & ~then.silent
    return {
        "number": now.number,
        "flips": [
            {"id": id_, "from": before[id_], "to": label}
            for id_, label in predicted
            if before.get(id_, label) != label
        ],
        "pictures": [
            {"picture": number, "from": old, "to": new}
            for number, old, new in zip(waiting, *said, strict=True)
            if old != new
        ],
        "accuracy_before": now.accuracy,
        "accuracy_after": float(np.mean(right)) if len(right) else None,
    }


def _predicted(estimator: Any, waiting: dict[int, Any]) -> list[Any]:
    if not waiting:
        return []
    return [*estimator.predict(np.stack([*waiting.values()])).tolist()]


def merge_preview(now: Snapshot, estimator: Any, theirs: Snapshot, other: Any) -> dict[str, Any]:
    """The effect of all examples of another file on the open one.

    estimator, other : the estimators of both files
    """
    if not now.is_classifier or not theirs.is_classifier:
        raise InvalidInput("Only of models of classes can be said which answers would change.")
    if now.examples is None:
        raise InvalidInput("The open file holds no examples yet. Add some before merging.")
    if theirs.examples is None:
        raise InvalidInput(f"{theirs.name!r} holds no examples: there is nothing to merge.")
    held = set(now.examples.names)
    clashing = [id_ for id_ in theirs.examples.names if id_ in held]
    answer = {
        "number": now.number,
        "count": len(theirs),
        "classes": [label for label in theirs.labels if label not in now.labels],
        "clashes": len(clashing),
        "clashing": clashing[:_LISTED],
        "accuracy_before": now.accuracy,
        "accuracy_theirs": theirs.accuracy,
    }
    if clashing:
        return answer | {"flips": 0, "flipping": [], "accuracy_after": None}
    # `merge` edits a copy.
    both, new = estimator.merge(other), theirs.examples
    edit = Add(new.X, new.labels, new.names, new.weights)
    then = now.with_estimator(both, now.examples.apply(edit))
    flips = _flips(now, then, "here") + _flips(theirs, then, "there")
    more = {"flips": len(flips), "flipping": flips[:_LISTED], "accuracy_after": then.accuracy}
    return answer | more


def _flips(before: Snapshot, then: Snapshot, where: str) -> list[dict[str, Any]]:
    """Examples of one file that all others of both would predict otherwise."""
    if before.left is None or then.left is None:
        return []
    labels = dict(zip(then.left.ids.tolist(), then.left.predicted.tolist(), strict=True))
    pairs = zip(before.left.ids.tolist(), before.left.predicted.tolist(), strict=True)
    return [
        {"id": id_, "file": where, "from": label, "to": labels[id_]}
        for id_, label in pairs
        if labels[id_] != label
    ]
