"""Objectives of tuning, their slopes in the covariance matrix, and the loss that must not grow.

P = K~^-1, A = PT (n, M). Every objective F gives one symmetric matrix W = dF / dK~, so that the
derivative by any parameter is dF / d theta_j = <W, dK~ / d theta_j>: one n^3 product for all
parameters together. With a bias P is the leading block of the inverse of the bordered matrix.

Where groups are left out, V is the block-diagonal matrix of all P_gg^-1; where single examples
are, V = diag(1 / P_ii). The others predict T - VA for T, with the variances diag V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from knowmore._base import Array, cached_property, choice
from knowmore.errors import InvalidInput
from knowmore.insight.asking import removal_weights
from knowmore.linalg import product
from knowmore.models import KernelModel, probabilities

# Of targets T (n, M), leave-one-out means (n, M) and variances (n,), noise included: a value,
# larger is better, and its derivatives by the means (n, M) and by the variances (n,).
Score = Callable[[Array, Array, Array], tuple[float, Array, Array]]


@final
@dataclass(frozen=True, eq=False)
class Solved:
    """P (n, n), targets T (n, M) and log |K~|.

    parts : the rows of each group that is left out together; None: each example alone
    """

    P: Array
    T: Array
    logdet: float
    parts: tuple[Array, ...] | None = None

    @cached_property
    def A(self) -> Array:
        """PT, (n, M)."""
        return product(self.P, self.T)

    @cached_property
    def _blocks(self) -> list[tuple[Array, Array]]:
        """The rows of each group, and its block P_gg^-1 of V."""
        return [(g, np.linalg.inv(self.P[np.ix_(g, g)])) for g in self.parts or ()]

    def spread(self, B: Array) -> Array:
        """VB for B (n, M)."""
        if self.parts is None:
            return np.asarray(B / np.diagonal(self.P)[:, None])
        VB = np.empty_like(B)
        for g, V in self._blocks:
            VB[g] = V @ B[g]
        return VB

    @cached_property
    def error(self) -> Array:
        """VA, (n, M): the leave-one-out errors."""
        return self.spread(self.A)

    @cached_property
    def variance(self) -> Array:
        """diag V, (n,)."""
        variance = 1 / np.diagonal(self.P)
        for g, V in self._blocks:
            variance[g] = np.diagonal(V)
        return np.asarray(variance)

    def squeezed(self, G: Array, w: Array) -> Array:
        """PHP (n, n), H the diagonal blocks of 1/2 (G E' + E G') - V diag(w) V, E = VA."""
        P, E = self.P, self.error
        if self.parts is None:
            h = np.einsum("ij,ij->i", G, E) - w * self.variance**2
            # Two symmetric products, each of half the work.
            B, C = (P[:, part] * np.sqrt(abs(h[part])) for part in (h > 0, h < 0))
            return product(B, B.T) - product(C, C.T)
        PH = np.empty_like(P)
        for g, V in self._blocks:
            GE = 0.5 * G[g] @ E[g].T
            PH[:, g] = P[:, g] @ (GE + GE.T - (V * w[g]) @ V)
        return product(PH, P)


@final
class Evidence:
    """The log marginal likelihood of a Gaussian process, summed over the M columns."""

    def value(self, model: KernelModel, groups: Array | None = None) -> float:
        """F of a model; groups do not matter."""
        return float(model.log_marginal_likelihood())

    def slope(self, solved: Solved) -> tuple[float, Array]:
        """F and W = 1/2 (AA' - M P)."""
        P, A, T = solved.P, solved.A, solved.T
        n, M = T.shape
        fit = float(np.einsum("ij,ij->", T, A))
        W = product(0.5 * A, A.T)
        W -= (0.5 * M) * P
        return probabilities.log_marginal_likelihood(fit, solved.logdet, n, M), W


@final
@dataclass(frozen=True)
class LeaveOneOutLoss:
    """Any smooth score of what the others predict for each example's target."""

    score: Score

    def value(self, model: KernelModel, groups: Array | None = None) -> float:
        """F(T, mu, v) of a model; groups (n,) are left out if given, else single examples."""
        return self._scored(model.targets.T, *model.left_out.of_targets(groups))[0]

    def slope(self, solved: Solved) -> tuple[float, Array]:
        """F and W = 1/2 (RA' + AR') - PHP.

        mu = T - VA and v = diag V. With g = dF/dmu, w = dF/dv and E = VA: R = PVg, and H is the
        diagonal blocks of 1/2 (Vg E' + E g'V) - V diag(w) V. This is block inversion: dP = -P dK~ P
        and dV = V (P dK~ P) V block by block.
        """
        P, T = solved.P, solved.T
        value, g, w = self._scored(T, T - solved.error, solved.variance)
        G = solved.spread(g)
        RA = product(product(P, G), (0.5 * solved.A).T)
        W = RA + RA.T
        W -= solved.squeezed(G, w)
        return value, W

    def _scored(self, T: Array, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        try:
            value, g, w = self.score(T, mean, variance)
            g, w = np.asarray(g, dtype=float), np.asarray(w, dtype=float)
            if g.shape != T.shape or w.shape != (len(T),):
                raise ValueError(f"its derivatives have shapes {g.shape} and {w.shape}")
            return float(value), g, w
        except Exception as error:
            raise InvalidInput(
                f"The objective failed: {type(error).__name__}: {error}. It must return a value, "
                f"its derivatives by the means, {T.shape}, and by the variances, {T.shape[:1]}."
            ) from error


def log_density(T: Array, mean: Array, variance: Array) -> tuple[float, Array, Array]:
    """sum log N(t | mu, v) over examples and columns. Rasmussen and Williams, eq. 5.10.

    >>> value, _, _ = log_density(np.array([[1.0]]), np.array([[0.0]]), np.array([1.0]))
    >>> round(value, 4)
    -1.4189
    """
    v, error = variance[:, None], T - mean
    value = float(probabilities.log_density(T, mean, v).sum())
    return value, error / v, 0.5 * (error**2 / v - 1).sum(axis=1) / variance


Objective = Evidence | LeaveOneOutLoss

OBJECTIVES: dict[str, Objective] = {
    "loo": LeaveOneOutLoss(log_density),
    "marginal_likelihood": Evidence(),
}


def objective_of(objective: str | Score, gaussian: bool) -> Objective:
    """The objective of this name, or the objective made of a user's own score.

    gaussian : whether the model is a Gaussian process, which has a likelihood
    """
    if callable(objective):
        return LeaveOneOutLoss(objective)
    goal = OBJECTIVES[choice("objective", objective, OBJECTIVES)]
    if isinstance(goal, Evidence) and not gaussian:
        raise InvalidInput(f"objective={objective!r} is for Gaussian processes. Ask for 'loo'.")
    return goal


# -- the loss ------------------------------------------------------------------------------------


def left_out_loss(T: Array, error: Array, *, classes: bool) -> float:
    """The mean loss of leave-one-out, for targets T (n, M) and their errors (n, M).

    Classes: the share of examples whose own class does not have the largest score. Scores that
    differ by rounding alone do not count as right: where an example has no neighbours T - mu is T
    up to rounding. Values: the mean square.

    >>> T, mu = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([[0.3, 0.1], [0.2, -0.2]])
    >>> left_out_loss(T, T - mu, classes=True), left_out_loss(T, T - T, classes=True)
    (0.5, 0.0)
    >>> left_out_loss(T, T * (1 - 1e-16), classes=True)
    1.0
    """
    if not classes:
        return float(np.einsum("ij,ij->", error, error)) / error.size
    if T.shape[1] == 1:
        return 0.0
    rounding = 8 * np.finfo(float).eps * (abs(T) + abs(error)).max(axis=1)
    return float(np.mean(_margins(T - error, T) <= rounding))


def _margins(scores: Array, T: Array) -> Array:
    """By how much the score of the own class is above all others, (n,)."""
    rows, own = np.arange(len(T)), T.argmax(axis=1)
    others = scores.copy()
    others[rows, own] = -np.inf
    return np.asarray(scores[rows, own] - others.max(axis=1))


def model_loss(model: KernelModel, groups: Array | None) -> float:
    """The loss of a model by its own leave-one-out; of values in units of their spread."""
    scores, _, silent = model.left_out.scores(groups)
    T, units, classes = model.targets.T, model.targets.units, model.targets.classes
    if units is not None:
        scores = (scores - units.mean) / units.scale
    loss = left_out_loss(T, T - scores, classes=classes)
    if not classes or T.shape[1] == 1 or groups is not None or model.bias or not silent.any():
        return loss
    rows = np.flatnonzero(silent)
    right = _margins(_faint_scores(model, rows), T[rows]) > 0
    return loss - float(right.sum()) / len(T)


def _faint_scores(model: KernelModel, rows: Array) -> Array:
    """The leave-one-out scores of these examples (s,), however faint: (s, M).

    The closed form subtracts the example's own part from its target, and what is far below the
    target's rounding is lost. A sum of kernel values does not lose it: with the coefficients
    without example i,

        mu_-i = sum_{j != i} k_ij A_j - (sum_{j != i} k_ij P_ji) A_i / P_ii.

    It costs a solve for each of them. A prediction goes by such values, so parameters must not be
    judged as if it did not; as an opinion they are worth nothing.
    """
    A = model.coefficients
    K = np.array(model.covariance.cross(model.examples.X[rows]))
    K[rows, np.arange(len(rows))] = 0
    shared = np.einsum("ij,ij->j", K, removal_weights(model, rows))
    return np.asarray(K.T @ A - shared[:, None] * A[rows])
