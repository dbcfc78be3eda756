"""The grid that rows are read on before they are summed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from scipy import sparse

from knowmore.arguments import a_type, check_sparse, is_whole, real_numbers, some, unmasked
from knowmore.arrays import Array, Frozen, derived, read_only
from knowmore.columns import Names, names_of
from knowmore.errors import InvalidInput, InvalidType, warn
from knowmore.linalg.counting import READ, loops


class Layout(NamedTuple):
    """How a value of some bits is written.

    slices, shift : a value is cut into one or two slices of `shift` bits, each exact in a product;
        it is the first times 2**shift plus the second
    room : how many powers of two are left above the largest value that a grid is made for
    digits : how many columns of such values a target is written in
    """

    slices: int
    shift: int
    room: int
    digits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which products are exact and fast."""
        return np.dtype(np.float32 if self.shift == 8 else np.float64)

    @property
    def rows_at_once(self) -> int:
        """How many rows may be summed in that type before a sum of products is no longer exact."""
        precision = np.finfo(self.dtype).nmant + 1
        return int(2 ** (precision - 2 * (self.shift - 1)))


LAYOUTS: Final = {
    8: Layout(1, 8, 0, 4),
    16: Layout(1, 16, 3, 2),
    21: Layout(1, 21, 8, 2),
    42: Layout(2, 21, 3, 1),
}
# Rows that are read at a time: enough for a fast product, few enough to stay in the cache.
BLOCK: Final = 1024
# The largest exponent, up or down: ten billion products of two columns still have a square.
_FARTHEST: Final = 150


