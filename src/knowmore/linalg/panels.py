"""Row panels: the storage of a lower triangle.

Panel p holds rows [128 p, 128 p + 128) of L by columns: row j of `columns` is column j of L, 128
numbers side by side, which a deletion rotates as one. `left`, what stands before the diagonal
block, and `diagonal`, the triangle itself, are views of it in Fortran order. Both are passed to
BLAS without a copy; SciPy would silently copy a view of one large array at every triangular solve.
What stands above the diagonal is never read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import numpy as np
from scipy.linalg import blas

from knowmore._base import Array, moment

PANEL = 128
# Rows that a first panel has room for; it is copied into the next size when it grows.
_SIZES = (16, 32, 64, PANEL)
_BYTES = {"d": 8, "f": 4}
_trsm = {"d": blas.dtrsm, "f": blas.strsm}
_trsv = {"d": blas.dtrsv, "f": blas.strsv}

# Freed panels wait here for the next of their shape: touching fresh pages costs three times the
# arithmetic of a deletion (n = 8000: 84 ms to write a new triangle, 26 ms to overwrite an old one).
# There is no lock: a panel may be freed by the garbage collector while this very code runs. Each
# step on the lists is atomic, and exceeding the limit by one panel does no harm.
_SPARE_BYTES = 256 * 2**20
_spare: dict[tuple[int, str], list[Array]] = {}


def _take(length: int, width: int, dtype: np.dtype[Any]) -> Array:
    try:
        return _spare[length, dtype.char].pop()
    except (KeyError, IndexError):
        pass
    # Small panels get memory that is used again, with values of rows that may be forgotten.
    make = np.zeros if length == width else np.empty
    try:
        return make((length, width), dtype=dtype)
    except MemoryError:
        # Spare panels may hold the memory that is missing.
        _spare.clear()
        return make((length, width), dtype=dtype)


def _give(array: Array) -> None:
    # A forest frees a hundred thousand panels at once, most of them a first one: count by their few
    # shapes, and keep none of the first, whose sizes differ.
    length = len(array)
    if length <= PANEL:
        return
    waiting = sum(
        [
            len(spares) * PANEL * length * _BYTES[char]
            for (length, char), spares in list(_spare.items())
        ]
    )
    if array.nbytes <= _SPARE_BYTES - waiting:
        _spare.setdefault((length, array.dtype.char), []).append(array)


@final
class Panel:
    """Up to 128 rows of L, written once each; `filled` rows are taken."""

    __slots__ = ("__weakref__", "columns", "diagonal", "filled", "left", "start")

    def __init__(self, start: int, dtype: np.dtype[Any], count: int) -> None:
        """A panel whose first `count` rows are the caller's to write."""
        self.start = start
        # A forest has many factors of a few rows each, with one panel.
        size = PANEL if start else next(size for size in _SIZES if count <= size)
        self.columns = _take(start + size, size, dtype)
        self.left, self.diagonal = self.columns[:start].T, self.columns[start:].T
        self.filled = count

    def __del__(self) -> None:
        # A panel that was interrupted in __init__ may have no array yet.
        columns = getattr(self, "columns", None)
        if columns is not None:
            _give(columns)

    def claim(self, at: int, count: int) -> Panel:
        """A panel with the same first `at` rows whose next `count` are the caller's to write.

        That is this panel, unless another factor grew from the same rows before, or it is full.
        """
        with moment:
            if self.filled == at and at + count <= len(self.diagonal):
                self.filled = at + count
                return self
        copy = Panel(self.start, self.columns.dtype, at + count)
        end = self.start + at
        copy.columns[:end, :at] = self.columns[:end, :at]
        return copy

    def write(self, at: int, Y: Array, L: Array) -> None:
        """Write rows [Y', L] of L behind the first `at`: Y (start, count) and L (count, rest)."""
        new = self.columns[: len(Y) + L.shape[1], at : at + len(L)]
        new[: len(Y)], new[len(Y) :] = Y, L.T

    def rows(self, count: int) -> Array:
        """The first `count` rows of L in this panel, (count, start + count)."""
        return np.hstack([self.left[:count], np.tril(self.diagonal[:count, :count])])

    def packed(self, count: int) -> tuple[Array, Array]:
        """The first `count` rows of L: those before the diagonal block, and its triangle, packed.

        (count, start) and (count (count + 1) / 2,).
        """
        return self.left[:count], self.diagonal[:count, :count][np.tril_indices(count)]

    @classmethod
    def unpacked(cls, start: int, count: int, left: Array, triangle: Array) -> Panel:
        """The panel of these rows, which `packed` returned."""
        panel = cls(start, left.dtype, count)
        panel.left[:count] = left
        panel.diagonal[:count, :count][np.tril_indices(count)] = triangle
        return panel

    def forward(self, Y: Array, known: int, zeros: int, count: int, solved: Iterable[int]) -> None:
        """Solve the panel's `count` rows of L Y = B in place.

        Rows of Y before `known` are solved already; those before `zeros` are zero and skipped. Of
        those between, `solved` says how many there are by now, and in the end all before the panel.
        """
        s = self.start
        done = max(known - s, 0)
        rest, begin = Y[s + done : s + count], zeros
        for end in solved:
            if end > begin:
                rest -= self.left[done:count, begin:end] @ Y[begin:end]
                begin = end
        if done:
            rest -= self.diagonal[done:count, :done] @ Y[s : s + done]
        solve_lower(self.diagonal[done:count, done:count], rest)

    def backward(self, X: Array, count: int) -> None:
        """Solve the panel's rows of L' X = H in place and eliminate them from the rows above."""
        s = self.start
        x = X[s : s + count]
        solve_lower(self.diagonal[:count, :count], x, transposed=True)
        if s:
            X[:s] -= self.left[:count].T @ x


def solve_lower(D: Array, B: Array, *, transposed: bool = False) -> None:
    """Solve D X = B, or D'X = B, in place; D lower triangular, B (count, m) in C order."""
    D = np.asfortranarray(D)
    if B.shape[1] == 1:
        _trsv[B.dtype.char](D, B[:, 0], lower=1, trans=int(transposed), overwrite_x=1)
    else:
        # B' is in Fortran order, so that B'D^-T, the same solve from the right, needs no copy.
        _trsm[B.dtype.char](
            1.0, D, B.T, side=1, lower=1, trans_a=int(not transposed), overwrite_b=1
        )
