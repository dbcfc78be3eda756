"""Sums over bins for all pairs of histograms, in strips of rows on all cores.

The threads are Python's, started for one call and gone after it, and the compiled loops release
the interpreter lock: no thread is left that a forked process would miss, or that would take a core
from BLAS. Their number is numba's NUMBA_NUM_THREADS, which joblib sets in its workers.
"""

from __future__ import annotations

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

# Rows of a strip: with a few hundred bins each they stay in the second-level cache.
_ROWS = 64
# Fewer terms than this take less time than cutting strips and starting a second thread.
_FEW = 2_000_000


class Term(IntEnum):
    """What is summed over the bins x, y of two histograms."""

    MINIMUM = 0  # min(x, y)
    CHI_SQUARED = 1  # (x - y)^2 / (x + y), 0 where both are
    HARMONIC = 2  # 2 x y / (x + y), 0 where both are
    CITY_BLOCK = 3  # |x - y|


# A distance is |x| + |y| less twice this, which is zero unless both bins hold something.
_OVERLAP = {Term.CHI_SQUARED: Term.HARMONIC, Term.CITY_BLOCK: Term.MINIMUM}


def pair_sums(term: Term, X: Any, Y: Any = None) -> Array:
    """The sum over bins for each row of X (n, d) with each of Y (m, d), or of X if None: (n, m).

    Dense or sparse, and float32 where both are; else float64. Each value is within d + 4 roundings
    of itself. Only CITY_BLOCK, and CHI_SQUARED of sparse rows, which are computed from the overlap,
    are that near relative to |x| + |y|.

    >>> pair_sums(Term.MINIMUM, np.array([[1.0, 2.0, 0.0]]), np.array([[3.0, 1.0, 1.0]]))
    array([[2.]])
    """
    within = Y is None
    A = _table("X", X)
    B = A if within else _table("Y", Y)
    if A.shape[1] != B.shape[1]:
        raise InvalidInput(
            f"X has {A.shape[1]} columns, but Y has {B.shape[1]}. "
            f"Histograms are compared bin by bin: give both the same bins."
        )
    dtype, is_sparse = _precision(A, B), sparse.issparse(A) or sparse.issparse(B)
    by_overlap = term == Term.CITY_BLOCK or (is_sparse and term == Term.CHI_SQUARED)
    # Strips run down the longer side; all terms are symmetric.
    flipped = A.shape[0] < B.shape[0]
    long, short = (B, A) if flipped else (A, B)
    sums = _sparse if is_sparse else _dense
    K = sums(_OVERLAP[term] if by_overlap else term, long, short, within, dtype)
    if K is None:
        raise _bad_value(("X", A), ("Y", B))
    if by_overlap:
        K = np.maximum(np.add.outer(_sizes(long, dtype), _sizes(short, dtype)) - 2 * K, 0)
    if within:
        np.fill_diagonal(K, 0 if term in _OVERLAP else _sizes(A, dtype))
    return K.T if flipped else K


def row_sums(X: Any) -> Array:
    """|x|, the sum over the bins of each row, (n,): MINIMUM and HARMONIC of a row with itself."""
    A = _table("X", X)
    if not _is_sound(A.data if sparse.issparse(A) else A):
        raise _bad_value(("X", A))
    return _sizes(A, _precision(A))


def _sizes(A: Any, dtype: np.dtype[Any]) -> Array:
    # NumPy adds in the order of the memory; the sums must not depend on it.
    A = A if sparse.issparse(A) else np.ascontiguousarray(A)
    return np.asarray(A.sum(axis=1, dtype=dtype)).ravel()


@cache
def _loop(name: str, dtype: np.dtype[Any]) -> Function:
    """The loop over "dense" or "sparse" rows, compiled; the first call takes a second or more."""

    def load() -> Function:
        from knowmore.kernels import pairs

        made: Function = getattr(pairs, name)(dtype)
        return made

    return uninterrupted(load)


def _dense(term: Term, A: Any, B: Any, within: bool, dtype: np.dtype[Any]) -> Array | None:
    """The sums, rows of A down; None where a value is negative, too large or not finite."""
    A, B = plain(A, dtype), plain(B, dtype)
    # The loop itself checks A.
    if not (within or _is_sound(B)):
        return None
    K = np.zeros((len(A), len(B)), dtype)
    return _strips(_loop("dense", dtype), term, A, B, K, within, A.size * len(B))


