"""The routes of the desk: pictures that are brought, shown, explained and let go of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Json

from knowmore.studio.edits import Asked, Text, Waiting, Whole
from knowmore.studio.guard import PICTURES
from knowmore.studio.pictures import small_picture
from knowmore.studio.studio import Studio

Work = Callable[..., Awaitable[Any]]
# As JSON: 7 and "7" are different examples.
OneId = Annotated[Json[Whole | Text] | None, Query()]
OnePicture = Annotated[int | None, Query(ge=1, le=2**53)]
# A transparent point, for an example that has no picture any more.
_NOTHING = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364600000000600023081d02f0000000049454e44ae426082"
)


class Said(BaseModel):
    """A picture that waits, and what the model says of it; what it cannot say is null."""

    picture: int
    name: str
    label: Any = None
    probability: float | None = None
    std: float | None = None
    unknown: bool | None = None


class Held(BaseModel):
    """An example, and what the others say of it."""

    id: int | str
    label: Any
    predicted: Any
    wrong: bool
    silent: bool


class Board(BaseModel):
    """All examples, and the pictures that wait, of which there can be so many."""

    number: int
    examples: list[Held]
    waiting: list[Said]
    most: int


class Spoken(BaseModel):
    """What an example does to a score, exactly."""

    id: int | str
    label: Any
    similarity: float
    contribution: float
    score_without: float


class Explained(BaseModel):
    """The score of a label, the nearest examples, and those that speak most against it."""

    number: int
    label: Any
    score: float
    nearest: list[Spoken]
    against: list[Spoken]


class Dismissed(Asked):
    """Pictures to let go of."""

    pictures: Waiting


def add_desk(app: FastAPI, studio: Studio, work: Work) -> None:
    """Add the routes to the application of a studio.

    work : runs what takes long in the one thread for it
    """
    pictures, apart = studio.pictures, CapacityLimiter(1)
    body = {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}

    @app.get("/api/desk", response_model=Board)
    async def desk() -> Any:
        """Every example with what the others say of it, and the pictures that wait."""
        return JSONResponse(await work(lambda: pictures.board(studio.now())))

    @app.post(PICTURES, response_model=Said, openapi_extra={"requestBody": body})
    async def bring(request: Request, name: Annotated[str, Query(max_length=300)] = "") -> Any:
        """Bring a picture, which waits until it is learnt or dismissed; nothing is written."""
        data = await request.body()
        return JSONResponse(await work(lambda: pictures.take(studio.now(), data, name)))

    @app.post("/api/dismiss")
    async def dismiss(asked: Dismissed) -> Any:
        """Let go of pictures that wait."""
        await work(lambda: pictures.dismiss(studio.now(), asked.pictures))
        return JSONResponse({"dismissed": len(asked.pictures)})

    @app.get("/api/thumbnail", response_class=Response)
    async def thumbnail(id: OneId = None, picture: OnePicture = None) -> Any:  # noqa: A002
        """A small picture of an example, or of one that waits; a point if there is none."""
        found = await work(lambda: pictures.shown(studio.now(), id, picture))
        if not isinstance(found, bytes):
            # Decoding takes a while, and the others go on.
            found = await to_thread.run_sync(small_picture, studio.store, found, limiter=apart)
        kind = "image/jpeg" if found else "image/png"
        return Response(found or _NOTHING, media_type=kind)

    @app.get("/api/explain", response_model=Explained)
    async def explain(id: OneId = None, picture: OnePicture = None) -> Any:  # noqa: A002
        """What speaks for an example or a picture, and what against it."""
        return JSONResponse(await work(lambda: pictures.explained(studio.now(), id, picture)))
