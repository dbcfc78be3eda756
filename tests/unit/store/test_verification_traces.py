"""Bytes that belong to no row, in SQLite files of a few tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import alone
import numpy as np
import pytest

from knowmore.store.file import reader as file_reader
from knowmore.store.verification import Malformed, beside, free_runs, left, slack
from knowmore.store.work import Trace

SIZES = (512, 4096, 16384)
# Shorter pieces occur anywhere by chance; so do pieces of equal bytes.
SHORTEST = 8
DIFFERENT = 4
BLOCK = 2**20


def pieces(needle):
    """The pieces of a value to search for: 8 bytes with at least 4 different ones.

    So a value is found that was overwritten in part. There are none of a value that is too short
    or too plain to be told from chance; for those `slack` must be clean.
    """
    starts = range(0, len(needle) - SHORTEST + 1, SHORTEST)
    # The last ones are not skipped where the length is no multiple of eight.
    parts = {needle[at : at + SHORTEST] for at in (*starts, max(len(needle) - SHORTEST, 0))}
    return {part for part in parts if len(part) == SHORTEST and len(set(part)) >= DIFFERENT}


def left_in(path, needles):
    """Values with a piece that survives in free space or in a side file."""
    wanted = {needle: pieces(needle) for needle in needles}
    found = set()
    for data in searched(path):
        for needle, parts in wanted.items():
            if any(part in data for part in parts):
                found.add(needle)
    return [needle for needle in wanted if needle in found]


def searched(path):
    """The bytes that belong to no row, and blocks of the files beside."""
    try:
        yield from (data for _, data in free_runs(path))
    except Malformed:
        # Pages that cannot be told apart are searched as a whole.
        yield path.read_bytes()
    for file in beside(path):
        with open(file, "rb") as stream:
            tail = b""
            while block := stream.read(BLOCK):
                yield tail + block
                tail = (tail + block)[1 - SHORTEST :]


def database(path, page=4096, secure=True, journal="truncate"):
    """An empty file with two tables, one of them with numbers only."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size={page}")
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.execute(f"PRAGMA secure_delete={'ON' if secure else 'OFF'}")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("CREATE TABLE vectors(vector INTEGER PRIMARY KEY, name TEXT, data BLOB)")
    connection.execute(
        "CREATE TABLE changes(number INTEGER, row INTEGER, PRIMARY KEY(number, row)) WITHOUT ROWID"
    )
    return connection


