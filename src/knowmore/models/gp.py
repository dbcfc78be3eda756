"""The Gaussian process: closed forms on top of the covariance of the examples it holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log, pi
from typing import final

import numpy as np

from knowmore.arrays import Array, Frozen, bounded, derived
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Factor
from knowmore.linalg.products import product
from knowmore.models.covariance import Covariance
from knowmore.models.loo import (
    Scale,
    Verdicts,
    inverse_block,
    leave_group_out,
    leave_one_out,
    rounding,
    verdicts,
)
from knowmore.models.model import brief
from knowmore.models.targets import Coding, Targets, Units, one_vs_all
from knowmore.models.weights import Weighting


@final
@dataclass(frozen=True, eq=False, repr=False)
class GP(Frozen):
    """An immutable Gaussian process; `follow` gives the process of other examples.

    n examples, M target columns, a basis of M + r. `head` is as much of `half` as was known when
    this was made.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models import one_vs_all
    >>> some = Examples.of(np.array([[0.0], [1.0]]), np.array(["no", "yes"]))
    >>> gp = GP.of(RBF(), 0.1, some, one_vs_all, Cholesky())
    >>> gp.mean(np.array([[0.0]])).round(2)
    array([[ 0.8, -0.8]])
    """

    covariance: Covariance
    coding: Coding
    targets: Targets
    head: Array

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        noise: float,
        examples: Examples,
        coding: Coding,
        empty: Factor,
        weighting: Weighting | None = None,
        update: str = "auto",
    ) -> GP:
        """The batch fit."""
        covariance = Covariance.of(kernel, noise, examples, empty, weighting, update)
        targets = coding(examples)
        return cls(covariance, coding, targets, targets.basis[:0])

    __repr__ = brief

    @property
    def examples(self) -> Examples:
        """What it learnt from."""
        return self.covariance.examples

    def follow(self, examples: Examples) -> GP:
        """The batch fit of `examples`, by the smallest update that leads there."""
        targets = self.coding(examples)
        covariance = self.covariance.follow(examples)
        known = self.__dict__.get("half", self.head)[: self._unchanged(covariance)]
        return GP(covariance, self.coding, targets, targets.carry(self.targets, known))

    def under(self, kernel: AnyKernel, examples: Examples) -> GP:
        """The batch fit of `examples` with another kernel."""
        targets = self.coding(examples)
        covariance = self.covariance.with_kernel(kernel, examples)
        return GP(covariance, self.coding, targets, targets.basis[:0])

    def _unchanged(self, covariance: Covariance) -> int:
        """How many leading rows have the same example, label and weight there."""
        examples, weights = covariance.examples, covariance.weights
        deleted, _ = examples.since(self.examples)
        rows = int(deleted[0]) if len(deleted) else len(self.examples)
        differs = examples.labels[:rows] != self.examples.labels[:rows]
        differs = differs.any(axis=tuple(range(1, differs.ndim)))
        differs |= weights[:rows] != self.covariance.weights[:rows]
        return int(differs.argmax()) if differs.any() else rows

    @derived
    def half(self) -> Array:
        """The first half of the solve for the coefficients, (n, M + r): an append extends it."""
        return self.covariance.factor.forward(self.targets.basis, self.head)

    @derived
    def solved(self) -> Array:
        """K~^-1 applied to the basis of the targets, (n, M + r)."""
        return self.covariance.factor.backward(self.half).astype(float)

    @derived
    def coefficients(self) -> Array:
        """A = K~^-1 T, (n, M)."""
        return product(self.solved, self.targets.mix)

    def mean(self, X: Array) -> Array:
        """mu_* = k_*' K~^-1 T, (m, M), as values. Eqs. (2) and (4), Lütz et al."""
        mean = self.covariance.expansion(X, self.coefficients)
        units = self.targets.units
        return mean if units is None else bounded(lambda: units.mean + units.scale * mean)

    def variance(self, X: Array) -> Array:
        """sigma_*^2, (m,), the noise included; (m, M) if the columns have units. Eq. (3)."""
        return in_squares(self.covariance.variance(X), self.targets.units)

    def joint(self, X: Array) -> Array:
        """The covariance of the targets of X (m, d), noise included, (m, m), or (m, m, M)."""
        H = self.covariance.factor.half_solve(self.covariance.cross(X)).astype(float)
        C = corner(self.covariance.kernel, X) - H.T @ H
        # The diagonal is what `variance` says: never below the noise.
        C.flat[:: len(C) + 1] = self.covariance.variance(X)
        return in_squares(C, self.targets.units)

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Means (n, M) and variances of the examples by those of other groups.

        The variances are (n,), or (n, M) if the columns have units; these are of the others too.
        """
        return self.verdicts(groups)[:2]

    def verdicts(self, groups: Array | None = None) -> Verdicts:
        """The same, and of whom the others say nothing."""
        rest = self.targets.rest(groups)
        if rest is None:
            return self._left_out(self.coefficients, self.targets.T, groups)
        A, T = (self.targets.mixed(B, rest) for B in (self.solved, self.targets.basis))
        mean, variance, silent = self._left_out(A, T, groups)
        return Verdicts(rest.mean + rest.scale * mean, in_squares(variance, rest), silent)

    def leave_targets_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """The same of the targets T as they are: their units are not learnt anew."""
        return self._left_out(self.coefficients, self.targets.T, groups)[:2]

    def _left_out(self, A: Array, T: Array, groups: Array | None) -> Verdicts:
        factor = self.covariance.factor
        if groups is None:
            left = leave_one_out(factor.inverse_diagonal(), A, T)
        else:
            left = leave_group_out(partial(inverse_block, factor), A, T, groups)
        error = rounding(left, A, T, Scale.of(self.covariance))
        return verdicts(left, error, 0.0, classes=self.coding is one_vs_all)

    def log_marginal_likelihood(self) -> float:
        """-1/2 tr(T'A) - M/2 log |K~| - nM/2 log 2 pi, summed over the M columns.

        It is that of T: of normalised values if they have units, as in scikit-learn.
        """
        T = self.targets.T
        n, M = len(T), T.shape[1]
        fit = float(np.einsum("ij,ij->", T, self.coefficients))
        size = self.covariance.factor.logdet() + n * log(2 * pi)
        return float(-0.5 * (fit + M * size))

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples.

        The backward error of the coefficients; see `Covariance.residual`.
        """
        # What is mixed from the basis may be rounding alone, as values that are all the same are.
        return self.covariance.residual(self.solved, self.targets.basis)


def in_squares(variance: Array, units: Units | None) -> Array:
    """Variances of T as those of the values, one for each column if these have units."""
    return variance if units is None else bounded(lambda: variance[..., None] * units.scale**2)
