"""A label that is refused: its example is put aside, exactly, and nothing proposes it again."""

from __future__ import annotations

from threading import Event, Thread

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded, tolerance

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    LinearGPClassifier,
    LSSVMClassifier,
)
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.workbench import open_suspects
from knowmore.workbench.learning import LearnOptions, learn

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
Y = np.where(X[:, 0] > 0, "a", "b")
IDS = [f"n{i}" for i in range(40)]
KERNEL, NOISE = RBF(1.0), 0.1
KINDS = {
    "gp": GPClassifier(KERNEL, noise=NOISE),
    "lssvm": LSSVMClassifier(KERNEL, C=10.0),
    "linear": LinearGPClassifier(noise=NOISE),
    "forest": ForestGPClassifier(KERNEL, noise=NOISE),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.km"


def taught(path, estimator=KINDS["gp"]):
    store = Store(path, estimator)
    store.add(X, Y, IDS, contributor="ann")
    return store


@pytest.mark.parametrize("kind", [*KINDS])
def test_the_model_is_the_batch_fit_of_the_others(path, kind):
    with taught(path, KINDS[kind]) as store:
        store.refuse(["n3", "n17"])
        rest = np.delete(np.arange(40), [3, 17])
        assert store.ids_.tolist() == [IDS[i] for i in rest]
        found = store.decision_function(X)
        assert store.verify().ok
    bound = tolerance(KERNEL(X) + NOISE * np.eye(40), "inverse")
    with Store(path) as again:
        assert_rounded(again.decision_function(X), found)
        assert again.refused() == {"n3": [Y[3]], "n17": [Y[17]]}
        assert [record.id for record in again.aside()] == ["n3", "n17"]
        np.testing.assert_array_equal(again.aside_features(), X[[3, 17]])
    if kind == "gp":
        fresh = GPClassifier(KERNEL, noise=NOISE).fit(X[rest], Y[rest])
        assert abs(fresh.decision_function(X) - found).max() <= bound


def test_undo_and_redo(path):
    with taught(path) as store:
        before = store.decision_function(X)
        store.refuse("n3")
        entry = store.log()[-1]
        assert (entry.verb, entry.count, entry.id, entry.label) == ("refuse", 1, "n3", Y[3])
        after = store.decision_function(X)
        store.undo()
        assert (store.refused(), store.aside(), len(store)) == ({}, [], 40)
        assert_rounded(store.decision_function(X), before)
        store.redo()
        assert store.refused() == {"n3": [Y[3]]}
        assert_rounded(store.decision_function(X), after)
        # Another edit ends what was undone.
        store.undo()
        store.relabel("n4", "c")
        assert store.refused() == {}
        assert store.verify().ok


def test_another_label_brings_it_back_as_it_was(path):
    with Store(path, KINDS["gp"]) as store:
        given = {"origins": "a.csv", "contents": [b"c" * 32] * 40, "thumbnails": [b"t"] * 40}
        store.add(X, Y, IDS, np.arange(1, 41), contributor="ann", **given)
        before = store.records(["n3"])[0]
        store.refuse(["n3", "n4"])
        store.relabel("n3", "c", contributor="ben")
        after = store.records(["n3"])[0]
        assert after == before._replace(label="c", labeller="ben", at=after.at)
        np.testing.assert_array_equal(store.examples.X[store.examples.rows(("n3",))], X[3:4])
        assert [record.id for record in store.aside()] == ["n4"]
        # It remembers what it is not.
        assert store.refused() == {"n3": [Y[3]], "n4": [Y[4]]}
        store.refuse("n3")
        assert store.refused()["n3"] == [Y[3], "c"]
        assert store.verify().ok


def test_what_was_put_aside_is_forgotten_like_all_else(path):
    with taught(path) as store:
        store.refuse(["n3", "n4"])
        assert store.forget(["n3"]).count == 1
        assert store.refused() == {"n4": [Y[4]]}
        assert store.verify().ok
        assert store.was_forgotten(["n3"])[0].id
    assert b'"n3"' not in path.read_bytes()
    assert b'"n4"' in path.read_bytes()


def test_without_the_giver_of_its_new_label_it_is_put_aside_again(path):
    with taught(path) as store:
        store.refuse(["n3", "n4"])
        want = store.decision_function(X)
        store.relabel("n3", "c", contributor="ben")
        done = store.forget(contributor="ben")
        assert (done.count, done.changed) == (0, 1)
        assert [record.id for record in store.aside()] == ["n3", "n4"]
        assert_rounded(store.decision_function(X), want, 10_000)
        assert store.verify().ok
        # Without the giver of all of it, nothing is left.
        store.forget(contributor="ann")
        assert (len(store), store.refused()) == (0, {})
        assert store.verify().ok


@pytest.mark.parametrize("kind", [*KINDS])
def test_what_was_put_aside_stays_when_all_others_are_forgotten(path, kind):
    with taught(path, KINDS[kind]) as store:
        store.refuse(["n3", "n4"])
        store.forget(store.ids_)
        np.testing.assert_array_equal(store.aside_features(), X[3:5])
        words = r"^The file holds 'n3', 'n4', put aside, and nothing else. Bring one back, with"
        with pytest.raises(InvalidInput, match=words):
            store.add(np.ones((2, 3)), ["a", "b"])
        with Store(path) as again:
            again.relabel("n3", "c")
            assert again.verify().ok
        store.relabel("n4", "b")
        assert store.ids_.tolist() == ["n3", "n4"]
        with Store(path.with_name("fresh.km"), KINDS[kind]) as fresh:
            fresh.add(X[3:4], ["c"])
            fresh.add(X[4:5], ["b"])
            assert_rounded(store.decision_function(X), fresh.decision_function(X), 10_000)
        assert store.verify().ok
        store.forget(store.ids_)
        store.add(np.ones((2, 3)), ["a", "b"])


def test_it_is_an_edit_of_its_own(path):
    with taught(path) as store:
        words = r"^refuse\(\) cannot be one of several edits that are made together: its entry says"
        with pytest.raises(InvalidInput, match=words), store.together("correct"):
            store.refuse("n3")
        assert (len(store), store.refused(), len(store.log())) == (40, {}, 1)


def test_it_waits_for_the_block_of_another_thread(path):
    with taught(path) as store:
        begun, result = Event(), []

        def other():
            begun.wait()
            for verb in (lambda: store.refuse("n3"), store.undo, lambda: store.forget("n5")):
                try:
                    verb()
                except InvalidInput as error:
                    result.append(error)

        thread = Thread(target=other)
        thread.start()
        with store.together("correct"):
            store.relabel("n4", "c")
            begun.set()
            thread.join(0.2)
            store.relabel("n6", "c")
        thread.join()
        assert result == []
        assert [one.verb for one in store.log()] == ["add", "correct", "forget"]


def test_the_last_examples_stay(path):
    with taught(path) as store:
        with pytest.raises(InvalidInput, match=r"^Without these examples the model would hold"):
            store.refuse(IDS)
        assert (len(store), store.refused(), len(store.log())) == (40, {}, 1)


def test_a_suspect_is_not_suspected_of_a_class_that_was_refused(path):
    with taught(path) as store:
        away = np.where(Y == "a", 5.0, -5.0)
        store.replace(IDS, X + away[:, None])
        at = 3
        true, wrong = Y[at], {"a": "b", "b": "a"}[Y[at]]
        store.relabel(IDS[at], wrong)
        assert IDS[at] in open_suspects(store)[0].ids
        store.undo()
        store.refuse(IDS[at])
        store.relabel(IDS[at], wrong)
        # The others still say what was refused; nobody is asked about it again.
        assert IDS[at] in knowmore.insight.suspects(store.estimator).ids
        assert store.refused() == {IDS[at]: [true]}
        assert IDS[at] not in open_suspects(store)[0].ids


def test_learn_brings_it_back_only_with_something_new(tmp_path):
    def learnt():
        options = LearnOptions(tmp_path / "m.km", str(tmp_path / "t.csv"), "label")
        return learn(options, lambda *_: None)[0]

    rows = [f"r{i},{i / 7},{'ab'[i % 2]}" for i in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["id,x,label", *rows]))
    assert learnt().added == 8
    with Store(tmp_path / "m.km") as store:
        store.refuse("r2")
    again = learnt()
    assert (again.added, again.skipped, again.examples) == (0, 8, 7)
    rows[2] = rows[2][:-1] + "c"
    (tmp_path / "t.csv").write_text("\n".join(["id,x,label", *rows]))
    assert (learnt().added, learnt().added) == (1, 0)
    with Store(tmp_path / "m.km") as store:
        assert (store.records(["r2"])[0].label, store.refused()) == ("c", {"r2": ["a"]})
        assert store.verify().ok
