"""Bytes of removed examples that are left in files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, final


@final
class Trace(NamedTuple):
    """Where bytes of something that was removed were found.

    path : the file
    offset : the first byte there
    length : how many bytes
    """

    path: Path
    offset: int
    length: int


def left_in(path: Path, needles: Iterable[bytes]) -> list[Trace]:
    """The first place of each of the `needles` in the file or in its journal."""
    found = []
    for file in (path, path.with_name(f"{path.name}-journal")):
        if file.exists():
            data = file.read_bytes()
            places = ((data.find(one), len(one)) for one in needles)
            found += [Trace(file, at, length) for at, length in places if at >= 0]
    return found
