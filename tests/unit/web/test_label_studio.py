"""Label Studio asks, teaches, corrects and deletes; the model follows."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
from served import serving

import knowmore
from knowmore import GPClassifier, GPRegressor
from knowmore.errors import InvalidInput
from knowmore.web.label_studio.edits import forget, learn
from knowmore.web.label_studio.messages import Control, control

VIEW = """<View><!-- a comment --><Text name="subject" value="$text"/>
<Choices name="kind" toName="subject"><Choice value="near"/></Choices></View>"""


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(10, 2)), rng.normal(size=(10, 2)) + 4])
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(X, np.repeat(["near", "far"], 10))
    return tmp_path / "m.km"


PLACE = "task 1, annotation 1"


def annotation(number, choice, **more):
    result = [{"from_name": "kind", "to_name": "subject", "value": {"choices": [choice]}}]
    return {"id": number, "result": result, "completed_by": 7, "was_cancelled": False} | more


def event(action, *annotations, data=None):
    task = {"id": 1, "data": data or {"x0": 30.0, "x1": 30, "text": "a stone"}}
    about = (
        {"annotation": annotations[0]} if len(annotations) == 1 else {"annotations": [*annotations]}
    )
    return {"action": action, "task": task, "project": {"id": 2}} | about


def test_predictions_in_its_form(path):
    with serving(path, label_studio=True) as ask:
        assert ask.get("/health") == (200, {"status": "UP"})
        assert ask.post("/setup", {"project": "1.2", "schema": VIEW}) == (
            200,
            {"model_version": "1"},
        )
        tasks = [{"id": 1, "data": {"x0": 4, "x1": "4.0"}}, {"id": 2, "data": {"x0": 999, "x1": 0}}]
        status, body = ask.post(
            "/predict", {"tasks": tasks, "label_config": VIEW, "project": "1.2"}
        )
        assert status == 200
        assert body["model_version"] == "1"
        known, strange = body["results"]
        value = {"choices": ["far"]}
        item = {"from_name": "kind", "to_name": "subject", "type": "choices", "value": value}
        assert known["result"] == [item]
        assert 0.5 < known["score"] <= 1
        assert known["model_version"] == "1"
        # What the model does not know it does not suggest.
        assert strange["result"] == []
        assert ask.post("/predict", {"rows": [[4.0, 4.0]]})[1]["predictions"][0]["label"] == "far"


def test_an_annotation_is_learnt_corrected_and_forgotten(path):
    def told(status, body):
        assert status == 201
        return {
            name: n for name, n in body.items() if n and name not in ("status", "model_version")
        }

    with serving(path, label_studio=True) as ask:
        assert told(
            *ask.post("/webhook", event("ANNOTATION_CREATED", annotation(17, "stone")))
        ) == {"added": 1}
        question = {"rows": [[30.0, 30.0]]}
        assert ask.post("/predict", question)[1]["predictions"][0]["label"] == "stone"
        assert told(*ask.post("/webhook", event("ANNOTATION_UPDATED", annotation(17, "rock")))) == {
            "changed": 1
        }
        assert ask.post("/predict", question)[1]["predictions"][0]["label"] == "rock"
        with knowmore.open(path) as store:
            (record,) = store.records(["label-studio/17"])
            assert (record.contributor, record.origin) == ("label-studio/7", "label-studio/task/1")
        gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 17}, {"id": 99}]}
        assert told(*ask.post("/webhook", gone)) == {"forgotten": 1}
        assert ask.post("/predict", question)[1]["predictions"][0]["label"] != "rock"
        status, body = ask.post("/train", {})
        assert (status, body["model_version"]) == (201, "4")
    with knowmore.open(path) as store:
        assert [one.verb for one in store.log()] == ["add", "learn", "learn", "forget"]
        assert b"label-studio/17" not in path.read_bytes()


@pytest.mark.parametrize("emptied", [False, True])
def test_an_annotation_that_was_undone_is_forgotten_too(emptied, path):
    """The example stays in the file until the next edit, though the model has removed it."""
    with knowmore.open(path) as store:
        learn(store, event("ANNOTATION_CREATED", annotation(17, "stone")))
        store.undo()
        assert b"label-studio/17" in path.read_bytes()
        gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 17}, {"id": 99}]}
        empty = event("ANNOTATION_UPDATED", annotation(17, "stone", result=[]))
        done = learn(store, empty) if emptied else forget(store, gone)
        assert done.forgotten == 1
        assert b"label-studio/17" not in path.read_bytes()


def test_a_task_that_is_skipped_teaches_nothing(path):
    with serving(path, label_studio=True) as ask:
        skipped = event("ANNOTATION_CREATED", annotation(1, "near", was_cancelled=True))
        assert ask.post("/webhook", skipped)[1]["ignored"] == 1
        ask.post("/webhook", event("ANNOTATION_CREATED", annotation(2, "near")))
        later = event("ANNOTATION_UPDATED", annotation(2, "near", result=[]))
        assert ask.post("/webhook", later)[1]["forgotten"] == 1
        other = ask.post("/webhook", {"action": "TASKS_CREATED"})
        assert other == (200, {"status": "ignored", "action": "TASKS_CREATED"})
        described = ask.get("/openapi.json")[1]["paths"]["/webhook"]["post"]["responses"]
        assert {"200", "201"} <= described.keys()


@pytest.mark.slow(fast=10)
@pytest.mark.parametrize(
    ("route", "message", "detail"),
    [
        (
            "/predict",
            {"tasks": [], "label_config": None},
            "The labelling interface is missing, too",
        ),
        ("/predict", {"tasks": 3, "label_config": VIEW}, "The tasks are not a list."),
        ("/predict", {"row": []}, "rows: Field required."),
        ("/predict", "{", "The body is not JSON"),
        ("/predict", "[]", "The body is not a JSON object."),
        ("/setup", {"schema": "<View/>"}, "The labelling interface has no <Choices"),
        ("/webhook", {"action": "ANNOTATION_CREATED"}, "The message has no annotation."),
        (
            "/webhook",
            {"action": "ANNOTATION_DELETED", "annotation": {}},
            "The annotation has no number.",
        ),
        (
            "/webhook",
            {"action": "ANNOTATION_CREATED", "annotation": annotation(1, "a")},
            "task None, annotation 1: There are no data of the task. Label Studio sends",
        ),
        (
            "/webhook",
            event(
                "ANNOTATION_CREATED",
                annotation(1, "a", result=[{"value": {"choices": ["a", "b"]}}]),
            ),
            "task 1, annotation 1: 2 classes were chosen, but an example has one.",
        ),
        *[
            (
                "/webhook",
                event("ANNOTATION_CREATED", annotation(1, "a", **more)),
                detail if "body" in detail or "number." in detail else f"{PLACE}: {detail}",
            )
            for more, detail in [
                ({"result": 5}, "The result of the annotation is not a list"),
                ({"result": [5]}, "The result of the annotation is not a list"),
                ({"result": [{"value": None}]}, "The result of the annotation is not a list"),
                ({"result": [{"value": [1]}]}, "The result of the annotation is not a list"),
                ({"result": [{"value": {"choices": 1}}]}, "The result of the annotation is not"),
                ({"result": [{"value": {"choices": [None]}}]}, "The choice of the annotation is"),
                ({"result": [{"value": {"choices": [{}]}}]}, "The choice of the annotation is"),
                ({"result": [{"value": {"choices": [""]}}]}, "The choice of the annotation is"),
                ({"id": True}, "The annotation has no number."),
                ({"completed_by": ["x"]}, "Who completed the annotation is neither a number"),
                ({"result": [{"value": {"choices": ["\ud800"]}}]}, "The body has text that is not"),
                ({"completed_by": "\ud800"}, "The body has text that is not Unicode."),
            ]
        ],
        (
            "/webhook",
            event("ANNOTATION_CREATED", annotation(1, "a"), data={"x0": 10**400, "x1": 1}),
            f"{PLACE}: column 'x0': 1000",
        ),
        (
            "/webhook",
            event("ANNOTATION_CREATED", annotation(1, "near"), annotation(1, "far")),
            "The message has the annotation 1 twice.",
        ),
        (
            "/webhook",
            {
                "action": "ANNOTATIONS_CREATED",
                "annotation": [annotation(1, "near", task=[8])],
                "task": [{"id": [8], "data": {}}, {"id": {}}, 3],
            },
            "task [8], annotation 1: There are no data of the task.",
        ),
        ("/webhook", {"action": "TASKS_DELETED", "tasks": [{"id": "8"}]}, "The task has no number"),
        ("/webhook", {"action": "TASKS_DELETED"}, "The message has no task."),
        ("/webhook", '{"action": ' + "[" * 100_000, "The body is nested too deeply."),
        ("/webhook", '{"action": ' + "9" * 5000 + "}", "The body is not JSON"),
        ("/setup", {"schema": "<a>\ud800</a>"}, "The body has text that is not Unicode."),
    ],
)
def test_bad_messages(route, message, detail, path):
    with serving(path, label_studio=True) as ask:
        status, body = ask.post(route, message)
        assert status == 422
        assert body["detail"].startswith(detail)
        assert ask.get("/readyz")[0] == 200
    with knowmore.open(path) as store:
        assert len(store) == 20


def test_a_bad_annotation_does_not_keep_the_others_from_being_learnt(path, capfd):
    def created(*annotations):
        return event("ANNOTATIONS_CREATED", *annotations)

    with serving(path, label_studio=True) as ask:
        bad = annotation(2, "near", result=[{"value": {"choices": ["near", "far"]}}])
        status, body = ask.post("/webhook", created(annotation(1, "near"), bad))
        assert (status, body["added"]) == (201, 1)
        why = "2 classes were chosen, but an example has one."
        assert body["refused"] == {"task 1, annotation 2": why}
        assert capfd.readouterr().err.splitlines() == [
            f"knowmore: task 1, annotation 2 was not learnt: {why}",
            "knowmore: Then update the annotation in Label Studio, or teach an export of the "
            "project: knowmore learn.",
        ]
        assert ask.post("/webhook", created(*(annotation(i, "near") for i in (1, 2))))[0] == 201
        mixed = (annotation(1, "far"), annotation(2, "near", result=[]), annotation(3, "far"))
        status, body = ask.post("/webhook", created(*mixed))
        assert status == 201
        assert [body[one] for one in ("added", "changed", "forgotten", "ignored")] == [1, 1, 1, 0]
    with knowmore.open(path) as store:
        assert [one.verb for one in store.log()] == ["add", "learn", "learn", "learn", "forget"]
        assert set(store.ids_[20:].tolist()) == {"label-studio/1", "label-studio/3"}


def test_an_emptied_annotation_is_forgotten_though_its_task_is_not_told(path):
    with knowmore.open(path) as store:
        learn(store, event("ANNOTATION_CREATED", annotation(1, "near")))
        assert learn(store, {"annotation": annotation(1, "near", result=[])}).forgotten == 1


def test_what_comes_again_changes_nothing(path):
    made = event("ANNOTATION_CREATED", annotation(1, "near"))
    later = event("ANNOTATION_UPDATED", annotation(1, "far"))
    with serving(path, label_studio=True) as ask:
        answers = [ask.post("/webhook", one)[1] for one in (made, made, later, later)]
        assert [one["added"] for one in answers] == [1, 0, 0, 0]
        assert [one["changed"] for one in answers] == [0, 0, 1, 0]
        assert [one["unchanged"] for one in answers] == [0, 1, 0, 1]
        assert [one["model_version"] for one in answers] == ["2", "2", "3", "3"]


def test_a_task_with_other_data_is_another_row(path):
    with knowmore.open(path) as store:
        learn(store, event("ANNOTATION_CREATED", annotation(1, "near")))
        other = event("ANNOTATION_UPDATED", annotation(1, "near"), data={"x0": -30, "x1": "7"})
        assert learn(store, other).changed == 1
        examples = store.examples
        assert examples.X[examples.rows(("label-studio/1",))].tolist() == [[-30.0, 7.0]]


def test_several_annotations_at_once_each_have_their_task(path):
    """Label Studio turns suggestions into annotations so: both are lists, in no order."""
    message = {
        "action": "ANNOTATIONS_CREATED",
        "annotation": [annotation(1, "near", task=8), annotation(2, "far", task=9)],
        "task": [{"id": 9, "data": {"x0": 9, "x1": 0}}, {"id": 8, "data": {"x0": 8, "x1": 0}}],
    }
    with knowmore.open(path) as store:
        assert learn(store, message).added == 2
        found = {one.id: one for one in store.records()}
        for number, task in ((1, 8), (2, 9)):
            name = f"label-studio/{number}"
            assert found[name].origin == f"label-studio/task/{task}"
            row = store.examples.X[store.examples.rows((name,))]
            assert row.tolist() == [[float(task), 0.0]]


def test_of_several_choices_those_that_the_project_names_first_count(path):
    more = [{"from_name": "other", "value": {"choices": ["far"]}}]
    said = annotation(1, "near")
    said["result"] = more + said["result"]
    message = event("ANNOTATION_CREATED", said) | {"project": {"id": 2, "label_config": VIEW}}
    with knowmore.open(path) as store:
        learn(store, message)
        assert store.records(["label-studio/1"])[0].label == "near"


@pytest.mark.parametrize("undone", [False, True])
def test_a_deleted_task_takes_all_its_annotations_along(undone, path):
    gone = {"action": "TASKS_DELETED", "tasks": [{"id": 8}, {"id": 99}]}
    with knowmore.open(path) as store:
        before = store.predict_proba([[8.0, 0.0]])
        for number in (1, 2):
            task = {"id": 8, "data": {"x0": 8, "x1": 0}}
            said = annotation(number, "odd", task=8)
            learn(store, {"action": "ANNOTATION_CREATED", "annotation": said, "task": task})
        if undone:
            store.undo()
        assert forget(store, gone).forgotten == 2
        assert forget(store, gone).forgotten == 0
        assert len(store) == 20
        assert store.predict_proba([[8.0, 0.0]]).tolist() == before.tolist()
        assert b"label-studio/" not in path.read_bytes()


def test_the_number_of_a_deleted_annotation_may_be_given_again(path):
    """SQLite does so; if the deletion was not told, the example had another task before."""
    with knowmore.open(path) as store:
        for task in (8, 9):
            told = {"id": task, "data": {"x0": task, "x1": 0}}
            said = annotation(1, "odd", task=task)
            learn(store, {"action": "ANNOTATION_CREATED", "annotation": said, "task": told})
        (record,) = store.records(["label-studio/1"])
        assert record.origin == "label-studio/task/9"
        assert forget(store, {"action": "TASKS_DELETED", "tasks": [{"id": 8}]}).forgotten == 0
        assert len(store) == 21
        assert forget(store, {"action": "TASKS_DELETED", "tasks": [{"id": 9}]}).forgotten == 1
        assert len(store) == 20


def test_one_bad_task_does_not_spoil_the_others(path, capfd):
    bad = [3, {"id": 5, "data": {"x0": 1}}, {"id": 6, "data": {"x0": 1, "x1": "a"}}]
    bad += [{"id": 7, "data": {"x0": 10**400, "x1": 1}}]
    tasks = [*bad, {"id": 8, "data": {"x0": 4, "x1": 4}}]
    with serving(path, label_studio=True) as ask:
        status, body = ask.post("/predict", {"tasks": tasks, "label_config": VIEW})
    assert status == 200
    *none, good = body["results"]
    assert [(one["result"], one["score"]) for one in none] == [([], 0.0)] * 4
    assert good["result"][0]["value"] == {"choices": ["far"]}
    told = capfd.readouterr().err
    for words in (
        "The task at place 1 gets no suggestion: There are no data of the task.",
        "task 5 gets no suggestion: has no column 'x1', which the model has learnt from.",
        "task 6 gets no suggestion: column 'x1': 'a' is not a number.",
        "task 7 gets no suggestion: column 'x0': 1000",
    ):
        assert f"knowmore: {words}" in told


def test_a_refused_message_is_printed(path, capfd):
    with serving(path, label_studio=True) as ask:
        ask.post("/webhook", {"action": "ANNOTATION_CREATED"})
        ask.post("/predict", {"tasks": []})
    assert capfd.readouterr().err.splitlines() == [
        "knowmore: A message of Label Studio was refused (ANNOTATION_CREATED): The message has no "
        "annotation.",
        "knowmore: Label Studio gets no suggestions: The labelling interface is missing, too long, "
        "or declares entities.",
    ]


@pytest.mark.parametrize(
    ("labels", "choice", "label"),
    [([1, 2], "2", 2), ([True, False], "true", True), ([1.0, 2.0], "2", 2.0)],
)
def test_choices_take_the_type_of_the_labels(labels, choice, label, tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add([[0.0, 0.0], [9.0, 9.0]], labels)
    with serving(tmp_path / "m.km", label_studio=True) as ask:
        assert ask.post("/webhook", event("ANNOTATION_CREATED", annotation(1, choice)))[0] == 201
        status, body = ask.post("/webhook", event("ANNOTATION_CREATED", annotation(2, "cat")))
        assert status == 422
        assert body["detail"].startswith("task 1, annotation 2: The label 'cat' in Label Studio is")
        huge = event("ANNOTATION_CREATED", annotation(3, "9" * 400))
        assert ask.post("/webhook", huge)[0] == 422
    with knowmore.open(tmp_path / "m.km") as store:
        assert store.records(["label-studio/1"])[0].label == label


def test_models_that_it_cannot_teach(tmp_path):
    with knowmore.open(tmp_path / "e.km", GPClassifier()):
        pass
    with knowmore.open(tmp_path / "r.km", GPRegressor()) as store:
        store.add([[0.0, 0.0]], [1.0])
    created = event("ANNOTATION_CREATED", annotation(1, "a"))
    with serving(tmp_path / "e.km", label_studio=True) as ask:
        status, body = ask.post("/webhook", created)
        assert (status, body["detail"][:36]) == (422, "The model holds no examples yet, so ")
        task = {"id": 1, "data": {"x0": 1}}
        status, body = ask.post("/predict", {"tasks": [task], "label_config": VIEW})
        assert (status, body["detail"][:34]) == (503, "The model holds no examples yet. T")
    with serving(tmp_path / "r.km", label_studio=True) as ask:
        status, body = ask.post("/webhook", created)
        assert status == 422
        assert body["detail"].startswith("The model predicts numbers, but Label Studio's choices")


def test_a_webhook_needs_the_token_too(path, capfd):
    token = "a-token-of-many-letters"
    created = event("ANNOTATION_CREATED", annotation(1, "near"))
    with serving(path, label_studio=True, token=token, ready=False) as ask:
        ask.when(lambda answer: answer[0] == 200)
        assert ask.post("/webhook", created)[0] == 401
        assert ask.post("/webhook", created)[0] == 401
        # Label Studio makes this header of an address http://knowmore:TOKEN@HOST:PORT.
        basic = b64encode(f"knowmore:{token}".encode()).decode()
        for header in (f"Basic {basic}", f"Bearer {token}"):
            assert ask.post("/webhook", created, Authorization=header)[0] == 201
    assert capfd.readouterr().err == (
        "knowmore: A message of Label Studio was refused: Give the token of this service: "
        "Authorization: Bearer TOKEN. Connect the model in Label Studio by the address "
        "http://knowmore:TOKEN@HOST:PORT, or give its webhook that header.\n"
    )


def test_what_the_interface_shows():
    view = '<View><Image name="i" value="$image"/><Choices name="c" toName="i"/></View>'
    assert control(view) == Control("c", "i", "image")
    assert control(view.replace("$", "")) == Control("c", "i", None)


@pytest.mark.parametrize(
    "config", [None, 3, "", "<View>", "<!DOCTYPE a [<!ENTITY b 'c'>]><View/>", "x" * 200_000]
)
def test_interfaces_that_are_none(config):
    with pytest.raises(InvalidInput, match=r"^The labelling interface "):
        control(config)


def test_the_interfaces_of_the_documentation_are_understood():
    page = (Path(__file__).parents[3] / "docs" / "serving.md").read_text("utf-8")
    (view,) = re.findall(r"```xml\n(.*?)```", page, re.DOTALL)
    assert control(view) == Control("class", "image", "image")
    (images,) = re.findall(r"<Image .*/>", view)
    others = re.findall(r"`(<Text [^`]*/>)`, and `toName=\"(\w+)\"`", page)
    assert [name for _, name in others] == ["text", "shown"]
    for shown, name in others:
        changed = view.replace(images, shown).replace('toName="image"', f'toName="{name}"')
        assert control(changed) == Control("class", name, name)
