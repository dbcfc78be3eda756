"""The table holds what the library says of each example, in the order that was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from studied import enter, studying

import knowmore
from knowmore import GPClassifier, GPRegressor, LinearGPClassifier

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 10))
Y = np.where(X[:, 0] > 0.3, "Pear", np.where(X[:, 1] > 0, "apple", "plum"))
NAMES = [*range(20, 0, -1), *(f"Bottle {i}" for i in range(40))]
KINDS = {"gp": lambda: GPClassifier(RBF(2.0)), "linear": LinearGPClassifier}


@pytest.fixture
def path(tmp_path, request):
    path = tmp_path / "rows.km"
    with knowmore.open(path, KINDS[getattr(request, "param", "gp")]()) as store:
        store.add(X[:20], Y[:20], NAMES[:20], contributor="ann")
        store.add(X[20:50], Y[20:50], NAMES[20:50], contributor="Zoë")
        store.add(X[50:], Y[50:], NAMES[50:])
        store.relabel([NAMES[7]], "plum")
    return path


@pytest.fixture
def visitor(path):
    with studying(path) as door:
        yield enter(door)


def asked(visitor, **body):
    status, found = visitor.post("/api/rows", body)
    assert status == 200, found
    return found


def every(visitor, **body):
    """All rows, page by page."""
    rows = []
    while True:
        found = asked(visitor, offset=len(rows), limit=17, **body)
        rows += found["rows"]
        if not found["rows"]:
            assert len(rows) == found["found"]
            return rows


@pytest.mark.parametrize("path", [*KINDS], indirect=True)
def test_every_example_is_there_with_what_the_others_say(visitor, path):
    rows = every(visitor)
    with knowmore.open(path) as store:
        left, records, examples = store.leave_one_out(), store.records(), store.examples
    assert [one["id"] for one in rows] == left.ids.tolist() == [one.id for one in records]
    assert [one["label"] for one in rows] == left.labels.tolist()
    assert [one["predicted"] for one in rows] == left.predicted.tolist()
    assert [one["contributor"] for one in rows] == [one.contributor for one in records]
    assert np.array_equal([one["values"] for one in rows], examples.X[:, :8])
    right = (left.predicted == left.labels) & ~left.silent
    assert [one["unseen"] == "right" for one in rows] == right.tolist()
    found = asked(visitor, first=8)
    assert (found["columns"], found["features"]) == (["x8", "x9"], 10)
    assert found["contributors"] == ["Zoë", "ann", ""]
    assert np.array_equal([one["values"] for one in found["rows"]], examples.X[:50, 8:])


KEYS = {
    "id": lambda one: (isinstance(one["id"], str), one["id"]),
    "label": lambda one: one["label"],
    "predicted": lambda one: one["predicted"],
    "contributor": lambda one: one["contributor"] or "",
    "unseen": lambda one: ("wrong", "silent", "right").index(one["unseen"]),
    3: lambda one: one["values"][3],
}


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("sort", [*KEYS])
def test_sorted_as_python_sorts(visitor, sort, down):
    plain, rows = every(visitor), every(visitor, sort=sort, down=down)
    assert rows == sorted(plain, key=KEYS[sort], reverse=down)


@pytest.mark.slow(fast=5)
@pytest.mark.parametrize(
    ("asks", "holds"),
    [
        ({"label": "plum"}, lambda one: one["label"] == "plum"),
        ({"label": 1}, lambda one: False),
        ({"contributor": "ann"}, lambda one: one["contributor"] == "ann"),
        ({"contributor": ""}, lambda one: one["contributor"] is None),
        ({"contributor": "nobody"}, lambda one: False),
        ({"unseen": "wrong"}, lambda one: one["unseen"] == "wrong"),
        ({"search": "PEAR"}, lambda one: "Pear" in (one["label"], one["predicted"])),
        ({"search": "zoË"}, lambda one: one["contributor"] == "Zoë"),
        ({"search": "bottle 3"}, lambda one: str(one["id"]).startswith("Bottle 3")),
        ({"search": "no such"}, lambda one: False),
        (
            {"search": "plum", "contributor": "ann", "unseen": "wrong", "sort": "id"},
            lambda one: (
                "plum" in (one["label"], one["predicted"])
                and one["contributor"] == "ann"
                and one["unseen"] == "wrong"
            ),
        ),
    ],
)
def test_only_what_was_asked_for(visitor, asks, holds):
    rows = every(visitor, **asks)
    found = [one for one in every(visitor, sort=asks.get("sort")) if holds(one)]
    assert rows == found


def test_the_table_follows_edits(visitor):
    before = every(visitor, label="plum")
    visitor.edit(verb="relabel", ids=[20], y="kiwi")
    assert [one["id"] for one in every(visitor, label="kiwi")] == [20]
    visitor.edit(verb="forget", ids=[19], confirm=True)
    assert asked(visitor)["total"] == 59
    visitor.edit(verb="add", X=[[0.0] * 10], y=["kiwi"])
    found = every(visitor, contributor="studio")
    assert [one["label"] for one in found] == ["kiwi"]
    assert len(before) >= len(every(visitor, label="plum"))


def test_what_cannot_be_asked(visitor):
    for body in (
        {"offset": -1},
        {"limit": 0},
        {"limit": 501},
        {"sort": "colour"},
        {"sort": -1},
        {"sort": 10},
        {"search": "x" * 201},
        {"unseen": "perhaps"},
        {"path": "/etc/passwd"},
        [],
    ):
        status, found = visitor.post("/api/rows", body)
        assert status == 422
        assert found["error"]
    assert asked(visitor, offset=2**53)["rows"] == []


def test_a_model_of_values_and_an_empty_one(tmp_path):
    path = tmp_path / "values.km"
    with knowmore.open(path, GPRegressor(RBF(1.0))) as store, studying(path) as door:
        visitor = enter(door)
        assert asked(visitor, sort="label", search="x")["rows"] == []
        store.add(X, X[:, 0])
        rows = every(visitor, sort="label")
        assert [one["label"] for one in rows] == sorted(X[:, 0].tolist())
        assert rows[0]["unseen"] is rows[0]["predicted"] is None
        assert every(visitor, unseen="right") == []


def test_a_linear_past_is_left_out_of_itself(tmp_path):
    path = tmp_path / "linear.km"
    with knowmore.open(path, LinearGPClassifier()) as store:
        store.add(X[:30], Y[:30])
        left = store.leave_one_out()
        store.add(X[30:], Y[30:])
    with studying(path) as door:
        then = enter(door).post("/api/state-at", {"number": 1})[1]
    right = (left.predicted == left.labels) & ~left.silent
    assert then["loo_accuracy"] == right.mean()


@pytest.mark.parametrize("path", [*KINDS], indirect=True)
def test_what_would_change_without_a_contributor(visitor, path):
    with knowmore.open(path) as store:
        before = store.leave_one_out()
        assert store.contributors() == [one.contributor for one in store.records()]
    status, found = visitor.post("/api/preview-forget", {"contributor": "ann"})
    assert (status, found["count"]) == (200, 20)
    assert visitor.edit(verb="forget", contributor="ann", confirm=True)[0] == 200
    with knowmore.open(path) as store:
        after = store.leave_one_out()
    was = dict(zip(before.ids.tolist(), before.predicted.tolist(), strict=True))
    now = dict(zip(after.ids.tolist(), after.predicted.tolist(), strict=True))
    assert {one["id"]: one["to"] for one in found["flips"]} == {
        one: label for one, label in now.items() if was[one] != label
    }
    right = (after.predicted == after.labels) & ~after.silent
    assert found["accuracy_after"] == right.mean()
    status, certificate = visitor.post("/api/verify", {})
    assert (status, certificate["ok"]) == (200, True)


@pytest.mark.parametrize("path", ["linear"], indirect=True)
def test_what_another_label_would_change_in_a_linear_model(visitor, path):
    found = visitor.post("/api/whatif", {"verb": "relabel", "ids": [20, 19], "y": "plum"})[1]
    visitor.edit(verb="relabel", ids=[20, 19], y="plum")
    with knowmore.open(path) as store:
        after = store.leave_one_out()
    right = (after.predicted == after.labels) & ~after.silent
    assert found["accuracy_after"] == right.mean()
