"""Labels that the others contradict, the biggest doubt first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from knowmore.errors import InvalidInput
from knowmore.insight import suspects
from knowmore.studio.snapshot import Snapshot

# Suspects whose contradicting examples are named: each takes a solve.
_NAMED = 5
# Features that are shown of an example.
_SHOWN = 12


def doubts(now: Snapshot, limit: int) -> dict[str, Any]:
    """The first suspects, each with what the others say, and how often these are right."""
    answer = {"number": now.number, "judged": 0, "silent": 0, "accuracy": now.accuracy}
    if now.examples is None or not now.is_classifier or len(now.labels) < 2:
        return answer | {"suspects": []}
    if not hasattr(now.estimator, "relabel"):
        raise InvalidInput("A model of this kind holds no examples that the others could judge.")
    found = suspects(now.estimator)
    part = slice(0, limit)
    first = replace(
        found,
        rows=found.rows[:_NAMED],
        ids=found.ids[:_NAMED],
        labels=found.labels[:_NAMED],
        preferred=found.preferred[:_NAMED],
        margin=found.margin[:_NAMED],
    )
    against = [*first.contradicting, *[()] * max(limit - _NAMED, 0)]
    rows = now.examples.rows(tuple(found.ids[part].tolist()))
    chances = found.probabilities[found.rows[part]].max(axis=1)
    columns = zip(
        found.ids[part].tolist(),
        found.labels[part].tolist(),
        found.preferred[part].tolist(),
        found.margin[part].tolist(),
        found.doubt[part].tolist(),
        chances.tolist(),
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
    judged = {"judged": len(found.codes), "silent": len(found.silent), "total": len(found.ids)}
    return answer | judged | {"suspects": listed}
