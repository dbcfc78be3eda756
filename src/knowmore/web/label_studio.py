"""The routes that Label Studio asks of a machine-learning backend, so that it teaches a model.

An annotation is an example whose id is "label-studio/" and the annotation's number, which is all
that Label Studio tells when one is deleted. Features are the numbers in a task's data, under the
names of the columns; the label is the choice.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import Annotated, Any
from xml.etree import ElementTree

from anyio import to_thread
from fastapi import Depends, HTTPException, Request
from fastapi.responses import JSONResponse

from knowmore.errors import InvalidInput
from knowmore.web.application import Route
from knowmore.web.service import PredictionRequest, Service, predictions

_LONGEST = 100_000
_CREATED = (
    "ANNOTATION_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATIONS_UPDATED",
)
_DELETED = ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED")
_NO_CLASSES = "The model predicts numbers, but Label Studio's choices are classes."
_NO_TASKS = "The tasks are not a list."
_NO_RESULT = "The result of the annotation is not a list of objects with a value."


# -- routes --------------------------------------------------------------------------------------


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
    """Check a project's labelling interface."""
    if schema := message.get("schema"):
        control(schema)
    return {"model_version": service.version}


async def predict(service: Service, message: Message) -> Any:
    """Predict tasks as Label Studio sends them, or rows."""
    if "tasks" not in message:
        rows = PredictionRequest.model_validate(message).rows
        return predictions(*await service.answered(rows))
    choices, subject = control(message.get("label_config"))
    now = service.file.now
    columns = () if now is None else now.columns
    rows = [features(task, columns) for task in _is(message["tasks"], list, _NO_TASKS)]
    model, answers = await service.answered(rows)
    if not model.is_classifier:
        raise InvalidInput(_NO_CLASSES)
    results = [_result(answer, choices, subject, str(model.version)) for answer in answers]
    return {"results": results, "model_version": str(model.version)}


async def train(service: Service) -> Any:
    """Nothing is left to do: each annotation was learnt when it came."""
    return {"status": "ok", "model_version": service.version}


async def webhook(service: Service, message: Message) -> Any:
    """Learn, correct or forget an annotation."""
    action = message.get("action")
    if action not in _CREATED + _DELETED:
        return JSONResponse({"status": "ignored", "action": str(action)}, 200)
    change = forget if action in _DELETED else learn
    done = await to_thread.run_sync(service.file.edit, lambda store: change(store, message))
    if done["warning"]:
        # Label Studio reads no answers.
        print(f"knowmore: {done['warning']}", file=sys.stderr, flush=True)
    return {"status": "ok", **done, "model_version": service.version}


_IGNORED = {200: {"description": "The action is none of an annotation: nothing is done."}}
ROUTES = (
    Route("GET", "/health", health),
    Route("POST", "/setup", setup),
    Route("POST", "/predict", predict),
    Route("POST", "/train", train, options={"status_code": 201}),
    Route("POST", "/webhook", webhook, options={"status_code": 201, "responses": _IGNORED}),
)


# -- edits ---------------------------------------------------------------------------------------


