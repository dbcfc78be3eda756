"""The Factor protocol: a symmetric positive definite matrix that can grow and shrink.

Two primitives change it, `append` and `delete`; all else asks. Models never learn whether a
triangle or an inverse is behind it. Letters: A is the matrix (n, n), B a right-hand side (n, m).
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, Self

import numpy as np

from knowmore.arrays import Array

Update = Literal["auto", "direct", "iterative"]


class Factor(Protocol):
    """An immutable representation of A. Rows are positions 0 ... n-1."""

    @property
    def size(self) -> int:
        """n, the number of rows of A."""
        ...

    @property
    def update(self) -> Update:
        """How a block of rows is appended or deleted."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that A is kept in."""
        ...

    @property
    def stable(self) -> bool:
        """Does a solve A x = b leave a residual of rounding of |A| |x|? If not, of cond(A) |b|."""
        ...

    @property
    def bears(self) -> float:
        """How large eps cond(A) may be, about, before `append` refuses."""
        ...

    @property
    def block(self) -> int:
        """How many rows are best appended at a time."""
        ...

    def with_update(self, update: Update) -> Self:
        """The same factor, to be edited in this way from now on."""
        ...

    def append(self, cross: Array, corner: Array) -> Self:
        """The factor of [[A, cross], [cross', corner]]; cross (n, k), corner (k, k).

        Raises NotPositiveDefinite, with the row counted in the enlarged matrix.
        """
        ...

    def delete(self, rows: Array) -> Self:
        """The factor of A without these rows and columns; any set, in any order."""
        ...

    def regrows(self, rows: Array) -> bool:
        """Is it cheaper to cut A off before the first of `rows` and append what is left of it?"""
        ...

    def prepare(self) -> None:
        """Load what `delete` needs, so that it cannot fail for that."""
        ...

    def room(self, kept: int, size: int, deleted: int) -> int:
        """Bytes for a change to `size` rows, the first `kept` as they are, that deletes some."""
        ...

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """The first half of a solve, F(B) (n, m): what an append merely extends.

        Leading rows of F(B) depend on leading rows of A and B alone, so those already known may
        be given as `head` (h, m) and are taken over.
        """
        ...

    def backward(self, H: Array) -> Array:
        """The second half of a solve: backward(forward(B)) = A^-1 B."""
        ...

    def solve(self, B: Array) -> Array:
        """A^-1 B, (n, m)."""
        ...

    def half_solve(self, B: Array) -> Array:
        """Some H (n, m) with H'H = B' A^-1 B: a quadratic form without cancellation."""
        ...

    def inverse_diagonal(self) -> Array:
        """The diagonal of A^-1, (n,)."""
        ...

    def logdet(self) -> float:
        """log |A|."""
        ...
