"""Count, mean and scatter of rows, the difference of two scatters, and their rounding errors."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from knowmore.arguments import check_sparse
from knowmore.arrays import Array, first_not_finite
from knowmore.columns import Names, names_of
from knowmore.errors import InvalidInput, NoExamples
from knowmore.linalg.spectrum import EPS, orthogonal_rows, scale_of, squared, unequal
from knowmore.linalg.threads import threads_for

# Whatever is off by more than this many times the estimated rounding error is wrong.
ROUNDINGS = 64
# A difference of means with a larger relative error is poorly known.
_POOR = 1e-4
# A sparse matrix is made dense this many numbers at a time.
_BLOCK = 2**22


class Rounding(NamedTuple):
    """Estimated rounding errors of each feature, as lengths.

    sums : of the sum of the rows, (D,)
    scatters : of the diagonal of the scatter, (D,). The error of an entry (j, k) is the geometric
        mean of those of j and k, so that small features are known as well as large ones.
    """

    sums: Array = np.zeros(1)
    scatters: Array = np.zeros(1)

    def floor(self, N: int) -> Array:
        """The length up to which a feature of N rows counts as zero, (D,).

        Equal rows differ from their mean by its rounding error. A scatter moves by eps of itself
        when its rows do, and these by eps too.
        """
        return np.hypot(self.sums / sqrt(N), np.sqrt(EPS * self.scatters))

    def plus(self, scatters: Array | float) -> Rounding:
        """With one more error of the scatters, independent of those before."""
        return Rounding(self.sums, np.hypot(self.scatters, scatters))

    def merge(self, other: Rounding, sums: Array, shift: Array, d: Array) -> Rounding:
        """The errors of two sets together, taken as independent, so that their squares add.

        `sums` (D,) is the error of adding the sums, and `shift` (D,) that of the weighted
        difference of the means, d (D,).
        """
        with np.errstate(over="ignore"):
            scatters = shift * (2 * abs(d) + shift) + _cross_error(shift, d)
        if not np.isfinite(scatters).all():
            squared(abs(d).max(keepdims=True))
        both = np.hypot(self.sums, other.sums), np.hypot(self.scatters, other.scatters)
        return Rounding(np.hypot(both[0], sums), np.hypot(both[1], scatters))


EXACT = Rounding()


def _cross_error(shift: Array, d: Array) -> Array:
    """What an error `shift` of d, (D,) each, may do to the products of two features in d d', (D,).

    The error of feature j is multiplied by the whole of feature k: s_j d_k, however well k is
    known. For every r that is within r d d' + s s' / r, whose parts belong to single features. r is
    the largest relative error of d, except for features in which d is poorly known: these take most
    of it themselves.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(shift > 0, shift / abs(d), 0.0)
    poor = relative > _POOR
    r = max(float(relative[~poor].max(initial=EPS)), sqrt(EPS) if poor.any() else 0.0)
    return np.square(d) * r + np.square(shift) / r if shift.any() else np.zeros(len(d))


class Moments(NamedTuple):
    """Count, mean and scatter of N rows, as an `Eigenspace` but with any B, B'B = N S."""

    n_samples: int
    mean: Array
    B: Array
    discarded: float = 0.0
    rounding: Rounding = EXACT
    blurred: float = 0.0
    lost: float = 0.0
    names: Names = None


def moments(X: Any) -> Iterator[Moments]:
    """The moments of the rows of X (N, D); of a sparse X, of one block of rows after the other."""
    names = names_of(X)
    for block in blocks(X):
        with np.errstate(over="ignore", invalid="ignore"):
            mean = block.mean(axis=0)
            B = block - mean
            # A long sum has many rounding errors. The mean of equal numbers needs none.
            shift = np.where((B[0] == B).all(axis=0), B[0], B.mean(axis=0))
            mean += shift
            B -= shift
        rounding = Rounding(EPS * len(block) * abs(mean))
        yield Moments(len(block), mean, B, rounding=rounding, names=names)


