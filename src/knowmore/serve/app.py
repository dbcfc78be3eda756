"""The routes of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowmore.errors import KnowmoreError, NoExamples
from knowmore.serve.following import Failed, Following, Ready
from knowmore.serve.guard import Guard
from knowmore.serve.metrics import Metrics
from knowmore.serve.settings import Settings

# Questions that are answered at a time; others wait.
_AT_ONCE = 4


class Question(BaseModel):
    """Rows to predict."""

    model_config = ConfigDict(extra="forbid")
    rows: list[list[float] | dict[str, Any]] = Field(
        description="Each the numbers in the order of the features, or numbers by their names.",
        examples=[[[5.1, 3.5, 1.4, 0.2]]],
    )


class Prediction(BaseModel):
    """What is said of one row: `label` to `unknown` by a classifier, `value` and `std` else."""

    label: bool | int | float | str | None = None
    probability: float | None = None
    value: float | list[float] | None = None
    std: float | list[float] | None = None
    unknown: bool | None = Field(None, description="Whether no class of the model looks like it.")


class Predictions(BaseModel):
    """An answer for each row, in their order."""

    version: int = Field(description="The last entry of the model's journal.")
    predictions: list[Prediction]


class State(BaseModel):
    """Whether the service can be used."""

    status: str


def application(
    settings: Settings, failed: Failed | None = None, ready: Ready | None = None
) -> FastAPI:
    """The service with all that it needs; the model is loaded when it starts.

    failed : is told if the model cannot be loaded at the start
    ready : is called once, when the model is loaded
    """
    following = Following(settings, failed, ready)
    metrics = Metrics(following)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        following.start()
        yield
        await to_thread.run_sync(following.stop)

    app = FastAPI(
        title="knowmore",
        version=version("knowmore"),
        summary="Predictions of a model that keeps learning, and forgets exactly.",
        lifespan=life,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    app.add_exception_handler(KnowmoreError, _unanswerable)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(ValidationError, _unreadable)
    app.add_exception_handler(400, _unparsed)
    limiter = CapacityLimiter(_AT_ONCE)

    async def answered(rows: list[Any]) -> tuple[Any, list[Any]]:
        """The model that answers, and an answer for each row."""
        if len(rows) > settings.most_rows:
            most = f"{settings.most_rows:,} rows"
            raise HTTPException(413, f"A request may have at most {most}, not {len(rows):,}.")
        now = following.now
        if now is None:
            raise HTTPException(503, str(following.problem))
        found = await to_thread.run_sync(now, rows, settings.seconds, limiter=limiter)
        metrics.rows(len(rows))
        return now, found

    @app.get("/healthz", response_model=State)
    async def healthz() -> Any:
        """Whether the service runs."""
        return {"status": "ok"}

    @app.get("/readyz", response_model=State, responses={503: {"description": "Not ready."}})
    async def readyz() -> Any:
        """Whether the model is loaded, and its file could be read when last looked at."""
        if following.problem is not None:
            # What is wrong may name the file: that is for the log alone.
            waiting = "loading" if following.now is None and not following.failures else "failing"
            return JSONResponse({"status": waiting}, 503)
        return {"status": "ok"}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def counts() -> Any:
        """Counts for Prometheus."""
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    if settings.label_studio:
        from knowmore.serve.label_studio import add_routes

        add_routes(app, following, answered)
        return app

    @app.post("/predict", response_model=Predictions, response_model_exclude_unset=True)
    async def predict(question: Question) -> Any:
        """Predict rows."""
        return told(*await answered(question.rows))

    return app


def told(model: Any, answers: list[Any]) -> dict[str, Any]:
    """The answers of a model for JSON."""
    if model.is_classifier:
        predictions = [one._asdict() for one in answers]
    else:
        predictions = [{"value": one.label, "std": one.std} for one in answers]
    return {"version": model.version, "predictions": predictions}


async def _unanswerable(_: Request, error: Exception) -> JSONResponse:
    """A question that the model cannot answer, in its words."""
    from knowmore.serve.answering import TooSlow

    status = 503 if isinstance(error, (TooSlow, NoExamples)) else 422
    return JSONResponse({"detail": str(error)}, status)


async def _unparsed(_: Request, error: Exception) -> JSONResponse:
    """A body that is nested too deeply, or has a number of too many digits."""
    return JSONResponse({"detail": "The body is not JSON that can be read."}, 422)


async def _unreadable(_: Request, error: Exception) -> JSONResponse:
    """A request of another form: where, and why; without repeating what was sent."""
    assert isinstance(error, (RequestValidationError, ValidationError))
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"detail": f"The body is not JSON: {first['ctx']['error']}."}, 422)
    where = ".".join(str(one) for one in first["loc"] if one != "body") or "The body"
    expected = 'Send {"rows": [[5.1, 3.5, ...], ...]}, or rows by the names of the features.'
    return JSONResponse({"detail": f"{where}: {first['msg']}. {expected}"}, 422)
