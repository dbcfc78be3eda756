"""Answers are numbers: what overflows, or finds no memory, is told and never handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from knowmore.errors import InvalidInput, NotEnoughMemory

Array = npt.NDArray[Any]


def bounded(answer: Callable[[], Array]) -> Array:
    """What is computed for each of m rows that are asked about, (m,) or (m, M), if it is finite.

    >>> bounded(lambda: np.array([1e300, 1.0]) * 2)
    array([2.e+300, 2.e+000])
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            answers = answer()
    except MemoryError as error:
        raise NotEnoughMemory(
            "There is not enough memory to answer for these rows at once. Nothing was changed. "
            "Ask about fewer of them at a time, or free memory and ask again."
        ) from error
    if (row := first_not_finite(answers)) is None:
        return answers
    raise InvalidInput(
        f"What is asked of row {row} of X is beyond the range of numbers. Its features, or the "
        f"targets of the examples, may be too large: scale them, or leave the row out."
    )


def first_not_finite(values: Array) -> int | None:
    """The first row, of (m,) or (m, M), with a value that is not finite; None if there is none."""
    # A finite sum has only finite terms; the reverse is looked into.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return None
    sound = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return None if sound.all() else int(sound.argmin())


def norm(A: Array) -> float:
    """The Frobenius norm, also where squares are beyond the range of numbers.

    >>> norm(np.array([3e200, 4e200]))
    5e+200
    """
    largest = float(abs(A).max(initial=0))
    return largest * float(np.linalg.norm(A / largest)) if largest else 0.0
