"""The routes of the studio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar, final

from anyio import CapacityLimiter, Event, create_task_group, move_on_after, sleep, to_thread
from fastapi import Body, Depends, FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from starlette.exceptions import HTTPException

from knowmore.errors import InvalidInput, KnowmoreError, NotEnoughMemory, NotWritten
from knowmore.studio.desk import add_desk
from knowmore.studio.door import Door
from knowmore.studio.edits import Asked, Edit, Ids, Label, Places, Text, Value
from knowmore.studio.guard import Guard
from knowmore.studio.history import journal, state_at, verified, without
from knowmore.studio.inbox import doubts
from knowmore.studio.merging import add_merging
from knowmore.studio.plane import Bounds, Grid
from knowmore.studio.questions import Reader, add_questions
from knowmore.studio.rows import add_rows
from knowmore.studio.studio import Studio, Trial, checked, warm
from knowmore.studio.whatif import Question, flips

# Seconds between two looks at the file while somebody listens, between signs of life, and between
# two looks at whether the server ends.
_LOOK, _BEAT, _TICK = 0.5, 15.0, 1.0
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
Side = Annotated[int, Query(ge=8, le=256)]
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=8, max_length=100)]
T = TypeVar("T")


class Said(BaseModel):
    """What went wrong, in words."""

    error: str


class Edited(BaseModel):
    """What an edit did."""

    model_config = ConfigDict(extra="allow")
    number: int
    n: int
    ids: list[int | str]
    warning: str
    update_ms: float


class At(Asked):
    """An entry of the journal; 0: before the first."""

    number: Annotated[int, Field(ge=0, le=2**53)]


class Moved(Asked):
    """Examples, and other places for them; and the grid to see the field on."""

    ids: Ids
    plane: Places
    x0: Value
    x1: Value
    y0: Value
    y1: Value
    w: Annotated[int, Field(ge=8, le=256)] = 48
    h: Annotated[int, Field(ge=8, le=256)] = 48


class Whose(Asked):
    """A contributor."""

    contributor: Text


class Offered(Asked):
    """A class that has no example yet."""

    label: Label


class Nothing(Asked):
    """A question without parts."""


def _grid(x0: Value, x1: Value, y0: Value, y1: Value, w: Side = 96, h: Side = 96) -> Grid:
    if x0 >= x1 or y0 >= y1:
        raise InvalidInput("The bounds are empty: x0 must be below x1, and y0 below y1.")
    return Grid(Bounds(x0, x1, y0, y1), w, h)


Seen = Annotated[Grid, Depends(_grid)]


def application(studio: Studio, door: Door, reader: Reader | None = None) -> FastAPI:
    """The service of a studio, which lets go of its file when the server ends."""
    listening = Listening()
    # A fit from scratch, to compare with, keeps nobody waiting.
    limiter, apart = CapacityLimiter(1), CapacityLimiter(1)

    async def work(task: Callable[..., T], *arguments: Any) -> T:
        """What takes long, in the one thread for it: the others go on meanwhile."""
        before = studio.events.count
        try:
            return await to_thread.run_sync(task, *arguments, limiter=limiter)
        finally:
            if studio.events.count != before:
                listening.wake()

    async def look() -> None:
        ready = False
        while True:
            await sleep(_LOOK)
            if listening.count:
                if not ready:
                    # Not before there is a page: that would come later.
                    ready = True
                    await to_thread.run_sync(warm, limiter=apart)
                try:
                    await work(studio.now)
                except (KnowmoreError, OSError):
                    # Whoever asks next is told.
                    continue

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with create_task_group() as tasks:
            tasks.start_soon(look)
            yield
            tasks.cancel_scope.cancel()
        studio.close()

    app = FastAPI(
        title="knowmore studio",
        version=version("knowmore"),
        summary="A page on a model that keeps learning, and forgets exactly.",
        lifespan=life,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={422: {"model": Said, "description": "What cannot be done, and why."}},
    )
    app.add_middleware(Guard, door=door)
    app.add_exception_handler(KnowmoreError, _told)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _other)
    _add_files(app)

    @app.get("/events", response_class=StreamingResponse)
    async def events(
        after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
        last: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    ) -> Any:
        """What happens to the file, as server-sent events; the journal's number is their id."""
        known = int(last) if last is not None and last.isdecimal() and len(last) < 16 else after
        missed, count = await work(studio.missed, known)

        async def stream() -> AsyncIterator[str]:
            nonlocal count
            quiet = 0.0
            with listening:
                yield "retry: 1000\n\n" + "".join(one.text() for one in missed)
                while not door.closing:
                    new, count = studio.events.newer(count), studio.events.count
                    if new is None:
                        # Too far behind: it comes again, and is told what it missed.
                        return
                    quiet = 0.0 if new or quiet >= _BEAT else quiet + _TICK
                    if new or not quiet:
                        yield "".join(one.text() for one in new) or ": still here\n\n"
                    await listening.wait()

        return StreamingResponse(stream(), media_type="text/event-stream")

    @app.get("/api/state")
    async def state() -> Any:
        """The model as a whole: classes, settings, how often it is right, what undo would undo."""
        return JSONResponse(await work(studio.state))

    @app.post("/api/classes")
    async def classes(asked: Offered) -> Any:
        """Offer a class that has no example yet, until the studio ends; nothing is written."""
        await work(studio.palette.offer, asked.label)
        return JSONResponse({"offered": asked.label})

    @app.get("/api/plane/points")
    async def points() -> Any:
        """Every example in the plane, and whether the others agree with its label."""
        return JSONResponse(await work(studio.points))

    @app.get("/api/plane/field", response_class=Response)
    async def field(
        grid: Seen,
        noise: Annotated[FiniteFloat | None, Query(ge=0, le=1e6)] = None,
        length_scale: Annotated[FiniteFloat | None, Query(gt=0, le=1e9)] = None,
        at: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    ) -> Any:
        """Scores, variances and what is unknown over a grid, as bytes.

        With other settings on trial, or as they were after an entry of the journal.
        """
        found = await work(studio.field, grid, Trial(noise, length_scale), at)
        return Response(found, media_type="application/octet-stream")

    @app.get("/api/plane/check")
    async def check(grid: Seen) -> Any:
        """How far the field is from that of a fit from scratch, and how long that takes."""
        parts = await work(studio.to_check, grid)
        return JSONResponse(await to_thread.run_sync(checked, *parts, limiter=apart))

    @app.post("/api/plane/moved", response_class=Response)
    async def moved(asked: Moved) -> Any:
        """The field, had examples other places; nothing is written."""
        grid = _grid(asked.x0, asked.x1, asked.y0, asked.y1, asked.w, asked.h)
        found = await work(studio.moved, grid, asked.ids, asked.plane)
        return Response(found, media_type="application/octet-stream")

    @app.post("/api/plane/edit", response_class=Response)
    async def edit_seen(asked: Annotated[Edit, Body()], key: Key, grid: Seen) -> Any:
        """Edit the file, as `/api/edit` does; the field that came of it, with what that answers."""
        found = await work(studio.edited, key, asked, grid)
        return Response(found, media_type="application/octet-stream")

    @app.post("/api/whatif")
    async def whatif(asked: Annotated[Question, Body()]) -> Any:
        """Which answers an edit would change; nothing is written."""
        return JSONResponse(await work(lambda: flips(studio.now(), asked, studio.pictures)))

    @app.get("/api/suspects")
    async def suspects(limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Any:
        """Labels that the others contradict and nobody kept, the biggest doubt first."""
        return JSONResponse(await work(lambda: doubts(studio.now(), limit, studio.store.kept_)))

    @app.get("/api/log")
    async def log() -> Any:
        """The journal, the oldest entry first."""
        return JSONResponse(await work(journal, studio))

    @app.post("/api/state-at")
    async def at(asked: At) -> Any:
        """The state of the file after an entry of the journal; nothing is written."""
        return JSONResponse(await work(state_at, studio, asked.number))

    @app.post("/api/preview-forget")
    async def preview(asked: Whose) -> Any:
        """Which answers would change without a contributor; nothing is written."""
        return JSONResponse(await work(without, studio, asked.contributor))

    @app.post("/api/verify")
    async def verify(_: Nothing) -> Any:
        """The certificate of the file."""
        return JSONResponse(await work(verified, studio))

    @app.post("/api/edit", response_model=Edited)
    async def edit(asked: Annotated[Edit, Body()], key: Key) -> Any:
        """Edit the file; the edit is durable when the answer comes."""
        return JSONResponse(await work(studio.edit, key, asked))

    add_desk(app, studio, work)
    add_questions(app, work, studio, reader)
    add_rows(app, work, studio)
    add_merging(app, work, studio)
    return app


@final
class Listening:
    """Streams that wait for something to happen.

    count : how many there are
    """

    def __init__(self) -> None:
        self.count, self._event = 0, Event()

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1

    async def wait(self) -> None:
        """Until something happens, but no longer than a moment."""
        with move_on_after(_TICK):
            await self._event.wait()

    def wake(self) -> None:
        """Something happened."""
        self._event.set()
        self._event = Event()


def _add_files(app: FastAPI) -> None:
    """The files of the page, each at a path of its own: nothing else can be asked for."""
    for one in files("knowmore.studio").joinpath("static").iterdir():
        kind = _KINDS.get(Path(one.name).suffix)
        if kind is not None:
            path = "/" if one.name == "index.html" else f"/{one.name}"
            app.get(path, include_in_schema=False)(_answering(one.read_bytes(), kind))


def _answering(content: bytes, kind: str) -> Callable[[], Any]:
    async def answer() -> Response:
        return Response(content, headers={"content-type": kind})

    return answer


async def _told(_: Request, error: Exception) -> JSONResponse:
    """What the model or its file could not do, in its words."""
    status = 507 if isinstance(error, (NotWritten, NotEnoughMemory)) else 422
    return JSONResponse({"error": _plain(str(error))}, status)


async def _unreadable(_: Request, error: Exception) -> JSONResponse:
    """A request of another form: where, and why; without repeating what was sent."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"error": "The body is not JSON that can be read."}, 422)
    where = ".".join(str(one) for one in first["loc"][1:]) or "the body"
    return JSONResponse({"error": _plain(f"{where}: {first['msg']}.")}, 422)


async def _other(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        # A body that is nested too deeply, or has a number of too many digits.
        return JSONResponse({"error": "The body is not JSON that can be read."}, 422)
    headers = error.headers
    return JSONResponse({"error": _plain(str(error.detail))}, error.status_code, headers)


def _plain(text: str) -> str:
    """Words that UTF-8 can write."""
    return text.encode(errors="backslashreplace").decode()
