"""The inner loops of a deletion, compiled at the first deletion: numba takes a while to load.

Deleting rows S of L leaves [L_RR, C] with C = L_RS; plane rotations of each column of L_RR with
the columns of C make C vanish and L_RR the factor that is wanted. Rotation (s, j) mixes column j
with column s of C; `cos` and `sin` are (k, n). Rows are independent of each other, so eight go
abreast: each is a chain of dependent operations, and one chain alone would wait for itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from knowmore.arrays import Array
from knowmore.compiling import Function, compiled
from knowmore.concurrency import uninterrupted


class Sweep(NamedTuple):
    """The three loops, compiled for one precision."""

    gather: Function
    rotate: Function
    eliminate: Function


@cache
def sweep(dtype: np.dtype[Any]) -> Sweep:
    """The loops for this precision; the first call takes a second or more."""

    def trial(gather: Function, rotate: Function, eliminate: Function) -> None:
        left, diagonal = np.zeros((2, 0), dtype), np.ones((2, 2), dtype, order="F")
        C, angles, rows = np.zeros((2, 1), dtype), np.zeros((1, 2), dtype), np.array([1])
        gather(left, diagonal, rows, left, diagonal.copy("F"), 0, rows, C)
        rotate(left[:2], C, 0, angles, angles, 0, 0)
        eliminate(diagonal, C, 0, angles, angles, 0, 0)

    loops = gather, rotate, eliminate
    return uninterrupted(lambda: Sweep(*compiled(trial, *loops, nogil=True)))


def gather(
    old_left: Array,
    old_diagonal: Array,
    old_rows: Array,
    new_left: Array,
    new_diagonal: Array,
    new_row: int,
    deleted: Array,
    C: Array,
) -> None:
    """Copy rows of one panel into another, leaving out the `deleted` columns, which go to C.

    C is zero where a row ends before a deleted column.
    """
    old_start, new_start, k = old_left.shape[1], new_left.shape[1], len(deleted)
    for t in range(len(old_rows)):
        o, i = old_rows[t], new_row + t
        source, target, last = 0, 0, old_start + o + 1
        for d in range(k + 1):
            stop = min(deleted[d], last) if d < k else last
            while source < stop:
                # p, q: columns of the diagonal blocks, negative before them
                p, q, run = source - old_start, target - new_start, stop - source
                run = min(run, -p) if p < 0 else run
                run = min(run, -q) if q < 0 else run
                if p < 0 and q < 0:
                    new_left[i, target : target + run] = old_left[o, source : source + run]
                elif q < 0:
                    new_left[i, target : target + run] = old_diagonal[o, p : p + run]
                elif p < 0:
                    new_diagonal[i, q : q + run] = old_left[o, source : source + run]
                else:
                    new_diagonal[i, q : q + run] = old_diagonal[o, p : p + run]
                source += run
                target += run
            if stop < last:
                p = stop - old_start
                C[i, d] = old_left[o, stop] if p < 0 else old_diagonal[o, p]
                source = stop + 1


def rotate(A: Array, C: Array, s: int, cos: Array, sin: Array, begin: int, end: int) -> None:
    """Apply rotations (s, begin ... end-1) to the rows of [A, C[:, s]]."""

    def turned(i: int, j: int, p: float, q: float, c: float) -> Any:
        x = A[i, j]
        A[i, j] = p * x + q * c
        return p * c - q * x

    rows = len(A)
    for i in range(0, rows - 7, 8):
        c0, c1, c2, c3 = C[i, s], C[i + 1, s], C[i + 2, s], C[i + 3, s]
        c4, c5, c6, c7 = C[i + 4, s], C[i + 5, s], C[i + 6, s], C[i + 7, s]
        for j in range(begin, end):
            p = cos[s, j]
            q = sin[s, j]
            c0 = turned(i, j, p, q, c0)
            c1 = turned(i + 1, j, p, q, c1)
            c2 = turned(i + 2, j, p, q, c2)
            c3 = turned(i + 3, j, p, q, c3)
            c4 = turned(i + 4, j, p, q, c4)
            c5 = turned(i + 5, j, p, q, c5)
            c6 = turned(i + 6, j, p, q, c6)
            c7 = turned(i + 7, j, p, q, c7)
        C[i, s], C[i + 1, s], C[i + 2, s], C[i + 3, s] = c0, c1, c2, c3
        C[i + 4, s], C[i + 5, s], C[i + 6, s], C[i + 7, s] = c4, c5, c6, c7
    for i in range(rows - rows % 8, rows):
        for j in range(begin, end):
            C[i, s] = turned(i, j, cos[s, j], sin[s, j], C[i, s])


def eliminate(D: Array, C: Array, s: int, cos: Array, sin: Array, start: int, begin: int) -> None:
    """Choose rotations (s, start + begin ...) so that C[:, s] vanishes beside the triangle D."""
    rows = len(C)
    for j in range(begin, rows):
        pivot = np.hypot(D[j, j], C[j, s])
        p = D[j, j] / pivot
        q = C[j, s] / pivot
        cos[s, start + j] = p
        sin[s, start + j] = q
        D[j, j] = pivot
        C[j, s] = 0
        for i in range(j + 1, rows):
            x = D[i, j]
            D[i, j] = p * x + q * C[i, s]
            C[i, s] = p * C[i, s] - q * x
