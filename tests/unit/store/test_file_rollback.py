"""The rollback journal of a crashed edit is played back into its own file, and into no other."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import answers

import knowmore
from knowmore.errors import InvalidInput, NotWritten
from knowmore.store import Store, restore
from knowmore.store import file as layout
from knowmore.store.file import PAGE

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.array(["a", "b"] * 20)
# Of a journal: its first bytes, records, nonce, pages of the file, sector and page size.
HEADER = struct.Struct(">8s5I")
MAGIC = bytes.fromhex("d9d505f920a163d7")

# Kills itself while SQLite writes: its pages are in the file already, and so is the journal.
CRASH = """
import os, sys
import numpy as np
import knowmore
store = knowmore.open(sys.argv[1])
rng = np.random.default_rng(1)
connection = store.session.file.connection
connection.execute("PRAGMA cache_size=4")
insert = store.session.file.insert
def dying(table, rows):
    insert(table, rows)
    if table == "vectors":
        connection.execute("PRAGMA cache_spill=1")
        os.kill(os.getpid(), 9)
store.session.file.insert = dying
store.add(rng.normal(size=(3000, 2)), ["c"] * 3000)
"""

# Kills itself while SQLite writes what a new file begins with.
CRASH_NEW = """
import os, sys
import knowmore
from knowmore.store.file import File
def dying(file):
    file.connection.execute("PRAGMA cache_size=4")
    file.connection.execute("PRAGMA cache_spill=1")
    file.write_facts({str(i): "x" * 10_000 for i in range(50)})
    os.kill(os.getpid(), 9)
