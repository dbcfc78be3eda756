"""How the rows of one class lie around their mean: what the coefficient of Ledoit and Wolf needs.

O. Ledoit and M. Wolf, A well-conditioned estimator for large-dimensional covariance matrices, J.
Multivariate Analysis 2004. Their coefficient asks for the covariance and for the sum of |x - m|^4.
All is kept around the mean, so that no digits are lost where rows lie far from zero. When classes
meet, the mean moves by some d; with e = x - m, S = sum e e' and t = sum |e|^2 e,

    sum |e + d|^2 (e + d) = t + tr(S) d + 2 S d + n |d|^2 d,
    sum |e + d|^4         = sum |e|^4 + 4 d't + 4 d'S d + 2 tr(S) |d|^2 + n |d|^4.

Rows that are taken out count negatively; the identities stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import NamedTuple, final

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.linalg import Truncation
from knowmore.linalg.products import eigh, product
from knowmore.linalg.spectrum import EPS, spectrum


@final
@dataclass(frozen=True, eq=False)
class Spread:
    """Rows of one class, each counted as often as its weight p says, by sums around their mean.

    count : n = sum p
    mean : m, (D,)
    lengths, axes : theta (k,) and P (k, D) with the scatter sum p e e' = P' diag(theta) P
    third : sum p |e|^2 e, (D,)
    fourth : sum p |e|^4
    rounding : how far roundings may have moved `fourth`, an estimate. A fourth power loses its
        digits soon: a row ten thousand times as far out as the others, learnt and taken out again,
        leaves four of them.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 3))
    >>> a, b = Spread.of(X[:5], np.ones(5)), Spread.of(X[5:], np.ones(4))
    >>> bool(np.isclose(a.merge(b).coefficient, Spread.of(X, np.ones(9)).coefficient))
    True
    """

    count: float
    mean: Array
    lengths: Array
    axes: Array
    third: Array
    fourth: float
    rounding: float = 0.0

    @classmethod
    def of(cls, X: Array, p: Array) -> Spread:
        """The spread of the rows X (n, D) with weights p (n,)."""
        X, p = X[p > 0], p[p > 0]
        mean = p @ X / p.sum()
        E = X - mean
        values, P, _ = spectrum(np.sqrt(p)[:, None] * E, Truncation())
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            squares = (E * E).sum(axis=1)
            third, fourth = (p * squares) @ E, _representable(float(p @ squares**2), values)
        return cls(float(p.sum()), mean, values**2, P, third, fourth, EPS * fourth)

    def merge(self, other: Spread, sign: int = 1) -> Spread:
        """The rows of both; with `sign` -1 those of `other` are taken out."""
        count = self.count + sign * other.count
        mean = (self.count * self.mean + sign * other.count * other.mean) / count
        one, two = self._around(mean), other._around(mean)
        d = np.sqrt(self.count * other.count / count) * (self.mean - other.mean)
        rows = np.vstack([np.sqrt(other.lengths)[:, None] * other.axes, d])
        lengths, axes = self._with(rows) if sign > 0 else self._without(rows)
        fourth = _representable(one.fourth + sign * two.fourth, np.sqrt(lengths))
        rounding = hypot(self.rounding, other.rounding, EPS * (one.size + two.size))
        return Spread(count, mean, lengths, axes, one.third + sign * two.third, fourth, rounding)

    @property
    def trace(self) -> float:
        """sum p |e|^2."""
        return float(self.lengths.sum())

    @property
    def coefficient(self) -> float:
        """How much of the covariance Ledoit and Wolf replace by a multiple of I, zero to one.

        beta / delta, where beta = (mean |e|^4 - |S|^2) / n estimates the error of the covariance
        S = (1/n) sum p e e', and delta = |S - (tr S / D) I|^2 is its distance from the target.
        One feature is its own target: there is nothing to replace.
        """
        beta, delta = self._error_and_distance
        return beta / max(beta, delta) if beta > 0 else 0.0

    @property
    def unsure(self) -> float:
        """How far roundings may have moved the coefficient, at most one; an estimate."""
        if len(self.mean) == 1:
            return 0.0
        error, larger = self.rounding / self.count**2, max(self._error_and_distance)
        return error / max(error, larger) if error > 0 else 0.0

    @property
    def _error_and_distance(self) -> tuple[float, float]:
        """beta and delta."""
        n, D = self.count, len(self.mean)
        if D == 1:
            return 0.0, 0.0
        values = self.lengths / n
        mean = values.sum() / D
        beta = max(float(self.fourth / n - values @ values) / n, 0.0)
        return beta, float(((values - mean) ** 2).sum() + (D - len(values)) * mean**2)

    def _around(self, centre: Array) -> _Moments:
        """The third and fourth moments around another centre."""
        n, t, trace, d = self.count, self.third, self.trace, self.mean - centre
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            Sd, square = self.axes.T @ (self.lengths * (self.axes @ d)), d @ d
            third = t + trace * d + 2 * Sd + n * square * d
            even = self.fourth + 4 * d @ Sd + 2 * trace * square + n * square**2
            odd = 4 * d @ t
        return _Moments(third, float(even + odd), float(even + abs(odd)))

    def _with(self, rows: Array) -> tuple[Array, Array]:
        """The scatter and that of these rows, decomposed."""
        own = np.sqrt(self.lengths)[:, None] * self.axes
        values, P, _ = spectrum(np.vstack([own, rows]), Truncation())
        return values**2, P

    def _without(self, rows: Array) -> tuple[Array, Array]:
        """The scatter without that of these rows, decomposed, within its own span."""
        G = product(rows, self.axes.T)
        squares, R = eigh(np.diag(self.lengths) - product(G.T, G))
        # Whether the rows were in is for the scatter of all rows to say.
        left = squares > len(squares) * EPS * self.lengths.max(initial=0.0)
        return squares[left][::-1], R[:, left].T[::-1] @ self.axes


class _Moments(NamedTuple):
    """Third and fourth moments; `size`: of the terms that the fourth is a sum of."""

    third: Array
    fourth: float
    size: float


def _representable(fourth: float, values: Array) -> float:
    """Complain if the fourth powers of the data are beyond double precision.

    Where nothing is left but rounding, a sum of fourth powers may fall below zero by as much.
    """
    if not np.isfinite(fourth) or (len(values) and values[0] ** 4 < np.finfo(float).tiny):
        raise InvalidInput(
            f"The rows of a class vary by {values[:1].sum():.1e}, and the fourth power of that, "
            f"which shrinkage='ledoit-wolf' needs, is beyond double precision. Scale the data "
            f"first, or give a number."
        )
    return max(fourth, 0.0)
