"""One-shot learning: two dependent Gaussian processes, for all rho at once.

A target task with few examples T, a support task with examples S, and the covariance of both
under the kernel of eq. (3), Rodner and Denzler:

    K~(rho) = [[A, rho C], [rho C', B]],  A = K_TT + sigma^2 I,  B = K_SS + sigma^2 I,  C = K_TS

With A = LL', B = RR' and the singular values L^-1 C R^-T = U s V' (the canonical correlations of
the tasks, 0 <= s < 1), K~(rho) falls apart into an identity and 2 x 2 blocks

    [[1, rho s_j], [rho s_j, 1]],  inverse [[1, -rho s_j], [-rho s_j, 1]] delta_j,
    delta_j = 1 / (1 - rho^2 s_j^2).

So one small decomposition for each support task gives every quantity of every rho: no matrix is
factorised again. Neither task is special in this. Formulas are written for the target only; those
of the support task are the same with the roles exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log, pi
from typing import TypeVar, final

import numpy as np
import numpy.typing as npt

from knowmore.arrays import Array, Frozen, derived
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import Cholesky
from knowmore.linalg.factor import lost_pivots
from knowmore.linalg.products import product, svd
from knowmore.models.loo import bound, inverse_block

_T = TypeVar("_T")

# What the noise may be, in units of the mean variance of the target's examples.
LEVELS = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# The least pivot with which the noise is taken as enough, in units of the matrix's diagonal. What
# can only just be factorised is lost in rounding: another order of the rows would answer otherwise.
_PIVOT = 1e-10


@final
@dataclass(frozen=True, eq=False)
class Side(Frozen):
    """One of two tasks as it is by itself: rho = 0, independent learning.

    factor : of A, the noise included; it grows and shrinks as every factor does
    y : the labels, (n,); those of a support task without background are all one

    The target is the side that all support tasks share; a support's is shared by all targets.

    >>> side = Side.of(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0]), noise=0.5)
    >>> side.coefficients
    array([ 1., -1.])
    """

    factor: Cholesky
    y: Array

    @classmethod
    def of(cls, K: Array, y: Array, noise: float) -> Side:
        """The task of the kernel matrix K (n, n) and the labels y (n,)."""
        return cls(Cholesky().append(np.empty((0, len(K))), _noisy(K, noise)), y)

    @derived
    def coefficients(self) -> Array:
        """A^-1 y, (n,)."""
        return np.asarray(self.factor.solve(self.y[:, None])[:, 0])

    @derived
    def inverse_diagonal(self) -> Array:
        """The diagonal of A^-1, (n,)."""
        return self.factor.inverse_diagonal()

    @derived
    def diagonal(self) -> Array:
        """The diagonal of A, (n,)."""
        return _squared_norms(self.factor.lower().T)

    @property
    def pivots(self) -> Array:
        """1 / (A_ii (A^-1)_ii), (n,): the part of each variance that the others do not explain.

        That is the pivot of row i if it comes last, in units of the diagonal: the smallest that it
        has in any order.
        """
        return np.asarray(1 / (self.diagonal * self.inverse_diagonal))

    @derived
    def logdet(self) -> float:
        """log |A|."""
        return self.factor.logdet()

    @property
    def quadratic(self) -> float:
        """y' A^-1 y."""
        return float(self.y @ self.coefficients)


