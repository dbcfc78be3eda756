"""The principal directions of a stack of rows, and which of them are kept."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple, final

import numpy as np
from scipy import linalg

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.linalg.graded import column_norms, orthogonal_rows, unequal
from knowmore.linalg.threads import threads_for

EPS = float(np.finfo(float).eps)

# Products of rows lose what is below eps times the largest square. Half of the digits as a margin
# leaves every kept square eight good ones.
_SQUARED = EPS ** (1 / 2)
# Sums of squares of anything between these are far from the ends of double precision.
_TINY, _HUGE = 1e-60, 1e60
# Directions found from products of rows are orthogonal to about this, or are made so.
_ORTHOGONAL = 1e-12
# A feature that varies by no more than so many times its rounding does not vary.
_NOTHING = 8


@final
@dataclass(frozen=True)
class Truncation:
    """Which directions are kept: the fewest that any of the given rules asks for.

    rank : at most this many
    fraction : as few as hold this part of the whole variance, dropped ones included, 0 to 1
    tolerance : only those with more than this part of the largest variance

    Examples
    --------
    >>> Truncation(fraction=0.9).count(np.array([8.0, 1.5, 0.5]))
    2
    """

    rank: int | None = None
    fraction: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        rank, whole = self.rank, isinstance(self.rank, Integral) and self.rank is not True
        if rank is not None and not (whole and rank >= 0):
            raise InvalidInput(f"rank={rank!r}, but a rank is a whole number, zero or more.")
        for name in "fraction", "tolerance":
            part = getattr(self, name)
            real = isinstance(part, Real) and not isinstance(part, bool)
            if part is not None and not (real and 0 <= float(part) <= 1):
                raise InvalidInput(f"{name}={part!r}, but it is a part of the whole: 0 to 1.")

    @classmethod
    def by(cls, rank: int | Truncation | None) -> Truncation:
        """A bare number is the rank; None keeps everything."""
        return rank if isinstance(rank, Truncation) else cls(rank)

    def count(self, variances: Array, dropped: float = 0.0) -> int:
        """How many of these `variances` (d,), largest first, are kept; `dropped` is lost before."""
        keep = len(variances) if self.rank is None else min(self.rank, len(variances))
        if self.fraction is not None and len(variances):
            held = np.cumsum(variances)
            # Rounded sums may miss a fraction of one by a few roundings.
            wanted = self.fraction * (held[-1] + dropped) * (1 - len(held) * EPS)
            keep = min(keep, int(np.searchsorted(held, wanted)) + 1)
        if self.tolerance is not None and len(variances):
            keep = min(keep, int((variances > self.tolerance * variances[0]).sum()))
        return keep


ALL = Truncation()


class Spectrum(NamedTuple):
    """`values` (d,), largest first, of the `directions` (d, D); `dropped`: the others' squares."""

    values: Array
    directions: Array
    dropped: float


def spectrum(
    A: Array,
    truncation: Truncation,
    dropped: float = 0.0,
    least: Array | float = 0.0,
    most: int | None = None,
) -> Spectrum:
    """The orthonormal P (d, D) and values s with A'A = P' diag(s^2) P for A (k, D), largest first.

    P is read off the smaller of AA' and A'A when what is kept stands well above what squaring
    loses, and off a singular value decomposition of A when it does not. Either moves the whole by
    roundings of the largest feature; where features are of unequal scale and nothing is dropped,
    each is moved by roundings of its own instead. `dropped` is a sum of squares that was lost
    before; the fraction of a truncation counts it. Features up to `least` (D,) are nothing, as are
    values that these or rounding alone could make, and any beyond the `most` that A can have.
    """
    scale = scale_of(A) or 1.0
    A = A if scale == 1 else A / scale
    lost, least = dropped / scale / scale, np.broadcast_to(least / scale, A.shape[1])
    sizes = column_norms(A)
    nothing = sizes <= _NOTHING * least
    if sizes[nothing].any():
        A, sizes = np.where(nothing, 0.0, A), np.where(nothing, 0.0, sizes)
    if not sizes.any():
        return Spectrum(np.zeros(0), np.zeros((0, A.shape[1])), 0.0)
    with threads_for(A.size, min(A.shape)):
        values, P, rest = _decomposed(A, truncation, lost, least, most, sizes)
    # A rounding of large features would look like a small one.
    P[:, nothing] = 0
    return Spectrum(values * scale, with_signs(P), rest * scale * scale)


