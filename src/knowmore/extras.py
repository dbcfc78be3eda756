"""Libraries that knowmore does without until they are asked for."""

from __future__ import annotations

from importlib.util import find_spec

from knowmore.errors import MissingExtra


def require(library: str, extra: str) -> None:
    """Complain in words if an optional library is not installed."""
    try:
        found = find_spec(library) is not None
    except ValueError:
        found = False
    if not found:
        raise MissingExtra(
            f'{library} is not installed. It comes with: pip install "knowmore[{extra}]"'
        )
