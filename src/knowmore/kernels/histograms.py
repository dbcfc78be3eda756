"""Histogram kernels with scikit-learn's interface: intersection, chi-squared, exponentials.

All are positive semidefinite for values that are not negative, and refuse others. They take dense
or sparse rows, and compute in float32 where all rows are float32; else in float64.

Intersection and chi-squared are homogeneous: w min(x, y) = min(w x, w y), and likewise for
(x - y)^2 / (x + y) and |x - y|. So a weighted sum over the levels of a pyramid is one kernel of
weighted histograms; see `On` and `column_weights`.

Sums over bins are computed for all pairs of rows, in strips of rows on all cores. The threads are
Python's, started for one call and gone after it, and the compiled loops release the interpreter
lock: no thread is left that a forked process would miss, or that would take a core from BLAS. Their
number is numba's NUMBA_NUM_THREADS, which joblib sets in its workers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, final

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

from knowmore._base import Array, Function, as_array, check_sparse, uninterrupted
from knowmore.errors import InvalidInput
from knowmore.kernels.rules import RULES, KernelRule, always, by_pairs, own_corner, with_gradient

# Rows of a strip: with a few hundred bins each they stay in the second-level cache.
_ROWS = 64
# Fewer terms than this take less time than cutting strips and starting a second thread.
_FEW = 2_000_000


class Term(IntEnum):
    """The term that is summed over the bins x, y of two histograms."""

    MINIMUM = 0  # min(x, y)
    CHI_SQUARED = 1  # (x - y)^2 / (x + y), 0 where both are
    HARMONIC = 2  # 2 x y / (x + y), 0 where both are
    CITY_BLOCK = 3  # |x - y|


# A distance is |x| + |y| less twice this, which is zero unless both bins hold something.
_OVERLAP = {Term.CHI_SQUARED: Term.HARMONIC, Term.CITY_BLOCK: Term.MINIMUM}


class _Overlap(Kernel):
    """The sum over bins of a term that is zero unless both bins hold something."""

    _term: ClassVar[Term]

    def __init__(self) -> None:
        pass

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request its empty gradient."""
        K = pair_sums(self._term, X, Y)
        return with_gradient(self, K, Y, {}) if eval_gradient else K

    def diag(self, X: Any) -> Array:
        """sum_i x_i for each row, (n,)."""
        return row_sums(X)

    def is_stationary(self) -> bool:
        """No: it grows with the counts."""
        return False


@final
class HistogramIntersection(_Overlap):
    """sum_i min(x_i, y_i). With the pyramid's weights: Lazebnik, Schmid, Ponce (2006).

    >>> HistogramIntersection()(np.array([[1.0, 2.0], [3.0, 1.0]]))
    array([[3., 2.],
           [2., 4.]])
    """

    _term = Term.MINIMUM


@final
class AdditiveChiSquared(_Overlap):
    """sum_i 2 x_i y_i / (x_i + y_i), where bins that are empty in both add nothing.

    >>> AdditiveChiSquared()(np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[1., 1.],
           [1., 2.]])
    """

    _term = Term.HARMONIC


class _Decay(Kernel):
    """exp(-gamma D), D the distance between two histograms."""

    distance: ClassVar[Term]

    def __init__(
        self, gamma: float = 1.0, gamma_bounds: tuple[float, float] | str = (1e-5, 1e5)
    ) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        """gamma, which scikit-learn optimises by its logarithm."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request dK / d log(gamma) = -gamma D K, (n, n, 1)."""
        D = pair_sums(self.distance, X, Y)
        if not eval_gradient:
            return _decay(self, D, out=D)
        K = _decay(self, D)
        return with_gradient(self, K, Y, _decay_slopes(self, D, K))

    def diag(self, X: Any) -> Array:
        """The diagonal of the Gram matrix: ones, (n,)."""
        # The sums are not used, but computing them checks the rows.
        return np.ones_like(row_sums(X))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(gamma={self.gamma:.3g})"


