"""Tasks and annotations of Label Studio, in its exports and in its messages.

An annotation is an example. Its id is "label-studio/" and the annotation's number, its origin
"label-studio/task/" and the task's number: Label Studio tells no more of what is deleted. So an
export and the messages that came before it mean the same examples.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, final
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from knowmore._base import some
from knowmore.errors import InvalidInput
from knowmore.tables import Encoding, Guess, Options
from knowmore.workbench.sources.records import RecordBlock, Source, Wanted
from knowmore.workbench.sources.texts import object_source

_NO_RESULT = "The result of the annotation is not a list of objects with a value."
# Names in the short form of an export that are no data of a task.
_ABOUT = ("id", "annotation_id", "annotator", "created_at", "updated_at", "lead_time", "agreement")
# Names that <Choices> often has.
_USUAL = ("label", "choice")
_NO_EXPORT = (
    "is no export of Label Studio, which is a list of tasks. Export the project as JSON or "
    "JSON-MIN; lines with an object on each are a file that ends in .jsonl."
)

# Reads the picture at an address, for a place that errors and the picture are named by.
Read = Callable[[str, str], Any]


@final
@dataclass(frozen=True, eq=False)
class StudioTask:
    """A task of Label Studio, and what one of its annotations says of it.

    number : of the task
    data : its data by their names
    annotation : its number; None: the task alone
    label, contributor : None if the annotation names none
    """

    number: int
    data: Mapping[str, Any]
    annotation: int | None = None
    label: str | None = None
    contributor: str | None = None

    @property
    def id(self) -> str:
        """The id of the example."""
        whole = self.annotation is None
        return task_origin(self.number) if whole else f"label-studio/{self.annotation}"

    @property
    def place(self) -> str:
        """What people call it."""
        more = "" if self.annotation is None else f", annotation {self.annotation}"
        return f"task {self.number}{more}"


def task_origin(number: int) -> str:
    """The origin of the examples of a task.

    >>> task_origin(17)
    'label-studio/task/17'
    """
    return f"label-studio/task/{number}"


def numbered(given: Any, what: str) -> int:
    """The number of a task or an annotation; what is the name of such a thing."""
    number = given.get("id") if isinstance(given, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidInput(f"The {what} has no number.")
    return number


def annotated(task: Any, annotation: Any, control: str | None = None) -> StudioTask:
    """What an annotation says of a task, both as Label Studio writes them.

    control : the name of <Choices>, where there may be several
    """
    found = task_alone(task)
    return replace(
        found,
        annotation=numbered(annotation, "annotation"),
        label=chosen(annotation, control),
        contributor=_person(annotation.get("completed_by")),
    )


def task_alone(task: Any) -> StudioTask:
    """A task as Label Studio writes it, without annotations."""
    data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(data, dict):
        raise InvalidInput("There are no data of the task. Label Studio sends task.data.")
    return StudioTask(numbered(task, "task"), data)


def chosen(annotation: Mapping[str, Any], control: str | None = None) -> str | None:
    """The class that an annotation chose; None if it was skipped, or chose none."""
    result = annotation.get("result")
    if annotation.get("was_cancelled") or result is None:
        return None
    items = _is(result, list)
    values = [
        _is(_is(one, dict).get("value", {}), dict)
        for one in items
        if control is None or _is(one, dict).get("from_name", control) == control
    ]
    for value in values:
        if (choices := _is(value.get("choices", []), list)) and (found := _choice(choices)):
            return found
    return None


def _is(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise InvalidInput(_NO_RESULT)
    return value


def _choice(choices: Any) -> str | None:
    """The class among choices, which are one text, a list, or in the short form an object."""
    if isinstance(choices, dict):
        choices = choices.get("choices")
    if isinstance(choices, str):
        choices = [choices]
    if choices is None or choices == []:
        return None
    if isinstance(choices, list) and len(choices) > 1:
        raise InvalidInput(f"{len(choices)} classes were chosen, but an example has one.")
    if not isinstance(choices, list) or not isinstance(choices[0], str) or not choices[0].strip():
        raise InvalidInput("The choice of the annotation is not the name of a class.")
    return choices[0]


def _person(by: Any) -> str | None:
    """The contributor that a person is."""
    by = by.get("id") if isinstance(by, dict) else by
    if by is None:
        return None
    if not isinstance(by, (int, str)):
        raise InvalidInput("Who completed the annotation is neither a number nor a name.")
    return f"label-studio/{by}"


# -- tasks as a source ---------------------------------------------------------------------------


def tasks_source(
    name: str, tasks: Sequence[StudioTask], wanted: Wanted, read: Read, key: str | None = None
) -> Source:
    """Tasks as records, each in a way that depends on no other; `skipped` has what cannot be used.

    key : the name of the data that the labelling interface shows
    """
    skipped: dict[str, str] = {}
    pictures = wanted.holds == "pictures"
    if wanted.holds is None:
        pictures = any(picture_address(task.data, key) is not None for task in tasks)
    plan = Source(name, holds="pictures" if pictures else "numbers")
    usable, records = list[StudioTask](), list[Any]()
    needs = replace(wanted, label=None, id=None, labelled=False)
    if wanted.holds is None and not pictures and not wanted.texts:
        needs = _typed(tasks, needs)
    for task in tasks:
        try:
            if pictures:
                records.append(_picture(task, key, read))
            else:
                one = object_source(task.place, _features(task.data, needs, key), needs)
                plan = replace(one, name=name) if not usable else plan
                needs = replace(needs, columns=plan.columns)
                (block,) = one.blocks()
                records.append(block.X[0])
            usable.append(task)
        except InvalidInput as error:
            # "'task 5', line 1, column 'x'": an object has one line.
            words = str(error).removeprefix(repr(task.place)).removeprefix(", line 1")
            skipped[task.place] = words.lstrip(",: ")

    def blocks() -> Iterator[RecordBlock]:
        if usable:
            X = records if plan.described else np.array(records)
            labels = [task.label for task in usable] if wanted.labelled else None
            yield RecordBlock(
                X,
                labels,
                [task.id for task in usable],
                [task.contributor for task in usable],
                [task.place for task in usable],
                [task_origin(task.number) for task in usable],
            )

    return replace(plan, blocks=blocks, skipped=skipped, ignored=())


def _typed(tasks: Sequence[StudioTask], wanted: Wanted) -> Wanted:
    """What a new model asks of tasks: numbers, or cells of the types that all tasks tell.

    Where most cells of a column are numbers, tasks with others are refused one by one, if at least
    one task can be used; else raises InvalidInput.
    """
    options = wanted.options
    plain = replace(wanted, holds="numbers", options=Options())
    names = _usual_columns(tasks, plain)
    if names is None:
        return plain
    plain = replace(plain, columns=names)
    if wanted.columns is None:
        names = options.used(names)
    rows = [task for task in tasks if task.data.keys() >= {*names}]
    cells = [[task.data[name] for name in names] for task in rows]
    guess = Guess(names, options)
    guess.see(cells, [task.place for task in rows])
    try:
        columns, left_out = guess.columns()
    except InvalidInput:
        if options or not any(all(map(_is_number, row)) for row in cells):
            raise
        return plain
    if not options and all(_is_number(cell) for row in cells for cell in row):
        return plain
    table = Encoding(columns, left_out, options)
    return replace(wanted, holds="cells", table=table, columns=table.names)


def _usual_columns(tasks: Sequence[StudioTask], wanted: Wanted) -> tuple[str, ...] | None:
    """The columns that most tasks have; None if they have none, or lists of numbers."""
    found: Counter[frozenset[str]] = Counter()
    orders: dict[frozenset[str], tuple[str, ...]] = {}
    for task in tasks:
        with suppress(InvalidInput):
            names = object_source(task.place, task.data, wanted).columns or ()
            found[frozenset(names)] += 1
            orders.setdefault(frozenset(names), names)
    return orders[found.most_common(1)[0][0]] or None if found else None


def _is_number(cell: Any) -> bool:
    with suppress(TypeError, ValueError, OverflowError):
        return not isinstance(cell, bool) and math.isfinite(float(cell))
    return False


def _features(data: Mapping[str, Any], wanted: Wanted, key: str | None) -> dict[str, Any]:
    """The data of a task that a model knows; all if it knows none yet.

    Numbers may be written as text, as tables that Label Studio imports have them. A text is the one
    that the interface shows, or the only one, whatever its name is.
    """
    if wanted.holds == "texts":
        texts = {name: one for name, one in data.items() if isinstance(one, str)}
        if key in texts or len(texts) == 1:
            return {"text": texts.get(str(key), next(iter(texts.values())))}
        return dict(data)
    known = wanted.columns
    found = {name: data[name] for name in data if known is None or name in known}
    if wanted.holds == "numbers":
        for name, value in found.items():
            with suppress(ValueError):
                found[name] = float(value) if isinstance(value, str) else value
    return found


def _picture(task: StudioTask, key: str | None, read: Read) -> Any:
    address = picture_address(task.data, key)
    if address is None:
        raise InvalidInput(
            f"has no picture: its data are {some([*task.data]) or 'empty'}. A task needs the "
            f"address of a picture, such as /data/upload/1/rose.jpg."
        )
    return read(address, task.place)


def picture_address(data: Mapping[str, Any], key: str | None) -> str | None:
    """The address of a picture in the data of a task; None if there is none."""
    from knowmore.images import is_picture

    first = data.get(key) if key is not None else None
    texts = [one for one in (first, *data.values()) if isinstance(one, str)]
    found = next((one for one in texts if is_picture(_path(one))), None)
    # Some addresses do not end as pictures do: these the interface must name.
    if found is None and isinstance(first, str) and first.startswith(("/data/", "http")):
        return first
    return found


def _path(address: str) -> str:
    """The path that an address names among the files of Label Studio.

    >>> _path("/data/upload/1/a%20rose.jpg"), _path("http://a/data/local-files/?d=set/rose.jpg")
    ('upload/1/a rose.jpg', 'set/rose.jpg')
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.path.endswith("/data/local-files/"):
        return parse_qs(parts.query).get("d", [""])[0]
    whole = unquote(parts.path)
    _, is_data, path = whole.partition("/data/")
    return path if is_data else whole