File.write_totals = dying
knowmore.open(sys.argv[1], knowmore.GPClassifier())
"""


@pytest.fixture
def path(tmp_path):
    with Store(tmp_path / "model.km", knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X[:20], Y[:20])
    return tmp_path / "model.km"


def crash(path, script=CRASH):
    """Interrupt an edit in another process; returns the journal that it leaves."""
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    journal = layout.journal_of(path)
    assert journal.stat().st_size
    return journal


def copies(path, tmp_path):
    """Copies of a model at several states, and what each of them answers."""
    found = []
    for i in range(5):
        copy = tmp_path / f"copy{i}.km"
        shutil.copy(path, copy)
        with Store(copy) as store:
            found.append((copy, len(store), answers(store, X)))
        with Store(path) as store:
            store.add(X[20 + i : 21 + i], Y[20 + i : 21 + i])
    return found


def test_a_crashed_file_goes_back_to_its_last_edit(path):
    crash(path)
    with Store(path) as store:
        assert len(store) == 20
        assert store.verify().ok


@pytest.mark.slow
def test_a_file_that_a_crash_left_unfinished_is_made_anew(tmp_path):
    path = tmp_path / "new.km"
    crash(path, CRASH_NEW)
    assert path.stat().st_size > 10 * PAGE
    with pytest.raises(InvalidInput, match="its tables are not those of a model"):
        Store(path)
    for _ in range(2):
        with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
            assert len(store) == 0
            assert store.verify().ok


@pytest.mark.slow
def test_a_copy_in_the_place_of_an_unfinished_file_is_not_spoilt(path, tmp_path):
    new = tmp_path / "new.km"
    saved = tmp_path / "saved.km"
    knowmore.GPClassifier(RBF(2.0)).fit(X, Y).save(saved)
    empty = tmp_path / "empty.km"
    Store(empty, knowmore.GPClassifier(RBF(2.0))).close()
    copies = (path, saved, empty)
    for _ in range(3):
        new.unlink(missing_ok=True)
        data = crash(new, CRASH_NEW).read_bytes()
        old = layout.Head.of(data[int.from_bytes(data[20:24]) + 4 :])
        # One epoch in 2,048 is the same by chance.
        if not any(layout.Head.of(copy.read_bytes()).follows(old) for copy in copies):
            break
    for copy in copies:
        shutil.copy(copy, new)
        for estimator in (None, knowmore.GPClassifier(RBF(2.0))):
            with pytest.raises(InvalidInput, match="belongs to another state"):
                Store(new, estimator)
        assert new.read_bytes() == copy.read_bytes()


@pytest.mark.slow
def test_a_journal_that_empties_a_file_is_played_back_if_nothing_is_in_it(path, tmp_path):
    """The first page of a new file is written alone."""
    emptying = HEADER.pack(MAGIC, 0, 7, 0, 512, PAGE).ljust(512, b"\0")
    layout.journal_of(path).write_bytes(emptying)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="belongs to another state"):
        Store(path)
    assert path.read_bytes() == before
    new = tmp_path / "new.km"
    crash(new, CRASH_NEW)
    with pytest.raises(InvalidInput, match="its tables are not those of a model"):
        Store(new)
    begun = new.read_bytes()
    for data in (b"", begun, begun[: PAGE // 2], bytes(PAGE)):
        new.write_bytes(data)
        layout.journal_of(new).write_bytes(emptying)
        assert not layout.is_there(new)
        with Store(new, knowmore.GPClassifier(RBF(2.0))) as store:
            assert len(store) == 0


def test_no_other_file_is_taken_for_an_unfinished_one(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=2")
    connection.close()
    database = path.read_bytes()
    for data in (database, b"a text", b"a text" * 5000):
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match="cannot be read as a model"):
            Store(path, knowmore.GPClassifier(RBF(2.0)))
        assert path.read_bytes() == data


@pytest.mark.slow
def test_a_copy_is_not_spoilt_by_the_journal_of_another_state(path, tmp_path):
    """A journal of a later state is refused; a journal of the same state changes nothing."""
    states = copies(path, tmp_path)
    last = tmp_path / "last.km"
    shutil.copy(path, last)
    journal = crash(path)
    hot = journal.read_bytes()
    for copy, _, _ in states:
        shutil.copy(copy, path)
        before = path.read_bytes()
        for read in (Store, knowmore.load):
            with pytest.raises(InvalidInput, match="belongs to another state"):
                read(path)
        assert path.read_bytes() == before
        assert journal.read_bytes() == hot
    shutil.copy(last, path)
    with Store(path) as store:
        assert len(store) == 25
        assert store.verify().ok


@pytest.mark.slow
def test_a_store_that_was_open_refuses_the_journal_too(path, tmp_path):
    states = copies(path, tmp_path)
    with Store(path) as store:
        crash(path)
        shutil.copy(states[1][0], path)
        for ask in (store.refresh, store.status, lambda: store.relabel(0, "b")):
            with pytest.raises(InvalidInput, match="belongs to another state"):
                ask()


@pytest.mark.slow
def test_a_fork_of_the_history_is_told_apart(path, tmp_path):
    """Two states with as many edits behind them, after different edits."""
    other = tmp_path / "other.km"
    shutil.copy(path, other)
    for file, label in ((path, "c"), (other, "d")):
        with Store(file) as store:
            store.relabel(3, label)
    crash(path)
    shutil.copy(other, path)
    with pytest.raises(InvalidInput, match="belongs to another state"):
        Store(path)


@pytest.mark.slow
def test_restore_puts_a_copy_in_place_whatever_the_journal(path, tmp_path):
    states = copies(path, tmp_path)
    for copy, count, scores in states:
        crash(path)
        found = restore(path, copy)
        assert (found.examples, found.forgotten) == (count, [])
        with Store(path) as store:
            assert (answers(store, X) == scores).all()
            assert store.verify().ok
            store.relabel(0, "c")
        # The file that somebody copied by hand, with the journal beside it.
        journal = crash(path)
        shutil.copy(states[0][0], path)
        assert journal.stat().st_size
        restore(path, copy)
        with Store(path) as store:
            assert (answers(store, X) == scores).all()


def test_restore_of_a_copy_that_has_no_examples_over_a_model_that_has_forgotten_some(
    path, tmp_path
):
    copy = tmp_path / "pca.km"
    fitted = knowmore.EigenspacePCA(2).fit(X)
    fitted.save(copy)
    with Store(path) as store:
        store.forget([1])
    assert restore(path, copy).examples == 0
    assert knowmore.load(path).mean_.tolist() == fitted.mean_.tolist()


def test_restore_forgets_again_what_was_forgotten_since(path, tmp_path):
    copy = tmp_path / "copy.km"
    shutil.copy(path, copy)
    with Store(path) as store:
        store.forget([1, 2])
        store.forget([3], mark=False)
        store.add(X[2:3], Y[2:3], ids=[2])
    found = restore(path, copy)
    assert (found.examples, found.forgotten) == (19, [1])
    with Store(path) as store:
        assert 1 not in store.ids_.tolist()
        assert store.was_forgotten([1, 5]) == [(True, False, False), (False, False, False)]
        assert store.verify().ok
    assert restore(path, copy, again=True).examples == 20
    with Store(path) as store:
        assert 1 in store.ids_.tolist()


def given(store):
    """Features, label and givers by id."""
    rows = dict(zip(store.ids_.tolist(), store.examples.X.tolist(), strict=True))
    return {r.id: (rows[r.id], r.label, r.contributor, r.labeller) for r in store.records()}


def test_restore_takes_back_again_what_others_had_given_to_examples_that_stay(path, tmp_path):
    copy = tmp_path / "copy.km"
    with Store(path) as store:
        store.add(X[20:22], ["a", "b"], [20, 21], contributor="ben")
        store.relabel(0, "ben's label", contributor="ben")
        store.replace([1], X[30:31], contributor="ben")
        store.replace([2], X[31:32], contributor="ben")
        store.replace([2], X[32:33], contributor="dan")
        store.relabel(3, "b", contributor="ben")
    shutil.copy(path, copy)
    with Store(path) as store:
        # What is undone when it is forgotten is forgotten in the copy, where it is not.
        store.undo()
        done = store.forget(contributor="ben")
        assert (done.count, done.changed, done.erased) == (2, 2, 2)
        wanted = given(store)
        store.relabel(0, "ben's label", contributor="ben")
    found = restore(path, copy)
    assert (found.examples, found.forgotten, found.changed) == (20, [20, 21], [0, 1, 2, 3])
    assert found.warning == ""
    with Store(path) as store:
        assert given(store) == wanted
        assert set(store.status().contributors) == {None, "dan"}
        assert store.verify().ok
    held = path.read_bytes()
    assert b"ben" not in held
    assert not any(row.tobytes() in held for row in X[[20, 21, 30, 31]])
    # A copy of this state has nothing to lose.
    shutil.copy(path, copy)
    found = restore(path, copy)
    assert (found.examples, found.forgotten, found.changed) == (20, [], [])


def test_restore_does_not_bring_back_an_id_that_somebody_else_uses_now(path, tmp_path):
    copy = tmp_path / "copy.km"
    shutil.copy(path, copy)
    with Store(path) as store:
        store.forget([1, 2])
        store.add(X[[1, 2]], ["a", "a"], [1, 2], contributor="ann")
    assert restore(path, copy).forgotten == [1, 2]


@pytest.mark.parametrize("how", ["no mark", "undone", "nothing"])
def test_restore_names_people_who_may_have_been_forgotten(path, tmp_path, how):
    """Nothing tells that these are ben's labels but the copy, and that something was forgotten."""
    copy = tmp_path / "copy.km"
    with Store(path) as store:
        store.relabel(0, "c", contributor="ben")
        store.relabel(1, "c", contributor="ben")
    shutil.copy(path, copy)
    with Store(path) as store:
        if how == "no mark":
            store.forget(contributor="ben", mark=False)
        if how == "undone":
            store.undo()
            store.relabel(2, "b", contributor="ann")
            store.forget(contributor="ben")
        if how == "nothing":
            store.undo()
            store.undo()
            store.relabel(2, "b", contributor="ann")
    found = restore(path, copy)
    assert found.changed == ([0] if how == "undone" else [])
    wanted = (
        f"The copy has contributions of 'ben', and {str(path)!r} had none and has forgotten "
        f"something since. If that was theirs: knowmore forget {path.name} --contributor NAME"
    )
    assert found.warning == ("" if how == "nothing" else wanted)