def blocks(X: Any) -> Iterator[Array]:
    """X (N, D) as finite float64, a sparse one in dense blocks of rows."""
    is_sparse = sparse.issparse(X)
    check_sparse("X", X)
    X = X.tocsr() if is_sparse else numbers(X)
    if X.ndim != 2:
        raise InvalidInput(f"X has shape {X.shape}, not (N, D). A single row x is x[None].")
    if 0 in X.shape:
        raise NoExamples(f"X has shape {X.shape}: it holds no numbers.")
    size = max(1, _BLOCK // X.shape[1]) if is_sparse else len(X)
    for begin in range(0, X.shape[0], size):
        block = X[begin : begin + size]
        block = numbers(block.toarray()) if is_sparse else block
        if (row := first_not_finite(block)) is not None:
            column = int(np.isfinite(block[row]).argmin())
            raise InvalidInput(
                f"X contains NaN or infinity, first at row {begin + row}, column {column} "
                f"({block[row, column]}). Remove these rows or fill in the values."
            )
        yield block


def numbers(X: Any) -> Array:
    """X as float64; raises InvalidInput unless it consists of plain real numbers."""
    try:
        array = np.asarray(X)
        if array.dtype.kind == "c" or isinstance(X, np.ma.MaskedArray):
            raise TypeError("complex or masked values are not allowed")
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"X is not a table of numbers (N, D): {error}.") from error


class Difference(NamedTuple):
    """A scatter minus that of some rows, within the span of P: P' R' diag(squares) R P.

    squares (d,), largest first; R (d, r) orthonormal rows
    missing : how many directions that the remaining rows may have are below rounding error
    lost : an upper bound of what remains along these
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
    # Whatever the scale of the data, the squares are near one.
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
        theta, V = linalg.eigh(
            (np.diag(scatter) - G.T @ G) / n / n[:, None], driver="evd", check_finite=False
        )
        theta, V = theta[::-1], V[:, ::-1]
        kept = int((theta[:most] > 1).sum())
        Y = np.sqrt(theta[:kept, None]) * V[:, :kept].T * n
        Y = orthogonal_rows(Y) if unequal(n) else Y
        if exact:
            # What is cut off may be a rounding error of one feature and more than that of another.
            cut = (V[:, kept:].T * n) @ P
            error = np.hypot(error, abs(theta[kept:]).clip(1) @ np.square(cut))
    squares = (Y * Y).sum(axis=1)
    sizes = noise @ np.square(V)
    faint = (theta > -ROUNDINGS) & (np.arange(len(theta)) < most)
    faint[:kept] = False
    return Difference(
        squares * square,
        Y / np.sqrt(squares)[:, None],
        int(faint.sum()),
        float(sizes[faint].sum()) * square,
        float((theta * sizes)[kept:].clip(0).sum()) * square,
        (outside - float((theta * sizes)[theta < 0].sum())) * square,
        (too_much + float(((-theta - ROUNDINGS).clip(0) * sizes).sum())) * square,
        sqrt(float((G * G).sum()) * outside) * square,
        np.hypot(spilled, error) * square,
    )


def _outside(
    P: Array, B: Array, G: Array, known: Array, exact: bool
) -> tuple[float, float, Array | float]:
    """What the rows B = GP + H have outside the span of P.

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
    added later it would pass for a real one. Directions made of such features alone go with them.
    Also returns what this removes from the scatter of each feature, (D,).
    """
    gone = squares @ np.square(P) <= known
    if not gone.any():
        return P, squares, np.zeros(1)
    P = np.where(gone, 0.0, P)
    lengths = (P * P).sum(axis=1)
    some = lengths > 0.5
    rows = np.sqrt(squares[some])[:, None] * P[some]
    if lengths[some].min(initial=1.0) < 1 - sqrt(EPS):
        rows = orthogonal_rows(rows)
    left = (rows * rows).sum(axis=1)
    return rows / np.sqrt(left)[:, None], left, squares[~some] @ np.square(P[~some])


def balanced(squares: Array, dropped: float) -> tuple[Array, float]:
    """`squares` and what was `dropped` beside them; if that is negative, too much was kept.

    Along which directions is not known, so it is taken off all of them in proportion.
    """
    if dropped >= 0 or len(squares) == 0:
        return squares, max(dropped, 0.0)
    kept = float(squares.sum())
    return squares[: len(squares) if kept + dropped > 0 else 0] * ((kept + dropped) / kept), 0.0
