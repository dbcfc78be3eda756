"""Files made by hand to do harm: nothing in them is run, nothing crashes, and memory is bounded."""

from __future__ import annotations

import json
import resource
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import knowmore
from benchmarks.crash.damage import CONSTANT, answers, judged, small
from benchmarks.crash.kills import Tally, folder, heard, in_child
from knowmore.store.file import APPLICATION, FORMAT, TABLES, hashed

Change = Callable[[sqlite3.Connection], object]


def _sql(*texts: str) -> Change:
    """Run these statements on a good file."""
    return lambda connection: [connection.execute(text) for text in texts]


def _schema(text: str) -> Change:
    """Change the schema itself, as only its owner can."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(text)

    return change


def _row(table: str, key: Any, column: str, value: Any) -> Change:
    """Another value, with a right hash and right totals."""

    def change(connection: sqlite3.Connection) -> None:
        names = TABLES[table].names
        where = f"WHERE {names[0]} = ?"
        row = list(
            connection.execute(f"SELECT {', '.join(names)} FROM {table} {where}", (key,)).fetchone()
        )
        row[names.index(column)] = value
        mark = hashed(table, tuple(row))
        connection.execute(f"UPDATE {table} SET {column} = ?, hash = ? {where}", (value, mark, key))
        _totals(connection)

    return change


def _fact(name: str, value: Any) -> Change:
    text = value if isinstance(value, str) and value.startswith(("[", "{")) else json.dumps(value)
    return _row("facts", name, "value", text)


def _insert(table: str, row: tuple[Any, ...]) -> Change:
    """Insert a row, with a right hash and right totals."""

    def change(connection: sqlite3.Connection) -> None:
        places = ", ".join("?" * (len(row) + 1))
        connection.execute(f"INSERT INTO {table} VALUES({places})", (*row, hashed(table, row)))
        _totals(connection)

    return change


def _totals(connection: sqlite3.Connection) -> None:
    """Write the right totals for the rows in the tables."""
    totals: dict[str, Any] = {"unclean": False}
    for table in TABLES:
        name = "name" if table in ("facts", "arrays") else "''"
        found = connection.execute(f"SELECT {name}, hash FROM {table}").fetchall()
        marks = [
            int.from_bytes(mark)
            for name, mark in found
            if name != "totals" and not str(name).startswith("cache/") and isinstance(mark, bytes)
        ]
        totals[table] = [len(marks), f"{sum(marks) % 2**128:032x}"]
    text = json.dumps(totals)
    row = ("totals", text.ljust(-(-len(text) // 128) * 128))
    update = "UPDATE facts SET value = ?, hash = ? WHERE name = 'totals'"
    connection.execute(update, (row[1], hashed("facts", row)))


def _put(at: int, value: bytes) -> Callable[[bytearray], object]:
    """Other bytes at a place."""

    def change(data: bytearray) -> None:
        data[at : at + len(value)] = value

    return change


def _cycle(data: bytearray) -> None:
    """Inner pages that lead back to the first one."""
    inner = [at for at in range(512, len(data), 512) if data[at] in (2, 5)]
    assert inner
    for at in inner:
        data[at + 8 : at + 12] = (at // 512 + 1).to_bytes(4, "big")


def _overflow_cycle(data: bytearray) -> None:
    """Pages that overflow into themselves."""
    # The last page of a value leads nowhere.
    chained = [at for at in range(512, len(data), 512) if not data[at] and any(data[at : at + 4])]
    assert chained
    for at in chained:
        data[at : at + 4] = (at // 512 + 1).to_bytes(4, "big")


def _blob_claims(data: bytearray) -> None:
    """A row that claims to be nearly two gigabytes long."""
    for number in range(1, len(data) // 512):
        start = number * 512
        if data[start] == 13 and int.from_bytes(data[start + 3 : start + 5], "big"):
            cell = start + int.from_bytes(data[start + 8 : start + 10], "big")
            data[cell : cell + 5] = b"\x87\xff\xff\xff\x7f"


DEEP = "[" * 100_000 + "]" * 100_000
BY_SQL: dict[str, Change] = {
    "a trigger": _sql(
        "CREATE TRIGGER evil AFTER INSERT ON examples BEGIN DELETE FROM vectors; END"
    ),
    "a trigger on updates": _sql(
        "CREATE TRIGGER evil AFTER UPDATE ON facts BEGIN SELECT load_extension('evil.so'); END"
    ),
    "a view": _sql("CREATE VIEW evil AS SELECT load_extension('evil.so')"),
    "a view in the place of a table": _sql(
        "ALTER TABLE vectors RENAME TO others", "CREATE VIEW vectors AS SELECT * FROM others"
    ),
    "one more table": _sql("CREATE TABLE more(value)"),
    "a missing table": _sql("DROP TABLE arrays"),
    "an index": _sql("CREATE INDEX quick ON examples(id)"),
    "an index on an expression": _sql("CREATE INDEX quick ON examples(abs(weight))"),
    "one more column": _sql("ALTER TABLE examples ADD COLUMN more TEXT"),
    "a generated column": _sql("ALTER TABLE examples ADD COLUMN more AS (zeroblob(1000000000))"),
    "a virtual table": _sql("CREATE VIRTUAL TABLE evil USING fts5(text)"),
    "a check in the schema": _schema(
        "UPDATE sqlite_master SET sql = replace(sql, 'weight REAL', "
        "'weight REAL CHECK(load_extension(1))') WHERE name = 'examples'"
    ),
    "a default in the schema": _schema(
        "UPDATE sqlite_master SET sql = replace(sql, 'origin TEXT', "
        "'origin TEXT DEFAULT (randomblob(1000000000))') WHERE name = 'examples'"
    ),
    "two tables on one page": _schema(
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = "
        "'vectors') WHERE name = 'arrays'"
    ),
    "a table on no page": _schema("UPDATE sqlite_master SET rootpage = 0 WHERE name = 'arrays'"),
    "a table on a page far away": _schema(
        "UPDATE sqlite_master SET rootpage = 2000000000 WHERE name = 'vectors'"
    ),
    "a schema that is no text": _schema("UPDATE sqlite_master SET sql = x'00ff' WHERE rowid = 2"),
    "another application": _sql("PRAGMA application_id=7"),
    "a newer format": _sql(f"PRAGMA user_version={FORMAT + 1}"),
    "a negative format": _sql("PRAGMA user_version=-1"),
    "nothing changed": _totals,
    "deep JSON": _row("facts", "parameters", "value", DEEP),
    "no JSON": _row("facts", "parameters", "value", "{'kernel': __import__('os')}"),
    "JSON of NaN": _row("facts", "state", "value", '{"kernel": NaN}'),
    "a number of 100,000 digits": _row("facts", "numbers", "value", f"[{'9' * 100_000}]"),
    "an unknown kind": _fact("kind", "os.system"),
    "another kind": _fact("kind", "linear"),
    "a kind that is a list": _fact("kind", [["gp"]]),
    "unknown parameters": _fact("parameters", {"kernel": None, "evil": 1}),
    "a kernel by its class": _fact("parameters", {"kernel": "builtins.eval"}),
    "counters that are huge": _fact("numbers", [2**70] * 6),
    "counters that are negative": _fact("numbers", [-5, -5, -5, -5, 3, -1]),
    "counters that are too few": _fact("numbers", [1, 2]),
    "a billion features": _fact("columns", {"count": 10**9, "names": None}),
    "no features": _fact("columns", {"count": 0, "names": None}),
    "labels of another type": _fact("labels", ["f", 3]),
    "labels that are huge": _fact("labels", ["U", 10**9]),
    "an id that is no JSON": _row("examples", 1, "id", "evil"),
    "an id that is deep": _row("examples", 1, "id", DEEP),
    "an id twice": _row("examples", 1, "id", "5"),
    "a label that is a list": _row("examples", 1, "label", '["a"]'),
    "a weight of NaN": _row("examples", 1, "weight", None),
    "a weight of infinity": _row("examples", 1, "weight", float("inf")),
    "a negative weight": _row("examples", 1, "weight", -1.0),
    "a weight that is text": _row("examples", 1, "weight", "heavy"),
    "a vector that is not there": _row("examples", 1, "vector", 999),
    "a vector that is text": _row("vectors", 1, "data", "text"),
    "a vector of no bytes": _row("vectors", 1, "data", b""),
    "a vector of NaN": _row("vectors", 1, "data", b"d" + struct.pack("<3d", *[float("nan")] * 3)),
    "a vector of another length": _row("vectors", 1, "data", b"d" + bytes(8 * 999)),
    "a time beyond all": _row("examples", 1, "at", 2**62),
    "live, but neither 0 nor 1": _row("examples", 1, "live", 7),
    "a change of nothing": _insert("changes", (1, 777, 1)),
    "an entry that is undone, but not the last": _row("journal", 1, "undone", 1),
    "a false total": _sql("UPDATE facts SET value = '{}' WHERE name = 'totals'"),
    "a row without a hash": _sql("UPDATE examples SET hash = NULL"),
    "a cache of nonsense": _insert("arrays", (900, "cache/factor", 0, bytes(10_000))),
    "a cache of another shape": _insert("arrays", (901, "cache/about", 0, b"{}")),
}
# Caches are no part of the model: nonsense there changes nothing.
HARMLESS = {"nothing changed", "a cache of nonsense", "a cache of another shape"}
BY_BYTES: dict[str, Callable[[bytearray], object]] = {
    "nothing": bytearray.clear,
    "a header alone": lambda data: data.__delitem__(slice(100, None)),
    "text": _put(0, b"#!/bin/sh\nrm -rf / \n"),
    "pages of 65536 bytes": _put(16, b"\0\1"),
    "pages of no bytes": _put(16, b"\0\0"),
    "reserved bytes": _put(20, b"\xff"),
    "a write-ahead log": _put(18, b"\2\2"),
    "a newer SQLite": _put(18, b"\7\7"),
    "two billion pages": _put(28, b"\x7f\xff\xff\xff"),
    "free pages without end": _put(32, b"\0\0\0\2\x7f\xff\xff\xff"),
    "text in UTF-16": _put(56, b"\0\0\0\2"),
    "auto_vacuum": _put(52, b"\0\0\0\3"),
    "inner pages in a circle": _cycle,
    "overflow in a circle": _overflow_cycle,
    "rows that claim gigabytes": _blob_claims,
    "more cells than bytes": _put(512 + 3, b"\xff\xff"),
    "a page of cells of nothing": _put(512, b"\x0d\0\0\0\xff\2\0\0" + bytes(504)),
    "no application": _put(68, struct.pack(">I", APPLICATION ^ 1)),
}


def made(path: Path, whole: bytes) -> dict[str, bytes]:
    """The hostile files, by name, each made from the good file `whole`."""
    found = {}
    for name, change in BY_SQL.items():
        path.write_bytes(whole)
        connection = sqlite3.connect(path, isolation_level=None)
        change(connection)
        connection.close()
        found[name] = path.read_bytes()
    for name, alter in BY_BYTES.items():
        data = bytearray(whole)
        alter(data)
        found[name] = bytes(data)
    return found


def by_hand() -> Tally:
    """Each of these files, opened by a process whose memory is bounded."""
    total = Tally()
    with folder() as where:
        # Enough for inner pages, and for a value of several pages.
        whole = small(where / "model.km", k=20)
        with knowmore.open(where / "model.km") as store:
            truth = answers(store)
        assert judged(where / "model.km", whole, truth) == "same"
        for name, data in made(where / "model.km", whole).items():

            def work(say: Any, data: bytes = data) -> None:
                size = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
                room = size + 2 * len(data) + CONSTANT
                resource.setrlimit(resource.RLIMIT_AS, (room, room))
                verdict = judged(where / "model.km", data, truth, change=True)
                if verdict == "same":
                    (where / "model.km").write_bytes(data)
                    with knowmore.open(where / "model.km") as store:
                        verdict = "same" if store.verify().ok else "refused"
                say(verdict.encode())

            said, ended = heard(*in_child(work))
            verdict = said.decode() or f"the process ended with {ended}"
            fine = verdict == ("same" if name in HARMLESS else "refused")
            total += Tally(1, int(verdict == "refused"), [] if fine else [f"{name}: {verdict}"])
    return total