def test_marks_of_what_examples_lost_say_neither_whose_nor_what(path):
    with Store(path) as store:
        store.relabel([0, 1], "c", contributor="ben")
        store.forget(contributor="ben")
        marks = store.session.file.connection.execute("SELECT mark FROM forgotten").fetchall()
        assert [len(mark) for (mark,) in marks] == [16, 16]
    assert b"ben" not in path.read_bytes()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path, _: path.unlink(), "There was no model {path!r}"),
        (lambda path, _: path.write_bytes(b"junk" * 999), "{path!r} could not be read"),
        (lambda path, other: shutil.copy(other, path), "{path!r} has another past than the copy"),
    ],
)
def test_restore_says_when_nobody_knows_what_was_forgotten(path, tmp_path, spoil, said):
    copy, other = tmp_path / "copy.km", tmp_path / "other.km"
    with Store(other, knowmore.GPClassifier()) as store:
        store.add(X[:3], Y[:3])
    shutil.copy(path, copy)
    with Store(path) as store:
        store.forget([1, 2])
    spoil(path, other)
    found = restore(path, copy)
    assert (found.examples, found.forgotten, found.changed) == (20, [], [])
    assert found.warning == (
        f"{said.format(path=str(path))}, so nobody can tell what was forgotten since the copy was "
        f"made: it may be back. Forget it again: knowmore forget {path.name} ..."
    )
    assert restore(path, copy, again=True).warning == ""


