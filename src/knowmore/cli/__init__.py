"""The `knowmore` command. Needs the extra `cli`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from knowmore.cli.streams import listened


def main() -> None:
    """The command `knowmore`."""
    guarded(_run)


def guarded(run: Callable[[], None]) -> None:
    """Run a command; what knowmore itself complains about is said in words, not in a trace."""
    with listened():
        try:
            _with_libraries(run)
        except Exception as error:
            # Only now: the errors load scikit-learn, and `knowmore --help` does without it.
            from knowmore.errors import KnowmoreError

            if not isinstance(error, KnowmoreError):
                raise
            sys.exit(f"knowmore: {error}")


def _run() -> None:
    from knowmore.cli.app import app

    app()


def _with_libraries(run: Callable[[], None]) -> None:
    """Run it; if a library of the command line is missing, say which extra brings it."""
    try:
        run()
    except ModuleNotFoundError as error:
        from knowmore.errors import MissingExtra

        missing = (error.name or "").partition(".")[0]
        if missing not in ("typer", "rich", "click"):
            raise
        raise MissingExtra(
            f"The command line needs {missing}, which is not installed. "
            f'It comes with: pip install "knowmore[cli]"'
        ) from error
