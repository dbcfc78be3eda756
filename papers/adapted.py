"""Baselines: Adapted LS-SVM and MultiKT, binary machines that start from known ones.

With P known hyperplanes W' and how far each is followed, beta (P,):

    min  1/2 |w - W' beta|^2 + C/2 sum_i zeta_i (y_i - w'x_i - b)^2

Classes count alike: zeta_i = n / (2 n_+) or n / (2 n_-). Only the scores t_i (P,) that the known
ones give the examples enter, and a constant in them is the bias's:

    [[K + diag(1 / (C zeta)), 1], [1', 0]] [a; b] = [y - t beta; 0]

a and b are linear in beta, and so is what the examples say of each other, y_i - a_i / M_ii, M the
inverse of this matrix. One solve gives all of them for every beta. Adapted LS-SVM (Tommasi and
Caputo 2009) follows one prior of several, MultiKT (Tommasi, Orabona and Caputo 2010) a mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen, derived
from knowmore.linalg import Border, Cholesky
from knowmore.transfer.choice import balanced, squashed
from knowmore.transfer.coding import Hinges, interior

BETAS = np.linspace(0, 1, 101)


class Prior(NamedTuple):
    """Which prior, how far it is followed, and the weighted criterion's value for it."""

    which: int
    beta: float
    value: float

    def along(self, priors: int) -> Array:
        """beta (P,) for this many priors."""
        return np.asarray(self.beta * np.eye(priors)[self.which])


@final
@dataclass(frozen=True, eq=False)
class Adapted(Frozen):
    """The machines of n examples for P known ones and all beta.

    factor : of K + diag(1 / (C zeta))
    y : the labels, (n,)
    scores : t, what each known one says of the examples, (n, P)

    >>> X, y = np.array([[0.1], [1.0], [1.2], [0.8]]), np.array([1.0, -1.0, -1.0, -1.0])
    >>> adapted = Adapted.of(X @ X.T, y, 1.0, scores=X @ np.array([[2.0, -2.0]]))
    >>> adapted.best()
    Prior(which=1, beta=1.0, value=-0.0036)
    """

    factor: Cholesky
    y: Array
    scores: Array

    @classmethod
    def of(cls, K: Array, y: Array, C: float, scores: Array) -> Adapted:
        """The machines of the kernel matrix K (n, n)."""
        noisy = K + np.diag(1 / (C * balanced(y)))
        return cls(Cholesky().append(np.empty((0, len(K))), noisy), y, scores)

    @property
    def weights(self) -> Array:
        """zeta, (n,)."""
        return balanced(self.y)

    @derived
    def _border(self) -> Border:
        one = np.ones(len(self.y))
        return Border(one, self.factor.solve(one[:, None])[:, 0])

    @derived
    def _solution(self) -> tuple[Array, Array]:
        """a (n, 1 + P) and b (1 + P,) for y and for each t."""
        B = np.column_stack([self.y, self.scores])
        return self._border.eliminated(B, self.factor.solve(B))

    def coefficients(self, beta: Array) -> tuple[Array, float]:
        """a (n,) and b, for beta (P,)."""
        a, b = self._solution
        mix = np.concatenate([[1.0], -beta])
        return a @ mix, float(b @ mix)

    def mean(self, k: Array, scores: Array, beta: Array) -> Array:
        """Scores (m,) of others, from k (n, m) and what the known ones say of them (m, P)."""
        a, b = self.coefficients(beta)
        return np.asarray(scores @ beta + a @ k + b)

    @derived
    def _errors(self) -> Array:
        """a / M_ii, (1 + P, n): what is taken from y in leave-one-out, by y and by each t."""
        a, _ = self._solution
        return (a / self._border.inverse_diagonal(self.factor.inverse_diagonal())[:, None]).T

    def left_out(self, beta: Array) -> Array:
        """Scores (n,), each by a machine of all other examples. The weights zeta do not change."""
        return np.asarray(self.y - self._errors[0] + beta @ self._errors[1:])

    def leave_one_out(self, betas: Array) -> Array:
        """Leave-one-out scores for `betas` (g,) along each prior alone, (g, P, n)."""
        e = self._errors
        return np.asarray(self.y - e[0] + np.multiply.outer(betas, e[1:]))

    def best(self, betas: Array = BETAS) -> Prior:
        """The best of all priors and `betas` (g,), which ascend from 0: no transfer.

        By the weighted criterion; of equal ones the smaller beta, then the first prior.
        """
        values = squashed(self.y, self.leave_one_out(betas), self.weights)
        g, which = np.unravel_index(values.argmax(), values.shape)
        return Prior(int(which), float(betas[g]), float(values[g, which]))

    @derived
    def hinges(self) -> Hinges:
        """The loss of a mixture, sum_i zeta_i |1 - y_i y^_i(beta)|_+, y^ being left out."""
        none = np.zeros(self.scores.shape[1])
        offsets = self.weights * (1 - self.y * self.left_out(none))
        return Hinges(offsets, -(self.weights * self.y * self._errors[1:]).T)

    @derived
    def mixture(self) -> Array:
        """The best beta (P,) in the unit ball; below zero: how much is taken away."""
        return interior(self.hinges, False).beta
