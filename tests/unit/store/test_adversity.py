"""Regressions that an adversary found."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import (
    GPClassifier,
    KnowmoreError,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    Scores,
)
from knowmore.store import work
from knowmore.store.file import hashed

X = np.arange(18.0).reshape(6, 3)
Y = list("ababab")


def made(path, estimator=None, **words):
    with knowmore.open(path, estimator or GPClassifier(RBF(3.0))) as store:
        store.add(X, Y, **words)
    return path


@pytest.mark.parametrize("estimator", [GPClassifier(), LinearGPClassifier(), LSSVMClassifier()])
def test_a_weight_of_minus_zero(tmp_path, estimator):
    path = made(tmp_path / "m.km", estimator, sample_weight=[-0.0, 1, 1, 1, 1, 1])
    with knowmore.open(path) as store:
        assert store.records()[0].weight == 0
        assert store.verify().ok


def test_saving_over_a_file_whose_writer_was_killed(tmp_path):
    path = tmp_path / "m.km"
    GPClassifier(RBF(1.0)).fit(X, Y).save(path)
    killed = f"""
import sqlite3, os
c = sqlite3.connect({str(path)!r}, isolation_level=None)
c.execute('PRAGMA journal_mode=truncate'); c.execute('PRAGMA cache_size=1')
c.execute('BEGIN IMMEDIATE'); c.execute('UPDATE vectors SET data=zeroblob(24)')
c.execute('CREATE TABLE xx(a)')
[c.execute('INSERT INTO xx VALUES(zeroblob(20000))') for _ in range(50)]
os._exit(9)"""
    subprocess.run([sys.executable, "-c", killed], check=False)
    assert (tmp_path / "m.km-journal").stat().st_size
    new = GPClassifier(RBF(1.0)).fit(np.random.default_rng(0).normal(size=(240, 3)), Y * 40)
    new.save(path)
    np.testing.assert_array_equal(
        knowmore.load(path).decision_function(X), new.decision_function(X)
    )


@pytest.mark.parametrize("verb", ["forget", "replace", "add"])
def test_an_interrupt_at_the_very_end_of_an_edit(tmp_path, monkeypatch, verb):
    path = made(tmp_path / "m.km", ids=list("012345"))
    edits = {
        "forget": lambda store: store.forget(["1"]),
        "replace": lambda store: store.replace(["1"], [[9.0, 9.0, 9.0]]),
        "add": lambda store: store.add([[9.0, 9.0, 9.0]], ["a"], ["new"]),
    }
    with knowmore.open(path) as store:
        done = work.FileEdit.done

        def interrupted(self):
            done(self)
            raise KeyboardInterrupt

        monkeypatch.setattr(work.FileEdit, "done", interrupted)
        with pytest.raises(KeyboardInterrupt):
            edits[verb](store)
        monkeypatch.undo()
        store.refresh()
        with knowmore.open(path) as fresh:
            assert store.ids_.tolist() == fresh.ids_.tolist()
            np.testing.assert_array_equal(store.examples.X, fresh.examples.X)
        assert store.verify().ok


@pytest.mark.parametrize("verb", ["relabel", "replace", "add", "forget"])
def test_merging_a_store_that_is_behind_its_file(tmp_path, verb):
    edits = {
        "relabel": lambda store: store.relabel(["b0"], ["b"]),
        "replace": lambda store: store.replace(["b0"], [[9.0, 9.0, 9.0]]),
        "add": lambda store: store.add([[9.0, 9.0, 9.0]], ["a"], ["b9"]),
        "forget": lambda store: store.forget(["b0"]),
    }
    paths = [made(tmp_path / f"{k}.km", ids=[f"{k}{i}" for i in range(6)]) for k in "ab"]
    with knowmore.open(paths[0]) as store, knowmore.open(paths[1]) as behind:
        with knowmore.open(paths[1]) as other:
            edits[verb](other)
            ids = other.ids_.tolist()
        assert store.merge(behind).verify().ok
        assert store.ids_.tolist() == [f"a{i}" for i in range(6)] + ids


def with_fact(path, name, value):
    """Write a fact with the hashes that belong to it, as anybody can."""
    with sqlite3.connect(path) as file:
        rows = dict(file.execute("SELECT name, value FROM facts"))
        text = json.dumps(value)
        totals = json.loads(rows["totals"])
        old, new = (int.from_bytes(hashed("facts", (name, one))) for one in (rows[name], text))
        count, total = totals["facts"]
        totals["facts"] = [count, f"{(int(total, 16) - old + new) % 2**128:032x}"]
        for each, changed in ((name, text), ("totals", json.dumps(totals))):
            file.execute(
                "UPDATE facts SET value=?, hash=? WHERE name=?",
                (changed, hashed("facts", (each, changed)), each),
            )


def test_texts_take_no_more_room_than_they_have(tmp_path):
    path = made(tmp_path / "m.km")
    names = {"array": ["a", "b", "c"], "type": "<U50000000"}
    with_fact(path, "columns", {"count": 3, "width": 3, "names": names})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    knowmore.open(path).close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_pipe_is_no_model(tmp_path):
    os.mkfifo(tmp_path / "f.km")
    with pytest.raises(KnowmoreError, match="cannot be read: It is not a regular file"):
        knowmore.open(tmp_path / "f.km")


def test_a_source_that_leads_back(tmp_path):
    LSSVMClassifier().fit(X, Y).save(tmp_path / "known.km")
    source = knowmore.load(tmp_path / "known.km")
    with knowmore.open(tmp_path / "n.km", NPlusOneClassifier(source)) as store:
        store.add(X, [*"abab", "new", "new"])
    shutil.copy(tmp_path / "n.km", tmp_path / "known.km")
    with pytest.raises(KnowmoreError, match="which leads back to it"):
        knowmore.open(tmp_path / "n.km")


def test_verifying_a_model_that_is_given_scores(tmp_path):
    rng = np.random.default_rng(0)
    with knowmore.open(tmp_path / "n.km", NPlusOneClassifier(Scores(["p", "q"]))) as store:
        store.add(rng.normal(size=(9, 5)), ["p", "q", "new"] * 3)
        assert store.verify().ok


def test_verifying_examples_of_little_weight(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(20):
        with knowmore.open(tmp_path / f"{k}.km", LSSVMClassifier(RBF(1.5), 0.1)) as store:
            weights = rng.choice([2.5, 1, 1e-3], 12)
            store.add(rng.normal(size=(12, 3)), Y * 2, sample_weight=weights)
            assert store.verify().ok


def test_numbers_wider_than_any_file_holds(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier(RBF())) as store:
        store.add(X.astype(np.longdouble), Y)
        np.testing.assert_array_equal(store.examples.X, X)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"ids": [10**5000, 1, 2, 3, 4, 5]}, "An id has 16,610 bits"),
        ({"contributor": 5}, "contributors is an int"),
        ({"contents": 5}, "contents is an int"),
        ({"thumbnails": b"picture"}, "thumbnails is a bytes"),
    ],
)
def test_arguments_of_other_types(tmp_path, words, message):
    with knowmore.open(tmp_path / "m.km", GPClassifier(RBF())) as store:
        with pytest.raises(KnowmoreError, match=message):
            store.add(X, Y, **words)
        assert len(store) == 0


@pytest.mark.parametrize("timeout", [float("nan"), "x", None, -1, float("inf")])
def test_a_timeout_is_a_number_of_seconds(tmp_path, timeout):
    with pytest.raises(KnowmoreError, match="timeout"):
        knowmore.open(made(tmp_path / "m.km"), timeout=timeout)
