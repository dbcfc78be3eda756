"""Dependent Gaussian processes: the target's examples, support tasks, the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import frexp, ldexp, sqrt
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen, Id, derived, some
from knowmore.errors import InvalidInput, NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner, cross, diagonal, is_positive, rules
from knowmore.linalg import Cholesky
from knowmore.models import (
    Covariance,
    KernelModel,
    LooScores,
    ModelSettings,
    Targets,
    Trial,
    explained,
    finite,
    max_variance,
    unseen,
)
from knowmore.transfer.choice import POSITIVE, Candidate, Ranking, Rule, Support, row_digests
from knowmore.transfer.pairs import Pair

# From the names of all supports to those that may be chosen.
Preselection = Callable[[tuple[str, ...]], Collection[str]]

# Levels of adaptive noise, in units of the mean variance of the target's examples.
LEVELS = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# The border is at least this part of the way from the prior to the positive label.
_APART = 0.01
# The smallest pivot that adaptive noise leaves, in units of the matrix's diagonal. A matrix that
# can only just be factorised is lost in rounding: the answers would depend on the order of rows.
_PIVOT = 1e-10


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneShot(Frozen):
    """An immutable model of one class against the background; `follow` takes other examples.

    target : the model of the target's n_T examples alone, with the noise in use
    supports : all support tasks
    candidates : the supports that may be chosen, with the target; none if the only rho is zero
    preselect : names the candidates among the supports

    Edits share what they do not change: the factor of a support as long as the noise is the same,
    a pair as long as the target's factor is, its best rho as long as the labels are.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> some = Examples.of(np.array([[0.0], [2.0], [3.0]]), np.array(["no", "yes", "no"]))
    >>> alike = Support.of(RBF(), "alike", np.array([[1.5], [1.8]]))
    >>> model = OneShot.of(RBF(), some, (alike,), rule=Rule(noise=0.1))
    >>> model.ranking
    support   rho     lpp
    alike    1.00   -2.72
    >>> model.mean(np.array([[1.5]])).round(2)
    array([[-0.95,  0.95]])
    """

    keeps_rows: ClassVar[bool] = True
    has_gram: ClassVar[bool] = False

    target: KernelModel
    supports: tuple[Support, ...]
    candidates: Mapping[Support, Candidate]
    rule: Rule
    preselect: Preselection

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        examples: Examples,
        supports: tuple[Support, ...] = (),
        preselect: Preselection = tuple,
        rule: Rule | None = None,
    ) -> OneShot:
        """The batch fit."""
        rule = rule or Rule()
        nothing = Examples.of(examples.X[:0], examples.labels[:0])
        target = KernelModel.of(kernel, 0.0, nothing, rule.coding(None), Cholesky())
        empty = cls(target, supports, {}, rule, preselect)
        empty.check_examples(examples)
        return empty.fitted(examples)

    def __getstate__(self) -> dict[str, Any]:
        """The fields; candidates as pairs, since in some formats only text can be a key."""
        return super().__getstate__() | {"candidates": [*self.candidates.items()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"candidates": dict(state["candidates"])})

    def __repr__(self) -> str:
        return f"OneShot({self.target!r}, {len(self.supports)} supports)"

    @property
    def covariance(self) -> Covariance:
        """The target's examples, the kernel and the factor."""
        return self.target.covariance

    @property
    def examples(self) -> Examples:
        """The target's examples."""
        return self.target.examples

    @property
    def targets(self) -> Targets:
        """Labels of 1 and -1 for each of the two classes, less their prior means, (n_T, 2)."""
        return self.target.targets

    @property
    def names(self) -> Array:
        """The two classes, (2,)."""
        return self.target.names

    @derived
    def positive(self) -> Any:
        """The label of the class to learn; None if there are no examples."""
        return self.rule.positive(self.examples.labels)

    def has(self, settings: ModelSettings) -> bool:
        """Whether this is its kernel; the noise it chooses itself."""
        return settings.kernel is self.covariance.kernel

    def follow(self, examples: Examples, settings: ModelSettings | None = None) -> OneShot:
        """The batch fit of `examples`: noise, support and rho are chosen again.

        settings : another kernel is for the supports too
        """
        if settings is None or self.has(settings):
            return self.fitted(examples, tuple(self.candidates))
        kernel = settings.kernel
        supports = tuple(Support.of(kernel, one.name, one.X) for one in self.supports)
        names = [one.name for one in self.candidates]
        model = OneShot.of(kernel, examples, supports, lambda _: names, self.rule)
        return replace(model, preselect=self.preselect)

    def with_supports(self, supports: tuple[Support, ...]) -> OneShot:
        """The batch fit with these support tasks; those that are there already cost nothing."""
        return replace(self, supports=supports).fitted(self.examples)

    # -- learning ----------------------------------------------------------------------------

    def with_target(self, target: KernelModel, examples: Examples) -> OneShot:
        """The fit of these examples with the same supports, from the target's own model."""
        empty = replace(self, target=target, candidates={})
        return empty.fitted(examples, tuple(self.candidates))

    def fitted(self, examples: Examples, supports: tuple[Support, ...] | None = None) -> OneShot:
        """The batch fit of these examples, with these of the supports as candidates.

        supports : None for those that `preselect` names
        """
        if supports is None:
            names = self.preselect(tuple(one.name for one in self.supports))
            named = (one for one in self.supports if one.name in names)
            supports = tuple(named) if self.rule.largest else ()
        self._check_duplicates(examples, supports)
        kernel, known = self.covariance.kernel, self.candidates
        deleted, _ = examples.since(self.examples)
        # Kernel values of each support; known ones are not evaluated again.
        blocks = {}
        for one in supports:
            old = np.delete(known[one].C, deleted, axis=0) if one in known else one.K[:0]
            new = examples.X[len(old) :]
            if len(new):
                old = np.vstack([old, finite(kernel, cross(kernel, new, one.X).T).T])
            blocks[one] = old
        noise = _largest_noise(self.rule, kernel, examples)
        if self.rule.noise != "adaptive":
            return self._with_noise(noise, examples, blocks)
        for level in LEVELS:
            try:
                # If the variance is not finite, the kernel's values raise an error that says why.
                some = level * noise if np.isfinite(noise) else 0.0
                return self._with_noise(some, examples, blocks)
            except NotPositiveDefinite as error:
                row, cause = error.row, error
        raise NotPositiveDefinite(
            f"The covariance matrix is not positive definite at row {row}, even if the noise is "
            f"the examples' mean variance, {noise:g}. The kernel gives no variance, or is not "
            f"positive definite: use another one. Nothing was changed.",
            row,
        ) from cause

    def _check_duplicates(self, examples: Examples, supports: tuple[Support, ...]) -> None:
        """Raise InvalidInput if an example is in a support task too and the noise is adaptive.

        With the tiny noise that is enough here, the model would trust both. Background that is also
        positive makes no sense. A positive example that is left out would be predicted by its own
        duplicate, and rho chosen accordingly. Rows that were compared with all these supports
        before are not compared again.
        """
        if self.rule.noise != "adaptive":
            return
        known = self.candidates.keys() >= set(supports)
        first = len(examples) - examples.since(self.examples)[1] if known else 0
        digests = row_digests(examples.X[first:])
        for one in supports:
            for row, digest in enumerate(digests, first):
                if (twin := one.digests.get(digest)) is not None:
                    raise InvalidInput(
                        f"Example {examples.names[row]!r}, labelled "
                        f"{examples.labels[row].item()!r}, has the same features as example {twin} "
                        f"of the support {one.name!r}. Remove it from the support, or set noise to "
                        f"a number if different things may look the same. Nothing was changed."
                    )

    def _with_noise(
        self, noise: float, examples: Examples, blocks: dict[Support, Array]
    ) -> OneShot:
        """The batch fit with this noise; raises NotPositiveDefinite if it is too small.

        Adaptive noise is also too small if a pivot nearly vanishes.
        """
        rule, positive = self.rule, self.rule.positive(examples.labels)
        if noise == self.covariance.noise and positive == self.positive:
            target = self.target.follow(examples)
        else:
            coding = rule.coding(positive)
            target = KernelModel.of(self.covariance.kernel, noise, examples, coding, Cholesky())
        own, known, made = target.covariance, self.candidates, {}
        certain = False
        if rule.noise == "adaptive":
            _check_pivots(own.diagonal * own.factor.inverse_diagonal())
        elif is_positive(own.kernel):
            certain = self.is_certain(examples, max_variance(own.kernel, own.X))
        # The support nearest to the target comes first: if one fails, it is likely to be that.
        for one in sorted(blocks, key=lambda one: -known[one].pair.s[0] if one in known else 0.0):
            made[one] = _candidate(known.get(one), rule, target, one, blocks[one], certain=certain)
        candidates = {one: made[one] for one in blocks}
        return replace(self, target=target, candidates=candidates)

    def check_examples(self, examples: Examples) -> None:
        """Raise InvalidInput unless there are positive and negative examples, and no others.

        With adaptive noise none may be in a support.
        """
        classes = np.unique(examples.labels).tolist()
        if len(classes) != 2:
            raise InvalidInput(
                f"Only binary classification is supported, but there would be {len(classes)} "
                f"class(es): {some(classes) or 'none'}. It takes two: the one to learn, and all "
                f"else as background. Nothing was changed."
            )
        self._check_duplicates(examples, tuple(self.candidates))

    def is_certain(
        self, examples: Examples, peak: float, settings: ModelSettings | None = None
    ) -> bool:
        """Whether `follow` is sure to succeed for examples of kappa(x, x) at most `peak`.

        The noise, adaptive noise at its largest, has to outweigh the rounding in every pair. The
        canonical correlations s are computed to about n eps cond(K~), and cond(K~) is at most
        n (peak + noise) / noise; 1 - s is at least the reciprocal of that. So its square must stay
        below 1 / (n eps).
        """
        kernel = self.covariance.kernel if settings is None else settings.kernel
        if not is_positive(kernel):
            return False
        weights, noise = examples.weights, _largest_noise(self.rule, kernel, examples)
        n = len(examples) + max((len(one.X) for one in self.supports), default=0)
        peak = max([peak, *(float(np.diagonal(one.K).max()) for one in self.supports)])
        least, most = noise / weights.max(initial=1), noise / weights.min(initial=1)
        return bool(least > n * np.sqrt(n * np.finfo(float).eps) * (peak + most))

    # -- choosing ----------------------------------------------------------------------------

    @derived
    def ranking(self) -> Ranking:
        """All candidates, the best first."""
        found = {support.name: one.best for support, one in self.candidates.items()}
        return Ranking.of(self.rule.criterion, found)

    @derived
    def members(self) -> tuple[Member, ...]:
        """The models that answer: of both tasks for each of the best candidates that help.

        The target by itself stands for those that do not, and answers alone if there are none.
        """
        by_name = {support.name: one for support, one in self.candidates.items()}
        best = self.ranking.rows[: self.rule.members]
        helpful = [by_name[one.support] for one in best if one.rho]
        members = [Member(1 / len(best), _joint(self, one), one) for one in helpful]
        if len(helpful) < len(best) or not best:
            share = 1 - len(helpful) / max(len(best), 1)
            members.append(Member(share, self.target, None))
        return tuple(members)

    # -- asking ------------------------------------------------------------------------------

    @derived
    def border(self) -> float:
        """The value of the process from which on a row is of the positive class: its score is zero.

        Few positives among much background leave nearly all values below zero. So the border is
        where the background ends, two standard deviations above the mean of the background's
        values, each left out; but not above zero, which lies between the labels, and not at the
        prior: what resembles nothing is no positive. It is zero if the prior is not background.
        """
        if self.rule.prior >= 0:
            return 0.0
        column = self.names.tolist().index(self.positive)
        values = self.left_out.unseen(border=0.0).scores[:, column]
        counted = self.examples.weights > 0
        left = values[counted & (self.examples.labels != self.positive)]
        if not len(left):
            return 0.0
        least = self.rule.prior + _APART * (1 - self.rule.prior)
        return float(np.clip(left.mean() + 2 * left.std(), least, 0.0))

    def offsets(self, border: float) -> Array:
        """The scores of what resembles nothing, (2,)."""
        positive = self.names == self.positive
        means = self.rule.means(self.names, self.positive)
        return np.asarray(means + np.where(positive, -border, border))

    def mean(self, X: Array) -> Array:
        """The scores of both classes, (m, 2). Eq. (4), Rodner and Denzler.

        A sum of kernel values: members share those of the target's examples.
        """
        n, scores = len(self.examples), self.offsets(self.border)
        A = np.zeros((n, 2))
        for weight, model, chosen in self.members:
            A = A + weight * model.coefficients[:n]
            if chosen is not None:
                B = weight * chosen.best.rho * model.coefficients[n:]
                scores = scores + chosen.pair.support.covariance.expansion(X, B)
        return np.asarray(scores + self.covariance.expansion(X, A))

    def variance(self, X: Array) -> Array:
        """The predictive variance, (m,), noise included, and how far the members differ."""
        asked = [(one.model, one.inputs(X)) for one in self.members]
        return _averaged(self.members, [(gp.mean(x), gp.variance(x)) for gp, x in asked])[1]

    @property
    def left_out(self) -> OneShotLeaveOneOut:
        """The target's examples, each predicted by the model without it."""
        return OneShotLeaveOneOut(self)

    @derived
    def temperature(self) -> float:
        """tau of the probabilities, from the examples; the supports stand in for them too."""
        return self.left_out.temperature()

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples, given noise, supports, rhos."""
        return max(one.model.residual() for one in self.members)


@final
@dataclass(frozen=True, eq=False)
class OneShotLeaveOneOut:
    """The target's examples, each predicted by the model without it, in closed form."""

    model: OneShot

    def scores(self, groups: Array | None = None) -> LooScores:
        """Predictions for the examples from other groups and the supports; groups (n_T,). Eq. (6).

        The supports, rhos and the noise stay: they were chosen on these very scores.
        """
        ours = None if groups is None else np.unique(groups, return_inverse=True)[1]

        def scores(one: KernelModel) -> LooScores:
            if ours is None:
                return one.left_out.scores()
            # A support is a group of its own, so that it stays.
            return one.left_out.scores(np.append(ours, np.full(len(one.examples) - len(ours), -1)))

        return self._together([scores(one) for one in self._models])

    def unseen(self, border: float | None = None) -> LooScores:
        """Predictions for each example left out, as if it were a new row of weight one."""
        return self._together([one.left_out.unseen() for one in self._models], border)

    def on_rows(self, X: Array, groups: tuple[Array, Array] | None) -> LooScores:
        """Predictions for new rows X (m, d); groups of the rows (m,) and of the examples (n_T,)."""
        asked = [(one.model.left_out, one.inputs(X)) for one in self.model.members]
        return self._together([left.on_rows(x, groups) for left, x in asked], n=len(X))

    def temperature(self) -> float:
        """tau of the probabilities, from the examples; the supports stand in for them too."""
        n = len(self.model.examples)
        trials = [unseen(one).trial() for one in self._models]
        said = [LooScores(one.completed, one.variance, one.silent) for one in trials]
        counts = np.max([one.counts for one in trials], axis=0)
        together = self._together(said)
        return Trial(*together, np.zeros(n), trials[0].codes[:n], counts).temperature

    @property
    def _models(self) -> list[KernelModel]:
        return [one.model for one in self.model.members]

    def _together(
        self, said: Sequence[LooScores], border: float | None = None, n: int | None = None
    ) -> LooScores:
        """The members' predictions for the first n rows, or the target's, averaged.

        border : what scores are above, None for the model's
        """
        border, n = self.model.border if border is None else border, n or len(self.model.examples)
        said = [LooScores(*(part[:n] for part in one)) for one in said]
        scores, variance = _averaged(self.model.members, [one[:2] for one in said])
        silent = np.all([one.silent for one in said], axis=0)
        return LooScores(self.model.offsets(border) + scores, variance, silent)


