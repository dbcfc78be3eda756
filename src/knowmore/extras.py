"""Optional libraries, each of which comes with an extra of the package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from knowmore.errors import MissingExtra


def require(library: str, extra: str) -> None:
    """Raise MissingExtra unless the library is installed, without importing it."""
    try:
        found = find_spec(library) is not None
    except ValueError:
        found = False
    if not found:
        raise missing_extra(library, extra)


def optional(library: str, extra: str) -> Any:
    """Import the library, or raise MissingExtra if it is not installed."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        # A library that is installed may lack one of its own dependencies.
        if (error.name or "").partition(".")[0] != library.partition(".")[0]:
            raise
        raise missing_extra(library, extra) from error


def missing_extra(library: str, extra: str) -> MissingExtra:
    """The error that tells how to install the library.

    >>> print(missing_extra("matplotlib", "plots"))
    matplotlib is not installed. It comes with the extra 'plots': pip install ".[plots]" in a clone
    of knowmore, or pip install "knowmore[plots]" if knowmore came from a package index.
    """
    return MissingExtra(
        f"{library} is not installed. It comes with the extra {extra!r}: pip install "
        f'".[{extra}]" in a clone of knowmore, or pip install "knowmore[{extra}]" if knowmore '
        f"came from a package index."
    )
