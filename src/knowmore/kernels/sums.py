"""Sums over bins for all pairs of histograms, in strips of rows on all cores.

The threads are Python's, made for one call and gone after it, and the compiled loops leave the
lock to others: nothing is left running that a forked process would miss, or that would take a core
from BLAS. Their number is numba's NUMBA_NUM_THREADS, which joblib sets in its workers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from knowmore.arrays import Array
from knowmore.compiling import Function
from knowmore.concurrency import uninterrupted
from knowmore.errors import InvalidInput

# Rows of a strip: with a few hundred bins of each they stay in the second-level cache.
_ROWS = 64
# Fewer terms than this take less time than cutting strips and starting a second thread.
_FEW = 2_000_000


class Term(IntEnum):
    """What is summed over the bins x, y of two histograms."""

    SMALLER = 0  # min(x, y)
    DISTANCE = 1  # (x - y)^2 / (x + y), 0 where both are
    HARMONIC = 2  # 2 x y / (x + y), 0 where both are
    DIFFERENCE = 3  # |x - y|


# A distance is |x| + |y| less twice this, which is zero unless both bins hold something.
_SHARED = {Term.DISTANCE: Term.HARMONIC, Term.DIFFERENCE: Term.SMALLER}


def pair_sums(term: Term, X: Any, Y: Any = None) -> Array:
    """The sum over bins for each row of X (n, d) with each of Y (m, d), or of X if None: (n, m).

    Dense or sparse, and float32 where both are; else float64. Each value is within d + 4 roundings
    of itself. Only DIFFERENCE, which is |x| + |y| less twice SMALLER, and DISTANCE of sparse rows,
    which is taken from the bins that both hold, are that near relative to |x| + |y|.

    >>> pair_sums(Term.SMALLER, np.array([[1.0, 2.0, 0.0]]), np.array([[3.0, 1.0, 1.0]]))
    array([[2.]])
    """
    A, B = _table("X", X), _table("X", X) if Y is None else _table("Y", Y)
    if A.shape[1] != B.shape[1]:
        raise InvalidInput(
            f"X has {A.shape[1]} columns, but Y has {B.shape[1]}. "
            f"Histograms are compared bin by bin: give both the same bins."
        )
    dtype, within = _precision(A, B), Y is None
    # Strips run down the longer side; the terms do not care which is which.
    flipped = A.shape[0] < B.shape[0]
    sums = _sparse if sparse.issparse(A) or sparse.issparse(B) else _dense
    K = sums(term, *((B, A) if flipped else (A, B)), within, dtype)
    if K is None:
        raise _complaint(("X", A), ("Y", B))
    K = K.T if flipped else K
    if within:
        np.fill_diagonal(K, 0 if term in _SHARED else row_sums(A))
    return K


def row_sums(X: Any) -> Array:
    """|x|, the sum over the bins of each row, (n,): SMALLER and HARMONIC of a row with itself."""
    A = _table("X", X)
    if not _sound(A.data if sparse.issparse(A) else A):
        raise _complaint(("X", A))
    # NumPy adds in the order of the memory; the sums must not depend on it.
    A = A if sparse.issparse(A) else np.ascontiguousarray(A)
    return np.asarray(A.sum(axis=1, dtype=_precision(A))).ravel()


@cache
def _loop(name: str, dtype: np.dtype[Any]) -> Function:
    """The loop over "dense" or "sparse" rows, compiled; the first call takes a second or more."""

    def load() -> Function:
        from knowmore.kernels import pairs

        made: Function = getattr(pairs, name)(dtype)
        return made

    return uninterrupted(load)


def _dense(term: Term, A: Any, B: Any, within: bool, dtype: np.dtype[Any]) -> Array | None:
    """The sums, rows of A down; None where a value is negative or not finite."""
    add_dense = _loop("dense", dtype)
    B = _plain(B, dtype)
    K = np.zeros((len(A), len(B)), dtype)
    summed = Term.SMALLER if term == Term.DIFFERENCE else term

    def strip(rows: slice) -> bool:
        others = B[: rows.stop] if within else B
        sound: bool = add_dense(summed.value, _plain(A[rows], dtype), others, K, rows.start)
        if within:
            _mirror(K, rows)
        return sound

    good = (within or _sound(B)) and _all_strips(strip, len(A), len(A) * B.size)
    if not good:
        return None
    return _from_shared(K, A, B) if term == Term.DIFFERENCE else K


def _from_shared(K: Array, A: Any, B: Any) -> Array:
    """The distances |x| + |y| - 2 K, none below zero."""
    return np.asarray(np.maximum(np.add.outer(row_sums(A), row_sums(B)) - 2 * K, 0))


def _sparse(term: Term, A: Any, B: Any, within: bool, dtype: np.dtype[Any]) -> Array | None:
    """As `_dense`, over the bins that both have: posting lists, one for each bin."""
    add_sparse = _loop("sparse", dtype)
    A, B = (sparse.csr_array(table, dtype=dtype) for table in (A, B))
    if not (_sound(A.data) and _sound(B.data)):
        return None
    K = np.zeros((A.shape[0], B.shape[0]), dtype)
    shared = _SHARED.get(term, term)
    rows_of_A, columns_of_B = _compressed(A), _compressed(B.tocsc())

    def strip(rows: slice) -> bool:
        add_sparse(shared.value, rows_of_A, columns_of_B, K, rows.start, rows.stop, within)
        if within:
            _mirror(K, rows)
        return True

    _all_strips(strip, A.shape[0], A.nnz * B.nnz // max(A.shape[1], 1))
    return _from_shared(K, A, B) if term in _SHARED else K


def _all_strips(strip: Callable[[slice], bool], n: int, terms: int) -> bool:
    """Did every strip of n rows succeed? Last ones first: within one set they are the longest."""
    from numba.core import config

    if terms < _FEW:
        return strip(slice(0, n))
    strips = [slice(begin, min(begin + _ROWS, n)) for begin in range(0, n, _ROWS)][::-1]
    threads = min(config.NUMBA_NUM_THREADS, len(strips))  # type: ignore[attr-defined]
    if threads == 1:
        return all(map(strip, strips))
    with ThreadPoolExecutor(threads) as pool:
        return all(pool.map(strip, strips))


def _mirror(K: Array, rows: slice) -> None:
    """Copy what is below the diagonal in these rows to above it; the diagonal becomes zero."""
    K[: rows.start, rows] = K[rows, : rows.start].T
    below = np.tril(K[rows, rows], -1)
    K[rows, rows] = below + below.T


# -- inputs --------------------------------------------------------------------------------------


def _table(name: str, X: Any) -> Any:
    table = X if sparse.issparse(X) else np.asarray(X)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} has shape {table.shape} and type {table.dtype}, but histograms are rows of "
            f"numbers. Give a table (n, d), dense or sparse."
        )
    return _csr(table) if sparse.issparse(table) else table


def _precision(*tables: Any) -> np.dtype[Any]:
    single = all(A.dtype == np.float32 for A in tables)
    return np.dtype(np.float32 if single else np.float64)


def _plain(A: Array, dtype: np.dtype[Any]) -> Array:
    """Contiguous and read-only, which is one type for the compiler, whatever came in."""
    plain = np.ascontiguousarray(A, dtype).view()
    plain.flags.writeable = False
    return plain


def _csr(A: Any) -> Any:
    """Rows in which each bin occurs once."""
    rows = sparse.csr_array(A)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _compressed(S: Any) -> tuple[Array, Array, Array]:
    integer = np.dtype(np.int64)
    return _plain(S.indptr, integer), _plain(S.indices, integer), _plain(S.data, S.dtype)


def _sound(values: Array) -> bool:
    """From zero to half the largest number, so that two have a sum; a NaN is its own minimum."""
    return bool(values.min(initial=0) >= 0 and float(values.max(initial=0)) <= _most(values))


def _most(*tables: Any) -> float:
    return float(np.finfo(_precision(*tables)).max) / 2


def _complaint(*tables: tuple[str, Any]) -> InvalidInput:
    """What to say of the first bad value in these tables."""
    cells = {name: sparse.coo_array(A) for name, A in tables}
    most = _most(*(A for _, A in tables))
    bad = {name: np.flatnonzero(~((c.data >= 0) & (c.data <= most))) for name, c in cells.items()}
    name = next(name for name in bad if len(bad[name]))
    row, column, value = (part[bad[name][0]] for part in (*cells[name].coords, cells[name].data))
    problem = "negative" if value < 0 else "too large" if np.isfinite(value) else "not finite"
    return InvalidInput(
        f"A histogram kernel was given a value that is {problem}:"
        f" {value} in row {row}, column {column} of {name}. It compares counts, and is positive "
        f"definite only for those: give histograms, or use another kernel, such as RBF."
    )
