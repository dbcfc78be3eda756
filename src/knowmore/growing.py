"""Arrays that grow at the end without being copied.

A frozen value that appends one row to an array of n must not pay for n rows. So successive values
look at the same buffer, each at its own leading rows, and the newest writes behind what the others
can see. A value that is not the newest copies before it writes: no value ever changes.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from knowmore.concurrency import moment

Array = npt.NDArray[Any]


class _Buffer:
    """Rows taken so far, and room for more. Who moves `filled` on writes the rows in between."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.filled = len(array)

    def claim(self, begin: int, end: int) -> bool:
        """Are rows [begin, end) the caller's to write? Not if another came first."""
        with moment:
            free = self.filled == begin and end <= len(self.array)
            if free:
                self.filled = end
            return free


@final
class Rows:
    """An immutable array that shares its leading rows with the arrays it grew from.

    >>> one = Rows(np.zeros((2, 3)))
    >>> two = one.append(np.ones((1, 3)))
    >>> one.view.shape, two.view.shape
    ((2, 3), (3, 3))
    """

    __slots__ = ("_buffer", "_length")

    def __init__(self, array: npt.ArrayLike) -> None:
        self._buffer = _Buffer(np.array(array, order="C"))
        self._length = self._buffer.filled

    def __len__(self) -> int:
        return self._length

    def __reduce__(self) -> tuple[type[Rows], tuple[Array]]:
        return Rows, (np.array(self.view),)

    @property
    def view(self) -> Array:
        """The rows, read-only."""
        view = self._buffer.array[: self._length]
        view.flags.writeable = False
        return view

    def append(self, rows: Array) -> Rows:
        """These rows and `rows` behind them."""
        begin, end = self._length, self._length + len(rows)
        dtype = np.result_type(self._buffer.array, rows) if begin else rows.dtype
        buffer = self._buffer
        if buffer.array.dtype != dtype or not buffer.claim(begin, end):
            array = np.empty((max(end, begin + begin // 2 + 8), *rows.shape[1:]), dtype=dtype)
            array[:begin] = buffer.array[:begin]
            buffer = _Buffer(array)
            buffer.filled = end
        buffer.array[begin:end] = rows
        return Rows._of(buffer, end)

    def keep(self, kept: Array) -> Rows:
        """The rows that the mask or index array `kept` names, in a buffer of their own."""
        array = np.ascontiguousarray(self.view[kept])
        return Rows._of(_Buffer(array), len(array))

    @classmethod
    def _of(cls, buffer: _Buffer, length: int) -> Rows:
        rows = object.__new__(cls)
        rows._buffer = buffer
        rows._length = length
        return rows