def test_restore_of_what_cannot_be(path, tmp_path):
    with pytest.raises(InvalidInput, match="is the model itself"):
        restore(path, path)
    damaged = tmp_path / "damaged.km"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    damaged.write_bytes(data)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="damaged"):
        restore(path, damaged)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir() if "part" in one.name] == []


def test_a_model_that_is_being_written_is_not_replaced(path, tmp_path, monkeypatch):
    copy = tmp_path / "copy.km"
    shutil.copy(path, copy)
    monkeypatch.setattr(layout, "PATIENCE", 0.1)
    with Store(path) as store, store.together("long"):
        store.relabel(0, "c")
        with pytest.raises(NotWritten, match="being written by another program"):
            restore(path, copy)
        with pytest.raises(NotWritten, match="being written by another program"):
            store.estimator.save(path)
    with Store(path) as store:
        assert store.records([0])[0].label == "c"


def test_a_file_with_two_names_is_not_written(path, tmp_path):
    os.link(path, tmp_path / "other.km")
    with Store(path) as store:
        assert len(store) == 20
        with pytest.raises(NotWritten, match=r"has 2 names \(hard links\)"):
            store.relabel(0, "b")
    (tmp_path / "other.km").unlink()
    with Store(path) as store:
        store.relabel(0, "b")


def test_the_first_record_of_a_journal_is_the_first_page(path):
    """The binding rests on this for every edit."""
    with Store(path) as store:
        epochs = []
        with store.together("edit"):
            store.relabel(0, "c")
            data = layout.journal_of(path).read_bytes()
            sector = int.from_bytes(data[20:24])
            assert data[sector : sector + 4] == b"\0\0\0\1"
            epochs.append(layout.Head.of(data[sector + 4 :]))
        epochs.append(layout.Head.of(path.read_bytes()))
    before, after = epochs
    assert after.follows(before)
    assert not before.follows(after)
    assert after.counter == before.counter + 1


def test_a_journal_that_sqlite_ignores_is_no_reason_to_refuse(path):
    journal = layout.journal_of(path)
    for data in (bytes(1000), b"x", b"nothing of a journal" * 100):
        journal.write_bytes(data)
        with Store(path) as store:
            assert len(store) == 20


def test_a_file_of_the_first_format_is_raised_by_its_first_edit(tmp_path):
    import gzip
    from pathlib import Path

    packed = Path(__file__).parents[2] / "formats" / "1-gp.km.gz"
    path = tmp_path / "old.km"
    path.write_bytes(gzip.decompress(packed.read_bytes()))

    def version():
        connection = sqlite3.connect(path)
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.close()
        return layout.format_of(found)

    with Store(path) as store:
        assert store.was_forgotten([0]) == [(False, False, False)]
        assert store.kept_.tolist() == []
        assert {record.contributor for record in store.records()} == {"ann", None}
    assert version() == 1
    with Store(path) as store:
        store.relabel(store.ids_[:1], [2], contributor="bob")
        # Its journal has settings of before an example was forgotten, until the next one is.
        assert [check.name for check in store.verify().checks if not check.ok] == ["settings"]
        assert store.records(store.ids_[:1])[0].labeller == "bob"
    assert version() == 2
    with Store(path) as store:
        assert store.forget(contributor="bob").changed == 1
        assert store.verify().ok
