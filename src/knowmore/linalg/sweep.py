"""The inner loops of a deletion, compiled at the first deletion: numba takes a while to load.

And of a solve that reads L from memory, compiled at the first of these.

Deleting rows S of L leaves [L_RR, C] with C = L_RS; plane rotations of each column of L_RR with
the columns of C make C vanish and L_RR the factor that is wanted. Rotation (j, s) mixes column j
with column s of C; its cosine and sine are angles[j, s], (n, k, 2). All arrays are stored by
columns of L, as panels are: a rotation mixes two runs of numbers that lie side by side in memory.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from knowmore._base import Array, Function, compiled, uninterrupted

# Rows, columns that stay, and columns that go.
Cut = tuple[Array, Array, Array]


@cache
def sweep(dtype: np.dtype[Any]) -> SimpleNamespace:
    """The functions below, compiled for this precision; the first call takes a second or more."""

    def trial(*made: Function) -> None:
        gather, drop, shrink, rotate, solve = made
        old, new = np.ones((2, 2), dtype), np.ones((1, 1), dtype)
        kept, deleted, C = np.array([1]), np.array([0]), np.zeros((1, 1), dtype)
        angles = np.zeros((1, 1, 2), dtype)
        cut = kept, kept, deleted
        gather(old, 0, cut, new, 0, C)
        drop((old, old), 0, new, C[0], angles, 1)
        shrink((old, old, old), 0, cut, new, (C, angles), (0, 0, 1))
        rotate(new, C, angles, 0, 1)
        solve(old, old[0].copy(), 1)

    loops = gather, drop, shrink, rotate, solve
    # A product and a sum may be rounded once instead of twice: a third faster.
    options = {"nogil": True, "fastmath": {"contract"}}
    made = uninterrupted(lambda: compiled(trial, *loops, **options))
    return SimpleNamespace(**{each.__name__: each for each in made})


def gather(old: Array, begin: int, cut: Cut, new: Array, at: int, C: Array) -> None:
    """Copy rows of one panel, whose first is row `begin` of L, into another one.

    cut : the rows to copy, (r,), counted in L; the columns that stay; and those that go to
        C (k, count); all ascending
    new, at : the columns of the new panel, and its first row to write

    C is zero where a row ends before a deleted column.
    """
    rows, kept, deleted = cut
    last = rows[-1]
    for j in range(len(kept)):
        if kept[j] > last:
            break
        for t in range(len(rows)):
            new[j, at + t] = old[kept[j], rows[t] - begin]
    for s in range(len(deleted)):
        for t in range(len(rows)):
            C[s, at + t] = old[deleted[s], rows[t] - begin] if deleted[s] < rows[t] else 0


def drop(
    olds: tuple[Array, Array], row: int, new: Array, c: Array, angles: Array, count: int
) -> None:
    """A panel of the factor without one row: copy its rows and rotate column `row` away.

    olds : the columns of the old panel that begins where the new one does, and of the next
    new, count : the columns of the new panel, to be written, and how many rows it has
    c : work space, (count,) or more
    angles : (n, 1, 2), the rotations of the columns before the panel; its own are written
    """
    (one, two), start = olds, len(new) - new.shape[1]
    # Rows from here on were one further below; the last may have been the first of the next panel.
    first, full = max(row - start, 0), count == one.shape[1]
    near = count - 1 if full else count
    for j in range(row + 1):
        # The column that goes follows those that stay as they are.
        x, y = one[j], new[j] if j < row else c
        for r in range(first if j < row else 0):
            y[r] = x[r]
        a, b = x[first + 1 : near + 1], y[first:near]
        for r in range(len(b)):
            b[r] = a[r]
        if full:
            y[near] = two[j, 0]
    for j in range(row, start + count):
        at = max(j - start, 0)
        if j >= start:
            u = one[j + 1, at + 1] if at < near else two[j + 1, 0]
            pivot = np.hypot(u, c[at])
            angles[j, 0, 0], angles[j, 0, 1] = u / pivot, c[at] / pivot
        p, q = angles[j, 0, 0], angles[j, 0, 1]
        if at < near:
            # Slices from zero on: the compiler then knows that no index is negative.
            x, y, z = one[j + 1, at + 1 : near + 1], new[j, at:near], c[at:near]
            for r in range(len(y)):
                u, v = x[r], z[r]
                y[r] = p * u + q * v
                z[r] = p * v - q * u
        if full:
            u, v = two[j + 1, 0], c[near]
            new[j, near] = p * u + q * v
            c[near] = p * v - q * u


def shrink(
    olds: tuple[Array, Array, Array],
    begin: int,
    cut: Cut,
    new: Array,
    work: tuple[Array, Array],
    columns: tuple[int, int, int],
) -> None:
    """A panel of the new factor: gather its rows and rotate C away, in one pass.

    olds : the columns of the three old panels that its rows are in, from row `begin` of L on
    cut : the old rows that it takes, (count,), the columns that stay, and the k that go, ascending
    new : the columns of the panel, to be written
    work : C, space for (k, count); and the rotations of the columns before the panel, after which
        its own are written
    columns : the first that is rotated, and which to do now; the first call begins at zero
    """
    (one, two, three), (rows, kept, deleted), (C, angles) = olds, cut, work
    first, begins, ends = columns
    count, k, height = len(rows), len(deleted), one.shape[1]
    start = len(new) - new.shape[1]
    # Runs of rows that were neighbours in one panel: which panel, from where to where, how many.
    panel, source, target, length = np.empty((4, k + 3), dtype=np.int64)
    runs = 0
    for i in range(count):
        p, o = (rows[i] - begin) // height, (rows[i] - begin) % height
        if i == 0 or p != panel[runs - 1] or rows[i] != rows[i - 1] + 1:
            panel[runs], source[runs], target[runs], length[runs] = p, o, i, 0
            runs += 1
        length[runs - 1] += 1
    for s in range(begins + k if begins else 0, min(ends, start + count) + k):
        goes = s < k
        column = deleted[s] if goes else kept[s - k]
        to = C[s] if goes else new[s - k]
        for t in range(runs):
            held = one if panel[t] == 0 else two if panel[t] == 1 else three
            if column >= len(held):
                # These rows end before it.
                continue
            old = held[column]
            x, y = old[source[t] : source[t] + length[t]], to[target[t] : target[t] + length[t]]
            for r in range(len(y)):
                y[r] = x[r]
        if goes:
            for i in range(count):
                if rows[i] < column:
                    to[i] = 0
            continue
        j = s - k
        if j < first:
            continue
        # Two at a time, so that a column is read and written once for both.
        single = k if j >= start else k % 2
        a = new[j, max(j - start, 0) : count]
        for d in range(single):
            c = C[d, count - len(a) :]
            if j >= start:
                pivot = np.hypot(a[0], c[0])
                angles[j, d, 0], angles[j, d, 1] = a[0] / pivot, c[0] / pivot
            p, q = angles[j, d, 0], angles[j, d, 1]
            for r in range(len(a)):
                u, v = a[r], c[r]
                a[r] = p * u + q * v
                c[r] = p * v - q * u
        for d in range(single, k, 2):
            c, p, q = C[d], angles[j, d, 0], angles[j, d, 1]
            e, f, g = C[d + 1], angles[j, d + 1, 0], angles[j, d + 1, 1]
            for r in range(count):
                u, v, w = a[r], c[r], e[r]
                z = p * u + q * v
                a[r] = f * z + g * w
                c[r] = p * v - q * u
                e[r] = f * w - g * z


def rotate(A: Array, C: Array, angles: Array, begin: int, end: int) -> None:
    """Apply the rotations of columns begin ... end - 1 to rows below L, A (n, m) and C (k, m).

    Both are stored by columns, so that A has a row for each column of L.
    """
    m = A.shape[1]
    for j in range(begin, end):
        a = A[j]
        for s in range(len(C)):
            c, p, q = C[s], angles[j, s, 0], angles[j, s, 1]
            for r in range(m):
                x, y = a[r], c[r]
                a[r] = p * x + q * y
                c[r] = p * y - q * x


def solve(columns: Array, y: Array, count: int) -> None:
    """Solve the `count` rows of a panel of L y = b in place, y (n,) being solved before them.

    It is read in eight places at once, each of which the processor fetches ahead of its use.
    """
    start = len(columns) - columns.shape[1]
    eighth, rows = start // 8, y[start : start + count]
    for j in range(eighth):
        i0, i1, i2, i3 = j, eighth + j, 2 * eighth + j, 3 * eighth + j
        i4, i5, i6, i7 = 4 * eighth + j, 5 * eighth + j, 6 * eighth + j, 7 * eighth + j
        a, b, c, d = columns[i0], columns[i1], columns[i2], columns[i3]
        e, f, g, h = columns[i4], columns[i5], columns[i6], columns[i7]
        s, t, u, v, w, x, p, q = y[i0], y[i1], y[i2], y[i3], y[i4], y[i5], y[i6], y[i7]
        for r in range(len(rows)):
            near = (a[r] * s + b[r] * t) + (c[r] * u + d[r] * v)
            far = (e[r] * w + f[r] * x) + (g[r] * p + h[r] * q)
            rows[r] -= near + far
    for j in range(len(rows)):
        column = columns[start + j]
        s = rows[j] / column[j]
        rows[j] = s
        for r in range(j + 1, len(rows)):
            rows[r] -= column[r] * s
