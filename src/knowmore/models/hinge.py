"""The squared hinge: examples that are right by a margin do not count.

Least squares pulls every score to its target, also that of a picture of another class which is
already far below -1. With many classes these are most of all, and they bend the function. The
squared hinge, max(0, 1 - tf)^2, leaves them alone: for each column the least

    a'Ka / 2 + sum_i w_i max(0, 1 - t_i f_i)^2 / (2 sigma^2),    f = Ka + b,

has coefficients of zero but for the active examples, t_i f_i < 1, which are least squares among
themselves (Chapelle, Training a Support Vector Machine in the Primal, 2007). It is the only
minimum, so it does not depend on how it was found.

Newton's method goes there, each time to what is least for the active ones, but no further than
the objective falls: whole steps can go round in circles. It ends. The curvature of the active ones
is bounded on both sides, so that each step falls by at least a fixed part of the squared slope, and
the slope vanishes; and near the minimum the active ones are those of the minimum, but for some that
are exactly at the margin, whose coefficients are zero either way: the next step is the last.

Leaving out an example that is not active changes nothing; for an active one the closed form of
least squares holds, as long as the others stay as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from knowmore._base import Array, remembered
from knowmore.errors import KnowmoreError
from knowmore.kernels import corner
from knowmore.linalg import Border, eliminated

if TYPE_CHECKING:
    from knowmore.models.kernel_model import KernelModel

# Steps with the factor of all examples before those with the active ones; and of the latter, of
# which a few do, so many that something must be wrong.
_STEPS, _TOO_MANY = 20, 1000


class Hinge(NamedTuple):
    """The minimum for each of M columns.

    A : coefficients, (n, M); zero if an example is not active
    offsets : (M,)
    left : the scores of the examples, each left out, (n, M)
    said : the scores of each example, left out, by the examples of each class: see `Trial`
    """

    A: Array
    offsets: Array
    left: Array
    said: Array


@remembered
def hinge(model: KernelModel) -> Hinge | None:
    """The minimum of the squared hinge for a model; None if its loss is the square."""
    if model.loss == "squared":
        return None
    covariance, T = model.covariance, model.targets.T

    def solve(D: Array) -> Array:
        return eliminated(model.border, D, covariance.solve(D))[0]

    K = np.asarray(corner(covariance.kernel, covariance.X), dtype=float)
    return squared_hinge(K, covariance.noise / covariance.weights, T, solve, bias=model.bias)


def expansion(model: KernelModel) -> tuple[Array, Array]:
    """The coefficients (n, M) and offsets (M,) that the scores of a model are made of."""
    found = hinge(model)
    return model.solution if found is None else (found.A, found.offsets)


class _Column(NamedTuple):
    """A column: its active rows (s,), the inverse of their matrix (s, s), and the border."""

    rows: Array
    P: Array
    border: Border | None

    def solved(self, t: Array) -> tuple[Array, float]:
        """Coefficients (s,) and offset for targets (s,)."""
        a = self.P @ t
        A, b = eliminated(self.border, t[:, None], a[:, None])
        return A[:, 0], float(b[0])

    def diagonal(self) -> Array:
        """The diagonal of the (bordered) inverse, (s,)."""
        d = np.diagonal(self.P)
        return d if self.border is None else self.border.inverse_diagonal(d)


def squared_hinge(
    K: Array, noise: Array, T: Array, solve: Callable[[Array], Array], *, bias: bool
) -> Hinge:
    """The minimum for targets T (n, M) of -1 and 1.

    K : (n, n), without noise; noise : sigma^2 / w, (n,), above zero
    solve : the coefficients (n, M) of least squares for any targets
    """
    F = _relaxed(T, noise, solve)
    A, left, said = np.zeros_like(T), np.empty_like(T), np.empty_like(T)
    offsets = np.zeros(T.shape[1])
    for c, t in enumerate(T.T):
        column = _minimum(K, noise, t, F[:, c], bias=bias)
        rows, indicators = column.rows, (t[column.rows] > 0).astype(float)
        a, offsets[c] = column.solved(t[rows])
        A[rows, c] = a
        own, b = column.solved(indicators)
        left[:, c], said[:, c] = K[:, rows] @ a + offsets[c], K[:, rows] @ own + b
        d = column.diagonal()
        # With a bias the only active example leaves nothing to judge it by.
        known = d > np.finfo(float).eps * np.diagonal(column.P)
        rows, d = rows[known], d[known]
        left[rows, c] = t[rows] - a[known] / d
        said[rows, c] = indicators[known] - own[known] / d
    return Hinge(A, offsets, left, said)


def _relaxed(T: Array, noise: Array, solve: Callable[[Array], Array]) -> Array:
    """Scores (n, M) near the minimum: least squares for targets that follow scores beyond them.

    The squared hinge is the least square over all targets beyond t. Nesterov's steps.
    """
    last, D, k = T, T, 1.0
    F = D - noise[:, None] * solve(D)
    for _ in range(_STEPS):
        beyond = T * np.maximum(T * F, 1)
        following = (1 + np.sqrt(1 + 4 * k * k)) / 2
        D, last, k = beyond + (k - 1) / following * (beyond - last), beyond, following
        F = D - noise[:, None] * solve(D)
    return np.asarray(F)


class _Point(NamedTuple):
    """Coefficients (n,), offset, and how much each score is short of the margin, 1 - tf, (n,)."""

    a: Array
    b: float
    slack: Array

    def towards(self, other: _Point, t: Array, noise: Array) -> _Point:
        """The least on the way to the other one.

        The slope of the objective is linear between the places where an example comes or goes,
        and grows.
        """
        da, db, fall = other.a - self.a, other.b - self.b, self.slack - other.slack
        Kda = t * fall - db
        start, growth = self.a @ Kda, da @ Kda

        def slope(s: float) -> float:
            missed = np.maximum(self.slack - s * fall, 0)
            return float(start + s * growth - fall @ (missed / noise))

        crossing = (self.slack > 0) != (other.slack > 0)
        places = np.unique(np.r_[0.0, self.slack[crossing] / fall[crossing], 1.0])
        rising = bisect_right(places, 0.0, key=slope)
        if rising == len(places):
            return other
        if rising == 0:
            return self
        low, high = places[rising - 1 : rising + 1]
        down, up = slope(low), slope(high)
        s = low + (high - low) * down / (down - up)
        return _Point(self.a + s * da, self.b + s * db, self.slack - s * fall)


def _minimum(K: Array, noise: Array, t: Array, f: Array, *, bias: bool) -> _Column:
    """The active examples at the minimum, from scores (n,) near it.

    It is found if what is least for the active ones leaves them, and no others, active.
    """
    active = t * f < 1
    if not active.any():
        # Any start will do: all examples are active.
        active = np.ones_like(active)
    here: _Point | None = None
    for _ in range(_TOO_MANY):
        if here is not None and not active.any():
            # The rest of the objective, a'Ka / 2, falls towards zero.
            there = _Point(np.zeros_like(t), here.b, 1 - t * here.b)
        else:
            column = _column(K, noise, np.flatnonzero(active), bias=bias)
            there = _least(K, noise, t, column)
            # The minimum, but for those that are at the margin as far as rounding can tell?
            wrong = np.flatnonzero((there.slack > 0) != active)
            if not _beyond_rounding(K, noise, t, there, column, wrong).any():
                return column
        here = there if here is None else here.towards(there, t, noise)
        active = here.slack > 0
    raise KnowmoreError(
        f"The minimum of the squared hinge was not found in {_TOO_MANY} steps. Either the kernel "
        "is not positive semi-definite, or the noise is so small that rounding hides the minimum. "
        "Use a larger noise, or loss='squared'."
    )


def _column(K: Array, noise: Array, rows: Array, *, bias: bool) -> _Column:
    """Least squares of some rows."""
    B = K[np.ix_(rows, rows)]
    B.flat[:: len(B) + 1] += noise[rows]
    P = cho_solve(cho_factor(B, lower=True, check_finite=False), np.eye(len(B)))
    return _Column(rows, P, Border(np.ones(len(rows)), P.sum(axis=1)) if bias else None)


def _least(K: Array, noise: Array, t: Array, column: _Column) -> _Point:
    """The least-squares solution for the active examples of a column."""
    rows, a = column.rows, np.zeros_like(t)
    a[rows], b = column.solved(t[rows])
    slack = 1 - t * (K[:, rows] @ a[rows] + b)
    # Those in the equation are as far from the margin as their coefficient says.
    slack[rows] = noise[rows] * a[rows] * t[rows]
    return _Point(a, b, slack)


def _beyond_rounding(
    K: Array, noise: Array, t: Array, point: _Point, column: _Column, asked: Array
) -> Array:
    """Whether the scores of the rows asked for (m,) are on their side of the margin for sure.

    A residual r of Ba + b = t, found or rounded away, is an error of Pr in the coefficients.
    """
    rows, P, eps = column.rows, column.P, 4 * np.finfo(float).eps
    a, b = point.a[rows], point.b
    B, C = K[np.ix_(rows, rows)], K[np.ix_(asked, rows)]
    na = noise[rows] * a
    r = abs(t[rows] - b - B @ a - na) + eps * (abs(B) @ abs(a) + abs(na) + 1 + abs(b))
    # What is in the equation is known by t - f, that is by CP - I.
    inside = asked[:, None] == rows
    W = C @ P - inside
    error = abs(W) @ r + eps * (abs(C) @ abs(a) + 1 + abs(b))
    if column.border is not None:
        v = P.sum(axis=1)
        db = (abs(v) @ r + abs(a.sum()) + eps * abs(a).sum()) / v.sum()
        error += abs(~inside.any(axis=1) - W.sum(axis=1)) * db
    return np.asarray(abs(point.slack[asked]) > error)
