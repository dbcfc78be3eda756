"""The classes of labelled rows, which merge and split: the second step of Kim et al.

`ClassMeans` holds counts and means. `Spread` holds what the coefficient of Ledoit and Wolf needs of
one class (O. Ledoit and M. Wolf, A well-conditioned estimator for large-dimensional covariance
matrices, J. Multivariate Analysis 2004): the covariance and the sum of |x - m|^4. All sums are
around the mean, so that no digits are lost where rows lie far from zero. When classes merge, the
mean moves by some d; with e = x - m, S = sum e e' and t = sum |e|^2 e,

    sum |e + d|^2 (e + d) = t + tr(S) d + 2 S d + n |d|^2 d,
    sum |e + d|^4         = sum |e|^4 + 4 d't + 4 d'S d + 2 tr(S) |d|^2 + n |d|^4.

Rows that are removed count negatively; the identities stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot
from typing import final

import numpy as np

from knowmore._base import Array, Frozen
from knowmore.errors import InvalidInput
from knowmore.linalg import eigh, product
from knowmore.subspaces.eigenspace import Eigenspace
from knowmore.subspaces.scatter import Mean
from knowmore.subspaces.spectrum import EPS, Truncation, spectrum


@final
@dataclass(frozen=True, eq=False)
class ClassMeans(Frozen):
    """Step 2: how many rows each class has, and their mean.

    names (C,) sorted, counts (C,), means (C, D), and what rounding took off these, `means_rest`.
    Soft labels give fractions of rows. The scatter between classes,
    sum_j n_j (m_j - mu)(m_j - mu)', follows from them, so that merging and splitting it needs no
    formula of its own: the one of the paper is what comes out. `spreads`, one for each class, are
    kept if the shrinkage is to be estimated.
    """

    names: Array
    counts: Array
    means: Array
    rounding: float = 0.0
    spreads: tuple[Spread, ...] | None = None
    means_rest: Array = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def of(cls, X: Array, Y: Array, names: Array, spreads: bool = False) -> ClassMeans:
        """n_j = sum_x p_j(x) and m_j = sum_x p_j(x) x / n_j; Y (n, C) has p_j(x) in [0, 1]."""
        counts = Y.sum(axis=0)
        seen = counts > 0
        counts, Y = counts[seen], Y[:, seen]
        each = tuple(Spread.of(X, p) for p in Y.T) if spreads else None
        mean, E = Mean.of(X)
        means, rest = mean.moved((Y.T @ E) / counts[:, None])
        return cls(names[seen], counts, means, EPS * len(X), each, rest)

    def merge(self, other: ClassMeans, sign: int = 1) -> ClassMeans:
        """The classes of both; a `sign` of -1 removes the rows of `other`."""
        names = np.union1d(self.names, other.names)
        (own, means), (added, others) = self.among(names), other.among(names)
        counts = own + sign * added
        # Sums of soft labels leave a few rounding errors where nothing remains.
        rounding = self.rounding + other.rounding + EPS * max(self.counts.sum(), other.counts.sum())
        if counts.min() < -4 * rounding:
            worst = names[counts.argmin()]
            held, removed = (part.counts[part.names == worst].sum() for part in (self, other))
            raise InvalidInput(
                f"More rows of class {worst.item()!r} are to be removed than there are: "
                f"{removed:g} of {held:g}. Remove only rows that were learnt, with their labels."
            )
        left = counts > 4 * rounding
        n, k = own[left, None], sign * added[left, None]
        one, two = (Mean(each.value[left], each.rest[left]) for each in (means, others))
        value, rest = one.merge(n, two, k)
        spreads = self._spreads(other, sign, names[left])
        return ClassMeans(names[left], counts[left], value, rounding, spreads, rest)

    def among(self, names: Array) -> tuple[Array, Mean]:
        """The counts (C,) and the means (C, D) of the classes `names`, zero for others."""
        at = np.searchsorted(names, self.names)
        counts, means = np.zeros(len(names)), np.zeros((2, len(names), self.means.shape[1]))
        counts[at], means[:, at] = self.counts, np.broadcast_arrays(*self.centres)
        return counts, Mean(*means)

    def _spreads(self, other: ClassMeans, sign: int, names: Array) -> tuple[Spread, ...] | None:
        """The spreads of the classes `names` after a merge, if both sides have them."""
        if self.spreads is None or other.spreads is None:
            return None
        left = names.tolist()
        spreads = dict(zip(self.names.tolist(), self.spreads, strict=True))
        for name, spread in zip(other.names.tolist(), other.spreads, strict=True):
            if name in left:
                spreads[name] = spreads[name].merge(spread, sign) if name in spreads else spread
        return tuple(spreads[name] for name in left)

    @property
    def centres(self) -> Mean:
        """The class means, to twice the digits of a double."""
        return Mean(self.means, self.means_rest)

    def eigenspace(self, total: Eigenspace) -> Eigenspace:
        """The model {N, mu, Q, Delta} of the scatter between classes, S_B = N Q' Delta Q."""
        N = total.n_samples
        values, Q, *_ = spectrum(self.rows(total.centre), Truncation(max(len(self.names) - 1, 0)))
        return Eigenspace(N, total.mean, Q, values**2 / N, mean_rest=total.mean_rest)

    def rows(self, centre: Mean) -> Array:
        """B (C, D) with B'B = S_B, the scatter between the classes around the `centre`."""
        return np.asarray(np.sqrt(self.counts)[:, None] * (self.centres - centre))


