"""A pool of unlabelled inputs, and what a model would predict for it once some were labelled.

The covariance of a Gaussian process does not depend on labels. So what a pick does to the variance
of the others is known before its label is: it is the append of a row to the factor, seen from the
pool. The means move with the label; until it is known, a plausible one takes its place.
"""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.linalg import solve_triangular

from knowmore.arrays import Array
from knowmore.concurrency import cached_property
from knowmore.kernels import corner, cross
from knowmore.linalg.threads import threads_for
from knowmore.models import KernelModel
from knowmore.models.covariance import finite

# How many rows of a matrix of the whole pool are processed at a time.
_ROWS = 256


@final
class Pool:
    """Inputs X (u, d) of which some are picked: as if `model` held them, with expected labels.

    rounding : (u,), how much of a variance may be rounding alone
    variance : (u,), sigma_*^2 of all, noise included, and at least `rounding`; of targets as the
        model learns them, normalised if they are
    at, pivots, R : the picks whose rows entered the factor, and what they added to it: it is
        [[L, 0], [Y', L_2]] with Y' = L^-1 K at the picks, L_2 (k, k) from R and the pivots; and
        the half-solved columns of the pool are [L^-1 K; R], R (k, u).
    """

    def __init__(self, model: KernelModel, X: Array) -> None:
        self.model, self.X = model, X
        eps = float(np.finfo(model.covariance.factor.dtype).eps)
        self.rounding = (len(model.examples) + len(X)) * eps * model.covariance.prior(X)
        self.variance = np.maximum(model.covariance.variance(X), self.rounding)
        self.at: list[int] = []
        self.pivots: list[float] = []
        self.R = np.empty((0, len(X)))

    @cached_property
    def mean(self) -> Array:
        """mu^(c), (u, M), with the expected labels of the picks."""
        return self.model.mean(self.X)

    @cached_property
    def _K(self) -> Array:
        """kappa(X_held, X), (n, u)."""
        return self.model.covariance.cross(self.X)

    @cached_property
    def _B(self) -> Array:
        """K~^-1 K, (n, u)."""
        return self.model.covariance.solve(self._K)

    @cached_property
    def _C(self) -> Array:
        """The posterior covariance kappa(X, X) - K' K~^-1 K, (u, u), without noise or picks."""
        covariance, u = self.model.covariance, len(self.X)
        with threads_for(len(self._K) * u, u):
            V = covariance.half_solve(self._K)
            C = finite(covariance.kernel, corner(covariance.kernel, self.X))
            C -= V.T @ V
            return C

    @property
    def precision(self) -> Array:
        """1 / sigma_*^2, (u,); zero for a twin of an example held if there is no noise.

        Nothing can be learnt from such a row: it could not even be added.
        """
        return np.where(self.variance > self.rounding, 1 / self.variance, 0.0)

    def pick(self, p: int, label: int | None) -> None:
        """C <- C - cc' / s and mu <- mu + c (t - mu_p)' / s, s = C_pp + sigma^2; O(n^2 + nu).

        c is the column of the pick p, and t (M,) the target of its expected label, the number of a
        class; None: the means do not move.
        """
        covariance, s = self.model.covariance, self.variance[p]
        if s <= self.rounding[p]:
            return
        b = covariance.solve(self._K[:, [p]])[:, 0]
        k = finite(covariance.kernel, cross(covariance.kernel, self.X, self.X[[p]])[:, 0])
        c = k - b @ self._K - self.R[:, p] @ self.R
        c[p] = s - covariance.noise
        r = c / np.sqrt(s)
        if label is not None:
            t = np.full(self.mean.shape[1], -1.0)
            t[label] = 1.0
            self.mean = self.mean + np.outer(r, (t - self.mean[p]) / np.sqrt(s))
        least = np.maximum(self.rounding, covariance.noise)
        self.variance = np.maximum(self.variance - r**2, least)
        self.at.append(p)
        self.pivots.append(np.sqrt(s))
        self.R = np.vstack([self.R, r])

    def influence(self) -> Array:
        """|K~^-1 k_*|_1 of each, (u,), over the examples held and the picks.

        The rows of the picks are L_2^-T R; those of the examples lose B at the picks times that.
        """
        L_2 = np.tril(self.R[:, self.at].T, -1) + np.diag(self.pivots)
        tail = solve_triangular(L_2.T, self.R) if self.at else self.R
        top = self._B - self._B[:, self.at] @ tail
        return np.asarray(abs(top).sum(axis=0) + abs(tail).sum(axis=0))

    def reach(self) -> Array:
        """The mean of |C| over the pool, (u,): how far the label of each has an effect."""
        parts = (slice(begin, begin + _ROWS) for begin in range(0, len(self.X), _ROWS))
        means = [abs(self._C[i] - self.R[:, i].T @ self.R).mean(axis=1) for i in parts]
        return np.concatenate(means)
