"""Answers to the page equal the library's; edits happen once, and are in the file."""

from __future__ import annotations

from urllib.parse import urlencode

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from studied import SQUARE, enter, studying, unpacked
from tolerance import RESIDUAL, SINGLE, rounded

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LSSVMClassifier,
)
from knowmore.insight import novelty, suspects
from knowmore.kernels import ChiSquared
from knowmore.web.drawing import Bounds, FieldGrid
from knowmore.web.studio import Studio
from knowmore.workbench import Predictor


def scene(n=30, d=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    y = np.array(["b", "c", "a"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    y[3] = "a" if y[3] != "a" else "b"
    return X, y


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "plane.km"
    with knowmore.open(path, GPClassifier(RBF(0.4), noise=0.05)) as store:
        store.add(*scene(), contributor="ann")
    return path


@pytest.fixture
def visitor(path):
    with studying(path) as door:
        yield enter(door)


def grid_rows(w=16, h=12):
    x, y = -1 + 2 * (np.arange(w) + 0.5) / w, -1 + 2 * (np.arange(h) + 0.5) / h
    return np.column_stack([np.tile(x, h), np.repeat(y, w)])


def assert_unknown(unknown, found):
    """What a field calls unknown is what is above the threshold, but for rounding."""
    above = found.values - found.threshold(0.95)
    clear = abs(above) > np.finfo(np.float32).eps * abs(found.values).max()
    assert clear.any()
    np.testing.assert_array_equal(unknown[clear], above[clear] > 0)


def same_field(visitor, path):
    """The field that is served, beside what the file says of the same rows."""
    header, (best, score, variance, unknown, second) = visitor.field()
    with knowmore.open(path) as store:
        X = grid_rows()
        model = store.model_
        want, spread = model.mean(X), model.variance(X)
        # What is served is rounded to float32, which exceeds the rounding of a solve here.
        gap = 4 * np.finfo(np.float32).eps * abs(want).max()
        assert header["classes"] == store.classes_.tolist()
        assert abs(score - want.max(axis=1)).max() <= gap
        assert abs(variance - spread).max() <= gap
        top = np.sort(want, axis=1)
        assert abs(second - top[:, -2]).max() <= gap
        clear = top[:, -1] - top[:, -2] > gap
        assert (best == want.argmax(axis=1))[clear].all()
        assert_unknown(unknown, novelty(store.estimator, X))
    return header


@pytest.mark.parametrize(
    "kind",
    [
        GPClassifier(),
        GPClassifier(RBF(0.2), 0.01),
        LinearGPClassifier(),
        ForestGPClassifier(RBF(0.3), 0.1, capacity=20),
    ],
)
def test_unknown_is_the_same_in_the_plane_on_the_desk_and_in_predictions(kind, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 2)) * 0.1 + np.array([[-0.6, -0.6], [0.6, -0.6], [0.0, 0.5]])[y]
    with knowmore.open(tmp_path / "m.km", kind) as store:
        store.add(X, y)
        studio = Studio(store)
        _, layers = unpacked(studio.field(FieldGrid(Bounds(-1, 1, -1, 1), 16, 12)))
        desk = Predictor(store, 0.05, keep=False)
        said = np.array([answer.unknown for answer in desk(grid_rows())])
        np.testing.assert_array_equal(layers[3].astype(bool), said)
        assert 0 < said.sum() < len(said)
        if isinstance(kind, GPClassifier):
            predicted = store.estimator.predict(grid_rows(), unknown=-1, rate=0.05)
            np.testing.assert_array_equal(predicted == -1, said)


def test_the_state_is_that_of_the_file(visitor, path):
    state = visitor.get("/api/state")
    with knowmore.open(path) as store:
        left = store.leave_one_out()
        right = (left.predicted == left.labels) & ~left.silent
        assert state["loo_accuracy"] == right.mean()
        assert state["log_evidence"] == rounded(store.log_marginal_likelihood())
        for one in state["classes"]:
            own = left.labels == one["label"]
            assert (one["count"], one["loo_accuracy"]) == (own.sum(), right[own].mean())
    assert (state["number"], state["n"], state["name"]) == (1, 30, "plane.km")
    assert state["settings"] == {
        "noise": 0.05,
        "length_scale": 0.4,
        "kernel": "RBF(length_scale=0.4)",
    }
    assert state["plane"]["axes"] == ["x0", "x1"]
    assert (state["undo"]["verb"], state["redo"]) == ("add", None)


def test_points_are_the_examples(visitor, path):
    found = visitor.get("/api/plane/points")
    X, y = scene()
    assert np.array_equal(np.column_stack([found["x"], found["y"]]), X)
    assert [found["labels"][one] for one in found["class"]] == y.tolist()
    with knowmore.open(path) as store:
        left = store.leave_one_out()
        assert found["ids"] == left.ids.tolist()
        assert found["wrong"] == (left.predicted != left.labels).astype(int).tolist()
        assert found["wrong"][3]


def test_the_field_follows_every_edit(visitor, path):
    same_field(visitor, path)
    status, answer = visitor.edit(verb="add", plane=[[0.2, 0.3], [-0.9, 0.9]], y=["new", "a"])
    assert (status, answer["number"], answer["n"], answer["ids"]) == (200, 2, 32, [30, 31])
    assert same_field(visitor, path)["number"] == 2
    for edit in [
        {"verb": "replace", "ids": [4], "plane": [[0.0, 0.0]]},
        {"verb": "relabel", "ids": [7, 30], "y": "c"},
        {"verb": "forget", "ids": [11], "confirm": True},
        {"verb": "undo"},
        {"verb": "add", "X": [[0.5, 0.5]], "y": ["b"]},
        {"verb": "undo"},
        {"verb": "redo"},
        {"verb": "settings", "noise": 0.2, "length_scale": 0.25},
    ]:
        status, answer = visitor.edit(**edit)
        if edit == {"verb": "undo"} and status == 422:
            assert answer["error"].startswith("The last edit, number 5, forgot 1 example(s)")
            continue
        assert status == 200, answer
        assert same_field(visitor, path)["number"] == answer["number"]
    with knowmore.open(path) as store:
        assert store.noise_ == 0.2
        assert repr(store.kernel_) == "RBF(length_scale=0.25)"
        assert 11 not in store.ids_
        entries = [one.verb for one in store.log()]
    assert entries == ["add", "add", "replace", "relabel", "forget", "add", "set_parameters"]
    found = visitor.get("/api/plane/check", **SQUARE, w=16, h=12)
    assert found["difference"] < RESIDUAL
    assert found["refit_ms"] > 0


def test_an_edit_brings_its_field(visitor, path):
    where = "/api/plane/edit?" + urlencode({**SQUARE, "w": 16, "h": 12})
    key = {"Idempotency-Key": "the same key"}
    asked = {"verb": "add", "plane": [[0.2, 0.3]], "y": ["a"]}
    status, body, _ = visitor("POST", where, asked, key)
    header, layers = unpacked(body)
    again, same = visitor.field()
    assert (status, header["number"], header["edit"]["ids"]) == (200, 2, [30])
    assert all(np.array_equal(a, b) for a, b in zip(layers, same, strict=True))
    assert header == again | {"edit": header["edit"]}
    same_field(visitor, path)
    # A repeated request gets the same answer, and the current field.
    visitor.edit(verb="relabel", ids=[30], y="c")
    status, body, _ = visitor("POST", where, asked, key)
    later, _ = unpacked(body)
    assert (status, later["number"], later["edit"]) == (200, 3, header["edit"])
    for wrong in (asked | {"y": []}, asked | {"plane": [[1, 2], [3, 4]]}):
        key = {"Idempotency-Key": "another key"}
        assert visitor("POST", where, wrong, key)[0] == 422
    assert visitor("POST", "/api/plane/edit?x0=1&x1=0&y0=0&y1=1", asked, key)[0] == 422
    assert visitor.get("/api/state")["number"] == 3


def test_settings_on_trial_write_nothing(visitor, path):
    header, (_, score, *_) = visitor.field(noise=1.0, length_scale=0.2)
    X, y = scene()
    other = GPClassifier(RBF(0.2), noise=1.0).fit(X, y)
    assert header["trial"]
    assert header["log_evidence"] == rounded(other.log_marginal_likelihood())
    assert np.allclose(score, other.model_.mean(grid_rows()).max(axis=1), atol=SINGLE)
    assert visitor.get("/api/state")["number"] == 1


def test_a_move_on_trial_writes_nothing(visitor):
    asked = {"ids": [4], "plane": [[0.9, 0.9]], **SQUARE, "w": 16, "h": 12}
    status, body = visitor.post("/api/plane/moved", asked)
    X, y = scene()
    other = GPClassifier(RBF(0.4), noise=0.05).fit(X, y).replace([4], [[0.9, 0.9]])
    header, (_, score, *_) = unpacked(body)
    assert (status, header["trial"]) == (200, True)
    assert np.allclose(score, other.model_.mean(grid_rows()).max(axis=1), atol=SINGLE)
    assert visitor.get("/api/state")["number"] == 1
    for wrong in ({"ids": [99]}, {"ids": [4, 5]}, {"x1": -1}):
        assert visitor.post("/api/plane/moved", asked | wrong)[0] == 422


def test_an_edit_happens_once(visitor):
    edit = {"verb": "add", "plane": [[0.1, 0.1]], "y": ["a"]}
    first = visitor.edit(key="the same key", **edit)
    assert first == visitor.edit(key="the same key", **edit)
    assert visitor.get("/api/state")["n"] == 31
    status, body = visitor.edit(key="the same key", verb="undo")
    assert status == 422
    assert body["error"] == "This idempotency key was used for another edit. Make a new one."
    status, body, _ = visitor("POST", "/api/edit", edit)
    assert status == 422
    assert body["error"].startswith("Idempotency-Key:")


@pytest.mark.slow(fast=8)
@pytest.mark.parametrize(
    "edit",
    [
        {"verb": "add", "y": ["a"]},
        {"verb": "add", "plane": [[0, 0]], "X": [[0, 0]], "y": ["a"]},
        {"verb": "add", "plane": [[0, 0]], "y": ["a", "b"]},
        {"verb": "add", "X": [[0, 0], [1]], "y": ["a", "b"]},
        {"verb": "add", "X": [[0, 0, 0]], "y": ["a"]},
        {"verb": "add", "plane": [[0, 0]], "y": [7]},
        {"verb": "add", "plane": [[0, 0]], "y": ["\ud800"]},
        {"verb": "add", "plane": [[1e308, -1e308]], "y": ["a"]},
        {"verb": "forget", "ids": [1]},
        {"verb": "forget", "confirm": True},
        {"verb": "forget", "ids": [99], "confirm": True},
        {"verb": "forget", "contributor": "nobody", "ids": [1], "confirm": True},
        {"verb": "relabel", "ids": [99], "y": "a"},
        {"verb": "relabel", "ids": [1, 2], "y": ["a"]},
        {"verb": "relabel", "ids": [1, 1], "y": "a"},
        {"verb": "relabel", "ids": [], "y": "a"},
        {"verb": "replace", "ids": [1], "X": [[None, 1]]},
        {"verb": "settings", "noise": -1},
        {"verb": "settings", "length_scale": 0},
        {"verb": "redo"},
        {"verb": "shrink"},
        {"verb": "undo", "more": 1},
        {"verb": "scene", "name": "sunset"},
        {},
        [],
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_and_not_done(visitor, edit):
    headers = {"Idempotency-Key": "a key of its own"}
    status, body, _ = visitor("POST", "/api/edit", edit, headers)
    assert (status, set(body)) == (422, {"error"})
    assert body["error"]
    assert visitor.get("/api/state")["number"] == 1


@pytest.mark.slow(fast=2)
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a": 1' + b"0" * 5000])
def test_what_is_no_json_is_said(visitor, body):
    headers = {"Idempotency-Key": "a key of its own"}
    assert visitor("POST", "/api/edit", body, headers)[0] == 422


def test_a_full_disk_loses_nothing(visitor, path, little_room):
    rows = [[0.001 * i, 0.5] for i in range(4000)]
    with little_room(path.stat().st_size + 1):
        status, body = visitor.edit(verb="add", plane=rows, y=["a"] * len(rows))
    assert status == 507
    assert body["error"]
    assert visitor.get("/api/state")["n"] == 30
    status, answer = visitor.edit(verb="add", plane=[[0.1, 0.1]], y=["a"])
    assert (status, answer["n"]) == (200, 31)
    with knowmore.open(path) as store:
        assert len(store) == 31
        assert store.verify().ok


@pytest.mark.parametrize("name", ["moons", "spiral", "blobs", "island"])
def test_scenes(tmp_path, name):
    path = tmp_path / "empty.km"
    knowmore.open(path, GPClassifier(RBF(0.3), noise=0.05)).close()
    with studying(path) as door:
        visitor = enter(door)
        assert visitor.get("/api/state")["plane"]["possible"]
        assert visitor.field()[0]["classes"] == []
        assert visitor.get("/api/plane/points")["ids"] == []
        status, answer = visitor.edit(verb="scene", name=name)
        assert (status, answer["number"]) == (200, 1)
        assert visitor.get("/api/state")["loo_accuracy"] > 0.9
        same_field(visitor, path)
        _, again = visitor.edit(verb="scene", name=name, clear=True)
        assert again["n"] == answer["n"]
        assert not {*again["ids"]} & {*answer["ids"]}
    with knowmore.open(path) as store:
        assert [one.verb for one in store.log()] == ["scene", "forget", "scene"]


@pytest.mark.parametrize(
    "estimator",
    [LSSVMClassifier(), LinearGPClassifier(), ForestGPClassifier()],
    ids=lambda one: type(one).__name__,
)
def test_every_kind_of_classifier_is_drawn(tmp_path, estimator):
    path = tmp_path / "other.km"
    with knowmore.open(path, estimator) as store:
        store.add(*scene())
        want = store.predict(grid_rows())
    with studying(path) as door:
        visitor = enter(door)
        header, (best, *_) = visitor.field()
        assert [header["classes"][one] for one in best] == want.tolist()
        assert visitor.get("/api/state")["loo_accuracy"] is not None
        assert visitor.edit(verb="add", plane=[[0, 0]], y=["a"])[0] == 200
        assert visitor.field()[0]["number"] == 2


def test_values_have_no_plane(tmp_path):
    path = tmp_path / "values.km"
    with knowmore.open(path, GPRegressor()) as store:
        store.add(scene()[0], scene()[0][:, 0])
    with studying(path) as door:
        visitor = enter(door)
        assert not visitor.get("/api/state")["plane"]["possible"]
        status, body, _ = visitor("GET", "/api/plane/points")
        assert status == 422
        assert body["error"] == (
            "This model has no plane: that takes classes and at least two features."
        )


@pytest.mark.parametrize("width", [1, 2])
def test_values_are_explained_by_no_class(tmp_path, width):
    path = tmp_path / "values.km"
    with knowmore.open(path, GPRegressor()) as store:
        store.add(scene()[0], scene()[0][:, :width].squeeze())
    with studying(path) as door:
        status, body, _ = enter(door)("GET", "/api/explain?id=0")
    assert (status, body["error"]) == (422, "A model of values has no classes to explain.")


def test_many_features_have_a_plane_that_stays(tmp_path):
    path, (X, y) = tmp_path / "wide.km", scene(60, 7)
    with knowmore.open(path, GPClassifier()) as store:
        store.add(X, y)
    with studying(path) as door:
        visitor = enter(door)
        state = visitor.get("/api/state")
        assert state["plane"]["by"] == "discriminants"
        before = visitor.get("/api/plane/points")
        status, answer = visitor.edit(verb="add", plane=[[0.3, -0.2]], y=["a"])
        assert status == 200
        assert visitor.edit(verb="replace", ids=[5], plane=[[1.0, 2.0]])[0] == 200
        after = visitor.get("/api/plane/points")
        places = {
            one: (x, y) for one, x, y in zip(after["ids"], after["x"], after["y"], strict=True)
        }
        assert places[answer["ids"][0]] == rounded((0.3, -0.2))
        assert places[5] == rounded((1.0, 2.0))
        for one, x, y in zip(before["ids"], before["x"], before["y"], strict=True):
            assert one == 5 or places[one] == (x, y)
        assert visitor.field()[0]["number"] == 3
    with knowmore.open(path) as store:
        moved = store.examples.X[store.examples.rows((5,))[0]]
        # What the plane does not show has not changed.
        assert np.linalg.matrix_rank(np.vstack([moved - X[5], np.zeros(7)])) == 1


def test_what_if(visitor, path):
    status, found = visitor.post("/api/whatif", {"verb": "relabel", "ids": [3, 8], "y": "c"})
    X, y = scene()
    before = GPClassifier(RBF(0.4), noise=0.05).fit(X, y)
    then = GPClassifier(RBF(0.4), noise=0.05).fit(X, y).relabel([3, 8], "c")
    first, second = before.leave_one_out(), then.leave_one_out()
    changed = first.predicted != second.predicted
    assert status == 200
    assert [one["id"] for one in found["flips"]] == first.ids[changed].tolist()
    assert [one["to"] for one in found["flips"]] == second.predicted[changed].tolist()
    assert found["accuracy_before"] == (first.predicted == first.labels).mean()
    assert found["accuracy_after"] == (second.predicted == second.labels).mean()
    assert visitor.post("/api/whatif", {"verb": "forget", "ids": [99]})[0] == 422
    assert visitor.post("/api/whatif", {"verb": "forget", "ids": [*range(29)]})[0] in (200, 422)
    assert visitor.get("/api/state")["number"] == 1


def test_suspects_are_ranked_again_after_an_answer(visitor, path):
    found = visitor.get("/api/suspects")
    with knowmore.open(path) as store:
        want = suspects(store.estimator)
    assert [one["id"] for one in found["suspects"]] == want.ids.tolist()
    assert [one["preferred"] for one in found["suspects"]] == want.preferred.tolist()
    first = found["suspects"][0]
    assert first["contradicting"] == [*want.contradicting[0]]
    assert (first["shown"]["kind"], first["shown"]["count"]) == ("features", 2)
    assert list(first["shown"]["values"]) == ["x0", "x1"]
    visitor.edit(verb="relabel", ids=[first["id"]], y=first["preferred"])
    again = visitor.get("/api/suspects")
    with knowmore.open(path) as store:
        want = suspects(store.estimator)
    assert [one["id"] for one in again["suspects"]] == want.ids.tolist()
    assert first["id"] not in [one["id"] for one in again["suspects"]]


def test_what_was_listed_can_be_asked_about_after_others_were_mended(visitor):
    found = visitor.get("/api/suspects")
    right = visitor.get("/api/state")["loo_accuracy"]
    assert found["otherwise"] == round((1 - right) * visitor.get("/api/state")["n"])
    ids = [one["id"] for one in found["suspects"]]
    first, second = found["suspects"][:2]

    def listed():
        status, answer = visitor.post("/api/suspects/listed", {"ids": [*ids, 9999]})
        assert status == 200
        return {one["id"]: (one["label"], one["kept"]) for one in answer["listed"]}

    assert listed() == {one["id"]: (one["label"], False) for one in found["suspects"]}
    visitor.edit(verb="relabel", ids=[first["id"]], y=first["preferred"])
    visitor.edit(verb="keep", ids=[second["id"]])
    after = listed()
    assert after[first["id"]] == (first["preferred"], False)
    assert after[second["id"]] == (second["label"], True)
    visitor.edit(verb="forget", ids=[second["id"]], confirm=True)
    assert second["id"] not in listed()


def test_a_kept_label_is_no_suspect_until_it_changes(visitor, path):
    def listed():
        found = visitor.get("/api/suspects")
        return [one["id"] for one in found["suspects"]], found["total"], found["kept"]

    ids, total, kept = listed()
    assert (len(ids), kept) == (total, 0)
    number = visitor.get("/api/state")["number"]
    status, done = visitor.edit(verb="keep", ids=ids[:1])
    assert (status, done["number"], done["ids"]) == (200, number, ids[:1])
    assert listed() == (ids[1:], total - 1, 1)
    with knowmore.open(path) as store:
        assert store.kept_.tolist() == ids[:1]
        label = store.records(ids[:1])[0].label
    visitor.edit(verb="keep", ids=ids[:1], kept=False)
    assert listed() == (ids, total, 0)
    visitor.edit(verb="keep", ids=ids[:1])
    other = next(
        one["label"] for one in visitor.get("/api/state")["classes"] if one["label"] != label
    )
    visitor.edit(verb="relabel", ids=ids[:1], y=other)
    visitor.edit(verb="relabel", ids=ids[:1], y=label)
    assert listed() == (ids, total, 0)
    visitor.edit(verb="keep", ids=ids[:1])
    visitor.edit(verb="forget", ids=ids[:1], confirm=True)
    with knowmore.open(path) as store:
        assert store.kept_.tolist() == []
    assert listed()[2] == 0


def test_the_plane_of_histograms_stays_among_histograms(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "bags.km"
    y = np.repeat(["a", "b", "c"], 10)
    X = rng.dirichlet(np.ones(12), 30) + 2 * np.eye(12)[np.repeat([0, 1, 2], 10)]
    with knowmore.open(path, GPClassifier()) as store:
        store.add(X / X.sum(axis=1, keepdims=True), y)
        assert isinstance(store.kernel_, ChiSquared)
    with studying(path) as door:
        visitor = enter(door)
        bounds = visitor.get("/api/state")["plane"]["bounds"]
        content = visitor.get("/api/plane/field", w=16, h=12, **bounds)
        assert len(unpacked(content)[1][0]) == 16 * 12
        corner = [[bounds["x0"], bounds["y0"]]]
        assert visitor.edit(verb="add", plane=corner, y=["b"])[0] == 200
    with knowmore.open(path) as store:
        assert store.examples.X[-1].min() == 0


@pytest.mark.parametrize(
    ("estimator", "settings", "words"),
    [
        (LinearGPClassifier(), {"length_scale": 0.3}, "linear has no length scale to set"),
        (LSSVMClassifier(RBF(0.5)), {"noise": 0.3}, "has no noise to set"),
    ],
)
def test_a_setting_that_the_kind_has_not_is_refused(tmp_path, estimator, settings, words):
    with knowmore.open(tmp_path / "m.km", estimator) as store:
        store.add(*scene())
    with studying(tmp_path / "m.km") as door:
        visitor = enter(door)
        status, body = visitor.edit(verb="settings", **settings)
        assert (status, words in body["error"]) == (422, True), body
        query = urlencode({**SQUARE, "w": 8, "h": 8, **settings})
        assert visitor("GET", f"/api/plane/field?{query}")[0] == 422


@pytest.mark.parametrize("estimator", [LinearGPClassifier(), GPRegressor(RBF(0.5))])
def test_a_scene_that_cannot_be_learnt_forgets_nothing(tmp_path, estimator):
    X, _ = scene()
    y = X[:, 0] if isinstance(estimator, GPRegressor) else (X[:, 0] > 0).astype(int)
    with knowmore.open(tmp_path / "m.km", estimator) as store:
        store.add(X * 1e-6, y)
    with studying(tmp_path / "m.km") as door:
        visitor = enter(door)
        assert visitor.edit(verb="scene", name="spiral", clear=True)[0] == 422
        assert visitor.get("/api/state")["n"] == 30


def test_a_scene_may_have_labels_of_another_type(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(np.eye(2), [0, 1])
    with studying(tmp_path / "m.km") as door:
        visitor = enter(door)
        assert visitor.edit(verb="scene", name="moons", clear=True)[0] == 200
        assert visitor.post("/api/verify", {})[1]["ok"]
    with knowmore.open(tmp_path / "m.km") as store:
        assert store.classes_.dtype.kind == "U"