@final
@dataclass(frozen=True, eq=False)
class Spread(Frozen):
    """The rows of one class, each counted with its weight p, by sums around their mean.

    count : n = sum p
    mean : m, (D,), and what rounding took off it, `mean_rest`
    lengths, axes : theta (k,) and P (k, D) with the scatter sum p e e' = P' diag(theta) P
    third : sum p |e|^2 e, (D,)
    fourth : sum p |e|^4
    rounding : the estimated rounding error of `fourth`. A fourth power loses its digits soon: a row
        ten thousand times as far out as the others, learnt and removed again, leaves four of them.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 3))
    >>> a, b = Spread.of(X[:5], np.ones(5)), Spread.of(X[5:], np.ones(4))
    >>> bool(np.allclose(a.merge(b).shrinkage, Spread.of(X, np.ones(9)).shrinkage))
    True
    """

    count: float
    mean: Array
    lengths: Array
    axes: Array
    third: Array
    fourth: float
    rounding: float = 0.0
    mean_rest: Array = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def of(cls, X: Array, p: Array) -> Spread:
        """The spread of the rows X (n, D) with weights p (n,)."""
        X, p = X[p > 0], p[p > 0]
        mean, E = Mean.of(X, p)
        values, P, *_ = spectrum(np.sqrt(p)[:, None] * E)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            squares = (E * E).sum(axis=1)
            third, fourth = (p * squares) @ E, _representable(float(p @ squares**2), values)
        sums = third, fourth, EPS * fourth
        return cls(float(p.sum()), mean.value, values**2, P, *sums, mean.rest)

    def merge(self, other: Spread, sign: int = 1) -> Spread:
        """The rows of both; a `sign` of -1 removes the rows of `other`."""
        count = self.count + sign * other.count
        mean = self.centre.merge(self.count, other.centre, sign * other.count)
        d = np.sqrt(self.count * other.count / count) * (self.centre - other.centre)
        lengths, axes = self._scatter(np.vstack([other.rows, d]), sign)
        third, fourth, size = self.around(mean)
        other_third, other_fourth, other_size = other.around(mean)
        fourth = _representable(fourth + sign * other_fourth, np.sqrt(lengths))
        rounding = hypot(self.rounding, other.rounding, EPS * (size + other_size))
        sums = third + sign * other_third, fourth, rounding
        return Spread(count, mean.value, lengths, axes, *sums, mean.rest)

    @property
    def centre(self) -> Mean:
        """The mean, to twice the digits of a double."""
        return Mean(self.mean, self.mean_rest)

    @property
    def trace(self) -> float:
        """sum p |e|^2."""
        return float(self.lengths.sum())

    @property
    def shrinkage(self) -> tuple[float, float]:
        """How much of the covariance Ledoit and Wolf replace by a multiple of I, and its error.

        The first is beta / delta, zero to one, where beta = (mean |e|^4 - |S|^2) / n estimates the
        error of the covariance S = (1/n) sum p e e', and delta = |S - (tr S / D) I|^2 is its
        distance from the target. One feature is its own target: there is nothing to replace. The
        second is the estimated rounding error of the first, at most one.
        """
        n, D, values = self.count, len(self.mean), self.lengths / self.count
        if D == 1:
            return 0.0, 0.0
        mean = values.sum() / D
        beta = max(float(self.fourth / n - values @ values) / n, 0.0)
        delta = float(((values - mean) ** 2).sum() + (D - len(values)) * mean**2)
        coefficient = beta / max(beta, delta) if beta > 0 else 0.0
        error = self.rounding / n**2
        return coefficient, error / max(error, beta, delta) if error > 0 else 0.0

    def around(self, centre: Mean) -> tuple[Array, float, float]:
        """The third and fourth moments around another centre; the size of its terms."""
        n, t, trace, d = self.count, self.third, self.trace, self.centre - centre
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            Sd, square = self.axes.T @ (self.lengths * (self.axes @ d)), d @ d
            third = t + trace * d + 2 * Sd + n * square * d
            even = self.fourth + 4 * d @ Sd + 2 * trace * square + n * square**2
            odd = 4 * d @ t
        return third, float(even + odd), float(even + abs(odd))

    @property
    def rows(self) -> Array:
        """B (k, D) with B'B = S."""
        return np.asarray(np.sqrt(self.lengths)[:, None] * self.axes)

    def _scatter(self, rows: Array, sign: int) -> tuple[Array, Array]:
        """The `lengths` and `axes` with these rows, or without them and within the same span."""
        if sign > 0:
            values, P, *_ = spectrum(np.vstack([self.rows, rows]))
            return values**2, P
        G = product(rows, self.axes.T)
        squares, R = eigh(np.diag(self.lengths) - product(G.T, G))
        # Whether the rows were in is for the scatter of all rows to decide.
        left = squares > len(squares) * EPS * self.lengths.max(initial=0.0)
        return squares[left][::-1], R[:, left].T[::-1] @ self.axes


def _representable(fourth: float, values: Array) -> float:
    """Raise InvalidInput if double precision cannot hold the fourth powers of the data.

    Where nothing but rounding error remains, a sum of fourth powers may fall a little below zero.
    """
    if not np.isfinite(fourth) or (len(values) and values[0] ** 4 < np.finfo(float).tiny):
        raise InvalidInput(
            f"A class varies by {values[:1].sum():.1e}: the fourth power of that, which "
            f"shrinkage='ledoit-wolf' needs, is beyond double precision. Scale the data first."
        )
    return max(fourth, 0.0)
