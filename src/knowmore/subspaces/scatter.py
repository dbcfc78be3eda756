"""Count, mean and scatter of rows, the difference of two scatters, and their rounding errors.

Means have twice the digits of a double. The mean of a column such as 1.7e9 +- 1e-3, in one double,
is off by 1e-7. Merging and splitting multiply the difference of two means by the number of rows, so
that soon nothing else would be seen of the column. A second double has the rest of the mean. Sums
and products keep what they round off (T. J. Dekker, A floating-point technique for extending the
available precision, 1971), so that the mean of all rows held is right after any history.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from knowmore._base import Array, Names, check_sparse, column_names, first_not_finite, real_numbers
from knowmore.errors import InvalidInput, NoExamples
from knowmore.linalg import threads_for
from knowmore.subspaces.spectrum import (
    EPS,
    TOO_LARGE,
    largest_first,
    lengths,
    orthogonal_rows,
    scale_of,
    spectrum,
    squared,
    unequal,
)

# An error of more than this many times the estimated rounding error is a mistake.
ROUNDINGS = 64
# Random histories are off by up to five times the estimated rounding error. A variance that may be
# off by more than this part of itself is poorly known.
_OFF, _PART = 8, 0.01
# A sparse matrix is made dense this many numbers at a time.
_BLOCK = 2**22
# A double without these bits of its 53 has 26.
_LOW = ~np.int64(2**27 - 1)
_Pair = tuple[Any, Any]


# -- means -----------------------------------------------------------------------------------------


class Mean(NamedTuple):
    """The point `value` + `rest`, (D,), or C points, (C, D); `rest` is what rounding took off.

    Examples
    --------
    >>> mean, E = Mean.of(np.array([[1e9], [1e9 + 1e-6], [1e9 + 1e-6]]))
    >>> bool(mean.rest[0] != 0), (E / E.min()).round(6).ravel()
    (True, array([ 1. , -0.5, -0.5]))
    """

    value: Array
    rest: Array = np.zeros(1)

    @classmethod
    def of(cls, X: Array, weights: Array | None = None) -> tuple[Mean, Array]:
        """The mean of the rows of X (n, D), with weights (n,) if any; the rows around it, (n, D).

        Raises InvalidInput if sums are beyond double precision.
        """
        p = None if weights is None else weights / weights.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            about = X.mean(axis=0) if p is None else p @ X
            E = X - about
            # A sum of large numbers has large rounding errors. The mean of equal ones needs none.
            mean = _total(E) / len(X) if p is None else p @ E
            shift = np.where((E[0] == E).all(axis=0), E[0], mean)
            E -= shift
            return _finite(cls(about).moved(shift), len(X)), E

    def merge(self, n: Any, other: Mean, k: Any) -> Mean:
        """The mean of n rows with this mean and k with the `other`; k < 0 removes them.

        n and k may be rounded. Their sum is not, or the error would grow with the distance to zero.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            one, rest = _product(self.value, n)
            two, other_rest = _product(other.value, k)
            both, error = _sum(one, two)
            rests = (rest + n * self.rest) + (other_rest + k * other.rest)
            return _finite(_quotient(_sum(both, error + rests), _sum(n, k)), n + k)

    def moved(self, step: Array) -> Mean:
        """The point, or C points, after a step (D,), or steps (C, D)."""
        return Mean(*_sum(self.value, self.rest + step))

    def __sub__(self, other: Mean) -> Array:
        """The vector from the `other` point to this one, rounded relative to its length."""
        return np.asarray((self.value - other.value) + (self.rest - other.rest))

    def centred(self, X: Array) -> Array:
        """The rows of X (m, D) as seen from this point."""
        return np.asarray((X - self.value) - self.rest)


