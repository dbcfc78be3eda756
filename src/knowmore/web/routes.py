"""The routes of a studio: its page, its events, and the requests of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, TypeVar, final

from anyio import CapacityLimiter, Event, create_task_group, move_on_after, sleep, to_thread
from fastapi import FastAPI, Header, Query
from fastapi.responses import Response, StreamingResponse
from sklearn.base import is_classifier

from knowmore._base import Id
from knowmore.edits import Remove
from knowmore.errors import InvalidInput, KnowmoreError, NotEnoughMemory, NotWritten, UnknownId
from knowmore.images import encoded
from knowmore.store import FORGETS
from knowmore.web import bodies
from knowmore.web.access import Door
from knowmore.web.application import Route, add_routes, application, error_handlers
from knowmore.web.doubting import chances_but, contradicting, doubts, still_listed
from knowmore.web.drawing import checked
from knowmore.web.edits import neighbour, neighbours, previewed
from knowmore.web.guard import PICTURES, TABLES, StudioRules
from knowmore.web.listing import ExampleTable, TablePage
from knowmore.web.pictures import (
    Board,
    PictureExplanation,
    WaitingPicture,
)
from knowmore.web.pool import NextQuestion
from knowmore.web.snapshot import edit_preview, why_to_tune
from knowmore.web.studio import Studio, WorkProgress, entry_of, warm
from knowmore.workbench import (
    SIDE,
    made_small,
    preview_merge,
    shown_record,
    small_picture,
    words_of_text,
)

# Seconds between two looks at the file while somebody listens, between signs of life, and between
# two looks at whether the server ends.
_LOOK, _BEAT, _TICK = 0.5, 15.0, 1.0
# Seconds between two looks whether the file is open.
_SOON = 0.02
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_BYTES = "application/octet-stream"
# The longest side and the quality of a picture of the pool.
_LARGER = 640, 75
# Better settings are looked for again when there are so many times as many examples.
_GROWN = 1.2
# The most that is listed of a merge; counts are of all.
_LISTED = 1000
# A transparent point, for an example that has no picture any more.
_NOTHING = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364600000000600023081d02f0000000049454e44ae426082"
)
T = TypeVar("T")
# Opens a studio, telling how far it is; and what is told why it cannot.
Opens = Callable[[WorkProgress], Studio]
Failed = Callable[[KnowmoreError], None]


# -- questions about the file as a whole ---------------------------------------------------------


def classes(studio: Studio, asked: bodies.ClassBody) -> dict[str, Any]:
    """Offer a class that has no example yet, until the studio ends; nothing is written."""
    studio.palette.offer(asked.label)
    return {"offered": asked.label}


def points(studio: Studio) -> dict[str, Any]:
    """Every example in the plane, and whether the others agree with its label."""
    return studio.points_of(studio.now())


def whatif(studio: Studio, asked: bodies.PreviewBody) -> dict[str, Any]:
    """Which answers an edit would change; nothing is written."""
    now = studio.now()
    edit = previewed(asked, studio, now)
    return edit_preview(now, edit, studio.pictures.vectors(now))


def suspects(studio: Studio, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> dict[str, Any]:
    """Labels that the others contradict and nobody kept, the biggest doubt first."""
    return doubts(studio.now(), limit)


def listed(studio: Studio, asked: bodies.ListedBody) -> dict[str, Any]:
    """The examples that were listed as suspects and are still held, each with its label of now.

    Mending one label changes what is said of others: whoever was listed stays to be asked about.
    """
    return still_listed(studio.now(), asked.ids)


def against(studio: Studio, one: bodies.SuspectId) -> dict[str, Any]:
    """The examples that speak most against the label of a suspect."""
    now = studio.now()
    return {"number": now.number, "against": contradicting(now, one)}


def aside(studio: Studio) -> dict[str, Any]:
    """The examples that were put aside, with the labels that were refused for them.

    And with what the others say that each is, of the classes that are left.
    """
    now = studio.now()
    records = studio.store.aside() if now.in_file else []
    if not records:
        return {"number": now.number, "aside": []}
    refused, rows = studio.store.refused(), studio.store.aside_features()
    found = []
    for one, row in zip(records, rows, strict=True):
        has = now.is_classifier and now.examples is not None
        said = chances_but(now.estimator, row, refused[one.id]) if has else []
        preferred, probability = said[0] if said else (None, None)
        found.append(
            {
                "id": one.id,
                "refused": refused[one.id],
                "preferred": preferred,
                "probability": probability,
                "shown": shown_record(studio.store, one, now.columns, row.tolist()),
            }
        )
    return {"number": now.number, "aside": found}


def advice(studio: Studio) -> dict[str, Any]:
    """Why it is worth looking for better settings; "" if nothing says so."""
    now = studio.now()
    grown = len(now) > studio.searched * _GROWN
    return {"number": now.number, "tune": now.once(why_to_tune) if grown else ""}


def log(studio: Studio) -> dict[str, Any]:
    """The journal, the oldest entry first."""
    now = studio.now()
    return {"number": now.number, "entries": [entry_of(entry) for entry in now.entries]}


def at(studio: Studio, asked: bodies.EntryBody) -> dict[str, Any]:
    """The state of the file after an entry of the journal; nothing is written."""
    now, number = studio.now(), asked.number
    then, plane, points = studio.at(now, number), studio.plane(now), None
    # Long ago the examples may have had other features.
    width = None if then.examples is None or plane is None else then.examples.X.shape[1]
    if plane is not None and then.is_classifier and width in (None, plane.axes.shape[1]):
        points = studio.points_of(then)
    later = (entry for entry in now.entries if entry.number > number)
    return {
        "number": number,
        "n": len(then),
        "classes": then.classes(),
        "loo_accuracy": then.accuracy,
        "log_evidence": then.evidence,
        "forgotten": any(entry.verb in FORGETS for entry in later),
        "points": points,
    }


def preview(studio: Studio, asked: bodies.ContributorBody) -> dict[str, Any]:
    """Which answers would change without a contributor; nothing is written.

    `changed` counts examples of others that would get back the features or the label they had
    before; the effect of that is not looked at.
    """
    now = studio.now()
    try:
        plan = studio.store.preview_forget(contributor=asked.contributor)
    except UnknownId as error:
        raise InvalidInput("The model holds nothing of this contributor.") from error
    ids = tuple(one for one in plan.leaving if one in now.held)
    if len(ids) == len(now):
        raise InvalidInput("All examples are of this contributor: without them nothing is left.")
    count = {"number": now.number, "count": len(ids), "changed": len(plan.changing)}
    if not ids:
        same = {"accuracy_before": now.accuracy, "accuracy_after": now.accuracy}
        return {**count, "flips": [], "pictures": [], **same}
    return {**count, **edit_preview(now, Remove(ids), studio.pictures.vectors(now))}


def verify(studio: Studio, _: bodies.RequestBody) -> dict[str, Any]:
    """The certificate of the file: whether it holds what it says, and nothing that was removed."""
    report = studio.store.verify()
    said = " ".join(f"{check.name}: {check.says}." for check in report.checks)
    return {**report.certificate(), "text": said.replace("..", ".")}


def rows(studio: Studio, asked: bodies.TableBody) -> TablePage:
    """Examples with their features, labels, contributors, and what the others predict."""
    return studio.now().once(ExampleTable).page(asked)


def merge_files(studio: Studio) -> dict[str, Any]:
    """The other models in the folder of this one."""
    return {"files": neighbours(studio.store.path)}


@dataclass(frozen=True)
class MergeView:
    """The examples and classes of another file, and the answers that they would change.

    classes : the classes that are new here
    clashes : ids that both files hold; as long as there are any, nothing can be merged
    flips : examples of both files that the others would predict otherwise than now in their file
    """

    number: int
    count: int
    classes: list[Any]
    clashes: int
    clashing: list[Id]
    accuracy_before: float | None
    accuracy_theirs: float | None
    flips: int
    flipping: list[dict[str, Any]]
    accuracy_after: float | None


def merging(studio: Studio, asked: bodies.FileBody) -> MergeView:
    """The answers that merging this file would change; nothing is written."""
    now = studio.now()
    with neighbour(studio.store, asked.name) as other:
        if not now.is_classifier or not is_classifier(other):
            raise InvalidInput("Only of models of classes can be said which answers would change.")
        if now.examples is None:
            raise InvalidInput("The open file holds no examples yet. Add some before merging.")
        if not len(other):
            name = repr(other.path.name)
            raise InvalidInput(f"{name} holds no examples: there is nothing to merge.")
        found = preview_merge(studio.store, other)
    flips = [
        {"id": one.id, "file": where, "from": one.before, "to": one.after}
        for where, changes in (("here", found.here), ("there", found.there))
        for one in changes
    ]
    return MergeView(
        now.number,
        found.count,
        found.classes,
        len(found.clashing),
        found.clashing[:_LISTED],
        found.accuracy_before,
        found.accuracy_theirs,
        len(flips),
        flips[:_LISTED],
        found.accuracy_after,
    )


# -- pictures ------------------------------------------------------------------------------------


def desk(studio: Studio) -> Board:
    """Every example with what the others say of it, and the pictures that wait."""
    return studio.pictures.board(studio.now())


def refuse(studio: Studio, asked: bodies.NotBody) -> dict[str, Any]:
    """Do not propose a class for what is in no file yet; nothing is written."""
    now = studio.now()
    if (asked.row is None) == (asked.picture is None):
        raise InvalidInput("Give either the id of a row of the pool or the number of a picture.")
    if asked.row is not None:
        studio.questions.refuse(asked.row, asked.label)
    else:
        assert asked.picture is not None
        studio.pictures.refuse(now, asked.picture, asked.label)
    return {"number": now.number, "refused": asked.label}


def bring(
    studio: Studio, data: bodies.Sent, name: Annotated[str, Query(max_length=300)] = ""
) -> Any:
    """Bring a picture, which waits until it is learnt or dismissed; nothing is written."""
    return studio.pictures.take(studio.now(), data, name)


def dismiss(studio: Studio, asked: bodies.DismissBody) -> dict[str, Any]:
    """Let go of pictures that wait."""
    studio.pictures.dismiss(studio.now(), asked.pictures)
    return {"dismissed": len(asked.pictures)}


def thumbnail(
    studio: Studio,
    one: bodies.OneId = None,
    picture: bodies.OnePicture = None,
    large: Annotated[bool, Query()] = False,
) -> Any:
    """A small picture of an example, or of one that waits; a point if there is none.

    large : to judge by; what the file itself keeps is small
    """
    return studio.pictures.shown(studio.now(), one, picture), _LARGER[0] if large else SIDE


def _decoded(studio: Studio, found: Any) -> Response:
    """The small picture of a record. Decoding takes a while, and other requests go on."""
    one, side = found
    small = one if isinstance(one, bytes) else small_picture(studio.store, one, side)
    return Response(small or _NOTHING, media_type="image/jpeg" if small else "image/png")


def explain(
    studio: Studio, one: bodies.OneId = None, picture: bodies.OnePicture = None
) -> PictureExplanation:
    """The examples that speak for an example or a picture, and against it."""
    return studio.pictures.explained(studio.now(), one, picture)


def words(studio: Studio, one: bodies.SuspectId) -> dict[str, Any]:
    """What each word of an example's text does to the score of what the others say."""
    now = studio.now()
    (text,) = now.texts([one])
    if text is None:
        raise InvalidInput(f"The file keeps no text of {one!r}.")
    if not hasattr(now.estimator, "remove"):
        raise InvalidInput("A model of this kind holds no examples to explain this one by.")
    others = copy(now.estimator).remove([one])
    found = words_of_text(studio.store, text, None, others)
    said = [{**each.row(), "places": each.places} for each in found.words]
    return {"number": now.number, "label": found.label, "score": found.score, "words": said}


