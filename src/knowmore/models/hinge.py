"""The squared hinge: examples that are right by a margin do not count.

Least squares pulls every score to its target, also that of a picture of another class which is
already far below -1. With many classes these are most of all, and they bend the function. The
squared hinge, max(0, 1 - tf)^2, leaves them alone: for each column the least

    a'Ka / 2 + sum_i w_i max(0, 1 - t_i f_i)^2 / (2 sigma^2),    f = Ka + b,

has coefficients of zero but for the active examples, t_i f_i < 1, which are least squares among
themselves (Chapelle, Training a Support Vector Machine in the Primal, 2007). It is the only
minimum, so it does not depend on how it was found. Leaving out an example that is not active
changes nothing; for an active one the closed form of least squares holds, as long as the others
stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from knowmore.arrays import Array
from knowmore.linalg import Border

# Steps with the factor of all examples before those with the active ones, and of the latter.
_STEPS, _REFINEMENTS = 20, 50


class Hinge(NamedTuple):
    """The minimum for each of M columns.

    A : coefficients, (n, M); zero if an example is not active
    offsets : (M,)
    left : the scores of the examples, each left out, (n, M)
    said : what the examples of each class say of each example, left out, (n, M): see `Trial`
    """

    A: Array
    offsets: Array
    left: Array
    said: Array


class _Column(NamedTuple):
    """One column: the active rows (s,), the inverse of their matrix (s, s), and its border."""

    rows: Array
    P: Array
    border: Border | None

    def solved(self, t: Array) -> tuple[Array, float]:
        """Coefficients (s,) and offset for targets (s,)."""
        a = self.P @ t
        if self.border is None:
            return a, 0.0
        A, b = self.border.eliminated(t[:, None], a[:, None])
        return A[:, 0], float(b[0])

    def diagonal(self) -> Array:
        """That of the (bordered) inverse, (s,)."""
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
        column, f = _minimum(K, noise, t, F[:, c], bias=bias)
        rows, indicators = column.rows, (t[column.rows] > 0).astype(float)
        a, offsets[c] = column.solved(t[rows])
        A[rows, c] = a
        own, b = column.solved(indicators)
        left[:, c], said[:, c] = f, K[:, rows] @ own + b
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


def _minimum(K: Array, noise: Array, t: Array, f: Array, *, bias: bool) -> tuple[_Column, Array]:
    """The active examples at the minimum, and the scores (n,), from scores near it.

    Newton's method: the minimum is found if what is least for the active ones leaves them active.
    """
    active = t * f < 1
    for _ in range(_REFINEMENTS):
        # Without active examples any would do: all are.
        rows = np.flatnonzero(active) if active.any() else np.arange(len(t))
        B = K[np.ix_(rows, rows)]
        B.flat[:: len(B) + 1] += noise[rows]
        P = cho_solve(cho_factor(B, lower=True, check_finite=False), np.eye(len(B)))
        border = Border(np.ones(len(rows)), P.sum(axis=1)) if bias else None
        column = _Column(rows, P, border)
        a, b = column.solved(t[rows])
        f = K[:, rows] @ a + b
        # Those in the equation are as far from the margin as their coefficient says.
        slack = np.where(active, 0.0, 1 - t * f)
        slack[rows] = noise[rows] * a * t[rows]
        after = slack > 0
        if np.array_equal(after, active):
            break
        active = after
    return column, f