def _sparse(term: Term, A: Any, B: Any, within: bool, dtype: np.dtype[Any]) -> Array | None:
    """As `_dense`, over the bins that both have: posting lists, one for each bin."""
    A, B = (sparse.csr_array(table, dtype=dtype) for table in (A, B))
    if not (_is_sound(A.data) and _is_sound(B.data)):
        return None
    K, terms = np.zeros((A.shape[0], B.shape[0]), dtype), A.nnz * B.nnz // max(A.shape[1], 1)
    lists = compressed(A), compressed(B.tocsc())
    return _strips(_loop("sparse", dtype), term, *lists, K, within, terms)


def _strips(
    add: Function, term: Term, A: Any, B: Any, K: Array, within: bool, terms: int
) -> Array | None:
    """K with all sums added, strip by strip; None if a strip is not sound."""
    from numba.core import config

    def strip(rows: slice) -> bool:
        sound: bool = add(term.value, A, B, K, rows.start, rows.stop, within)
        if within:
            _mirror(K, rows)
        return sound

    if terms < _FEW:
        return K if strip(slice(0, len(K))) else None
    # The last first: within one set they are the longest.
    strips = [slice(begin, min(begin + _ROWS, len(K))) for begin in range(0, len(K), _ROWS)][::-1]
    threads = min(config.NUMBA_NUM_THREADS, len(strips))  # type: ignore[attr-defined]
    with ThreadPoolExecutor(threads) as pool:
        return K if all(pool.map(strip, strips)) else None


def _mirror(K: Array, rows: slice) -> None:
    """Copy what is below the diagonal in these rows to above it; the diagonal becomes zero."""
    K[: rows.start, rows] = K[rows, : rows.start].T
    below = np.tril(K[rows, rows], -1)
    K[rows, rows] = below + below.T


# -- inputs --------------------------------------------------------------------------------------


def _table(name: str, X: Any) -> Any:
    """X as an array, or as sparse rows in which each bin occurs once."""
    table = X if sparse.issparse(X) else np.asarray(X)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} has shape {table.shape} and type {table.dtype}, but histograms are rows of "
            f"numbers. Give a table (n, d), dense or sparse."
        )
    if sparse.issparse(table):
        table = sparse.csr_array(table)
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
    return table


def _precision(*tables: Any) -> np.dtype[Any]:
    single = all(A.dtype == np.float32 for A in tables)
    return np.dtype(np.float32 if single else np.float64)


def plain(A: Array, dtype: np.dtype[Any]) -> Array:
    """Contiguous and read-only: one type for the compiler, whatever the input was."""
    plain = np.ascontiguousarray(A, dtype).view()
    plain.flags.writeable = False
    return plain


def compressed(S: Any) -> tuple[Array, Array, Array]:
    """A compressed sparse matrix: where each list starts, the indices, the values."""
    integer = np.dtype(np.int64)
    return plain(S.indptr, integer), plain(S.indices, integer), plain(S.data, S.dtype)


def _is_sound(values: Array) -> bool:
    """From zero to half the largest number, so that two have a sum; a NaN is its own minimum."""
    largest = np.finfo(_precision(values)).max / 2
    return bool(values.min(initial=0) >= 0 and float(values.max(initial=0)) <= largest)


def _bad_value(*tables: tuple[str, Any]) -> InvalidInput:
    """The error for the first bad value in these tables."""
    largest = np.finfo(_precision(*(A for _, A in tables))).max / 2
    cells = [(name, sparse.coo_array(A)) for name, A in tables]
    bad = [(name, A, ~((A.data >= 0) & (A.data <= largest))) for name, A in cells]
    name, A, where = next(each for each in bad if each[2].any())
    row, column, value = (part[where.argmax()] for part in (*A.coords, A.data))
    problem = "negative" if value < 0 else "too large" if np.isfinite(value) else "not finite"
    return InvalidInput(
        f"A histogram kernel was given a value that is {problem}:"
        f" {value} in row {row}, column {column} of {name}. It compares counts, and is positive "
        f"definite only for those: give histograms, or use another kernel, such as RBF."
    )
