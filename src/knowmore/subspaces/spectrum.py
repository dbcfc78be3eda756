"""The principal directions of a stack of rows, and which of them are kept.

A decomposition perturbs every entry of a matrix by a rounding error of its largest entry. If one
feature is measured in millions and another in fractions of one, that wipes out the second. Rotating
rows into each other is different: a sum c b_i + s b_k perturbs each *column* by a rounding error of
that column. So where features differ much in scale, rows are only rotated here, longest first, and
the rest is then decomposed on its own scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np
from scipy import linalg

from knowmore._base import Array, number, real_numbers, whole_number
from knowmore.errors import InvalidInput
from knowmore.linalg import threads_for

EPS = float(np.finfo(float).eps)
TOO_LARGE = "The values are too large for double precision. Scale the data first."
# Features within this factor of each other share one decomposition: their squares lose three
# digits.
UNEQUAL = 32.0
# Rows longer than this fraction of the longest are found from products of rows; they are then
# orthogonal to a thousand rounding errors.
_LONG = 1 / 32
# Products of rows lose what is below eps times the largest square. A margin of half the digits
# leaves every kept square eight good ones.
_SQUARED = EPS ** (1 / 2)
# Sums of squares of anything between these are far from the limits of double precision.
_TINY, _HUGE = 1e-60, 1e60
# Directions found from products of rows are orthogonal to about this, or are made so.
_ORTHOGONAL = 1e-12
# A feature is constant if it varies by at most this many times its rounding error.
_NEGLIGIBLE = 8


@final
@dataclass(frozen=True)
class Truncation:
    """Which directions to keep: the fewest that any of the given rules allows.

    rank : at most this many
    fraction : as few as hold this fraction of the total variance, dropped ones included, 0 to 1
    tolerance : only those with more than this fraction of the largest variance

    Examples
    --------
    >>> Truncation(fraction=0.9).count(np.array([8.0, 1.5, 0.5]))
    2
    """

    rank: int | None = None
    fraction: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.rank is not None:
            whole_number("rank", self.rank, 0)
        for name in "fraction", "tolerance":
            if (value := getattr(self, name)) is not None:
                number(name, value, "[0, 1]")

    @classmethod
    def by(cls, rank: Rank) -> Truncation:
        """A bare number is the rank; None keeps everything."""
        return rank if isinstance(rank, Truncation) else cls(rank)

    def count(self, variances: Array, dropped: float = 0.0) -> int:
        """The number of `variances` (d,), largest first, to keep; `dropped` was lost before."""
        variances, dropped = (
            real_numbers("variances", variances),
            number("dropped", dropped, "[0, inf)"),
        )
        if variances.ndim != 1:
            raise InvalidInput(f"variances has shape {variances.shape}, not (d,).")
        keep = len(variances) if self.rank is None else min(self.rank, len(variances))
        if self.fraction is not None and len(variances):
            held = np.cumsum(variances)
            # Rounded sums may miss a fraction of one by a few rounding errors.
            wanted = self.fraction * (held[-1] + dropped) * (1 - len(held) * EPS)
            keep = min(keep, int(np.searchsorted(held, wanted)) + 1)
        if self.tolerance is not None and len(variances):
            keep = min(keep, int((variances > self.tolerance * variances[0]).sum()))
        return keep


ALL = Truncation()
Rank = int | Truncation | None


# Values (d,), largest first, of directions (d, D), and the sum of the squares of all others.
_Parts = tuple[Array, Array, float]


def spectrum(
    A: Array,
    truncation: Truncation = ALL,
    dropped: float = 0.0,
    floor: Array | float = 0.0,
    most: int | None = None,
) -> tuple[Array, Array, float, Array | float]:
    """The orthonormal P (d, D) and values s with A'A = P' diag(s^2) P for A (k, D), largest first.

    P comes from the smaller of AA' and A'A if everything kept stands well above what squaring
    loses, else from a singular value decomposition of A. Either perturbs the whole by rounding
    errors of the largest feature; where features are of unequal scale and nothing is dropped, each
    is perturbed by rounding errors of its own instead. `dropped` is a sum of squares that was lost
    before; the fraction of a truncation counts it. Features up to `floor` (D,) count as zero, as do
    values that these or rounding alone could produce, and any beyond the `most` that A can have.

    Returns s, P, the sum of the squares of the values that were dropped, and the estimated errors
    of the squares of each feature, (D,).
    """
    scale = scale_of(A) or 1.0
    A = A if scale == 1 else A / scale
    dropped, floor = dropped / scale / scale, np.broadcast_to(floor / scale, A.shape[1])
    sizes = np.sqrt(np.einsum("ij,ij->j", A, A))
    squares, zero = np.square(sizes), sizes <= _NEGLIGIBLE * floor
    if sizes[zero].any():
        A, sizes = np.where(zero, 0.0, A), np.where(zero, 0.0, sizes)
    if not sizes.any():
        return np.zeros(0), np.zeros((0, A.shape[1])), 0.0, squares * scale * scale
    with threads_for(A.size, min(A.shape)):
        values, P, rest = _decomposed(A, truncation, dropped, floor, most, sizes)
    # A rounding error of large features would look like a small one.
    P[:, zero] = 0
    error = sqrt(len(A)) * EPS * _perturbed(values, P, rest)
    if not (dropped or rest):
        # What counted as zero is no longer known.
        error = np.hypot(error, (squares - np.square(values) @ np.square(P)).clip(0))
    return values * scale, with_signs(P), rest * scale * scale, error * scale * scale


def _decomposed(
    A: Array, truncation: Truncation, dropped: float, floor: Array, most: int | None, sizes: Array
) -> _Parts:
    apart = unequal(sizes)
    if not apart or truncation != ALL:
        found = _by_squares(A, truncation, dropped, floor, most)
        # What is dropped takes the small features with it.
        if found is not None and (found[2] > 0 or not apart):
            return found
    # On one scale, zero directions show. Powers of two are exact.
    scales = np.exp2(np.frexp(sizes)[1]) if apart else np.ones(len(sizes))
    rows = orthogonal_rows(_independent_rows(A / scales, floor / scales, most) * scales)
    squares = (rows * rows).sum(axis=1)
    keep = truncation.count(squares, dropped)
    values = np.sqrt(squares[:keep])
    return values, rows[:keep] / values[:, None], float(squares[keep:].sum())


def _by_squares(
    A: Array, truncation: Truncation, dropped: float, floor: Array, most: int | None
) -> _Parts | None:
    """The spectrum from products of rows or columns; None if too much would be lost."""
    tall = len(A) > A.shape[1]
    squares, U = largest_first(A.T @ A if tall else A @ A.T)
    squares = squares[:most].clip(0)
    keep = truncation.count(squares, dropped)
    if keep and squares[keep - 1] < _SQUARED * squares[0]:
        return None
    kept, rest = squares[:keep], float(squares[keep:].sum())
    rest = rest if rest > len(squares) * EPS * squares.sum() else 0.0
    values = np.sqrt(kept)
    if tall:
        P = np.ascontiguousarray(U[:, :keep].T)
    else:
        P = (U[:, :keep] / values).T @ A
        if keep and EPS * squares[0] > _ORTHOGONAL * kept[-1]:
            # Correct the small ones: correcting the large ones would move the scatter with them.
            P = P - np.tril(P @ P.T, -1) @ P
            P /= np.linalg.norm(P, axis=1, keepdims=True)
    return (values, P, rest) if _above(values, P, floor).all() else None


def largest_first(S: Array) -> tuple[Array, Array]:
    """The eigenvalues (d,) of a symmetric S (d, d), largest first, and the eigenvectors (d, d)."""
    values, V = linalg.eigh(S, driver="evd", check_finite=False)
    return values[::-1], V[:, ::-1]


def _independent_rows(A: Array, floor: Array, most: int | None) -> Array:
    """Linearly independent rows with the same A'A, for A (k, D) with columns of one scale.

    Directions that A does not have are left out. The rows are rotated rows of A: rows read off a
    decomposition are ten times less exact.
    """
    found = _by_squares(A, ALL, 0.0, floor, most)
    if found is not None:
        return np.asarray(found[0][:, None] * found[1])
    if len(A) > A.shape[1]:
        A = np.asarray(np.linalg.qr(A, mode="r"))
    try:
        U, values, P = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        # Divide and conquer may fail to converge where plain iteration does not.
        U, values, P = linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    seen = (values > max(A.shape) * EPS * values[0]) & _above(values, P, floor)
    return np.asarray(U[:, seen][:, :most].T @ A)


def _above(values: Array, P: Array, floor: Array) -> Array:
    """Which values (d,) are more than features that vary by `floor` (D,) can produce along P."""
    if values[-1:].sum() > np.linalg.norm(floor):
        return np.ones(len(values), dtype=bool)
    # In some feature: what is negligible beside one may be all that there is of another.
    return np.asarray((values[:, None] * abs(P) > floor).any(axis=1))


def _perturbed(values: Array, P: Array, dropped: float) -> Array | float:
    """The squares whose rounding error a decomposition adds to each feature, (D,), or one value."""
    squares = np.square(values)
    largest = float(squares.max(initial=0.0)) or dropped
    if dropped and squares.min(initial=largest) >= _SQUARED * largest:
        return largest
    own = squares @ np.square(P) + dropped
    # A constant feature is not perturbed at all.
    return own if unequal(np.sqrt(own)) else np.where(own > 0, largest, 0.0)


# -- rows of unequal scale -------------------------------------------------------------------------


def unequal(sizes: Array) -> bool:
    """Whether sizes (D,) are too far apart for one decomposition of all; zeros don't count."""
    seen = sizes[sizes > 0]
    return len(seen) > 1 and bool(seen.max() > UNEQUAL * seen.min())


