"""The routes of the questions: what the model would like to know of a pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from knowmore.errors import InvalidInput
from knowmore.extras import optional
from knowmore.store import Store
from knowmore.studio.edits import Asked, Text, Whole
from knowmore.studio.pool import Pool
from knowmore.studio.studio import Studio

# Reads the text of a CSV table of this name as a pool for a model.
Reader = Callable[[Store, str, str], Pool]
Work = Callable[..., Awaitable[Any]]
# The longest text of a table, and the longest side of a picture.
_TEXT: Final = 8_000_000
_LONGEST: Final = 640


class Skipping(Asked):
    """Rows not to ask about."""

    skip: Annotated[list[Whole | Text], Field(default_factory=list, max_length=20_000)]


class Table(Asked):
    """A table without labels, as CSV."""

    name: Text
    text: Annotated[str, Field(max_length=_TEXT)]


class Question(BaseModel):
    """A row to label, why, and what its label takes off the variance of the pool."""

    model_config = ConfigDict(extra="allow")
    id: int | str
    reason: str
    drop: float | None = None


class Asking(BaseModel):
    """The next question, the state of the pool, and accuracies by the number of answers."""

    model_config = ConfigDict(extra="allow")
    number: int
    pool: dict[str, Any] | None
    question: Question | None
    curve: list[tuple[int, float | None]]


def add_questions(app: FastAPI, work: Work, studio: Studio, reader: Reader | None) -> None:
    """Let the pages of an application ask for questions, and give another pool."""

    @app.post("/api/question", response_model=Asking)
    async def question(asked: Skipping) -> Any:
        """What the model would like to know next; nothing is written."""
        return JSONResponse(await work(_asked, studio, set(asked.skip)))

    @app.post("/api/pool")
    async def pool(asked: Table) -> Any:
        """Ask about the rows of this table from now on; nothing is written."""
        return JSONResponse(await work(_taken, studio, reader, asked))

    @app.get("/api/pool/picture", response_class=Response)
    async def picture(name: Annotated[str, Query(max_length=1000)]) -> Any:
        """The picture of a row of the pool, reduced."""
        return Response(await work(_picture, studio, name), media_type="image/jpeg")


def _asked(studio: Studio, skip: set[int | str]) -> dict[str, Any]:
    """The next question, and where its row is in the plane."""
    now = studio.now()
    found, pool, plane = studio.questions.ask(now, skip), studio.questions.pool, studio.plane(now)
    if found["question"] is not None and pool is not None and plane is not None:
        row = pool.row(found["question"]["id"])
        if row.shape[1] == plane.axes.shape[1]:
            found["question"]["place"] = plane.places(row)[0].tolist()
    return found


def _taken(studio: Studio, reader: Reader | None, asked: Table) -> dict[str, Any]:
    if reader is None:
        raise InvalidInput("This studio reads no tables. Start it by the command knowmore studio.")
    studio.now()
    studio.questions.take(reader(studio.store, asked.name, asked.text))
    return _asked(studio, set())


def _picture(studio: Studio, one: str) -> bytes:
    pool = studio.questions.pool
    picture = None if pool is None else pool.pictures.get(one)
    if picture is None:
        raise InvalidInput("The pool has no picture of this name.")
    from knowmore.images.reading import encoded, small

    found, name = BytesIO(), repr(one)
    image = optional("PIL.Image", "images").fromarray(small(encoded(picture, name), name, _LONGEST))
    image.save(found, "JPEG")
    return found.getvalue()
