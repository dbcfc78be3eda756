"""How sharp probabilities are: computed once for each state of a file, and dropped by edits."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from knowmore import GPClassifier, LSSVMClassifier
from knowmore.models import probabilities
from knowmore.store import Store, cache
from knowmore.workbench.predicting import Predictor

RNG = np.random.default_rng(5)
LABELS = ["a", "b"] * 10
X = RNG.normal(size=(20, 2)) + 4 * np.arange(20)[:, None] % 8


@pytest.fixture(params=["gp", "lssvm"])
def path(request, tmp_path):
    made = GPClassifier(RBF(2.0)) if request.param == "gp" else LSSVMClassifier(RBF(2.0))
    with Store(tmp_path / "model.km", made) as store:
        store.add(X, LABELS)
    return tmp_path / "model.km"


@pytest.fixture
def asked(path, monkeypatch):
    """The probabilities that a file gives, and how often their temperature was computed."""
    calls = []
    best = probabilities.best_temperature

    def counted(*given):
        calls.append(given)
        return best(*given)

    monkeypatch.setattr(probabilities, "best_temperature", counted)

    def ask(keep=True):
        calls.clear()
        with Store(path) as store:
            answers = Predictor(store, 0.0, keep=keep)(X)
        return [one.probability for one in answers], len(calls)

    return ask


def kept(path):
    """The temperatures in the file."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT data FROM arrays WHERE name = 'cache/temperature'")
        return b"".join(data for (data,) in found)


def wanted(path):
    with Store(path) as store:
        return store.predict_proba(X).max(axis=1).tolist()


def test_it_is_computed_once(path, asked):
    want = wanted(path)
    assert asked(keep=False) == (want, 1)
    assert asked() == (want, 1)
    assert asked() == (want, 0)


EDITS = {
    "add": lambda store: store.add(X[:1] + 0.1, ["a"]),
    "relabel": lambda store: store.relabel(3, "a"),
    "forget": lambda store: store.forget(3),
    "parameters": lambda store: store.set_parameters(probability="raw"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_every_edit_drops_it(edit, path, asked):
    asked()
    assert kept(path).strip()
    with Store(path) as store:
        edit(store)
        assert not kept(path).strip()
        assert store.verify().ok
    assert asked()[0] == wanted(path)


def test_one_of_another_formula_is_not_used(path, asked, monkeypatch):
    want = asked()
    monkeypatch.setattr(cache, "_FORMULAS", cache._FORMULAS - 1)
    assert asked() == want


@pytest.mark.parametrize("data", [b"\xff", b"{}", b'{"state": 1}'], ids=repr)
def test_one_that_is_damaged_is_not_used(data, path, asked):
    want = asked()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE arrays SET data = ? WHERE name = 'cache/temperature'", (data,))
    assert asked() == want
