"""Arguments of the transformers that cannot be used, said in words."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from knowmore.errors import InvalidInput

# As far as NumPy's older generators go, which scikit-learn uses.
LARGEST_SEED = 2**32 - 1


def whole(name: str, value: Any, least: int = 1) -> None:
    """Complain unless `value` is a whole number, not below `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(f"{name}={value!r} must be a whole number, at least {least}.")


def seed_number(name: str, value: Any) -> None:
    """Complain unless `value` can be a seed."""
    whole(name, value, 0)
    if value > LARGEST_SEED:
        raise InvalidInput(f"{name}={value!r} must be a whole number, at most {LARGEST_SEED}.")


def is_between(value: Any, low: float, high: float) -> bool:
    """Is it a number above `low` and up to `high`?"""
    return isinstance(value, Real) and low < float(value) <= high


def no_mask(name: str, array: Any) -> None:
    """Complain of a masked array: what lies under the mask would count like all the rest."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput(
            f"{name} is a masked array, and what lies under the mask is unknown. Say what it is: "
            f"array.filled(value)."
        )
