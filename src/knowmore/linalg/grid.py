"""The grid that rows are read on before they are summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, final

import numpy as np

from knowmore._base import Array, Frozen, a_type, derived, is_whole, read_only, real_numbers, some
from knowmore.errors import InvalidInput, InvalidType
from knowmore.linalg.counting import READ, loops
from knowmore.linalg.sketch import Sketch
from knowmore.linalg.tables import BLOCK, FARTHEST, LARGEST, beyond, block, blocks, table


class Layout(NamedTuple):
    """How the whole numbers of a grid are written and multiplied.

    limb : the bits of a limb, sign included; products of limbs are exact and fast
    below : how many powers of two the step of a column is below its spread
    room : how many powers of two are left above the largest value of `Grid.reaching`
    """

    limb: int
    below: int
    room: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which products are exact and fast."""
        return np.dtype(np.float32 if self.limb == 8 else np.float64)

    @property
    def rows_at_once(self) -> int:
        """The number of rows whose sum of products is exact in that type."""
        precision = np.finfo(self.dtype).nmant + 1
        return int(2 ** (precision - 2 * (self.limb - 1)))


LAYOUTS: Final = {
    8: Layout(8, 3, 0),
    16: Layout(16, 9, 3),
    21: Layout(21, 14, 8),
    42: Layout(21, 35, 3),
}


@final
@dataclass(frozen=True, eq=False)
class Grid(Frozen):
    """Column j is read in whole multiples of 2**exponents[j], counted from centres[j].

    Whole numbers can be summed exactly, in any order. So the grid is a part of the model, as a
    kernel is: it is chosen once and kept. Values round to the nearest multiple. A value may be as
    far from the centre as it likes: its multiple is written in limbs (see `limbs`).

    exponents : whole numbers, (D,)
    bits : 8, 16, 21 (the default) or 42. It decides how fine the steps are that `covering` chooses,
        beside the spread of a column: 2**-3, 2**-9, 2**-14 or 2**-35 of it
    centres : (D,), rounded to multiples of the steps; None: zeros

    >>> grid = Grid.covering([[10000.0, 1], [10001, 2], [10003, 7], [10002, 99999]])
    >>> grid.steps
    array([6.10351562e-05, 6.10351562e-05])
    >>> grid.centres
    array([1.0001e+04, 2.0000e+00])
    """

    exponents: Array
    bits: int = 21
    centres: Any = None

    def __post_init__(self) -> None:
        _check_bits(self.bits)
        exponents = _exponents(self.exponents)
        object.__setattr__(self, "exponents", exponents)
        object.__setattr__(self, "centres", _centres(self.centres, np.ldexp(1.0, exponents)))
        super().__post_init__()

    @classmethod
    def covering(cls, X: Any, bits: int = 21) -> Self:
        """The grid for rows like X (n, D): the centre and the spread of each column decide.

        Medians decide, not the largest values: no single row can make the steps too coarse for the
        others: see `Sketch`.
        """
        _check_bits(bits)
        exponents, centres = Sketch.of(table(X)).columns(LAYOUTS[bits].below)
        return cls(exponents, bits, centres)

    @classmethod
    def reaching(cls, largest: Any, bits: int = 21) -> Self:
        """The grid about zero for columns whose largest absolute values are these, (D,).

        Its steps are 2**-11 to 2**-12 of these with 16 and 21 bits, 2**-6 to 2**-7 with 8 and
        2**-37 to 2**-38 with 42. A column of zeros is read with the median of the others' steps.
        """
        largest = real_numbers("largest", largest)
        if largest.ndim != 1 or not len(largest):
            raise InvalidInput(
                f"largest has shape {largest.shape}. Give one number for each column, (D,): "
                f"abs(X).max(axis=0)."
            )
        if not np.isfinite(largest).all():
            column = int(np.isfinite(largest).argmin())
            raise InvalidInput(
                f"Column {column} of X contains NaN or infinity. Remove these rows, or fill in the "
                f"values."
            )
        if (largest < 0).any():
            column = int((largest < 0).argmax())
            raise InvalidInput(
                f"The largest absolute value of column {column} cannot be {largest[column]:g}. "
                f"Give abs(X).max(axis=0), or use Grid.covering(X)."
            )
        _check_bits(bits)
        above = np.frexp(largest)[1] + LAYOUTS[bits].room
        known = above[largest > 0]
        above = np.where(largest > 0, above, int(np.median(known)) if len(known) else 1)
        return cls(above - (bits - 1), bits)

    def __getstate__(self) -> dict[str, Any]:
        """The fields for pickles: equal grids have equal pickles, also after questions."""
        return {"exponents": self.exponents, "bits": self.bits, "centres": self.centres}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Grid)
            and self.bits == other.bits
            and np.array_equal(self.exponents, other.exponents)
            and np.array_equal(self.centres, other.centres)
        )

    def __hash__(self) -> int:
        return hash((self.bits, self.exponents.tobytes(), (self.centres + 0.0).tobytes()))

    def __repr__(self) -> str:
        low, high = self.exponents.min(), self.exponents.max()
        steps = f"2**{low}" if low == high else f"2**{low} to 2**{high}"
        about = f" about {some(self.centres.tolist())}" if self.centres.any() else ""
        return f"Grid({len(self.exponents)} columns in steps of {steps}{about}, bits={self.bits})"

    def __len__(self) -> int:
        return len(self.exponents)

    def __getitem__(self, columns: slice) -> Grid:
        """The grid of some columns."""
        return Grid(self.exponents[columns], self.bits, self.centres[columns])

    @derived
    def steps(self) -> Array:
        """The steps, (D,): values are read in multiples of them."""
        return np.ldexp(1.0, self.exponents)

    def __add__(self, other: Grid) -> Grid:
        """The grid of rows that have the columns of both, of the same number of bits."""
        if not isinstance(other, Grid):
            raise InvalidType(f"{a_type(other)} cannot be added to a Grid. Give another Grid.")
        if self.bits != other.bits:
            raise InvalidInput(
                f"The grids have {self.bits} and {other.bits} bits, but the columns of a row are "
                f"read with as many. Make both with the same bits: Grid.covering(X, bits)."
            )
        exponents = np.append(self.exponents, other.exponents)
        return Grid(exponents, self.bits, np.append(self.centres, other.centres))

    def multiples(self, X: Array, first: int = 0) -> Array:
        """Rows X (n, D) as whole multiples of the steps from the centres, (n, D).

        rint((x - centre) / step) in double precision. Numbers beyond 2**53 are whole, too.

        first : the number of the first row, for an error
        """
        if type(X) is not np.ndarray or X.dtype not in READ or X.ndim != 2:
            X = block(table(X), slice(None))
        if X.shape[1] != len(self):
            raise InvalidInput(f"X has {X.shape[1]} columns, but the grid has {len(self)}.")
        Q = np.empty(X.shape)
        row = loops().read(read_only(X), self.centres, self._scale, LARGEST, Q)
        if row >= 0:
            raise beyond(np.asarray(X[row], dtype=float), first + row)
        return Q

    @derived
    def _scale(self) -> Array:
        """The number of steps in one, (D,)."""
        return 1 / self.steps

    def rounded(self, X: Any) -> Array:
        """Rows X (n, D) as they are read, (n, D)."""
        return np.asarray(self.centres + self.offsets(X))

    def offsets(self, X: Any) -> Array:
        """Rows X (n, D) as they are read, minus the centres, (n, D)."""
        X = table(X)
        parts = [self.multiples(part, i * BLOCK) for i, part in enumerate(blocks(X))]
        return np.asarray(np.vstack([np.empty((0, len(self))), *parts]) * self.steps)


