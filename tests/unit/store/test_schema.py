"""What other programs add to a file is told apart from damage, never run, and taken off."""

from __future__ import annotations

import re
import shutil
import sqlite3

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import answers

import knowmore
from knowmore.errors import InvalidInput
from knowmore.store import Store, restore_schema
from knowmore.store.file import SCHEMA

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.array(["a", "b"] * 6)

ADDED = {
    "index": ("CREATE INDEX by_id ON examples(id)", "the index 'by_id'", "has copies of what is"),
    "unique": ("CREATE UNIQUE INDEX u ON examples(row)", "the index 'u'", "has copies of what is"),
    "partial": (
        "CREATE INDEX p ON vectors(hex(data)) WHERE vector > 2",
        "the index 'p'",
        "has copies of what is",
    ),
    "view": ("CREATE VIEW v AS SELECT * FROM examples", "the view 'v'", "SQL that is run when"),
    "table": ("CREATE TABLE _counts(name TEXT PRIMARY KEY, n)", "the table '_counts'", "not reach"),
    "sequence": (
        "CREATE TABLE s(x INTEGER PRIMARY KEY AUTOINCREMENT)",
        "the table 's' and 1 more",
        "not reach",
    ),
    "statistics": (
        "CREATE INDEX i ON examples(id); ANALYZE; DROP INDEX i",
        "the table 'sqlite_stat1'",
        "not reach",
    ),
    "virtual": (
        "CREATE VIRTUAL TABLE words USING fts5(id)",
        "the virtual table 'words' and 5 more",
        "not reach",
    ),
    "trigger": (
        "CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM examples; END",
        "the trigger 't'",
        "SQL that is run at every edit",
    ),
    "trigger of our name": (
        "CREATE TRIGGER examples AFTER UPDATE ON facts BEGIN DELETE FROM examples; END",
        "the trigger 'examples'",
        "SQL that is run at every edit",
    ),
    "index and trigger": (
        "CREATE INDEX i ON examples(id); "
        "CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM examples; END",
        "the trigger 't' and 1 more",
        "SQL that is run at every edit",
    ),
    "bad view": (
        "CREATE VIEW v AS SELECT load_extension('evil')",
        "the view 'v'",
        "SQL that is run when",
    ),
    "many": (
        "; ".join(f"CREATE VIEW v{i} AS SELECT {i}" for i in range(90)),
        "the view 'v0' and ",
        "SQL that is run when",
    ),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "model.km"
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, contributor="ann", thumbnails=[b"picture"] * 12)
        store.relabel([3], "a")
        store.forget([5])
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copy(original, tmp_path / "model.km")


def changed(path, statement):
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()


def content(path):
    connection = sqlite3.connect(path)
    rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in SCHEMA}
    numbers = [
        connection.execute(f"PRAGMA {name}").fetchone()
        for name in ("user_version", "application_id", "page_size")
    ]
    connection.close()
    return rows, numbers


@pytest.mark.parametrize("name", ADDED)
def test_what_was_added_is_named_and_taken_off(path, name):
    statement, named, reason = ADDED[name]
    with Store(path) as store:
        before = answers(store.estimator, X)
    rows = content(path)
    changed(path, statement)
    data = path.read_bytes()
    for opens in Store, knowmore.load, knowmore.open:
        with pytest.raises(InvalidInput, match=f"has added {re.escape(named)}.*{reason}") as raised:
            opens(path)
        text = str(raised.value)
        assert "damaged" not in text
        assert "The tables of the model itself are all there" in text
        assert "knowmore verify model.km --clean" in text
    assert path.read_bytes() == data
    taken = restore_schema(path)
    assert named.partition(" and ")[0] in taken
    assert content(path) == rows
    with Store(path) as store:
        assert store.verify().ok
        np.testing.assert_array_equal(answers(store.estimator, X), before)
        assert [entry.verb for entry in store.log()] == ["add", "relabel", "forget"]
    assert restore_schema(path) == []


def test_the_sentence(path):
    changed(path, "CREATE INDEX by_id ON examples(id)")
    with pytest.raises(InvalidInput) as raised:
        Store(path)
    assert str(raised.value) == (
        f"{str(path)!r} is not opened: another program has added the index 'by_id'. An index has "
        f"copies of what is in the rows, which forgetting would not reach. The tables of the model "
        f"itself are all there, and none of it was run. Take it off with `knowmore verify model.km "
        f"--clean`, which checks every row. To browse a model, make a database of it: `knowmore "
        f"export model.km --sqlite browse.db`."
    )


def test_an_index_holds_what_forgetting_would_not_reach(path):
    """Why an index is taken off, and with it all of its bytes."""
    with Store(path) as store:
        store.add([[9.0, 9.0]], ["a"], ids=["a-telling-name"])
    changed(path, "CREATE INDEX by_id ON examples(id)")
    assert path.read_bytes().count(b"a-telling-name") == 2
    restore_schema(path)
    assert path.read_bytes().count(b"a-telling-name") == 1
    with Store(path) as store:
        store.forget(["a-telling-name"])
    assert path.read_bytes().count(b"a-telling-name") == 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE examples SET label='\"b\"' WHERE row=1", "another hash than its content"),
        ("DELETE FROM vectors WHERE vector=1", "rows of vectors are missing"),
        ("DROP TABLE journal", "its tables are not those of a model"),
    ],
)
def test_a_damaged_file_stays_as_it_is(path, damage, words):
    changed(path, f"CREATE INDEX i ON examples(id); {damage}")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=words):
        restore_schema(path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_model_that_is_open_notices(path):
    with Store(path) as store:
        changed(path, "CREATE INDEX i ON examples(id)")
        with pytest.raises(InvalidInput, match="has added the index 'i'"):
            store.add([[0.0, 0.0]], ["a"])
        with pytest.raises(InvalidInput, match="has added the index 'i'"):
            store.refresh()


def test_models_of_the_first_format_and_values_too(tmp_path):
    path = tmp_path / "pca.km"
    knowmore.EigenspacePCA(1).fit(X).save(path)
    changed(path, "CREATE TABLE more(x)")
    assert restore_schema(path) == ["the table 'more'"]
    assert knowmore.load(path).n_components == 1
