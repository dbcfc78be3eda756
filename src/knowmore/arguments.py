"""Checks of words and numbers that users choose; an error says what there is to choose from."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from knowmore.errors import InvalidInput


def choice(name: str, value: Any, known: Collection[str]) -> str:
    """The value, which must be one of the known words."""
    if not isinstance(value, str) or value not in known:
        words = ", ".join(map(repr, known))
        raise InvalidInput(f"{name}={value!r} is not known. Choose one of {words}.")
    return value


def is_whole(value: Any) -> bool:
    """Whether the value is an integer; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether the value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as an integer of at least `least`, and at most `most` if that is given."""
    if not is_whole(value) or int(value) < least or (most is not None and int(value) > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidInput(f"{name}={value!r}. Give a whole number {limits}.")
    return int(value)


def number(name: str, value: Any, interval: str, hint: str = "") -> float:
    """The value as a float in an interval written as in mathematics, such as "[0, 1)".

    hint : a sentence on what the number means, for the error

    >>> number("C", 2, "(0, inf)")
    2.0
    """
    low, high = map(float, interval[1:-1].split(","))
    if is_real(value):
        x = float(value)
        if (
            low < x < high
            or (x == low and interval[0] == "[")
            or (x == high and interval[-1] == "]")
        ):
            return x
    raise InvalidInput(f"{name}={value!r} must be a number in {interval}.{hint and ' ' + hint}")


def flag(name: str, value: Any) -> bool:
    """The value as a bool; a word such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name}={value!r} is neither True nor False.")
    return bool(value)


def is_missing(value: Any) -> bool:
    """Does this stand where there is no value: None, NaN, pandas' NA and NaT, or a masked one?"""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    # By name: pandas need not be there, and its NA answers no comparison.
    return type(value).__name__ in ("NoneType", "NAType", "NaTType", "MaskedConstant")
