"""Reading the bytes of a file that SQLite may have open.

When a process closes any descriptor of a file, POSIX drops all locks that the process has on it,
those of an edit in another thread among them (https://www.sqlite.org/howtocorrupt.html, 2.2). So
one descriptor is kept for each file that was read, until the file is deleted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock

_kept: dict[tuple[int, int], int] = {}
_changing = Lock()


def reader(path: Path) -> Callable[[int, int], bytes]:
    """A function of offset and length: the bytes there, fewer at the end; raises OSError."""
    if os.name != "posix":
        return partial(_read, path)
    return partial(_read_kept, _descriptor(path))


def _read(path: Path, offset: int, length: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def _read_kept(descriptor: int, offset: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        offset, length = offset + len(part), length - len(part)
    return b"".join(parts)


def _descriptor(path: Path) -> int:
    with _changing:
        _close_deleted()
        # While a descriptor is open, no other file gets the same number.
        found = os.stat(path)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            # To open a pipe would wait for somebody who writes to it.
            raise OSError(errno.EINVAL, "It is not a regular file")
        place = found.st_dev, found.st_ino
        if place not in _kept:
            new = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            found = os.fstat(new)
            _kept[found.st_dev, found.st_ino] = new
            return new
        return _kept[place]


def _close_deleted() -> None:
    for place, descriptor in list(_kept.items()):
        with suppress(OSError):
            if os.fstat(descriptor).st_nlink == 0:
                del _kept[place]
                os.close(descriptor)
