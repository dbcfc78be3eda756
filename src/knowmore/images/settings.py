"""Settings of the transformers that cannot be used, said in words."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from knowmore.errors import InvalidInput


def whole(name: str, value: Any, least: int = 1) -> None:
    """Complain unless `value` is a whole number, not below `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(f"{name}={value!r} must be a whole number, at least {least}.")


def is_between(value: Any, low: float, high: float) -> bool:
    """Is it a number above `low` and up to `high`?"""
    return isinstance(value, Real) and low < float(value) <= high
