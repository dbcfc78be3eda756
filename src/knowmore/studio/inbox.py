"""Labels that the others contradict, the biggest doubt first."""

from __future__ import annotations

from typing import Any

from knowmore.errors import InvalidInput
from knowmore.insight import suspects
from knowmore.studio.snapshot import Snapshot

# Suspects whose contradicting examples are named: each takes a solve.
_NAMED = 5
# Features that are shown of an example.
_SHOWN = 12


def doubts(now: Snapshot, limit: int, kept: Any) -> dict[str, Any]:
    """The first suspects, each with what the others say, and how often these are right.

    kept : the ids of examples whose labels somebody has confirmed: they are left out and counted
    """
    answer = {
        "number": now.number,
        "judged": 0,
        "silent": 0,
        "kept": 0,
        "accuracy": now.accuracy,
    }
    if now.examples is None or not now.is_classifier or len(now.labels) < 2:
        return answer | {"suspects": []}
    if not hasattr(now.estimator, "relabel"):
        raise InvalidInput("A model of this kind holds no examples that the others could judge.")
    every = suspects(now.estimator)
    found = every.without(kept)
    first = found.part(slice(limit))
    against = [*found.part(slice(_NAMED)).contradicting, *[()] * max(limit - _NAMED, 0)]
    rows = now.examples.rows(tuple(first.ids.tolist()))
    columns = zip(
        first.ids.tolist(),
        first.labels.tolist(),
        first.preferred.tolist(),
        first.margin.tolist(),
        first.doubt.tolist(),
        first.probabilities[first.rows].max(axis=1).tolist(),
        now.examples.X[rows][:, :_SHOWN].tolist(),
        against,
        strict=False,
    )
    listed = [
        {
            "id": one,
            "label": label,
            "preferred": preferred,
            "margin": margin,
            "doubt": doubt,
            "probability": chance,
            "features": dict(zip(now.columns, values, strict=False)),
            "contradicting": [*others],
        }
        for one, label, preferred, margin, doubt, chance, values, others in columns
    ]
    judged = {
        "judged": len(found.codes),
        "silent": len(found.silent),
        "kept": len(every) - len(found),
        "total": len(found),
    }
    return answer | judged | {"suspects": listed}
