"""The least-squares support vector machine: the same solve as a Gaussian process's, with a bias.

C is 1 / sigma^2, and the bias a border of ones around K~ (section 1 of Kuzborskij, Orabona and
Caputo's supplement):

    [[K + I / C, 1], [1', 0]] [A; b'] = [T; 0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from knowmore.arrays import Array, Frozen, derived
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import Border, Factor
from knowmore.models.covariance import Covariance
from knowmore.models.gp import GP
from knowmore.models.loo import (
    Left,
    Scale,
    Verdicts,
    inverse_block,
    leave_group_out,
    leave_one_out,
    rounding,
    verdicts,
)
from knowmore.models.model import brief
from knowmore.models.targets import Coding, Targets, one_vs_all
from knowmore.models.weights import Weighting


@final
@dataclass(frozen=True, eq=False, repr=False)
class LSSVM(Frozen):
    """An immutable one-vs-all least-squares SVM; `follow` gives that of other examples.

    `gp` is the same machine without a bias.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models import one_vs_all
    >>> some = Examples.of(np.array([[0.0], [1.0], [1.5]]), np.array(["no", "yes", "yes"]))
    >>> svm = LSSVM.of(RBF(), 10.0, some, one_vs_all, Cholesky())
    >>> svm.mean(np.array([[0.0], [99.0]])).round(2)
    array([[ 0.8 , -0.8 ],
           [ 0.08, -0.08]])
    """

    gp: GP
    bias: bool = True

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        C: float,
        examples: Examples,
        coding: Coding,
        empty: Factor,
        weighting: Weighting | None = None,
        update: str = "auto",
        *,
        bias: bool = True,
    ) -> LSSVM:
        """The batch fit. The coding must be one-vs-all: its indicators sum to the border."""
        return cls(GP.of(kernel, 1 / C, examples, coding, empty, weighting, update), bias)

    @property
    def covariance(self) -> Covariance:
        """The examples and the factor of K + I / C."""
        return self.gp.covariance

    __repr__ = brief

    @property
    def examples(self) -> Examples:
        """What it learnt from."""
        return self.gp.examples

    @property
    def targets(self) -> Targets:
        """What it learnt for these."""
        return self.gp.targets

    @property
    def C(self) -> float:
        """The weight of the squared errors beside the norm."""
        return 1 / self.covariance.noise

    def follow(self, examples: Examples) -> LSSVM:
        """The batch fit of `examples`, by the smallest update that leads there."""
        return LSSVM(self.gp.follow(examples), self.bias)

    def under(self, kernel: AnyKernel, examples: Examples) -> LSSVM:
        """The batch fit of `examples` with another kernel."""
        return LSSVM(self.gp.under(kernel, examples), self.bias)

    @derived
    def border(self) -> Border | None:
        """The column of ones, solved for without a solve: it is the sum of the indicators."""
        if not self.bias:
            return None
        v = self.gp.solved[:, : len(self.targets.names)].sum(axis=1)
        return Border(np.ones(len(v)), v)

    def eliminated(self, B: Array, solved: Array) -> tuple[Array, Array]:
        """Z (n, m) and z (m,) for right-hand sides B (n, m) and `solved` = K~^-1 B."""
        if self.border is None:
            return solved, np.zeros(solved.shape[1])
        return self.border.eliminated(B, solved)

    @derived
    def _solution(self) -> tuple[Array, Array]:
        return self.eliminated(self.targets.T, self.gp.coefficients)

    @property
    def coefficients(self) -> Array:
        """A, (n, M)."""
        return self._solution[0]

    @property
    def offsets(self) -> Array:
        """The bias b of each class, (M,)."""
        return self._solution[1]

    def mean(self, X: Array) -> Array:
        """The scores k_*' A + b', (m, M)."""
        return np.asarray(self.covariance.expansion(X, self.coefficients) + self.offsets)

    def inverse_diagonal(self) -> Array:
        """The diagonal (n,) of the inverse of the (bordered) matrix; the paper's M_ii."""
        diagonal = self.covariance.factor.inverse_diagonal().astype(float)
        return diagonal if self.border is None else self.border.inverse_diagonal(diagonal)

    def _inverse_block(self, rows: Array) -> Array:
        block = inverse_block(self.covariance.factor, rows)
        return block if self.border is None else self.border.inverse_block(rows, block)

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Scores (n, M) and variances (n,) of the examples by those of other groups.

        Y_i - A_i / M_ii: the last equation of the supplement's section 1.
        """
        return self.verdicts(groups)[:2]

    def verdicts(self, groups: Array | None = None) -> Verdicts:
        """The same, and of whom the others say nothing but how frequent the classes are."""
        left, error, prior = self.left_out(groups)
        return verdicts(left, error, prior, classes=self.gp.coding is one_vs_all)

    def left_out(self, groups: Array | None) -> tuple[Left, Array, Array]:
        """The closed form, the bound of its rounding (n, M), and the others' offsets (n, M)."""
        n, A, T = len(self.examples), self.coefficients, self.targets.T
        codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        if self.bias and len(np.unique(codes)) < 2:
            raise InvalidInput(
                f"To leave out {'the only example' if n == 1 else 'all examples'} leaves none, and "
                f"no bias follows from none. Add examples, or use smaller groups or bias=False."
            )
        if groups is None:
            left = leave_one_out(self.inverse_diagonal(), A, T)
        else:
            left = leave_group_out(self._inverse_block, A, T, groups)
        error = rounding(left, A, T, Scale.of(self.covariance))
        if self.border is None:
            return left, error, np.zeros_like(T)
        return left, error, self.border.without(self.offsets, T - left.mean, codes)

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples.

        The backward error of the coefficients, given the bias (see `Covariance.residual`), or how
        far their sums are from zero, whichever is larger.
        """
        A, T = self.coefficients, self.targets.T - self.offsets
        size = abs(A).sum(axis=0)
        unbalanced = abs(A.sum(axis=0)) / np.where(size > 0, size, 1) if self.bias else np.zeros(1)
        return max(self.covariance.residual(A, T), float(unbalanced.max(initial=0)))
