"""The default Factor: the lower Cholesky factor L of A = LL', in row panels.

append   L Y = cross,  L22 L22' = corner - Y'Y  ->  [[L, 0], [Y', L22]]
delete   A_RR = L_RR L_RR' + C C' with C = L_RS: taking rows S out is a *positive* update of the
         trailing triangle, done by orthogonal transformations; it cannot break down.

Both are backward stable: a factor that went through any history is as accurate as a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, final

import numpy as np
from scipy.linalg import blas, lapack

from knowmore._base import Array, cached_property, read_only
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg.factor import FLOAT64, Factor, Traits, lost_pivots
from knowmore.linalg.panels import PANEL, Panel, solve_lower
from knowmore.linalg.products import product
from knowmore.linalg.removal import removed
from knowmore.linalg.sweep import sweep
from knowmore.linalg.tasks import (
    Ended,
    done_before,
    in_turn,
    one_thread,
    side_by_side,
    workers,
)
from knowmore.linalg.threads import threads_for

_EPS = {"d": float(np.finfo(np.float64).eps), "f": float(np.finfo(np.float32).eps)}
_trsv = {"d": blas.dtrsv, "f": blas.strsv}
_potrf = {"d": lapack.dpotrf, "f": lapack.spotrf}

# All rows of L^-1 at once take a third of what as many solves with L' do.
_FEW = 3
# A triangle of more rows than this is not in the cache of a core. A compiled loop then reads it in
# eight places at once, at the speed of memory; BLAS takes 1.3 times as long, and einsum 1.7 times.
_CACHED = 1500
# Columns of a tile of a symmetric product.
_TILE = 128
# Columns of the inverse of L that are computed at a time.
_BLOCK = 256
# Columns that are worth a thread of their own.
_WIDE = 64


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
    # these from scratch takes r^3 / 3, at a higher rate, and kernel values again. Both took as
    # long at k = r / 7 of 2000 rows, r / 8 of 5000 and r / 10 of 8000. A block is wide enough for
    # products at full speed and narrow enough to be small beside L.
    traits: ClassVar[Traits] = Traits(
        stable=True, rounding=1.0, nested=True, block=512, update_cost=8, copies=0.5, load=sweep
    )

    dtype: np.dtype[Any] = FLOAT64
    size: int = 0
    panels: tuple[Panel, ...] = ()
    # The diagonal of the inverse of the leading block that an append began with, if it was asked.
    head: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The rows of each panel, (count, start + count)."""
        blocks = [panel.rows(count) for panel, count in self.filled()]
        return {"dtype": self.dtype.str, "blocks": blocks}

    def __setstate__(self, state: dict[str, Any]) -> None:
        factor = Cholesky(np.dtype(state["dtype"]))
        for rows in state["blocks"]:
            Y, L22 = np.hsplit(rows, [factor.size])
            factor = factor.with_rows(Y.T, L22)
        vars(self).update(vars(factor))

    def lower(self) -> Array:
        """L as one array (n, n)."""
        L = np.zeros((self.size, self.size), dtype=self.dtype)
        for panel, count in self.filled():
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
            for panel, count in self.filled():
                part = slice(panel.start, panel.start + count)
                C[part] = panel.left[:count] @ V[: panel.start]
                C[part] += np.tril(panel.diagonal[:count, :count]) @ V[part]
        return C

    # -- growing -----------------------------------------------------------------------------

    def append(self, cross: Array, corner: Array, half: Array | None = None) -> Cholesky:
        """The factor of [[A, cross], [cross', corner]]; `half`: L^-1 cross, if that is known."""
        if len(corner) == 1:
            y = self.forward(cross) if half is None else half.astype(self.dtype)
            return self._with_row(y[:, 0], float(corner[0, 0]))
        Y = self.forward(cross, half)
        with one_thread():
            L22 = self._corner(_less_square(corner, Y), np.diagonal(corner))
        return self.with_rows(Y, L22)

    def _with_row(self, y: Array, scale: float) -> Cholesky:
        """[[L, 0], [y', l]] with l^2 = scale - y'y, which must not be lost in rounding."""
        n, at = self.size, self.size % PANEL
        pivot = scale - float(y @ y)
        if not pivot > (n + 1) * _EPS[self.dtype.char] * scale:
            raise NotPositiveDefinite(f"The pivot of row {n} vanishes.", n)
        last = self.panels[-1].claim(at, 1) if at else Panel(n, self.dtype, 1)
        last.columns[:n, at], last.columns[n, at] = y, sqrt(pivot)
        return Cholesky(self.dtype, n + 1, (*self.panels[: n // PANEL], last), self._known)

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

    def with_rows(self, Y: Array, L22: Array) -> Cholesky:
        """[[L, 0], [Y', L22]], written into the last panel and new ones."""
        n, k, panels = self.size, len(L22), list(self.panels)
        for start in range(n // PANEL * PANEL, n + k, PANEL):
            at = max(n - start, 0)
            i, end = start + at - n, min(start + PANEL - n, k)
            panel = panels.pop().claim(at, end - i) if at else Panel(start, self.dtype, end - i)
            panel.write(at, Y[:, i:end], L22[i:end, :end])
            panels.append(panel)
        return Cholesky(self.dtype, n + k, tuple(panels), self._known)

    # -- shrinking ---------------------------------------------------------------------------

    def delete(self, rows: Array) -> Cholesky:
        """The factor of A without `rows`."""
        return self.without(rows, np.empty((0, 0), dtype=self.dtype))[0]

    def without(self, rows: Array, H: Array) -> tuple[Cholesky, Array]:
        """The factor of A without `rows`, and the leading rows of F(B) without them.

        H (h, m) are leading rows of L^-1 B. They are one more band of rows below L, [L; H'], and
        turned with it: [L_RR, C] Q Q' [H_R; H_S] = B_R.
        """
        deleted = np.unique(rows) if len(rows) > 1 else rows
        n = self.size - len(deleted)
        first = int(deleted[0]) if len(deleted) else n
        if first == n:
            return Cholesky(self.dtype, n, self.panels[: -(-n // PANEL)]), H[:n]
        below, H = removed(self.panels, deleted, self.size, H)
        return Cholesky(self.dtype, n, (*self.panels[: first // PANEL], *below)), H

    # -- asking ------------------------------------------------------------------------------

    def forward(self, B: Array, head: Array | None = None) -> Array:
        """L^-1 B, (n, m); its leading rows may be given. Leading rows of zeros cost nothing."""
        known, zeros = 0 if head is None else len(head), 0
        Y = np.empty(B.shape, dtype=self.dtype)
        Y[known:] = B[known:]
        if head is not None and known:
            Y[:known] = head
        elif len(Y) and not Y[0].any():
            known = zeros = int(Y.any(axis=1).argmax())
        if known == 0 and Y.shape[1] == 1:
            with one_thread():
                self._forward_one(Y[:, 0])
        elif 0 < known == self.size - 1:
            panel, count = next(self.filled(known // PANEL))
            row = panel.columns[: known + 1, count - 1]
            Y[known] = (Y[known] - product(row[:known], Y[:known])) / row[known]
        elif known < self.size:
            self._forward_many(Y, known, zeros)
        return Y

    def _forward_many(self, Y: Array, known: int, zeros: int) -> None:
        """Solve L Y = B in place; rows before `known` are solved, those before `zeros` are zero."""
        panels = list(self.filled(known // PANEL))
        threads = workers((self.size**2 - known**2) // 2, Y.shape[1])

        def step(i: int, ended: Ended) -> None:
            panel, count = panels[i]
            solved = done_before(panel.start, i, threads, ended, PANEL)
            panel.forward(Y, known, zeros, count, solved)

        in_turn(step, len(panels), threads)

    def extend(self, H: Array, B: Array) -> Array:
        """The rows of L^-1 [.; B] that belong to B (n - h, m), those before them being H (h, m).

        Unlike `forward`, it neither copies H nor writes to it.
        """
        Z, h = np.array(B, dtype=self.dtype, order="C"), len(H)
        if not len(Z):
            # BLAS refuses an empty column.
            return Z
        for panel, count in self.filled(h // PANEL):
            s, at = panel.start, max(h - panel.start, 0)
            rows, L = Z[s + at - h : s + count - h], panel.columns[:, at:count].T
            if h:
                rows -= product(L[:, :h], H)
            if s > h:
                rows -= product(L[:, h:s], Z[: s - h])
            with one_thread():
                solve_lower(panel.diagonal[at:count, at:count], rows)
        return Z

    def _forward_one(self, y: Array) -> None:
        """Solve L y = b in place."""
        if self.size > _CACHED:
            solve = sweep(self.dtype).solve
            for panel, count in self.filled():
                solve(panel.columns, y, count)
            return
        for panel, count in self.filled():
            s = panel.start
            rows, D = y[s : s + count], panel.diagonal
            if s:
                rows -= panel.columns[:s, :count].T @ y[:s]
            D = D if count == len(D) else np.asfortranarray(D[:count, :count])
            _trsv[self.dtype.char](D, rows, lower=1, overwrite_x=1)

    def backward(self, H: Array) -> Array:
        """L^-T H, (n, m)."""
        m = H.shape[1]
        # Each part reads all of L: a few columns are as fast on one thread.
        parts = min(workers(self.size**2 // 2, m), max(m // _WIDE, 1))
        cuts = [slice(m * i // parts, m * (i + 1) // parts) for i in range(parts)]

        def solved(columns: slice) -> Array:
            X = np.array(H[:, columns], dtype=self.dtype, order="C")
            for panel, count in reversed(list(self.filled())):
                panel.backward(X, count)
            return X

        halves = side_by_side(solved, cuts)
        return halves[0] if parts == 1 else np.hstack(halves)

    def half_solve(self, B: Array) -> Array:
        """L^-1 B."""
        return self.forward(B)

    def inverse_diagonal(self) -> Array:
        """The column sums of L^-1 o L^-1, (n,); computed once."""
        return self._inverse_diagonal.copy()

    @property
    def _known(self) -> Array | None:
        known: Array | None = vars(self).get("_inverse_diagonal", self.head)
        return known

    @cached_property
    def _inverse_diagonal(self) -> Array:
        n, d = self.size, np.empty(self.size, dtype=self.dtype)
        h = 0 if self.head is None else len(self.head)
        if self.head is not None and _FEW * (n - h) < n:
            # The rows of L^-1 that were appended, each a solve with L', add to the sums.
            H = self.backward(np.eye(n, n - h, -h))
            d[:] = np.einsum("ij,ij->i", H, H)
            d[:h] += self.head
            return read_only(d)

        def part(i: int, _: Ended) -> None:
            begin, end = i * _BLOCK, min((i + 1) * _BLOCK, n)
            H = np.zeros((n, end - begin), dtype=self.dtype)
            H[np.arange(begin, end), np.arange(end - begin)] = 1
            self._forward_many(H, begin, begin)
            d[begin:end] = np.einsum("ij,ij->j", H[begin:], H[begin:])

        in_turn(part, -(-n // _BLOCK), workers(n**2 // 2, n // 3))
        return read_only(d)

    def logdet(self) -> float:
        """2 sum log L_ii."""
        return 2.0 * sum(
            float(np.log(np.diagonal(panel.diagonal)[:count].astype(float)).sum())
            for panel, count in self.filled()
        )

    def filled(self, first: int = 0) -> Iterator[tuple[Panel, int]]:
        """Each panel from the given one on, with the number of its rows that are ours."""
        for panel in self.panels[first:]:
            yield panel, min(PANEL, self.size - panel.start)


def _less_square(A: Array, Y: Array) -> Array:
    """The lower triangle of A - Y'Y, (k, k), for Y (n, k)."""
    k, below = len(A), np.array(A, dtype=Y.dtype)

    def tile(i: int, _: Ended) -> None:
        rows = slice(i * _TILE, min((i + 1) * _TILE, k))
        below[rows, : rows.stop] -= Y[:, rows].T @ Y[:, : rows.stop]

    in_turn(tile, -(-k // _TILE), workers(Y.size, k))
    return below
