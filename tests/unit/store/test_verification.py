"""Reports of `verify` on good files, and on files that are each wrong in one way."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)
from knowmore.errors import NotWritten
from knowmore.store import verification

KINDS = {
    "gp": lambda: GPClassifier(kernel=RBF(2.0), noise=0.1),
    "chosen kernel": GPClassifier,
    "inverse": lambda: GPClassifier(kernel=RBF(2.0), noise=0.1, solver="inverse"),
    "float32": lambda: GPClassifier(kernel=RBF(2.0), noise=0.1, dtype="float32"),
    "svm": lambda: LSSVMClassifier(kernel=RBF(2.0)),
    "regression": lambda: GPRegressor(kernel=RBF(2.0), noise=1e-3),
    "linear": LinearGPClassifier,
    "linear regression": LinearGPRegressor,
    "forest": lambda: ForestGPClassifier(kernel=RBF(2.0), noise=0.1),
}


def made(path, kind="gp", seed=0):
    """A store with a history."""
    rng, store = np.random.default_rng(seed), knowmore.open(path, KINDS[kind](), timeout=1)
    values = "regression" in kind

    def labels(k):
        return rng.normal(size=k) if values else rng.choice(["ant", "bee", "cow"], k)

    store.add(rng.normal(size=(40, 4)), labels(40), contributor="Ada")
    store.add(rng.normal(size=(5, 4)), labels(5))
    store.forget([1, 2, 30])
    store.relabel([5, 6], labels(2))
    store.replace([9], rng.normal(size=(1, 4)))
    store.undo()
    return store


def check(found, name):
    return next(one for one in found.checks if one.name == name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_is_verified(tmp_path, kind):
    with made(tmp_path / "a.km", kind) as store:
        found = store.verify()
        assert found.ok, str(found)
        assert 0 <= found.difference <= found.tolerance < 0.1
        assert found.residual < 1e-5
        assert found.traces == ()
        names = [one.name for one in found.checks]
        sums = ["sums"] if "linear" in kind else []
        assert names == ["rows", "journal", "model", "residual", *sums, "settings", "traces"]
        assert check(found, "journal").says == "its 5 entries lead to the 42 examples held"
    with knowmore.open(tmp_path / "a.km") as store:
        assert store.verify().ok


def test_fast_looks_at_rows_alone(tmp_path):
    with made(tmp_path / "a.km") as store:
        found = store.verify(fast=True)
    assert found.ok
    assert [one.name for one in found.checks] == ["rows", "journal"]
    assert found.difference is found.tolerance is found.residual is found.traces is None


def test_an_empty_file_is_verified(tmp_path):
    with knowmore.open(tmp_path / "a.km", GPClassifier()) as store:
        found = store.verify()
    assert found.ok
    assert found.difference is None


def test_a_model_that_went_astray_is_found(tmp_path):
    with made(tmp_path / "a.km") as store:
        model = store.session.state.estimator.model_
        object.__setattr__(model, "solved", model.solved * (1 + 1e-6))
        vars(model).pop("solution", None)
        found = store.verify()
        assert not check(found, "model").ok
        assert not check(found, "residual").ok
        assert not found.ok
        assert "would still be rounding" in check(found, "model").says


def test_sums_that_went_astray_are_found(tmp_path):
    with made(tmp_path / "a.km", "linear") as store:
        estimator = store.session.state.estimator
        model = estimator.model_
        extra = model.summed(np.ones((1, 4)), np.array(["ant"]), np.ones(1))
        estimator._living = estimator.editable_.of(model.sums + extra)
        found = store.verify()
        assert not check(found, "sums").ok
        assert not found.ok


def test_a_changed_row_is_found(tmp_path):
    with made(tmp_path / "a.km") as store:
        with closing(sqlite3.connect(tmp_path / "a.km")) as other, other:
            other.execute("UPDATE examples SET label = '\"dog\"' WHERE row = 8")
        found = store.verify()
    assert not found.ok
    assert "another hash" in check(found, "rows").says


def test_a_journal_that_does_not_lead_to_the_examples_is_found(tmp_path):
    with made(tmp_path / "a.km") as store:
        file = store.session.file
        with file.writing():
            row = next(file.rows("changes", "WHERE number = 1 AND row = 8"))
            file.delete("changes", [row[1]], column=1)
        found = store.verify(fast=True)
    assert check(found, "rows").ok
    assert not check(found, "journal").ok
    assert not found.ok


def test_bytes_that_forget_could_not_clear_are_told_and_cleared_later(tmp_path, monkeypatch):
    def busy(self):
        raise NotWritten("somebody reads")

    path = tmp_path / "a.km"
    with made(path) as store:
        with monkeypatch.context() as patched:
            patched.setattr(verification, "vacuum", busy)
            done = store.forget([3, 4])
            assert done.count == 2
            assert done.traces
            found = store.verify()
            assert not found.ok
            assert "belong to no row" in check(found, "traces").says
            assert found.certificate()["traces"] == len(done.traces)
        store.relabel([5], "cow")
        assert store.verify().ok


def test_opening_clears_what_a_crash_left(tmp_path, monkeypatch):
    path = tmp_path / "a.km"
    with monkeypatch.context() as patched:
        patched.setattr(verification, "clean", lambda file: None)
        with made(path) as store:
            assert not store.verify().ok
    # A journal that was never synced, which SQLite takes for none.
    path.with_name("a.km-journal").write_bytes(bytes(28) + b"old pages" * 100)
    with knowmore.open(path) as store:
        assert store.verify().ok
    assert path.with_name("a.km-journal").stat().st_size == 0


def test_the_certificate_is_json_and_depends_on_the_set_alone(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), ["a", "b"] * 3
    certificates = []
    for name, order in (("one.km", range(6)), ("two.km", [3, 1, 5, 0, 2, 4])):
        with knowmore.open(tmp_path / name, GPClassifier(kernel=RBF(1.0))) as store:
            for i in order:
                store.add(X[[i]], [y[i]], ids=[f"n{i}"])
            store.add(X[:1] + 1, ["b"], ids=["gone"])
            store.forget(["gone"])
            certificates.append(json.loads(json.dumps(store.verify().certificate())))
    one, two = certificates
    assert one["ok"]
    assert one["examples"] == 6
    assert one["examples_digest"] == two["examples_digest"]
    assert one["settings_digest"] == two["settings_digest"]
    assert [entry["count"] for entry in one["forgotten"]] == [1]
    assert "backups" in one["beyond"]
    assert set(one["checks"]) == {"rows", "journal", "model", "residual", "settings", "traces"}
    assert set(one["versions"]) == {"knowmore", "numpy", "python", "sqlite"}
    with knowmore.open(tmp_path / "one.km") as store:
        store.relabel(["n1"], "a")
        assert store.verify().certificate()["examples_digest"] != one["examples_digest"]


def test_what_holds_is_said_exactly(tmp_path):
    """Pages of settings and of the schema are not looked at, so nothing is claimed about them."""
    with knowmore.open(tmp_path / "one.km", knowmore.GPClassifier()) as store:
        store.add([[0.0]], ["rose"])
        found = store.verify()
    assert check(found, "journal").says == "its 1 entry leads to the 1 example held"
    assert check(found, "traces").says == (
        "in all pages that hold examples, and all free ones, every byte that belongs to no row is "
        "zero; no file that is left beside this one has a byte"
    )


@pytest.mark.parametrize("kind", ["gp", "linear"])
def test_a_file_that_was_deleted_is_told(tmp_path, kind):
    path = tmp_path / "m.km"
    with made(path, kind) as store:
        path.unlink()
        for fast in (False, True):
            found = store.verify(fast)
            assert not found.ok
            assert "was moved, or replaced by another file" in str(found)


def test_a_file_that_is_deleted_while_it_forgets(tmp_path, monkeypatch):
    path = tmp_path / "m.km"
    with made(path) as store:
        slack = verification.slack

        def deleted(where):
            path.unlink(missing_ok=True)
            return slack(where)

        monkeypatch.setattr(verification, "slack", deleted)
        done = store.forget(store.ids_[:1])
        assert done.count == 1
        assert "was moved, or replaced by another file" in done.warning
