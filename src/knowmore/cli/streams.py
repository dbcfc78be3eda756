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

    A closed pipe is no error: the reader has seen enough. Any other failure, such as a full disk,
    is kept to be reported at the end.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.failure = error
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return len(data)


@contextmanager
def forgiving_streams() -> Iterator[None]:
    """Replace stdout and stderr by streams that survive a closed pipe and a limited encoding."""
    _open_missing_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_forgiving, before)
    try:
        yield
    except SystemExit as leaving:
        if leaving.code in (None, 0) and (failure := _failure(sys.stdout)):
            raise SystemExit(
                f"knowmore: the work is done, but the report could not be written to standard "
                f"output: {failure.strerror}."
            ) from leaving
        raise
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        sys.stdout, sys.stderr = before


def _open_missing_descriptors() -> None:
    """Open closed standard descriptors on /dev/null; the next file opened would get their number
    and then what is printed."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _forgiving(stream: Any) -> Any:
    # It is None if the descriptor was closed, or an object of the caller, such as a notebook's.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(stream.fileno())),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
    )


def _failure(stream: Any) -> OSError | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if not isinstance(raw, _Descriptor):
        return None
    stream.flush()
    return raw.failure
