"""The Factor protocol: a symmetric positive definite matrix that can grow and shrink.

Two primitives change it, `append` and `delete`; all else asks. Models never learn whether a
triangle or an inverse is behind it. Letters: A is the matrix (n, n), B a right-hand side (n, m).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar, final

import numpy as np
import numpy.typing as npt

from knowmore.arrays import Array
from knowmore.linalg.threads import threads_for

FLOAT64 = np.dtype(np.float64)


@final
@dataclass(frozen=True)
class Traits:
    """Facts about a representation, for whoever decides how to update it.

    stable : a solve A x = b leaves a residual of rounding of |A| |x|; if not, of cond(A) |b|
    rounding : about how large eps cond(A) may be before `append` refuses
    nested : its leading rows depend on leading rows of A alone
    block : rows that are best appended at a time
    update_cost : starting from scratch is cheaper than an update if update_cost times the changed
        rows are more than those that stay (and, if nested, depend on a change)
    copies : matrices of the size of A that there must be memory for
    load : compiles what `delete` needs in a precision
    """

    stable: bool
    rounding: float
    nested: bool
    block: int
    update_cost: int
    copies: float
    load: Callable[[np.dtype[Any]], object]


class Factor(Protocol):
    """An immutable representation of A. Rows are positions 0 ... n-1."""

    @property
    def size(self) -> int:
        """n, the number of rows of A."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that A is kept in."""

    @property
    def traits(self) -> Traits:
        """What kind of representation this is."""

    def append(self, cross: Array, corner: Array) -> Self:
        """The factor of [[A, cross], [cross', corner]]; cross (n, k), corner (k, k).

        Raises NotPositiveDefinite, with the row counted in the enlarged matrix.
        """

    def delete(self, rows: Array) -> Self:
        """The factor of A without these rows and columns; any set, in any order."""

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """The first half of a solve, F(B) (n, m): an append merely extends it.

        Leading rows of F(B) depend on leading rows of A and B alone. Those already known may be
        given as `head` (h, m) and are not computed again.
        """

    def backward(self, H: Array) -> Array:
        """The second half of a solve: backward(forward(B)) = A^-1 B."""

    def solve(self, B: Array) -> Array:
        """A^-1 B, (n, m)."""
        return self.backward(self.forward(B))

    def half_solve(self, B: Array) -> Array:
        """Some H (n, m) with H'H = B' A^-1 B: a quadratic form without cancellation."""

    def inverse_diagonal(self) -> Array:
        """The diagonal of A^-1, (n,)."""

    def logdet(self) -> float:
        """log |A|."""


AnyFactor = TypeVar("AnyFactor", bound=Factor)


def grown(factor: AnyFactor, blocks: Iterable[tuple[Array, Array]], count: int) -> AnyFactor:
    """The factor with blocks (cross, corner) of `count` rows in all appended one after the other.

    Blocks may be lazy: they are evaluated on as many threads as the whole append gets.
    """
    with threads_for((factor.size + count) ** 2, count):
        for cross, corner in blocks:
            factor = factor.append(cross, corner)
    return factor


def lost_pivots(pivots: npt.ArrayLike, scale: npt.ArrayLike, n: int, dtype: npt.DTypeLike) -> Array:
    """Whether each pivot is no more than the rounding of n terms of size `scale`.

    Such a pivot counts as zero: its row is a combination of others.
    """
    floor = n * np.finfo(dtype).eps * np.asarray(scale)
    return np.asarray(~(np.asarray(pivots) > floor))
