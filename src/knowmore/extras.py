"""Libraries that knowmore does without until they are asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from knowmore.errors import MissingExtra


def require(library: str, extra: str) -> None:
    """Complain in words if an optional library is not installed. It is not loaded yet."""
    try:
        found = find_spec(library) is not None
    except ValueError:
        found = False
    if not found:
        raise _missing(library, extra)


def optional(library: str, extra: str) -> Any:
    """The module of that name, or words about the extra that brings it."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library.partition(".")[0]:
            raise
        raise _missing(library, extra) from error


def _missing(library: str, extra: str) -> MissingExtra:
    return MissingExtra(
        f'{library} is not installed. It comes with: pip install "knowmore[{extra}]"'
    )
