"""The routes that Label Studio asks of a machine-learning backend.

Label Studio shows nobody what it is answered, so whatever is refused is printed, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Annotated, Any, Final

from anyio import to_thread
from fastapi import Depends, HTTPException, Request
from fastapi.responses import JSONResponse

from knowmore._base import visible
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.web.application import Route
from knowmore.web.guard import WEBHOOK
from knowmore.web.label_studio.pictures import LabelStudioServer
from knowmore.web.service import PredictionRequest, Service, predictions

_LEARNT: Final = (
    "ANNOTATION_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATIONS_UPDATED",
)
_FORGOTTEN: Final = ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED", "TASKS_DELETED")
_NO_TASKS: Final = "The tasks are not a list."
_THEN: Final = (
    "Then update the annotation in Label Studio, or teach an export of the project: knowmore learn."
)
# Refusals of one message that are printed.
_PRINTED: Final = 5


async def _message(request: Request) -> dict[str, Any]:
    """The body of a request, which is a JSON object."""
    try:
        message = json.loads(await request.body())
        # Half of a pair of surrogates is no text, and cannot be kept or sent back.
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise HTTPException(422, "The body has text that is not Unicode.") from error
    except ValueError as error:
        raise HTTPException(422, f"The body is not JSON: {error}") from error
    except RecursionError as error:
        raise HTTPException(422, "The body is nested too deeply.") from error
    if not isinstance(message, dict):
        raise HTTPException(422, "The body is not a JSON object.")
    return message


Message = Annotated[dict[str, Any], Depends(_message)]


async def health(_: Service) -> Any:
    """Whether the service runs, in Label Studio's words."""
    return {"status": "UP"}


async def setup(service: Service, message: Message) -> Any:
    """Check a project's labelling interface, and learn where its pictures are."""
    from knowmore.web.label_studio.messages import control

    settings = service.settings
    address = settings.label_studio_url or message.get("hostname")
    token = message.get("access_token")
    known = isinstance(address, str) and isinstance(token, str)
    if known and settings.label_studio_token is None:
        # An address that is none matters only if there are pictures.
        with suppress(InvalidInput):
            service.pictures = LabelStudioServer(str(address), str(token))
    if schema := message.get("schema"):
        control(schema)
    return {"model_version": service.version}


async def predict(service: Service, message: Message) -> Any:
    """Predict tasks as Label Studio sends them, or rows."""
    if "tasks" not in message:
        rows = PredictionRequest.model_validate(message).rows
        return predictions(*await service.answered(rows))
    from knowmore.web.label_studio.messages import control
    from knowmore.web.label_studio.tasks import suggested

    try:
        interface = control(message.get("label_config"))
        tasks = message["tasks"]
        if not isinstance(tasks, list):
            raise InvalidInput(_NO_TASKS)
        model = service.model
        results, refused = await service.run(
            lambda: suggested(model, tasks, interface, service.pictures), len(tasks)
        )
    except (KnowmoreError, HTTPException) as error:
        _print({"Label Studio": _why(error)}, "gets no suggestions")
        raise
    _print(refused, "gets no suggestion")
    return {"results": results, "model_version": str(model.version)}


async def train(service: Service) -> Any:
    """Nothing is left to do: each annotation was learnt when it came."""
    return {"status": "ok", "model_version": service.version}


async def webhook(service: Service, message: Message) -> Any:
    """Learn, correct or forget annotations."""
    from knowmore.web.label_studio.edits import forget, learn

    action = message.get("action")
    if action not in _LEARNT + _FORGOTTEN:
        return JSONResponse({"status": "ignored", "action": str(action)}, 200)
    try:
        if action in _FORGOTTEN:
            change = partial(forget, message=message)
        else:
            # Nobody else waits while pictures come.
            found = await to_thread.run_sync(_pictures, service, message)
            change = partial(learn, message=message, fetched=found)
        done = await to_thread.run_sync(service.file.edit, change)
    except (KnowmoreError, HTTPException) as error:
        _print({"A message of Label Studio": _why(error)}, f"was refused ({action})")
        raise
    _print(done.refused, "was not learnt", _THEN)
    if done.warning:
        print(f"knowmore: {done.warning}", file=sys.stderr, flush=True)
    if done.is_refused:
        place, why = next(iter(done.refused.items()))
        raise HTTPException(422, f"{place}: {why}")
    return {"status": "ok", **vars(done), "model_version": service.version}


def _pictures(service: Service, message: Message) -> Any:
    """The pictures of the tasks that a message tells of."""
    from knowmore.web.label_studio.messages import annotations_of
    from knowmore.web.label_studio.tasks import fetched

    said, end = annotations_of(message), monotonic() + service.settings.seconds
    tasks = [one for one in said.tasks.values() if one is not None]
    return fetched(service.model.needs, tasks, said.key, service.pictures, end)


def _why(error: KnowmoreError | HTTPException) -> str:
    return str(error.detail if isinstance(error, HTTPException) else error)


def _print(refused: Mapping[str, str], verb: str, then: str = "") -> None:
    """Print what was refused, and why, for whoever started the service."""
    for place, why in list(refused.items())[:_PRINTED]:
        print(visible(f"knowmore: {place} {verb}: {why}"), file=sys.stderr, flush=True)
    if (more := len(refused) - _PRINTED) > 0:
        print(f"knowmore: {more} more, too.", file=sys.stderr, flush=True)
    if refused and then:
        print(f"knowmore: {then}", file=sys.stderr, flush=True)


_IGNORED = {200: {"description": "The action is none of an annotation or task: nothing is done."}}
ROUTES = (
    Route("GET", "/health", health),
    Route("POST", "/setup", setup),
    Route("POST", "/predict", predict),
    Route("POST", "/train", train, options={"status_code": 201}),
    Route("POST", WEBHOOK, webhook, options={"status_code": 201, "responses": _IGNORED}),
)
