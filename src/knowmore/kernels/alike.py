"""Do two kernels compute the same? Bounds, which only a search heeds, do not count."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel


def difference(one: Any, other: Any) -> str | None:
    """How two kernels differ in what they compute, in words; None if they do not.

    Where they are printed alike, what is not printed is told.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> difference(RBF(1.0), RBF(3.0))
    'RBF(length_scale=1) here, RBF(length_scale=3) there'
    >>> difference(RBF(1.0), RBF(1.0, length_scale_bounds="fixed"))
    >>> difference(2.0 * RBF(1.0), 2.0 * RBF(1.0000001))
    'k2__length_scale=1.0 here, k2__length_scale=1.0000001 there'
    """
    found = _difference(one, other, "")
    if found is None or repr(one) == repr(other):
        return found
    return f"{one!r} here, {other!r} there"


def _difference(one: Any, other: Any, name: str) -> str | None:
    if not (isinstance(one, Kernel) and isinstance(other, Kernel)):
        if _equal(one, other):
            return None
        word = f"{name}=" if name else ""
        return f"{word}{one!r} here, {word}{other!r} there"
    if type(one) is not type(other):
        return f"{one!r} here, {other!r} there"
    mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
    for part in mine:
        if part.endswith("_bounds"):
            continue
        found = _difference(mine[part], theirs[part], f"{name}__{part}" if name else part)
        if found:
            return found
    return None


def _equal(one: Any, other: Any) -> bool:
    """A number and a list of this one number are the same parameter."""
    if callable(one) or callable(other) or isinstance(one, (slice, dict, str)):
        return bool(one == other)
    return np.array_equal(np.squeeze(one), np.squeeze(other))
