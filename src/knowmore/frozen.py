"""Values that stay as they are: their arrays cannot be written to, nor can what follows from them.

A frozen dataclass says that its fields are not exchanged; the numbers in them could be. What is
handed out by a model is what the model computes with, so writing to it would change every answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from knowmore.concurrency import cached_property

T = TypeVar("T")


def read_only(value: T) -> T:
    """The same arrays, alone or in a tuple, not to be written to; anything else as it is."""
    locked: Any = value
    if type(locked) is tuple:
        locked = tuple(map(read_only, locked))
    elif isinstance(locked, np.ndarray) and locked.flags.writeable:
        locked = locked.view()
        locked.flags.writeable = False
    return cast("T", locked)


class Frozen:
    """What every frozen dataclass with arrays is: they are read-only, also in a copy or a pickle.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point(Frozen):
    ...     x: np.ndarray
    >>> Point(np.zeros(2)).x.flags.writeable
    False
    """

    def __post_init__(self) -> None:
        self.__setstate__(vars(self))

    def __getstate__(self) -> dict[str, Any]:
        # Another thread may derive a value while a pickle goes through them.
        return vars(self).copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: read_only(value) for name, value in state.items()})


class derived(cached_property[T]):  # noqa: N801 - a decorator, as cached_property is
    """A cached property whose arrays cannot be written to."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(lambda value: read_only(function(value)))
        self.__doc__ = function.__doc__
