"""An export of Label Studio is a source: as JSON and as JSON-MIN, of numbers and of pictures."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import knowmore
from knowmore.cli.app import app
from knowmore.errors import InvalidInput


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def said(number, choice, **more):
    value = {"choices": [choice] if isinstance(choice, str) else choice}
    result = [] if choice is None else [{"from_name": "kind", "value": value}]
    return {"id": number, "completed_by": 7, "result": result, "was_cancelled": False} | more


def task(number, data, *annotations):
    return {"id": number, "data": data, "annotations": [*annotations], "drafts": []}


TASKS = [
    task(1, {"x0": 1, "x1": 2}, said(11, "near"), said(12, "far", completed_by={"id": 8})),
    task(2, {"x0": 4, "x1": 2}, said(13, "far")),
    task(3, {"x0": 5, "x1": 2}, said(14, "far", was_cancelled=True), said(15, None)),
    task(4, {"x0": 6, "x1": 2}),
]
SHORT = [
    {"x0": 1, "x1": 2, "id": 1, "kind": "near", "annotator": 7, "annotation_id": 11},
    {"x0": 1, "x1": 2, "id": 1, "kind": "far", "annotator": 8, "annotation_id": 12},
    {"x0": 4, "x1": 2, "id": 2, "kind": "far", "annotator": 7, "annotation_id": 13},
    {"x0": 5, "x1": 2, "id": 3, "annotator": 7, "annotation_id": 14, "lead_time": None},
]


def written(folder, tasks, name="export.json"):
    path = folder / name
    path.write_text(json.dumps(tasks))
    return path


@pytest.mark.parametrize("tasks", [TASKS, SHORT])
def test_numbers(tasks, tmp_path):
    path, export = tmp_path / "m.km", written(tmp_path, tasks)
    assert run("learn", path, export).stdout.startswith("3 added, 0 skipped")
    with knowmore.open(path) as store:
        found = {
            one.id: (one.label, one.origin, one.contributor, one.labeller)
            for one in store.records()
        }
    assert found == {
        "label-studio/11": ("near", "label-studio/task/1", *["label-studio/7"] * 2),
        "label-studio/12": ("far", "label-studio/task/1", *["label-studio/8"] * 2),
        "label-studio/13": ("far", "label-studio/task/2", *["label-studio/7"] * 2),
    }
    other = written(tmp_path, SHORT if tasks is TASKS else TASKS, "other.json")
    assert run("learn", path, other).stdout.startswith("0 added, 3 skipped, 0 replaced")
    told = run("status", path).stdout.splitlines()
    assert told[-1].split() == ["label-studio/task/...", "(2", "tasks)", "3"]
    # A task is forgotten with all its annotations.
    run("forget", path, "--origin", "label-studio/task/1", "--yes")
    assert run("learn", path, other).stdout.startswith("0 added, 1 skipped, 0 replaced")


def test_a_changed_choice_replaces_the_label(tmp_path):
    path = tmp_path / "m.km"
    run("learn", path, written(tmp_path, TASKS))
    other = written(tmp_path, [task(2, {"x0": 4, "x1": 2}, said(13, "near"))])
    assert run("learn", path, other).stdout.startswith("0 added, 0 skipped, 1 replaced")
    with knowmore.open(path) as store:
        assert store.records(["label-studio/13"])[0].label == "near"


def test_a_model_that_knows_columns_takes_those_alone(tmp_path):
    path = tmp_path / "m.km"
    with knowmore.open(path, knowmore.GPClassifier()) as store:
        store.add([[0.0, 0.0], [9.0, 9.0]], ["near", "far"], columns=["b", "a"])
    data = {"text": "shown", "a": "1.5", "b": 2, "note": None}
    run("learn", path, written(tmp_path, [task(1, data, said(11, "near"))]))
    with knowmore.open(path) as store:
        assert store.examples.X[store.examples.rows(("label-studio/11",))].tolist() == [[2.0, 1.5]]


def test_tasks_alone_are_predicted(tmp_path):
    path, export = tmp_path / "m.km", written(tmp_path, TASKS)
    run("learn", path, export)
    lines = run("predict", path, export, "--json").stdout.splitlines()
    names = [json.loads(line)["id"] for line in lines]
    assert names == [f"label-studio/task/{i}" for i in (1, 2, 3, 4)]


def test_bad_annotations_are_skipped_and_listed(tmp_path):
    tasks = [
        *TASKS,
        task(5, {"x0": 1, "x1": 2}, said(16, ["near", "far"])),
        task(6, {"x0": "a", "x1": 2}, said(17, "near")),
        task(7, {"x0": 1}, said(18, "near")),
        {"id": 8, "data": 3, "annotations": [said(19, "near")]},
    ]
    result = run("learn", tmp_path / "m.km", written(tmp_path, tasks))
    assert result.exit_code == 3
    assert result.stdout.startswith("3 added")
    for words in (
        "'task 5' 2 classes were chosen, but an example has one.",
        "'task 6, annotation 17' column 'x0': 'a' is not a number.",
        "'task 7, annotation 18' has no column 'x1'",
        "'task 8' There are no data of the task.",
    ):
        assert words in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("{}", "is no export of Label Studio, which is a list of tasks"),
        ("[3]", "is no export of Label Studio, which is a list of tasks"),
        ("[]", "has no tasks."),
        (json.dumps([TASKS[3]]), "has 1 tasks, but nobody has chosen a class yet."),
        (
            json.dumps([SHORT[0] | {"other": "x"}]),
            "does not say which of 'kind', 'other' was chosen. Give the name of <Choices>: "
            "--label NAME.",
        ),
    ],
)
def test_files_that_are_no_exports(text, words, tmp_path):
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        run("learn", tmp_path / "m.km", tmp_path / "export.json")
    assert words in str(caught.value)
    assert not (tmp_path / "m.km").exists()


def test_a_label_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match=r"has no 'sort' for --label, only "):
        run("learn", tmp_path / "m.km", written(tmp_path, SHORT), "--label", "sort")


def test_sync_would_forget_other_projects(tmp_path):
    path, export = tmp_path / "m.km", written(tmp_path, TASKS)
    run("learn", path, export)
    with pytest.raises(InvalidInput, match=r"an export of Label Studio has one project"):
        run("learn", path, written(tmp_path, TASKS[1:], "less.json"), "--sync")
    with knowmore.open(path) as store:
        assert len(store) == 3


# -- tables and texts ----------------------------------------------------------------------------

MIXED = [
    {"island": "BDT"[i % 3], "mass": None if i == 5 else i * 10, "in": i % 2 == 0}
    for i in range(12)
]


def short(tasks):
    """The short form of an export."""
    return [
        {**one["data"], "id": one["id"], "annotation_id": one["annotations"][0]["id"]}
        | {"kind": one["annotations"][0]["result"][0]["value"]["choices"][0]}
        for one in tasks
    ]


@pytest.mark.parametrize("form", [list, short])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_table_of_cells_is_that_of_a_file(form, as_text, tmp_path):
    rows = MIXED
    if as_text:
        rows = [{name: "" if x is None else str(x) for name, x in row.items()} for row in rows]
    tasks = [task(i, row, said(100 + i, "ab"[i % 2])) for i, row in enumerate(rows)]
    export, csv = written(tmp_path, form(tasks)), tmp_path / "rows.csv"
    lines = [f"{one['island']},{one['mass'] or ''},{one['in']}" for one in MIXED]
    lines = [f"{line},label-studio/{100 + i},{'ab'[i % 2]}" for i, line in enumerate(lines)]
    csv.write_text("\n".join(["island,mass,in,id,label", *lines]).replace("B,,", "B,0,"))
    said_label = ["--label", "kind"] if form is short else []
    assert run("learn", tmp_path / "m.km", export, *said_label).stdout.startswith("12 added")
    assert run("learn", tmp_path / "csv.km", csv).stdout.startswith("12 added")
    with knowmore.open(tmp_path / "m.km") as store, knowmore.open(tmp_path / "csv.km") as other:
        assert store.table == other.table
        np.testing.assert_array_equal(store.examples.X, other.examples.X)
    again = run("learn", tmp_path / "m.km", export, *said_label)
    assert again.stdout.startswith("0 added, 12 skipped, 0 replaced")
    more = [
        task(50, {"island": "New", "mass": "12", "in": "true"}, said(150, "a")),
        task(51, {"island": "B", "mass": "bad", "in": True}, said(151, "a")),
    ]
    result = run(
        "learn", tmp_path / "m.km", written(tmp_path, form(more), "more.json"), *said_label
    )
    assert result.stdout.startswith("1 added")
    assert "'task 51, annotation 151' column 'mass': 'bad' is not a number" in result.stderr
    answers = run("predict", tmp_path / "m.km", export, "--json").stdout.splitlines()
    assert [json.loads(one)["label"] for one in answers] == [*"ab"] * 6


def test_what_is_said_of_the_columns_of_an_export(tmp_path):
    tasks = [task(i, row, said(100 + i, "ab"[i % 2])) for i, row in enumerate(MIXED)]
    tasks[0]["data"] = {**tasks[0]["data"], "mass": 7}
    export = written(tmp_path, tasks)
    run("learn", tmp_path / "m.km", export, "--category", "mass", "--ignore", "in")
    with knowmore.open(tmp_path / "m.km") as store:
        assert [(one.name, one.kind) for one in store.table.columns] == [
            ("island", "category"),
            ("mass", "category"),
        ]


@pytest.mark.parametrize("odd", [{}, {"": 1}, {"label": "x"}, {"other": "x"}, {"x0": 10**400}])
@pytest.mark.parametrize("cells", [False, True])
def test_an_odd_task_does_not_keep_the_others_from_being_learnt(odd, cells, tmp_path):
    more = {"name": "n"} if cells else {}
    tasks = [task(i, {"x0": i, "x1": 2} | more, said(100 + i, "ab"[i % 2])) for i in range(1, 7)]
    if "x0" in odd:
        odd = {"x1": 3} | more | odd
    result = run(
        "learn", tmp_path / "m.km", written(tmp_path, [task(9, odd, said(9, "a")), *tasks])
    )
    assert result.stdout.startswith("6 added"), result.output
    assert "Skipped: 'task 9, annotation 9' " in result.stderr


def test_cells_that_cannot_be_told_are_refused(tmp_path):
    rows = [{"island": "BD"[i % 2], "mass": "bad" if i == 3 else i} for i in range(6)]
    tasks = [task(i, row, said(100 + i, "ab"[i % 2])) for i, row in enumerate(rows)]
    with pytest.raises(InvalidInput, match=r"column 'mass': 'bad' is not a number, but 5 of the 6"):
        run("learn", tmp_path / "m.km", written(tmp_path, tasks))
    assert not (tmp_path / "m.km").exists()


# -- pictures ------------------------------------------------------------------------------------


@pytest.fixture
def pictures(tmp_path):
    """An export of eight pictures, with the uploads and local files beside it."""
    images = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[:40, :40]
    tasks = []
    for i in range(8):
        pixels = (128 + 80 * np.sin((x if i % 2 else y) / 2 + i)).astype(np.uint8)
        local = i >= 6
        file = tmp_path / (f"set/{i}.png" if local else f"upload/1/{i} a.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        images.fromarray(pixels).save(file)
        where = f"/data/local-files/?d=set/{i}.png" if local else f"/data/upload/1/{i}%20a.png"
        choice = "upright" if i % 2 else "level"
        tasks.append(task(i, {"image": where, "text": "a"}, said(20 + i, choice)))
    return tmp_path, tasks


def test_pictures(pictures):
    folder, tasks = pictures
    path, export = folder / "m.km", written(folder, tasks)
    run("init", path, "--features", "phog")
    assert run("learn", path, export).stdout.startswith("8 added")
    assert run("learn", path, export).stdout.startswith("0 added, 8 skipped, 0 replaced")
    found = [json.loads(one) for one in run("predict", path, export, "--json").stdout.splitlines()]
    assert [one["label"] for one in found] == ["level", "upright"] * 4
    # Moved with its export, it is the same.
    (folder / "other").mkdir()
    for name in ("set", "upload", "export.json"):
        shutil.move(folder / name, folder / "other")
    export = folder / "other/export.json"
    assert run("learn", path, export).stdout.startswith("0 added, 8 skipped, 0 replaced")
    tasks[0]["annotations"] = [said(20, "upright")]
    export = written(folder / "other", tasks)
    assert run("learn", path, export).stdout.startswith("0 added, 7 skipped, 1 replaced")
    with knowmore.open(path) as store:
        assert store.records(["label-studio/20"])[0].label == "upright"
        assert store.verify().ok


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/data/upload/1/gone.png", "upload/1/gone.png' is not there. Copy the folder media/up"),
        ("/data/upload/../../a.png", "leads outside the folder of the export."),
        ("/data/local-files/?d=/etc/a.png", "leads outside the folder of the export."),
        ("/etc/a.png", "leads outside the folder of the export."),
        ("s3://bucket/a.png", "leads outside the folder of the export."),
        ("set/" + "a" * 300 + ".png", " is not there."),
        ("nothing", "has no picture: its data are 'image'."),
    ],
)
def test_pictures_that_are_not_beside_the_export(address, words, pictures):
    folder, tasks = pictures
    path = folder / "m.km"
    run("init", path, "--features", "phog")
    tasks = [*tasks, task(9, {"image": address}, said(29, "level"))]
    result = run("learn", path, written(folder, tasks))
    assert (result.exit_code, result.stdout[:7]) == (3, "8 added")
    assert words in result.stderr
