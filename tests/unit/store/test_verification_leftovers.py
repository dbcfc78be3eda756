"""Warnings of a forget when bytes may be left: the true cause, and the remedy."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing

import numpy as np
import pytest

import knowmore
from knowmore import GPClassifier
from knowmore.errors import KnowmoreWarning, NotEnoughMemory, NotWritten
from knowmore.store import verification
from knowmore.store.work import Trace

ROWS = 300
FULL = "the disk is full. Free some space"
READ = "another program was reading the file. Close the programs that use it"
LOCKED = "the file or its folder cannot be written. Change the permissions"
FAULT = "the disk or its limits refused a write"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.km"
    rng = np.random.default_rng(0)
    with knowmore.open(path, GPClassifier()) as store:
        for part in range(3):
            ids = [f"{part}/{i}" for i in range(ROWS)]
            store.add(rng.normal(size=(ROWS, 20)), ["a", "b", "c"] * (ROWS // 3), ids=ids)
    return path


# -- the cause, from what SQLite says ------------------------------------------------------------


def refused(folder, what):
    """An error of SQLite, for this real cause."""
    path = folder / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE t(x)")
        other.execute("INSERT INTO t VALUES(zeroblob(100000))")
        where, address = path, f"{path.as_uri()}?mode=rw"
        if what == "folder":
            where = folder / "none" / "a.db"
            address = f"{where.as_uri()}?mode=rwc"
        if what == "read-only":
            address = f"{path.as_uri()}?mode=ro"
        try:
            with closing(
                sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)
            ) as one:
                if what == "full":
                    pages = one.execute("PRAGMA page_count").fetchone()[0]
                    one.execute(f"PRAGMA max_page_count={pages}")
                    one.execute("INSERT INTO t VALUES(zeroblob(100000))")
                if what == "reader":
                    other.execute("BEGIN")
                    other.execute("SELECT count(*) FROM t").fetchone()
                one.execute("VACUUM")
        except sqlite3.Error as error:
            return error
    raise AssertionError(what)


@pytest.mark.parametrize(
    ("what", "words"),
    [("full", FULL), ("reader", READ), ("read-only", LOCKED), ("folder", LOCKED)],
)
def test_the_cause_is_told_apart(tmp_path, what, words):
    error = NotWritten("what the file says")
    error.__cause__ = refused(tmp_path, what)
    assert verification.hindrance(error) == words


def test_a_limit_of_the_system_is_a_fault_of_the_disk(tmp_path, little_room):
    error = NotWritten("what the file says")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as one:
        one.execute("CREATE TABLE t(x)")
        with little_room(50_000), pytest.raises(sqlite3.OperationalError) as caught:
            one.execute("INSERT INTO t VALUES(zeroblob(100000))")
    error.__cause__ = caught.value
    assert verification.hindrance(error).startswith(FAULT)


def test_other_errors_speak_for_themselves():
    error = NotWritten("'m.km' was moved, or replaced by another file. Open it again.")
    assert (
        verification.hindrance(error)
        == "'m.km' was moved, or replaced by another file. Open it again"
    )
    memory = verification.hindrance(NotEnoughMemory("not enough"))
    assert memory == "there is not enough memory to write the file anew. Free some"


def test_what_is_left_is_said_in_a_sentence(tmp_path):
    path = tmp_path / "m.km"
    assert verification.warning(path, [], FULL) == ""
    here, journal = Trace(path, 8, 4), Trace(tmp_path / "m.km-journal", 0, 512)
    assert verification.warning(path, [here], FULL) == (
        "Bytes of what was forgotten may be left in m.km: the disk is full. Free some space, then "
        "run verify, which clears them."
    )
    both = verification.warning(path, [here, here, journal], FULL)
    assert both.startswith("Bytes of what was forgotten may be left in m.km, m.km-journal: the dis")
    # A file beside it has causes of its own.
    assert verification.warning(path, [journal], FULL) == (
        "Bytes of what was forgotten may be left in m.km-journal: another program writes to the "
        "model, or was interrupted. Close the programs that use it, then run verify, which clears "
        "them."
    )


# -- a forget whose file could not be cleared ----------------------------------------------------


@pytest.fixture
def crowded(monkeypatch):
    """Between the edit and the clearing another program begins to read."""

    def begin(path):
        reader = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        usual = verification.vacuum

        def vacuum(file):
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM examples").fetchone()
            usual(file)

        monkeypatch.setattr(verification, "vacuum", vacuum)
        return reader

    return begin


def test_a_reader_is_named_and_verify_clears_when_it_has_gone(path, crowded, monkeypatch):
    with knowmore.open(path, timeout=0) as store, closing(crowded(path)) as reader:
        found = store.forget([f"1/{i}" for i in range(ROWS)])
        monkeypatch.undo()
        assert found.count == ROWS
        assert found.traces
        assert READ in found.warning
        checked = store.verify()
        assert not checked.ok
        reader.execute("COMMIT")
        assert store.verify().ok
    assert verification.left(path) == []


def test_a_disk_without_room_is_named_and_the_edit_stands(path, little_room, monkeypatch):
    usual = verification.vacuum

    def vacuum(file):
        with little_room(100_000):
            usual(file)

    with knowmore.open(path) as store:
        monkeypatch.setattr(verification, "vacuum", vacuum)
        found = store.forget([f"1/{i}" for i in range(ROWS)])
        monkeypatch.undo()
        assert (found.count, len(store)) == (ROWS, 2 * ROWS)
        assert found.traces
        assert FAULT in found.warning
        assert "another program" not in found.warning
        # The next edit with room clears what this one left.
        store.relabel("0/0", "b")
        assert verification.left(path) == []
        assert store.forget("0/1").warning == ""


@pytest.mark.slow
def test_a_lack_of_memory_is_named_and_the_edit_stands(path):
    """SQLite's own limit, which holds for the life of a process."""
    script = f"""
import knowmore
store = knowmore.open({str(path)!r})
from knowmore.store import verification
vacuum = verification.vacuum
def limited(file):
    for setting in ("shrink_memory", "hard_heap_limit=1000000"):
        file.connection.execute(f"PRAGMA {{setting}}")
    vacuum(file)
verification.vacuum = limited
found = store.forget([f"1/{{i}}" for i in range({ROWS})])
print(found.count, bool(found.traces), len(store), found.warning)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith(f"{ROWS} True {2 * ROWS} "), done.stderr
    assert "there is not enough memory to write the file anew" in done.stdout
    with knowmore.open(path) as store:
        assert len(store) == 2 * ROWS
        assert store.verify().ok


def test_remove_has_no_answer_and_so_it_warns(path, crowded, monkeypatch):
    with knowmore.open(path, timeout=0) as store, closing(crowded(path)):
        with pytest.warns(KnowmoreWarning, match="may be left in m.km: another program was readin"):
            store.remove([f"1/{i}" for i in range(ROWS)])
        monkeypatch.undo()
    with knowmore.open(path) as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        store.remove("0/0")