class Member(NamedTuple):
    """A model that answers, how much its answer counts, and what helps it; None: nothing does."""

    weight: float
    model: KernelModel
    chosen: Candidate | None

    def inputs(self, X: Array) -> Array:
        """Rows X (m, d) of the target as inputs of the model."""
        return X if self.chosen is None else _in_task(0, X)


def _averaged(
    members: Sequence[Member], said: Sequence[tuple[Array, Array]]
) -> tuple[Array, Array]:
    """The mean (m, 2) and variance (m,) of a mixture, from what each member says.

    Both columns of means are as uncertain.
    """
    answers = [(one.weight, *answer) for one, answer in zip(members, said, strict=True)]
    mean = sum(w * one for w, one, _ in answers)
    spread = (w * (v + (one - mean)[:, -1] ** 2) for w, one, v in answers)
    return np.asarray(mean), np.asarray(sum(spread))


def _candidate(
    known: Candidate | None,
    rule: Rule,
    target: KernelModel,
    support: Support,
    C: Array,
    *,
    certain: bool,
) -> Candidate:
    """The support with this target; parts of the `known` candidate that still hold are kept.

    certain : whether the noise outweighs all rounding
    """
    rho, covariance = rule.largest, target.covariance
    label, noise = rule.positive(target.examples.labels), covariance.noise
    positive = target.names.tolist().index(label)
    if known is not None and known.pair.target.covariance.factor is covariance.factor:
        if np.array_equal(known.pair.target.examples.labels, target.examples.labels):
            return known
        return replace(known, pair=replace(known.pair, target=target, positive=positive))
    try:
        if not certain:
            # A factor shows more reliably than correlations what is singular: the rounding of its
            # pivots does not grow with cond(K~).
            covariance.factor.append(rho * C, support.noisy(noise))
        model = None if known is None else known.pair.support
        if model is None or model.covariance.noise != noise:
            model = support.model(noise, rule.coding(POSITIVE))
        pair = Pair.of(target, model, C, positive, rho, rule.prior)
    except NotPositiveDefinite as error:
        own = [f"{row} of the support {support.name!r}" for row in range(len(support.X))]
        both = _both_tasks(target.examples, support, label, (*target.examples.names, *own))
        joint = replace(covariance, kernel=_AcrossTasks(covariance.kernel, rho))
        raise explained(joint, error.row, both) from error
    if rule.noise == "adaptive":
        _check_pivots(pair.diagonal * pair.inverse_diagonal(rho))
    return Candidate(support, C, pair, rule)


