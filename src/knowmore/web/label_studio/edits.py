"""Edits that messages of Label Studio ask for: annotations are learnt, corrected and forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import is_classifier

from knowmore.errors import InvalidInput, UnknownId
from knowmore.web.label_studio.messages import annotations_of, deleted
from knowmore.web.label_studio.tasks import NO_CLASSES, Fetched, needs_of, source_of
from knowmore.workbench import LearnOptions, StudioTask, labels_of, learn_source, task_origin

_EMPTY = (
    "The model holds no examples yet, so it does not know which data of a task are its features. "
    "Teach it some first, such as an export of the project: knowmore learn MODEL EXPORT.json."
)


@dataclass
class Done:
    """What a message changed, in numbers of annotations.

    unchanged : say what is held already
    ignored : choose no class, and are not held
    refused : why others were not learnt, by what people call them
    warning : why bytes of what was forgotten may be left
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    forgotten: int = 0
    ignored: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    warning: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether nothing of the message could be used."""
        used = self.added + self.changed + self.unchanged + self.forgotten + self.ignored
        return bool(self.refused) and not used


def learn(store: Any, message: Mapping[str, Any], fetched: Fetched | None = None) -> Done:
    """Let the examples be what the annotations of a message say now.

    What can be used of a message is learnt together, as one entry of the journal; the rest is
    refused. An annotation that says what is held already changes nothing. One that chooses no class
    any more is forgotten.
    """
    if not is_classifier(store.estimator):
        raise InvalidInput(NO_CLASSES)
    said = annotations_of(message)
    done = Done(refused=said.refused)
    if any(said.tasks.values()) and not len(store):
        raise InvalidInput(_EMPTY)
    if tasks := _of_known_type(store, said.tasks, done):
        needs, columns = needs_of(store)
        source = source_of(needs, tasks, said.key, fetched or {})
        # Somebody says it now, whatever was forgotten before.
        request = LearnOptions(store.path, "label-studio", origin="label-studio", again=True)
        ids = [task.id for task in tasks]
        found = learn_source(store, replace(source, columns=columns), request, among=ids)
        done.added, done.changed, done.unchanged = found.added, found.replaced, found.skipped
        done.refused |= source.skipped
    # This cannot be undone, so it is no part of the others; nor can it fail by its message.
    empty = {name for name, one in said.tasks.items() if one is None}
    gone = sorted(empty & store.forgettable()) if empty else []
    done.ignored = len(empty) - len(gone)
    _forget(store, gone, done)
    return done


def forget(store: Any, message: Mapping[str, Any]) -> Done:
    """Forget the annotations or the tasks of a message that are in the file, for ever."""
    done = Done()
    if message.get("action") != "TASKS_DELETED":
        names = {f"label-studio/{one}" for one in deleted(message, "annotation")}
        _forget(store, sorted(names & store.forgettable()), done)
        return done
    origins = [task_origin(one) for one in deleted(message, "task")]
    try:
        plan = store.preview_forget(origin=origins)
    except UnknownId:
        return done
    # Label Studio may give the number of a deleted annotation to another: if that was told and the
    # deletion was not, the example has versions of two tasks. What it is now leaves as a whole.
    _forget(store, plan.leaving + plan.changing, done)
    if plan.erasing:
        done.warning = store.forget(origin=origins).left or done.warning
    return done


def _forget(store: Any, gone: list[Any], done: Done) -> None:
    if gone:
        done.forgotten, done.warning = len(gone), store.forget(gone).left


def _of_known_type(
    store: Any, said: Mapping[str, StudioTask | None], done: Done
) -> list[StudioTask]:
    """The tasks whose labels are of the type that the model has."""
    tasks = [task for task in said.values() if task is not None]
    if _problem(store, tasks) is None:
        return tasks
    problems = {task: _problem(store, [task]) for task in tasks}
    done.refused |= {task.place: why for task, why in problems.items() if why is not None}
    return [task for task, why in problems.items() if why is None]


def _problem(store: Any, tasks: Sequence[StudioTask]) -> str | None:
    """Why the labels of tasks cannot be learnt by a model; None if they can."""
    try:
        if tasks:
            labels_of(store, [task.label for task in tasks], ["Label Studio"] * len(tasks))
    except InvalidInput as error:
        return str(error)
    return None
