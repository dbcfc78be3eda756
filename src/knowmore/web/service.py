"""The service: predictions of a model in a file, which it follows, and counts for Prometheus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, final

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from knowmore.errors import KnowmoreError, NoExamples, TooManyPixels
from knowmore.web.access import Settings
from knowmore.web.application import Route, add_routes, application, error_handlers
from knowmore.web.following import Failed, Ready, ServedFile
from knowmore.web.guard import ServiceRules
from knowmore.web.questions import BODY, SentPicture, asked_for
from knowmore.web.questions import PredictionRequest as PredictionRequest

if TYPE_CHECKING:
    from knowmore.web.label_studio import LabelStudioServer

# Questions that are answered at a time; others wait.
_AT_ONCE = 4


class Prediction(BaseModel):
    """The answer for one row or picture.

    `label` to `unknown` are of a classifier, `value` and `std` of a regressor.
    """

    name: str | None = Field(None, description="The name of the file, of a picture in a form.")
    label: bool | int | float | str | None = None
    probability: float | None = None
    value: float | list[float] | None = None
    std: float | list[float] | None = None
    unknown: bool | None = Field(None, description="Whether no class of the model looks like it.")


class Predictions(BaseModel):
    """An answer for each row or picture, in their order."""

    version: int = Field(description="The last entry of the model's journal.")
    predictions: list[Prediction]


class Readiness(BaseModel):
    """Whether the service can be used."""

    status: str


@final
class Service:
    """The model in a file, and counts of requests, rows and time.

    paths : the paths that are counted by their names
    failed, ready : as of `ServedFile`
    pictures : where the pictures of Label Studio's tasks come from
    """

    def __init__(
        self,
        settings: Settings,
        paths: Collection[str],
        failed: Failed | None = None,
        ready: Ready | None = None,
    ) -> None:
        self.settings, self.file = settings, ServedFile(settings, failed, ready)
        self.pictures: LabelStudioServer | None = None
        self._paths, self._limiter = paths, CapacityLimiter(_AT_ONCE)
        self._lock, self._rows = Lock(), 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)

    @property
    def version(self) -> str:
        """The last entry of the journal of the model that answers, as text."""
        return str(0 if self.file.now is None else self.file.now.version)

    @property
    def model(self) -> Any:
        """The model that answers; status 503 if there is none."""
        if self.file.now is None:
            raise HTTPException(503, str(self.file.problem))
        return self.file.now

    async def answered(self, rows: list[Any]) -> tuple[Any, list[Any]]:
        """The model that answers, and an answer for each row or picture."""
        if len(rows) > self.settings.most_rows:
            most = f"{self.settings.most_rows:,} rows"
            raise HTTPException(413, f"A request may have at most {most}, not {len(rows):,}.")
        model, seconds = self.model, self.settings.seconds
        return model, await self.run(lambda: model(rows, seconds), len(rows))

    async def run(self, answer: Callable[[], Any], rows: int) -> Any:
        """The result of a function that answers so many rows, in a thread."""
        found = await to_thread.run_sync(answer, limiter=self._limiter)
        with self._lock:
            self._rows += rows
        return found

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request; paths that no route has are counted together."""
        path = path if path in self._paths else "other"
        with self._lock:
            self._requests[path, status] += 1
            self._seconds[path] += seconds

    def counts(self) -> str:
        """All counts, and the state of the model, in Prometheus' format."""
        with self._lock:
            requests, seconds, rows = dict(self._requests), dict(self._seconds), self._rows
        now, problem = self.file.now, self.file.problem
        lines = [*_about("requests_total", "counter", "Requests by path and status.")]
        for (path, status), n in sorted(requests.items()):
            lines.append(f'knowmore_requests_total{{path="{path}",status="{status}"}} {n}')
        lines += _about("request_seconds", "summary", "Time that requests took, by path.")
        for path, time in sorted(seconds.items()):
            count = sum(n for (one, _), n in requests.items() if one == path)
            lines.append(f'knowmore_request_seconds_sum{{path="{path}"}} {time:.6f}')
            lines.append(f'knowmore_request_seconds_count{{path="{path}"}} {count}')
        gauges = [
            ("rows_total", "counter", "Rows that were answered.", rows),
            ("ready", "gauge", "Whether the file was read when last looked at.", int(not problem)),
            ("file_failures_total", "counter", "Failed looks at it.", self.file.failures),
            ("examples", "gauge", "Examples in the model.", 0 if now is None else now.count),
            ("version", "gauge", "Last entry of its journal.", self.version),
        ]
        for name, kind, what, value in gauges:
            lines += [*_about(name, kind, what), f"knowmore_{name} {value}"]
        return "\n".join([*lines, ""])


