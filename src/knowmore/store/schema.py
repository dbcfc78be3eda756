"""The tables of a file, for ever, and the hash of a row.

SQLite itself misses about half of all flipped bits. So each row ends with a hash of its other
columns.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, NamedTuple

# Names of arrays that can be computed again begin with this.
CACHE: Final = "cache/"

Row = tuple[Any, ...]

APPLICATION: Final = 0x6B6E6F77  # "know"
# The format that is written. Files of earlier ones are read.
FORMAT: Final = 2


class Table(NamedTuple):
    """The columns of a table with their types; `key` of them are its primary key."""

    columns: tuple[tuple[str, str], ...]
    key: int = 1
    by_rowid: bool = True

    @property
    def names(self) -> list[str]:
        """The names of the columns, without that of the hash."""
        return [name for name, _ in self.columns]

    def schema(self, name: str) -> str:
        """The text that makes the table."""
        parts = [f"{column} {kind}" for column, kind in (*self.columns, ("hash", BLOB))]
        if self.by_rowid:
            parts[0] += " PRIMARY KEY"
            return f"CREATE TABLE {name}({', '.join(parts)})"
        key = f"PRIMARY KEY({', '.join(self.names[: self.key])})"
        return f"CREATE TABLE {name}({', '.join([*parts, key])}) WITHOUT ROWID"


_I, TEXT, BLOB = "INTEGER", "TEXT", "BLOB"
# A row of `examples` is a version of an example, which never changes but for `live`. `changes` says
# which versions entered and left with an entry of the journal. `labelled` has what is known of the
# label of a version apart from its features: who gave it, and whether somebody confirmed it.
# `forgotten` has keyed hashes of examples that were forgotten.
TABLES: Final = {
    "facts": Table((("name", TEXT), ("value", TEXT)), by_rowid=False),
    "examples": Table(
        (
            ("row", _I),
            ("id", TEXT),
            ("label", TEXT),
            ("weight", "REAL"),
            ("vector", _I),
            ("origin", TEXT),
            ("contributor", TEXT),
            ("at", _I),
            ("live", _I),
        )
    ),
    "vectors": Table(
        (("vector", _I), ("data", BLOB), ("side", BLOB), ("content", BLOB), ("thumbnail", BLOB))
    ),
    "journal": Table(
        (
            ("number", _I),
            ("at", _I),
            ("verb", TEXT),
            ("count", _I),
            ("undone", _I),
            ("before", TEXT),
            ("after", TEXT),
        )
    ),
    "changes": Table((("number", _I), ("row", _I), ("enters", _I)), 2, by_rowid=False),
    "arrays": Table((("array", _I), ("name", TEXT), ("part", _I), ("data", BLOB))),
    "labelled": Table((("row", _I), ("contributor", TEXT), ("kept", _I))),
    "forgotten": Table((("mark", BLOB),), by_rowid=False),
}
# The format that a table came with, if that is not the first.
_SINCE: Final = {"labelled": 2, "forgotten": 2}
SCHEMA: Final = {name: table.schema(name) for name, table in TABLES.items()}
# The column of the name, in tables with rows that are not counted.
NAMED: Final = {"facts": 0, "arrays": 1}


def tables_of(format_: int) -> dict[str, Table]:
    """The tables that files of a format have."""
    return {name: table for name, table in TABLES.items() if _SINCE.get(name, 1) <= format_}


def counted(name: str) -> bool:
    """Whether a fact or an array of this name is in the totals."""
    return name != "totals" and not name.startswith(CACHE)


_BLOBS: Final = {
    name: [i for i, (_, kind) in enumerate(table.columns) if kind == BLOB]
    for name, table in TABLES.items()
}
_PERSONS: Final = {name: name.encode() for name in TABLES}


def hashed(table: str, values: Row) -> bytes:
    """The hash of a row without its hash: of all values, in 16 bytes."""
    blobs: Row = ()
    if places := _BLOBS[table]:
        blobs = tuple(values[i] for i in places if isinstance(values[i], bytes))
        plain = list(values)
        for i in places:
            # In a tuple, which no value of a database is.
            plain[i] = (len(plain[i]),) if isinstance(plain[i], bytes) else plain[i]
        values = tuple(plain)
    # Which characters repr escapes depends on the version of Python; ascii escapes all others.
    mark = blake2b(ascii(tuple(values)).encode(), digest_size=16, person=_PERSONS[table])
    for blob in blobs:
        mark.update(blob)
    return mark.digest()
