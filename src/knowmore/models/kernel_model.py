"""The kernel model: one solve for Gaussian processes, least-squares SVMs and transfer.

    [[K~, 1], [1', 0]] [A; b'] = [T; 0],    K~ = K + sigma^2 diag(1 / w)

A Gaussian process has no border of ones, so that A = K~^-1 T and b = 0 (Lütz et al., eqs. 2 to 4).
A least-squares SVM has one, and C = 1 / sigma^2 (Kuzborskij, Orabona and Caputo, section 1 of the
supplement). To go from N to N+1 classes is the same on shifted targets: see `Transfer`. Dependent
processes are the same under a task kernel: see `OneShot`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, final

import numpy as np

from knowmore.arrays import Array, Frozen, bounded, derived
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Border, Factor
from knowmore.linalg.products import product
from knowmore.models.covariance import Asked, Covariance
from knowmore.models.hinge import Hinge, squared_hinge
from knowmore.models.likelihood import log_marginal_likelihood
from knowmore.models.loo import LooMoments, LooScores, Scale, leave_out, silenced, tied
from knowmore.models.newness import Newness, null_space
from knowmore.models.probabilities import Trial
from knowmore.models.targets import Coding, Targets, Units, one_vs_all
from knowmore.models.transfer import Minimum, Transfer
from knowmore.models.unrelated import unrelated, unrelated_left_out
from knowmore.models.weights import Weighting

# The last single row that a model was asked about, and how many there were; a second opinion.
_ASIDE = {"asked", "often", "sceptic"}
# A variance left out is that of the example, sigma^2 / w included, less that. An example of a
# smaller weight is asked about as a new row instead: else rounding is all that is left.
_LIGHT = 1e-6


class Model(Protocol):
    """A frozen model of n examples with M columns of targets: what `Living` asks of one."""

    @property
    def covariance(self) -> Covariance:
        """The examples, the kernel and the factor."""

    @property
    def examples(self) -> Examples:
        """The examples that it learnt from."""

    @property
    def targets(self) -> Targets:
        """What it learnt for these."""

    @property
    def names(self) -> Array:
        """What the columns of scores stand for, (M,): the classes, or the numbers of targets."""

    def admit(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""

    def is_certain(self, examples: Examples, peak: float) -> bool:
        """Whether `follow` is sure to succeed for examples of kappa(x, x) at most `peak`."""

    def follow(self, examples: Examples) -> Self:
        """The batch fit of `examples`, by the smallest update that leads there."""

    def refit(self, kernel: AnyKernel, examples: Examples) -> Self:
        """The batch fit of `examples` with another kernel; all other settings stay."""

    def mean(self, X: Array, side: Array | None = None) -> Array:
        """The scores (m, M) of X (m, d), with what else is known of the rows, side (m, q)."""

    def loo(self, groups: Array | None = None) -> LooScores:
        """Predictions for the examples from those of other groups; groups (n,)."""

    def loo_on(self, X: Array, side: Array | None, groups: tuple[Array, Array] | None) -> LooScores:
        """The same for new rows X (m, d).

        groups : those of the rows, (m,), and of the examples, (n,), which leave their own rows out
        """

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples."""


