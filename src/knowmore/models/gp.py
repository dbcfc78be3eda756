"""The Gaussian process: closed forms on top of the covariance of the examples it holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import Any, final

import numpy as np
import numpy.typing as npt

from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import Factor
from knowmore.linalg.threads import threads_for
from knowmore.models.covariance import Covariance
from knowmore.models.loo import leave_group_out, leave_one_out
from knowmore.models.targets import Coding, Targets

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class LeftOut:
    """What the model says of each example when that example, or its group, is left out.

    scores (n, M), variance (n,) with the noise included, in the order of ids and labels.
    """

    ids: Array
    labels: Array
    scores: Array
    variance: Array
    predicted: Array


@final
@dataclass(frozen=True, eq=False)
class GP:
    """An immutable Gaussian process; `follow` gives the process of other examples.

    n examples, M target columns. `head` is as much of `half` as was known when this was made.

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
        cls, kernel: AnyKernel, noise: float, examples: Examples, coding: Coding, empty: Factor
    ) -> GP:
        """The batch fit."""
        covariance = Covariance.of(kernel, noise, examples, empty)
        targets = coding(examples.labels)
        return cls(covariance, coding, targets, targets.basis[:0])

    @property
    def examples(self) -> Examples:
        """What it learnt from."""
        return self.covariance.examples

    def follow(self, examples: Examples) -> GP:
        """The batch fit of `examples`, by the smallest update that leads there."""
        targets = self.coding(examples.labels)
        with threads_for(len(examples) ** 2, 1 + len(targets.names)):
            covariance = self.covariance.follow(examples)
        known = self.__dict__.get("half", self.head)[: self._unchanged(examples)]
        return GP(covariance, self.coding, targets, targets.carry(self.targets, known))

    def _unchanged(self, examples: Examples) -> int:
        """How many leading rows have the same example and the same label there."""
        deleted, _ = examples.since(self.examples)
        rows = int(deleted[0]) if len(deleted) else len(self.examples)
        differs = examples.labels[:rows] != self.examples.labels[:rows]
        if not differs.any():
            return rows
        return int(differs.reshape(rows, -1).any(axis=1).argmax())

    @cached_property
    def half(self) -> Array:
        """The first half of the solve for the coefficients, (n, M): an append extends it."""
        return self.covariance.factor.forward(self.targets.basis, self.head)

    @cached_property
    def coefficients(self) -> Array:
        """A = K~^-1 T, (n, M)."""
        A = self.covariance.factor.backward(self.half).astype(float)
        return np.asarray(A @ self.targets.mix)

    def mean(self, X: Array) -> Array:
        """mu_* = k_*' K~^-1 T, (m, M). Eqs. (2) and (4), Lütz et al."""
        with threads_for(len(self.examples) ** 2, 1 + len(self.targets.names)):
            A = self.coefficients
            scores = [self.covariance.cross(part).T @ A for part in self.covariance.parts(X)]
        return np.concatenate(scores or [np.zeros((0, A.shape[1]))])

    def variance(self, X: Array) -> Array:
        """sigma_*^2, (m,), the noise included. Eq. (3)."""
        return self.covariance.variance(X)

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Means (n, M) and variances (n,) of the examples by those of other groups."""
        factor, A, T = self.covariance.factor, self.coefficients, self.targets.T
        if groups is None:
            return leave_one_out(factor, A, T)
        return leave_group_out(factor, A, T, groups)

    def log_marginal_likelihood(self) -> float:
        """-1/2 tr(T'A) - M/2 log |K~| - nM/2 log 2 pi, summed over the M columns."""
        T = self.targets.T
        n, M = len(T), T.shape[1]
        fit = float(np.einsum("ij,ij->", T, self.coefficients))
        size = self.covariance.factor.logdet() + n * log(2 * pi)
        return float(-0.5 * (fit + M * size))

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples.

        The backward error |T - K~A| / (|K~| |A| + |T|), Frobenius norms: the smallest relative
        change of K~ and T for which the coefficients are exact (Rigal and Gaches). The kernel is
        evaluated anew, so this takes about as long as a prediction for all examples.
        """
        A, T = self.coefficients, self.targets.T
        R, square = np.empty_like(T), 0.0
        for rows, K in self.covariance.matrix_rows():
            R[rows] = T[rows] - K @ A
            square += float(np.einsum("ij,ij->", K, K))
        norm = np.linalg.norm
        scale = float(np.sqrt(square) * norm(A) + norm(T))
        return float(norm(R)) / scale if scale else 0.0
