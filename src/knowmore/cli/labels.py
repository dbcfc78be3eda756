"""Labels of one type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput

_NAMES = {str: "text", int: "whole numbers", float: "numbers", bool: "true or false"}
_TRUTH = {"true": True, "false": False}


def typed(
    given: Sequence[Any], places: Sequence[str], held: type | None, *, numerals: bool = False
) -> Array:
    """Labels (k,) of the type that is held, or of the type of the first.

    Files of text know no types: there a text stands for the number or truth value it reads as.

    numerals : whether all texts that are held are whole numbers, so that these may stand for texts
    places : where each was found, for errors
    """
    wanted = type(given[0]) if held is None else held
    found = []
    for one, place in zip(given, places, strict=True):
        try:
            found.append(_converted(str(one) if numerals and type(one) is int else one, wanted))
        except ValueError:
            whose = f"in {places[0]}" if held is None else "in the model"
            raise InvalidInput(
                f"The label {one!r} in {place} is {_name(one)}, but labels {whose} are "
                f"{_NAMES[wanted]}. Give all labels the same type."
            ) from None
    return np.array(found)


def _converted(one: Any, wanted: type) -> Any:
    """The label in that type; raises ValueError if it has another."""
    value: Any
    if type(one) is wanted:
        value = one
    elif wanted is float and type(one) is int:
        value = float(one)
    elif not isinstance(one, str):
        raise ValueError
    elif wanted is bool:
        value = _TRUTH.get(one.lower())
    else:
        value = wanted(one)
    if value is None or (wanted is float and not np.isfinite(value)):
        raise ValueError
    return value


def is_numeral(text: Any) -> bool:
    """Whether a label is a whole number as it would be written.

    >>> is_numeral("-7"), is_numeral("007"), is_numeral("rose"), is_numeral(7)
    (True, False, False, False)
    """
    return (
        isinstance(text, str)
        and text.isascii()
        and text.removeprefix("-").isdecimal()
        and (str(int(text)) == text)
    )


def _name(one: Any) -> str:
    return {str: "text", int: "a whole number", float: "a number", bool: "a truth value"}[type(one)]
