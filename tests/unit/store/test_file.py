"""Files that are damaged, foreign or made up: nothing is run, and the error says so."""

from __future__ import annotations

import json
import shutil
import sqlite3

import damage
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import answers

import knowmore
from knowmore.errors import InvalidInput, KnowmoreError, NotWritten
from knowmore.store import Store
from knowmore.store import file as layout

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.array(["a", "b"] * 6)

WANTED = {
    "application_id": 0x6B6E6F77,
    "page_size": 16384,
    "journal_mode": "truncate",
    "synchronous": 2,
    "secure_delete": 1,
    "mmap_size": 0,
    "trusted_schema": 0,
    "cell_size_check": 1,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "model.km"
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, contributor="ann")
        store.relabel([3], "a")
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copy(original, tmp_path / "model.km")


def changed(path, statement):
    """Change a file behind the back of the library."""
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()


def test_the_settings_of_a_file(original):
    with Store(original) as store:
        ask = {
            name: store.session.file.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in WANTED
        }
        version = store.session.file.connection.execute("PRAGMA user_version").fetchone()[0]
    assert ask == WANTED
    assert layout.format_of(version) == 2


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA user_version=3", "format 3, and this version reads up to 2"),
        ("PRAGMA application_id=7", "database of another program"),
        ("PRAGMA journal_mode=WAL", "write-ahead log"),
        ("DROP TABLE journal", "tables are not those"),
        ("ALTER TABLE facts ADD COLUMN more", "tables are not those"),
        ("DROP TABLE journal; CREATE VIEW journal AS SELECT 1", "tables are not those"),
        ("UPDATE examples SET label='\"b\"' WHERE row=1", "a row of examples has another hash"),
        ("UPDATE examples SET live=0 WHERE row=2", "a row of examples has another hash"),
        ("UPDATE vectors SET data=zeroblob(16) WHERE vector=1", "a row of vectors has another"),
        ("DELETE FROM examples WHERE row=1", "rows of examples are missing, or there twice"),
        ("DELETE FROM vectors WHERE vector=1", "rows of vectors are missing"),
        ("DELETE FROM journal", "rows of journal are missing"),
        ("DELETE FROM changes WHERE row=1", "rows of changes are missing"),
        ("DELETE FROM facts WHERE name='kind'", "rows of facts are missing"),
        ("DELETE FROM facts WHERE name='totals'", "does not say its totals"),
        ("UPDATE facts SET value='{}' WHERE name='totals'", "a row of facts has another hash"),
    ],
)
def test_what_was_changed_behind_its_back(path, statement, words):
    changed(path, statement)
    with pytest.raises(InvalidInput, match=words) as raised:
        Store(path)
    assert "is damaged, or was written by a newer version" in str(raised.value)
    with pytest.raises(InvalidInput):
        knowmore.load(path)


