"""The widgets' Python side, by its messages: the estimator is what a fresh fit would be."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from importlib import import_module

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_solves

from knowmore import ForestGPClassifier, GPClassifier, LinearGPClassifier, LSSVMClassifier
from knowmore.errors import InvalidInput, MissingExtra
from knowmore.insight import suspects

pytest.importorskip("anywidget")

from knowmore.notebook import Inbox, Plane

SQUARE = "x0=-1&x1=1&y0=-1&y1=1&w=12&h=12"


class Page:
    """A stand-in for the browser of a widget: asks, and keeps the answers."""

    def __init__(self, widget, monkeypatch):
        self.widget, self.heard, self.answers = widget, [], {}
        monkeypatch.setattr(widget, "send", self.told)

    def told(self, content, buffers=()):
        if "heard" in content:
            self.heard.append(content["heard"])
        else:
            self.answers[content["id"]] = content["status"], bytes(buffers[0])

    def ask(self, path, body=None, **headers):
        number = str(len(self.answers))
        content = {"id": number, "path": path}
        if body is not None:
            content["method"], content["body"] = "POST", json.dumps(body)
            content["headers"] = {"Content-Type": "application/json", **headers}
        self.widget._handle_custom_msg(content, [])
        status, found = self.answers[number]
        return status, found if path.startswith("/api/plane/e") else json.loads(found)

    def edit(self, **body):
        key = {"Idempotency-Key": f"key number {len(self.answers)}"}
        status, found = self.ask("/api/edit", body, **key)
        assert status == 200, found
        return found


def fitted(estimator=None):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2))
    y = np.where(X[:, 0] > 0, "east", "west")
    X[4], y[4] = [0.8, 0.0], "west"
    return (estimator or GPClassifier(RBF(0.4), noise=0.1)).fit(X, y)


@pytest.fixture
def shown(monkeypatch):
    return lambda kind, estimator: Page(kind(estimator), monkeypatch)


def assert_fresh(clf):
    """The estimator is the batch fit of what it holds."""
    examples = clf._living.examples
    fresh = GPClassifier(clf.kernel_, noise=clf.noise_).fit(examples.X, examples.labels)
    Q = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    K = clf.kernel_(examples.X) + clf.noise_ * np.eye(len(examples))
    k = clf.kernel_(examples.X, Q)
    got, want = clf.model_.mean(Q), fresh.model_.mean(Q)
    assert_solves(got, want, K, fresh.model_.targets.T, left=k)
    assert clf.classes_.tolist() == fresh.classes_.tolist()


def test_every_message_is_an_exact_edit_of_the_estimator(shown):
    clf = fitted()
    page = shown(Plane, clf)
    before = clf.model_
    ids = page.edit(verb="add", plane=[[0.1, 0.2], [0.3, -0.4]], y=["south", "east"])["ids"]
    assert ids == [30, 31]
    assert_fresh(clf)
    page.edit(verb="replace", ids=[30], plane=[[-0.5, 0.5]])
    assert clf._living.examples.X[clf._living.examples.rows((30,))[0]].tolist() == [-0.5, 0.5]
    page.edit(verb="relabel", ids=[3], y="south")
    page.edit(verb="settings", noise=0.3, length_scale=0.5)
    assert (clf.noise_, clf.kernel_.length_scale) == (0.3, 0.5)
    assert_fresh(clf)
    for number in (3, 2, 1, 0):
        assert page.edit(verb="undo")["number"] == number
    assert clf.model_ is before
    for _ in range(4):
        page.edit(verb="redo")
    assert (clf.noise_, len(clf.ids_)) == (0.3, 32)
    assert_fresh(clf)
    status, answer = page.ask("/api/edit", {"verb": "redo"}, **{"Idempotency-Key": "once more"})
    assert (status, answer["error"]) == (422, "There is nothing to do again.")
    assert [one["verb"] for one in page.heard][:4] == [
        "add",
        "replace",
        "relabel",
        "set_parameters",
    ]


def test_what_is_forgotten_is_in_no_earlier_value(shown):
    clf = fitted()
    page = shown(Plane, clf)
    page.edit(verb="add", plane=[[0.77, 0.77]], y=["east"])
    held = weakref.ref(clf._living.examples)
    page.edit(verb="forget", ids=[30], confirm=True)
    status, answer = page.ask("/api/edit", {"verb": "undo"}, **{"Idempotency-Key": "take back"})
    assert (status, answer["error"][:24]) == (422, "There is nothing to undo")
    assert_fresh(clf)
    page.ask("/api/state")
    gc.collect()
    assert held() is None


def test_the_page_is_told_what_the_library_says(shown):
    clf = fitted()
    page = shown(Inbox, clf)
    status, found = page.ask("/api/suspects?limit=200")
    want = suspects(clf)
    assert (status, [one["id"] for one in found["suspects"]]) == (200, want.ids.tolist())
    state = page.ask("/api/state")[1]
    assert (state["name"], state["n"], state["number"]) == ("GPClassifier", 30, 0)
    status, body = page.ask(
        f"/api/plane/edit?{SQUARE}",
        {"verb": "relabel", "ids": [4], "y": want.preferred[0].item()},
        **{"Idempotency-Key": "an answer"},
    )
    length = int.from_bytes(body[:4], "little")
    assert (status, json.loads(body[4 : 4 + length])["edit"]["number"]) == (200, 1)
    assert 4 not in suspects(clf).ids


def test_a_kept_label_is_no_suspect_until_it_changes(shown):
    clf = fitted()
    page, other = shown(Inbox, clf), shown(Inbox, clf)

    def listed(inbox):
        return [one["id"] for one in inbox.ask("/api/suspects?limit=200")[1]["suspects"]]

    ids = listed(page)
    label = suspects(clf).labels[0].item()
    page.edit(verb="keep", ids=ids[:1])
    assert listed(page) == listed(other) == ids[1:]
    page.edit(verb="keep", ids=ids[:1], kept=False)
    assert listed(page) == ids
    page.edit(verb="keep", ids=ids[:1])
    page.edit(verb="relabel", ids=ids[:1], y="north")
    page.edit(verb="undo")
    assert listed(page) == ids[1:]
    clf.replace(ids[:1], clf.model_.examples.X[clf.model_.examples.rows((ids[0],))])
    assert listed(page) == ids
    page.edit(verb="keep", ids=ids[:1])
    page.edit(verb="forget", ids=ids[:1], confirm=True)
    clf.add([[0.5, 0.5]], [label], ids=ids[:1])
    state = page.ask("/api/suspects")[1]
    assert state["kept"] == 0


def test_two_widgets_and_a_cell(shown):
    clf = fitted()
    plane, inbox = shown(Plane, clf), shown(Inbox, clf)
    plane.edit(verb="relabel", ids=[4], y="east")
    assert [one["verb"] for one in inbox.heard] == ["relabel"]
    clf.add([[0.5, 0.5]], ["north"])
    state = inbox.ask("/api/state")[1]
    assert (state["n"], state["number"], state["undo"]["verb"]) == (31, 2, "edit")
    assert [one["number"] for one in plane.heard] == [1, 2]
    # What a cell did is not for a widget to take back.
    status, _ = inbox.ask("/api/edit", {"verb": "undo"}, **{"Idempotency-Key": "take back"})
    assert (status, len(clf.ids_)) == (422, 31)


@pytest.mark.parametrize("kind", [LSSVMClassifier, ForestGPClassifier])
def test_other_kinds(shown, kind):
    clf = fitted(kind(RBF(0.4)))
    page = shown(Plane, clf)
    page.edit(verb="add", plane=[[0.2, 0.2]], y=["east"])
    page.edit(verb="forget", ids=[7], confirm=True)
    assert len(clf.ids_) == len(page.ask("/api/plane/points")[1]["ids"]) == 30


def test_it_begins_with_nothing_and_keeps_the_names_of_columns(shown):
    clf = GPClassifier(RBF(0.3))
    page = shown(Plane, clf)
    assert page.ask("/api/state")[1]["n"] == 0
    page.edit(verb="add", plane=[[0.2, 0.2]], y=["A"])
    page.edit(verb="add", plane=[[-0.2, 0.2]], y=["B"])
    assert clf.predict([[0.2, 0.2]]).tolist() == ["A"]
    page.edit(verb="undo")
    page.edit(verb="undo")
    assert not hasattr(clf, "_living")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"length": [0.0, 1.0, 0.5], "width": [1.0, 0.0, 0.2]})
    named = GPClassifier().fit(table, ["a", "b", "b"])
    page = shown(Plane, named)
    assert page.ask("/api/state")[1]["plane"]["axes"] == ["length", "width"]
    page.edit(verb="add", plane=[[0.2, 0.2]], y=["a"])
    assert named.predict(table).tolist() == ["a", "b", "b"]
    assert named.feature_names_in_.tolist() == ["length", "width"]


def test_what_cannot_be_edited_is_refused():
    with pytest.raises(
        InvalidInput, match="edits a kernel or forest classifier, such as a GPClassifier, but got"
    ):
        Plane(LinearGPClassifier())


def test_without_the_extra_it_says_which(monkeypatch):
    monkeypatch.setattr("knowmore._base.machine.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "knowmore.notebook")
    with pytest.raises(MissingExtra, match="comes with the extra 'notebook'"):
        import_module("knowmore.notebook")


def test_an_estimator_knows_no_contributors(shown):
    page = shown(Plane, fitted())
    body = {"verb": "forget", "contributor": "ann", "confirm": True}
    status, found = page.ask("/api/edit", body, **{"Idempotency-Key": "a key of the test"})
    assert (status, found["error"].partition(".")[0]) == (
        422,
        "An estimator does not know who gave its examples",
    )


def test_classes_are_offered_in_a_notebook(shown):
    page = shown(Plane, GPClassifier())
    assert [one["label"] for one in page.ask("/api/state")[1]["offered"]] == ["A", "B"]
    assert page.ask("/api/classes", {"label": "frog"})[0] == 200
    assert page.ask("/api/state")[1]["offered"][2] == {"label": "frog", "slot": 2}