def loo_scores(model: Model, examples: Examples, groups: Array | None) -> LooScores:
    """Predictions for all `examples` from the others of positive weight, which are the model's.

    groups : (n,), examples of a group are left out together; None: each by itself
    """
    if model.examples is examples:
        return model.loo(groups)
    counts = examples.weights > 0
    both = None if groups is None else (groups[~counts], groups[counts])
    known = model.loo(None if both is None else both[1])
    new = model.loo_on(examples.X[~counts], examples.side[~counts], both)
    rows = np.append(np.flatnonzero(counts), np.flatnonzero(~counts)).argsort()
    return LooScores(*(np.concatenate(parts)[rows] for parts in zip(known, new, strict=True)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(Frozen):
    """A frozen kernel model; `follow` gives the model of other examples.

    covariance : of the n examples, with its factor
    coding : makes targets of examples
    coded : the targets, (n, M), before any transfer; solved for is their basis of M + r columns
    head : the leading rows of `half` that are known already
    bias : whether each column has an offset: the border of ones
    loss : "squared", or "squared_hinge" for scores that are those of `Hinge`

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
        weighting: Weighting | None = None,
        update: str = "auto",
        *,
        bias: bool = False,
        loss: str = "squared",
    ) -> KernelModel:
        """The batch fit; `empty` is a factor of size 0. A bias or hinge takes classes."""
        covariance = Covariance.of(kernel, noise, examples, empty, weighting, update)
        return cls.on(covariance, coding, bias=bias, loss=loss)

    @classmethod
    def on(
        cls, covariance: Covariance, coding: Coding, *, bias: bool = False, loss: str = "squared"
    ) -> KernelModel:
        """The model on a covariance that is factorised already."""
        coded = coding(covariance.examples)
        return cls(covariance, coding, coded, coded.basis[:0], bias, loss)

    def __repr__(self) -> str:
        return (
            f"KernelModel({len(self.examples)} examples, {len(self.coded.names)} columns, "
            f"{self.covariance.kernel!r}, noise={self.covariance.noise:g}, bias={self.bias})"
        )

    def __getstate__(self) -> dict[str, Any]:
        # These are not a part of it.
        return {name: one for name, one in super().__getstate__().items() if name not in _ASIDE}

    @property
    def examples(self) -> Examples:
        """The examples that it learnt from."""
        return self.covariance.examples

    @property
    def C(self) -> float:
        """The weight of the squared errors beside the norm, 1 / sigma^2; infinite without noise."""
        return 1 / self.covariance.noise if self.covariance.noise else np.inf

    def admit(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""
        if isinstance(self.coding, Transfer):
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
        covariance = self.covariance.with_kernel(kernel, examples)
        return self.on(covariance, self.coding, bias=self.bias, loss=self.loss)

    def _unchanged(self, examples: Examples, deleted: Array, rows: int) -> int:
        """How many of the leading rows, all of which stay, have the label there that they had."""
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
    def minimum(self) -> Minimum | None:
        """The beta of a transfer, with its loss and how far that is at most above the least."""
        return self.coding.minimum(self) if isinstance(self.coding, Transfer) else None

    @property
    def targets(self) -> Targets:
        """What it learnt for its examples, (n, M), transfer included."""
        return self._targets

    @property
    def names(self) -> Array:
        """What the columns of scores stand for, (M,): the classes, or the numbers of targets."""
        return self.targets.names

    @property
    def classes(self) -> bool:
        """Whether the columns are classes."""
        return self.coded.classes

    @derived
    def _targets(self) -> Targets:
        if not isinstance(self.coding, Transfer) or self.minimum is None:
            return self.coded
        beta, share = self.minimum.beta, self.minimum.share
        return self.coding.shifted(self.coded, self.examples, beta, share)

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

    def mean(self, X: Array, side: Array | None = None) -> Array:
        """mu_* = k_*' A + b', (m, M), in the units of the targets. Eqs. (2) and (4), Lütz et al.

        A transfer adds what each class takes from the scores of the known ones, side (m, N).
        """
        if len(X) == 1 and self._asked_seldom():
            return self.values(self._single(X), side)
        A, offsets = self.expansion
        scores = self.covariance.expansion(X, A)
        return self._values(scores + offsets if self.bias else scores, side)

    def _asked_seldom(self) -> bool:
        """Whether a single row is best answered without the coefficients, which take M solves.

        They are worth it from the M-th question on, or if they are there already, or if nothing is
        known of an earlier model: then this is no stream.
        """
        known = "solved" in vars(self) or self.loss != "squared"
        if known or not len(self.head) or isinstance(self.coding, Transfer):
            return False
        often = vars(self)["often"] = vars(self).get("often", 0) + 1
        return bool(self.covariance.factor.traits.nested and often < self.coded.basis.shape[1])

    def _single(self, X: Array) -> Array:
        """mu_*, (1, M), of one row X (1, d) as (L^-1 k_*)' (L^-1 T): one solve instead of M."""
        k = self.covariance.cross(X)
        q = self.covariance.half_solve(k)
        vars(self)["asked"] = Asked(X.copy(), k, q)
        return q.T @ self.half

    def values(self, P: Array, side: Array | None = None) -> Array:
        """What `mean` is, (m, M), from P = k_*' K~^-1 B, (m, M + r), for the basis B.

        With a bias, let u = L^-1 1, s = u'u and H = L^-1 B: P + (1 - u'q) u'H / s, where u'q, the
        sum of the indicators' columns of P, is what the model says of a target of ones.
        """
        if self.bias:
            M, H = len(self.coded.names), self.half
            u = H[:, :M].sum(axis=1, dtype=float)
            P = P + np.outer(1 - P[:, :M].sum(axis=1), u @ H) / (u @ u)
        return self._values(bounded(lambda: P @ self.targets.mix), side)

    def _values(self, T: Array, side: Array | None) -> Array:
        """Predicted targets T (m, M) as values of what the columns stand for."""
        units, transfer = self.targets.units, self.targets.transfer
        if transfer is not None and side is not None:
            return bounded(lambda: T + side @ transfer)
        return T if units is None else bounded(lambda: units.mean + units.scale * T)

    def variance(self, X: Array) -> Array:
        """sigma_*^2, (m,), noise included; (m, M) if the columns have units. Eq. (3).

        It is that of a Gaussian process: a bias is taken as known.
        """
        return in_squares(self.covariance.variance(X), self.targets.units)

    def joint(self, X: Array) -> Array:
        """The covariance of the targets of X (m, d), noise included, (m, m), or (m, m, M)."""
        H = self.covariance.half_solve(self.covariance.cross(X))
        C = corner(self.covariance.kernel, X) - H.T @ H
        # The diagonal is that of `variance`: never below the noise.
        C.flat[:: len(C) + 1] = self.covariance.variance(X)
        return in_squares(C, self.targets.units)

    def log_marginal_likelihood(self) -> float:
        """log p(T | X) without a bias, summed over the M columns.

        It is that of T: of normalised values if they have units, as in scikit-learn.
        """
        T = self.targets.T
        fit = float(np.einsum("ij,ij->", T, self.coefficients))
        return float(log_marginal_likelihood(fit, self.covariance.factor.logdet(), *T.shape))

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples, given the beta of a transfer.

        The backward error of the coefficients (see `Covariance.residual`), or with a bias how far
        their sums are from zero, whichever is larger.
        """
        if not self.bias:
            # Targets mixed from the basis may be rounding alone, such as values that are all equal.
            return self.covariance.residual(self.solved, self.coded.basis)
        A, T = self.coefficients, self.targets.T - self.offsets
        # Of all columns together: one whose targets are all the same has rounding alone.
        size = float(abs(A).sum(axis=0).max(initial=0))
        unbalanced = float(abs(A.sum(axis=0)).max(initial=0)) / (size or 1.0)
        return max(self.covariance.residual(A, T), unbalanced)

    # -- leaving out -------------------------------------------------------------------------

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Scores (n, M) and variances (n,) of the examples by those of other groups.

        The variances are (n, M) if the columns have units, which are then those of the others. The
        beta of a transfer stays: it was chosen on these very scores.
        """
        return self.loo(groups)[:2]

    def loo(self, groups: Array | None = None) -> LooScores:
        """The same, and for which examples the others carry no information."""
        left = self.loo_of(self.targets, groups)
        if self.hinge is None:
            return left
        if groups is not None:
            raise InvalidInput(
                "Groups are left out in closed form of least squares alone. Use loss='squared', or "
                "leave out one example at a time."
            )
        return left._replace(scores=np.where(left.silent[:, None], left.scores, self.hinge.left))

    def unseen(self) -> LooScores:
        """The same for each example alone, as if it were a new row, which weighs one.

        The variances of `loo` include the noise sigma^2 / w of an example of weight w.
        """
        scores, variance, silent = self.loo()
        noise, w = np.asarray(self.covariance.noise), self.covariance.weights
        light = np.flatnonzero(w < _LIGHT)
        if (rest := self.targets.rest()) is not None:
            noise, w = noise * rest.scale**2, w[:, None]
        variance = np.maximum(variance + noise * (1 - 1 / w), noise)
        if len(light) and rest is None and noise > 0:
            # s / (1 - s w / sigma^2) for the posterior variance s without noise.
            s = self.covariance.variance(self.covariance.X[light]) - noise
            variance[light] = noise + s / (1 - s * w[light] / noise)
        return LooScores(scores, variance, silent)

    def backing(self) -> Array:
        """What the others of its class say of each example, (n,): see `Trial`."""
        at, own = np.arange(len(self.examples)), self._codes
        if self.hinge is not None:
            return np.asarray(self.hinge.said[at, own])
        M = len(self.names)
        Y = self.coded.basis[:, :M]
        A, _ = self.eliminated(Y, self.solved[:, :M])
        return np.asarray(1 - A[at, own] / self.inverse_diagonal())

    @property
    def _codes(self) -> Array:
        """The columns of the labels, (n,)."""
        return np.searchsorted(self.names, self.examples.labels)

    def trial(self, n: int | None = None) -> Trial:
        """What the model says of its first n examples, each left out; default: of all."""
        left, codes = self.unseen(), self._codes
        counts = np.bincount(codes[~left.silent], minlength=len(self.names))
        scores, variance, silent = (part[:n] for part in left)
        return Trial(scores, variance, silent, self.backing()[:n], codes[:n], counts)

    @derived
    def sceptic(self) -> KernelModel:
        """Least squares of the same examples that trusts each label less: at ten times the noise.

        A model of other labels of the same examples has the same factor for it. Itself, if there is
        no such covariance.
        """
        if self.covariance.noisier is self.covariance:
            return self
        return KernelModel.on(self.covariance.noisier, self.coding, bias=self.bias)

    @derived
    def temperature(self) -> float:
        """tau of the probabilities Phi(mu^(c) / sigma)^(1 / tau), from leave-one-out."""
        return self._of_several(self.trial)

    @derived
    def score_temperature(self) -> float:
        """The same for Phi(mu^(c))^(1 / tau), where the variance plays no part."""
        return self._of_several(lambda: self.trial()._replace(variance=np.ones(len(self.examples))))

    def _of_several(self, trial: Callable[[], Trial]) -> float:
        """The temperature of a trial; one if a single example leaves none to judge it by.

        And of values, which have no probabilities.
        """
        return trial().temperature if self.classes and len(self.examples) > 1 else 1.0

    def unrelated(self, X: Array) -> Array:
        """Which rows of X (m, d) have nothing in common with any example, (m,)."""
        return unrelated(self, X)

    def unrelated_left_out(self) -> Array:
        """Which examples have nothing in common with any other, (n,)."""
        return unrelated_left_out(self)

    @property
    def largest_variance(self) -> Array:
        """The variance of a row as large as the largest example, (), or (M,) with units."""
        largest = np.asarray(self.covariance.noise + self.covariance.own.max(initial=0))
        return in_squares(largest, self.targets.units)

    def nearest(self, X: Array) -> Array:
        """The distance of rows X (m, d) to the nearest class in the null space, (m,)."""
        return null_space(self).nearest(self.covariance.expansion(X, self.solved))

    @derived
    def newness(self) -> Newness:
        """How new rows are to a model of classes, by all that it knows of them."""
        if not self.classes:
            raise InvalidInput("A model of values has no classes to be new to. Ask for 'variance'.")
        return Newness.of(self)

    def leave_targets_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Means (n, M) and variances (n,) of the targets T, as they are normalised with all."""
        return self.loo_of(replace(self.targets, units=None, shift=None), groups)[:2]

    def loo_of(self, targets: Targets, groups: Array | None = None) -> LooScores:
        """The same for other targets on the same basis, as those before any transfer of beta."""
        rest, T = targets.rest(groups), targets.T
        A, offsets = self.eliminated(T, self.solved @ targets.mix)
        if rest is not None:
            A, T = (targets.mixed(B, rest) for B in (self.solved, targets.basis))
        left = self.loo_moments(A, T, offsets, groups)
        (scores, silent), variance = silenced(left), left.variance
        if rest is not None:
            scores, variance = rest.mean + rest.scale * scores, in_squares(variance, rest)
        if targets.transfer is not None:
            # The source's scores always carry information.
            scores, silent = scores + self.examples.side @ targets.transfer, np.zeros_like(silent)
        return LooScores(tied(scores, left.error) if targets.classes else scores, variance, silent)

    def loo_moments(
        self, A: Array, T: Array, offsets: Array, groups: Array | None = None
    ) -> LooMoments:
        """The closed form for T (n, M) with coefficients A (n, M) and offsets (M,).

        Y_i - A_i / M_ii is the last equation of the supplement's section 1.
        """
        codes = np.arange(len(T)) if groups is None else np.unique(groups, return_inverse=True)[1]
        if self.border is not None and len(np.unique(codes)) < 2:
            raise InvalidInput(
                "Leaving all examples out at once leaves none to compute a bias from. Add "
                "examples, or use smaller groups or bias=False."
            )
        P = self.inverse_diagonal() if groups is None else self.inverse_block
        covariance = self.covariance
        eps = float(np.finfo(covariance.factor.dtype).eps)
        scale = Scale(covariance.diagonal, covariance.noise / covariance.weights, eps)
        return leave_out(P, A, T, codes, scale, self.border, offsets)

    def inverse_diagonal(self) -> Array:
        """The diagonal (n,) of the inverse of the (bordered) matrix; the paper's M_ii."""
        diagonal = self.covariance.factor.inverse_diagonal().astype(float)
        return diagonal if self.border is None else self.border.inverse_diagonal(diagonal)

    def inverse_block(self, rows: Array) -> Array:
        """Rows and columns `rows` (k,) of the inverse of the (bordered) matrix, (k, k)."""
        E = np.zeros((len(self.examples), len(rows)))
        E[rows, np.arange(len(rows))] = 1
        H = self.covariance.factor.half_solve(E).astype(float)
        block = H.T @ H
        return block if self.border is None else self.border.inverse_block(rows, block)

    def loo_on(self, X: Array, side: Array | None, groups: tuple[Array, Array] | None) -> LooScores:
        """Predictions for new rows X (m, d), each from the examples of other groups.

        With P = K~^-1, A = PT and q = (P k_x)_g, leaving out g by block inversion gives

            mean      mu_x - q' P_gg^-1 A_g
            variance  sigma_x^2 + q' P_gg^-1 q

        at weight one. With a bias P and k_x are those of the bordered matrix.
        """
        k, variance = self.covariance.cross(X), self.covariance.variance(X)
        W, units = self.covariance.solve(k), self.targets.units
        # Units change with the group that is left out: what they are mixed from is predicted.
        A = self.coefficients if units is None else self.solved
        mean = k.T @ A + (self.offsets if units is None else 0.0)
        if self.hinge is not None:
            mean = k.T @ self.hinge.A + self.hinge.offsets
        if self.border is not None:
            # What the bias adds: P [k; 1] = K~^-1 k + v (1 - v'k) / s.
            v, s = self.border.v, self.border.s
            open_ = 1 - v @ k
            W += np.outer(v, open_ / s)
            variance = variance + open_**2 / s
        near = k != 0
        for g, rows in _shared(groups):
            Q = W[np.ix_(g, rows)]
            taken = np.linalg.solve(self.inverse_block(g), Q)
            mean[rows] -= taken.T @ A[g]
            variance[rows] += np.einsum("ij,ij->j", Q, taken)
            near[np.ix_(g, rows)] = False
        silent = ~near.any(axis=0)
        if units is None:
            return LooScores(self._values(mean, side), variance, silent)
        rest = self._units_on(len(X), units, groups)
        mean = rest.mean + rest.scale * self.targets.mixed(mean, rest)
        return LooScores(mean, in_squares(variance, rest), silent)

    def _units_on(self, m: int, units: Units, groups: tuple[Array, Array] | None) -> Units:
        """The units for m new rows, (m, M) each: those of the examples of other groups."""
        means, scales = (np.tile(each, (m, 1)) for each in (units.mean, units.scale))
        if groups is not None and (rest := self.targets.rest(groups[1])) is not None:
            for g, rows in _shared(groups):
                means[rows], scales[rows] = rest.mean[g[0]], rest.scale[g[0]]
        return Units(means, scales)


def _shared(groups: tuple[Array, Array] | None) -> Iterator[tuple[Array, Array]]:
    """For each group of new rows and examples: its examples, and its rows."""
    if groups is not None:
        theirs, ours = groups
        for name in np.intersect1d(theirs, ours):
            yield np.flatnonzero(ours == name), np.flatnonzero(theirs == name)


def in_squares(variance: Array, units: Units | None) -> Array:
    """Variances of T as those of the values, one for each column if these have units."""
    return variance if units is None else bounded(lambda: variance[..., None] * units.scale**2)
