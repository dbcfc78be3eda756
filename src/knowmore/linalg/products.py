"""Products and decompositions of dense matrices, each with a suitable number of threads.

Code outside this package calls these where time counts, and never sets threads itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from knowmore._base import Array
from knowmore.linalg.tasks import Ended, in_turn, workers
from knowmore.linalg.threads import TINY, threads_for

T = TypeVar("T")

# OpenBLAS itself runs products of fewer multiplications on one thread: with a vector,
# and of two matrices.
_SMALL_VECTOR, _SMALL_MATRIX = TINY, 250_000


def product(A: Array, B: Array) -> Array:
    """A B for A (n, k) or (k,) and B (k, m) or (k,)."""
    columns = B.shape[1] if B.ndim == 2 else 1
    narrow = 1 in (A.ndim, len(A), columns)
    if A.size * columns < (_SMALL_VECTOR if narrow else _SMALL_MATRIX):
        return np.asarray(A @ B)
    threads = 1 if narrow else workers(A.size, columns)
    if threads == 1 or np.may_share_memory(A, B):
        # A product with its own transpose is symmetric, and BLAS computes half of it.
        with threads_for(A.size, 1 if narrow else columns):
            return np.asarray(A @ B)
    C = np.empty((len(A), columns), np.result_type(A, B))
    tall, size, tiles = len(A) >= columns, max(C.shape), 2 * threads

    def tile(i: int, _: Ended) -> None:
        cut = slice(size * i // tiles, size * (i + 1) // tiles)
        if tall:
            np.matmul(A[cut], B, out=C[cut])
        else:
            np.matmul(A, B[:, cut], out=C[:, cut])

    in_turn(tile, tiles, threads)
    return C


def evaluated(work: Callable[[], T], numbers: int, columns: int) -> T:
    """The result of `work`: many steps that belong together.

    Their threads are set once: those of a product of a matrix of `numbers` entries with this many
    `columns`.
    """
    with threads_for(numbers, columns):
        return work()


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,), the smallest first, and eigenvectors (n, n) of a symmetric A."""
    with threads_for(A.size, len(A)):
        values, vectors = linalg.eigh(A, driver="evd", check_finite=False)
    return values, vectors


def inverse(A: Array) -> tuple[Array, Array] | None:
    """A^-1 (n, n) and the pivots (n,) of A, which is overwritten; None if one is not positive."""
    with threads_for(A.size, len(A)):
        # The transpose of a symmetric matrix is itself, and in the order that LAPACK wants.
        L, failed = lapack.dpotrf(A.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        pivots = np.diagonal(L) ** 2
        P, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    P = P + P.T
    P.flat[:: len(P) + 1] /= 2
    return P, pivots


def svd(A: Array) -> tuple[Array, Array, Array]:
    """U (n, r), s (r,) and V' (r, m) with A = U s V' (n, m), r = min(n, m)."""
    with threads_for(A.size, min(A.shape)):
        return np.linalg.svd(A, full_matrices=False)
