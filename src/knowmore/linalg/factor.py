"""The Factor protocol: a symmetric positive definite matrix that can grow and shrink.

Two primitives change it, `append` and `delete`; all else asks. Models never learn whether a
triangle or an inverse is behind it. Letters: A is the matrix (n, n), B a right-hand side (n, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, final

import numpy as np
import numpy.typing as npt

from knowmore._base import Array, Frozen

FLOAT64 = np.dtype(np.float64)
# Vectors that a residual is measured on.
_PROBES = 4


class Traits(NamedTuple):
    """Facts about a representation: how to update it depends on them.

    stable : a solve A x = b leaves a residual of rounding of |A| |x|; if not, of cond(A) |b|
    rounding : about how large eps cond(A) may be before `append` refuses
    nested : its leading rows depend on leading rows of A alone
    block : rows that are best appended at a time
    update_cost : appending again is cheaper than an update if update_cost times the changed rows
        are more than those it would append again. If nested, a deletion changes rows, and those
        below it are appended again; if not, an append does, and all rows are.
    copies : matrices of the size of A that there must be memory for
    load : compiles what `delete` needs in a precision
    """

    stable: bool
    rounding: float
    nested: bool
    block: int
    update_cost: int
    copies: float
    load: Callable[[np.dtype[Any]], object] = lambda dtype: None


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
        """Facts about this representation."""

    def append(self, cross: Array, corner: Array, half: Array | None = None) -> Self:
        """The factor of [[A, cross], [cross', corner]]; cross (n, k), corner (k, k).

        half : F(cross), if that is known
        Raises NotPositiveDefinite, with the row counted in the enlarged matrix.
        """

    def delete(self, rows: Array) -> Self:
        """The factor of A without these rows and columns; any set, in any order."""

    def without(self, rows: Array, H: Array) -> tuple[Self, Array]:
        """`delete`, and leading rows of F(B) without these rows, from leading rows H (h, m)."""

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """The first half of a solve, F(B) (n, m): an append merely extends it.

        Leading rows of F(B) depend on leading rows of A and B alone. Those already known may be
        given as `head` (h, m) and are not computed again.
        """

    def extend(self, H: Array, B: Array) -> Array:
        """The rows of F([.; B]) that belong to B (n - h, m), those before them being H (h, m)."""

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


def probes(n: int) -> Array:
    """Random columns of -1 and 1, (n, 4), to measure a residual on; equal for equal n."""
    return np.asarray(2.0 * np.random.default_rng(n).integers(0, 2, (n, _PROBES)) - 1)


def lost_pivots(pivots: npt.ArrayLike, scale: npt.ArrayLike, n: int, dtype: npt.DTypeLike) -> Array:
    """Whether each pivot is no more than the rounding of n terms of size `scale`.

    Such a pivot counts as zero: its row is a combination of others.
    """
    floor = n * np.finfo(dtype).eps * np.asarray(scale)
    return np.asarray(~(np.asarray(pivots) > floor))


@final
@dataclass(frozen=True, eq=False)
class Border(Frozen):
    """A matrix with one more row and column, whose corner is zero, given A's own factor.

        [[A, u], [u', 0]] [Z; z'] = [B; 0]

    is indefinite and never factorised. With v = A^-1 u and s = u'v, the border is eliminated:

        z = B'v / s,    Z = A^-1 B - v z',    and A^-1 - v v' / s is the inverse's leading block.

    u (n,) is the bordering column and v (n,) what is solved for it.

    >>> A, B = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([[1.0], [2.0]])
    >>> border = Border(np.ones(2), np.linalg.solve(A, np.ones(2)))
    >>> Z, z = border.eliminated(B, np.linalg.solve(A, B))
    >>> np.allclose(A @ Z + z, B), np.allclose(Z.sum(), 0)
    (True, True)
    """

    u: Array
    v: Array

    @property
    def s(self) -> float:
        """u' A^-1 u."""
        return float(self.u @ self.v)

    def eliminated(self, B: Array, solved: Array) -> tuple[Array, Array]:
        """Z (n, m) and z (m,) from the right-hand sides B (n, m) and `solved` = A^-1 B."""
        z = B.T @ self.v / self.s
        return solved - np.outer(self.v, z), z

    def inverse_diagonal(self, diagonal: Array) -> Array:
        """The diagonal (n,) of the inverse's leading block, from the diagonal of A^-1."""
        return np.asarray(diagonal - self.v * (self.v / self.s))

    def inverse_block(self, rows: Array, block: Array) -> Array:
        """Rows and columns `rows` (k,) of the inverse, (k, k), from this block of A^-1."""
        return np.asarray(block - np.outer(self.v[rows], self.v[rows] / self.s))

    def without(self, z: Array, E: Array, groups: Array) -> Array:
        """z (m,) had the rows of one group been left out of A and B, for each row, (n, m).

        By block inversion z - v_g'E_g / s, where E (n, m) are what the leading block P of the
        inverse makes of the groups, E_g = P_gg^-1 Z_g. groups (n,): whole numbers from 0 on.
        """
        sums = np.zeros((int(groups.max()) + 1, E.shape[1]))
        np.add.at(sums, groups, self.v[:, None] * E)
        return np.asarray(z - sums[groups] / self.s)


def eliminated(border: Border | None, B: Array, solved: Array) -> tuple[Array, Array]:
    """Z (n, m) and z (m,) as in `Border`; without a border `solved` = A^-1 B itself, and zeros."""
    if border is None:
        return solved, np.zeros(solved.shape[1])
    return border.eliminated(B, solved)
