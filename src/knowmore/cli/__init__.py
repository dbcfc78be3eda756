"""The `knowmore` command. Needs the extra `cli`."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

# What errors and warnings advise in Python, and what the command can do.
_REMEDIES = {
    "Scale the columns first, as by make_pipeline(StandardScaler(), ...), or give a kernel with a "
    "length scale for each column; `tune` finds better ones.": "Scale the columns of the table "
    "before it is learnt, or call knowmore tune.",
    "Encode them with a OneHotEncoder.": "Name the columns that are features: --columns a,b,c. "
    "Text that is one must be encoded as numbers first.",
    ", or read it another way: fit and eigenspace take load=...": ".",
}


def main() -> None:
    """Run the `knowmore` command."""
    guarded(_run)


def _run() -> None:
    from knowmore.cli.app import app

    try:
        code = app(standalone_mode=False)
    except Exception as error:
        # Typer would print misuse as a box of several lines.
        misuse: Any = error
        if not hasattr(misuse, "format_message"):
            raise
        # pydantic puts these words before errors of our own types of options.
        if message := misuse.format_message().replace("Value error, ", ""):
            command = getattr(getattr(misuse, "ctx", None), "command_path", "knowmore")
            _say(f"{message} For help: {command} --help")
        else:
            # No argument at all: its message is the help.
            misuse.show()
        sys.exit(getattr(misuse, "exit_code", 2))
    sys.exit(code if isinstance(code, int) else 0)


def guarded(run: Callable[[], None]) -> None:
    """Run a command; print knowmore's own errors and warnings in one line, without a traceback.

    Such an error ends it with 2. A closed pipe and a limited encoding cannot fail it.
    """
    _fill_closed()
    with redirect_stdout(_robust(sys.stdout)), redirect_stderr(_robust(sys.stderr)), _short():
        try:
            try:
                run()
            finally:
                print(end="", flush=True)
        except Exception as error:
            # Imported here because they load NumPy, which `knowmore --help` does not need.
            from knowmore._base import missing_extra
            from knowmore.errors import KnowmoreError

            if isinstance(error, ModuleNotFoundError):
                library = (error.name or "").partition(".")[0]
                if library in ("typer", "rich", "click"):
                    error = missing_extra(library, "cli")
            if not isinstance(error, KnowmoreError):
                raise
            _say(error)
            sys.exit(2)
        except KeyboardInterrupt:
            _say("interrupted. What was confirmed is kept.")
            sys.exit(130)


def _fill_closed() -> None:
    """Open standard streams that were closed: they are None, and files would take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _say(what: object) -> None:
    """Print a line on standard error, with remedies of the command line."""
    from knowmore._base import visible

    line = visible(" ".join(str(what).split()))
    for in_python, here in _REMEDIES.items():
        line = line.replace(in_python, here)
    print(f"knowmore: {line}", file=sys.stderr, flush=True)


@contextmanager
def _short() -> Iterator[None]:
    """Print our own warnings in one line; they would name a line of our code."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        # Its module is loaded if there is such a warning.
        errors = sys.modules.get("knowmore.errors")
        if errors is not None and issubclass(category, errors.KnowmoreWarning):
            _say(message)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _robust(stream: Any) -> Any:
    """The stream on a `_Descriptor`; characters that its encoding lacks are written as numbers."""
    # It may be an object of the caller, such as a notebook's.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = io.BufferedWriter(_Descriptor(stream.fileno(), "w", closefd=False))
    # A stream without a buffer, as PYTHONUNBUFFERED asks for, is one of lines here.
    buffering = stream.line_buffering or stream.write_through
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
