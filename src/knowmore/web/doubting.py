"""The suspects of a page, the examples against them, and what else an example may be."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from knowmore._base import Array, Id
from knowmore.errors import InvalidInput
from knowmore.insight import Suspects, suspects
from knowmore.web.snapshot import Snapshot
from knowmore.workbench import unrefused

# Suspects whose contradicting examples are named at once: each takes a solve.
_NAMED = 5


def doubts(now: Snapshot, limit: int) -> dict[str, Any]:
    """The first suspects, each with the label that the others prefer, and the accuracy.

    Examples whose labels somebody has confirmed are left out and counted.
    """
    known = {"number": now.number, "accuracy": now.accuracy, "otherwise": int(now.wrong.sum())}
    if now.examples is None or not now.is_classifier or len(now.labels) < 2:
        return known | {"judged": 0, "silent": 0, "kept": 0, "suspects": []}
    if not hasattr(now.estimator, "relabel"):
        raise InvalidInput("A model of this kind holds no examples that the others could judge.")
    every = open_doubts(now)
    left = every.without(now.store.kept_)
    first, named = left.part(slice(limit)), left.part(slice(_NAMED)).contradicting
    rows = now.examples.rows(tuple(first.ids.tolist()))
    texts = now.texts(first.ids.tolist())
    columns = {
        "id": first.ids.tolist(),
        "label": first.labels.tolist(),
        "preferred": first.preferred.tolist(),
        "margin": first.margin.tolist(),
        "doubt": first.doubt.tolist(),
        "probability": first.probabilities[first.rows].max(axis=1).tolist(),
        "shown": [now.shown(row, text) for row, text in zip(rows.tolist(), texts, strict=True)],
        "contradicting": [*map(list, named), *([] for _ in range(limit))],
    }
    each = zip(*columns.values(), strict=False)
    return known | {
        "judged": len(left.codes),
        "silent": len(left.silent),
        "kept": len(every) - len(left),
        "total": len(left),
        "suspects": [dict(zip(columns, row, strict=True)) for row in each],
    }


def still_listed(now: Snapshot, ids: list[Id]) -> dict[str, Any]:
    """Those of these examples that are held: label, whether it was confirmed, what is shown."""
    held = [one for one in ids if one in now.held]
    found: list[dict[str, Any]] = []
    if now.examples is not None and held:
        rows, kept = now.examples.rows(tuple(held)), {*now.store.kept_}
        each = zip(held, rows.tolist(), now.texts(held), strict=True)
        found = [
            {
                "id": one,
                "label": now.examples.labels[row].tolist(),
                "kept": one in kept,
                "shown": now.shown(row, text),
            }
            for one, row, text in each
        ]
    return {"number": now.number, "listed": found}


def open_doubts(now: Snapshot) -> Suspects:
    """The suspects of a state, without labels that were refused for them."""
    found = now.once(_suspects)
    return unrefused(found, now.store) if now.in_file else found


def _suspects(now: Snapshot) -> Suspects:
    return suspects(now.estimator)


def contradicting(now: Snapshot, one: Id) -> list[dict[str, Any]]:
    """The examples that speak most against the label of a suspect, with their own labels."""
    found = open_doubts(now)
    place = [i for i, name in enumerate(found.ids.tolist()) if name == one]
    if not place or now.examples is None:
        return []
    ids = found.part(place).contradicting[0]
    labels = now.examples.labels[now.examples.rows(ids)].tolist()
    return [{"id": name, "label": label} for name, label in zip(ids, labels, strict=True)]


def chances_but(estimator: Any, row: Array, refused: Collection[Any]) -> list[tuple[Any, float]]:
    """The labels of a row (d,) that were not refused for it, the likeliest first.

    Each with its probability, given that the row is of none of the refused classes.
    """
    chances = estimator.predict_proba(row[None])[0].tolist()
    named = zip(estimator.classes_.tolist(), chances, strict=True)
    left = [(label, chance) for label, chance in named if label not in refused]
    whole = sum(chance for _, chance in left)
    order = sorted(left, key=lambda pair: -pair[1])
    return [(label, chance / whole if whole > 0 else 1 / len(left)) for label, chance in order]