def orthogonal_rows(B: Array) -> Array:
    """Rows with the same B'B that are orthogonal to each other, longest first, for B (r, D).

    The rows of B must be linearly independent in some scaling of the columns.
    """
    done: list[Array] = []
    while len(B):
        U = linalg.eigh(B @ B.T, driver="evd", check_finite=False)[1]
        B = U[:, ::-1].T @ B
        squares = (B * B).sum(axis=1)
        long = squares >= _LONG**2 * squares.max()
        first, rest = B[long], B[~long]
        # What the short rows share with the long ones is rounding error, but of the long ones.
        for _ in range(2):
            first, rest = _decoupled(first, rest)
        # Now that they have their own length, remove what they share with the much longer ones.
        for i, before in enumerate(done):
            done[i], first = _decoupled(before, first)
        done.append(first)
        B = rest
    rows = np.concatenate(done) if done else B
    return np.asarray(rows[np.argsort(-(rows * rows).sum(axis=1), kind="stable")])


def _decoupled(long: Array, short: Array) -> tuple[Array, Array]:
    """Both rotated by the small angles X (short, long) that make them orthogonal."""
    lengths = (long * long).sum(axis=1)
    gaps = lengths - (short * short).sum(axis=1)[:, None]
    # Rows of nearly the same length are orthogonal already.
    near = 2 * gaps < lengths
    X = np.where(near, 0.0, short @ long.T / np.where(near, 1.0, gaps))
    return long + X.T @ short, short - X @ long