def fill(connection, rng, sizes):
    """A row of random bytes for each size; the values by their numbers."""
    begin = connection.execute("SELECT coalesce(max(vector), 0) + 1 FROM vectors").fetchone()[0]
    values = {begin + i: rng.bytes(int(size)) for i, size in enumerate(sizes)}
    with connection:
        for number, value in values.items():
            connection.execute("INSERT INTO vectors VALUES(?, ?, ?)", (number, f"{number}", value))
            connection.execute("INSERT INTO changes VALUES(?, ?)", (number // 7, number))
    return values


def delete(connection, numbers):
    with connection:
        for number in numbers:
            connection.execute("DELETE FROM vectors WHERE vector = ?", (number,))
            connection.execute("DELETE FROM changes WHERE row = ?", (number,))


def found(path, values):
    """Values with any eight of their bytes in the file, found by a search of all of it."""
    data = path.read_bytes()
    there = {data[i : i + 8] for i in range(len(data) - 7)}
    return [one for one in values if any(one[i : i + 8] in there for i in range(len(one) - 7))]


@pytest.mark.parametrize("page", SIZES)
def test_tables_that_only_grew_have_no_slack(tmp_path, page):
    path = tmp_path / "a.km"
    with closing(database(path, page)) as connection:
        fill(connection, np.random.default_rng(0), [*range(0, 3000, 40), 40_000, 100_000])
    assert slack(path) == ([], "")
    assert 0 < sum(len(data) for _, data in free_runs(path)) < path.stat().st_size / 2
    assert left(path) == []


@pytest.mark.parametrize("page", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_every_trace_of_a_deleted_row_is_in_the_slack_and_vacuum_clears_it(tmp_path, page, seed):
    rng, path = np.random.default_rng(seed), tmp_path / "a.km"
    held, gone = {}, []
    with closing(database(path, page)) as connection:
        for _ in range(6):
            held |= fill(connection, rng, rng.choice([20, 60, 300, 1000], rng.integers(1, 40)))
            some = rng.permutation(sorted(held))[: rng.integers(len(held) + 1)]
            delete(connection, some.tolist())
            gone += [held.pop(number) for number in some.tolist()]
            there = found(path, gone)
            assert left_in(path, gone) == there
            assert not there or left(path)
        connection.execute("VACUUM")
    assert slack(path) == ([], "")
    assert found(path, gone) == []
    assert len(found(path, held.values())) == len(held)


def test_without_secure_delete_rows_are_left(tmp_path):
    path, rng = tmp_path / "a.km", np.random.default_rng(0)
    with closing(database(path, secure=False)) as connection:
        values = fill(connection, rng, [300] * 40 + [20_000])
        delete(connection, range(1, 42))
    there = left_in(path, values.values())
    assert there == found(path, values.values())
    assert len(there) > 10
    assert sum(one.length for one in left(path)) > 20_000


def test_a_reader_keeps_vacuum_from_clearing(tmp_path):
    path, rng = tmp_path / "a.km", np.random.default_rng(0)
    with closing(database(path)) as connection, closing(sqlite3.connect(path)) as reader:
        fill(connection, rng, [300] * 40)
        delete(connection, range(1, 20))
        connection.execute("PRAGMA busy_timeout=0")
        cursor = reader.execute("SELECT vector FROM vectors")
        cursor.fetchone()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            connection.execute("VACUUM")
        assert slack(path) != ([], "")
        cursor.close()
        connection.execute("VACUUM")
        assert slack(path) == ([], "")


def test_files_beside_it_are_searched(tmp_path):
    path, rng = tmp_path / "a[1]*.km", np.random.default_rng(0)
    with closing(database(path)) as connection:
        fill(connection, rng, [10])
    value = rng.bytes(100)
    journal, part = path.with_name("a[1]*.km-journal"), path.with_name("a[1]*.km.12.part")
    path.with_name("a1.km-journal").write_bytes(value)
    assert beside(path) == []
    # Across the boundary of two blocks.
    journal.write_bytes(bytes(2**20 - 50) + value)
    assert beside(path) == [journal]
    assert left(path) == [Trace(journal, 0, 2**20 + 50)]
    assert left_in(path, [value, rng.bytes(50)]) == [value]
    journal.write_bytes(b"")
    part.write_bytes(value[40:])
    assert beside(path) == [part]
    assert left_in(path, [value]) == [value]


def test_what_is_too_short_or_too_plain_is_not_searched():
    assert pieces(b"1234567") == set()
    assert pieces(bytes(100)) == set()
    assert pieces(np.ones(4).tobytes()) == set()
    assert pieces(b"0123456789") == {b"01234567", b"23456789"}


def test_a_file_with_pages_out_of_place_is_searched_as_a_whole(tmp_path):
    path, rng = tmp_path / "a.km", np.random.default_rng(0)
    with closing(database(path)) as connection:
        values = fill(connection, rng, [300] * 100)
    value = values[1]
    data = bytearray(path.read_bytes())
    data[4096 * 3] = 77
    path.write_bytes(data)
    assert "of kind 77" in slack(path)[1]
    assert left(path) == [Trace(path, 0, len(data))]
    assert left_in(path, [value, rng.bytes(30)]) == [value]


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("seed", range(8))
def test_damaged_pages_are_reported_whatever_they_say(tmp_path, seed):
    path, rng = tmp_path / "a.km", np.random.default_rng(seed)
    with closing(database(path, 512)) as connection:
        fill(connection, rng, [*range(0, 400, 10), 3000])
        delete(connection, range(1, 20))
    whole = path.read_bytes()
    for _ in range(100):
        data = bytearray(whole)
        for at in rng.integers(100, len(data), 3):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        slack(path)
        left_in(path, [b"anything at all"])


def test_what_is_no_database_is_reported(tmp_path):
    path = tmp_path / "a.km"
    assert slack(path)[1]
    path.write_bytes(b"hello")
    assert "not a database" in slack(path)[1]


def test_reading_keeps_the_locks_of_a_transaction(tmp_path):
    """Closing a descriptor would drop them, and another process could write during an edit."""
    path = tmp_path / "a.km"
    other = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
try:
    connection.execute("BEGIN IMMEDIATE")
    print("free")
except sqlite3.OperationalError:
    print("locked")
"""
    with closing(database(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        slack(path)
        file_reader(path)(0, 100)
        assert alone.assert_runs(other, path) == "locked\n"
        connection.execute("COMMIT")
        assert alone.assert_runs(other, path) == "free\n"


def test_descriptors_of_deleted_files_are_closed(tmp_path):
    paths = [tmp_path / f"{i}" for i in range(20)]
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else None
    if before is None:
        pytest.skip("needs /proc")
    for path in paths:
        path.write_bytes(b"some bytes")
        assert file_reader(path)(5, 10) == b"bytes"
        path.unlink()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
