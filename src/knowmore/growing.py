"""Arrays that grow at the end without being copied.

A frozen value that appends one row to an array of n must not pay for n rows. So successive values
look at the same buffer, each at its own leading rows, and the newest writes behind what the others
can see. A value that is not the newest copies before it writes: no value ever changes.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class _Buffer:
    """Rows written so far, and room for more. Written only behind `filled`, under the lock."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.filled = len(array)
        self.lock = Lock()


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
        end = self._length + len(rows)
        dtype = np.result_type(self._buffer.array, rows) if self._length else rows.dtype
        with self._buffer.lock:
            buffer = self._buffer
            newest = buffer.filled == self._length and buffer.array.dtype == dtype
            if not newest or end > len(buffer.array):
                room = max(end, self._length + self._length // 2 + 8)
                array = np.empty((room, *rows.shape[1:]), dtype=dtype)
                array[: self._length] = buffer.array[: self._length]
                buffer = _Buffer(array)
            buffer.array[self._length : end] = rows
            buffer.filled = end
            return Rows._of(buffer)

    def keep(self, kept: Array) -> Rows:
        """The rows that the mask or index array `kept` names, in a buffer of their own."""
        return Rows._of(_Buffer(np.ascontiguousarray(self.view[kept])))

    @classmethod
    def _of(cls, buffer: _Buffer) -> Rows:
        rows = object.__new__(cls)
        rows._buffer = buffer
        rows._length = buffer.filled
        return rows