@final
class ChiSquared(_Decay):
    """exp(-gamma D), D = sum_i (x_i - y_i)^2 / (x_i + y_i), where empty bins add nothing.

    A usual gamma is one over the mean D of the training data (Bosch, Zisserman, Munoz, 2007).

    >>> ChiSquared(gamma=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    distance = Term.CHI_SQUARED

    def is_stationary(self) -> bool:
        """No: a difference counts less where the counts are larger."""
        return False


@final
class ExponentialIntersection(StationaryKernelMixin, _Decay):
    """exp(-gamma D), D = sum_i |x_i - y_i| = k(x, x) + k(y, y) - 2 k(x, y), k the intersection.

    So it is to the intersection what an RBF kernel is to the dot product. Positive definite, since
    D is of negative type. A usual gamma is one over the mean D of the training data.

    >>> ExponentialIntersection(gamma=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    distance = Term.CITY_BLOCK


def _decay(kernel: _Decay, D: Array, out: Array | None = None) -> Array:
    # A Python float: one of NumPy's would make a float32 array float64.
    exponent = np.multiply(D, -float(kernel.gamma), out=out)
    return np.asarray(np.exp(exponent, out=exponent))


def _decay_slopes(kernel: _Decay, D: Array, K: Array) -> dict[str, Array]:
    return {"gamma": -float(kernel.gamma) * D * K}


RULES[HistogramIntersection] = RULES[AdditiveChiSquared] = KernelRule(
    corner=own_corner, is_positive=always
)
# D is conditionally negative definite, so exp(-gamma D) is positive.
RULES[ChiSquared] = RULES[ExponentialIntersection] = KernelRule(
    corner=own_corner,
    prepare=lambda kernel, X: pair_sums(kernel.distance, X),
    gradient=by_pairs(_decay, _decay_slopes),
    is_positive=lambda kernel: kernel.gamma >= 0,
)


# -- sums over bins for all pairs of rows -------------------------------------------------------


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
    if A.dtype != B.dtype:
        A, B = A.astype(float), B.astype(float)
    is_sparse = sparse.issparse(A) or sparse.issparse(B)
    by_overlap = term == Term.CITY_BLOCK or (is_sparse and term == Term.CHI_SQUARED)
    # Strips run down the longer side; all terms are symmetric.
    flipped = A.shape[0] < B.shape[0]
    long, short = (B, A) if flipped else (A, B)
    K = _sums(_OVERLAP[term] if by_overlap else term, long, short, within, is_sparse)
    if K is None:
        raise _bad_value(X=A, Y=B)
    if by_overlap:
        K = np.maximum(np.add.outer(long.sum(axis=1), short.sum(axis=1)) - 2 * K, 0)
    if within:
        np.fill_diagonal(K, 0 if term in _OVERLAP else A.sum(axis=1))
    return K.T if flipped else K


def row_sums(X: Any) -> Array:
    """|x|, the sum over the bins of each row, (n,): MINIMUM and HARMONIC of a row with itself."""
    A = _table("X", X)
    if not _is_sound(A):
        raise _bad_value(X=A)
    return np.asarray(A.sum(axis=1))


@cache
def _loop(is_sparse: bool, dtype: np.dtype[Any]) -> Function:
    """The loop over sparse or dense rows, compiled; the first call takes a second or more."""

    def load() -> Function:
        from knowmore.kernels.pairs import loop

        return loop(is_sparse, dtype)

    return uninterrupted(load)


def _sums(term: Term, A: Any, B: Any, within: bool, is_sparse: bool) -> Array | None:
    """The sums, rows of A down; None where a value is negative, too large or not finite."""
    from numba.core import config

    # The loop over dense rows checks A itself.
    sound = (within or _is_sound(B)) and (not is_sparse or _is_sound(A))
    add, K = _loop(is_sparse, A.dtype), np.zeros((A.shape[0], B.shape[0]), A.dtype)
    if is_sparse:
        # Over the bins that both have: posting lists, one for each bin.
        A, B = sparse.csr_array(A), sparse.csr_array(B)
        terms = A.nnz * B.nnz // max(A.shape[1], 1)
        A, B = compressed(A), compressed(B.tocsc())
    else:
        A, B, terms = plain(A), plain(B), A.size * len(B)

    def strip(rows: slice) -> bool:
        sound: bool = add(term.value, A, B, K, (rows.start, rows.stop), within)
        if within:
            _mirror(K, rows)
        return sound

    height = _ROWS if terms >= _FEW else max(len(K), 1)
    # The last strips first: within one set they are the longest.
    strips = [slice(i, min(i + height, len(K))) for i in range(0, len(K), height)][::-1]
    threads = min(config.NUMBA_NUM_THREADS, len(strips))  # type: ignore[attr-defined]
    if threads <= 1:
        sound = sound and all(map(strip, strips))
    else:
        with ThreadPoolExecutor(threads) as pool:
            sound = sound and all(pool.map(strip, strips))
    return K if sound else None


def _mirror(K: Array, rows: slice) -> None:
    """Copy what is below the diagonal in these rows to above it; the diagonal becomes zero."""
    K[: rows.start, rows] = K[rows, : rows.start].T
    below = np.tril(K[rows, rows], -1)
    K[rows, rows] = below + below.T


# -- inputs --------------------------------------------------------------------------------------


def _table(name: str, X: Any) -> Any:
    """X in float32 or float64, as rows in memory or as sparse rows in which each bin occurs once.

    NumPy adds in the order of the memory; sums must not depend on that of X.
    """
    check_sparse(name, X)
    table = X if sparse.issparse(X) else as_array(name, X)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} has shape {table.shape} and type {table.dtype}, but histograms are rows of "
            f"numbers. Give a table (n, d), dense or sparse."
        )
    dtype = np.float32 if table.dtype == np.float32 else np.float64
    if not sparse.issparse(table):
        return np.ascontiguousarray(table, dtype)
    table = sparse.csr_array(table, dtype=dtype)
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def plain(A: Array) -> Array:
    """Contiguous and read-only: one type for the compiler, for every input."""
    plain = np.ascontiguousarray(A).view()
    plain.flags.writeable = False
    return plain


def compressed(S: Any) -> tuple[Array, Array, Array]:
    """A compressed sparse matrix: where each list starts, the indices, the values."""
    return plain(S.indptr.astype(np.int64)), plain(S.indices.astype(np.int64)), plain(S.data)


def _is_sound(A: Any) -> bool:
    """From zero to half the largest number, so that two have a sum; a NaN is its own minimum."""
    values = A.data if sparse.issparse(A) else A
    return bool(values.min(initial=0) >= 0 and values.max(initial=0) <= np.finfo(A.dtype).max / 2)


def _bad_value(**tables: Any) -> InvalidInput:
    """The error for the first bad value in these tables."""
    name = next(name for name, A in tables.items() if not _is_sound(A))
    A = sparse.coo_array(tables[name])
    at = (~((A.data >= 0) & (A.data <= np.finfo(A.dtype).max / 2))).argmax()
    row, column, value = (part[at] for part in (*A.coords, A.data))
    problem = "negative" if value < 0 else "too large" if np.isfinite(value) else "not finite"
    return InvalidInput(
        f"A histogram kernel was given a value that is {problem}:"
        f" {value} in row {row}, column {column} of {name}. It compares counts, and is positive "
        f"definite only for those: give histograms, or use another kernel, such as RBF."
    )
