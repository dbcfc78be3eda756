"""Events tell every page what happened; the journal leads back to every state."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from studied import enter, studying
from tolerance import RESIDUAL

import knowmore
from knowmore import GPClassifier, LinearGPClassifier
from knowmore.errors import InvalidInput
from knowmore.store import past
from knowmore.web.snapshot import Snapshot


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "plane.km"
    with knowmore.open(path, GPClassifier(RBF(0.4), noise=0.05)) as store:
        store.add([[0.0, 0.1], [0.5, 0.5], [0.7, 0.6]], ["a", "b", "b"], contributor="ann")
    return path


@pytest.fixture
def visitor(path):
    with studying(path) as door:
        yield enter(door)


def test_every_tab_hears_of_every_edit(visitor):
    with visitor.listening() as one, visitor.listening() as other:
        visitor.edit(verb="add", plane=[[0.2, 0.2]], y=["a"])
        want = {"number": 2, "verb": "add", "count": 1, "n": 4}
        for following in (one, other):
            assert following() == (2, "edit", want)
        visitor.edit(verb="undo")
        number, name, data = one()
        assert (number, name, data["verb"], data["number"], data["n"]) == (1, "edit", "undo", 1, 3)
        visitor.edit(verb="redo")
        assert one()[2]["verb"] == "redo"


@pytest.mark.slow
def test_edits_of_other_processes_are_heard_and_seen(visitor, path):
    with visitor.listening() as following, knowmore.open(path) as store:
        store.add([[0.9, 0.9]], ["c"], contributor="bob")
        number, _, data = following()
        assert (number, data["verb"], data["n"]) == (2, "add", 4)
        store.forget(0)
        assert following()[2]["verb"] == "forget"
    assert visitor.get("/api/plane/points")["ids"] == [1, 2, 3]
    assert [one["label"] for one in visitor.get("/api/state")["classes"]] == ["b", "c"]


def test_a_page_that_was_away_catches_up(visitor):
    for i in range(3):
        visitor.edit(verb="add", plane=[[0.2, 0.1 * i]], y=["a"])
    with visitor.listening(last=2) as following:
        assert [following()[0] for _ in range(2)] == [3, 4]
    # What happened before the studio was opened is in the journal.
    with visitor.listening(after=0) as following:
        assert [following()[0] for _ in range(4)] == [1, 2, 3, 4]
    visitor.edit(verb="undo")
    visitor.edit(verb="undo")
    with visitor.listening(last=4) as following:
        assert [following()[2]["number"] for _ in range(2)] == [3, 2]
    with visitor.listening(last=17) as following:
        assert following()[1] == "resync"
    with visitor.listening(last=2) as following:
        visitor.edit(verb="add", plane=[[0.3, 0.3]], y=["b"])
        assert following()[0] == 5


def test_after_a_restart_what_stands_is_told_and_what_was_overwritten_is_not(visitor, path):
    visitor.edit(verb="add", plane=[[0.2, 0.2]], y=["a"])
    visitor.edit(verb="undo")
    visitor.edit(verb="add", plane=[[0.3, 0.3]], y=["a"])
    with studying(path) as door:
        again = enter(door)
        with again.listening(last=1) as following:
            assert following()[:2] == (3, "edit")
        with again.listening(last=2) as following:
            assert following()[:2] == (3, "resync")


def test_the_journal(visitor):
    visitor.edit(verb="relabel", ids=[0], y="b")
    visitor.edit(verb="undo")
    found = visitor.get("/api/log")
    assert found["number"] == 1
    assert [(one["verb"], one["undone"]) for one in found["entries"]] == [
        ("add", False),
        ("relabel", True),
    ]


def history(store):
    """Edits of every kind, and after each the number of its entry and the scores of some rows."""
    rng = np.random.default_rng(1)
    Q = rng.uniform(-1, 1, (20, 2))
    steps = [
        lambda: store.add(rng.uniform(-1, 1, (6, 2)), list("aabbcc"), ids=[*range(10, 16)]),
        lambda: store.relabel([10, 11], "b"),
        lambda: store.replace([12], [[0.3, 0.3]]),
        lambda: store.set_parameters(noise=0.3),
        lambda: store.add([[0.9, -0.9]], ["a"], ids=[20]),
        lambda: store.relabel([20], "c"),
    ]
    states = {0: None}
    states[store.log()[-1].number] = store.estimator.model_.mean(Q), store.ids_.tolist()
    for step in steps:
        step()
        states[store.log()[-1].number] = store.estimator.model_.mean(Q), store.ids_.tolist()
    return Q, states


@pytest.mark.parametrize("undone", [0, 3])
def test_every_state_of_the_journal_is_the_exact_model(path, undone):
    with knowmore.open(path) as store:
        Q, states = history(store)
        for _ in range(undone):
            store.undo()
        now = store.ids_.tolist()
        for number, was in states.items():
            found = past(store, number)
            if was is None:
                assert found.estimator is None
                continue
            scores, ids = was
            assert found.examples.ids.tolist() == ids
            assert np.allclose(found.estimator.model_.mean(Q), scores, atol=RESIDUAL)
        assert store.ids_.tolist() == now
        with pytest.raises(InvalidInput, match="The journal has no entry 99: it was never there"):
            past(store, 99)


def test_linear_models_have_a_past_too(tmp_path):
    with knowmore.open(tmp_path / "linear.km", LinearGPClassifier()) as store:
        store.add([[0.0, 0.1], [0.5, 0.5], [0.7, 0.6]], ["a", "b", "b"])
        scores = store.decision_function([[0.2, 0.3]])
        store.relabel([1], "a")
        found = past(store, 1)
        assert np.array_equal(found.estimator.decision_function([[0.2, 0.3]]), scores)


def test_what_was_forgotten_is_in_no_state(visitor, path):
    with knowmore.open(path) as store:
        _, states = history(store)
    visitor.edit(verb="forget", ids=[12], confirm=True)
    for number, was in states.items():
        status, found = visitor.post("/api/state-at", {"number": number})
        assert (status, found["forgotten"]) == (200, True)
        ids = [] if was is None else [one for one in was[1] if one != 12]
        assert found["points"]["ids"] == ids
        assert found["n"] == len(ids)
    assert visitor.field(at=2)[0]["number"] == 2
    assert visitor.post("/api/state-at", {"number": 99})[0] == 422
    assert visitor.field(at=0)[0]["classes"] == []


def test_a_contributor_is_forgotten_with_a_certificate(visitor, path):
    rows = [[0.1 * i, -0.5] for i in range(5)]
    visitor.edit(verb="add", plane=rows, y=["a", "a", "b", "b", "c"], contributor="eve")
    status, found = visitor.post("/api/preview-forget", {"contributor": "eve"})
    assert (status, found["count"]) == (200, 5)
    with knowmore.open(path) as store:
        left = store.leave_one_out()
        eve = [one.id for one in store.records() if one.contributor == "eve"]
        then = store.estimator.remove(eve).leave_one_out()
        before = dict(zip(left.ids.tolist(), left.predicted.tolist(), strict=True))
        after = dict(zip(then.ids.tolist(), then.predicted.tolist(), strict=True))
    assert {one["id"]: one["to"] for one in found["flips"]} == {
        one: label for one, label in after.items() if before[one] != label
    }
    assert visitor.post("/api/preview-forget", {"contributor": "nobody"})[0] == 422
    assert visitor.edit(verb="forget", contributor="eve", confirm=True)[1]["n"] == 3
    status, certificate = visitor.post("/api/verify", {})
    assert (status, certificate["ok"]) == (200, True)
    assert certificate["text"]
    status, body = visitor.post("/api/preview-forget", {"contributor": "ann"})
    assert status == 422
    assert body["error"] == ("All examples are of this contributor: without them nothing is left.")


@pytest.mark.parametrize("estimator", [GPClassifier(), LinearGPClassifier()])
def test_what_forgetting_would_change_is_what_it_changes(tmp_path, estimator):
    """The width, or the grid, was chosen by all examples."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), rng.choice(["a", "b", "c"], 60)
    X[50:] *= 40
    y[50:] = "a"
    with knowmore.open(tmp_path / "m.km", estimator) as store:
        store.add(X, y, contributor=["ann"] * 50 + ["eve"] * 10)
        before = dict(zip(range(60), store.leave_one_out().predicted.tolist(), strict=True))
    with studying(tmp_path / "m.km") as door:
        visitor = enter(door)
        said = visitor.post("/api/preview-forget", {"contributor": "eve"})[1]
        visitor.edit(verb="forget", contributor="eve", confirm=True)
        state = visitor.post("/api/state-at", {"number": 1})[1]
    with knowmore.open(tmp_path / "m.km") as store:
        left = store.leave_one_out()
    after = dict(zip(left.ids.tolist(), left.predicted.tolist(), strict=True))
    flips = {one: label for one, label in after.items() if before[one] != label}
    assert len(flips) > 3
    assert {one["id"]: one["to"] for one in said["flips"]} == flips
    right = float(np.mean((left.predicted == left.labels) & ~left.silent))
    assert said["accuracy_after"] == right
    # The state before it is a fit of the same examples.
    assert (state["n"], state["loo_accuracy"]) == (50, right)


def test_the_journal_is_continued_only_while_it_stands(path):
    with knowmore.open(path) as store, knowmore.open(path) as other:
        now = Snapshot(store)
        steps = [
            lambda: other.add([[0.1, 0.9]], ["c"], contributor="bob"),
            lambda: other.relabel([0], "c"),
            other.undo,
            other.redo,
            other.undo,
            lambda: other.add([[0.2, 0.9]], ["a"], contributor="eve"),
            lambda: other.forget(contributor="bob"),
            lambda: other.relabel([1], "a"),
            other.undo,
        ]
        for step in steps:
            step()
            store.refresh()
            now = Snapshot(store, now)
            assert now.entries == store.log()
        assert "bob" not in [one.contributor for one in now.entries]
