"""The `knowmore` command. Needs the extra `cli`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any


def main() -> None:
    """Run the `knowmore` command."""
    guarded(_run)


def _run() -> None:
    from knowmore.cli.app import app

    app()


def guarded(run: Callable[[], None]) -> None:
    """Run a command; print the message of knowmore's own errors instead of a traceback.

    A closed pipe and a limited encoding cannot fail it.
    """
    with redirect_stdout(_robust(sys.stdout)), redirect_stderr(_robust(sys.stderr)):
        try:
            try:
                run()
            finally:
                print(end="", flush=True)
        except Exception as error:
            # Imported here because they load NumPy, which `knowmore --help` does not need.
            from knowmore.errors import KnowmoreError
            from knowmore.extras import missing_extra

            if isinstance(error, ModuleNotFoundError):
                library = (error.name or "").partition(".")[0]
                if library in ("typer", "rich", "click"):
                    error = missing_extra(library, "cli")
            if not isinstance(error, KnowmoreError):
                raise
            sys.exit(f"knowmore: {error}")


def _robust(stream: Any) -> Any:
    """The stream on a `_Descriptor`; characters that its encoding lacks are written as numbers."""
    # It is None if the descriptor was closed, or an object of the caller, such as a notebook's.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = io.BufferedWriter(_Descriptor(stream.fileno(), "w", closefd=False))
    buffering = stream.line_buffering
    return io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=buffering)


class _Descriptor(io.FileIO):
    """A descriptor that discards its output once writing fails.

    A closed pipe is not a failure: the reader has seen enough. Other failures of standard output,
    such as a full disk, are raised once.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            with open(os.devnull, "wb") as null:
                os.dup2(null.fileno(), self.fileno())
            if isinstance(error, BrokenPipeError) or self.fileno() == 2:
                return len(data)
            from knowmore.errors import NotWritten

            why = f"The work is done, but its report could not be printed: {error.strerror}."
            raise NotWritten(why) from error
