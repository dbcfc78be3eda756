"""What good parameters make large, and its slope in the covariance matrix.

P = K~^-1, A = PT (n, M). Every objective F gives one symmetric matrix W = dF / dK~, so that the
derivative by any parameter is dF / d theta_j = <W, dK~ / d theta_j>: one n^3 product for all
parameters together. With a bias P is the leading block of the inverse of the bordered matrix.

Where groups are left out, V is the block-diagonal matrix of all P_gg^-1; where single examples
are, V = diag(1 / P_ii). What the others say of T is T - VA, with the variances diag V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi
from typing import Protocol, final

import numpy as np

from knowmore.arrays import Array
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput
from knowmore.linalg.products import product
from knowmore.models import GP, LSSVM

# Of targets T (n, M), leave-one-out means (n, M) and variances (n,), the noise included: a value,
# larger is better, and its derivatives by the means (n, M) and by the variances (n,).
Score = Callable[[Array, Array, Array], tuple[float, Array, Array]]


@final
@dataclass(frozen=True, eq=False)
class Solved:
    """K~ solved for the targets T (n, M): P (n, n), A = PT (n, M) and log |K~|.

    parts : the rows of each group that is left out together; None: each example alone
    """

    P: Array
    A: Array
    T: Array
    logdet: float
    parts: tuple[Array, ...] | None = None

    @classmethod
    def of(
        cls, P: Array, T: Array, logdet: float, parts: tuple[Array, ...] | None = None
    ) -> Solved:
        """From the inverse."""
        return cls(P, product(P, T), T, logdet, parts)

    @cached_property
    def blocks(self) -> list[tuple[Array, Array]]:
        """The rows of each group, and its block P_gg^-1 of V."""
        return [(g, np.linalg.inv(self.P[np.ix_(g, g)])) for g in self.parts or ()]

    def spread(self, B: Array) -> Array:
        """VB for B (n, M)."""
        if self.parts is None:
            return np.asarray(B / np.diagonal(self.P)[:, None])
        VB = np.empty_like(B)
        for g, V in self.blocks:
            VB[g] = V @ B[g]
        return VB

    @cached_property
    def error(self) -> Array:
        """VA, (n, M): by how much the others are wrong."""
        return self.spread(self.A)

    @cached_property
    def variance(self) -> Array:
        """diag V, (n,)."""
        if self.parts is None:
            return np.asarray(1 / np.diagonal(self.P))
        variance = np.empty(len(self.P))
        for g, V in self.blocks:
            variance[g] = np.diagonal(V)
        return variance

    def squeezed(self, G: Array, w: Array) -> Array:
        """PHP (n, n), H the diagonal blocks of 1/2 (G E' + E G') - V diag(w) V, E = VA."""
        P, E, v = self.P, self.error, self.variance
        if self.parts is None:
            return _squeezed(P, np.einsum("ij,ij->i", G, E) - w * v**2)
        PH = np.empty_like(P)
        for g, V in self.blocks:
            GE = 0.5 * G[g] @ E[g].T
            PH[:, g] = P[:, g] @ (GE + GE.T - (V * w[g]) @ V)
        return product(PH, P)


class Objective(Protocol):
    """What is to be made large."""

    def value(self, model: GP | LSSVM, groups: Array | None = None) -> float:
        """F of a model as it is; groups (n,), if these are left out and not single examples."""
        ...

    def slope(self, solved: Solved) -> tuple[float, Array]:
        """F and W = dF / dK~, (n, n), symmetric."""
        ...


@final
@dataclass(frozen=True)
class Evidence:
    """The log marginal likelihood, summed over the M columns."""

    def value(self, model: GP | LSSVM, groups: Array | None = None) -> float:
        """-1/2 tr(T'A) - M/2 log |K~| - nM/2 log 2 pi."""
        if isinstance(model, LSSVM):
            raise InvalidInput(
                "objective='marginal_likelihood' is that of a Gaussian process, which a "
                "least-squares SVM is not. Ask for objective='loo'."
            )
        return model.log_marginal_likelihood()

    def slope(self, solved: Solved) -> tuple[float, Array]:
        """W = 1/2 (AA' - M P)."""
        P, A, T = solved.P, solved.A, solved.T
        n, M = T.shape
        fit = float(np.einsum("ij,ij->", T, A))
        value = -0.5 * (fit + M * (solved.logdet + n * log(2 * pi)))
        W = product(0.5 * A, A.T)
        W -= (0.5 * M) * P
        return value, W


@final
@dataclass(frozen=True)
class LeaveOneOut:
    """Any smooth score of what each example's target is said to be by all the others."""

    score: Score

    def value(self, model: GP | LSSVM, groups: Array | None = None) -> float:
        """F(T, mu, v)."""
        left_out = model.leave_targets_out if isinstance(model, GP) else model.leave_one_out
        return self._scored(model.targets.T, *left_out(groups))[0]

    def slope(self, solved: Solved) -> tuple[float, Array]:
        """W = 1/2 (RA' + AR') - PHP.

        mu = T - VA and v = diag V. With g = dF/dmu, w = dF/dv and E = VA: R = PVg, and H is the
        diagonal blocks of 1/2 (Vg E' + E g'V) - V diag(w) V. This is block inversion: dP = -P dK~ P
        and dV = V (P dK~ P) V block by block.
        """
        P, A, T = solved.P, solved.A, solved.T
        value, g, w = self._scored(T, T - solved.error, solved.variance)
        G = solved.spread(g)
        RA = product(product(P, G), (0.5 * A).T)
        W = RA + RA.T
        W -= solved.squeezed(G, w)
        return value, W

    def _scored(self, T: Array, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        try:
            value, g, w = self.score(T, mean, variance)
            value, g, w = float(value), np.asarray(g, dtype=float), np.asarray(w, dtype=float)
        except Exception as error:
            reason = f"it failed: {type(error).__name__}: {error}"
            raise InvalidInput(_misshapen(T, reason)) from error
        if g.shape != T.shape or w.shape != (len(T),):
            raise InvalidInput(_misshapen(T, f"the derivatives have {g.shape} and {w.shape}"))
        return value, g, w


def _misshapen(T: Array, got: str) -> str:
    return (
        f"An objective of one's own is a function of targets {T.shape}, leave-one-out means "
        f"{T.shape} and variances {T.shape[:1]} that returns its value and its derivatives by the "
        f"means and by the variances, of the same shapes. Here {got}."
    )


def _squeezed(P: Array, h: Array) -> Array:
    """P diag(h) P, as two symmetric products, each of half the work."""
    over, under = h > 0, h < 0
    B, C = P[:, over] * np.sqrt(h[over]), P[:, under] * np.sqrt(-h[under])
    return product(B, B.T) - product(C, C.T)


def log_density(T: Array, mean: Array, variance: Array) -> tuple[float, Array, Array]:
    """sum log N(t | mu, v) over examples and columns. Rasmussen and Williams, eq. 5.10.

    >>> value, _, _ = log_density(np.array([[1.0]]), np.array([[0.0]]), np.array([1.0]))
    >>> round(value, 4)
    -1.4189
    """
    v = variance[:, None]
    error = T - mean
    square = np.einsum("ij,ij->i", error, error) / variance
    M = T.shape[1]
    value = -0.5 * float(square.sum() + M * np.log(2 * pi * variance).sum())
    return value, error / v, 0.5 * (square - M) / variance


OBJECTIVES: dict[str, Objective] = {
    "loo": LeaveOneOut(log_density),
    "marginal_likelihood": Evidence(),
}


def objective_of(objective: str | Score) -> Objective:
    """The objective of that name, or the one that a score of one's own makes."""
    if callable(objective):
        return LeaveOneOut(objective)
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        words = ", ".join(map(repr, OBJECTIVES))
        raise InvalidInput(
            f"objective={objective!r} is not known. Choose one of {words}, or give a function of "
            f"targets, leave-one-out means and variances."
        )
    return OBJECTIVES[objective]