def _total(E: Array) -> Array:
    """The sum of the rows of E (n, D), (D,).

    Errors of a long sum add up. Here the sums are of about sqrt(n) numbers each.
    """
    parts = 1 << (len(E).bit_length() // 2)
    whole = len(E) // parts * parts
    sums = E[:whole].reshape(parts, -1, E.shape[1]).sum(axis=0).sum(axis=0)
    return np.asarray(sums + E[whole:].sum(axis=0))


def _finite(mean: Mean, n: Any) -> Mean:
    """The mean of n rows; raises InvalidInput if their sum is beyond double precision."""
    if not np.isfinite(n * mean.value).all():
        raise InvalidInput(TOO_LARGE)
    return mean


def _quotient(dividend: _Pair, divisor: _Pair) -> Mean:
    """The quotient of two sums, each with its rest."""
    (value, rest), (n, error) = dividend, divisor
    first = value / n
    product, missing = _product(first, n)
    return Mean(*_sum(first, (((value - product) - missing) + (rest - first * error)) / n))


def _sum(a: Any, b: Any) -> _Pair:
    """a + b and the exact rounding error of it."""
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def _product(a: Array, b: Any) -> _Pair:
    """a b and the rounding error of it, to a rounding error of its own."""
    b = np.asarray(b, dtype=float)
    product = a * b
    (high, low), (left, right) = _halves(a), _halves(b)
    return product, ((high * left - product) + high * right + low * left) + low * right


def _halves(a: Array) -> _Pair:
    """a as the sum of a number of half the digits, and the rest."""
    high = (np.asarray(a).view(np.int64) & _LOW).view(float)
    return high, a - high


# -- scatters --------------------------------------------------------------------------------------


class Rounding(NamedTuple):
    """Estimated rounding errors of each feature, as lengths.

    sums : of the sum of the rows, (D,)
    scatters : of the diagonal of the scatter, (D,). The error of an entry (j, k) is the geometric
        mean of those of j and k, so that small features are known as well as large ones.
    """

    sums: Array = np.zeros(1)
    scatters: Array = np.zeros(1)

    def floor(self, N: int, mean: Array) -> Array:
        """The length up to which a feature of N rows with this mean counts as zero, (D,).

        Numbers that were meant to be equal may differ by a rounding error each. The mean has an
        error of its own. A scatter moves by eps of itself when its rows do, and these by eps too.
        """
        each = np.hypot(EPS * sqrt(N) * abs(mean), self.sums / sqrt(N))
        return np.asarray(np.hypot(each, np.sqrt(EPS * self.scatters)))

    def doubts(self, N: int, mean: Array, scatters: Array) -> Array:
        """By how much each of the scatters (D,) of N rows may be off; zero where that is no more
        than a small part of it, or what rounding the rows themselves explains."""
        known = np.broadcast_to(self.scatters, len(mean))
        poor = _OFF * known > _PART * scatters
        seen = np.sqrt(known) > EPS * sqrt(ROUNDINGS * N) * abs(mean)
        return np.asarray(np.where(poor & seen, _OFF * known, 0.0))

    def plus(self, scatters: Array | float) -> Rounding:
        """The errors with another, independent error of the scatters."""
        return Rounding(self.sums, np.hypot(self.scatters, scatters))

    def merge(self, other: Rounding, sums: Array, shift: Array, d: Array) -> Rounding:
        """The errors of two sets together, taken as independent, so that their squares add.

        `sums` (D,) is the error of adding the sums, and `shift` (D,) that of the weighted
        difference of the means, d (D,). In d d' the error of feature j is multiplied by the whole
        of feature k, s_j d_k. That is within eps d d' + s s' / eps, whose parts belong to single
        features; s is little more than eps d.
        """
        with np.errstate(over="ignore"):
            scatters = shift * (2 * abs(d) + shift) + EPS * np.square(d) + np.square(shift) / EPS
        if not np.isfinite(scatters).all():
            squared(abs(d).max(keepdims=True))
        both = np.hypot(self.sums, other.sums), np.hypot(self.scatters, other.scatters)
        return Rounding(np.hypot(both[0], sums), np.hypot(both[1], scatters))


EXACT = Rounding()


class Moments(NamedTuple):
    """Count, mean and scatter of N rows, as an `Eigenspace` but with any B, B'B = N S."""

    n_samples: int
    centre: Mean
    B: Array
    discarded: float = 0.0
    rounding: Rounding = EXACT
    blurred: float = 0.0
    lost: float = 0.0
    names: Names = None


def moments(X: Any) -> Iterator[Moments]:
    """The moments of the rows of X (N, D); of a sparse X, of one block of rows after the other."""
    names = column_names(X)
    for block in blocks(X):
        mean, B = Mean.of(block)
        rounding = Rounding(EPS * sqrt(len(block)) * lengths(B))
        yield Moments(len(block), mean, B, rounding=rounding, names=names)


def blocks(X: Any) -> Iterator[Array]:
    """X (N, D) as finite float64, a sparse one in dense blocks of rows."""
    is_sparse = sparse.issparse(X)
    check_sparse("X", X)
    X = X.tocsr() if is_sparse else real_numbers("X", X)
    if X.ndim != 2:
        raise InvalidInput(f"X has shape {X.shape}, not (N, D). A single row x is x[None].")
    if 0 in X.shape:
        raise NoExamples(f"X has shape {X.shape}: it holds no numbers.")
    size = max(1, _BLOCK // X.shape[1]) if is_sparse else len(X)
    for begin in range(0, X.shape[0], size):
        block = X[begin : begin + size]
        block = real_numbers("X", block.toarray()) if is_sparse else block
        check_finite("X", block, begin)
        yield block


def check_finite(name: str, rows: Array, begin: int = 0) -> None:
    """Raise InvalidInput unless all values of `rows` (N, D) are finite; they start at `begin`."""
    if (row := first_not_finite(rows)) is not None:
        column = int(np.isfinite(rows[row]).argmin())
        raise InvalidInput(
            f"{name} contains NaN or infinity, first at row {begin + row}, column {column} "
            f"({rows[row, column]}). Remove these rows or fill in the values."
        )


class Difference(NamedTuple):
    """A scatter minus the scatter of some rows, within the span of P: P' R' diag(squares) R P.

    squares (d,), largest first; R (d, r) orthonormal rows
    missing : how many directions that the remaining rows may have are below rounding error
    lost : an upper bound of what remains along these, and of the error along poorly known ones
    cut : squares above zero that are not kept: below rounding error, or more than so few rows have
    deficit : how much more was subtracted than was there: squares below zero, and all outside
    excess : the part of it that rounding does not explain
    mixed : a bound on what the subtracted rows shared between inside and outside, which is lost
    rounding : the error this adds to the scatter of each feature, (D,), or one for all
    """

    squares: Array
    R: Array
    missing: int
    lost: float
    cut: float
    deficit: float
    excess: float
    mixed: float
    rounding: Array | float


def subtract(
    P: Array, scatter: Array, B: Array, known: Array, most: int, exact: bool
) -> Difference:
    """P' diag(scatter) P - B'B within the span of P (r, D), for rows B (m, D).

    `known` (D,) is the rounding error of each feature's scatter so far; at most `most` directions
    can remain. `exact`: nothing was dropped on either side. A difference is as exact as what is
    subtracted, so each direction is measured in units of its own rounding error n, where whatever
    is above one is real: with B = G P,

        (diag(scatter) - G'G) / (n n') = V diag(theta) V',   Y = diag(theta)^(1/2) V' diag(n),

    and the difference is P'Y'YP, however unequal the features.
    """
    # At any scale of the data, the squares are near one.
    unit = scale_of(np.append(np.sqrt(scatter), abs(B).max())) or 1.0
    square = unit * unit
    B, scatter = B / unit, scatter / square
    known = np.broadcast_to(known / square, P.shape[1])
    with threads_for(B.size, len(P)):
        G = B @ P.T
        if exact:
            # Directions are orthogonal to some rounding errors, which is not enough here.
            G = 2 * G - G @ (P @ P.T)
        outside, too_much, spilled = _outside(P, B, G, known, exact)
        relative = sqrt(len(P) + len(B)) * EPS
        noise, error = _errors(P, scatter, known + spilled, relative)
        n = np.sqrt(noise)
        theta, V = largest_first((np.diag(scatter) - G.T @ G) / n / n[:, None])
        kept = int((theta[:most] > 1).sum())
        Y = np.sqrt(theta[:kept, None]) * V[:, :kept].T * n
        Y = orthogonal_rows(Y) if unequal(n) else Y
        if exact:
            # A direction below rounding error in one feature may be above it in another.
            cut = (V[:, kept:].T * n) @ P
            error = np.hypot(error, abs(theta[kept:]).clip(1) @ np.square(cut))
    squares = (Y * Y).sum(axis=1)
    sizes = noise @ np.square(V)
    seen = (theta > -ROUNDINGS) & (np.arange(len(theta)) < most)
    return Difference(
        squares * square,
        Y / np.sqrt(squares)[:, None],
        int(seen[kept:].sum()),
        _OFF * float(sizes[seen & (theta < _OFF / _PART)].sum()) * square,
        float((theta * sizes)[kept:].clip(0).sum()) * square,
        (outside - float((theta * sizes)[theta < 0].sum())) * square,
        (too_much + float(((-theta - ROUNDINGS).clip(0) * sizes).sum())) * square,
        sqrt(float((G * G).sum()) * outside) * square,
        np.hypot(spilled, error) * square,
    )


def _outside(
    P: Array, B: Array, G: Array, known: Array, exact: bool
) -> tuple[float, float, Array | float]:
    """The part H of the rows B = GP + H, outside the span of P.

    Its scatter, how much of that rounding does not explain, and the error it adds to each feature's
    scatter, (D,). Where nothing was dropped H is the error of P, and what it shares with GP is lost
    with it: an error of the scatter by c h' + h c' for their lengths c and h in each feature, which
    is at most a c c' + h h' / a. With the a that makes both alike that is one more rounding error.
    """
    if len(P) == P.shape[1]:
        return 0.0, 0.0, 0.0
    if not exact:
        total = float((B * B).sum())
        outside = max(total - float((G * G).sum()), 0.0)
        rounding = float(known.max()) + sqrt(len(B)) * EPS * total
        return outside, max(outside - ROUNDINGS * rounding, 0.0), 0.0
    inside = G @ P
    h, c = np.square(B - inside).sum(axis=0), np.square(inside).sum(axis=0)
    seen = (known > 0) & (c > 0)
    a = sqrt(float((h[seen] / known[seen]).sum()) / (float((c[seen] / known[seen]).sum()) or 1.0))
    too_much = float((h - ROUNDINGS * known).clip(0).sum())
    return float(h.sum()), too_much, a * c + h / a if a else 0.0


def _errors(P: Array, scatter: Array, known: Array, relative: float) -> tuple[Array, Array | float]:
    """The error of the scatter along each of P (r, D), (r,), and what a split adds to it, (D,).

    A decomposition perturbs a scatter by `relative` of itself. Where these errors are alike, the
    largest stands for all: then one decomposition does for all directions.
    """
    squares = np.square(P)
    noise = squares @ known + relative * scatter
    if unequal(np.sqrt(noise)):
        return noise, relative * (scatter @ squares)
    largest = relative * scatter.max(initial=0.0)
    # A feature is perturbed as far as the directions have a part in it.
    return np.full(len(P), noise.max(initial=0.0)), largest * squares.sum(axis=0)


def without_noise(P: Array, squares: Array, known: Array) -> tuple[Array, Array, Array]:
    """Directions P (d, D) and squares (d,) without features that are rounding error alone.

    Such a feature has no more scatter than its error, `known` (D,), and beside features that are
    added later it would pass for a real one. What the directions have in other features stays,
    unless it is rounding error in all of them. Also returns what this removes from the scatter of
    each feature, (D,).
    """
    gone = squares @ np.square(P) <= known
    if not gone.any():
        return P, squares, np.zeros(1)
    values, P, *_ = spectrum(np.where(gone, 0.0, np.sqrt(squares)[:, None] * P))
    scatters = np.square(values)[:, None] * np.square(P)
    real = (scatters > known).any(axis=1)
    return P[real], np.square(values[real]), scatters[~real].sum(axis=0)


def balanced(squares: Array, dropped: float) -> tuple[Array, float]:
    """`squares` and what was `dropped` beside them; if that is negative, too much was kept.

    Along which directions is not known, so it is taken off all of them in proportion.
    """
    if dropped >= 0 or len(squares) == 0:
        return squares, max(dropped, 0.0)
    kept = float(squares.sum())
    return squares[: len(squares) if kept + dropped > 0 else 0] * ((kept + dropped) / kept), 0.0
