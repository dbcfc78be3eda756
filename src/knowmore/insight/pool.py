"""A pool of unlabelled inputs, and what a model would say of it once some of them were labelled.

The covariance of a Gaussian process does not depend on labels. So what a pick does to the variance
of the others is known before its label is: it is the append of a row to the factor, seen from the
pool. The means move with the label; until it comes, a plausible one can stand in for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.linalg import solve_triangular

from knowmore.arrays import Array
from knowmore.concurrency import cached_property
from knowmore.kernels import corner, cross
from knowmore.linalg.products import product
from knowmore.models import GP
from knowmore.models.covariance import finite

# Rows of a matrix of the whole pool that are worked on at a time.
_ROWS = 256


@final
@dataclass(frozen=True, eq=False)
class Candidates:
    """Inputs X (u, d) and the model of n examples that is asked about them."""

    model: GP
    X: Array

    @cached_property
    def mean(self) -> Array:
        """mu^(c), (u, M)."""
        return self.model.mean(self.X)

    @cached_property
    def K(self) -> Array:
        """kappa(X_held, X), (n, u)."""
        return self.model.covariance.cross(self.X)

    @cached_property
    def B(self) -> Array:
        """K~^-1 K, (n, u)."""
        return self.model.covariance.solve(self.K)

    @cached_property
    def C(self) -> Array:
        """The posterior covariance kappa(X, X) - K' K~^-1 K, (u, u), without noise."""
        covariance = self.model.covariance
        V = covariance.half_solve(self.K)
        C = finite(covariance.kernel, corner(covariance.kernel, self.X))
        C -= product(V.T, V)
        return C

    def column(self, p: int) -> Array:
        """A column of C, (u,), in O(n^2 + nu)."""
        covariance = self.model.covariance
        b = covariance.solve(self.K[:, [p]])[:, 0]
        k = finite(covariance.kernel, cross(covariance.kernel, self.X, self.X[[p]])[:, 0])
        return np.asarray(k - b @ self.K)


@final
@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates of which some are picked: as if these were held, with labels to be expected.

    picked : (u,), which of them are
    rounding : (u,), as much of a variance as may be rounding alone
    variance : (u,), sigma_*^2 of all, the noise included, and no less than that; of targets as the
        model learns them, normalised if they are
    at, pivots, R : the picks whose rows entered the factor, and what they added to it: it is
        [[L, 0], [Y', L_2]] with Y' = L^-1 K at the picks, L_2 (k, k) from R and the pivots; and
        the half-solved columns of the pool are [L^-1 K; R], R (k, u).
    shift : (u, M), what the labels that are expected of the picks add to the means
    """

    candidates: Candidates
    picked: Array
    rounding: Array
    variance: Array
    at: tuple[int, ...]
    pivots: Array
    R: Array
    shift: Array

    @classmethod
    def of(cls, model: GP, X: Array) -> Pool:
        """Nothing is picked yet."""
        u, eps = len(X), float(np.finfo(model.covariance.factor.dtype).eps)
        rounding = (len(model.examples) + u) * eps * model.covariance.prior(X)
        variance = np.maximum(model.covariance.variance(X), rounding)
        nothing = (), np.empty(0), np.empty((0, u)), np.zeros((u, len(model.targets.names)))
        return cls(Candidates(model, X), np.zeros(u, dtype=bool), rounding, variance, *nothing)

    @cached_property
    def mean(self) -> Array:
        """mu^(c), (u, M), with the labels that are expected of the picks."""
        return np.asarray(self.candidates.mean + self.shift)

    @property
    def precision(self) -> Array:
        """1 / sigma_*^2, (u,); zero for a twin of what is held if there is no noise.

        Nothing is left to be learnt from such a row: it could not even be added.
        """
        return np.where(self.variance > self.rounding, 1 / self.variance, 0.0)

    def pick(self, p: int, target: Array | None = None) -> Pool:
        """C <- C - cc' / s and mu <- mu + c (t - mu_p)' / s, s = C_pp + sigma^2; O(u) from c on.

        c is the column of the pick p, and t (M,) the target that is expected of it; None: its mean.
        """
        picked = self.picked.copy()
        picked[p] = True
        noise, s = self.candidates.model.covariance.noise, self.variance[p]
        if s <= self.rounding[p]:
            return replace(self, picked=picked)
        c = self.candidates.column(p) - self.R[:, p] @ self.R
        c[p] = s - noise
        r = c / np.sqrt(s)
        shift = self.shift
        if target is not None:
            shift = shift + np.outer(r, (target - self.mean[p]) / np.sqrt(s))
        return replace(
            self,
            picked=picked,
            variance=np.maximum(self.variance - r**2, np.maximum(self.rounding, noise)),
            at=(*self.at, p),
            pivots=np.append(self.pivots, np.sqrt(s)),
            R=np.vstack([self.R, r]),
            shift=shift,
        )

    def influence(self) -> Array:
        """|K~^-1 k_*|_1 of each, (u,), over the examples held and the picks.

        The rows of the picks are L_2^-T R; those of the examples lose B at the picks times that.
        """
        B = self.candidates.B
        L_2 = np.tril(self.R[:, list(self.at)].T, -1) + np.diag(self.pivots)
        tail = solve_triangular(L_2.T, self.R) if self.at else self.R
        top = B - B[:, list(self.at)] @ tail
        return np.asarray(abs(top).sum(axis=0) + abs(tail).sum(axis=0))

    def reach(self) -> Array:
        """The mean of |C| over the pool, (u,): how far the label of each is felt."""
        C, u = self.candidates.C, self.R.shape[1]
        parts = (slice(begin, begin + _ROWS) for begin in range(0, u, _ROWS))
        return np.concatenate([abs(C[i] - self.R[:, i].T @ self.R).mean(axis=1) for i in parts])