# -- exports -------------------------------------------------------------------------------------


def export_source(path: Path, wanted: Wanted) -> Source:
    """An export of Label Studio, as JSON or as JSON-MIN.

    Pictures are read from the folder of the export: at the end of their addresses, after /data/.
    """
    name = str(path)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name!r} is not JSON: {error}.") from error
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {error.strerror or error}.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"{name!r} {_NO_EXPORT}")
    if not rows:
        raise InvalidInput(f"{name!r} has no tasks.")
    short = "data" not in rows[0]
    label = _label_in(name, rows, wanted) if short and wanted.labelled else wanted.label
    skipped: dict[str, str] = {}
    tasks: list[StudioTask] = []
    for i, row in enumerate(rows):
        for said in _said(row, label, short=short, labelled=wanted.labelled):
            try:
                task = said()
            except InvalidInput as error:
                skipped[f"task {row.get('id', f'at place {i}')}"] = str(error)
                continue
            if task.label is not None or not wanted.labelled:
                tasks.append(task)
    if not tasks and not skipped:
        raise InvalidInput(f"{name!r} has {len(rows)} tasks, but nobody has chosen a class yet.")
    found = tasks_source(name, tasks, wanted, partial(_beside, path.parent))
    return replace(found, label=label, skipped=found.skipped | skipped)


