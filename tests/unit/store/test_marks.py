"""Marks of what was forgotten, labels that somebody has confirmed, and the parts of files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore.errors import KnowmoreWarning, NotWritten, UnknownId
from knowmore.store import Store

X = np.random.default_rng(0).normal(size=(6, 2))
Y = list("ababab")
CONTENTS = [sha256(bytes([i])).digest() for i in range(6)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.km"


@pytest.fixture
def store(path):
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, list("uvwxyz"), contents=CONTENTS)
        yield store


# -- marks ---------------------------------------------------------------------------------------


def test_what_was_forgotten_is_known_by_id_and_content(store, path):
    assert store.was_forgotten(["u"], CONTENTS[:1]) == [(False, False, False)]
    store.forget(["u", "v"])
    store.forget(["w"], mark=False)
    store.remove(["x"])
    asked = [("u", 0), ("u", 3), ("new", 1), ("w", 2), ("x", 3), ("y", 4)]
    ids, contents = zip(*[(one, CONTENTS[i]) for one, i in asked], strict=True)
    wanted = [
        (True, True, True),
        (True, False, False),
        (False, True, False),
        *[(False, False, False)] * 3,
    ]
    assert store.was_forgotten(ids, contents) == wanted
    assert store.was_forgotten(["u", 7]) == [(True, False, False), (False, False, False)]
    with Store(path) as again:
        assert again.was_forgotten(ids, contents) == wanted
        assert again.verify().ok


def test_marks_are_keyed_and_the_same_example_has_other_marks_in_another_file(store, tmp_path):
    with Store(tmp_path / "other.km", knowmore.GPClassifier(RBF(2.0))) as other:
        other.add(X, Y, list("uvwxyz"), contents=CONTENTS)
        other.forget("u")
        store.forget("u")
        ours, theirs = (
            {row[0] for row in one.session.file.connection.execute("SELECT mark FROM forgotten")}
            for one in (store, other)
        )
    assert len(ours) == len(theirs) == 3
    assert not ours & theirs
    assert {len(mark) for mark in ours} == {16}


def test_an_edit_that_is_forgotten_marks_the_version_alone(store):
    store.replace("u", X[:1] + 1, contents=[b"1" * 32], contributor="bob")
    store.forget(contributor="bob")
    assert store.was_forgotten(["u"], [b"1" * 32]) == [(False, True, True)]
    assert store.was_forgotten(["u"], CONTENTS[:1]) == [(False, False, False)]


# -- labels that are right -----------------------------------------------------------------------


def test_a_label_that_is_forgotten_marks_no_content_that_stays(store):
    store.relabel("u", "b", contributor="bob")
    assert store.forget(contributor="bob").changed == 1
    assert store.was_forgotten(["u", "copy"], CONTENTS[:1] * 2) == [(False, False, False)] * 2


def test_a_confirmed_label_is_remembered_until_it_changes(store, path):
    assert store.keep(["u", "v", "w"]) is store
    assert store.kept_.tolist() == ["u", "v", "w"]
    assert [record.kept for record in store.records()] == [True] * 3 + [False] * 3
    assert [entry.verb for entry in store.log()] == ["add"]
    store.relabel("u", "c")
    store.replace("v", X[:1] + 1)
    assert store.kept_.tolist() == ["w"]
    store.undo()
    store.undo()
    with Store(path) as again:
        assert again.kept_.tolist() == ["u", "v", "w"]
        again.keep("v", kept=False)
        assert again.kept_.tolist() == ["u", "w"]
        again.forget("u")
        assert again.kept_.tolist() == ["w"]
        with pytest.raises(UnknownId):
            again.keep(["w", "nobody"])
        assert again.verify().ok
    store.refresh()
    assert store.kept_.tolist() == ["w"]


def test_a_confirmed_label_comes_along_with_a_merge(store, tmp_path):
    with Store(tmp_path / "other.km", knowmore.GPClassifier(RBF(2.0))) as other:
        other.add(X + 5, Y, list("abcdef"), contributor="ann")
        other.keep(["b", "d"])
        store.keep("u").merge(other)
    assert store.kept_.tolist() == ["u", "b", "d"]
    assert [one.labeller for one in store.records(["b", "c"])] == ["ann", "ann"]
    store.undo()
    assert store.kept_.tolist() == ["u"]
    store.redo()
    assert store.kept_.tolist() == ["u", "b", "d"]
    assert store.verify().ok


def test_to_confirm_a_label_says_nothing_of_who_gave_it(path):
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, contributor="ann")
        store.relabel([0], "b", contributor="bob")
        store.keep([0, 1])
        givers = [(one.contributor, one.labeller) for one in store.records([0, 1])]
        assert givers == [("ann", "bob"), ("ann", "ann")]
        assert store.forget(contributor="bob").changed == 1
        assert store.kept_.tolist() == [1]


# -- parts ---------------------------------------------------------------------------------------

KILLED = """
import os, sys
import numpy as np
from knowmore import GPClassifier
def die(part, target):
    os.kill(os.getpid(), 9)
from knowmore.store import state
state.put_in_place = die
X = np.arange(12.0).reshape(6, 2)
GPClassifier().fit(X, list("ababab")).save(sys.argv[1])
"""


def test_what_a_killed_save_leaves_is_swept_at_the_next_opening(store, path):
    store.close()
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    (part,) = path.parent.glob("*.part")
    assert part.stat().st_size
    with pytest.warns(KnowmoreWarning, match=r"^Removed what an interrupted save\(\) had left"):
        again = Store(path)
    with again:
        assert not part.exists()
        assert again.verify().ok


def test_a_save_that_is_under_way_is_left_alone(store, path):
    from knowmore._base import part_of, sweep

    with part_of(path) as part:
        part.write_bytes(b"half")
        assert sweep(path) == []
        assert part.read_bytes() == b"half"
        part.write_bytes(path.read_bytes())
    assert not part.exists()


def test_a_save_whose_last_step_fails_says_so_in_words(store, path, monkeypatch):
    """Leftovers that cannot be deleted are no reason to fail, nor to raise a bare OSError."""
    from pathlib import Path

    estimator, unlink = store.estimator, Path.unlink

    def failing(self, missing_ok=False):
        if ".part" in self.name:
            raise PermissionError(13, "no")
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", failing)
    estimator.save(path.with_name("other.km"))
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(NotWritten, match=r"cannot be written: full\. What was there before"):
        estimator.save(path.with_name("third.km"))
    monkeypatch.undo()
    assert knowmore.load(path.with_name("other.km")).predict(X).tolist() == list(
        estimator.predict(X)
    )
