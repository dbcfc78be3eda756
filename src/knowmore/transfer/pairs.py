"""Two dependent Gaussian processes, for all rho at once.

The target task has n_T examples T, the support task n_S examples S. Their covariance under the
kernel of eq. (3), Rodner and Denzler, is

    K~(rho) = [[A, rho C], [rho C', B]],  A = K_TT + sigma^2 I,  B = K_SS + sigma^2 I,  C = K_TS

With A = LL', B = RR' and the singular value decomposition L^-1 C R^-T = U s V' (s are the
canonical correlations of the tasks, 0 <= s < 1), K~(rho) splits into an identity and 2 x 2 blocks

    [[1, rho s_j], [rho s_j, 1]],  inverse [[1, -rho s_j], [-rho s_j, 1]] delta_j,
    delta_j = 1 / (1 - rho^2 s_j^2).

So one small decomposition per support task gives the answers for every rho, and no matrix is
factorised again. The process has a mean that need not be zero: t are the labels y less that prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from knowmore._base import Array, Frozen, derived
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import lost_pivots, product, svd
from knowmore.models import KernelModel, bound, log_marginal_likelihood, sum_rounding


@final
@dataclass(frozen=True, eq=False)
class Pair(Frozen):
    """A target and a support task: answers for one rho or an array of them.

    target, support : the models of each task by itself, at the same noise
    positive : the column of the target's positive class. A support's last column is its positive
        class; a support without background has one column only.
    s : the canonical correlations (m,), m the size of the smaller task
    T, S : L^-T U (n_T, m) and R^-T V (n_S, m)
    prior : the mean of the process; the tasks' targets are the labels less that

    An answer for rho of shape (...) has shape (..., n), n = n_T + n_S with the target first,
    unless it is about the target alone.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.examples import Examples
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models import one_vs_all
    >>> target = Examples.of(np.array([[0.0], [1.2]]), np.array(["yes", "no"]))
    >>> support = Examples.of(np.array([[-0.5]]), np.array(["yes"]))
    >>> def model(examples):
    ...     return KernelModel.of(RBF(), 0.5, examples, one_vs_all, Cholesky())
    >>> C = RBF()(target.X, support.X)
    >>> pair = Pair.of(model(target), model(support), C, positive=1)
    >>> mean, variance = pair.leave_one_out(np.array([0.0, 1.0]))
    >>> mean.round(2)
    array([[-0.32,  0.32],
           [ 0.31,  0.3 ]])
    """

    target: KernelModel
    support: KernelModel
    positive: int
    s: Array
    T: Array
    S: Array
    prior: float = 0.0

    @classmethod
    def of(
        cls,
        target: KernelModel,
        support: KernelModel,
        C: Array,
        positive: int,
        rho: float = 1.0,
        prior: float = 0.0,
    ) -> Pair:
        """The pair of two tasks with kernel values C (n_T, n_S) between them.

        rho : the largest that will be asked for. Raises NotPositiveDefinite if K~(rho) is singular.
        """
        A, B = target.covariance.factor, support.covariance.factor
        U, s, Vt = svd(B.forward(A.forward(C).T).T)
        T, S = A.backward(U), B.backward(Vt.T)
        r = rho * s[0]
        if lost_pivots((1 - r) * (1 + r), 1.0, sum(C.shape), float):
            row = len(C) + int(abs(S[:, 0]).argmax())
            raise NotPositiveDefinite(f"The pivot of row {row} vanishes at rho = {rho:g}.", row)
        return cls(target, support, positive, s, T, S, prior)

    @derived
    def t(self) -> Array:
        """The target's labels less the prior, (n_T,)."""
        return np.asarray(self.target.targets.T[:, self.positive])

    @derived
    def y(self) -> Array:
        """The target's labels, 1 for the positive class and -1 for the other, (n_T,)."""
        return np.where(self.t + self.prior > 0, 1.0, -1.0)

    @derived
    def _projected(self) -> tuple[Array, Array]:
        """p = T't_T and q = S't_S, (m,)."""
        return self.T.T @ self.t, self.S.T @ self.support.targets.T[:, -1]

    @derived
    def diagonal(self) -> Array:
        """The diagonal of K~, the same for all rho, (n,)."""
        return np.concatenate([self.target.covariance.diagonal, self.support.covariance.diagonal])

    @derived
    def _squares(self) -> Array:
        """The squares of T and S, (m, n)."""
        return np.asarray(np.square(np.vstack([self.T, self.S]).T))

    def _correlation(self, rho: npt.ArrayLike) -> tuple[Array, Array]:
        """rho s and delta, (..., m)."""
        r = np.asarray(rho, dtype=float)[..., None] * self.s
        return r, 1 / ((1 - r) * (1 + r))

    def coefficients(self, rho: npt.ArrayLike) -> Array:
        """alpha = K~^-1 t, (..., n)."""
        (r, delta), (p, q) = self._correlation(rho), self._projected
        target = product(r * delta * (q - r * p), self.T.T)
        support = product(r * delta * (p - r * q), self.S.T)
        a_T, a_S = self.target.coefficients[:, self.positive], self.support.coefficients[:, -1]
        return np.concatenate([a_T - target, a_S - support], axis=-1)

    def inverse_diagonal(self, rho: npt.ArrayLike) -> Array:
        """The diagonal of K~^-1, (..., n)."""
        r, delta = self._correlation(rho)
        d = [one.left_out.inverse_diagonal() for one in (self.target, self.support)]
        return np.asarray(np.concatenate(d) + product(r**2 * delta, self._squares))

    def leave_one_out(self, rho: npt.ArrayLike) -> tuple[Array, Array]:
        """Means and variances of the target's examples, each by all others, (..., n_T). Eq. (6).

        The noise is in K~ and so in the variance. A mean that differs from the prior by rounding
        alone is the prior: the others say nothing about that example.
        """
        mean, variance, error = self._loo(rho)
        return np.where(abs(mean) <= error, 0, mean) + self.prior, variance

    def _loo(self, rho: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """The closed form for t, and a bound of the rounding of the means, (..., n_T)."""
        a, d, D, n = self.coefficients(rho), self.inverse_diagonal(rho), self.diagonal, len(self.t)
        condition = (d @ D)[..., None]
        size = np.linalg.norm(a * np.sqrt(D), axis=-1, keepdims=True)
        variance = 1 / d[..., :n]
        mean = self.t - a[..., :n] * variance
        return mean, variance, bound(self.t, mean, variance, condition, size, sum_rounding(len(D)))

    def conditional_likelihood(self, rho: npt.ArrayLike) -> Array:
        """log p(y_T | y_S), (...)."""
        (r, delta), (p, q) = self._correlation(rho), self._projected
        # What the support task leaves unexplained of t_T' A^-1 t_T, without cancellation.
        fit = self.t @ self.target.coefficients[:, self.positive] - p @ p
        fit = fit + (delta * (p - r * q) ** 2).sum(axis=-1)
        logdet = self.target.covariance.factor.logdet() + (np.log1p(-r) + np.log1p(r)).sum(axis=-1)
        return np.asarray(log_marginal_likelihood(fit, logdet, len(self.t)))
