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
    """Copy rows of one panel into another, leaving out the `deleted` columns, which go to C."""
    old_start, new_start, k = old_left.shape[1], new_left.shape[1], len(deleted)
    for t in range(len(old_rows)):
        o = old_rows[t]
        i = new_row + t
        last = old_start + o + 1
        source = 0
        target = 0
        for d in range(k + 1):
            stop = last
            if d < k:
                stop = min(deleted[d], last)
            while source < stop:
                run = stop - source
                if source < old_start:
                    run = min(run, old_start - source)
                if target < new_start:
                    run = min(run, new_start - target)
                if source < old_start and target < new_start:
                    for j in range(run):
                        new_left[i, target + j] = old_left[o, source + j]
                elif target < new_start:
                    for j in range(run):
                        new_left[i, target + j] = old_diagonal[o, source - old_start + j]
                elif source < old_start:
                    for j in range(run):
                        new_diagonal[i, target - new_start + j] = old_left[o, source + j]
                else:
                    p, q = target - new_start, source - old_start
                    for j in range(run):
                        new_diagonal[i, p + j] = old_diagonal[o, q + j]
                source += run
                target += run
            if d < k:
                if deleted[d] < last:
                    if deleted[d] < old_start:
                        C[i, d] = old_left[o, deleted[d]]
                    else:
                        C[i, d] = old_diagonal[o, deleted[d] - old_start]
                    source = deleted[d] + 1
                else:
                    C[i, d] = 0


def rotate(A: Array, C: Array, s: int, cos: Array, sin: Array, begin: int, end: int) -> None:
    """Apply rotations (s, begin ... end-1) to the rows of [A, C[:, s]]."""
    rows = len(A)
    for i in range(0, rows - 7, 8):
        c0, c1, c2, c3 = C[i, s], C[i + 1, s], C[i + 2, s], C[i + 3, s]
        c4, c5, c6, c7 = C[i + 4, s], C[i + 5, s], C[i + 6, s], C[i + 7, s]
        for j in range(begin, end):
            p = cos[s, j]
            q = sin[s, j]
            x = A[i, j]
            A[i, j] = p * x + q * c0
            c0 = p * c0 - q * x
            x = A[i + 1, j]
            A[i + 1, j] = p * x + q * c1
            c1 = p * c1 - q * x
            x = A[i + 2, j]
            A[i + 2, j] = p * x + q * c2
            c2 = p * c2 - q * x
            x = A[i + 3, j]
            A[i + 3, j] = p * x + q * c3
            c3 = p * c3 - q * x
            x = A[i + 4, j]
            A[i + 4, j] = p * x + q * c4
            c4 = p * c4 - q * x
            x = A[i + 5, j]
            A[i + 5, j] = p * x + q * c5
            c5 = p * c5 - q * x
            x = A[i + 6, j]
            A[i + 6, j] = p * x + q * c6
            c6 = p * c6 - q * x
            x = A[i + 7, j]
            A[i + 7, j] = p * x + q * c7
            c7 = p * c7 - q * x
        C[i, s], C[i + 1, s], C[i + 2, s], C[i + 3, s] = c0, c1, c2, c3
        C[i + 4, s], C[i + 5, s], C[i + 6, s], C[i + 7, s] = c4, c5, c6, c7
    for i in range(rows - rows % 8, rows):
        c = C[i, s]
        for j in range(begin, end):
            x = A[i, j]
            A[i, j] = cos[s, j] * x + sin[s, j] * c
            c = cos[s, j] * c - sin[s, j] * x
        C[i, s] = c


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
