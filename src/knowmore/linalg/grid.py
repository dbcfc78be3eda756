"""The grid that rows are read on before they are summed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
from scipy import sparse

from knowmore.arguments import is_whole, some
from knowmore.arrays import Array, Frozen, read_only
from knowmore.errors import InvalidInput
from knowmore.linalg.counting import READ, loops

# Bits of a value: how many of them go into one slice, and how many binary orders of magnitude
# are left free above the largest value that a grid is made for.
_SLICES: Final = {8: (8, 0), 16: (16, 3), 42: (21, 3)}
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
    bits : 8, 16 (the default) or 42, sign included. With 42, float32 values down to 2**-14 of the
        largest are kept as they are.

    >>> grid = Grid.covering([[0.5, 200.0]])
    >>> grid.steps
    array([0.00024414, 0.0625    ])
    >>> grid.limits
    array([   8., 2048.])
    """

    exponents: Array
    bits: int = 16

    def __post_init__(self) -> None:
        _check_bits(self.bits)
        exponents = np.asarray(self.exponents)
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
    def covering(cls, X: Any, bits: int = 16) -> Self:
        """The grid for rows like X (n, D), with room for values eight times as large.

        With eight bits there is no such room: values of up to the next power of two fit. It is
        given by the largest absolute value of each column alone.
        """
        X = _table(X)
        largest = np.zeros(X.shape[1])
        for rows in blocks(X):
            np.maximum(largest, abs(rows).max(axis=0, initial=0), out=largest)
        return cls.reaching(largest, bits)

    @classmethod
    def reaching(cls, largest: Any, bits: int = 16) -> Self:
        """The grid for columns whose largest absolute values are these, (D,).

        A column of zeros is read like the others: with the median of their steps.
        """
        largest = np.asarray(largest, dtype=float)
        if not np.isfinite(largest).all():
            column = int(np.isfinite(largest).argmin())
            raise InvalidInput(
                f"Column {column} of X contains NaN or infinity. Remove these rows, or fill in the "
                f"values."
            )
        _check_bits(bits)
        above = np.frexp(largest)[1] + _SLICES[bits][1]
        known = above[largest > 0]
        above = np.where(largest > 0, above, int(np.median(known)) if len(known) else 1)
        return cls(above - (bits - 1), bits)

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

    @property
    def steps(self) -> Array:
        """What the multiples are of, (D,)."""
        return np.ldexp(1.0, self.exponents)

    @property
    def limits(self) -> Array:
        """The largest absolute values of each column, (D,)."""
        return np.ldexp(self.steps, self.bits - 1)

    @property
    def slices(self) -> int:
        """The number of slices that a value is cut into, each exact in a product: one or two."""
        return self.bits // _SLICES[self.bits][0]

    @property
    def shift(self) -> int:
        """The bits of a slice: a value is its first slice times 2**shift plus its second."""
        return _SLICES[self.bits][0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which products are exact and fast."""
        return np.dtype(np.float32 if self.bits == 8 else np.float64)

    @property
    def rows_at_once(self) -> int:
        """How many rows may be summed in that type before a sum of products is no longer exact."""
        precision = np.finfo(self.dtype).nmant + 1
        return int(2 ** (precision - 2 * (self.shift - 1)))

    def __add__(self, other: Grid) -> Grid:
        """The grid of rows that have the columns of both."""
        return Grid(np.append(self.exponents, other.exponents), self.bits)

    def multiples(self, X: Array, first: int = 0) -> Array:
        """Rows X (n, D) in multiples of the steps, (n, slices D): all first slices come first.

        first : the number of the first row, for an error
        """
        if X.shape[1] != len(self):
            raise InvalidInput(f"X has {X.shape[1]} columns, but the grid has {len(self)}.")
        Z = np.empty((len(X), self.slices * len(self)), self.dtype)
        row = loops().read(read_only(X), 1 / self.steps, 2.0 ** (self.bits - 1), self.shift, Z)
        if row >= 0:
            raise self._outside(np.asarray(X[row], dtype=float), first + row)
        return Z

    def rounded(self, X: Array) -> Array:
        """Rows X (n, D) as they are read, (n, D)."""
        parts = [self.multiples(part, i * BLOCK) for i, part in enumerate(blocks(_table(X)))]
        Z, D = np.vstack(parts).astype(float, copy=False), len(self)
        whole = Z if self.slices == 1 else np.ldexp(Z[:, :D], self.shift) + Z[:, D:]
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
    if not is_whole(bits) or bits not in _SLICES:
        raise InvalidInput(f"bits={bits!r}. Choose one of {some(list(_SLICES))}.")


def _table(X: Any) -> Any:
    """X as it is if it is an array or a table, otherwise as an array; it has rows and columns."""
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
    if len(X.shape) != 2 or not X.shape[1]:
        raise InvalidInput(f"X has shape {X.shape}. Give rows and columns, (n, D).")
    return X


def blocks(X: Any, size: int = BLOCK) -> Iterator[Array]:
    """X (n, D), dense or sparse, in memory or mapped, as dense blocks of rows, one at a time.

    Several tables in a tuple stand side by side.
    """
    if isinstance(X, tuple):
        parts = zip(*(blocks(table, size) for table in X), strict=True)
        yield from (np.hstack(part) for part in parts)
        return
    rows = X.tocsr() if sparse.issparse(X) else X
    for start in range(0, rows.shape[0], size):
        block = rows[start : start + size]
        block = block.toarray() if sparse.issparse(block) else np.ascontiguousarray(block)
        yield block if block.dtype in READ else block.astype(float)
