"""The papers' Factor: the explicit inverse P = A^-1, kept by Woodbury's formula.

Lütz, Rodner and Denzler change k rows and columns S of A by a matrix of rank 2k. With

    a_q^(i) =   A'_iq - A_iq   for q not in S,
    a_q^(i) = 1/2 (A'_iq - A_iq)  for q in S,      i in S         (eqs. 8 and 9)

U = [a^(s1) ... a^(sk)  e_s1 ... e_sk] and V = [E; A]' they have A' = A + UV (eq. 7) and Woodbury's
formula (eq. 6) gives the new inverse. A' is the *whole* new matrix: new examples against each
other, and the noise on the diagonal. Their 2k x 2k core is not symmetric only because of how V is
stacked; with its two block rows swapped it is, and it is solved so, by its eigenvectors:

    W = [a E],  J = [[0, I], [I, 0]],  Z = PW:   P' = P - Z (J + W'Z)^-1 Z'.

`append` puts rows of zeros with a positive diagonal under A and changes them to the new ones;
`delete` changes rows to that and cuts them off, unless inverting what is left of A is cheaper.
Errors grow like cond(A)^2 from update to update, so the inverse measures its residual and inverts A
again (`refresh`) when a bound is passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from knowmore._base import Array, Frozen, derived
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.factor import FLOAT64, Factor, Traits, lost_pivots, probes
from knowmore.linalg.products import product
from knowmore.linalg.threads import threads_for

# A fresh inverse with a larger residual is refused: scores would be wrong in the second digit. The
# residual is about eps cond(A), so the matrix is to blame, and a Cholesky factor goes further.
_MAX_RESIDUAL = 0.01


@final
@dataclass(frozen=True, eq=False)
class Inverse(Frozen, Factor):
    """A and P = A^-1, both (n, n), immutable.

    `patience`: A is inverted again when the residual is this many times what a fresh inverse of
    this condition may have; `refreshes` counts these. Infinity is the paper's method: updates only.

    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor = Inverse().append(np.empty((0, 1)), A[:1, :1]).append(A[:1, 1:], A[1:, 1:])
    >>> np.allclose(factor.P @ A, np.eye(2))
    True
    """

    # Changing k of n rows takes 4 n^2 k flops and a fresh inverse n^3: it is cheaper if 4 k > n,
    # that is, if 3 k exceeds the rows that stay. One inversion is cheaper than several updates, so
    # rows are appended all at once. In memory there are A and P, the copies that they are cut from,
    # and a factor to invert A by.
    traits: ClassVar[Traits] = Traits(
        stable=False, rounding=_MAX_RESIDUAL, nested=False, block=2**62, update_cost=3, copies=8
    )

    dtype: np.dtype[Any] = FLOAT64
    patience: float = 1.0
    A: Array = field(default_factory=lambda: np.empty((0, 0)))
    P: Array = field(default_factory=lambda: np.empty((0, 0)))
    refreshes: int = 0

    @property
    def size(self) -> int:
        """n, the number of rows of A."""
        return len(self.A)

    # -- changing ----------------------------------------------------------------------------

    def append(self, cross: Array, corner: Array, half: Array | None = None) -> Inverse:
        """The inverse of [[A, cross], [cross', corner]]."""
        n, k = cross.shape
        A = np.block([[self.A, cross], [cross.T, corner]]).astype(self.dtype)
        if n == 0:
            return self._inverted(A)._accepted()
        # The paper starts from ones on the diagonal; any positive number will do, and the true
        # one leaves nothing to change there.
        P, new = np.zeros_like(A), np.arange(n, n + k)
        P[:n, :n] = self.P
        P[new, new] = 1 / A[new, new]
        _woodbury(P, _off_diagonal(A, new), new)
        grown = replace(self, A=A, P=P)
        return grown if grown.is_sound() else grown.refresh()._accepted()

    def delete(self, rows: Array) -> Inverse:
        """The inverse of A without `rows`; its condition is no worse."""
        rows = np.unique(rows)
        kept = np.delete(np.arange(self.size), rows)
        if len(kept) == 0:
            return replace(self, A=self.A[:0, :0], P=self.P[:0, :0])
        cut = np.ix_(kept, kept)
        if self.traits.update_cost * len(rows) > len(kept) and not np.isinf(self.patience):
            return self._inverted(self.A[cut])
        P = self.P.copy()
        _woodbury(P, -_off_diagonal(self.A, rows), rows)
        left = replace(self, A=self.A[cut], P=P[cut])
        return left if left.is_sound() else left.refresh()

    def without(self, rows: Array, H: Array) -> tuple[Inverse, Array]:
        """`delete`, and the rows of H that stay: F(B) is B."""
        return self.delete(rows), np.delete(H, rows[rows < len(H)], axis=0)

    def refresh(self) -> Inverse:
        """A, inverted again; raises NotPositiveDefinite if A is singular."""
        return replace(self._inverted(self.A), refreshes=self.refreshes + 1)

    def _inverted(self, A: Array) -> Inverse:
        factor = Cholesky(self.dtype).append(np.empty((0, len(A)), dtype=self.dtype), A)
        W = factor.forward(np.eye(len(A), dtype=self.dtype))
        solved = factor.backward(W)
        fresh = replace(self, A=A, P=(solved + solved.T) / 2)
        if fresh.is_sound():
            return fresh
        # Columns that are solved one by one make AP near I, but not PA, and P is half of each. The
        # product L^-T L^-1 is rounded a little more and makes both near.
        with threads_for(W.size, len(W)):
            other = replace(fresh, P=W.T @ W)
        return min(fresh, other, key=Inverse.residual)

    # -- checking ----------------------------------------------------------------------------

    def residual(self) -> float:
        """max |A P z - z| over a few random z of -1 and 1, so that every column of P counts.

        About eps cond(A) when fresh, growing as it drifts.
        """
        Z = probes(self.size).astype(self.dtype)
        return float(abs(self.A @ (self.P @ Z) - Z).max(initial=0))

    def _accepted(self) -> Inverse:
        """This fresh inverse, unless its residual is too large to be of use."""
        if self.residual() <= _MAX_RESIDUAL or np.isinf(self.patience):
            return self
        # 1 / P_ii is the part of A_ii that the other rows do not explain.
        row = int(np.argmax(np.diagonal(self.P) * np.diagonal(self.A)))
        raise NotPositiveDefinite(f"Row {row} is a combination of others to rounding.", row)

    def is_sound(self) -> bool:
        """Whether no pivot is lost, and the residual is no more than rounding."""
        # 1 / P_ii is the pivot of row i if it comes last.
        with np.errstate(divide="ignore"):
            pivots = 1 / np.diagonal(self.P)
        if lost_pivots(pivots, np.diagonal(self.A), self.size, self.dtype).any():
            return False
        if np.isinf(self.patience):
            return True
        eps = np.finfo(self.dtype).eps
        allowed = self.patience * eps * np.linalg.norm(self.A, 1) * np.linalg.norm(self.P, 1)
        return bool(self.residual() <= min(allowed, _MAX_RESIDUAL))

    # -- asking ------------------------------------------------------------------------------

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """B itself: an explicit inverse solves in one step."""
        return np.array(B, dtype=self.dtype, order="C")

    def extend(self, H: Array, B: Array) -> Array:
        """B itself."""
        return self.forward(B)

    def backward(self, H: Array) -> Array:
        """P H, (n, m)."""
        return product(self.P, H)

    def half_solve(self, B: Array) -> Array:
        """R'B with P = RR', (n, m); the root is computed once."""
        return product(self._root.T, B.astype(self.dtype))

    def inverse_diagonal(self) -> Array:
        """diag(P), (n,)."""
        return np.diagonal(self.P).copy()

    def logdet(self) -> float:
        """-log |P|."""
        return -2.0 * float(np.log(np.diagonal(self._root).astype(float)).sum())

    @derived
    def _root(self) -> Array:
        try:
            return np.linalg.cholesky(self.P)
        except np.linalg.LinAlgError as error:
            problem = f"The inverse has drifted too far, and patience={self.patience:g} keeps it."
            advice = "Call refresh(), or use the Cholesky factor."
            raise NotPositiveDefinite(f"{problem} {advice}", row=0) from error


def _off_diagonal(A: Array, S: Array) -> Array:
    """The columns S of A (n, k), with zeros on A's diagonal."""
    a = A[:, S]
    a[S, np.arange(len(S))] = 0
    return a


def _woodbury(P: Array, a: Array, S: Array) -> None:
    """Update P = A^-1 in place for A'_S - A_S = a' (n, k), the whole difference. Eqs. (6)-(9)."""
    k = len(S)
    a[S] *= 0.5
    with threads_for(P.size, k):
        Z = np.hstack([P @ a, P[:, S]])
        WZ = np.vstack([a.T @ Z, Z[S]])
        J = np.eye(2 * k, k=k, dtype=P.dtype) + np.eye(2 * k, k=-k, dtype=P.dtype)
        values, vectors = np.linalg.eigh(J + (WZ + WZ.T) / 2)
        # Z core^-1 Z' = G+ G+' - G- G-': two products that are symmetric to the last bit.
        # A core without an inverse gives infinities here, which no checked inverse survives.
        with np.errstate(divide="ignore", invalid="ignore"):
            G = Z @ (vectors / np.sqrt(abs(values)))
        P -= G[:, values > 0] @ G[:, values > 0].T
        P += G[:, values < 0] @ G[:, values < 0].T