def _decomposed(
    A: Array, truncation: Truncation, lost: float, least: Array, most: int | None, sizes: Array
) -> Spectrum:
    apart = unequal(sizes)
    if not apart or truncation != ALL:
        found = _by_squares(A, truncation, lost, most)
        # What is dropped takes the small features with it.
        if (
            found is not None
            and (found.dropped > 0 or not apart)
            and _seen(found.values, found.directions, least).all()
        ):
            return found
    # On one scale what is nothing shows. Powers of two are exact.
    scales = np.exp2(np.frexp(sizes)[1]) if apart else np.ones(len(sizes))
    rows = orthogonal_rows(_spanning(A / scales, least / scales, most) * scales)
    squares = (rows * rows).sum(axis=1)
    keep = truncation.count(squares, lost)
    values = np.sqrt(squares[:keep])
    return Spectrum(values, rows[:keep] / values[:, None], float(squares[keep:].sum()))


def moved(values: Array, P: Array, dropped: float) -> Array | float:
    """The scatter of each feature, (D,), whose roundings `spectrum` moves it by; or one for all."""
    squares = np.square(values)
    largest = float(squares.max(initial=0.0)) or dropped
    if dropped and squares.min(initial=largest) >= _SQUARED * largest:
        return largest
    own = squares @ np.square(P) + dropped
    # A feature that does not vary is not moved at all.
    return own if unequal(np.sqrt(own)) else np.where(own > 0, largest, 0.0)


def scale_of(A: Array) -> float:
    """What A is to be divided by before it is squared: one, or a power of two, which is exact.

    Zero if A is.
    """
    # Not abs(A).max(): a copy of a large A takes longer than looking at it twice.
    size = max(float(A.max(initial=0.0)), -float(A.min(initial=0.0)))
    if not np.isfinite(size):
        raise InvalidInput("The values are too large for double precision. Scale the data first.")
    return 1.0 if _TINY < size < _HUGE else float(2.0 ** np.frexp(size)[1]) if size else 0.0


def squared(values: Array) -> Array:
    """The squares of `values` (d,), or an error if double precision cannot hold them."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.square(values)
    if len(values) and not np.finfo(float).tiny <= squares[0] < np.inf:
        raise InvalidInput(
            f"The data vary by {values[0]:.1e}, and the square of that is beyond double "
            f"precision. Scale the data first."
        )
    return np.asarray(squares)


def _by_squares(A: Array, truncation: Truncation, lost: float, most: int | None) -> Spectrum | None:
    tall = len(A) > A.shape[1]
    squares, U = linalg.eigh(A.T @ A if tall else A @ A.T, driver="evd", check_finite=False)
    squares, U = squares[::-1][:most].clip(0), U[:, ::-1]
    keep = truncation.count(squares, lost)
    if keep and squares[keep - 1] < _SQUARED * squares[0]:
        return None
    kept = squares[:keep]
    noise = len(squares) * EPS * squares.sum()
    rest = squares[keep:].sum()
    rest = float(rest) if rest > noise else 0.0
    if tall:
        return Spectrum(np.sqrt(kept), np.ascontiguousarray(U[:, :keep].T), rest)
    values = np.sqrt(kept)
    P = (U[:, :keep] / values).T @ A
    if keep and EPS * squares[0] > _ORTHOGONAL * kept[-1]:
        # Small ones give way: the large ones would take the scatter along with them.
        P = P - np.tril(P @ P.T, -1) @ P
        P /= np.linalg.norm(P, axis=1, keepdims=True)
    return Spectrum(values, P, rest)


def _spanning(A: Array, least: Array, most: int | None) -> Array:
    """Rows with the same A'A that are linearly independent, for A (k, D) of columns of one scale.

    Directions that A does not have are left out. The rows are turned ones: what is read off a
    decomposition is ten times less exact.
    """
    found = _by_squares(A, ALL, 0.0, most)
    if found is not None and _seen(found.values, found.directions, least).all():
        return np.asarray(found.values[:, None] * found.directions)
    if len(A) > A.shape[1]:
        A = np.asarray(np.linalg.qr(A, mode="r"))
    try:
        U, values, P = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        # Divide and conquer may fail to converge where plain iteration does not.
        U, values, P = linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
    seen = (values > max(A.shape) * EPS * values[0]) & _seen(values, P, least)
    return np.asarray(U[:, seen][:, :most].T @ A)


def _seen(values: Array, P: Array, least: Array) -> Array:
    """Which values (d,) are more than features that vary by `least` (D,) can make along P."""
    if values[-1:].sum() > np.linalg.norm(least):
        return np.ones(len(values), dtype=bool)
    # In some feature: what is nothing beside one may be all that there is of another.
    return np.asarray((values[:, None] * abs(P) > least).any(axis=1))


def with_signs(P: Array) -> Array:
    """P, its rows turned so that their largest entry is positive, as scikit-learn has them."""
    if len(P) == 0:
        return P
    each, high, low = np.arange(len(P)), P.argmax(axis=1), P.argmin(axis=1)
    above, below = P[each, high], -P[each, low]
    turned = (below > above) | ((below == above) & (low < high))
    P[turned] *= -1
    return P
