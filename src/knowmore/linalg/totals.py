"""Totals that rows are added to, limb by limb: the only things of exact sums that change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final, NamedTuple

import numpy as np

from knowmore._base import Array, read_only
from knowmore.linalg.counting import HALF, WORD, added, loops, padded, shifted, trimmed
from knowmore.linalg.grid import LAYOUTS, Grid, Limb, limbs
from knowmore.linalg.threads import threads_for

# Weights are counted in units of 1 / 256, with 16 bits.
UNIT: Final = 256
# The total weight, in units, up to which no sum overflows: 8.5 billion rows of weight one.
_LOG_HEAVIEST: Final = 41
HEAVIEST: Final = 2**_LOG_HEAVIEST
# Words that sums of products have at least: enough for rows of one limb.
WORDS: Final = 2


class Batch(NamedTuple):
    """Rows (n, P) to add or, with sign -1, to remove, and their weights in units (n,)."""

    Q: Array
    units: Array
    sign: int


class Firsts:
    """Sums of the rows of each group: for each limb, (G, P)."""

    def __init__(self, grid: Grid, many: int) -> None:
        self._limb, self._shape = LAYOUTS[grid.bits].limb, (many, len(grid))
        self._sums: list[Array] = [np.zeros(self._shape, np.int64)]

    def count(self, parts: Sequence[Limb], codes: Array, units: Array) -> Firsts:
        """Add rows in limbs, times their weights (n,), to the sums of their groups, codes (n,)."""
        for k, (rows, columns, Z) in enumerate(parts):
            if k == 0:
                loops().count(Z, codes, units, self._sums[0])
                continue
            if k == len(self._sums):
                self._sums.append(np.zeros(self._shape, np.int64))
            part = np.zeros((self._shape[0], len(columns)), np.int64)
            loops().count(Z, codes[rows], units[rows], part)
            self._sums[k][:, columns] += part
        return self

    @property
    def words(self) -> Array:
        """The sums of all limbs in words, (U, G, P)."""
        parts = (shifted(one, self._limb * k) for k, one in enumerate(self._sums[1:], 1))
        return reduce(lambda a, b: added(a, b, 1), parts, self._sums[0][None])


class Total:
    """Sums of products that rows are added to."""

    def __init__(self, grid: Grid, words: Array | None = None) -> None:
        self._layout, self._places = LAYOUTS[grid.bits], np.arange(len(grid))
        shape = WORDS, len(grid), len(grid)
        self._words = np.zeros(shape, np.int64) if words is None else words.copy()
        self._C: Array | None = None
        self._rows = 0

    @property
    def words(self) -> Array:
        """The sums of products of all rows that were added, (W, P, P)."""
        self._flush()
        return self._words

    def add(self, batch: Batch, parts: Sequence[Limb] | None = None) -> None:
        """Add the products of these rows; parts : their limbs, if they are known.

        A weight is a sum of powers of two: for each of these the rows that have it are summed once,
        and shifted. A weight of one is a single power.
        """
        Q, units, sign = batch
        if (units == UNIT).all():
            parts = limbs(Q, self._layout.limb) if parts is None else parts
            self._add(parts, UNIT.bit_length() - 1, sign)
            return
        for bit in range(int(units.max(initial=0)).bit_length()):
            chosen = units >> bit & 1 == 1
            if chosen.any():
                self._add(limbs(Q[chosen], self._layout.limb), bit, sign)

    def _add(self, given: Sequence[Limb], bit: int, sign: int) -> None:
        """Add the products of rows in limbs, times 2**bit."""
        limb, dtype = self._layout.limb, self._layout.dtype
        parts = [one._replace(digits=one.digits.astype(dtype, copy=False)) for one in given]
        self._widen(len(parts))
        self._add_near(parts[0].digits, bit, sign)
        for k, (rows, columns, Z) in enumerate(parts[1:], 1):
            for low, (others, beside, near) in enumerate(parts[:k]):
                C = _product(Z, near[np.searchsorted(others, rows)])
                self._accumulate(C, columns, beside, limb * (k + low) + bit, sign, True)
            self._accumulate(_gram(Z), columns, columns, 2 * limb * k + bit, sign, False)

    def _add_near(self, Z: Array, bit: int, sign: int) -> None:
        """Add the products of the lowest limb. Those of rows of weight one wait in C."""
        if sign == 1 and 2**bit == UNIT:
            if self._rows + len(Z) > self._layout.rows_at_once:
                self._flush()
            C = _gram(Z)
            self._C = C if self._C is None else np.add(self._C, C, out=self._C)
            self._rows += len(Z)
        else:
            self._accumulate(_gram(Z), self._places, self._places, bit, sign, False)

    def _accumulate(
        self, C: Array, rows: Array, columns: Array, shift: int, sign: int, mixed: bool
    ) -> None:
        loops().accumulate(self._words, C, rows, columns, shift, sign, mixed)

    def _widen(self, many: int) -> None:
        """Make room for the products of so many limbs."""
        needed = -(-(2 * self._layout.limb * many + _LOG_HEAVIEST + 1) // WORD)
        self._words = padded(self._words, max(needed, _with_room(self._words)))

    def _flush(self) -> None:
        if self._C is not None:
            bit = UNIT.bit_length() - 1
            self._accumulate(self._C, self._places, self._places, bit, 1, False)
            self._C, self._rows = None, 0


def combined(a: Array, b: Array, sign: int) -> Array:
    """The words of a + sign b, (W, P, P)."""
    length = max(map(_with_room, (a, b)))
    words = loops().combine(read_only(padded(a, length)), read_only(padded(b, length)), sign)
    return trimmed(words, WORDS)


def _with_room(words: Array) -> int:
    """How many words sums of products (W, P, P) need if they may double: the squares tell."""
    return len(words) + bool((abs(words[-1].diagonal()) >= HALF // 2).any())


def _product(A: Array, B: Array) -> Array:
    """A' B, (c, P), of limbs of the same rows."""
    with threads_for(A.size // 4, B.shape[1]):
        return np.asarray(A.T @ B)


def _gram(Z: Array) -> Array:
    """Z' Z, (P, P), which NumPy computes as a symmetric product."""
    # It has half of the products, and then copies the other half on one thread: for a few rows a
    # second one gains little, and loses much while another program takes a core.
    with threads_for(Z.size // 4, Z.shape[1]):
        return np.asarray(Z.T @ Z)
