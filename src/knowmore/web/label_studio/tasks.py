"""Tasks as records of a model: what it asks of their data, and suggestions for them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from knowmore.errors import InvalidInput
from knowmore.export import column_names
from knowmore.web.answering import Answering
from knowmore.web.label_studio.messages import Control
from knowmore.web.label_studio.pictures import LabelStudioServer, TaskPicture
from knowmore.workbench import (
    Source,
    StudioTask,
    Wanted,
    picture_address,
    task_alone,
    tasks_source,
    wanted,
)

NO_CLASSES: Final = "The model predicts numbers, but Label Studio's choices are classes."
# Tasks that are answered together, and seconds for all: Label Studio waits 100 s.
_AT_ONCE: Final = 32
_SECONDS: Final = 80.0
_LATE: Final = f"there was no time left of {_SECONDS:g} s. Ask for fewer tasks at a time."
_NO_SERVER: Final = (
    "has a picture, but Label Studio has not told where it is. Open the model in the project's "
    "settings there, which tells it; or start knowmore serve with the variables LABEL_STUDIO_URL "
    "and LABEL_STUDIO_API_KEY."
)
# The bytes at addresses, or the reasons why there are none.
Fetched = Mapping[str, bytes | str]


def needs_of(store: Any) -> tuple[Wanted, tuple[str, ...] | None]:
    """What tasks must have for a model, and the names of its columns, None if it has none.

    A model of nameless columns takes x0, x1, ... of a task.
    """
    needs = wanted(store)
    columns = needs.columns
    if needs.holds == "numbers" and columns is None:
        needs = replace(needs, columns=column_names(store))
    return needs, columns


def fetched(
    needs: Wanted,
    tasks: Sequence[StudioTask],
    key: str | None,
    server: LabelStudioServer | None,
    end: float,
) -> Fetched:
    """The pictures of tasks, for a model of pictures, before a time of the monotonic clock."""
    if needs.holds != "pictures":
        return {}
    addresses = filter(None, (picture_address(task.data, key) for task in tasks))
    if server is None:
        return dict.fromkeys(addresses, _NO_SERVER)
    return server.fetched(addresses, end)


def source_of(
    needs: Wanted, tasks: Sequence[StudioTask], key: str | None, pictures: Fetched
) -> Source:
    """Tasks as a source for a model; pictures have come before.

    key : the name of the data that the labelling interface shows
    """

    def read(address: str, place: str) -> TaskPicture:
        data = pictures.get(address, _NO_SERVER)
        if isinstance(data, str):
            raise InvalidInput(data)
        return TaskPicture(place, data)

    return tasks_source("Label Studio", tasks, needs, read, key)


# -- suggestions ---------------------------------------------------------------------------------


def suggested(
    model: Answering, tasks: Sequence[Any], interface: Control, server: LabelStudioServer | None
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A suggestion for each task, empty if there is none; and why some tasks have none.

    A task that cannot be predicted does not keep the others from it.
    """
    if not model.is_classifier:
        raise InvalidInput(NO_CLASSES)
    end = time.monotonic() + _SECONDS
    results: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    for begin in range(0, len(tasks), _AT_ONCE):
        places, found = [], list[StudioTask]()
        for i, one in enumerate(tasks[begin : begin + _AT_ONCE], begin + 1):
            try:
                found.append(task_alone(one))
                places.append(found[-1].place)
            except InvalidInput as error:
                places.append(f"The task at place {i}")
                refused[places[-1]] = str(error)
        answers: Mapping[str, Any] = {}
        if time.monotonic() < end:
            needs = replace(model.needs, labelled=False)
            pictures = fetched(needs, found, interface.key, server, end)
            source = source_of(needs, found, interface.key, pictures)
            answers = model.of_records(source)
            refused |= source.skipped
        else:
            refused |= {task.place: _LATE for task in found}
        results += [_result(answers.get(one), interface, str(model.version)) for one in places]
    return results, refused


def _result(answer: Any, interface: Control, version: str) -> dict[str, Any]:
    """A prediction in Label Studio's form; none for what the model does not know."""
    if answer is None:
        return {"result": [], "score": 0.0, "model_version": version}
    value = {"choices": [str(answer.label)]}
    names = {"from_name": interface.name, "to_name": interface.subject}
    item = {**names, "type": "choices", "value": value}
    score = 0.0 if answer.probability is None else answer.probability
    return {"result": [] if answer.unknown else [item], "score": score, "model_version": version}
