"""What is left of a scatter when rows are taken out of it."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import linalg

from knowmore.arrays import Array
from knowmore.linalg.graded import UNEQUAL, orthogonal_rows, unequal
from knowmore.linalg.spectrum import EPS, scale_of
from knowmore.linalg.threads import threads_for

# What is off by so many times the estimated rounding is wrong.
ROUNDINGS = 64


class Remnant(NamedTuple):
    """What is left within the span of P: P' R' diag(squares) R P, largest first.

    squares (d,), R (d, r) orthonormal rows
    missing : how many directions that the rows left may have are below rounding
    faded : what may be left along these, at most
    beyond : squares of directions that so few rows cannot have
    deficit : by how much more was taken out than was there: squares below zero, and all outside
    excess : what of it rounding does not explain
    mixed : a bound on what the removed rows shared between inside and outside, which is lost
    rounding : what this moved in the scatter of each feature, (D,), or one for all
    """

    squares: Array
    R: Array
    missing: int
    faded: float
    beyond: float
    deficit: float
    excess: float
    mixed: float
    rounding: Array | float

    @classmethod
    def of(
        cls, P: Array, scatter: Array, B: Array, known: Array, most: int, whole: bool
    ) -> Remnant:
        """P' diag(scatter) P - B'B within the span of P (r, D), for rows B (m, D).

        `known` (D,) is the rounding of each feature's scatter so far, and at most `most` directions
        can be left. `whole`: nothing was dropped on either side. A difference is as exact as what
        is taken away, so each direction is measured in units of its own rounding n, where whatever
        is above one is there: with B = G P,

            (diag(scatter) - G'G) / (n n') = V diag(theta) V',   Y = diag(theta)^(1/2) V' diag(n),

        and the remnant is P'Y'YP, however unequal the features.
        """
        # Whatever the scale of the data, the squares are near one.
        unit = scale_of(np.append(np.sqrt(scatter), abs(B).max())) or 1.0
        square = unit * unit
        B, scatter = B / unit, scatter / square
        known = np.broadcast_to(known / square, P.shape[1])
        with threads_for(B.size, len(P)):
            G = B @ P.T
            if whole:
                # Directions are orthogonal to some roundings, which is not enough here.
                G = 2 * G - G @ (P @ P.T)
            out = _outside(P, B, G, known, whole)
            each = sqrt(len(P) + len(B)) * EPS
            noise, moved = _roundings(P, scatter, known + out.rounding, each)
            n = np.sqrt(noise)
            theta, V = linalg.eigh(
                (np.diag(scatter) - G.T @ G) / n / n[:, None], driver="evd", check_finite=False
            )
            theta, V = theta[::-1], V[:, ::-1]
            kept = int((theta[:most] > 1).sum())
            Y = np.sqrt(theta[:kept, None]) * V[:, :kept].T * n
            Y = orthogonal_rows(Y) if unequal(n) else Y
            if whole:
                # What is cut off may be a rounding of one feature and more than that of another.
                cut = (V[:, kept:].T * n) @ P
                moved = np.hypot(moved, abs(theta[kept:]).clip(1) @ np.square(cut))
        squares = (Y * Y).sum(axis=1)
        sizes = noise @ np.square(V)
        faint = (theta > -ROUNDINGS) & (np.arange(len(theta)) < most)
        faint[:kept] = False
        return cls(
            squares * square,
            Y / np.sqrt(squares)[:, None],
            int(faint.sum()),
            float(sizes[faint].sum()) * square,
            float((theta * sizes)[most:].clip(0).sum()) * square,
            (out.scatter - float((theta * sizes)[theta < 0].sum())) * square,
            (out.excess + float(((-theta - ROUNDINGS).clip(0) * sizes).sum())) * square,
            sqrt(float((G * G).sum()) * out.scatter) * square,
            np.hypot(out.rounding, moved) * square,
        )


class _Outside(NamedTuple):
    """The scatter of what is outside a span, what of it is too much, and what it rounds, (D,)."""

    scatter: float
    excess: float
    rounding: Array | float


def _outside(P: Array, B: Array, G: Array, known: Array, whole: bool) -> _Outside:
    """What of the rows B = GP + H is outside the span of P.

    Where nothing was dropped H is the error of P, and what it shares with GP is lost with it: an
    error of the scatter by c h' + h c' for their lengths c and h in each feature, which is at most
    a c c' + h h' / a. With the a that makes both alike that is one more rounding.
    """
    if len(P) == P.shape[1]:
        return _Outside(0.0, 0.0, 0.0)
    if not whole:
        all_ = float((B * B).sum())
        outside = max(all_ - float((G * G).sum()), 0.0)
        rounded = float(known.max()) + sqrt(len(B)) * EPS * all_
        return _Outside(outside, max(outside - ROUNDINGS * rounded, 0.0), 0.0)
    inside = G @ P
    h, c = np.square(B - inside).sum(axis=0), np.square(inside).sum(axis=0)
    seen = (known > 0) & (c > 0)
    a = sqrt(float((h[seen] / known[seen]).sum()) / (float((c[seen] / known[seen]).sum()) or 1.0))
    strange = float((h - ROUNDINGS * known).clip(0).sum())
    return _Outside(float(h.sum()), strange, a * c + h / a if a else 0.0)


def _roundings(P: Array, scatter: Array, known: Array, each: float) -> tuple[Array, Array | float]:
    """How well the scatter is known along each of P (r, D), (r,), and what a split moves, (D,).

    A decomposition moves a scatter by `each` of itself. Where directions are not far apart in this,
    one value, the largest, stands for all: then it is a decomposition of all together.
    """
    largest = each * float(scatter.max(initial=0.0))
    low, high = float(known.min()), float(known.max())
    squares = np.square(P)
    if high + largest <= UNEQUAL**2 * low:
        return np.full(len(P), high + largest), largest * squares.sum(axis=0)
    noise = squares @ known + each * scatter
    if unequal(np.sqrt(noise)):
        return noise, each * (scatter @ squares)
    # A feature is moved as far as the directions have a part in it.
    return np.full(len(P), noise.max(initial=0.0)), largest * squares.sum(axis=0)


def balanced(squares: Array, lost: float) -> tuple[Array, float]:
    """`squares` and what was `lost` beside them; if that is negative, too much was kept.

    Along which directions is not known, so it is taken off all of them.
    """
    if lost >= 0 or len(squares) == 0:
        return squares, max(lost, 0.0)
    kept = float(squares.sum())
    return squares[: len(squares) if kept + lost > 0 else 0] * ((kept + lost) / kept), 0.0
