"""Rows taken out of a Cholesky factor: orthogonal transformations of the triangle below them.

One row is bound by memory: one compiled pass copies and turns a column at once. Some rows are
turned by rotations, many by block reflectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import lapack

from knowmore._base import Array
from knowmore.linalg.panels import PANEL, Panel
from knowmore.linalg.sweep import sweep
from knowmore.linalg.tasks import Ended, done_before, in_turn, workers

Panels = tuple[Panel, ...]

_tpqrt = {"d": lapack.dtpqrt, "f": lapack.stpqrt}

# Up to this many deleted rows, that many rotations of each column are faster than block reflectors:
# 36 % of the rate of a matrix product against 27 %, for 100 of 2000 rows. No more than a panel has.
_SWEEPS = PANEL
# Width of a block reflector: wide enough for matrix products, narrow enough for its triangle.
_REFLECTOR = 64


def removed(old: Panels, deleted: Array, size: int, H: Array) -> tuple[list[Panel], Array]:
    """The panels of L without some rows, from the first that changes on; and H without them.

    old : the panels of L, of `size` rows
    deleted : the rows, (k,), ascending, which others follow
    H : leading rows (h, m) of L^-1 B
    """
    if len(deleted) == 1:
        return _without_one(old, int(deleted[0]), size, H)
    removal = _Removal(old, deleted, size, H)
    below = removal.rotated() if len(deleted) <= _SWEEPS else removal.reflected()
    return below, removal.H


def _without_one(old: Panels, row: int, size: int, H: Array) -> tuple[list[Panel], Array]:
    dtype, n, before = old[0].columns.dtype, size - 1, row // PANEL
    loops, below = sweep(dtype), []
    angles, c = np.empty((n, 1, 2), dtype=dtype), np.empty(PANEL, dtype=dtype)
    for i, start in enumerate(range(before * PANEL, n, PANEL), before):
        panel = Panel(start, dtype, min(PANEL, n - start))
        one, two = old[i].columns, old[min(i + 1, len(old) - 1)].columns
        loops.drop((one, two), row, panel.columns, c, angles, panel.filled)
        below.append(panel)
    if row < len(H):
        gone = H[row : row + 1].astype(dtype)
        H = np.concatenate([H[:row], H[row + 1 :]])
        loops.rotate(H, gone, angles, row, len(H))
    return below, H


class _Removal:
    """Rows S on their way out of L, and out of rows H of L^-1 B.

    old : the panels of L, of `size` rows
    deleted, kept : the rows S, (k,), and all others, (n,), ascending
    H : the leading rows of L^-1 B that are known, less those of S; turned panel by panel
    """

    def __init__(self, old: Panels, deleted: Array, size: int, H: Array) -> None:
        self.old, self.deleted, self.dtype = old, deleted, old[0].columns.dtype
        stays = np.ones(size, dtype=bool)
        stays[deleted] = False
        self.kept, self.first = np.flatnonzero(stays), int(deleted[0])
        # Rows of S that are not known: nothing before them depends on them.
        known = int(np.searchsorted(deleted, len(H)))
        self.H = H[stays[: len(H)]]
        self.H_S = np.zeros((len(deleted), H.shape[1]), dtype=self.dtype)
        self.H_S[:known] = H[deleted[:known]]

    def _panels(self) -> list[tuple[Panel, Array]]:
        """The new panels from the first that changes on, to be written, and their old rows."""
        starts = range(self.first // PANEL * PANEL, len(self.kept), PANEL)
        cuts = [self.kept[start : start + PANEL] for start in starts]
        return [
            (Panel(start, self.dtype, len(rows)), rows)
            for start, rows in zip(starts, cuts, strict=True)
        ]

    def _in_turn(self, step: Callable[[int, Panel, Array, Iterator[int]], None]) -> list[Panel]:
        """step(i, panel, its old rows, columns done before it) for all new panels."""
        made = self._panels()
        changed = (len(self.kept) ** 2 - self.first**2) // 2
        threads = workers(changed, len(self.deleted))

        def one(i: int, ended: Ended) -> None:
            panel, rows = made[i]
            step(i, panel, rows, done_before(panel.start, i, threads, ended, PANEL))

        in_turn(one, len(made), threads)
        return [panel for panel, _ in made]

    def rotated(self) -> list[Panel]:
        """The panels after plane rotations that make C vanish.

        Those of the columns before a panel are applied to it before its own are found.
        """
        loops, k, old = sweep(self.dtype), len(self.deleted), self.old
        angles = np.empty((len(self.kept), k, 2), dtype=self.dtype)

        def step(i: int, panel: Panel, rows: Array, done: Iterator[int]) -> None:
            p = int(rows[0]) // PANEL
            # At most PANEL deleted rows: those that stay side by side were in three panels.
            one, two, three = (*old[p : p + 3], old[-1], old[-1])[:3]
            olds = one.columns, two.columns, three.columns
            C, cut = np.empty((k, len(rows)), dtype=self.dtype), (rows, self.kept, self.deleted)
            begin, work = 0, (C, angles)
            for end in done:
                # Its own columns follow those before it without a break.
                columns = self.first, begin, end if end < panel.start else end + len(rows)
                loops.shrink(olds, p * PANEL, cut, panel.columns, work, columns)
                begin = end

        made = self._in_turn(step)
        if self.H.size:
            loops.rotate(self.H, self.H_S, angles, self.first, len(self.H))
        return made

    def reflected(self) -> list[Panel]:
        """The panels after block reflectors I - [I; V] T [I; V]', LAPACK's tpqrt.

        Those of the panels above are applied to [panel, C] before the panel's own are found.
        """
        reflectors: list[tuple[slice, Array, Array, Array]] = []
        turned = [self.first]

        def step(i: int, panel: Panel, rows: Array, done: Iterator[int]) -> None:
            C, applied = self._gathered(panel, rows), 0
            for end in done:
                for columns, V, T, sign in reflectors[applied:]:
                    if columns.stop > end:
                        break
                    _reflect(panel.left[: len(C), columns], C, V, T, sign)
                    applied += 1
            for begin in range(max(self.first - panel.start, 0), len(C), _REFLECTOR):
                end = min(begin + _REFLECTOR, len(C))
                D = panel.diagonal[begin : len(C), begin:end]
                w = end - begin
                R = np.asfortranarray(np.tril(D[:w]).T)
                R, V, T, _ = _tpqrt[C.dtype.char](0, w, R, np.asfortranarray(C[begin:end].T))
                sign = np.where(np.diagonal(R) < 0, -1.0, 1.0).astype(C.dtype)
                _reflect(D[w:], C[end:], V, T, sign)
                D[:w] = np.triu(R).T * sign
                C[begin:end] = 0
                columns = slice(panel.start + begin, panel.start + end)
                reflectors.append((columns, V, T, sign))
                if columns.stop <= len(self.H):
                    _reflect(self.H[columns].T, self.H_S.T, V, T, sign)
                    turned[0] = columns.stop

        made = self._in_turn(step)
        # A reflector mixes all of its columns: those that are known in part are lost.
        self.H = self.H[: turned[0]]
        return made

    def _gathered(self, panel: Panel, rows: Array) -> Array:
        """Write these old rows of L_RR into a new panel, and return their C = L_RS, (count, k)."""
        C, at = np.empty((len(self.deleted), len(rows)), dtype=self.dtype), 0
        for p in range(int(rows[0]) // PANEL, int(rows[-1]) // PANEL + 1):
            old = self.old[p]
            some = rows[rows // PANEL == p]
            if len(some):
                cut = some, self.kept, self.deleted
                sweep(self.dtype).gather(old.columns, old.start, cut, panel.columns, at, C)
            at += len(some)
        return C.T


def _reflect(A: Array, C: Array, V: Array, T: Array, sign: Array) -> None:
    """[A, C] <- [A, C] Q in place, Q = I - [I; V] T [I; V]'; columns signed as L's are."""
    G = (A + C @ V) @ np.triu(T)
    A -= G
    C -= G @ V.T
    A *= sign
