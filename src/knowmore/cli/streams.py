"""Standard streams that cannot fail a command whose work is done."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Descriptor(io.FileIO):
    """A descriptor that discards its output once writing fails.

    A closed pipe is no failure: the reader has seen enough. Others, such as a full disk, are
    appended to `failures`, to be reported at the end.
    """

    def __init__(self, descriptor: int, failures: list[OSError]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failures = failures

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.failures.append(error)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return len(data)


@contextmanager
def forgiving_streams() -> Iterator[None]:
    """Replace stdout and stderr by streams that survive a closed pipe and a limited encoding."""
    _open_missing_descriptors()
    before, failures = (sys.stdout, sys.stderr), list[OSError]()
    sys.stdout, sys.stderr = _forgiving(sys.stdout, failures), _forgiving(sys.stderr, [])
    try:
        yield
    except SystemExit as leaving:
        _flush()
        if failures and leaving.code in (None, 0):
            raise SystemExit(
                f"knowmore: the work is done, but the report could not be written to standard "
                f"output: {failures[0].strerror}."
            ) from leaving
        raise
    finally:
        _flush()
        sys.stdout, sys.stderr = before


def _open_missing_descriptors() -> None:
    """Open closed standard descriptors on /dev/null.

    Otherwise the next file that is opened would get such a number, and then what is printed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _forgiving(stream: Any, failures: list[OSError]) -> Any:
    # It is None if the descriptor was closed, or an object of the caller, such as a notebook's.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(stream.fileno(), failures)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
    )


def _flush() -> None:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
