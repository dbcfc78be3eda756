"""Standard output and standard error that cannot end a command whose work is done."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Listened(io.FileIO):
    """A descriptor to write to, whose other end may be closed at any time.

    Whoever closes it has heard enough: what follows goes nowhere, and that is no error. Any other
    `trouble`, such as a full disk, is to be told at the end.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.trouble: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.trouble = error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


@contextmanager
def listened() -> Iterator[None]:
    """Within, whatever is printed is printed as far as anybody listens and letters go.

    A letter that the terminal does not have is written as its number.
    """
    _fill_closed()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_tolerant, before)
    try:
        yield
    except SystemExit as leaving:
        trouble = _trouble(sys.stdout)
        if trouble is None or leaving.code not in (None, 0):
            raise
        raise SystemExit(
            f"knowmore: the work is done, but what there was to say could not be written to "
            f"standard output: {trouble.strerror}."
        ) from leaving
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        sys.stdout, sys.stderr = before


def _fill_closed() -> None:
    """Let closed descriptors lead nowhere, lest the next file to be opened gets what is printed."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _tolerant(stream: Any) -> Any:
    # None if it is closed; or something of whoever calls, such as a notebook.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Listened(stream.fileno())),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
    )


def _trouble(stream: Any) -> OSError | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if not isinstance(raw, _Listened):
        return None
    stream.flush()
    return raw.trouble
