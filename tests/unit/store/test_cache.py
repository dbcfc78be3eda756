"""Caches: what is used, what is dropped, and what goes when something is forgotten."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import answers
from tolerance import assert_rounded

import knowmore
from knowmore.store import Store, cache, file
from knowmore.store.journal import Journal, Numbers

RNG = np.random.default_rng(2)
X = RNG.normal(size=(300, 3))
Y = RNG.integers(0, 3, 300)


@pytest.fixture
def path(tmp_path):
    with Store(tmp_path / "model.km", knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y)
    return tmp_path / "model.km"


def parts(path):
    """The number of parts of each array."""
    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT name, count(*) FROM arrays GROUP BY name").fetchall())
    connection.close()
    return found


def refuse(*_):
    raise AssertionError("the model was fitted anew")


def test_a_factor_is_read_not_computed(path, monkeypatch):
    with Store(path) as store:
        scores = answers(store, X)
    monkeypatch.setattr("knowmore.linalg.Cholesky.append", refuse)
    monkeypatch.setattr(
        "knowmore.store.kinds._few", lambda examples: examples.without(np.arange(len(examples)))
    )
    with Store(path) as store:
        np.testing.assert_array_equal(answers(store, X), scores)
        assert store.session.cache.rows == 300


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE arrays SET data=zeroblob(length(data)) WHERE name='cache/factor' AND part=1",
        "DELETE FROM arrays WHERE name='cache/factor' AND part=1",
        "DELETE FROM arrays WHERE name='cache/factor' AND part=2",
        "DELETE FROM arrays WHERE name='cache/about'",
        "UPDATE arrays SET data=x'00' WHERE name='cache/rows'",
        "UPDATE arrays SET name='cache/x' WHERE name='cache/head'",
        "UPDATE arrays SET part=7 WHERE name='cache/factor' AND part=0",
    ],
)
def test_a_damaged_cache_is_computed_again(path, statement):
    with Store(path) as store:
        scores = answers(store, X)
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()
    with Store(path) as store:
        assert store.session.cache.rows == 0
        np.testing.assert_allclose(answers(store, X), scores)
    with Store(path) as store:
        assert len(store) == 300


def test_a_factor_of_something_else_is_not_used(path):
    """Hashes match, but the numbers belong to another kernel."""
    with Store(path) as store:
        factor = store.model_.covariance.factor
        wrong = factor.panels[0].packed(128)
        data = b"".join(map(cache.bytes_of, (2 * wrong[0], 2 * wrong[1])))
        with store.session.file.writing():
            journal = Journal(store.session.file, Numbers(array=9000))
            cache.write_parts(journal, cache.FACTOR, {0: data})
        assert journal.numbers.array == 9001
    with Store(path) as store:
        assert store.session.cache.rows == 0


def test_only_the_rows_that_changed_are_computed(path):
    with Store(path) as store:
        store.add(X[:5] + 1, Y[:5])
        killed = Store(path)
        assert killed.session.cache.rows == 300
        killed.session.file.close()
        store.replace([200], X[:1] + 2)
        killed = Store(path)
        assert killed.session.cache.rows == 200
        np.testing.assert_allclose(answers(killed, X), answers(store, X))
        killed.session.file.close()


def test_only_panels_that_changed_are_written(path, monkeypatch):
    written = []
    real = cache.write_parts
    monkeypatch.setattr(
        cache,
        "write_parts",
        lambda journal, name, p: written.append((name, *p)) or real(journal, name, p),
    )
    with Store(path) as store:
        store.add(X[:5] + 1, Y[:5])
    assert [entry for entry in written if entry[0] == cache.FACTOR] == [(cache.FACTOR, 2)]
    written.clear()
    with Store(path) as store:
        answers(store, X)
    assert written == []


def test_forgetting_deletes_what_depends_on_it(path):
    with Store(path) as store:
        before = store.model_.covariance.factor.panels[1].packed(128)[0][0, :20].tobytes()
        assert before in path.read_bytes()
        store.forget([130])
        assert parts(path)[cache.FACTOR] == 1
        assert before not in path.read_bytes()
        killed = Store(path)
        assert killed.session.cache.rows == 128
        killed.session.file.close()
        store.forget([0])
        assert cache.FACTOR not in parts(path)
    with Store(path) as store:
        assert store.session.cache.rows == len(store) == 298


def test_sums_follow_the_journal(tmp_path, monkeypatch):
    path = tmp_path / "linear.km"
    with Store(path, knowmore.LinearGPClassifier()) as store:
        store.add(X, Y)
    read = []
    real = knowmore.store.state._add_all
    monkeypatch.setattr(
        "knowmore.store.state._add_all",
        lambda f, m, facts, versions, sign: (
            read.append(sign * len(versions)) or real(f, m, facts, versions, sign)
        ),
    )
    with Store(path) as store:
        assert read == []
        store.relabel([3], Y[3:4] + 1)
        store.add(X[:2] + 1, Y[:2])
        other = Store(path)
        assert read == [3, -1]
        assert other.digest() == store.digest()
        store.undo()
        assert read[2:] == [0, -2]
        store.forget([4])
        third = Store(path)
        assert read[4:] == []
        assert third.digest() == store.digest()
        other.refresh()
        assert read[4:] == []
        assert other.digest() == store.digest()
        store.set_parameters(resolution=16)
        fourth = Store(path)
        assert read[4:] == [299]
        assert fourth.digest() == store.digest()
        for one in (other, third, fourth):
            one.session.file.close()


def test_names_of_caches_do_not_count():
    assert not file.counted("totals")
    assert not file.counted("cache/factor")
    assert file.counted("words/a")


def test_a_class_that_came_after_the_cache_was_written(tmp_path):
    """As many examples are in the cache as there are classes later."""
    path, kernel = tmp_path / "m.km", RBF(0.4)
    X = np.array([[0.0, 0.1], [0.5, 0.5], [0.7, 0.6], [0.0, -0.5], [0.4, -0.5]])
    with knowmore.open(path, knowmore.GPClassifier(kernel)) as store:
        store.add(X[:3], ["a", "b", "b"])
    with knowmore.open(path) as store:
        store.add(X[3:], ["a", "c"])
        with knowmore.open(path) as again:
            got = again.decision_function(X)
    fresh = knowmore.GPClassifier(kernel).fit(X, list("abbac"))
    assert_rounded(got, fresh.decision_function(X), 1000)


@pytest.mark.parametrize("text", ["[1]", "{}", "no JSON"])
def test_a_damaged_cache_goes_as_a_whole_when_something_is_forgotten(path, text):
    with Store(path) as store:
        with store.session.file.writing():
            journal = Journal(store.session.file, Numbers(array=99))
            cache.write_parts(journal, "cache/about", {0: text.encode()})
        store.forget([130])
        assert cache.FACTOR not in parts(path)
        assert store.verify().ok