@final
@dataclass(frozen=True, eq=False)
class Pair(Frozen):
    """A target and a support task. Every question is asked for one rho or an array of them.

    s : the canonical correlations (m,), m the size of the smaller task
    T, S : L^-T U (n_T, m) and R^-T V (n_S, m)

    An answer for rho of shape (...) has shape (..., what it is for one): (g, n_T) for g of them.

    >>> target = Side.of(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0]), noise=0.5)
    >>> support = Side.of(np.array([[1.0]]), np.array([1.0]), noise=0.5)
    >>> pair = Pair.of(target, support, np.array([[0.6], [0.1]]))
    >>> mean, variance = pair.leave_one_out(np.array([0.0, 1.0]))
    >>> mean.round(2)
    array([[-0.33,  0.33],
           [ 0.07,  0.29]])
    """

    target: Side
    support: Side
    s: Array
    T: Array
    S: Array

    @classmethod
    def of(cls, target: Side, support: Side, C: Array, rho: float = 1.0) -> Pair:
        """The pair of two tasks with kernel values C (n_T, n_S) between them.

        rho: the largest that will be asked for. Raises NotPositiveDefinite if K~(rho) is singular,
        with the row counted in it.
        """
        U, s, Vt = svd(support.factor.forward(target.factor.forward(C).T).T)
        pair = cls(target, support, s, target.factor.backward(U), support.factor.backward(Vt.T))
        r = rho * s[0]
        if lost_pivots((1 - r) * (1 + r), 1.0, sum(C.shape), float):
            one = int(abs(pair.S[:, 0]).argmax())
            raise NotPositiveDefinite(
                f"Example {one} of the support task adds nothing to the target's examples: at "
                f"rho = {rho:g} their covariance matrix is not positive definite. Either (a) the "
                f"same example is in both tasks: leave it out of one, or set noise above zero; or "
                f"(b) the noise is too small for so smooth a kernel: raise it; or (c) the kernel "
                f"is not positive definite.",
                len(C) + one,
            )
        return pair

    @property
    def exchanged(self) -> Pair:
        """The support task as the target: what is asked of this is said of the other task."""
        return Pair(self.support, self.target, self.s, self.S, self.T)

    @derived
    def p(self) -> Array:
        """T'y_T, (m,)."""
        return np.asarray(self.T.T @ self.target.y)

    @derived
    def q(self) -> Array:
        """S'y_S, (m,)."""
        return np.asarray(self.S.T @ self.support.y)

    @derived
    def _squares(self) -> Array:
        """The squares of T, (m, n_T)."""
        return np.square(self.T.T)

    def _correlation(self, rho: npt.ArrayLike) -> tuple[Array, Array]:
        """rho s and delta, (..., m)."""
        r = np.asarray(rho, dtype=float)[..., None] * self.s
        return r, 1 / ((1 - r) * (1 + r))

    # -- the target's examples -------------------------------------------------------------------

    def explained(self, y_T: Array, y_S: Array, rho: float) -> Array:
        """What the support task adds to A^-1 y_T, (n_T, m), for y_T (n_T, m) and y_S (n_S, m)."""
        r, delta = self._correlation(rho)
        apart = self.S.T @ y_S - r[:, None] * (self.T.T @ y_T)
        return np.asarray(-self.T @ ((r * delta)[:, None] * apart))

    def coefficients(self, rho: npt.ArrayLike) -> Array:
        """The target's part of alpha = K~^-1 y, (..., n_T)."""
        r, delta = self._correlation(rho)
        return self.target.coefficients - product(r * delta * (self.q - r * self.p), self.T.T)

    def inverse_diagonal(self, rho: npt.ArrayLike) -> Array:
        """The target's part of the diagonal of K~^-1, (..., n_T)."""
        r, delta = self._correlation(rho)
        return self.target.inverse_diagonal + product(r**2 * delta, self._squares)

    def pivots(self, rho: float) -> Array:
        """Those of K~, the target's first, (n_T + n_S,): see `Side.pivots`."""
        sides = (self.target, self), (self.support, self.exchanged)
        return np.concatenate(
            [1 / (one.diagonal * pair.inverse_diagonal(rho)) for one, pair in sides]
        )

    def inverse_block(self, rows: Array, rho: float) -> Array:
        """Rows and columns `rows` (k,) of K~^-1, all of the target, (k, k)."""
        r, delta = self._correlation(rho)
        T = self.T[rows]
        return np.asarray(inverse_block(self.target.factor, rows) + (r**2 * delta * T) @ T.T)

    def leave_one_out(self, rho: npt.ArrayLike) -> tuple[Array, Array]:
        """Means and variances of the target's examples, (..., n_T), each by all the others.

        Eq. (6); the noise is in K~ and so in the variance. A mean that is rounding is zero: the
        others say nothing of that example, neither for its label nor against it.
        """
        a, variance = self.coefficients(rho), 1 / self.inverse_diagonal(rho)
        mean = self.target.y - a * variance
        error = bound(self.target.y, mean, variance, *self._scale(a, 1 / variance, rho))
        return np.where(abs(mean) <= error, 0, mean), variance

    def rounding(self, mean: Array, variance: Array, rho: float) -> Array:
        """The bound of the rounding of leave-one-out means and variances, (n_T,); see `bound`."""
        scale = self._scale(self.coefficients(rho), self.inverse_diagonal(rho), rho)
        return bound(self.target.y, mean, variance, *scale)

    def _scale(self, a: Array, d: Array, rho: npt.ArrayLike) -> tuple[Array, Array, int]:
        """The condition and the size that `bound` asks for, (..., 1) each, and the rows of K~.

        a, d : the target's coefficients and diagonal of the inverse, (..., n_T)
        """
        other, D_T, D_S = self.exchanged, self.target.diagonal, self.support.diagonal
        condition = d @ D_T + other.inverse_diagonal(rho) @ D_S
        # Neither large coefficients of small rows nor the reverse have squares beyond the range.
        both = (a, D_T), (other.coefficients(rho), D_S)
        square = sum(((each * np.sqrt(D)) ** 2).sum(axis=-1) for each, D in both)
        n = len(D_T) + len(D_S)
        return condition[..., None], np.sqrt(square)[..., None], n

    # -- both tasks ------------------------------------------------------------------------------

    def _residual(self, rho: npt.ArrayLike) -> Array:
        """What the support task leaves unexplained of y_T' A^-1 y_T: (...), no cancellation."""
        r, delta = self._correlation(rho)
        apart = self.target.quadratic - float(self.p @ self.p)
        return np.asarray(apart + (delta * (self.p - r * self.q) ** 2).sum(axis=-1))

    def quadratic(self, rho: npt.ArrayLike) -> Array:
        """y' K~^-1 y, (...)."""
        return self.support.quadratic + self._residual(rho)

    def _logdet(self, rho: npt.ArrayLike) -> Array:
        """log |K~| - log |A| - log |B|, (...)."""
        r, _ = self._correlation(rho)
        return np.asarray((np.log1p(-r) + np.log1p(r)).sum(axis=-1))

    def logdet(self, rho: npt.ArrayLike) -> Array:
        """log |K~|, (...)."""
        return self.target.logdet + self.support.logdet + self._logdet(rho)

    def conditional_likelihood(self, rho: npt.ArrayLike) -> Array:
        """log p(y_T | y_S), (...)."""
        size = self.target.logdet + len(self.target.y) * log(2 * pi)
        return np.asarray(-0.5 * (self._residual(rho) + self._logdet(rho) + size))

    def conditional_slope(self, rho: npt.ArrayLike) -> Array:
        """Its derivative with respect to rho, (...)."""
        r, delta = self._correlation(rho)
        u = delta * (self.p - r * self.q)
        return np.asarray((self.s * (u * self.q - r * u**2 + r * delta)).sum(axis=-1))

    # -- other examples --------------------------------------------------------------------------

    def mean(self, k_T: Array, k_S: Array, rho: npt.ArrayLike) -> Array:
        """Scores in the target task, (..., m), from kernel values k_T (n_T, m), k_S (n_S, m).

        Eq. (4).
        """
        scale = np.asarray(rho, dtype=float)[..., None]
        of_support = self.exchanged.coefficients(rho) @ k_S
        return np.asarray(self.coefficients(rho) @ k_T + scale * of_support)

    def variance(self, k_T: Array, k_S: Array, prior: Array, rho: npt.ArrayLike) -> Array:
        """The variance of the latent target function, (..., m), the noise not included.

        k_T (n_T, m), k_S (n_S, m), prior: the kernel's kappa(x, x), (m,).
        """
        t, v = self.T.T @ k_T, self.S.T @ k_S
        apart = _squared_norms(self.support.factor.half_solve(k_S)) - _squared_norms(v)
        _, delta = self._correlation(rho)
        of_support = apart + delta @ (v - self.s[:, None] * t) ** 2
        explained = _squared_norms(self.target.factor.half_solve(k_T))
        scale = np.asarray(rho, dtype=float)[..., None]
        return np.asarray(np.maximum(prior - explained - scale**2 * of_support, 0))


