"""Memory that is put aside for later."""

from __future__ import annotations

from typing import final

import numpy as np

# Taken so much at a time. What a model of a few hundred examples needs is not worth the while.
_STEP = 4 * 2**20


@final
class Room:
    """Memory for work that is put off until a question is asked, given back when it begins.

    A question must not fail for what an edit has taken on: what is missing is told by the edit. The
    memory is not touched, so that it costs nothing but the promise. `size` is in bytes.

    >>> room = Room().grown(10_000_000)
    >>> room.size >= 10_000_000 and room.grown(20_000_000).size >= 20_000_000
    True
    >>> room.give_back()
    >>> room.size
    0
    """

    def __init__(self, blocks: tuple[np.ndarray, ...] = ()) -> None:
        self._blocks = blocks
        self.size = sum(block.nbytes for block in blocks)

    def __reduce__(self) -> tuple[type[Room], tuple[()]]:
        return Room, ()

    def grown(self, size: int) -> Room:
        """Room of at least `size` bytes, to which this one belongs. Raises MemoryError."""
        more = -(-size // _STEP) * _STEP - self.size if size > _STEP else 0
        return Room((*self._blocks, np.empty(more, np.uint8))) if more > 0 else self

    def give_back(self) -> None:
        """Let others have it."""
        self._blocks, self.size = (), 0
