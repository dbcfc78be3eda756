"""The kernel model: one solve for Gaussian processes and least-squares SVMs.

    [[K~, 1], [1', 0]] [A; b'] = [T; 0],    K~ = K + sigma^2 diag(1 / w)

A Gaussian process has no border of ones, so that A = K~^-1 T and b = 0 (Lütz et al., eqs. 2 to 4).
A least-squares SVM has one, and C = 1 / sigma^2 (Kuzborskij, Orabona and Caputo, section 1 of the
supplement). Targets less a prior mean, and dependent processes under a task kernel, are the same
solve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from knowmore._base import Array, Frozen, bounded, derived, norm
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Border, Factor, eliminated, probes, product
from knowmore.models.covariance import Asked, Covariance, matrix_rows
from knowmore.models.hinge import expansion
from knowmore.models.loo import LeaveOneOut
from knowmore.models.probabilities import log_marginal_likelihood
from knowmore.models.targets import Coding, Targets, in_squares, one_vs_all
from knowmore.models.unrelated import unrelated

if TYPE_CHECKING:
    from knowmore.models.search import ModelSettings


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
    # The last single row that was asked about, how many were, and the robust model.
    transient: ClassVar[frozenset[str]] = frozenset({"asked", "often", "robust_model"})

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

    @property
    def examples(self) -> Examples:
        """The examples that the model learnt."""
        return self.covariance.examples

    @property
    def count(self) -> int:
        """The number of examples."""
        return len(self.examples)

    def check_examples(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""
        self.coding.check_examples(examples)

    def has(self, settings: ModelSettings) -> bool:
        """Whether these are its kernel and noise."""
        covariance = self.covariance
        return settings.kernel is covariance.kernel and settings.noise == covariance.noise

    def is_certain(
        self, examples: Examples, peak: float, settings: ModelSettings | None = None
    ) -> bool:
        """Whether `follow` is sure to succeed for examples of kappa(x, x) at most `peak`."""
        covariance = self.covariance
        if settings is not None and not self.has(settings):
            covariance = replace(covariance, kernel=settings.kernel, noise=settings.noise)
        return covariance.is_well_conditioned(examples, peak)

    def follow(self, examples: Examples, settings: ModelSettings | None = None) -> KernelModel:
        """The batch fit of `examples`, by the smallest update that leads there.

        settings : another kernel or noise, with which the fit is from scratch
        """
        if settings is not None and not self.has(settings):
            given = {"kernel": settings.kernel, "noise": settings.noise}
            covariance = self.covariance.anew(examples, **given)
            return self.on(covariance, self.coding, bias=self.bias, loss=self.loss)
        since = examples.since(self.examples)
        known, asked = vars(self).get("half", self.head), vars(self).get("asked")
        covariance, known = self.covariance.carry(examples, known, since, asked)
        coded, complete = None, len(self.coded.basis) == len(self.examples)
        if self.coding == one_vs_all and complete and examples.labelled_as(self.examples):
            coded = self.coded.edited(since[0], examples.labels[len(examples) - since[1] :])
        coded = self.coding(examples) if coded is None else coded
        stay = _unchanged(self.examples, examples, since[0], len(known))
        head = coded.carry(self.coded, known[:stay])
        return KernelModel(covariance, self.coding, coded, head, self.bias, self.loss)

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

    @derived
    def minimum(self) -> Any:
        """The choice of a coding that follows the solution, None if there is none."""
        return self.coding.minimum(self)

    @derived
    def targets(self) -> Targets:
        """The targets of the examples, (n, M), after the choice."""
        return self.coding.chosen(self.coded, self.examples, self.minimum)

    @property
    def names(self) -> Array:
        """The columns of scores, (M,): the classes, or the numbers of targets."""
        return self.targets.names

    @property
    def classes(self) -> bool:
        """Whether the columns are classes."""
        return self.coded.classes

    @derived
    def solution(self) -> tuple[Array, Array]:
        """The coefficients A (n, M), and the bias b of each column, (M,); zero without a border."""
        T, mix = self.targets.T, self.targets.mix
        return eliminated(self.border, T, product(self.solved, mix))

    @property
    def coefficients(self) -> Array:
        """A, (n, M)."""
        return self.solution[0]

    # -- asking ------------------------------------------------------------------------------

    def mean(self, X: Array) -> Array:
        """mu_* = k_*' A + b', (m, M), in the units of the targets. Eqs. (2) and (4), Lütz et al.

        A prior mean is added, if the targets have one.
        """
        if len(X) == 1 and _is_one_of_few(self):
            return mean_of(self, _single(self, X), X)
        A, b = expansion(self)
        scores = self.covariance.expansion(X, A)
        return self.targets.values(scores + b if self.bias else scores, X)

    def variance(self, X: Array) -> Array:
        """sigma_*^2, (m,), noise included; (m, M) if the columns have units. Eq. (3).

        The variance of a Gaussian process: a bias is taken as known.
        """
        return in_squares(self.covariance.variance(X), self.targets.units)

    def log_marginal_likelihood(self) -> float:
        """log p(T | X) without a bias, summed over the M columns.

        The density of T: of normalised values if they have units, as in scikit-learn.
        """
        T = self.targets.T
        fit = float(np.einsum("ij,ij->", T, self.coefficients))
        return float(log_marginal_likelihood(fit, self.covariance.factor.logdet(), *T.shape))

    def residual(self) -> float:
        """The distance of the model from the batch fit of its examples, given beta.

        The backward error of the coefficients (see `_residual`), or with a bias the
        distance of their sums from zero, whichever is larger.
        """
        if not self.bias:
            # Targets mixed from the basis may be rounding alone, such as values that are all equal.
            return _residual(self.covariance, self.solved, self.coded.basis)
        (A, b), T = self.solution, self.targets.T
        # Of all columns together: one whose targets are all the same has rounding alone.
        size = float(abs(A).sum(axis=0).max(initial=0))
        unbalanced = float(abs(A.sum(axis=0)).max(initial=0)) / (size or 1.0)
        return max(_residual(self.covariance, A, T - b), unbalanced)

    # -- questions that every family answers ---------------------------------------------------

    @property
    def left_out(self) -> LeaveOneOut:
        """The examples, each predicted by the model without it."""
        return LeaveOneOut(self)

    @derived
    def temperature(self) -> float:
        """tau of the probabilities (`class_probabilities`), from leave-one-out."""
        return self.left_out.temperature()

    def unrelated(self, X: Array) -> Array:
        """Which rows of X (m, d) have nothing in common with any example, (m,)."""
        return unrelated(self, X)

    @property
    def largest_variance(self) -> Array:
        """The variance of a row as large as the largest example, (), or (M,) with units."""
        largest = np.asarray(self.covariance.noise + self.covariance.own.max(initial=0))
        return in_squares(largest, self.targets.units)


def _unchanged(earlier: Examples, examples: Examples, deleted: Array, rows: int) -> int:
    """The number of leading rows whose labels are unchanged; all of these rows stay."""
    if examples.labelled_as(earlier):
        return rows
    before = np.delete(earlier.labels, deleted, axis=0) if len(deleted) else earlier.labels
    differs = examples.labels[:rows] != before[:rows]
    if not differs.any():
        return rows
    return int(differs.any(axis=tuple(range(1, differs.ndim))).argmax())


# -- a single row, from half of the solve ----------------------------------------------------------


def _is_one_of_few(model: KernelModel) -> bool:
    """Whether a single row is best answered without the coefficients, which take M solves.

    They are worth it from the M-th question on, or if they are there already, or if nothing is
    known of an earlier model: then this is no stream.
    """
    kept = vars(model)
    known = "solved" in kept or model.loss != "squared"
    if known or not len(model.head) or model.coding.chooses:
        return False
    kept["often"] = kept.get("often", 0) + 1
    nested = model.covariance.factor.traits.nested
    return bool(nested and kept["often"] < model.coded.basis.shape[1])


def _single(model: KernelModel, X: Array) -> Array:
    """k_*' K~^-1 B, (1, M + r), of one row X (1, d) as (L^-1 k_*)' (L^-1 B): one solve, not M."""
    k = model.covariance.cross(X)
    q = model.covariance.half_solve(k)
    vars(model)["asked"] = Asked(X.copy(), k, q)
    return q.T @ model.half


def mean_of(model: KernelModel, P: Array, X: Array) -> Array:
    """The means of a model for X, (m, M), from P = k_*' K~^-1 B, (m, M + r), for the basis B.

    With a bias, let u = L^-1 1, s = u'u and H = L^-1 B: P + (1 - u'q) u'H / s, where u'q, the
    sum of the indicators' columns of P, is the prediction for a target of ones.
    """
    if model.bias:
        M, H = len(model.coded.names), model.half
        u = H[:, :M].sum(axis=1, dtype=float)
        P = P + np.outer(1 - P[:, :M].sum(axis=1), u @ H) / (u @ u)
    return model.targets.values(bounded(lambda: P @ model.targets.mix), X)


def joint(model: KernelModel, X: Array) -> Array:
    """The covariance of the targets of X (m, d), noise included, (m, m), or (m, m, M)."""
    covariance = model.covariance
    H = covariance.half_solve(covariance.cross(X))
    C = corner(covariance.kernel, covariance.seen(X)) - H.T @ H
    # The diagonal equals `variance`: never below the noise.
    C.flat[:: len(C) + 1] = covariance.variance(X)
    return in_squares(C, model.targets.units)


def _residual(of: Covariance, A: Array, T: Array) -> float:
    """The distance of A (n, M) from K~^-1 T, or of the factor from K~, whichever is larger.

    The backward error |T - K~A| / (|K~| |A| + |T|), Frobenius norms: the smallest relative
    change of K~ and T for which A is exact (Rigal and Gaches). For the factor, the same of what
    it solves for a few random vectors z; of an explicit inverse P it is |z - K~Pz| / |z|, as a
    wrong P is large and would hide in |P z|. The kernel is evaluated again, so this takes about
    as long as a prediction for all examples.
    """
    Z, M = probes(len(T)), T.shape[1]
    X = of.factor.solve(Z).astype(float)
    R, size = np.hstack([T, Z]), 0.0
    for rows, K in matrix_rows(of):
        R[rows] -= K @ np.hstack([A, X])
        size = float(np.hypot(size, norm(K)))
    scales = size * norm(A) + norm(T), size * norm(X) * of.factor.traits.stable + norm(Z)
    errors = norm(R[:, :M]), norm(R[:, M:])
    return max(e / s if s else 0.0 for e, s in zip(errors, scales, strict=True))
