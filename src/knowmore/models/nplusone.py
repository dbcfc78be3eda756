"""From N to N+1 classes: least-squares SVMs that start from what is known (MULTIpLE).

Kuzborskij, Orabona and Caputo take the known classes' hyperplanes W' and look for the W, w_{N+1}
and b of the least

    1/2 |W - W'|^2 + 1/2 |w_{N+1} - W' beta|^2 + C/2 sum_i sum_n (w_n'x_i + b_n - Y_in)^2.

That is a least-squares SVM on shifted targets, Y - [S, S beta]: S (n, N) are the scores that the
known classifier gives the examples. They are kept as the last N columns of the inputs, so that this
model needs nothing else of that classifier; its kernel sees the other columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from knowmore.arrays import Array, Frozen, derived
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import Factor
from knowmore.models.covariance import Covariance
from knowmore.models.hinges import Hinges, Minimum, Optimiser, interior
from knowmore.models.loo import Verdicts, tied, verdicts
from knowmore.models.lssvm import LSSVM
from knowmore.models.model import brief
from knowmore.models.targets import Targets, one_vs_all


@final
@dataclass(frozen=True)
class Shifted:
    """The coding of N known classes, `known`, and one more: Y - [S, S beta].

    The basis is the indicators of the classes and S itself: beta is a matter of the mix alone.
    """

    known: tuple[Any, ...]

    def __call__(self, examples: Examples) -> Targets:
        """The targets for beta = 0."""
        plain = one_vs_all(examples)
        S = examples.X[:, -len(self.known) :]
        basis = np.hstack([plain.basis, S])
        mix = np.vstack([plain.mix, -self.transfer(plain.names, np.zeros(len(self.known)))])
        return Targets(plain.names, basis, mix)

    def transfer(self, names: Array, beta: Array) -> Array:
        """[I, beta] (N, N + 1), columns as in `names`: what each class takes from the known."""
        new = ~np.isin(names, self.known)
        J = np.zeros((len(self.known), len(names)))
        J[:, ~new] = np.eye(len(self.known))
        J[:, new] = beta[:, None]
        return J


@final
@dataclass(frozen=True, eq=False, repr=False)
class NPlusOne(Frozen):
    """An immutable model of N+1 classes; `follow` gives that of other examples.

    `plain` is the same with beta = 0. beta is the convex optimum of a multi-class hinge loss on
    leave-one-out scores, found when first asked for.
    """

    plain: LSSVM
    coding: Shifted
    positive: bool = True
    optimiser: Optimiser = interior

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        C: float,
        examples: Examples,
        coding: Shifted,
        empty: Factor,
        update: str = "auto",
        *,
        bias: bool = True,
        positive: bool = True,
        optimiser: Optimiser = interior,
    ) -> NPlusOne:
        """The batch fit."""
        plain = LSSVM.of(kernel, C, examples, coding, empty, update=update, bias=bias)
        return cls(plain, coding, positive, optimiser)

    @property
    def covariance(self) -> Covariance:
        """The examples and the factor of K + I / C."""
        return self.plain.covariance

    __repr__ = brief

    @property
    def examples(self) -> Examples:
        """What it learnt from; the last N inputs are the scores S."""
        return self.plain.examples

    @property
    def targets(self) -> Targets:
        """What it learnt for these: Y - [S, S beta]."""
        return self.shifted.targets

    @property
    def C(self) -> float:
        """The weight of the squared errors beside the norms."""
        return self.plain.C

    def follow(self, examples: Examples) -> NPlusOne:
        """The batch fit of `examples`, by the smallest update that leads there."""
        return replace(self, plain=self.plain.follow(examples))

    def under(self, kernel: AnyKernel, examples: Examples) -> NPlusOne:
        """The batch fit of `examples` with another kernel."""
        return replace(self, plain=self.plain.under(kernel, examples))

    @derived
    def hinges(self) -> Hinges:
        """The loss of beta on leave-one-out scores, a hinge for each example.

        Only the new class's score moves with beta: Y^_i(beta) = Y^_i(0) + A''_i beta / M_ii, where
        A'' solves for S. An example of a known class asks that this stay one below its own
        class's score; one of the new class, that it be one above all others.
        """
        svm, names = self.plain, self.plain.targets.names
        n, N = len(svm.examples), len(self.coding.known)
        S = svm.examples.X[:, -N:]
        scores, variance = svm.leave_one_out()
        scores = scores + S @ self.coding.transfer(names, np.zeros(N))
        A, _ = svm.eliminated(S, svm.gp.solved[:, -N:])
        new = ~np.isin(names, self.coding.known)
        own = np.searchsorted(names, svm.examples.labels)
        is_new = new[own]
        rival = np.where(is_new, scores[:, ~new].max(axis=1), -scores[np.arange(n), own])
        sign = np.where(is_new, -1.0, 1.0)
        weights = svm.covariance.weights
        offsets = weights * (1 + rival + sign * scores[:, new][:, 0])
        return Hinges(offsets, (weights * sign * variance)[:, None] * A)

    @derived
    def minimum(self) -> Minimum:
        """beta (N,) with its loss and how far that is at most above the least."""
        return self.optimiser(self.hinges, self.positive)

    @derived
    def shifted(self) -> LSSVM:
        """The machine on the shifted targets."""
        gp = self.plain.gp
        names, basis = gp.targets.names, gp.targets.basis
        mix = gp.targets.mix.copy()
        mix[len(names) :] = -self.coding.transfer(names, self.minimum.beta)
        gp = replace(gp, targets=Targets(names, basis, mix), head=gp.half)
        return LSSVM(gp, self.plain.bias)

    def _transferred(self, X: Array) -> Array:
        """What the classes take from the known ones' scores, (m, N + 1)."""
        names, N = self.plain.targets.names, len(self.coding.known)
        return np.asarray(X[:, -N:] @ self.coding.transfer(names, self.minimum.beta))

    def mean(self, X: Array) -> Array:
        """The scores [s, s beta] + k_*' A + b', (m, N + 1); s are the last N columns of X."""
        return self.shifted.mean(X) + self._transferred(X)

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Scores (n, N + 1) and variances (n,) of the examples by those of other groups.

        beta stays as it is: it was chosen on these very scores.
        """
        return self.verdicts(groups)[:2]

    def verdicts(self, groups: Array | None = None) -> Verdicts:
        """The same. Nobody is met with silence: of whom the examples say nothing the source does.

        What they say of such a one is exactly their offsets, as if it were infinitely far.
        """
        left, error, offsets = self.shifted.left_out(groups)
        scores = verdicts(left, error, offsets, classes=False).scores
        scores = tied(scores + self._transferred(self.examples.X), error)
        return Verdicts(scores, left.variance, np.zeros(len(scores), dtype=bool))

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples, given beta."""
        return self.shifted.residual()