# -- the pool ------------------------------------------------------------------------------------


def question(studio: Studio, asked: bodies.SkipBody) -> dict[str, Any]:
    """The next question of the model; nothing is written."""
    return _question(studio, set(asked.skip))


def _question(studio: Studio, skip: set[int | str]) -> dict[str, Any]:
    """The next question, leaving out rows to skip, and where its row is in the plane."""
    now, questions = studio.now(), studio.questions
    answer, pool, plane = questions.ask(now, skip), questions.pool, studio.plane(now)
    if answer["question"] is not None and pool is not None and plane is not None:
        row = pool.row(answer["question"]["id"])
        if row.shape[1] == plane.axes.shape[1]:
            answer["question"]["place"] = plane.places(row)[0].tolist()
    return answer


def pool(studio: Studio, asked: bodies.PoolBody) -> dict[str, Any]:
    """Ask about the rows of this table from now on; nothing is written."""
    studio.now()
    studio.questions.read(studio.store, asked.name, asked.text)
    return _question(studio, set())


def picture(studio: Studio, name: Annotated[str, Query(max_length=1000)]) -> bytes:
    """The picture of a row of the pool, reduced."""
    pool = studio.questions.pool
    found = None if pool is None else pool.pictures.get(name)
    if found is None:
        raise InvalidInput("The pool has no picture of this name.")
    return made_small(encoded(found, repr(name)), repr(name), *_LARGER)


