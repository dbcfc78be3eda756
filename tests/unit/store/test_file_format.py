"""The page about the file says the truth: its code reads a file of every kind and format."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import knowmore
from knowmore.store import Store, to_sqlite
from knowmore.store.file import APPLICATION, PAGE, TABLES
from knowmore.store.kinds import LIVING

ROOT = Path(__file__).parents[3]
PAGE_TEXT = (ROOT / "docs" / "file_format.md").read_text(encoding="utf-8")
FORMATS = ROOT / "tests" / "formats"
OLD = [path for path in sorted(FORMATS.glob("*.km.gz")) if path.name[2:-6] in LIVING]


def code(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE_TEXT, re.DOTALL)
    return found


def reader():
    names = {}
    exec(code("python"), names)
    return names["read_model"]


@pytest.fixture(params=[*OLD, "new"], ids=lambda one: getattr(one, "name", one))
def path(request, tmp_path):
    target = tmp_path / "model.km"
    if request.param != "new":
        target.write_bytes(gzip.decompress(request.param.read_bytes()))
        return target
    rng = np.random.default_rng(0)
    with Store(target, knowmore.GPClassifier()) as store:
        store.add(rng.normal(size=(5, 3)).astype(np.float32), [*"abcab"], contributor="ann")
        store.add(rng.integers(0, 256, (5, 3)).astype(np.uint8), [*"abcab"], ids=[*"vwxyz"])
        store.add(rng.normal(size=(2, 3)), [*"ab"], origins="é.csv")
        store.relabel(["v"], "c", contributor="ben")
        store.keep(["w"])
    return target


def test_the_function_of_the_page_reads_what_is_held(path):
    before = path.read_bytes()
    ids, labels, X = reader()(path)
    assert path.read_bytes() == before
    with Store(path) as store:
        held = store.examples
        assert ids == held.ids.tolist()
        assert labels.tolist() == held.labels.tolist()
        np.testing.assert_array_equal(X, held.X)


def test_the_views_of_the_page_say_what_is_held_and_what_was_done(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    before = path.read_bytes()
    *views, counts = code("sql").strip().rstrip(";").split(";\n\n")
    for view in views:
        connection.execute(view)
    held = connection.execute("SELECT id, label, weight, contributor, origin FROM held").fetchall()
    counted = dict(connection.execute(counts).fetchall())
    history = connection.execute("SELECT number, verb, count, undone, id, enters FROM history")
    entries = {row[:4] for row in history.fetchall()}
    connection.close()
    assert path.read_bytes() == before
    with Store(path) as store:
        records = store.records()
        want = [(r.id, r.label, r.weight, r.contributor, r.origin) for r in records]
        assert [(*row[:2], *row[2:]) for row in held] == want
        assert counted == Counter(record.label for record in records)
        log = store.log()
    assert entries == {(one.number, one.verb, one.count, int(one.undone)) for one in log}


def test_every_table_column_and_number_is_on_the_page():
    for name, table in TABLES.items():
        assert f"**{name}**" in PAGE_TEXT
        for column in table.names:
            assert f"`{column}`" in PAGE_TEXT, (name, column)
    assert f"0x{APPLICATION:X}" in PAGE_TEXT
    assert str(PAGE) in PAGE_TEXT


def test_every_fact_is_on_the_page(path):
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM facts")]
    connection.close()
    assert not [name for name in names if f"| `{name}` |" not in PAGE_TEXT]


# -- a database to browse ------------------------------------------------------------------------


def tables(path):
    connection = sqlite3.connect(path)
    found = {}
    for name in ("examples", "journal", "changes"):
        rows = connection.execute(f"SELECT * FROM {name}")
        names = [one[0] for one in rows.description]
        found[name] = [dict(zip(names, row, strict=True)) for row in rows]
    connection.close()
    return found


def test_a_database_has_what_is_held_and_what_was_done(path, tmp_path):
    target = tmp_path / "browse.db"
    with Store(path) as store:
        to_sqlite(store, target)
        records, held, log = store.records(), store.examples, store.log()
    found = tables(target)
    mixed = len({type(one.id) for one in records}) > 1
    names = [f"x{j}" for j in range(held.X.shape[1])]
    assert len(found["examples"]) == len(records) == len(held)
    for row, one, x in zip(found["examples"], records, held.X.tolist(), strict=True):
        assert row["id"] == (json.dumps(one.id) if mixed else one.id)
        assert (row["label"], row["weight"]) == (one.label, one.weight)
        assert (row["contributor"], row["labeller"]) == (one.contributor, one.labeller)
        assert (row["origin"], row["kept"]) == (one.origin, int(one.kept))
        assert row["at"] == one.at.isoformat(timespec="microseconds")
        assert [row[name] for name in names] == x
    entries = [(one.number, one.verb, one.count, int(one.undone)) for one in log]
    asked = "number", "verb", "count", "undone"
    assert [tuple(row[name] for name in asked) for row in found["journal"]] == entries
    entered = Counter(row["id"] for row in found["changes"] if row["enters"])
    assert {row["id"] for row in found["examples"]} <= entered.keys()
    labels = {(row["id"], row["label"]) for row in found["changes"] if row["enters"]}
    assert {(row["id"], row["label"]) for row in found["examples"]} <= labels


def test_names_that_differ_by_case_and_those_of_other_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.arange(8.0).reshape(2, 4), columns=["a", "A", "id", 'say "x"'])
    with Store(tmp_path / "m.km", knowmore.GPRegressor()) as store:
        store.add(X, np.array([[1.0, 2.0], [3.0, 4.5]]), ids=[2**70, 5])
        to_sqlite(store, tmp_path / "m.db")
    rows = tables(tmp_path / "m.db")["examples"]
    assert [*rows[0]][:3] == ["id", "label_0", "label_1"]
    assert [*rows[0]][-4:] == ["a", "A_", "id_", 'say "x"']
    # SQLite has numbers of 64 bits.
    assert [row["id"] for row in rows] == [str(2**70), "5"]
    assert [row["label_1"] for row in rows] == [2.0, 4.5]


def test_many_features_are_one_column_and_an_empty_model_has_tables(tmp_path):
    with Store(tmp_path / "m.km", knowmore.GPClassifier()) as store:
        to_sqlite(store, tmp_path / "m.db")
        assert tables(tmp_path / "m.db") == {"examples": [], "journal": [], "changes": []}
        X = np.random.default_rng(0).normal(size=(2, 1001))
        store.add(X, ["a", "b"])
        to_sqlite(store, tmp_path / "m.db")
    rows = tables(tmp_path / "m.db")["examples"]
    assert [json.loads(row["features"]) for row in rows] == X.tolist()
    assert [row["id"] for row in rows] == [0, 1]


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    target = tmp_path / "m.db"
    target.write_bytes(b"old")
    with Store(tmp_path / "m.km", knowmore.GPClassifier()) as store:
        store.add([[0.0], [1.0]], ["a", "b"], ids=["x", "\udc80"])
        with pytest.raises(knowmore.KnowmoreError, match="SQLite cannot hold the ids, labels or"):
            to_sqlite(store, target)
        with pytest.raises(knowmore.KnowmoreError, match=r"is the model itself\. Name another"):
            to_sqlite(store, store.path)
    assert target.read_bytes() == b"old"


def test_an_old_file_with_an_index_is_cleaned_and_read(path):
    copy = shutil.copy(path, path.with_name("copy.km"))
    connection = sqlite3.connect(path)
    connection.execute("CREATE INDEX by_id ON examples(id)")
    connection.close()
    assert knowmore.store.restore_schema(path) == ["the index 'by_id'"]
    (ids, labels, X), want = reader()(path), reader()(copy)
    assert ids == want[0]
    assert labels.tolist() == want[1].tolist()
    np.testing.assert_array_equal(X, want[2])
    checks = []
    for each in path, copy:
        with Store(each) as store:
            checks.append([(check.name, check.ok) for check in store.verify().checks])
    assert checks[0] == checks[1]
    assert ("rows", True) in checks[0]
