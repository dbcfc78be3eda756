"""The kernel model: one solve for Gaussian processes and least-squares SVMs.

    [[K~, 1], [1', 0]] [A; b'] = [T; 0],    K~ = K + sigma^2 diag(1 / w)

A Gaussian process has no border of ones, so that A = K~^-1 T and b = 0 (Lütz et al., eqs. 2 to 4).
A least-squares SVM has one, and C = 1 / sigma^2 (Kuzborskij, Orabona and Caputo, section 1 of the
supplement). Targets less a prior mean, and dependent processes under a task kernel, are the same
solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, final

import numpy as np

from knowmore._base import Array, Frozen, Id, bounded, derived
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Border, Factor, product
from knowmore.models.covariance import Asked, Covariance
from knowmore.models.hinge import Hinge, squared_hinge
from knowmore.models.loo import LeaveOneOut, LeavesOut
from knowmore.models.newness import Newness, null_space
from knowmore.models.probabilities import log_marginal_likelihood
from knowmore.models.targets import Coding, Targets, in_squares, one_vs_all
from knowmore.models.unrelated import unrelated

# Caches dropped from pickles: the last single row that was asked about, the number of questions
# about single rows, and the robust model.
_TRANSIENT = {"asked", "often", "robust_model"}


class Model(Protocol):
    """A frozen model of n examples with M columns of targets, as `Living` needs it."""

    @property
    def covariance(self) -> Covariance:
        """The examples, the kernel and the factor."""

    @property
    def examples(self) -> Examples:
        """The examples that the model learnt."""

    @property
    def targets(self) -> Targets:
        """The targets of the examples."""

    @property
    def names(self) -> Array:
        """The columns of scores, (M,): the classes, or the numbers of targets."""

    def admit(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""

    def is_certain(self, examples: Examples, peak: float) -> bool:
        """Whether `follow` is sure to succeed for examples of kappa(x, x) at most `peak`."""

    def follow(self, examples: Examples) -> Self:
        """The batch fit of `examples`, by the smallest update that leads there."""

    def refit(self, kernel: AnyKernel, examples: Examples) -> Self:
        """The batch fit of `examples` with another kernel; all other settings stay."""

    def mean(self, X: Array) -> Array:
        """The scores (m, M) of X (m, d)."""

    @property
    def left_out(self) -> LeavesOut:
        """The examples, each predicted by the model without it."""

    def residual(self) -> float:
        """The distance of the model from the batch fit of its examples."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(Frozen):
    """A frozen kernel model; `follow` gives the model of other examples.

    covariance : of the n examples, with its factor
    coding : makes targets of examples
    coded : the targets, (n, M), before any choice; solved for is their basis of M + r columns
    head : the leading rows of `half` that are known already
    bias : whether each column has an offset: the border of ones
    loss : "squared", or "squared_hinge" for the scores of `Hinge`

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models import one_vs_all
    >>> some = Examples.of(np.array([[0.0], [1.0], [1.5]]), np.array(["no", "yes", "yes"]))
    >>> gp = KernelModel.of(RBF(), 0.1, some, one_vs_all, Cholesky())
    >>> svm = KernelModel.of(RBF(), 0.1, some, one_vs_all, Cholesky(), bias=True)
    >>> far = np.array([[0.0], [99.0]])
    >>> gp.mean(far).round(2), svm.mean(far).round(2)
    (array([[ 0.79, -0.79],
           [ 0.  ,  0.  ]]), array([[ 0.8 , -0.8 ],
           [ 0.08, -0.08]]))
    """

    keeps_rows: ClassVar[bool] = True
    has_gram: ClassVar[bool] = True
    one_covariance: ClassVar[bool] = True
    best_novelty: ClassVar[str] = "combined"

    covariance: Covariance
    coding: Coding
    coded: Targets
    head: Array
    bias: bool = False
    loss: str = "squared"

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        noise: float,
        examples: Examples,
        coding: Coding,
        empty: Factor,
        *,
        bias: bool = False,
    ) -> KernelModel:
        """The batch fit; `empty` is a factor of size 0. A bias takes classes."""
        return cls.on(Covariance.of(kernel, noise, examples, empty), coding, bias=bias)

    @classmethod
    def on(
        cls, covariance: Covariance, coding: Coding, *, bias: bool = False, loss: str = "squared"
    ) -> KernelModel:
        """The model on a factorised covariance. A bias or the squared hinge takes classes."""
        coded = coding(covariance.examples)
        return cls(covariance, coding, coded, coded.basis[:0], bias, loss)

    def __repr__(self) -> str:
        return (
            f"KernelModel({len(self.examples)} examples, {len(self.coded.names)} columns, "
            f"{self.covariance.kernel!r}, noise={self.covariance.noise:g}, bias={self.bias})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().__getstate__().items() if name not in _TRANSIENT
        }

    @property
    def examples(self) -> Examples:
        """The examples that the model learnt."""
        return self.covariance.examples

    @property
    def count(self) -> int:
        """The number of examples."""
        return len(self.examples)

    def answering(
        self, X: Array, ids: Sequence[Id] | None = None
    ) -> list[list[tuple[KernelModel, Array]]]:
        """The model itself, with all rows of X (m, d): a forest of one tree and one leaf."""
        return [[(self, np.arange(len(X)))]]

    @property
    def C(self) -> float:
        """The weight of the squared errors beside the norm, 1 / sigma^2; infinite without noise."""
        return 1 / self.covariance.noise if self.covariance.noise else np.inf

    def admit(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""
        self.coding.admit(examples)

    def is_certain(self, examples: Examples, peak: float) -> bool:
        """Whether `follow` is sure to succeed for examples of kappa(x, x) at most `peak`."""
        return self.covariance.is_well_conditioned(examples, peak)

    def follow(self, examples: Examples) -> KernelModel:
        """The batch fit of `examples`, by the smallest update that leads there."""
        since = examples.since(self.examples)
        known = vars(self).get("half", self.head)
        asked = vars(self).get("asked")
        covariance, known = self.covariance.carry(examples, known, since, asked)
        coded, complete = None, len(self.coded.basis) == len(self.examples)
        if self.coding is one_vs_all and complete and examples.labelled_as(self.examples):
            coded = self.coded.edited(since[0], examples.labels[len(examples) - since[1] :])
        coded = self.coding(examples) if coded is None else coded
        head = coded.carry(self.coded, known[: self._unchanged(examples, since[0], len(known))])
        return KernelModel(covariance, self.coding, coded, head, self.bias, self.loss)

    def refit(self, kernel: AnyKernel, examples: Examples) -> KernelModel:
        """The batch fit of `examples` with another kernel."""
        covariance = self.covariance.anew(examples, kernel=kernel)
        return self.on(covariance, self.coding, bias=self.bias, loss=self.loss)

    def _unchanged(self, examples: Examples, deleted: Array, rows: int) -> int:
        """The number of leading rows whose labels are unchanged; all of these rows stay."""
        if examples.labelled_as(self.examples):
            return rows
        before = self.examples.labels
        before = np.delete(before, deleted, axis=0) if len(deleted) else before
        differs = examples.labels[:rows] != before[:rows]
        if not differs.any():
            return rows
        return int(differs.any(axis=tuple(range(1, differs.ndim))).argmax())

    # -- the solve ---------------------------------------------------------------------------

    @derived
    def half(self) -> Array:
        """The first half of the solve for the coefficients, (n, M + r): an append extends it."""
        return self.covariance.factor.forward(self.coded.basis, self.head)

    @derived
    def solved(self) -> Array:
        """K~^-1 applied to the basis of the targets, (n, M + r)."""
        return self.covariance.factor.backward(self.half).astype(float)

    @derived
    def border(self) -> Border | None:
        """The column of ones, solved for without a solve: it is the sum of the indicators."""
        if not self.bias:
            return None
        v = self.solved[:, : len(self.coded.names)].sum(axis=1)
        return Border(np.ones(len(v)), v)

    def eliminated(self, B: Array, solved: Array) -> tuple[Array, Array]:
        """Z (n, m) and z (m,) for right-hand sides B (n, m) and `solved` = K~^-1 B."""
        if self.border is None:
            return solved, np.zeros(solved.shape[1])
        return self.border.eliminated(B, solved)

    @derived
    def minimum(self) -> Any:
        """The choice of a coding that follows the solution, None if there is none."""
        return self.coding.minimum(self)

    @property
    def targets(self) -> Targets:
        """The targets of the examples, (n, M), after the choice."""
        return self._targets

    @property
    def names(self) -> Array:
        """The columns of scores, (M,): the classes, or the numbers of targets."""
        return self.targets.names

    @property
    def classes(self) -> bool:
        """Whether the columns are classes."""
        return self.coded.classes

    @derived
    def _targets(self) -> Targets:
        return self.coding.chosen(self.coded, self.examples, self.minimum)

    @derived
    def _solution(self) -> tuple[Array, Array]:
        return self.eliminated(self.targets.T, product(self.solved, self.targets.mix))

    @property
    def coefficients(self) -> Array:
        """A, (n, M)."""
        return self._solution[0]

    @property
    def offsets(self) -> Array:
        """The bias b of each column, (M,); zero without a border."""
        return self._solution[1]

    @derived
    def hinge(self) -> Hinge | None:
        """The minimum of the squared hinge; None if the loss is the square."""
        if self.loss == "squared":
            return None
        covariance, T = self.covariance, self.targets.T

        def solve(D: Array) -> Array:
            return self.eliminated(D, covariance.solve(D))[0]

        K = np.asarray(corner(covariance.kernel, covariance.X), dtype=float)
        return squared_hinge(K, covariance.noise / covariance.weights, T, solve, bias=self.bias)

    @property
    def expansion(self) -> tuple[Array, Array]:
        """The coefficients (n, M) and offsets (M,) that scores are made of."""
        return self._solution if self.hinge is None else self.hinge[:2]

    # -- asking ------------------------------------------------------------------------------

    def mean(self, X: Array) -> Array:
        """mu_* = k_*' A + b', (m, M), in the units of the targets. Eqs. (2) and (4), Lütz et al.

        A prior mean is added, if the targets have one.
        """
        if len(X) == 1 and self._asked_seldom():
            return self.values(self._single(X), X)
        A, offsets = self.expansion
        scores = self.covariance.expansion(X, A)
        return self.targets.values(scores + offsets if self.bias else scores, X)

    def _asked_seldom(self) -> bool:
        """Whether a single row is best answered without the coefficients, which take M solves.

        They are worth it from the M-th question on, or if they are there already, or if nothing is
        known of an earlier model: then this is no stream.
        """
        known = "solved" in vars(self) or self.loss != "squared"
        if known or not len(self.head) or self.coding.chooses:
            return False
        often = vars(self)["often"] = vars(self).get("often", 0) + 1
        return bool(self.covariance.factor.traits.nested and often < self.coded.basis.shape[1])

    def _single(self, X: Array) -> Array:
        """mu_*, (1, M), of one row X (1, d) as (L^-1 k_*)' (L^-1 T): one solve instead of M."""
        k = self.covariance.cross(X)
        q = self.covariance.half_solve(k)
        vars(self)["asked"] = Asked(X.copy(), k, q)
        return q.T @ self.half

    def values(self, P: Array, X: Array) -> Array:
        """`mean` of X, (m, M), from P = k_*' K~^-1 B, (m, M + r), for the basis B.

        With a bias, let u = L^-1 1, s = u'u and H = L^-1 B: P + (1 - u'q) u'H / s, where u'q, the
        sum of the indicators' columns of P, is the prediction for a target of ones.
        """
        if self.bias:
            M, H = len(self.coded.names), self.half
            u = H[:, :M].sum(axis=1, dtype=float)
            P = P + np.outer(1 - P[:, :M].sum(axis=1), u @ H) / (u @ u)
        return self.targets.values(bounded(lambda: P @ self.targets.mix), X)

    def variance(self, X: Array) -> Array:
        """sigma_*^2, (m,), noise included; (m, M) if the columns have units. Eq. (3).

        The variance of a Gaussian process: a bias is taken as known.
        """
        return in_squares(self.covariance.variance(X), self.targets.units)

    def joint(self, X: Array) -> Array:
        """The covariance of the targets of X (m, d), noise included, (m, m), or (m, m, M)."""
        H = self.covariance.half_solve(self.covariance.cross(X))
        C = corner(self.covariance.kernel, self.covariance.seen(X)) - H.T @ H
        # The diagonal equals `variance`: never below the noise.
        C.flat[:: len(C) + 1] = self.covariance.variance(X)
        return in_squares(C, self.targets.units)

    def log_marginal_likelihood(self) -> float:
        """log p(T | X) without a bias, summed over the M columns.

        The density of T: of normalised values if they have units, as in scikit-learn.
        """
        T = self.targets.T
        fit = float(np.einsum("ij,ij->", T, self.coefficients))
        return float(log_marginal_likelihood(fit, self.covariance.factor.logdet(), *T.shape))

    def residual(self) -> float:
        """The distance of the model from the batch fit of its examples, given beta.

        The backward error of the coefficients (see `Covariance.residual`), or with a bias the
        distance of their sums from zero, whichever is larger.
        """
        if not self.bias:
            # Targets mixed from the basis may be rounding alone, such as values that are all equal.
            return self.covariance.residual(self.solved, self.coded.basis)
        A, T = self.coefficients, self.targets.T - self.offsets
        # Of all columns together: one whose targets are all the same has rounding alone.
        size = float(abs(A).sum(axis=0).max(initial=0))
        unbalanced = float(abs(A.sum(axis=0)).max(initial=0)) / (size or 1.0)
        return max(self.covariance.residual(A, T), unbalanced)

    # -- about the examples ------------------------------------------------------------------

    @property
    def left_out(self) -> LeaveOneOut:
        """The examples, each predicted by the model without it."""
        return LeaveOneOut(self)

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Scores (n, M) and variances (n,), or (n, M) with units: see `LeaveOneOut.scores`."""
        return self.left_out.scores(groups)[:2]

    @derived
    def robust_model(self) -> KernelModel:
        """Least squares of the same examples at ten times the noise: it trusts each label less.

        A model of other labels of the same examples has the same factor for it. The model itself,
        if there is no covariance with more noise.
        """
        if self.covariance.noisier is self.covariance:
            return self
        return KernelModel.on(self.covariance.noisier, self.coding, bias=self.bias)

    @derived
    def temperature(self) -> float:
        """tau of the probabilities Phi(mu^(c) / sigma)^(1 / tau), from leave-one-out."""
        return self.left_out.temperature()

    @derived
    def score_temperature(self) -> float:
        """tau of the probabilities Phi(mu^(c))^(1 / tau), in which the variance plays no part."""
        return self.left_out.temperature(with_variance=False)

    @derived
    def newness(self) -> Newness:
        """How new rows are to a model of classes, by all that it knows of them."""
        return Newness.of(self)

    def nearest(self, X: Array) -> Array:
        """The distance of rows X (m, d) to the nearest class in the null space, (m,)."""
        return null_space(self).nearest(self.covariance.expansion(X, self.solved))

    def unrelated(self, X: Array) -> Array:
        """Which rows of X (m, d) have nothing in common with any example, (m,)."""
        return unrelated(self, X)

    @property
    def largest_variance(self) -> Array:
        """The variance of a row as large as the largest example, (), or (M,) with units."""
        largest = np.asarray(self.covariance.noise + self.covariance.own.max(initial=0))
        return in_squares(largest, self.targets.units)