def check_sound(pivots: Array) -> None:
    """Complain if one of the pivots (n,) is too small to be more than rounding.

    Other examples explain that one but for a part of 1e-10. Every pivot grows with the noise.
    """
    row = int(pivots.argmin())
    if not pivots[row] > _PIVOT:
        raise NotPositiveDefinite(f"The pivot of row {row} nearly vanishes.", row)


def with_least_noise(attempt: Callable[[float], _T], variance: float) -> _T:
    """What `attempt` makes of the smallest noise of `LEVELS` with which it succeeds.

    variance: the mean of the examples', the unit of the levels. Section 5 of Rodner and Denzler;
    they raise the noise for each matrix on its own, which would make values of rho and of supports
    incomparable.
    """
    if not variance > 0:
        raise NotPositiveDefinite(
            f"The kernel gives the examples a variance of {variance:g} in the mean, but that must "
            f"be above zero. Use another kernel, or other features. Nothing was changed.",
            0,
        )
    for level in LEVELS:
        try:
            return attempt(level * variance)
        except NotPositiveDefinite as error:
            failure = error
    raise NotPositiveDefinite(
        f"The covariance matrix is not positive definite at row {failure.row}, even with a noise "
        f"as large as the examples' mean variance, {variance:g}. The kernel is not positive "
        f"definite: use another one. Nothing was changed.",
        failure.row,
    ) from failure


def sound_noise(K: Array, supports: Iterable[tuple[Array, Array]]) -> float:
    """The smallest noise of `LEVELS` with which one target can be paired with all supports.

    K (n_T, n_T) of the target; C (n_T, n_S) and K_S (n_S, n_S) of each support. The levels are in
    units of the mean of K's diagonal; `check_sound` says what is enough. A support is tried at
    rho = 1 only: K(rho) is a mean of K(1) and of its diagonal blocks, whose eigenvalues lie between
    K(1)'s, so that what can be factorised there can be for every rho. One that was sound at a level
    is so at the next.
    """
    waiting = list(supports)

    def attempt(noise: float) -> float:
        target = Side.of(K, np.zeros(len(K)), noise)
        check_sound(target.pivots)
        while waiting:
            C, B = waiting[-1]
            target.factor.append(C, _noisy(B, noise))
            check_sound(Pair.of(target, Side.of(B, np.zeros(len(B)), noise), C).pivots(1.0))
            waiting.pop()
        return noise

    return with_least_noise(attempt, float(np.diagonal(K).mean()))


def _noisy(K: Array, noise: float) -> Array:
    """K + noise I."""
    A = np.array(K, dtype=float)
    A.flat[:: len(A) + 1] += noise
    return A


def _squared_norms(H: Array) -> Array:
    """Of the columns."""
    return np.asarray(np.einsum("ij,ij->j", H, H))
