"""What it would change to learn all of another file, before it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from knowmore.edits import Add
from knowmore.errors import InvalidInput
from knowmore.studio.edits import Asked, Text
from knowmore.studio.neighbours import neighbour, neighbours
from knowmore.studio.snapshot import Snapshot
from knowmore.studio.studio import Studio

Work = Callable[..., Awaitable[Any]]
# The most that is listed; counts are of all.
_LISTED = 1000


class Named(Asked):
    """A file in the folder of the open one, by its name."""

    name: Text


class Merging(BaseModel):
    """What another file would bring, and what it would change.

    classes : those that are new here
    clashes : ids that both files hold; as long as there are any, nothing can be merged
    flips : examples of both files that the others would predict otherwise than now in their file
    """

    number: int
    count: int
    classes: list[Any]
    clashes: int
    clashing: list[int | str]
    flips: int
    flipping: list[dict[str, Any]]
    accuracy_before: float | None
    accuracy_theirs: float | None
    accuracy_after: float | None


def add_merging(app: FastAPI, work: Work, studio: Studio) -> None:
    """Let the pages of an application look at what a merge would bring."""

    @app.get("/api/merge/files")
    async def files() -> Any:
        """The other models in the folder of this one."""
        return JSONResponse({"files": await work(neighbours, studio.store.path)})

    @app.post("/api/merge/preview", response_model=Merging)
    async def preview(asked: Named) -> Any:
        """What merging this file would change; nothing is written."""
        return JSONResponse(await work(previewed, studio, asked.name))


def previewed(studio: Studio, name: str) -> dict[str, Any]:
    """What the file would be with all of another one."""
    now = studio.now()
    with neighbour(studio.store, name) as store:
        theirs, other = Snapshot(store), store.estimator
    if not now.is_classifier or not theirs.is_classifier:
        raise InvalidInput("Only of models of classes can be said which answers would change.")
    if now.examples is None:
        raise InvalidInput("The open file holds no examples yet. Add some before merging.")
    if theirs.examples is None:
        raise InvalidInput(f"{name!r} holds no examples: there is nothing to merge.")
    held = set(now.examples.names)
    clashing = [one for one in theirs.examples.names if one in held]
    answer = {
        "number": now.number,
        "count": len(theirs),
        "classes": [one for one in theirs.labels if one not in now.labels],
        "clashes": len(clashing),
        "clashing": clashing[:_LISTED],
        "accuracy_before": now.accuracy,
        "accuracy_theirs": theirs.accuracy,
    }
    if clashing:
        return answer | {"flips": 0, "flipping": [], "accuracy_after": None}
    # A copy, which alone is edited.
    both, new = studio.store.estimator.merge(other), theirs.examples
    edit = Add(new.X, new.labels, new.names, new.weights, new.side)
    then = now.with_estimator(both, now.examples.apply(edit))
    flips = _flips(now, then, "here") + _flips(theirs, then, "there")
    more = {"flips": len(flips), "flipping": flips[:_LISTED], "accuracy_after": then.accuracy}
    return answer | more


def _flips(before: Snapshot, then: Snapshot, where: str) -> list[dict[str, Any]]:
    """Examples of one file that all others of both would predict otherwise."""
    if before.left is None or then.left is None:
        return []
    after = dict(zip(then.left.ids.tolist(), then.left.predicted.tolist(), strict=True))
    pairs = zip(before.left.ids.tolist(), before.left.predicted.tolist(), strict=True)
    return [
        {"id": one, "file": where, "from": was, "to": after[one]}
        for one, was in pairs
        if after[one] != was
    ]