def _joint(model: OneShot, chosen: Candidate) -> KernelModel:
    """The model of the target and a support at its best rho.

    The target's examples come first, and the inputs have one more column: 0 for the target, 1 for
    the support.
    """
    covariance, rho, support = model.covariance, chosen.best.rho, chosen.support
    examples = _both_tasks(model.examples, support, model.positive)
    factor = covariance.factor.append(rho * chosen.C, support.noisy(covariance.noise))
    joint = Covariance(_AcrossTasks(covariance.kernel, rho), covariance.noise, examples, factor)
    return KernelModel.on(joint, model.rule.coding(model.positive))


# -- two tasks in one model ----------------------------------------------------------------------


@final
@dataclass(frozen=True, repr=False)
class _AcrossTasks:
    """The kernel within a task, and rho times that between two. Eq. (3), Rodner and Denzler.

    The last column of the inputs names the task, 0 for the target, whose rows come first, and 1 for
    the support. The values are those of `On(slice(0, -1), kernel) * Task(rho)`, but the kernel may
    be any function, and blocks are scaled in place.
    """

    kernel: AnyKernel
    rho: float

    def __repr__(self) -> str:
        return f"{self.kernel!r} * Task(rho={self.rho:.3g})"

    def __call__(self, X: Array, Y: Array) -> Array:
        return self._scaled(cross(self.kernel, _features(X), _features(Y)), X, Y)

    def corner(self, X: Array) -> Array:
        return self._scaled(corner(self.kernel, _features(X)), X, X)

    def diagonal(self, X: Array) -> Array:
        return diagonal(self.kernel, _features(X))

    def _scaled(self, K: Array, X: Array, Y: Array) -> Array:
        # A kernel that is not known here may keep the array that it returns.
        K = K if is_positive(self.kernel) else K.copy()
        n, m = (np.searchsorted(rows[:, -1], 1) for rows in (X, Y))
        K[n:, :m] *= self.rho
        K[:n, m:] *= self.rho
        return K