# -- the table -----------------------------------------------------------------------------------

_AS_BYTES = {"response_class": Response}
_PICTURE = {
    "response_model": WaitingPicture,
    "openapi_extra": {"requestBody": {"content": {_BYTES: {"schema": {"type": "string"}}}}},
}
ROUTES = (
    Route("GET", "/api/state", Studio.state),
    Route("POST", "/api/classes", classes),
    Route("GET", "/api/plane/points", points),
    Route("GET", "/api/plane/field", Studio.field, _BYTES, options=_AS_BYTES),
    Route("GET", "/api/plane/check", Studio.check, then=checked),
    Route("POST", "/api/plane/moved", Studio.moved, _BYTES, options=_AS_BYTES),
    Route("POST", "/api/plane/edit", Studio.edit_seen, _BYTES, options=_AS_BYTES),
    Route("POST", "/api/whatif", whatif),
    Route("GET", "/api/suspects", suspects),
    Route("POST", "/api/suspects/listed", listed),
    Route("GET", "/api/advice", advice),
    Route("GET", "/api/against", against),
    Route("GET", "/api/aside", aside),
    Route("GET", "/api/log", log),
    Route("POST", "/api/state-at", at),
    Route("POST", "/api/preview-forget", preview),
    Route("POST", "/api/verify", verify),
    Route("POST", "/api/edit", Studio.edit),
    Route("GET", "/api/desk", desk),
    Route("POST", PICTURES, bring, options=_PICTURE),
    Route("POST", "/api/dismiss", dismiss),
    Route("POST", "/api/refuse", refuse),
    Route("GET", "/api/thumbnail", thumbnail, then=_decoded, options=_AS_BYTES),
    Route("GET", "/api/words", words),
    Route("GET", "/api/explain", explain),
    Route("POST", "/api/question", question, options={"response_model": NextQuestion}),
    Route("POST", TABLES, pool),
    Route("GET", "/api/pool/picture", picture, "image/jpeg", options=_AS_BYTES),
    Route("POST", "/api/rows", rows),
    Route("GET", "/api/merge/files", merge_files),
    Route("POST", "/api/merge/preview", merging),
)


