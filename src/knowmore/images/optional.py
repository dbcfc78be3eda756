"""Libraries that come with an extra, asked for when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from knowmore.errors import MissingExtra


def optional(library: str, extra: str) -> Any:
    """The module of that name, or words about the extra that brings it."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library.partition(".")[0]:
            raise
        raise MissingExtra(
            f'{library} is not installed. It comes with: pip install "knowmore[{extra}]"'
        ) from error
