"""A real Label Studio teaches models of numbers and of pictures, and shows what they suggest.

What the models say afterwards is compared with models that were only ever taught what is left.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from labelled import COMMAND, label_studio, served
from tolerance import ITERATED, close

import knowmore
from knowmore.estimators import unnamed

pytest.importorskip("uvicorn")
images = pytest.importorskip("PIL.Image")
if not COMMAND:
    pytest.skip(
        "needs Label Studio, at KNOWMORE_LABEL_STUDIO or on the PATH: see docs/serving.md",
        allow_module_level=True,
    )

TOKEN = "a-token-of-many-letters"
CLASSES = '<Choices name="kind" toName="it"><Choice value="{}"/><Choice value="{}"/></Choices>'
NUMBERS = '<View><Text name="it" value="$text"/>' + CLASSES.format("near", "far") + "</View>"
PICTURES = '<View><Image name="it" value="$image"/>' + CLASSES.format("upright", "level")
PICTURES += "</View>"


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with label_studio(tmp_path_factory.mktemp("label-studio")) as found:
        yield found


def knowmore_says(*words):
    """What the command prints."""
    command = [sys.executable, "-m", "knowmore", *map(str, words)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def soon(holds):
    """Wait until this holds: Label Studio does not wait for its webhooks for long."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def held(path):
    """The labels and the origins of the examples from Label Studio, by their numbers."""
    with knowmore.open(path) as store:
        return {
            int(one.id.partition("/")[2]): (one.label, one.origin)
            for one in store.records()
            if str(one.id).startswith("label-studio/")
        }


def assert_equals_a_new_model(path, fresh, rows):
    """That a file keeps the law, and answers as one that was taught nothing else."""
    with knowmore.open(path) as one, knowmore.open(fresh) as other:
        assert one.verify().ok
        found, wanted = (unnamed(store.estimator).predict_proba(rows) for store in (one, other))
        assert found.ravel() == close(wanted.ravel(), ITERATED)


def taught(studio, path, project, tasks, choices, printed):
    """Annotate, change, delete and delete the task; what is left, by the annotation's number."""
    first, second, third, fourth, *rest = tasks
    one, other = choices
    made = {task: studio.annotate(task, one) for task in (first, second, third, fourth)}
    twice = studio.annotate(fourth, one)
    soon(lambda: set(held(path)) == {*made.values(), twice})
    assert held(path)[made[first]] == (one, f"label-studio/task/{first}")
    entries = len(log(path))
    studio.change(made[first], one)
    studio.change(made[first], other)
    soon(lambda: held(path)[made[first]][0] == other)
    # What said nothing new is no entry of the journal.
    assert len(log(path)) == entries + 1
    studio("DELETE", f"/api/annotations/{made[second]}/")
    soon(lambda: made[second] not in held(path))
    studio("DELETE", f"/api/tasks/{fourth}")
    soon(lambda: set(held(path)) == {made[first], made[third]})
    for number in (made[second], made[fourth], twice):
        assert f"label-studio/{number}".encode() not in path.read_bytes()
    assert [entry.verb for entry in log(path)][entries:] == ["learn", "forget", "forget"]
    suggestions = studio.suggestions(project)
    assert all(suggestions[task] in choices for task in rest), suggestions
    assert "refused" not in printed.read_text()
    assert "was not learnt" not in printed.read_text()
    assert "no suggestion" not in printed.read_text()
    return made, suggestions


def log(path):
    with knowmore.open(path) as store:
        return store.log()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["JSON", "JSON_MIN"])
def test_numbers(form, studio, tmp_path):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(8, 2)), rng.normal(size=(8, 2)) + 4])
    labels = np.repeat(["near", "far"], 8)
    path, fresh, again = (tmp_path / f"{name}.km" for name in ("m", "fresh", "again"))
    for one in (path, fresh, again):
        with knowmore.open(one, knowmore.GPClassifier()) as store:
            store.add(rows, labels, columns=["x0", "x1"])
    data = [{"x0": i, "x1": i, "text": f"task {i}"} for i in range(6)]
    with served(path, TOKEN) as (address, printed):
        project = studio.project("Numbers", NUMBERS, address)
        studio("POST", f"/api/projects/{project}/import", data)
        tasks = studio.tasks(project)
        _, suggestions = taught(studio, path, project, tasks, ("near", "far"), printed)
    first, _, third, *_ = tasks
    with knowmore.open(fresh) as store:
        left = [[tasks[one]["data"][name] for name in ("x0", "x1")] for one in (first, third)]
        store.add(np.array(left, dtype=float), ["far", "near"])
        estimator = unnamed(store.estimator)
        answers = dict(zip(tasks, estimator.predict([[i, i] for i in range(6)]), strict=True))
        assert {one: answers[one] for one in suggestions} == suggestions
    assert_equals_a_new_model(path, fresh, rows)
    # The export says what the messages said.
    export = tmp_path / "export.json"
    export.write_text(json.dumps(studio.export(project, form)))
    assert knowmore_says("learn", path, export, "--label", "kind").startswith("0 added, 2 skipped")
    assert knowmore_says("learn", again, export, "--label", "kind").startswith("2 added")
    assert held(again) == held(path)
    assert_equals_a_new_model(path, again, rows)


def stripes(upright, phase):
    """A picture, as the bytes of a PNG file."""
    y, x = np.mgrid[:48, :64]
    rng = np.random.default_rng(int(10 * phase))
    pixels = 128 + 80 * np.sin((x if upright else y) / 2 + phase) + 10 * rng.normal(size=x.shape)
    file = io.BytesIO()
    images.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.slow
