"""The default Factor: the lower Cholesky factor L of A = LL', in row panels.

append   L Y = cross,  L22 L22' = corner - Y'Y  ->  [[L, 0], [Y', L22]]
delete   A_RR = L_RR L_RR' + C C' with C = L_RS: taking rows S out is a *positive* update of the
         trailing triangle, done by orthogonal transformations; it cannot break down.

Both are backward stable: a factor that went through any history is as accurate as a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from scipy.linalg import lapack

from knowmore.arrays import Array
from knowmore.concurrency import cached_property
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg.factor import FLOAT64, Factor, Traits, lost_pivots
from knowmore.linalg.panels import PANEL, Panel
from knowmore.linalg.sweep import sweep
from knowmore.linalg.threads import threads_for

# Panels of L_RR, and each with its rows of C = L_RS.
_Panels = Iterator[Panel]
_Pairs = Iterator[tuple[Panel, Array]]

_potrf = {"d": lapack.dpotrf, "f": lapack.spotrf}
_tpqrt = {"d": lapack.dtpqrt, "f": lapack.stpqrt}

# Up to this many deleted rows, that many sweeps of rotations are faster than block reflectors.
_SWEEPS = 16
# Width of a block reflector: wide enough for matrix products, narrow enough for its triangle.
_REFLECTOR = 64


@final
@dataclass(frozen=True, eq=False)
class Cholesky(Factor):
    """L, immutable. A factor shares with its predecessor every panel that did not change.

    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor = Cholesky().append(np.empty((0, 2)), A)
    >>> factor.lower()
    array([[2., 0.],
           [1., 2.]])
    >>> factor.delete(np.array([0])).lower() ** 2
    array([[5.]])
    """

    # Deleting k rows takes 2 k r^2 flops, where r rows after the first of them stay; factorising
    # these from scratch takes r^3 / 3. A block is wide enough for products at full speed and
    # narrow enough to be small beside L.
    traits: ClassVar[Traits] = Traits(
        stable=True, rounding=1.0, nested=True, block=512, update_cost=6, copies=0.5, load=sweep
    )

    dtype: np.dtype[Any] = FLOAT64
    size: int = 0
    panels: tuple[Panel, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.dtype, [panel.rows(count) for panel, count in self._filled()])

    def lower(self) -> Array:
        """L as one array (n, n)."""
        L = np.zeros((self.size, self.size), dtype=self.dtype)
        for panel, count in self._filled():
            s = panel.start
            L[s : s + count, : s + count] = panel.rows(count)
        return L

    def columns(self, rows: Array) -> Array:
        """The columns `rows` (k,) of A = LL', (n, k), multiplied out."""
        V = np.zeros((self.size, len(rows)), dtype=self.dtype)
        for i, row in enumerate(rows):
            panel, at = self.panels[row // PANEL], row % PANEL
            V[: panel.start, i] = panel.left[at]
            V[panel.start : row + 1, i] = panel.diagonal[at, : at + 1]
        C = np.empty_like(V)
        with threads_for(self.size**2 // 2, len(rows)):
            for panel, count in self._filled():
                part = slice(panel.start, panel.start + count)
                C[part] = panel.left[:count] @ V[: panel.start]
                C[part] += np.tril(panel.diagonal[:count, :count]) @ V[part]
        return C

    # -- growing -----------------------------------------------------------------------------

    def append(self, cross: Array, corner: Array) -> Cholesky:
        """The factor of [[A, cross], [cross', corner]]."""
        with threads_for((self.size**2 + len(corner) ** 2) // 2, len(corner)):
            Y = self.forward(cross)
            L22 = self._corner(corner - Y.T @ Y, np.diagonal(corner))
        return self._with_rows(Y, L22)

    def _corner(self, schur: Array, scale: Array) -> Array:
        """chol(schur); pivots must not be lost in the rounding of `scale` (k,)."""
        L22, info = _potrf[self.dtype.char](schur.astype(self.dtype), lower=1, clean=1)
        good = info - 1 if info else len(schur)
        pivots = np.diagonal(L22)[:good] ** 2
        lost = lost_pivots(pivots, scale[:good], self.size + len(schur), self.dtype)
        if info or lost.any():
            row = self.size + int(lost.argmax() if lost.any() else good)
            raise NotPositiveDefinite(f"The pivot of row {row} vanishes.", row)
        return np.asarray(L22)

    def _with_rows(self, Y: Array, L22: Array) -> Cholesky:
        """[[L, 0], [Y', L22]], written into the last panel and new ones."""
        n, k, panels = self.size, len(L22), list(self.panels)
        for start in range(n // PANEL * PANEL, n + k, PANEL):
            at = max(n - start, 0)
            i, end = start + at - n, min(start + PANEL - n, k)
            panel = panels.pop().claim(at, end - i) if at else Panel(start, self.dtype, end - i)
            panel.write(at, np.concatenate([Y[:, i:end].T, L22[i:end, :end]], axis=1))
            panels.append(panel)
        return Cholesky(self.dtype, n + k, tuple(panels))

    # -- shrinking ---------------------------------------------------------------------------

    def delete(self, rows: Array) -> Cholesky:
        """The factor of A without `rows`."""
        deleted = np.unique(rows)
        n = self.size - len(deleted)
        first = int(deleted[0]) if len(deleted) else n
        if first == n:
            return Cholesky(self.dtype, n, self.panels[: -(-n // PANEL)])
        above = self.panels[: first // PANEL]
        pairs = self._gathered(deleted, len(above) * PANEL)
        if len(deleted) <= _SWEEPS:
            below = _rotated(pairs, first, (len(deleted), n), self.dtype)
        else:
            below = _reflected(pairs, first)
        with threads_for((n**2 - first**2) // 2, len(deleted)):
            return Cholesky(self.dtype, n, (*above, *below))

    def _gathered(self, deleted: Array, begin: int) -> _Pairs:
        """Panels of L_RR from row `begin` on, each with its rows of C = L_RS."""
        gather = sweep(self.dtype).gather
        kept = np.delete(np.arange(self.size), deleted)
        for start in range(begin, len(kept), PANEL):
            sources = kept[start : start + PANEL]
            new, at = Panel(start, self.dtype, len(sources)), 0
            C = np.zeros((len(sources), len(deleted)), dtype=self.dtype)
            for p in range(sources[0] // PANEL, sources[-1] // PANEL + 1):
                old = self.panels[p]
                rows = sources[sources // PANEL == p] - old.start
                gather(old.left, old.diagonal, rows, new.left, new.diagonal, at, deleted, C)
                at += len(rows)
            yield new, C

    # -- asking ------------------------------------------------------------------------------

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """L^-1 B, (n, m); its leading rows may be given. Leading rows of zeros cost nothing."""
        Y, known = np.array(B, dtype=self.dtype, order="C"), 0
        if head is not None:
            Y[: len(head)], known = head, len(head)
        if known < self.size:
            zeros = int(Y.any(axis=1).argmax())
            known = max(known, zeros)
            with threads_for((self.size**2 - known**2) // 2, Y.shape[1]):
                for panel, count in self._filled(known // PANEL):
                    panel.forward(Y, known, zeros, count)
        return Y

    def backward(self, H: Array) -> Array:
        """L^-T H, (n, m)."""
        X = np.array(H, dtype=self.dtype, order="C")
        with threads_for(self.size**2 // 2, X.shape[1]):
            for panel, count in reversed(list(self._filled())):
                panel.backward(X, count)
        return X

    def half_solve(self, B: Array) -> Array:
        """L^-1 B."""
        return self.forward(B)

    def inverse_diagonal(self) -> Array:
        """The column sums of L^-1 o L^-1, (n,); computed once."""
        return self._inverse_diagonal.copy()

    @cached_property
    def _inverse_diagonal(self) -> Array:
        d = np.empty(self.size, dtype=self.dtype)
        for begin in range(0, self.size, PANEL):
            end = min(begin + PANEL, self.size)
            H = self.forward(np.eye(self.size, end - begin, -begin))
            d[begin:end] = np.einsum("ij,ij->j", H, H)
        return d

    def logdet(self) -> float:
        """2 sum log L_ii."""
        return 2.0 * sum(
            float(np.log(np.diagonal(panel.diagonal)[:count].astype(float)).sum())
            for panel, count in self._filled()
        )

    def _filled(self, first: int = 0) -> Iterator[tuple[Panel, int]]:
        """Each panel from the given one on, with the number of its rows that are ours."""
        for panel in self.panels[first:]:
            yield panel, min(PANEL, self.size - panel.start)


def _restore(dtype: np.dtype[Any], blocks: list[Array]) -> Cholesky:
    """A factor from the rows of its panels."""
    factor = Cholesky(dtype)
    for rows in blocks:
        Y, L22 = np.hsplit(rows, [factor.size])
        factor = factor._with_rows(Y.T, L22)
    return factor


def _rotated(pairs: _Pairs, first: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> _Panels:
    """The panels after plane rotations that make C vanish, one sweep for each of its columns.

    Those of the panels above are applied to [panel, C] before the panel's own are found.
    """
    cos, sin = np.empty((2, *shape), dtype=dtype)
    loops = sweep(dtype)
    for panel, C in pairs:
        start = panel.start
        for s in range(len(cos)):
            loops.rotate(panel.left[: len(C)], C, s, cos, sin, first, start)
            loops.eliminate(panel.diagonal, C, s, cos, sin, start, max(first - start, 0))
        yield panel


def _reflected(pairs: _Pairs, first: int) -> _Panels:
    """The panels after block reflectors I - [I; V] T [I; V]', LAPACK's tpqrt, that make C vanish.

    Those of the panels above are applied to [panel, C] before the panel's own are found.
    """
    reflectors: list[tuple[slice, Array, Array, Array]] = []
    for panel, C in pairs:
        for columns, V, T, sign in reflectors:
            _reflect(panel.left[: len(C), columns], C, V, T, sign)
        for begin in range(max(first - panel.start, 0), len(C), _REFLECTOR):
            end = min(begin + _REFLECTOR, len(C))
            D = panel.diagonal[begin : len(C), begin:end]
            w = end - begin
            R = np.asfortranarray(np.tril(D[:w]).T)
            R, V, T, _ = _tpqrt[C.dtype.char](0, w, R, np.asfortranarray(C[begin:end].T))
            sign = np.where(np.diagonal(R) < 0, -1.0, 1.0).astype(C.dtype)
            _reflect(D[w:], C[end:], V, T, sign)
            D[:w] = np.triu(R).T * sign
            C[begin:end] = 0
            reflectors.append((slice(panel.start + begin, panel.start + end), V, T, sign))
        yield panel


def _reflect(A: Array, C: Array, V: Array, T: Array, sign: Array) -> None:
    """[A, C] <- [A, C] Q in place, Q = I - [I; V] T [I; V]'; columns signed as L's are."""
    G = (A + C @ V) @ np.triu(T)
    A -= G
    C -= G @ V.T
    A *= sign
