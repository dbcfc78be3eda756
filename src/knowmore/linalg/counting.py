"""The loops of exact sums, compiled at first use.

A sum of products may need more than 64 bits. It is two words, `high` 2**62 + `low`, with `low` from
-2**61 to 2**61 - 1: so every number has one form, and equal sums are equal bits.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from knowmore.arrays import Array, read_only
from knowmore.compiling import Function, compiled
from knowmore.concurrency import uninterrupted

HALF = np.int64(2**61)
# The types of rows that are read as they are.
READ = tuple(map(np.dtype, (np.float64, np.float32, np.uint8)))


class Loops(NamedTuple):
    """The compiled loops."""

    read: Function
    count: Function
    accumulate: Function
    combine: Function
    difference: Function


@cache
def loops() -> Loops:
    """The compiled loops; the first call takes a second or more.

    Rows that are read, and words, are read-only: to numba that is a type of its own.
    """

    def trial(*made: Function) -> None:
        read, count, accumulate, combine, difference = made
        scale, whole = np.ones(2), np.ones(1, np.int64)
        sums, words = np.zeros((1, 2), np.int64), np.zeros((2, 2, 2), np.int64)
        for Z in np.zeros((1, 2)), np.zeros((1, 2), np.float32):
            for kind in READ:
                read(read_only(np.zeros((1, 2), kind)), scale, 2.0, 16, Z)
            count(Z, np.zeros(1, np.int64), whole, sums)
            accumulate(words, np.zeros((2, 2), Z.dtype), 8, 1)
        words = read_only(words)
        combine(words, words, -1)
        difference(words, 1, sums[0], sums[0], True)

    functions = read, count, accumulate, combine, difference
    return uninterrupted(lambda: Loops(*compiled(trial, *functions, nogil=True)))


def read(X: Array, scale: Array, limit: float, shift: int, Z: Array) -> int:
    """Write X (n, D) times scale (D,), as whole numbers, into Z (n, D) or, in two slices, (n, 2 D).

    Returns the first row with a number beyond the limit, or -1.
    """
    n, D = X.shape
    up, down = 2.0**shift, 2.0**-shift
    for i in range(n):
        inside = True
        for j in range(D):
            k = np.rint(X[i, j] * scale[j])
            inside &= abs(k) <= limit
            Z[i, j] = k
        if not inside:
            return i
        if Z.shape[1] > D:
            for j in range(D):
                k = np.rint(X[i, j] * scale[j])
                high = np.rint(k * down)
                Z[i, j] = high
                Z[i, D + j] = k - high * up
    return -1


def count(Z: Array, groups: Array, weights: Array, sums: Array) -> None:
    """Add each row of Z (n, P), times its weight (n,), to the sum of its group (G, P)."""
    for i in range(len(Z)):
        group, weight = groups[i], weights[i]
        for j in range(Z.shape[1]):
            sums[group, j] += weight * np.int64(Z[i, j])


def accumulate(words: Array, C: Array, shift: int, sign: int) -> None:
    """Add sign C 2**shift to the words (2, P, P): the lower triangle of whole numbers C (P, P).

    shift : at most 16; entries of C are at most 2**53
    """
    part = np.int64(62 - shift)
    for i in range(len(C)):
        for j in range(i + 1):
            value = sign * np.int64(C[i, j])
            high = (value + (np.int64(1) << (part - 1))) >> part
            low = words[1, i, j] + ((value - (high << part)) << shift)
            carry = (low + HALF) >> 62
            words[0, i, j] += high + carry
            words[1, i, j] = low - (carry << 62)


def combine(a: Array, b: Array, sign: int) -> Array:
    """The words of a + sign b, (2, P, P)."""
    words = np.zeros_like(a)
    for i in range(a.shape[1]):
        for j in range(i + 1):
            low = a[1, i, j] + sign * b[1, i, j]
            carry = (low + HALF) >> 62
            words[0, i, j] = a[0, i, j] + sign * b[0, i, j] + carry
            words[1, i, j] = low - (carry << 62)
    return words


def difference(words: Array, total: int, a: Array, b: Array, triangle: bool) -> Array:
    """V - a b' / N, (R, P), for the words of V (2, R, P), the whole number N, a (R,) and b (P,).

    N V - a b' is exact; only the result is rounded. Numbers are written to the base 2**31: N is
    below 2**41, a and b are at most 2**61, V is at most 2**81.

    triangle : whether V is symmetric, and only its lower triangle is given
    """
    rows, columns = words.shape[1:]
    D = np.empty((rows, columns))
    base, digit = 31, 2**31 - 1
    n1, n0 = total >> base, total & digit
    for i in range(rows):
        a1, a0 = a[i] >> base, a[i] & digit
        for j in range(i + 1 if triangle else columns):
            b1, b0 = b[j] >> base, b[j] & digit
            v2, v1, v0 = words[0, i, j], words[1, i, j] >> base, words[1, i, j] & digit
            c0 = n0 * v0 - a0 * b0
            c1 = n0 * v1 + n1 * v0 - a1 * b0 - a0 * b1 + (c0 >> base)
            c2 = n0 * v2 + n1 * v1 - a1 * b1 + (c1 >> base)
            c3 = n1 * v2 + (c2 >> base)
            value = float(c3)
            for c in (c2, c1, c0):
                value = value * 2.0**31 + float(c & digit)
            D[i, j] = value / total
            if triangle:
                D[j, i] = D[i, j]
    return D
