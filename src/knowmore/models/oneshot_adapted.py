"""The baseline: Adapted LS-SVM (Tommasi and Caputo 2009), a machine that starts from another one.

One prior w' of several, and how far it is followed, beta in [0, 1]:

    min  1/2 |w - beta w'|^2 + C/2 sum_i zeta_i (y_i - w'x_i - b)^2

Classes count alike: zeta_i = n / (2 n_+) or n / (2 n_-). Only the prior's scores t_i of the
examples enter, and a constant in them is the bias's:

    [[K + diag(1 / (C zeta)), 1], [1', 0]] [a; b] = [y - beta t; 0]

a and b are linear in beta, and so is what the examples say of each other, y_i - a_i / M_ii, M the
inverse of this matrix. One solve gives all of them for all priors and all beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from knowmore.linalg import Cholesky
from knowmore.linalg.border import Border
from knowmore.linalg.threads import threads_for
from knowmore.models.oneshot_criteria import balanced, squashed

Array = npt.NDArray[Any]

BETAS = np.linspace(0, 1, 101)


class Prior(NamedTuple):
    """Which prior, how far it is followed, and the weighted criterion's value for it."""

    which: int
    beta: float
    value: float


@final
@dataclass(frozen=True, eq=False)
class Adapted:
    """The machines of n examples for P priors and all beta.

    factor : of K + diag(1 / (C zeta))
    y : the labels, (n,)
    scores : t, what each prior says of the examples, (n, P)

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

    @cached_property
    def _border(self) -> Border:
        one = np.ones(len(self.y))
        return Border(one, self.factor.solve(one[:, None])[:, 0])

    @cached_property
    def _solution(self) -> tuple[Array, Array]:
        """a (n, 1 + P) and b (1 + P,) for y and for each t."""
        B = np.column_stack([self.y, self.scores])
        with threads_for(len(B) ** 2, B.shape[1]):
            return self._border.eliminated(B, self.factor.solve(B))

    def coefficients(self, prior: Prior) -> tuple[Array, float]:
        """a (n,) and b."""
        a, b = self._solution
        mix = np.zeros(len(b))
        mix[0], mix[1 + prior.which] = 1, -prior.beta
        return a @ mix, float(b @ mix)

    def mean(self, k: Array, scores: Array, prior: Prior) -> Array:
        """Scores (m,) of other examples, from k (n, m) and what the prior says of them (m,)."""
        a, b = self.coefficients(prior)
        return np.asarray(prior.beta * scores + a @ k + b)

    def leave_one_out(self, betas: Array) -> Array:
        """Scores of the examples, each by all the others, (g, P, n).

        The weights stay those of all examples.
        """
        a, _ = self._solution
        e = (a / self._border.inverse_diagonal(self.factor.inverse_diagonal())[:, None]).T
        return np.asarray(self.y - e[0] + np.multiply.outer(betas, e[1:]))

    def best(self, betas: Array = BETAS) -> Prior:
        """The best of all priors and `betas` (g,), which ascend from 0: no transfer.

        By the weighted criterion; of equal ones the smaller beta, then the first prior.
        """
        values = squashed(self.y, self.leave_one_out(betas), balanced(self.y))
        g, which = np.unravel_index(values.argmax(), values.shape)
        return Prior(int(which), float(betas[g]), float(values[g, which]))
