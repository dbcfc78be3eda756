"""The type of all arrays, and how they stay as they are, and finite.

A frozen dataclass says that its fields are not exchanged; the numbers in them could be. What is
handed out by a model is what the model computes with, so writing to it would change every answer.
And answers are numbers: what overflows, or finds no memory, raises and is never handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isfinite
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import numpy.typing as npt

from knowmore._base.concurrency import cached_property
from knowmore.errors import InvalidInput, NotEnoughMemory

Array = npt.NDArray[Any]
T = TypeVar("T")

# So few values are looked at one by one as fast as they are summed.
_FEW = 4096


def read_only(value: T) -> T:
    """Read-only arrays, alone or in a tuple; any other value as it is."""
    locked: Any = value
    if isinstance(locked, np.ndarray):
        if locked.flags.writeable:
            locked = locked.view()
            locked.flags.writeable = False
    elif isinstance(locked, tuple):
        parts = map(read_only, locked)
        # A named tuple takes its parts one by one.
        locked = tuple(parts) if type(locked) is tuple else type(locked)(*parts)
    return cast("T", locked)


class Frozen:
    """A frozen dataclass whose arrays are read-only, also in a copy or a pickle.

    transient : names of derived values that are no part of a pickle

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point(Frozen):
    ...     x: np.ndarray
    >>> Point(np.zeros(2)).x.flags.writeable
    False
    """

    transient: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        state = vars(self)
        for name, value in state.items():
            if isinstance(value, (np.ndarray, tuple)):
                state[name] = read_only(value)

    def __getstate__(self) -> dict[str, Any]:
        # Another thread may derive a value while a pickle goes through them.
        state = vars(self).copy()
        return {name: value for name, value in state.items() if name not in self.transient}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: read_only(value) for name, value in state.items()})


class derived(cached_property[T]):  # noqa: N801 - a decorator, as cached_property is
    """A cached property whose arrays cannot be written to."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(lambda value: read_only(function(value)))
        self.__doc__ = function.__doc__


def remembered(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """A function of one frozen value, which keeps the result: a derived value that stands apart."""
    name = function.__name__

    @wraps(function)
    def known(value: Any) -> T:
        found = vars(value)
        if name not in found:
            found[name] = read_only(function(value))
        return cast("T", found[name])

    return known


class enough_memory:  # noqa: N801  it reads as a function, and is faster than a generator
    """Raise NotEnoughMemory, with what it was for and what to do, instead of MemoryError."""

    __slots__ = ("_purpose", "_remedy")

    def __init__(self, purpose: str, remedy: str) -> None:
        self._purpose, self._remedy = purpose, remedy

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        # A NotEnoughMemory already says what for.
        if isinstance(error, MemoryError) and not isinstance(error, NotEnoughMemory):
            raise NotEnoughMemory(
                f"There is not enough memory to {self._purpose}. Nothing was changed. "
                f"{self._remedy}"
            ) from error


def bounded(answer: Callable[[], Array]) -> Array:
    """The result of `answer` about m rows, (m,) or (m, M); raises InvalidInput if it is not finite.

    >>> bounded(lambda: np.array([1e300, 1.0]) * 2)
    array([2.e+300, 2.e+000])
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            answers = answer()
    except NotEnoughMemory:
        # It already says what for.
        raise
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


def _sums_up(values: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return isfinite(values.sum())


def first_not_finite(values: Array) -> int | None:
    """The first row, of (m,) or (m, M), with a value that is not finite; None if there is none."""
    if values.size <= _FEW:
        if np.isfinite(values).all():
            return None
    # A finite sum has only finite terms; the reverse is looked into.
    elif _sums_up(values):
        return None
    sound = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return None if sound.all() else int(sound.argmin())


def leading(X: Array, width: int | None) -> Array:
    """The first columns of X (n, d) as a table of its own; all if `width` is None."""
    if width is None or X.shape[1] <= width:
        return X
    part = X[:, :width]
    return part if part.flags.forc else np.ascontiguousarray(part)


def norm(A: Array) -> float:
    """The Frobenius norm, also where squares are beyond the range of numbers.

    >>> norm(np.array([3e200, 4e200]))
    5e+200
    """
    largest = float(abs(A).max(initial=0))
    return largest * float(np.linalg.norm(A / largest)) if largest else 0.0


def mixed(z: Any) -> Any:
    """A hash of z, an integer below 2^64 or an array of them: one step of SplitMix64."""
    bits = 2**64 - 1
    z = (z + 0x9E3779B97F4A7C15) & bits
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & bits
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & bits
    return z ^ (z >> 31)