def learn(store: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Add the annotations of a message, or correct the ones that are held; counts of both.

    Annotations that were emptied are forgotten; a warning says if bytes of them may be left.
    """
    from sklearn.base import is_classifier

    from knowmore.export import column_names

    if not is_classifier(store.estimator):
        raise InvalidInput(_NO_CLASSES)
    held = set(store.ids_.tolist())
    # By id: the label and the contributor, and the row of a new example.
    new: dict[str, tuple[Any, str | None, list[float]]] = {}
    changed: dict[str, tuple[Any, str | None]] = {}
    # A task that was skipped, or an annotation without a choice, teaches nothing.
    empty: set[str] = set()
    # All are read before one is learnt: a message is learnt as a whole or not at all.
    for annotation in _annotations(message):
        name, choice = _name(annotation), _choice(annotation)
        if name in new or name in changed or name in empty:
            raise InvalidInput(f"The message has the annotation {annotation['id']} twice.")
        if choice is None:
            empty.add(name)
            continue
        if not held:
            raise InvalidInput(
                "The model holds no examples yet, so it does not know which data of a task are its "
                "features. Teach it some first: knowmore learn."
            )
        label = _typed(choice, store.examples.labels)
        if name in held:
            changed[name] = label, _contributor(annotation)
            continue
        task = annotation.get("task") if isinstance(annotation.get("task"), dict) else None
        row = features(task or message.get("task"), column_names(store))
        new[name] = label, _contributor(annotation), row
    with store.together("annotate") if new and changed else nullcontext():
        if new:
            labels, people, rows = map(list, zip(*new.values(), strict=True))
            table = _table(store, rows)
            store.add(table, labels, [*new], contributor=people, origins="label-studio")
        if changed:
            labels, people = map(list, zip(*changed.values(), strict=True))
            store.relabel([*changed], labels, contributor=people)
    # This cannot be undone, so it is no part of the others; nor can it fail by its message.
    gone = sorted(empty & store.forgettable())
    counts = {"added": len(new), "relabelled": len(changed), "ignored": len(empty) - len(gone)}
    return counts | _forgotten(store, gone)


def forget(store: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Forget the annotations of a message that are in the file, for ever: see `learn`."""
    known = store.forgettable()
    return _forgotten(store, [n for n in map(_name, _annotations(message)) if n in known])


def _forgotten(store: Any, gone: list[str]) -> dict[str, Any]:
    """The count of forgotten examples, and why bytes of them may be left."""
    return {"forgotten": len(gone), "warning": store.forget(gone).left if gone else ""}


def _table(store: Any, rows: list[list[float]]) -> Any:
    """Rows as a table of the kind that the model was fitted to."""
    import numpy as np

    from knowmore._base import optional
    from knowmore.estimators import names_in

    names = names_in(store.estimator)
    if names is None:
        return np.array(rows)
    # By position: its names were made distinct and text for JSON.
    return optional("pandas", "tables").DataFrame(rows, columns=list(names))


# -- messages ------------------------------------------------------------------------------------


def control(config: Any) -> tuple[str, str]:
    """The names of the choices in a labelling interface, and of what is labelled by them.

    >>> control('<View><Text name="t" value="$x"/><Choices name="c" toName="t"/></View>')
    ('c', 't')
    """
    problem = "The labelling interface"
    known = isinstance(config, str) and len(config) <= _LONGEST
    if not known or "<!" in config.replace("<!--", ""):
        raise InvalidInput(f"{problem} is missing, too long, or declares entities.")
    try:
        view = ElementTree.fromstring(config)
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidInput(f"{problem} is not XML: {error}.") from error
    for one in view.iter("Choices"):
        if "name" in one.attrib and "toName" in one.attrib:
            return one.attrib["name"], one.attrib["toName"].split(",")[0]
    raise InvalidInput(f"{problem} has no <Choices name=... toName=...>, which a classifier needs.")


def features(task: Any, columns: tuple[str, ...]) -> list[float]:
    """The numbers of a task under the names of the columns, (d,)."""
    data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(data, dict):
        raise InvalidInput("The message has no data of the task. Label Studio sends task.data.")
    found = []
    for name in columns:
        try:
            found.append(float(data[name]))
        except KeyError as error:
            raise InvalidInput(
                f"The data of task {task.get('id')!r} lack {name!r}, a feature of the model. "
                f"Import tasks with a number for each of its columns."
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"{name!r} of task {task.get('id')!r} is not a number"
            raise InvalidInput(f"{problem}: {str(data[name])[:50]!r}.") from error
    return found


def _result(answer: Any, choices: str, subject: str, version: str) -> dict[str, Any]:
    """A prediction in Label Studio's form; none for what the model does not know."""
    value = {"choices": [str(answer.label)]}
    item = {"from_name": choices, "to_name": subject, "type": "choices", "value": value}
    score = 0.0 if answer.probability is None else answer.probability
    return {"result": [] if answer.unknown else [item], "score": score, "model_version": version}


def _is(value: Any, kind: type, problem: str) -> Any:
    """The value; raises InvalidInput if it is not of this kind."""
    if not isinstance(value, kind):
        raise InvalidInput(problem)
    return value


def _annotations(message: dict[str, Any]) -> list[dict[str, Any]]:
    problem = "The message has no annotation."
    given = _is(message.get("annotations", [message.get("annotation")]), list, problem)
    return [_is(one, dict, problem) for one in given]


def _name(annotation: dict[str, Any]) -> str:
    """The id of the example that an annotation is."""
    number = annotation.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidInput("The annotation has no number.")
    return f"label-studio/{number}"


def _choice(annotation: dict[str, Any]) -> str | None:
    """The chosen class, or None."""
    if annotation.get("was_cancelled"):
        return None
    result = annotation.get("result")
    listed = _is([] if result is None else result, list, _NO_RESULT)
    values = [_is(_is(one, dict, _NO_RESULT).get("value", {}), dict, _NO_RESULT) for one in listed]
    for value in values:
        chosen = _is(value.get("choices", []), list, _NO_RESULT)
        if len(chosen) > 1:
            raise InvalidInput(f"{len(chosen)} classes were chosen: an example has one.")
        for choice in chosen:
            if not isinstance(choice, str) or not choice.strip():
                raise InvalidInput("The choice of the annotation is not the name of a class.")
            return choice
    return None


def _contributor(annotation: dict[str, Any]) -> str | None:
    """The person who made an annotation."""
    by = annotation.get("completed_by")
    by = by.get("id") if isinstance(by, dict) else by
    if by is None:
        return None
    if not isinstance(by, (int, str)):
        raise InvalidInput("Who completed the annotation is neither a number nor a name.")
    return f"label-studio/{by}"


def _typed(choice: str, held: Any) -> Any:
    """The label that a choice names, of the type of the labels held."""
    kind = held.dtype.kind
    try:
        if kind == "b":
            return {"true": True, "false": False}[choice.lower()]
        if kind in "iu":
            # Numbers beyond the type of the labels raise OverflowError.
            return held.dtype.type(int(choice)).item()
        return choice if kind == "U" else float(choice)
    except (KeyError, ValueError, OverflowError) as error:
        known = f"labels such as {held[0].item()!r}"
        raise InvalidInput(f"{choice[:50]!r} was chosen, but the model has {known}.") from error
