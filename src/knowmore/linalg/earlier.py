"""Grids and sums as earlier versions wrote them, in the form that they have now.

Numbers of 42 bits were two columns of sums, and a target was up to four columns of digits. Both are
one column now, whose numbers have limbs: the sums of that column follow exactly.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

import numpy as np

from knowmore._base import Array
from knowmore.linalg.counting import from_words, in_words
from knowmore.linalg.grid import Grid

# Columns of sums for each column of rows, and columns of rows for each target, by bits.
_SLICES: Final = {8: 1, 16: 1, 21: 1, 42: 2}
_DIGITS: Final = {8: 4, 16: 2, 21: 2, 42: 1}
_SHIFT: Final = 21


class Earlier(NamedTuple):
    """A grid of earlier versions: exponents of columns and digits, bits, and targets."""

    exponents: Array
    bits: int
    targets: int

    @property
    def width(self) -> int:
        """The number of columns of sums."""
        return _SLICES[self.bits] * len(self.exponents)

    @property
    def _features(self) -> int:
        return len(self.exponents) - self.targets * _DIGITS[self.bits]

    @property
    def grid(self) -> Grid:
        """The grid with one column for each target: the column of its last digit."""
        D, k = self._features, _DIGITS[self.bits]
        return Grid(np.append(self.exponents[:D], self.exponents[D + k - 1 :: k]), self.bits)

    def _columns(self) -> list[tuple[Array, Array, int]]:
        """Columns of sums, the columns of rows that they are of, and by how much to shift them."""
        D, k, many = self._features, _DIGITS[self.bits], len(self.exponents)
        parts = [(np.arange(D), np.arange(D), 0)]
        for place in range(k if self.targets else 0):
            digits = np.arange(D + place, many, k)
            shift = int(self.exponents[D + place] - self.exponents[D + k - 1])
            parts.append((digits, D + np.arange(self.targets), shift))
        if _SLICES[self.bits] == 1:
            return parts
        high = [(old, new, shift + _SHIFT) for old, new, shift in parts]
        return high + [(old + many, new, shift) for old, new, shift in parts]

    def firsts(self, sums: Array) -> Array:
        """Sums of rows, (G, P), in words, (U, G, D)."""
        found = np.zeros((len(sums), len(self.grid)), dtype=object)
        for old, new, shift in self._columns():
            found[:, new] += sums[:, old].astype(object) * 2**shift
        return in_words(found)

    def words(self, high_and_low: Array) -> Array:
        """Sums of products, (2, P, P), lower triangle, in words, (W, D, D)."""
        lower = from_words(high_and_low[::-1])
        whole = np.tril(lower) + np.tril(lower, -1).T
        found = np.zeros((len(self.grid),) * 2, dtype=object)
        for (i, up, a), (j, across, b) in product(self._columns(), repeat=2):
            found[np.ix_(up, across)] += whole[np.ix_(i, j)] * 2 ** (a + b)
        return in_words(np.tril(found), 2)