def _exponents(given: Any) -> Array:
    """The exponents of a grid, checked."""
    try:
        exponents = np.asarray(given)
    except ValueError:
        # Lists of different lengths.
        exponents = np.empty(0)
    if exponents.ndim != 1 or not len(exponents) or exponents.dtype.kind not in "iu":
        raise InvalidInput(
            f"exponents={given!r}. Give a whole number for each column: its values are read in "
            f"multiples of 2 to that power."
        )
    outside = (exponents < -FARTHEST) | (exponents > FARTHEST)
    if outside.any():
        column = int(outside.argmax())
        raise InvalidInput(
            f"Column {column} would be read in multiples of 2**{exponents[column]}, but the "
            f"exponents of a grid are between -{FARTHEST} and {FARTHEST}: beyond, squares are no "
            f"numbers. Scale the features and targets."
        )
    return exponents.astype(np.int64)


def _centres(given: Any, steps: Array) -> Array:
    """The centres of a grid, checked, as multiples of its steps."""
    if given is None:
        return np.zeros(len(steps))
    centres = real_numbers("centres", given)
    if centres.shape != steps.shape or not (abs(centres) <= LARGEST).all():
        raise InvalidInput(
            f"centres={given!r}. Give a number for each of {len(steps)} columns, at most "
            f"{LARGEST:g} in size."
        )
    # A number of 53 bits that is larger than 2**53 steps is a multiple of them as it is.
    multiples = centres / steps
    return np.where(abs(multiples) < 2.0**53, np.rint(multiples) * steps, centres) + 0.0


class Limb(NamedTuple):
    """A limb of whole numbers: its rows (r,), columns (c,) and digits (r, c)."""

    rows: Array
    columns: Array
    digits: Array


def limbs(Q: Array, bits: int) -> list[Limb]:
    """Whole numbers Q (n, P) in limbs, the lowest first.

    Q is the sum of 2**(bits k) times limb k, with digits of at most 2**(bits - 1) in size. Limb 0
    has all rows and columns; others only those with a number that is too large for it. Remainders
    of whole numbers by powers of two are exact in floating point.
    """
    base, half = 2.0**bits, 2.0 ** (bits - 1)
    rows, columns = np.arange(len(Q)), np.arange(Q.shape[1])
    found = list[Limb]()
    while Q.size and (Q.max() > half or Q.min() < -half):
        far = np.flatnonzero((Q.max(axis=0) > half) | (Q.min(axis=0) < -half))
        high = np.rint(Q[:, far] / base)
        near = Q.copy()
        near[:, far] -= high * base
        found.append(Limb(rows, columns, near))
        some = high.any(axis=1)
        rows, columns, Q = rows[some], columns[far], high[some]
    return [*found, Limb(rows, columns, Q)]


def _check_bits(bits: Any) -> None:
    if not is_whole(bits) or bits not in LAYOUTS:
        raise InvalidInput(f"bits={bits!r}. Choose one of {some(list(LAYOUTS))}.")
