"""Words and numbers that users choose, or an error that says what there is to choose from."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any

import numpy as np

from knowmore.errors import InvalidInput


def choice(name: str, value: Any, known: Collection[str]) -> None:
    """Complain unless `value` is one of the words that are known."""
    if not isinstance(value, str) or value not in known:
        words = ", ".join(map(repr, known))
        raise InvalidInput(f"{name}={value!r} is not known. Choose one of {words}.")


def whole_number(name: str, value: Any, least: int) -> int:
    """The value as an integer that is not below `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidInput(f"{name}={value!r}. Give a whole number of at least {least}.")
    return int(value)


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
