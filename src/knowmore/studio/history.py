"""The journal, the states that it leads through, and what forgetting a contributor would change."""

from __future__ import annotations

from typing import Any

from knowmore.errors import InvalidInput, UnknownId
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
    """Which answers would change, had the model never seen the examples of a contributor.

    changed : how many examples of others would get back the features or the label they had before;
        what that changes is not looked at
    """
    now = studio.now()
    try:
        plan = studio.store.preview_forget(contributor=contributor)
    except UnknownId as error:
        raise InvalidInput("The model holds nothing of this contributor.") from error
    held = set(now.examples.names) if now.examples is not None else set()
    ids = [one for one in plan.leaving if one in held]
    if len(ids) == len(now):
        raise InvalidInput("All examples are of this contributor: without them nothing is left.")
    count = {"number": now.number, "count": len(ids), "changed": len(plan.changing)}
    if not ids:
        same = {"accuracy_before": now.accuracy, "accuracy_after": now.accuracy}
        return {**count, "flips": [], "pictures": [], **same}
    # As many as there are, not only as many as one request may name.
    asked = Forgotten.model_construct(verb="forget", ids=ids)
    return {**count, **flips(now, asked, studio.pictures)}


def verified(studio: Studio) -> dict[str, Any]:
    """The certificate of the file: whether it holds what it says, and nothing that was removed."""
    found = studio.store.verify()
    said = " ".join(f"{one.name}: {one.says}." for one in found.checks)
    return {**found.certificate(), "text": said.replace("..", ".")}
