"""Applications of the service and the studio: routes as a table, and one shape of errors.

A route is a function whose first parameter is the object that answers: a service or a studio. The
other parameters come from the request, as FastAPI reads their annotations; the docstring describes
the route in the schema.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, is_dataclass
from importlib.metadata import version
from inspect import Signature, iscoroutinefunction, signature
from typing import Any, get_type_hints

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from knowmore.errors import KnowmoreError
from knowmore.web.guard import Guard, ServiceRules, StudioRules

# Runs a function that takes long, in a thread.
Runner = Callable[..., Awaitable[Any]]
Handler = Callable[[Request, Any], Any]
Life = Callable[[FastAPI], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Route:
    """A path, and the function that answers there.

    answer : a coroutine function; or a function that takes long, which runs in a thread and
        returns a response, bytes, or a value for JSON with frozen dataclasses in it
    media : the media type of bytes
    then : a function of the target and the value, which runs in another thread meanwhile
    options : further arguments of FastAPI's `add_api_route`
    """

    method: str
    path: str
    answer: Callable[..., Any]
    media: str = ""
    then: Callable[[Any, Any], Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def application(
    rules: ServiceRules | StudioRules, handlers: Mapping[Any, Handler], life: Life, **options: Any
) -> FastAPI:
    """An application without routes, behind a guard.

    handlers : see `error_handlers`
    life : the context in which it runs
    options : further arguments of FastAPI
    """
    app = FastAPI(
        version=version("knowmore"),
        lifespan=life,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        exception_handlers={**handlers},
        **options,
    )
    app.add_middleware(Guard, rules=rules)
    return app


def error_handlers(
    key: str,
    statuses: Mapping[type[KnowmoreError], int],
    unreadable: Callable[[str, Mapping[str, Any]], str],
) -> dict[Any, Handler]:
    """The handlers of exceptions, by their types: each answers with an object with one text.

    key : the name of the text
    statuses : of errors of ours, by their types
    unreadable : the words for a request of another form, from where it is wrong ("": the whole
        body) and pydantic's account of it
    """

    def answer(words: str, status: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
        # As far as UTF-8 can write the words.
        plain = words.encode(errors="backslashreplace").decode()
        return JSONResponse({key: plain}, status, headers)

    async def known(_: Request, error: KnowmoreError) -> JSONResponse:
        kind = next(kind for kind in type(error).__mro__ if kind in statuses)
        return answer(str(error), statuses[kind])

    async def misread(_: Request, error: RequestValidationError | ValidationError) -> JSONResponse:
        # Where, and why; without repeating what was sent.
        first: Mapping[str, Any] = error.errors()[0]
        # The first part says that it is in the body, the query or a header.
        parts = first["loc"][isinstance(error, RequestValidationError) :]
        return answer(unreadable(".".join(map(str, parts)), first), 422)

    async def other(_: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:
            # A body that is nested too deeply, or has a number of too many digits.
            return answer("The body is not JSON that can be read.", 422)
        return answer(str(error.detail), error.status_code, error.headers)

    return {
        KnowmoreError: known,
        RequestValidationError: misread,
        ValidationError: misread,
        HTTPException: other,
    }


class _Answer(JSONResponse):
    """JSON with frozen dataclasses as objects."""

    def render(self, content: Any) -> bytes:
        """The JSON as JSONResponse writes it."""
        text = json.dumps(
            content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=vars
        )
        return text.encode()


def add_routes(
    app: FastAPI, routes: Iterable[Route], target: Callable[[], Any], work: Runner
) -> None:
    """Let functions of the target answer at the paths of routes.

    target : returns it when a request has come; `work` may wait until there is one
    """
    for route in routes:
        endpoint = _endpoint(route, target, work)
        options = {"methods": [route.method], **route.options}
        app.add_api_route(route.path, endpoint, name=route.answer.__name__, **options)


def _endpoint(route: Route, target: Callable[[], Any], work: Runner) -> Callable[..., Any]:
    """The function that FastAPI calls: the answer of a route, with its first parameter given."""
    answer, then, apart = route.answer, route.then, CapacityLimiter(1)

    async def endpoint(**asked: Any) -> Any:
        if iscoroutinefunction(answer):
            return await answer(target(), **asked)
        found = await work(lambda: answer(target(), **asked))
        if then is not None:
            found = await to_thread.run_sync(then, target(), found, limiter=apart)
        if isinstance(found, Response):
            return found
        return Response(found, media_type=route.media) if route.media else _Answer(found)

    hints = get_type_hints(answer, include_extras=True)
    _, *rest = signature(answer).parameters.values()
    parameters = [one.replace(annotation=hints[one.name]) for one in rest]
    model = hints.get("return")
    model = model if is_dataclass(model) else Signature.empty
    endpoint.__signature__ = Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=model
    )
    endpoint.__doc__ = answer.__doc__
    return endpoint
