"""The papers' Factor: the explicit inverse P = A^-1, kept by Woodbury's formula.

Lütz, Rodner and Denzler change k rows and columns S of A by a matrix of rank 2k. With

    a_q^(i) =   A'_iq - A_iq   for q not in S,
    a_q^(i) = 1/2 (A'_iq - A_iq)  for q in S,      i in S         (eqs. 8 and 9)

U = [a^(s1) ... a^(sk)  e_s1 ... e_sk] and V = [E; A]' they have A' = A + UV (eq. 7) and Woodbury's
formula (eq. 6) gives the new inverse. A' is the *whole* new matrix: new examples against each
other, and the noise on the diagonal. Their 2k x 2k core is not symmetric only because of how V is
stacked; with its two block rows swapped it is, and it is solved so, by its eigenvectors:

    W = [a E],  J = [[0, I], [I, 0]],  Z = PW:   P' = P - Z (J + W'Z)^-1 Z'.

Adding puts rows of zeros with a positive diagonal under A and changes them; removing changes rows
to that and cuts them off. Both are `change`. Errors grow like cond(A)^2 from update to update, so
the inverse watches its residual and inverts afresh (`refresh`) when a bound is passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from scipy import linalg

from knowmore.arrays import Array, Frozen, derived
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.factor import Update
from knowmore.linalg.threads import threads_for

# Vectors that the residual is measured on.
_PROBES = 4
# A fresh inverse with a larger residual is refused: scores would be wrong in the second digit. The
# residual is about eps cond(A), so that is a matter of the matrix, and a factor of it goes further.
_USELESS = 0.01


def _empty() -> Array:
    return np.empty((0, 0))


@final
@dataclass(frozen=True, eq=False)
class Inverse(Frozen):
    """A and P = A^-1, both (n, n), immutable.

    `update`: `iterative`, k changes of rank 2; `direct`, one of rank 2k; `auto`, direct while that
    costs less than to invert afresh. `patience`: how many times the residual that a fresh inverse
    of this condition may have is borne before it is refreshed; infinity is the paper's method.
    `refreshes` counts.

    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor = Inverse().append(np.empty((0, 1)), A[:1, :1]).append(A[:1, 1:], A[1:, 1:])
    >>> np.allclose(factor.P @ A, np.eye(2))
    True
    """

    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    update: Update = "auto"
    patience: float = 1.0
    A: Array = field(default_factory=_empty)
    P: Array = field(default_factory=_empty)
    refreshes: int = 0

    @property
    def stable(self) -> bool:
        """No: P b is off by as much as P is."""
        return False

    @property
    def bears(self) -> float:
        """Less than a factor does."""
        return _USELESS

    @property
    def block(self) -> int:
        """All of them: one inversion costs less than several updates."""
        return 2**62

    @property
    def size(self) -> int:
        """n, the number of rows of A."""
        return len(self.A)

    # -- changing ----------------------------------------------------------------------------

    def with_update(self, update: Update) -> Inverse:
        """The same factor, to be edited in this way from now on."""
        return replace(self, update=update)

    def append(self, cross: Array, corner: Array) -> Inverse:
        """The inverse of [[A, cross], [cross', corner]]."""
        n, k = cross.shape
        if n == 0 or self._is_dear(k, n + k):
            return self._inverted(np.block([[self.A, cross], [cross.T, corner]]))
        A, P = np.zeros((2, n + k, n + k), dtype=self.dtype)
        A[:n, :n], P[:n, :n] = self.A, self.P
        new = np.arange(n, n + k)
        # The paper starts from ones on the diagonal; any positive number will do, and the true
        # one leaves nothing to change there.
        A[new, new] = np.diagonal(corner)
        P[new, new] = 1 / np.diagonal(corner)
        return self._woodbury(A, P, new, np.hstack([cross.T, corner]))._watched()

    def delete(self, rows: Array) -> Inverse:
        """The inverse of A without `rows`; the condition of what is left is no worse than A's."""
        rows = np.unique(rows)
        kept = np.delete(np.arange(self.size), rows)
        cut = np.ix_(kept, kept)
        if self._is_dear(len(rows), self.size):
            return self._fresh(self.A[cut])
        unit = np.zeros((len(rows), self.size), dtype=self.dtype)
        unit[np.arange(len(rows)), rows] = self.A[rows, rows]
        changed = self._woodbury(self.A.copy(), self.P.copy(), rows, unit)
        left = replace(changed, A=changed.A[cut], P=changed.P[cut])
        return left if left._is_sound() else left.refresh()

    def regrows(self, rows: Array) -> bool:
        """Never: what is left of A is stored and can be inverted as it is."""
        return False

    def prepare(self) -> None:
        """There is nothing to load."""

    def room(self, kept: int, size: int, deleted: int) -> int:
        """For A and P, the copies that they are cut from, and a factor to invert A by."""
        return 8 * max(size + deleted, self.size) ** 2 * self.dtype.itemsize

    def change(self, rows: Array, new: Array) -> Inverse:
        """The inverse of A with `rows` and these columns replaced by `new` (k, n)."""
        if self._is_dear(len(rows), self.size):
            A = self.A.copy()
            A[rows], A[:, rows] = new, new.T
            return self._inverted(A)
        return self._woodbury(self.A.copy(), self.P.copy(), rows, new)._watched()

    def refresh(self) -> Inverse:
        """The same A, inverted afresh; raises where A is singular."""
        return replace(self._fresh(self.A), refreshes=self.refreshes + 1)

    def _inverted(self, A: Array) -> Inverse:
        """The inverse of this matrix, unless it is useless."""
        return self._fresh(A)._useful()

    def _useful(self) -> Inverse:
        if self.residual() <= _USELESS or np.isinf(self.patience):
            return self
        # 1 / P_ii is what the others leave open of row i.
        row = int(np.argmax(np.diagonal(self.P) * np.diagonal(self.A)))
        raise NotPositiveDefinite(f"To the inverse, row {row} is a sum of others.", row)

    def _fresh(self, A: Array) -> Inverse:
        A = A.astype(self.dtype)
        factor = Cholesky(self.dtype).append(np.empty((0, len(A)), dtype=self.dtype), A)
        W = factor.forward(np.eye(len(A), dtype=self.dtype))
        solved = factor.backward(W)
        fresh = replace(self, A=A, P=(solved + solved.T) / 2)
        if fresh._is_sound():
            return fresh
        # Columns that are solved one by one make AP near I, but not PA, and P is half of each. The
        # product L^-T L^-1 is rounded a little more and makes both near.
        with threads_for(W.size, len(W)):
            product = replace(fresh, P=W.T @ W)
        return min(fresh, product, key=Inverse.residual)

    def _is_dear(self, k: int, n: int) -> bool:
        """Does a change of k of n rows cost more than a fresh inverse? 4 n^2 k against n^3."""
        return self.update == "auto" and 4 * k > n

    def _woodbury(self, A: Array, P: Array, rows: Array, new: Array) -> Inverse:
        """Change `rows` of A to `new`, and P with them, in place."""
        step = 1 if self.update == "iterative" else max(len(rows), 1)
        with threads_for(len(A) ** 2, len(rows)):
            for j in range(0, len(rows), step):
                S, later = rows[j : j + step], rows[j + step :]
                target = np.array(new[j : j + step], dtype=self.dtype)
                target[:, later] = A[np.ix_(S, later)]
                _woodbury(P, (target - A[S]).T, S)
                A[S], A[:, S] = target, target.T
        return replace(self, A=A, P=P)

    # -- watching ----------------------------------------------------------------------------

    def residual(self) -> float:
        """max |A P z - z| over a few random z of -1 and 1: every column of P has its say.

        About eps cond(A) when fresh, growing as it drifts.
        """
        signs = np.random.default_rng(self.size).integers(0, 2, (self.size, _PROBES))
        Z = (2 * signs - 1).astype(self.dtype)
        return float(abs(self.A @ (self.P @ Z) - Z).max(initial=0))

    def _watched(self) -> Inverse:
        """Itself while it can be trusted, else inverted afresh, unless that is useless too."""
        return self if self._is_sound() else self.refresh()._useful()

    def _is_sound(self) -> bool:
        eps = np.finfo(self.dtype).eps
        # As in `_useful`: the pivot that a factor would have.
        with np.errstate(divide="ignore"):
            pivots = 1 / np.diagonal(self.P)
        if not (pivots > self.size * eps * np.diagonal(self.A)).all():
            return False
        if np.isinf(self.patience):
            return True
        allowed = self.patience * eps * _norm(self.A) * _norm(self.P)
        return bool(self.residual() <= min(allowed, _USELESS))

    # -- asking ------------------------------------------------------------------------------

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """B itself: an explicit inverse has no halfway."""
        return np.array(B, dtype=self.dtype, order="C")

    def backward(self, H: Array) -> Array:
        """P H, (n, m)."""
        with threads_for(self.size**2, H.shape[1]):
            return np.asarray(self.P @ H)

    def solve(self, B: Array) -> Array:
        """P B, (n, m)."""
        return self.backward(self.forward(B))

    def half_solve(self, B: Array) -> Array:
        """R'B with P = RR', (n, m); the root is taken once."""
        with threads_for(self.size**2, B.shape[1]):
            return np.asarray(self._root.T @ B.astype(self.dtype))

    def inverse_diagonal(self) -> Array:
        """diag(P), (n,)."""
        return np.diagonal(self.P).copy()

    def logdet(self) -> float:
        """-log |P|."""
        return -2.0 * float(np.log(np.diagonal(self._root).astype(float)).sum())

    @derived
    def _root(self) -> Array:
        if self.size == 0:
            return self.P
        try:
            return np.asarray(linalg.cholesky(self.P, lower=True, check_finite=False))
        except linalg.LinAlgError as error:
            raise NotPositiveDefinite(
                "The inverse has drifted so far that it is no longer positive definite: patience="
                f"{self.patience:g} forbids to invert it afresh. Do so with refresh(), or use the "
                "Cholesky factor.",
                row=0,
            ) from error


def _norm(A: Array) -> float:
    return float(abs(A).sum(axis=0).max(initial=0))


def _woodbury(P: Array, a: Array, S: Array) -> None:
    """Update P = A^-1 in place for A'_S - A_S = a' (n, k), the whole difference. Eqs. (6)-(9)."""
    k = len(S)
    a[S] *= 0.5
    Z = np.hstack([P @ a, P[:, S]])
    WZ = np.vstack([a.T @ Z, Z[S]])
    J = np.eye(2 * k, k=k, dtype=P.dtype) + np.eye(2 * k, k=-k, dtype=P.dtype)
    values, vectors = np.linalg.eigh(J + (WZ + WZ.T) / 2)
    # Z core^-1 Z' = G+ G+' - G- G-': two products that are symmetric to the last bit.
    # A core without an inverse gives infinities here, which no watched inverse survives.
    with np.errstate(divide="ignore", invalid="ignore"):
        G = Z @ (vectors / np.sqrt(abs(values)))
    P -= G[:, values > 0] @ G[:, values > 0].T
    P += G[:, values < 0] @ G[:, values < 0].T