FACTS = {
    "kind": ["nothing", 3, None, "pca"],
    "parameters": [{}, {"kernel": 3}, {"kernel": {"kernel": "os.system", "with": {}}}, [1]],
    "numbers": [[1, 2], ["a"] * 6, None, [1e9] * 6],
    "columns": [None, {"count": 10**12, "names": None, "width": 10**12}, {"count": -1}, "x"],
    "labels": [None, ["O", None], ["U", 10**9], 3],
    "state": [{}, {"kernel": {"kernel": "rbf", "with": {}}, "settled": True, "noise": 1}, 7],
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_that_make_no_sense(path, name):
    for value in FACTS[name]:
        file = layout.File(path)
        with file.writing():
            file.write_facts({name: value})
        file.close()
        with pytest.raises(KnowmoreError, match=r"damaged|holds"):
            Store(path)


def test_a_journal_of_several_databases(path):
    journal = path.with_name(f"{path.name}-journal")
    journal.write_bytes(b"/etc/passwd\0" + layout.JOURNAL_MAGIC)
    with pytest.raises(InvalidInput, match="journal of several databases"):
        Store(path)


def test_rows_that_claim_to_be_longer_than_the_file(path, monkeypatch):
    monkeypatch.setattr(layout, "_ROOM", -(10**9))
    with pytest.raises(InvalidInput, match="claim to be longer than the file"):
        Store(path)


def test_files_of_other_programs(tmp_path):
    for data in (b"", b"SQLite format 3\0", b"PK\3\4" + bytes(500), bytes(200)):
        (tmp_path / "x.km").write_bytes(data)
        with pytest.raises(InvalidInput, match="first bytes are not those of a model"):
            Store(tmp_path / "x.km")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Store(tmp_path)


def test_a_build_that_ignores_secure_delete(path, monkeypatch):
    class Deaf:
        def __init__(self, connection):
            self._connection = connection

        def execute(self, text, *rest):
            found = self._connection.execute(text, *rest)
            return iter_of((0,)) if text == "PRAGMA secure_delete" else found

        def __getattr__(self, name):
            return getattr(self._connection, name)

    def iter_of(row):
        return sqlite3.connect(":memory:").execute(f"SELECT {row[0]}")

    real = sqlite3.connect
    monkeypatch.setattr(
        layout.sqlite3, "connect", lambda *a, **k: Deaf(real(*a, **k)) if k.get("uri") else real(*a)
    )
    with pytest.raises(NotWritten, match="ignores secure_delete"):
        Store(path)


def test_mutants_are_told_or_harmless(original, tmp_path):
    """A changed byte is reported, or it changes no answer."""
    want = {tuple(map(repr, pair)) for pair in held(original)}
    with Store(original) as store:
        scores = answers(store, X)
    told = 0
    for mutant in damage.mutants(original.read_bytes(), np.random.default_rng(1), 150, keep=100):
        path = tmp_path / "mutant.km"
        path.write_bytes(mutant)
        try:
            with Store(path) as store:
                got = answers(store, X)
            assert {tuple(map(repr, pair)) for pair in held(path)} == want
            assert np.allclose(got, scores)
        except KnowmoreError:
            told += 1
    assert told > 50


def held(path):
    with Store(path) as store:
        examples = store.examples
        return list(zip(examples.names, examples.labels.tolist(), strict=True))


def test_hashes_cover_every_column():
    for table, spec in layout.TABLES.items():
        row = tuple(b"x" if kind == "BLOB" else 1 for _, kind in spec.columns)
        marks = {layout.hashed(table, row)}
        for i in range(len(row)):
            for other in (None, 2, "1", b"1", b""):
                marks.add(layout.hashed(table, (*row[:i], other, *row[i + 1 :])))
        assert len(marks) == 1 + 5 * len(row), table
    assert len({layout.hashed(name, (1,) * 9) for name in layout.TABLES}) == len(layout.TABLES)


SCHEMAS = {
    1: (
        '{"arrays": "CREATE TABLE arrays(array INTEGER PRIMARY KEY, name TEXT, part INTEGER, '
        'data BLOB, hash BLOB)", "changes": "CREATE TABLE changes(number INTEGER, row INTEGER, '
        'enters INTEGER, hash BLOB, PRIMARY KEY(number, row)) WITHOUT ROWID", "examples": "CREATE '
        "TABLE examples(row INTEGER PRIMARY KEY, id TEXT, label TEXT, weight REAL, vector INTEGER, "
        'origin TEXT, contributor TEXT, at INTEGER, live INTEGER, hash BLOB)", "facts": "CREATE '
        'TABLE facts(name TEXT, value TEXT, hash BLOB, PRIMARY KEY(name)) WITHOUT ROWID", '
        '"journal": "CREATE TABLE journal(number INTEGER PRIMARY KEY, at INTEGER, verb TEXT, count '
        'INTEGER, undone INTEGER, before TEXT, after TEXT, hash BLOB)", "vectors": "CREATE TABLE '
        "vectors(vector INTEGER PRIMARY KEY, data BLOB, side BLOB, content BLOB, thumbnail BLOB, "
        'hash BLOB)"}'
    ),
    2: (
        '{"forgotten": "CREATE TABLE forgotten(mark BLOB, hash BLOB, PRIMARY KEY(mark)) WITHOUT '
        'ROWID", "labelled": "CREATE TABLE labelled(row INTEGER PRIMARY KEY, contributor TEXT, '
        'kept INTEGER, hash BLOB)"}'
    ),
}


def test_the_schema_is_for_ever():
    """A format has its own tables and the earlier formats' tables; others are another format."""
    before = set()
    for number, text in SCHEMAS.items():
        names = layout.tables_of(number).keys()
        tables = {name: layout.SCHEMA[name] for name in names - before}
        assert json.dumps(tables, sort_keys=True) == text
        before |= names
    assert before == layout.TABLES.keys()
