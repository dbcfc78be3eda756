"""Totals that rows are added to, limb by limb, and sums of products with rows that still wait.

Only the totals change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final, NamedTuple

import numpy as np

from knowmore._base import Array, check_free, one_each, read_only, real_numbers
from knowmore.errors import InvalidInput
from knowmore.linalg.counting import HALF, WORD, added, in_words, loops, padded, shifted, trimmed
from knowmore.linalg.grid import LAYOUTS, Grid, Limb, limbs
from knowmore.linalg.threads import threads_for

# Weights are counted in units of 1 / 256, with 16 bits.
UNIT: Final = 256
# The total weight, in units, up to which no sum overflows: 8.5 billion rows of weight one.
_LOG_HEAVIEST: Final = 41
HEAVIEST: Final = 2**_LOG_HEAVIEST
# Words that sums of products have at least: enough for rows of one limb.
WORDS: Final = 2


# Whether so many bytes are free is looked up before they are taken.
MANY_BYTES: Final = 2**28
FEWER_COLUMNS: Final = (
    "Give fewer columns: through a feature map, hashed to fewer, or by TruncatedSVD. For few rows, "
    "a GPClassifier or GPRegressor with the kernel DotProduct() holds n^2 / 2 numbers instead."
)
# The squares of no rows.
_NOTHING: Final = read_only(np.zeros((1, 1), np.int64))
# Rows that wait to be summed: a few at a time would cost as much as many.
WAITING: Final = 128


# The largest weight of a row, in units.
MOST: Final = 2**16 - 1


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
        self._layout, self._places = LAYOUTS[grid.bits], (np.arange(len(grid)),) * 2
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
        limb, dtype, add = self._layout.limb, self._layout.dtype, loops().accumulate
        parts = [Limb(*one[:2], one.digits.astype(dtype, copy=False)) for one in given]
        self._widen(len(parts))
        self._add_near(parts[0].digits, bit, sign)
        for k, (rows, columns, Z) in enumerate(parts[1:], 1):
            for low, (others, beside, near) in enumerate(parts[:k]):
                C = _product(Z, near[np.searchsorted(others, rows)])
                add(self._words, C, (columns, beside), limb * (k + low) + bit, sign, True)
            add(self._words, _gram(Z), (columns, columns), 2 * limb * k + bit, sign, False)

    def _add_near(self, Z: Array, bit: int, sign: int) -> None:
        """Add the products of the lowest limb. Products of rows of weight one wait in C."""
        if sign == 1 and 2**bit == UNIT:
            if self._rows + len(Z) > self._layout.rows_at_once:
                self._flush()
            C = _gram(Z)
            self._C = C if self._C is None else np.add(self._C, C, out=self._C)
            self._rows += len(Z)
        else:
            loops().accumulate(self._words, _gram(Z), self._places, bit, sign, False)

    def _widen(self, many: int) -> None:
        """Make room for the products of so many limbs."""
        needed = -(-(2 * self._layout.limb * many + _LOG_HEAVIEST + 1) // WORD)
        self._words = padded(self._words, max(needed, _with_room(self._words)))

    def _flush(self) -> None:
        if self._C is not None:
            bit = UNIT.bit_length() - 1
            loops().accumulate(self._words, self._C, self._places, bit, 1, False)
            self._C, self._rows = None, 0


class Products(NamedTuple):
    """Sums of products of many rows in words, (W, P, P), and rows still to be summed.

    squares : the sums of squares of all of them, (U, P), in words
    length : the number of the latter
    """

    words: Array | None = None
    waiting: tuple[Batch, ...] = ()
    squares: Array = _NOTHING
    length: int = 0

    @classmethod
    def summed(cls, words: Array) -> Products:
        """Settled sums: no row waits."""
        # Compiled loops return a type of their own, which would show in pickles.
        words = read_only(trimmed(words, WORDS).view(np.int64))
        return cls(words, squares=words.diagonal(axis1=1, axis2=2))

    @classmethod
    def of_few(cls, batch: Batch) -> Products:
        """The sums of a few rows, which wait until more have come, or a question."""
        n = len(batch.Q)
        return cls(None, (batch,) if n else (), _squares(batch), n)

    def settled(self, grid: Grid) -> Products:
        """The sums after the waiting rows were summed."""
        check_room(grid)
        total = Total(grid, self.words)
        for sign in (1, -1):
            # Together: a product of each row alone would cost as much as one of all.
            if alike := [batch for batch in self.waiting if batch.sign == sign]:
                Q, units = (np.concatenate(part) for part in [*zip(*alike, strict=True)][:2])
                total.add(Batch(Q, units, sign))
        return Products.summed(total.words)

    def plus(self, other: Products, sign: int, grid: Grid) -> Products:
        """The sums with the rows of others that wait, or with sign -1 without them."""
        turned = tuple(Batch(Q, units, sign * way) for Q, units, way in other.waiting)
        joined = Products(
            self.words,
            self.waiting + turned,
            added(self.squares, other.squares, sign),
            self.length + other.length,
        )
        if joined.length > WAITING:
            joined = joined.without_pairs()
        return joined if joined.length <= WAITING else joined.settled(grid)

    def without_pairs(self) -> Products:
        """The sums without waiting rows that came and went, if no row was summed yet."""
        if self.words is not None:
            return self
        net, rows = dict[bytes, int](), list[tuple[bytes, Batch]]()
        for Q, units, sign in self.waiting:
            for i in range(len(Q)):
                # -0.0 and 0.0 are one number.
                row = (Q[i] + 0).tobytes()
                net[row] = net.get(row, 0) + sign * int(units[i])
                rows.append((row, Batch(Q[i : i + 1], units[i : i + 1], sign)))
        left = tuple(batch for row, batch in rows if net[row])
        return Products(None, left, self.squares, len(left))


NO_PRODUCTS: Final = Products()


def _squares(batch: Batch) -> Array:
    """The sums of squares of a few rows, times their weights, in words, (U, P)."""
    Q, units, _ = batch
    # Not squared: that may be beyond the range of numbers.
    far = abs(Q).max(axis=0, initial=0) > 2.0**30 / np.sqrt(max(units.sum(), 1))
    if not far.any():
        return (units @ Q.astype(np.int64) ** 2)[None]
    squares = units @ np.where(far, 0, Q).astype(np.int64) ** 2
    long = in_words(units.astype(object) @ np.frompyfunc(int, 1, 1)(Q[:, far]) ** 2)
    words = np.zeros((len(long), len(squares)), np.int64)
    words[0], words[:, far] = squares, long
    return words


def check_room(grid: Grid) -> None:
    """Raise NotEnoughMemory if there is none for the words of one total and a product of rows."""
    if (needed := bytes_of_a_total(grid)) > MANY_BYTES:
        what = f"The sums of products of {len(grid):,} columns take"
        check_free(needed, what, FEWER_COLUMNS)


def bytes_of_a_total(grid: Grid) -> int:
    """The bytes of two words and a product; numbers of more limbs than one may need more."""
    return 24 * len(grid) ** 2


def combined(a: Array, b: Array, sign: int) -> Array:
    """The words of a + sign b, (W, P, P)."""
    length = max(map(_with_room, (a, b)))
    words = loops().combine(read_only(padded(a, length)), read_only(padded(b, length)), sign)
    return trimmed(words, WORDS)


def _with_room(words: Array) -> int:
    """The number of words for sums of products (W, P, P) that may double: the squares tell."""
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


def in_units(weights: Array | None, n: int) -> Array:
    """Weights of n rows in units of 1 / UNIT, (n,); None: one for each row."""
    if weights is None:
        return np.full(n, UNIT, np.int64)
    weights = real_numbers("weights", weights)
    one_each("weights", weights.shape, n)
    units = np.rint(weights * UNIT)
    wrong = ~((units >= 0) & (units <= MOST)) | ((units == 0) & (weights > 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(
            f"The weight of row {row} is {weights[row]}. Weights are read in multiples of "
            f"1/{UNIT}, from 1/{UNIT} to {MOST / UNIT:g}, or zero to leave a row out: scale them."
        )
    return np.asarray(units, dtype=np.int64)
