"""The `knowmore` command. Needs the extra `cli`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from knowmore.cli.streams import forgiving_streams


def main() -> None:
    """Run the `knowmore` command."""
    guarded(_run)


def guarded(run: Callable[[], None]) -> None:
    """Run a command; print the message of knowmore's own errors instead of a traceback."""
    with forgiving_streams():
        try:
            run()
        except Exception as error:
            # Imported here because they load scikit-learn, which `knowmore --help` does not need.
            from knowmore.errors import KnowmoreError
            from knowmore.extras import missing_extra

            failure = error
            if isinstance(error, ModuleNotFoundError):
                library = (error.name or "").partition(".")[0]
                if library in ("typer", "rich", "click"):
                    failure = missing_extra(library, "cli")
            if not isinstance(failure, KnowmoreError):
                raise
            sys.exit(f"knowmore: {failure}")


def _run() -> None:
    from knowmore.cli.app import app

    app()