def _said(
    row: dict[str, Any], label: str | None, *, short: bool, labelled: bool
) -> list[Callable[[], StudioTask]]:
    """What each annotation of a task says, or the task alone; reading each may fail."""
    if short:
        data = {one: value for one, value in row.items() if one not in (*_ABOUT, label)}
        alone = {"id": row.get("id"), "data": data}
        if not labelled:
            return [lambda: task_alone(alone)]
        by = {"id": row.get("annotation_id"), "completed_by": row.get("annotator")}
        return [lambda: replace(annotated(alone, by), label=_choice(row.get(label or "")))]
    given = row.get("annotations")
    if not labelled or given is None:
        return [lambda: task_alone(row)]
    listed = given if isinstance(given, list) else [given]
    return [partial(annotated, row, one, label) for one in listed]


def _label_in(name: str, rows: list[dict[str, Any]], wanted: Wanted) -> str:
    """The name under which the short form of an export has what was chosen."""
    there = {one: value for row in reversed(rows) for one, value in row.items()}
    known = (*_ABOUT, *(wanted.columns or ()))
    others = sorted(one for one in there if one not in known and isinstance(there[one], str))
    usual = (wanted.label, wanted.usual_label, *_USUAL)
    found = next((one for one in usual if one is not None and one in there), None)
    if wanted.label not in (None, found):
        raise InvalidInput(f"{name!r} has no {wanted.label!r} for --label, only {some(others)}.")
    if found is None and len(others) != 1:
        raise InvalidInput(
            f"{name!r} does not say which of {some(others)} was chosen. Give the name of "
            f"<Choices>: --label NAME."
        )
    return others[0] if found is None else found


def _beside(folder: Path, address: str, place: str) -> Any:
    """The picture at an address, in the folder of an export."""
    from knowmore.images import Picture

    inside = PurePosixPath(_path(address))
    if inside.is_absolute() or ".." in inside.parts:
        raise InvalidInput(f"{address[:100]!r} leads outside the folder of the export.")
    path = folder / inside
    if not os.path.isfile(path):
        raise InvalidInput(
            f"{path.as_posix()!r} is not there. Copy the folder media/upload of Label Studio, or "
            f"the local files, beside the export."
        )
    return Picture(place, path)
