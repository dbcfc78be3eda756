"""Folders that are searched for the files of the data sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from knowmore._base import Arrays, undamaged
from knowmore.errors import MissingData
from papers import VARIABLE

_BESIDE = Path("shared", "data")
# What may be wrong with a file that cannot be read, and what to do.
DAMAGED = "it is cut off, damaged, or another file of that name. Fetch it again."


def find(name: str) -> Path:
    """The file of that name, in the folder KNOWMORE_DATA or else in ../shared/data.

    The latter is looked for beside the working directory and beside the checkout of knowmore. A
    folder that was named is the only one that counts.
    """
    folders = _folders()
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    named = os.environ.get(VARIABLE)
    why = (
        f"{VARIABLE} or --data names it"
        if named
        else f"{VARIABLE} is not set, so ../{_BESIDE} was searched"
    )
    raise MissingData(
        f"The data file {name!r} is not in {' or '.join(map(str, folders))} ({why}). "
        f"knowmore does not come with data: set {VARIABLE} to the folder that holds the file or "
        f"name it with --data, or put that folder at ../{_BESIDE} and leave {VARIABLE} unset."
    )


@contextmanager
def arrays_of(name: str) -> Iterator[Arrays]:
    """The arrays of a data file by their names; any failure to read them is reported as damage."""
    path = find(name)
    with undamaged(path, "a data set", DAMAGED), Arrays(path) as file:
        yield file


def _folders() -> tuple[Path, ...]:
    named = os.environ.get(VARIABLE)
    if named:
        return (Path(named),)
    checkout = Path(__file__).resolve().parents[2]
    return tuple(dict.fromkeys(root.parent / _BESIDE for root in (Path.cwd(), checkout)))