# -- the application -----------------------------------------------------------------------------


def studio_application(studio: Studio | Opens, door: Door, failed: Failed | None = None) -> FastAPI:
    """The application of a studio, which lets go of its file when the server ends.

    studio : open, or a function that opens it, in a thread of its own while the page is served
        already; it is told where to say how far it is
    failed : is told why it cannot be opened
    """
    live = LiveStudio(studio, door, failed)
    rules, statuses = StudioRules(door), {KnowmoreError: 422, NotWritten: 507, NotEnoughMemory: 507}
    app = application(
        rules,
        error_handlers(rules.key, statuses, _unreadable),
        live.life,
        title="knowmore studio",
        summary="A page on a model that keeps learning, and forgets exactly.",
        redirect_slashes=False,
        responses={
            422: {"model": bodies.ErrorBody, "description": "What cannot be done, and why."}
        },
    )
    _add_files(app)
    stream = Route("GET", "/events", events, options={"response_class": StreamingResponse})
    state = Route("GET", "/api/progress", progress)
    add_routes(app, [stream, state], lambda: live, live.work)
    add_routes(app, ROUTES, lambda: live.studio, live.work)
    return app


def _unreadable(where: str, problem: Mapping[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return "The body is not JSON that can be read."
    return f"{where or 'the body'}: {problem['msg']}."


@final
class LiveStudio:
    """A studio while it is served: its one thread for work, and the streams that listen.

    listeners : how many streams there are
    progress : what is being done
    """

    def __init__(self, studio: Studio | Opens, door: Door, failed: Failed | None = None) -> None:
        self.door, self._failed = door, failed
        self.listeners, self._event = 0, Event()
        self._limiter = CapacityLimiter(1)
        self._studio = studio if isinstance(studio, Studio) else None
        self._opens = None if isinstance(studio, Studio) else studio
        self._problem: KnowmoreError | None = None
        self.progress = studio.progress if isinstance(studio, Studio) else WorkProgress()

    @property
    def is_open(self) -> bool:
        """Whether the file is open, or cannot be opened."""
        return self._studio is not None or self._problem is not None

    @property
    def studio(self) -> Studio:
        """The studio, when it is open; raises the error if it cannot be."""
        if self._problem is not None:
            raise self._problem
        assert self._studio is not None
        return self._studio

    def _open(self, opens: Opens) -> None:
        """Open the studio. It is no matter of the server's threads, whose ends are waited for."""
        try:
            self._studio = opens(self.progress)
        except Exception as error:
            known = error if isinstance(error, KnowmoreError) else KnowmoreError(str(error))
            self._problem = known
            if self._failed is not None:
                self._failed(known)
        self.progress.tell("")

    async def work(self, task: Callable[..., T], *arguments: Any) -> T:
        """Run a function that takes long in the one thread for it; other requests go on."""
        while not self.is_open:
            await sleep(_SOON)
        before = self.studio.events.count
        try:
            return await to_thread.run_sync(task, *arguments, limiter=self._limiter)
        finally:
            if self.studio.events.count != before:
                self._event.set()
                self._event = Event()

    @asynccontextmanager
    async def life(self, _: FastAPI) -> AsyncIterator[None]:
        """Follow the file while the server runs, then let go of it."""
        if self._opens is not None:
            Thread(target=self._open, args=(self._opens,), daemon=True).start()
        async with create_task_group() as tasks:
            tasks.start_soon(self._look)
            yield
            tasks.cancel_scope.cancel()
        if self._studio is not None:
            self._studio.store.close()

    async def _look(self) -> None:
        """Look at the file again and again while somebody listens."""
        ready = False
        while True:
            await sleep(_LOOK)
            if not self.listeners:
                continue
            if not ready:
                # Not before there is a page, which would come later.
                ready = True
                await to_thread.run_sync(warm, limiter=CapacityLimiter(1))
            try:
                await self.work(self.studio.now)
            except (KnowmoreError, OSError):
                # The next request is told.
                continue

    def missed(self, number: int | None) -> tuple[list[Any], int]:
        """The events that a page missed which last knew this number, and the count of all."""
        now, events = self.studio.now(), self.studio.events
        return [] if number is None else events.since(number, now), events.count

    async def stream(self, missed: list[Any], count: int) -> AsyncIterator[str]:
        """Events as they are sent: the missed ones, then those after the first `count`."""
        events, quiet = self.studio.events, 0.0
        self.listeners += 1
        try:
            yield "retry: 1000\n\n" + "".join(event.text() for event in missed)
            while not self.door.closing:
                new, count = events.newer(count), events.count
                if new is None:
                    # Too far behind: the page comes again, and is told what it missed.
                    return
                quiet = 0.0 if new or quiet >= _BEAT else quiet + _TICK
                if new or not quiet:
                    yield "".join(event.text() for event in new) or ": still here\n\n"
                with move_on_after(_TICK):
                    await self._event.wait()
        finally:
            self.listeners -= 1


async def progress(live: LiveStudio) -> Any:
    """What is being done that takes long, and how much of it is done. It is answered at once."""
    return {"open": live.is_open, "doing": live.progress.words, "share": live.progress.share}


async def events(
    live: LiveStudio,
    after: bodies.Number = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Any:
    """Events of the file, as server-sent events; the journal's number is their id."""
    known = int(last) if last is not None and last.isdecimal() and len(last) < 16 else after
    stream = live.stream(*await live.work(live.missed, known))
    return StreamingResponse(stream, media_type="text/event-stream")


def _add_files(app: FastAPI) -> None:
    """The files of the page, each at a path of its own: nothing else can be asked for."""
    for file in files("knowmore.web").joinpath("static").iterdir():
        kind = _KINDS.get(Path(file.name).suffix)
        if kind is not None:
            answer = partial(_file, file.read_bytes(), {"content-type": kind})
            path = "/" if file.name == "index.html" else f"/{file.name}"
            app.add_api_route(path, answer, include_in_schema=False, name=file.name)


async def _file(content: bytes, headers: Mapping[str, str]) -> Response:
    return Response(content, headers=headers)