rules.RULES[_AcrossTasks] = rules.KernelRule(
    corner=_AcrossTasks.corner, diagonal=_AcrossTasks.diagonal
)


def _features(X: Array) -> Array:
    """The inputs without the column that names the task."""
    return np.ascontiguousarray(X[:, :-1])


def _both_tasks(
    target: Examples, support: Support, positive: Any, ids: tuple[Id, ...] | None = None
) -> Examples:
    """The target's examples, then the support's rows as examples of the class `positive`."""
    n = len(support.X)
    return Examples.of(
        np.vstack([_in_task(0, target.X), _in_task(1, support.X)]),
        np.concatenate([target.labels, np.full(n, positive, target.labels.dtype)]),
        ids,
        np.concatenate([target.weights, np.ones(n)]),
    )


def _in_task(task: int, X: Array) -> Array:
    """X (n, d) with a last column that names the task."""
    return np.column_stack([X, np.full(len(X), float(task))])


# -- singular matrices ---------------------------------------------------------------------------


def _largest_noise(rule: Rule, kernel: AnyKernel, examples: Examples) -> float:
    """The noise for these examples; adaptive noise is at most their mean variance.

    "auto" is the power of two that is nearest to a quarter of that; zero if there is none. So it
    seldom changes with the examples, and never by rounding alone.
    """
    if not isinstance(rule.noise, str):
        return rule.noise
    with np.errstate(over="ignore"):
        variance = float(diagonal(kernel, examples.X).mean())
    if rule.noise == "adaptive":
        return variance
    if not 0 < variance < np.inf:
        return 0.0
    fraction, exponent = frexp(variance)
    # A fraction of a half or more; the nearest power by ratio is on either side of its root.
    return ldexp(1.0, exponent - 3 + (fraction > sqrt(0.5)))


def _check_pivots(inverses: Array) -> None:
    """Raise NotPositiveDefinite if a pivot is too small to be more than rounding.

    inverses : K~_ii (K~^-1)_ii, (n,). The reciprocal is the part of the variance of example i that
    the others do not explain: the pivot of row i if it comes last, in units of the diagonal. In no
    order of the rows is it smaller, and it grows with the noise.
    """
    pivots = 1 / inverses
    row = int(pivots.argmin())
    if not pivots[row] > _PIVOT:
        raise NotPositiveDefinite(f"The pivot of row {row} nearly vanishes.", row)
