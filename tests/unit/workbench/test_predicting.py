"""The threshold above which rows are unknown: computed once for each state of a file."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import KINDS, drawn

from knowmore import GPClassifier
from knowmore.errors import KnowmoreWarning, NoExamples
from knowmore.insight import novelty
from knowmore.store import Store
from knowmore.workbench import predicting
from knowmore.workbench.predicting import Predictor

RNG = np.random.default_rng(5)
LABELS = ["a", "b"] * 10
X = RNG.normal(size=(20, 2)) + 4 * np.arange(20)[:, None] % 8


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.km"
    with Store(path, GPClassifier(RBF(2.0), 0.1)) as store:
        store.add(X[:12], LABELS[:12])
        store.add(X[12:], LABELS[12:])
    return path


@pytest.fixture
def asked(path, monkeypatch):
    """The threshold of the model in the file, and how often novelty was computed for it."""
    calls = []

    def counted(*given, **options):
        calls.append(given)
        return novelty(*given, **options)

    monkeypatch.setattr(predicting, "novelty", counted)

    def ask(rate=0.05, keep=True):
        calls.clear()
        with Store(path) as store:
            return Predictor(store, rate, keep=keep).judge.threshold, len(calls)

    return ask


def kept(path):
    """The memos in the file."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT data FROM arrays WHERE name = 'cache/thresholds'")
        return b"".join(data for (data,) in found)


def test_it_is_computed_once_for_each_rate(path, asked):
    with Store(path) as store:
        wanted = novelty(store.estimator, X).threshold(0.95)
    assert asked() == (wanted, 1)
    assert asked() == (wanted, 0)
    other, computed = asked(0.5)
    assert (other < wanted, computed) == (True, 1)
    assert (asked(), asked(0.5)) == ((wanted, 0), (other, 0))
    size = len(kept(path))
    for rate in np.linspace(0.1, 0.4, 20):
        asked(float(rate))
    assert len(kept(path)) == size


def test_it_is_not_kept_unasked(path, asked):
    before = path.read_bytes()
    assert (asked(keep=False)[1], asked(keep=False)[1], path.read_bytes()) == (1, 1, before)


EDITS = {
    "add": lambda store: store.add(X[:1] + 0.1, ["a"]),
    "relabel": lambda store: store.relabel(3, "a"),
    "replace": lambda store: store.replace(3, X[:1]),
    "forget": lambda store: store.forget(3),
    "undo": lambda store: store.undo(),
    "parameters": lambda store: store.set_parameters(noise=0.7),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_every_edit_drops_it(edit, path, asked):
    asked()
    assert kept(path).strip()
    with Store(path) as store:
        edit(store)
        # In the same transaction, and nothing of it stays.
        assert not kept(path).strip()
        assert store.verify().ok
        wanted = novelty(store.estimator, X).threshold(0.95)
    assert asked() == (wanted, 1)
    assert asked() == (wanted, 0)


def test_one_of_another_state_or_damaged_is_not_used(path, asked):
    wanted, _ = asked()
    old = kept(path)
    with Store(path) as store:
        store.relabel(3, "a")
        store.undo()
    # The threshold of the same examples is back.
    for data, computed in ((old.replace(b"state", b"place"), 1), (b"\xff", 1)):
        with sqlite3.connect(path) as connection:
            update = "UPDATE arrays SET data = ? WHERE name = 'cache/thresholds'"
            connection.execute(update, (data,))
        assert asked() == (wanted, computed)


def test_a_file_that_cannot_be_written_is_asked_all_the_same(path, asked, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    before = path.read_bytes()
    assert (asked()[1], asked()[1], path.read_bytes()) == (1, 1, before)


def test_a_threshold_that_separates_nothing_warns_each_time(tmp_path):
    with Store(tmp_path / "narrow.km", GPClassifier(RBF(1e-3))) as store:
        store.add(X, LABELS)
        for _ in range(2):
            with pytest.warns(KnowmoreWarning, match="no threshold separates"):
                Predictor(store, 0.05, keep=True)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_what_its_estimator_predicts(name, tmp_path):
    A, y = drawn(name, np.random.default_rng(3), 20)
    with Store(tmp_path / "model.km", KINDS[name]()) as store:
        with pytest.raises(NoExamples, match="The model holds no examples yet"):
            Predictor(store, 0.05, keep=True)
        store.add(A, y)
        first, second = (Predictor(store, 0.05, keep=True) for _ in range(2))
        assert first(A) == second(A)
        assert [one.label for one in first(A)] == store.estimator.predict(A).tolist()