def _about(name: str, kind: str, what: str) -> list[str]:
    return [f"# HELP knowmore_{name} {what}", f"# TYPE knowmore_{name} {kind}"]


def service_application(
    settings: Settings, failed: Failed | None = None, ready: Ready | None = None
) -> FastAPI:
    """The service as an application; the model is loaded when it starts.

    failed : is told if the model cannot be loaded at the start
    ready : is called once, when the model is loaded
    """
    from knowmore.web.label_studio import ROUTES as LABEL_STUDIO
    from knowmore.web.label_studio import LabelStudioServer

    paths = {route.path for route in (*ROUTES, *LABEL_STUDIO)}
    service = Service(settings, {*paths, "/openapi.json"}, failed, ready)
    if settings.label_studio_url is not None and settings.label_studio_token is not None:
        service.pictures = LabelStudioServer(settings.label_studio_url, settings.label_studio_token)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.file.start()
        yield
        await to_thread.run_sync(service.file.stop)

    rules = ServiceRules(settings, service.count)
    statuses = {KnowmoreError: 422, NoExamples: 503, TooManyPixels: 413}
    app = application(
        rules,
        error_handlers(rules.key, statuses, _unreadable),
        life,
        title="knowmore",
        summary="Predictions of a model that keeps learning, and forgets exactly.",
    )
    taught = LABEL_STUDIO if settings.label_studio else ()
    own = [route for route in ROUTES if route.path not in {one.path for one in taught}]
    add_routes(app, [*own, *taught], lambda: service, to_thread.run_sync)
    return app


def _unreadable(where: str, problem: Mapping[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"The body is not JSON: {problem['ctx']['error']}."
    # The model is not asked yet: this holds for each.
    expected = (
        'Send {"rows": [...]}; each row is a list of numbers, an object of values by the names of '
        "the columns, or a text, as the model has learnt."
    )
    words = f"{where or 'The body'}: {problem['msg']}."
    match problem["loc"]:
        case ("body", "rows", int(row), "list[float]", int(at)):
            words = f"Row {row} has no number at position {at}, or one above 1.8e308."
        case ("body", "rows", int(row), *_):
            words = f"Row {row} is neither a list of numbers nor an object nor a text."
    return f"{words} {expected}"


# -- routes --------------------------------------------------------------------------------------


async def healthz(_: Service) -> Any:
    """Whether the service runs."""
    return {"status": "ok"}


async def readyz(service: Service) -> Any:
    """Whether the model is loaded, and its file could be read when last looked at."""
    file = service.file
    if file.problem is not None:
        # The problem may name the file: it is for the log alone.
        waiting = "loading" if file.now is None and not file.failures else "failing"
        return JSONResponse({"status": waiting}, 503)
    return {"status": "ok"}


async def counts(service: Service) -> Any:
    """Counts for Prometheus."""
    return PlainTextResponse(service.counts(), media_type="text/plain; version=0.0.4")


async def predict(service: Service, request: Request) -> Any:
    """Predict rows; or pictures, if the model has learnt pictures."""
    asked = await asked_for(request)
    found = predictions(*await service.answered(asked))
    for one, given in zip(found["predictions"], asked, strict=True):
        if isinstance(given, SentPicture):
            one["name"] = given.name
    return found


def predictions(model: Any, answers: list[Any]) -> dict[str, Any]:
    """The answers of a model for JSON."""
    if model.is_classifier:
        names = ("label", "probability", "std", "unknown")
        shown = [{name: getattr(answer, name) for name in names} for answer in answers]
    else:
        shown = [{"value": answer.label, "std": answer.std} for answer in answers]
    return {"version": model.version, "predictions": shown}


_PREDICT = {
    "response_model": Predictions,
    "response_model_exclude_unset": True,
    "openapi_extra": {"requestBody": BODY},
}
_READY = {"response_model": Readiness, "responses": {503: {"description": "Not ready."}}}
ROUTES = (
    Route("GET", "/healthz", healthz, options={"response_model": Readiness}),
    Route("GET", "/readyz", readyz, options=_READY),
    Route("GET", "/metrics", counts, options={"response_class": PlainTextResponse}),
    Route("POST", "/predict", predict, options=_PREDICT),
)