def test_pictures(studio, tmp_path):
    for name in ("upright", "level"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(6):
            (tmp_path / f"photos/{name}/{i}.png").write_bytes(stripes(name == "upright", i))
    path, fresh = tmp_path / "m.km", tmp_path / "fresh.km"
    knowmore_says("init", path, "--words", 20)
    knowmore_says("learn", path, tmp_path / "photos")
    fresh.write_bytes(path.read_bytes())
    pictures = {f"p{i}.png": stripes(i % 2 == 0, i + 0.5) for i in range(6)}
    # Tokens of the older kind are off, as they are in a new Label Studio.
    env = {"LABEL_STUDIO_URL": studio.address, "LABEL_STUDIO_API_KEY": studio.token}
    with served(path, TOKEN, env) as (address, printed):
        project = studio.project("Pictures", PICTURES, address)
        names = studio.upload(project, pictures)
        # In this order: the first is relabelled, and right then.
        tasks = [names[f"p{i}.png"] for i in (1, 4, 0, 2, 3, 5)]
        made, suggestions = taught(studio, path, project, tasks, ("upright", "level"), printed)
        assert suggestions[names["p3.png"]] == suggestions[names["p5.png"]] == "level"
    # The export beside the uploads teaches the same.
    export = tmp_path / "export.json"
    export.write_text(json.dumps(studio.export(project, "JSON")))
    for number in (0, 1):
        address = studio.tasks(project)[names[f"p{number}.png"]]["data"]["image"]
        file = tmp_path / address.removeprefix("/data/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pictures[f"p{number}.png"])
    assert knowmore_says("learn", path, export).startswith("0 added, 2 skipped, 0 replaced")
    assert knowmore_says("learn", fresh, export).startswith("2 added")
    assert (
        held(fresh)
        == held(path)
        == {
            made[tasks[0]]: ("level", f"label-studio/task/{tasks[0]}"),
            made[tasks[2]]: ("upright", f"label-studio/task/{tasks[2]}"),
        }
    )
    with knowmore.open(path) as store:
        rows = store.examples.X
    assert_equals_a_new_model(path, fresh, rows)


TEXTS = '<View><Text name="it" value="$body"/>' + CLASSES.format("praise", "complaint") + "</View>"
PRAISE = ["a lovely lamp", "works well, lovely", "a good lamp, thank you", "lovely and good"]
COMPLAINT = ["it broke at once", "broken, send it back", "it never worked", "came broken"]


@pytest.mark.slow
def test_texts(studio, tmp_path):
    pytest.importorskip("knowmore.texts", reason="needs models of texts")
    for name, texts in {"praise": PRAISE, "complaint": COMPLAINT}.items():
        (tmp_path / "letters" / name).mkdir(parents=True)
        for i, text in enumerate(texts):
            (tmp_path / f"letters/{name}/{i}.txt").write_text(text)
    path, fresh = tmp_path / "m.km", tmp_path / "fresh.km"
    for one in (path, fresh):
        knowmore_says("learn", one, tmp_path / "letters")
    texts = ["good lamp", "lovely", "broken", "it broke", "broken lamp", "good"]
    data = [{"body": text, "number": i} for i, text in enumerate(texts)]
    with served(path, TOKEN) as (address, printed):
        project = studio.project("Texts", TEXTS, address)
        studio("POST", f"/api/projects/{project}/import", data)
        tasks = studio.tasks(project)
        choices = "praise", "complaint"
        made, suggestions = taught(studio, path, project, tasks, choices, printed)
    assert len(suggestions) == 5
    export = tmp_path / "export.json"
    export.write_text(json.dumps(studio.export(project, "JSON")))
    assert knowmore_says("learn", path, export).startswith("0 added, 2 skipped, 0 replaced")
    assert knowmore_says("learn", fresh, export).startswith("2 added")
    first, _, third, *_ = tasks
    assert set(held(path)) == {made[first], made[third]}
    assert held(fresh) == held(path)
    with knowmore.open(path) as store:
        assert store.verify().ok
        rows = store.examples.X
    assert_equals_a_new_model(path, fresh, rows)


@pytest.mark.slow
def test_a_token_of_the_older_kind_is_refused_with_words(studio, tmp_path):
    """A picture that cannot be fetched spoils nothing, and whoever serves reads why."""
    for name in ("upright", "level"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / f"photos/{name}/1.png").write_bytes(stripes(name == "upright", 1))
    path = tmp_path / "m.km"
    knowmore_says("init", path, "--words", 5)
    knowmore_says("learn", path, tmp_path / "photos")
    with served(path, TOKEN) as (address, printed):
        project = studio.project("Refused", PICTURES, address)
        names = studio.upload(project, {"p.png": stripes(True, 2)})
        assert studio.suggestions(project) == {names["p.png"]: None}
        studio.annotate(names["p.png"], "upright")
        soon(lambda: "was not learnt" in printed.read_text())
    task = f"knowmore: task {names['p.png']}"
    told = [one for one in printed.read_text().splitlines() if one.startswith(task)]
    why = "could not be fetched. Label Studio refused the token. Make a personal access token"
    assert told[0].startswith(f"{task} gets no suggestion: '/data/upload/")
    assert told[1].startswith(f"{task}, annotation ")
    assert all(why in one for one in told[:2])
    assert held(path) == {}
