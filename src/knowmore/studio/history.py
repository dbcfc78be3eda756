"""The journal, the states that it leads through, and what forgetting a contributor would change."""

from __future__ import annotations

from typing import Any

from knowmore.errors import InvalidInput
from knowmore.store.journal import FORGETS
from knowmore.studio.studio import Studio, entry_of
from knowmore.studio.whatif import Forgotten, flips


def journal(studio: Studio) -> dict[str, Any]:
    """All entries, the oldest first."""
    now = studio.now()
    return {"number": now.number, "entries": [entry_of(one) for one in now.entries]}


def state_at(studio: Studio, number: int) -> dict[str, Any]:
    """What the file held after an entry: examples in the plane, and how often it is right."""
    now = studio.now()
    then, plane, points = studio.at(now, number), studio.plane(now), None
    # Long ago the examples may have had other features.
    width = None if then.examples is None or plane is None else then.examples.X.shape[1]
    if plane is not None and then.is_classifier and width in (None, plane.axes.shape[1]):
        points = studio.points_of(then)
    return {
        "number": number,
        "n": len(then),
        "classes": then.classes(),
        "loo_accuracy": then.accuracy,
        "log_evidence": then.evidence,
        "forgotten": any(one.verb in FORGETS and one.number > number for one in now.entries),
        "points": points,
    }


def without(studio: Studio, contributor: str) -> dict[str, Any]:
    """Which answers would change, had the model never seen the examples of a contributor."""
    now = studio.now()
    held = zip(studio.store.ids_.tolist(), studio.store.contributors(), strict=True)
    ids = [one for one, whose in held if whose == contributor]
    if not ids:
        raise InvalidInput("The model holds no examples of this contributor.")
    if len(ids) == len(now):
        raise InvalidInput("All examples are of this contributor: without them nothing is left.")
    # As many as there are, not only as many as one request may name.
    asked = Forgotten.model_construct(verb="forget", ids=ids)
    found = flips(now, asked, studio.pictures)
    return {"count": len(ids), **found}


def verified(studio: Studio) -> dict[str, Any]:
    """The certificate of the file: whether it holds what it says, and nothing that was removed."""
    found = studio.store.verify()
    said = " ".join(f"{one.name}: {one.says}." for one in found.checks)
    return {**found.certificate(), "text": said.replace("..", ".")}