@final
@dataclass(frozen=True, eq=False)
class Grid(Frozen):
    """Column j is read in whole multiples of 2**exponents[j], up to 2**(bits - 1) of them.

    Whole numbers can be summed exactly, in any order. So the grid is a part of the model, as a
    kernel is: it is chosen once and kept. Values round to the nearest multiple; larger
    ones are refused.

    exponents : whole numbers, (D,)
    bits : 8, 16, 21 (the default) or 42, sign included. With 42, float32 values down to 2**-14 of
        the largest are kept as they are.

    >>> grid = Grid.covering([[0.5, 200.0]])
    >>> grid.steps
    array([0.00024414, 0.0625    ])
    >>> grid.limits
    array([  256., 65536.])
    """

    exponents: Array
    bits: int = 21

    def __post_init__(self) -> None:
        _check_bits(self.bits)
        try:
            exponents = np.asarray(self.exponents)
        except ValueError:
            # Lists of different lengths.
            exponents = np.empty(0)
        if exponents.ndim != 1 or not len(exponents) or exponents.dtype.kind not in "iu":
            raise InvalidInput(
                f"exponents={self.exponents!r}. Give a whole number for each column: its values "
                f"are read in multiples of 2 to that power."
            )
        beyond = (exponents < -_FARTHEST) | (exponents > _FARTHEST)
        if beyond.any():
            column = int(beyond.argmax())
            raise InvalidInput(
                f"Column {column} would be read in multiples of 2**{exponents[column]}, but the "
                f"exponents of a grid are between -{_FARTHEST} and {_FARTHEST}: beyond, products "
                f"are no numbers. Scale the features and targets."
            )
        object.__setattr__(self, "exponents", exponents.astype(np.int64))
        super().__post_init__()

    @classmethod
    def covering(cls, X: Any, bits: int = 21) -> Self:
        """The grid for rows like X (n, D), with room for values 256 times as large.

        With 16 or 42 bits there is room for values eight times as large, with 8 bits only up to the
        next power of two. The largest absolute value of each column alone decides.
        """
        X = table(X)
        x = extremes(X)
        grid = cls.reaching(abs(x).max(axis=0), bits)
        warn_if_lost(grid, x, names_of(X))
        return grid

    @classmethod
    def reaching(cls, largest: Any, bits: int = 21) -> Self:
        """The grid for columns whose largest absolute values are these, (D,).

        A column of zeros is read like the others: with the median of their steps.
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
        """For pickles, which are the same whatever was asked before."""
        return {"exponents": self.exponents, "bits": self.bits}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Grid)
            and self.bits == other.bits
            and np.array_equal(self.exponents, other.exponents)
        )

    def __hash__(self) -> int:
        return hash((self.bits, self.exponents.tobytes()))

    def __repr__(self) -> str:
        low, high = self.exponents.min(), self.exponents.max()
        steps = f"2**{low}" if low == high else f"2**{low} to 2**{high}"
        return f"Grid({len(self.exponents)} columns in steps of {steps}, bits={self.bits})"

    def __len__(self) -> int:
        return len(self.exponents)

    @derived
    def steps(self) -> Array:
        """What the multiples are of, (D,)."""
        return np.ldexp(1.0, self.exponents)

    @derived
    def limits(self) -> Array:
        """The largest absolute values of each column, (D,)."""
        return np.ldexp(self.steps, self.bits - 1)

    def __add__(self, other: Grid) -> Grid:
        """The grid of rows that have the columns of both, of the same number of bits."""
        if not isinstance(other, Grid):
            raise InvalidType(f"{a_type(other)} cannot be added to a Grid. Give another Grid.")
        if self.bits != other.bits:
            raise InvalidInput(
                f"The grids have {self.bits} and {other.bits} bits, but the columns of a row are "
                f"read with as many. Make both with the same bits: Grid.covering(X, bits)."
            )
        return Grid(np.append(self.exponents, other.exponents), self.bits)

    def multiples(self, X: Array, first: int = 0) -> Array:
        """Rows X (n, D) in multiples of the steps, (n, slices D): all first slices come first.

        first : the number of the first row, for an error
        """
        if type(X) is not np.ndarray or X.dtype not in READ or X.ndim != 2:
            X = block(table(X), slice(None))
        if X.shape[1] != len(self):
            raise InvalidInput(f"X has {X.shape[1]} columns, but the grid has {len(self)}.")
        layout = LAYOUTS[self.bits]
        Z = np.empty((len(X), layout.slices * len(self)), layout.dtype)
        row = loops().read(read_only(X), self._scale, 2.0 ** (self.bits - 1), layout.shift, Z)
        if row >= 0:
            raise self._outside(np.asarray(X[row], dtype=float), first + row)
        return Z

    @derived
    def _scale(self) -> Array:
        """How many multiples make one, (D,)."""
        return 1 / self.steps

    def rounded(self, X: Any) -> Array:
        """Rows X (n, D) as they are read, (n, D)."""
        X, D = table(X), len(self)
        parts = [self.multiples(part, i * BLOCK) for i, part in enumerate(blocks(X))]
        Z = np.vstack([self.multiples(block(X, slice(0))), *parts]).astype(float, copy=False)
        shift = LAYOUTS[self.bits].shift
        whole = Z if Z.shape[1] == D else np.ldexp(Z[:, :D], shift) + Z[:, D:]
        return np.asarray(whole * self.steps)

    def _outside(self, x: Array, row: int) -> InvalidInput:
        with np.errstate(over="ignore"):
            bad = ~(abs(np.rint(x / self.steps)) <= 2.0 ** (self.bits - 1))
        column = int(bad.argmax())
        if not np.isfinite(x[column]):
            return InvalidInput(
                f"Input X contains NaN or infinity: row {row}, column {column} ({x[column]}). "
                f"Remove these rows, or fill in the values."
            )
        return InvalidInput(
            f"Row {row} of X has {x[column]:g} in column {column}, but values there must be "
            f"between -{self.limits[column]:g} and {self.limits[column]:g}: the model reads rows "
            f"on a grid that the first rows decided. Leave the row out or clip it, or fit again "
            f"with resolution=Grid.covering(X) for an X that reaches as far."
        )


def _check_bits(bits: Any) -> None:
    if not is_whole(bits) or bits not in LAYOUTS:
        raise InvalidInput(f"bits={bits!r}. Choose one of {some(list(LAYOUTS))}.")


def table(X: Any) -> Any:
    """X as it is if it is an array or a table, otherwise as an array; it has rows and columns.

    A sparse one is in CSR format, in which rows are found.
    """
    unmasked("X", X)
    check_sparse("X", X)
    X = X if hasattr(X, "shape") else real_numbers("X", X)
    if len(X.shape) != 2 or not X.shape[1]:
        raise InvalidInput(f"X has shape {X.shape}. Give rows and columns, (n, D).")
    return X.tocsr() if sparse.issparse(X) else X


def extremes(X: Any) -> Array:
    """The lowest and the highest value of each column of X (n, D), (2, D); zeros of no rows."""
    if not height(X):
        return np.zeros((2, X.shape[1]))
    low, high = np.full((2, X.shape[1]), [[np.inf], [-np.inf]])
    for rows in blocks(X):
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    return np.array([low, high])


def warn_if_lost(grid: Grid, x: Array, names: Names = None) -> None:
    """Warn of columns whose values, from x[0] to x[1], are less than one step of the grid apart.

    Rounding then moves them by more than they vary: a column of the uniform distribution over one
    step has the variance of the rounding, and less is left of any narrower one.

    x : the lowest and the highest value of each column, (2, D)
    names : those of the columns, if they have any
    """
    apart = x[1] - x[0]
    lost = np.flatnonzero((apart > 0) & (apart < grid.steps))
    if not len(lost):
        return
    j = int(lost[0])
    columns = [column if names is None else names[column] for column in lost.tolist()]
    which = f"Column {columns[0]!r} of X varies"
    if len(lost) > 1:
        which = f"{len(lost)} columns of X vary, {some(columns)}: the first one"
    warn(
        f"{which} by {apart[j]:g} about {x[:, j].mean():g}, but is read in steps of "
        f"{grid.steps[j]:g}: nearly all that it says is lost in rounding. Subtract an offset from "
        f"it, such as {x[0, j]:g}, or read it in finer steps: resolution='exact' (42 bits), or a "
        f"Grid."
    )


def blocks(X: Any, size: int = BLOCK) -> Iterator[Array]:
    """X (n, D), dense or sparse, in memory or mapped, as dense blocks of rows, one at a time.

    Several tables in a tuple stand side by side.
    """
    X = X.tocsr() if sparse.issparse(X) else X
    for start in range(0, height(X), size):
        yield block(X, slice(start, start + size))


def block(X: Any, rows: slice) -> Array:
    """These rows of X, dense, in a type that is read as it is."""
    if isinstance(X, tuple):
        return np.hstack([block(one, rows) for one in X])
    part = X[rows]
    part = part.toarray() if sparse.issparse(part) else np.ascontiguousarray(part)
    return part if part.dtype in READ else real_numbers("X", part)


def height(X: Any) -> int:
    """The number of rows of X, or of tables in a tuple, which must agree."""
    if not isinstance(X, tuple):
        return int(X.shape[0])
    heights = [height(one) for one in X]
    if len({*heights}) != 1:
        raise InvalidInput(
            f"Tables side by side must have as many rows each, but these have {some(heights)}. "
            f"Give one table at least, and a row of each for every example."
        )
    return heights[0]
