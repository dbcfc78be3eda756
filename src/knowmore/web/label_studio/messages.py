"""What Label Studio says: labelling interfaces, tasks, annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree

from knowmore.errors import InvalidInput
from knowmore.workbench import StudioTask, annotated, chosen, numbered

_LONGEST = 100_000


class Control(NamedTuple):
    """The choices of a labelling interface.

    name : of the choices
    subject : the name of what is labelled by them
    key : the name of the data that the subject shows; None if it shows none
    """

    name: str
    subject: str
    key: str | None


def control(config: Any) -> Control:
    """The choices of a labelling interface.

    >>> control('<View><Text name="t" value="$x"/><Choices name="c" toName="t"/></View>')
    Control(name='c', subject='t', key='x')
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
            subject = one.attrib["toName"].split(",")[0]
            shown = (each for each in view.iter() if each.get("name") == subject)
            value = next((each.get("value", "") for each in shown), "")
            key = value.removeprefix("$") if value.startswith("$") else None
            return Control(one.attrib["name"], subject, key)
    raise InvalidInput(f"{problem} has no <Choices name=... toName=...>, which a classifier needs.")


class Said(NamedTuple):
    """The annotations of a message.

    tasks : what each says of its task, and None for those that choose no class, by their ids
    key : the name of the data that the labelling interface shows; None if it is not told
    refused : why others cannot be read, by what people call them
    """

    tasks: dict[str, StudioTask | None]
    key: str | None
    refused: dict[str, str]


def annotations_of(message: Mapping[str, Any]) -> Said:
    """What the annotations of a message say, each read by itself."""
    interface = _interface(message.get("project"))
    given = message.get("task")
    tasks = {
        one["id"]: one
        for one in _listed(given)
        if isinstance(one, dict) and isinstance(one.get("id"), int)
    }
    which, _, key = interface or (None, None, None)
    said = Said({}, key, {})
    listed = _listed(message.get("annotations", message.get("annotation")))
    if not listed:
        raise InvalidInput("The message has no annotation.")
    for annotation in listed:
        number = numbered(annotation, "annotation")
        whose = annotation.get("task")
        # One task is that of all; of several each annotation names its own.
        named = tasks.get(whose, given) if isinstance(whose, int) else given
        task = whose if isinstance(whose, dict) else named
        name = f"label-studio/{number}"
        if name in said.tasks:
            raise InvalidInput(f"The message has the annotation {number} twice.")
        try:
            # One that chooses nothing is forgotten, whatever its task is.
            empty = chosen(annotation, which) is None
            said.tasks[name] = None if empty else annotated(task, annotation, which)
        except InvalidInput as error:
            known = numbered(task, "task") if isinstance(task, dict) and "id" in task else whose
            said.refused[f"task {known!r}, annotation {number}"] = str(error)
    return said


def deleted(message: Mapping[str, Any], what: str) -> list[int]:
    """The numbers of what a message says is deleted; what: "annotation" or "task"."""
    listed = _listed(message.get(f"{what}s", message.get(what)))
    if not listed:
        raise InvalidInput(f"The message has no {what}.")
    return [numbered(one, what) for one in listed]


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _interface(project: Any) -> Control | None:
    """The choices of a project that a message tells of; None if it tells none that can be read."""
    try:
        return control(project.get("label_config")) if isinstance(project, dict) else None
    except InvalidInput:
        return None
