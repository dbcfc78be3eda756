"""The inner loops of the histogram kernels. Imported at first use: numba loads slowly.

A value is a sum over bins of one term of two numbers. The sums may be taken in any order
(`reassoc`), so that several bins are added abreast. No term is negative, so any order of d of them
is within d roundings of the sum, relative to itself; nothing else of `fastmath` is allowed, and a
division stays a division.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from knowmore._base import Array, Function, compiled
from knowmore.kernels.histograms import Term, compressed, plain

# A sparse matrix: where each list starts, the indices, the values.
Lists = tuple[Array, Array, Array]

_MINIMUM, _CHI_SQUARED = Term.MINIMUM.value, Term.CHI_SQUARED.value
# Bins that are processed at a time: 64 rows of them stay in the second-level cache.
_BINS = 512
# This few rows on the other side fit into the cache whole, and the strip is best read in one go.
_FEW = 12


@njit(fastmath=False, nogil=True, error_model="numpy")  # else it inherits its caller's
def _term(term: int, x: float, y: float) -> float:
    """A single bin. The choice does not depend on the bin: the compiler takes it out of the loop.

    It does so for three terms. With a fourth, the minimum took three times as long.
    """
    if term == _MINIMUM:
        return x if x < y else y
    both = x + y
    # In a bin that is empty in both the numerator is zero. Divided first: a square of small or of
    # large counts may leave the range of the type.
    both = both if both > 0 else type(x)(1)
    if term == _CHI_SQUARED:
        return (x - y) * ((x - y) / both)
    return (x + x) * (y / both)


@njit(inline="always")
def _is_sound(values: Array) -> bool:
    """Whether each is from zero to half the largest number; without a branch, so vectorised."""
    zero, one, most = values.dtype.type(0), values.dtype.type(1), np.finfo(values.dtype).max / 2
    bad = zero
    for i in range(len(values)):
        bad += zero if values[i] >= zero else one
        bad += zero if values[i] <= most else one
    return bool(bad == zero)


def loop(is_sparse: bool, dtype: np.dtype[Any]) -> Function:
    """`add_sparse` or `add_dense`, compiled for this precision."""
    one = np.ones((1, 1), dtype)
    table = compressed(csr_array(one)) if is_sparse else plain(one)

    def trial(add: Function) -> None:
        add(_MINIMUM, table, table, np.zeros((1, 1), dtype), (0, 1), False)

    function, order = (add_sparse, False) if is_sparse else (add_dense, {"reassoc", "nsz"})
    (add,) = compiled(trial, function, nogil=True, error_model="numpy", fastmath=order)
    return add


def add_dense(term: int, A: Array, B: Array, K: Array, rows: tuple[int, int], lower: bool) -> bool:
    """Add the sums of some rows of A with the rows of B to K, or to its lower triangle.

    rows : the first, and the one behind the last
    Returns whether these rows of A are sound. Two rows by three are held in registers. At the edges
    the last row stands in for those that are missing: it is computed again, with the same result.
    """
    first, last = rows
    A, K = A[first:last], K[first:last]
    r, m, d = len(A), last if lower else len(B), A.shape[1]
    sound = True
    step = _BINS if m > _FEW else d
    for begin in range(0, d, max(step, 1)):
        end = min(begin + step, d)
        # Checked while they come into the cache: reading a large X twice would take longer.
        for i in range(r):
            sound &= _is_sound(A[i, begin:end])
        for j in range(0, m, 3):
            j1, j2 = min(j + 1, m - 1), min(j + 2, m - 1)
            b, b1, b2 = B[j, begin:end], B[j1, begin:end], B[j2, begin:end]
            for i in range(0, r, 2):
                i1 = min(i + 1, r - 1)
                a, a1 = A[i, begin:end], A[i1, begin:end]
                k, k1 = K[i], K[i1]
                s, s1, s2 = k[j], k[j1], k[j2]
                t, t1, t2 = k1[j], k1[j1], k1[j2]
                for f in range(end - begin):
                    s += _term(term, a[f], b[f])
                    s1 += _term(term, a[f], b1[f])
                    s2 += _term(term, a[f], b2[f])
                    t += _term(term, a1[f], b[f])
                    t1 += _term(term, a1[f], b1[f])
                    t2 += _term(term, a1[f], b2[f])
                k[j], k[j1], k[j2] = s, s1, s2
                k1[j], k1[j1], k1[j2] = t, t1, t2
    return sound


def add_sparse(term: int, A: Lists, B: Lists, K: Array, rows: tuple[int, int], lower: bool) -> bool:
    """Add the sums over shared bins to these rows of K, or to its lower triangle.

    A lists the bins of each row, B the rows of each bin; all lists are sorted. Where one of two
    bins is empty the term must be zero. Returns True: the values were checked before.
    """
    starts, bins, values = A
    columns, partners, others = B
    for i in range(rows[0], rows[1]):
        for p in range(starts[i], starts[i + 1]):
            for q in range(columns[bins[p]], columns[bins[p] + 1]):
                j = partners[q]
                if lower and j > i:
                    break
                K[i, j] += _term(term, values[p], others[q])
    return True