def with_signs(P: Array) -> Array:
    """P, its rows flipped so that their largest entry is positive, as in scikit-learn."""
    largest = abs(P).argmax(axis=1)
    P[P[np.arange(len(P)), largest] < 0] *= -1
    return P


# -- the range of double precision -----------------------------------------------------------------


def scale_of(A: Array) -> float:
    """The divisor of A before it is squared: one, or a power of two, which is exact.

    Zero if A is zero.
    """
    # Not abs(A).max(): copying a large A takes longer than reading it twice.
    size = max(float(A.max(initial=0.0)), -float(A.min(initial=0.0)))
    if not np.isfinite(size):
        raise InvalidInput(TOO_LARGE)
    return 1.0 if _TINY < size < _HUGE else float(2.0 ** np.frexp(size)[1]) if size else 0.0


def lengths(A: Array) -> Array:
    """The length of each column of A (k, D), (D,); zero where squares underflow.

    Raises InvalidInput if A is not finite.
    """
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->j", A, A)
    if np.isfinite(squares).all():
        return np.asarray(np.sqrt(squares))
    scale = scale_of(A)
    return scale * lengths(A / scale)


def squared(values: Array) -> Array:
    """The squares of `values` (d,); raises InvalidInput if double precision cannot hold them."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.square(values)
    if len(values) and not np.finfo(float).tiny <= squares[0] < np.inf:
        raise InvalidInput(
            f"The data vary by {values[0]:.1e}: squares are beyond double precision. Scale them."
        )
    return np.asarray(squares)
