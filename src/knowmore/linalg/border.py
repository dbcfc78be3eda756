"""A matrix with one more row and column, whose corner is zero, given the matrix's own factor.

    [[A, u], [u', 0]] [Z; z'] = [B; 0]

is indefinite and never factorised. With v = A^-1 u and s = u'v, the border is eliminated:

    z = B'v / s,    Z = A^-1 B - v z',    and A^-1 - v v' / s is the inverse's leading block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from knowmore.arrays import Array, Frozen


@final
@dataclass(frozen=True, eq=False)
class Border(Frozen):
    """The bordering column u (n,) and what is solved for it, v = A^-1 u (n,).

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
        """The diagonal (n,) of the inverse's leading block, from that of A^-1."""
        return np.asarray(diagonal - self.v**2 / self.s)

    def inverse_block(self, rows: Array, block: Array) -> Array:
        """Rows and columns `rows` (k,) of the inverse, from those of A^-1, (k, k)."""
        return np.asarray(block - np.outer(self.v[rows], self.v[rows]) / self.s)

    def without(self, z: Array, E: Array, groups: Array) -> Array:
        """z (m,) had the rows of one group been left out of A and B, for each row, (n, m).

        By block inversion z - v_g'E_g / s, where E (n, m) are what the leading block P of the
        inverse makes of the groups, E_g = P_gg^-1 Z_g. groups (n,): whole numbers from 0 on.
        """
        sums = np.zeros((int(groups.max()) + 1, E.shape[1]))
        np.add.at(sums, groups, self.v[:, None] * E)
        return np.asarray(z - sums[groups] / self.s)
