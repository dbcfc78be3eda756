"""A file without what other programs added to its schema: indexes, views, tables, triggers.

To drop them would run code of theirs (a virtual table's), or leave their bytes in free pages. So
the rows of our tables are written to a new file, which takes the place of the old one.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from knowmore._base import File as Name
from knowmore._base import check_name, check_writable, part_of, write_errors
from knowmore.store.file import (
    APPLICATION,
    PAGE,
    SCHEMA,
    TABLES,
    File,
    added,
    check_size,
    put_in_place,
    reported,
    tables_of,
)


def restore_schema(path: Name) -> list[str]:
    """Take off what another program has added to a model's file: all of it, or nothing.

    Returns what that was, in words; an empty list if there was nothing, and then the file stays as
    it is. Every row of the model is checked first. None of what was added is run.

    >>> import sqlite3
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from knowmore import GPClassifier
    >>> from knowmore.store import load, restore_schema
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "m.km"
    ...     GPClassifier().fit([[0.0], [1.0]], ["a", "b"]).save(path)
    ...     other = sqlite3.connect(path)
    ...     found = other.execute("CREATE INDEX by_label ON examples(label)")
    ...     other.close()
    ...     restore_schema(path), len(load(path).ids_)
    (["the index 'by_label'"], 2)
    """
    check_name(path)
    target = Path(os.path.realpath(path))
    with closing(File(target, takes_additions=True)) as file:
        with file.reading():
            found = [str(one) for one in added(file)]
        if found:
            check_writable(target)
            with write_errors(target), part_of(target, put_in_place) as part:
                _written(file, part)
    return found


def _written(file: File, part: Path) -> None:
    """Write the rows of our tables, checked, to a new file."""
    with file.reading(), reported(file.path, file.timeout), closing(sqlite3.connect(part)) as new:
        check_size(file)
        ((version,),) = file.fetched("PRAGMA user_version")
        new.execute(f"PRAGMA page_size={PAGE}")
        new.execute(f"PRAGMA application_id={APPLICATION}")
        new.execute(f"PRAGMA user_version={version}")
        for name, table in tables_of(file.format).items():
            new.execute(SCHEMA[name])
            columns = ", ".join([*table.names, "hash"])
            # No index of somebody else is asked.
            rows = file.connection.execute(f"SELECT {columns} FROM {name} NOT INDEXED")
            places = ", ".join("?" * (len(table.names) + 1))
            new.executemany(f"INSERT INTO {name} VALUES({places})", rows)
        new.commit()
    with closing(File(part)) as copy, copy.reading():
        for name in TABLES:
            copy.all_rows(name)
    with open(part, "rb") as data:
        os.fsync(data.fileno())
