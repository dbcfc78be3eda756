"""One-shot learning: the target's examples, support tasks, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import cast, final

import numpy as np

from knowmore.arrays import Array, bounded, norm
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput, NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, cross, diagonal, is_positive
from knowmore.linalg import Cholesky
from knowmore.models.covariance import Covariance
from knowmore.models.covariance import finite as finite_at
from knowmore.models.loo import Scale, Verdicts, inverse_block, leave_out, rounding, silenced, tied
from knowmore.models.oneshot import LEVELS, Pair, Side, check_sound, with_least_noise
from knowmore.models.oneshot_candidates import Candidate, Ranking, Rule, Support, finite
from knowmore.models.targets import Targets, one_vs_all

# Of the names of all supports, those that may be chosen.
Kept = Callable[[tuple[str, ...]], Collection[str]]

_EPS = float(np.finfo(float).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneShot:
    """An immutable model of one class against the background; `follow` is that of other examples.

    covariance : of the target's n_T examples, with the noise in use
    target : the same with the labels, 1 for the positive class, -1 for the other
    supports : all support tasks held
    candidates : those that may be chosen; none if the only rho is zero

    Whatever an edit leaves as it was is shared: a support's factor while the noise stays, a pair
    while the target's factor stays, a best rho while the target stays.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> some = Examples.of(np.array([[0.0], [2.0], [3.0]]), np.array(["no", "yes", "no"]))
    >>> alike = Support.of(RBF(), "alike", np.array([[1.5], [1.8]]))
    >>> model = OneShot.of(RBF(), some, (alike,), rule=Rule(noise=0.1))
    >>> model.ranking
    support   rho     ap     lpp
    alike    1.00  1.000   -4.19
    >>> model.mean(np.array([[1.5]])).round(2)
    array([[-0.98,  0.98]])
    """

    covariance: Covariance
    target: Side
    supports: tuple[Support, ...]
    candidates: tuple[Candidate, ...]
    rule: Rule
    kept: Kept

    @classmethod
    def of(
        cls,
        kernel: AnyKernel,
        examples: Examples,
        supports: tuple[Support, ...] = (),
        kept: Kept = tuple,
        rule: Rule | None = None,
    ) -> OneShot:
        """The batch fit; the supports that are `kept`, by name, are the candidates."""
        nothing = Examples.of(examples.X[:0], examples.labels[:0])
        side = Side(Cholesky(), np.empty(0))
        covariance = Covariance(kernel, 0.0, nothing, side.factor)
        begin = cls(covariance, side, (), (), rule or Rule(), kept)
        begin.admit(examples)
        return begin._learnt(examples, supports, kept(_names(supports)))

    @property
    def examples(self) -> Examples:
        """What it learnt from, beside the supports."""
        return self.covariance.examples

    @cached_property
    def targets(self) -> Targets:
        """Labels of 1 and -1 for each of the two classes, (n_T, 2)."""
        return one_vs_all(self.examples)

    @property
    def signs(self) -> Array:
        """The label of the positive class in each of the two columns of scores, (2,)."""
        return np.where(np.arange(2) == self.rule.positive(self.targets.names), 1.0, -1.0)

    def follow(self, examples: Examples) -> OneShot:
        """The batch fit of `examples`: noise, support and rho are chosen anew."""
        return self._learnt(examples, self.supports, [one.support.name for one in self.candidates])

    def refit(self, kernel: AnyKernel, examples: Examples) -> OneShot:
        """The batch fit of `examples` with another kernel, which the supports have then too."""
        supports = tuple(Support.of(kernel, one.name, one.X) for one in self.supports)
        kept = [one.support.name for one in self.candidates]
        model = OneShot.of(kernel, examples, supports, lambda _: kept, self.rule)
        return replace(model, kept=self.kept)

    def holding(self, supports: tuple[Support, ...]) -> OneShot:
        """The batch fit with these support tasks; those held already cost nothing."""
        return self._learnt(self.examples, supports, self.kept(_names(supports)))

    # -- learning ----------------------------------------------------------------------------

    def _learnt(
        self, examples: Examples, supports: tuple[Support, ...], kept: Collection[str]
    ) -> OneShot:
        chosen = tuple(one for one in supports if self.rule.largest and one.name in kept)
        if (found := self._shared(examples, chosen)) is not None:
            raise InvalidInput(found)
        blocks = self._blocks(examples, chosen)
        attempt = partial(self._at, examples=examples, supports=supports, blocks=blocks)
        if self.rule.noise is not None:
            return attempt(self.rule.noise)
        variance = self._variance(examples)
        # What is not finite is complained of by those who evaluate the kernel.
        return with_least_noise(attempt, variance) if np.isfinite(variance) else attempt(0.0)

    def _variance(self, examples: Examples) -> float:
        """The mean kappa(x, x) of these examples."""
        with np.errstate(over="ignore"):
            return float(diagonal(self.covariance.kernel, examples.X).mean())

    def _shared(self, examples: Examples, supports: tuple[Support, ...]) -> str | None:
        """What to say of an example that is in a support task too, if the noise is ours to choose.

        The least noise will do for it, and then it is believed: of background that is also called
        positive, nothing sensible follows; a positive one is answered for by its twin whenever it
        is left out, and rho chosen by that. What was held together before is not looked at again.
        """
        known = {one.support for one in self.candidates}
        _, appended = examples.since(self.examples)
        for one in supports if self.rule.noise is None else ():
            begin = len(examples) - appended if one in known else 0
            if (twins := one.shared(examples.X[begin:])) is not None:
                row, twin = begin + twins[0], twins[1]
                return (
                    f"Example {examples.names[row]!r}, labelled {examples.labels[row].item()!r}, "
                    f"is example {twin} of the support {one.name!r} too: their features are the "
                    f"same. A support's examples count as positive and are never left out, so it "
                    f"must hold neither background nor examples. Leave them out of the support; "
                    f"or give noise a number if different things may well look the same. Nothing "
                    f"was changed."
                )
        return None

    def _blocks(self, examples: Examples, supports: tuple[Support, ...]) -> dict[Support, Array]:
        """Kernel values C (n_T, n_S); those that are known are not evaluated again."""
        kernel, known = self.covariance.kernel, {one.support: one.C for one in self.candidates}
        deleted, appended = examples.since(self.examples)
        blocks = {}
        for one in supports:
            old = np.delete(known[one], deleted, axis=0) if one in known else one.K[:0]
            new = examples.X[len(examples) - appended if one in known else 0 :]
            if len(new):
                old = np.vstack([old, finite(kernel, one.name, cross(kernel, new, one.X))])
            blocks[one] = old
        return blocks

    def _at(
        self,
        noise: float,
        examples: Examples,
        supports: tuple[Support, ...],
        blocks: dict[Support, Array],
    ) -> OneShot:
        """The batch fit with this noise, if all pairs of tasks can be factorised with it.

        If the noise is ours to choose, no pivot may be near to vanish either.
        """
        covariance = (
            self.covariance.follow(examples)
            if noise == self.covariance.noise
            else Covariance.of(self.covariance.kernel, noise, examples, Cholesky())
        )
        told, target = one_vs_all(examples), self.target
        y = np.ascontiguousarray(told.T[:, self.rule.positive(told.names)])
        if covariance.factor is not target.factor or not np.array_equal(y, target.y):
            target = Side(cast("Cholesky", covariance.factor), y)
        known = {one.support: one for one in self.candidates}
        positive = is_positive(covariance.kernel)
        certain = positive and _outweighs(
            covariance, examples, covariance.max_variance(covariance.X), blocks
        )
        wary, rho, made = self.rule.noise is None and not certain, self.rule.largest, {}
        if wary:
            check_sound(target.pivots)
        # The nearest to the target first: if one fails, it is likely to be that.
        for one in sorted(blocks, key=lambda one: -known[one].pair.s[0] if one in known else 0.0):
            sound = one in known and known[one].pair.target.factor is target.factor
            if not (certain or sound):
                _check(covariance, one, blocks[one], rho)
            pair = self._pair(target, one, known.get(one), blocks[one], noise)
            if wary and not sound:
                check_sound(pair.pivots(rho))
            stays = one in known and known[one].pair is pair
            made[one] = known[one] if stays else Candidate(one, blocks[one], pair, self.rule)
        candidates = tuple(made[one] for one in blocks)
        return replace(
            self, covariance=covariance, target=target, supports=supports, candidates=candidates
        )

    def _pair(
        self, target: Side, support: Support, known: Candidate | None, C: Array, noise: float
    ) -> Pair:
        """The target and the support, by what is known of them already."""
        if known is None or noise != self.covariance.noise:
            side = Side.of(support.K, np.ones(len(support.K)), noise)
            return Pair.of(target, side, C, self.rule.largest)
        if known.pair.target.factor is not target.factor:
            return Pair.of(target, known.pair.support, C, self.rule.largest)
        return known.pair if known.pair.target is target else replace(known.pair, target=target)

    def admit(self, examples: Examples) -> None:
        """Positive examples and background, and nothing else."""
        classes = np.unique(examples.labels).tolist()
        if len(classes) > 2:
            raise InvalidInput(
                f"Only binary classification is supported. There would be {len(classes)} classes, "
                f"{classes[0]!r}, {classes[1]!r}, {classes[2]!r}, ... Call all but the one to be "
                f"learnt background. Nothing was changed."
            )
        if len(classes) < 2:
            only = f"examples of one class only, {classes[0]!r}" if classes else "no examples"
            raise InvalidInput(
                f"There would be {only}, but it takes a positive and a negative one. "
                f"Nothing was changed."
            )

    def is_certain(self, examples: Examples, peak: float) -> bool:
        """Is there sure to be a model of these examples, of kappa(x, x) at most `peak`?"""
        supports = tuple(one.support for one in self.candidates)
        if not is_positive(self.covariance.kernel) or self._shared(examples, supports):
            return False
        given = self.rule.noise
        noise = LEVELS[-1] * self._variance(examples) if given is None else given
        largest = replace(self.covariance, noise=noise)
        return _outweighs(largest, examples, peak, supports)

    # -- choosing ----------------------------------------------------------------------------

    @cached_property
    def ranking(self) -> Ranking:
        """All candidates, the best first."""
        return Ranking.of(self.rule.criterion, self.candidates)

    @cached_property
    def chosen(self) -> tuple[Candidate, float] | None:
        """The best candidate with its rho; None if nothing is better without."""
        if len(self.ranking) == 0 or self.ranking[0].rho == 0:
            return None
        (best,) = (one for one in self.candidates if one.support.name == self.ranking[0].support)
        return best, best.best.rho

    # -- asking ------------------------------------------------------------------------------

    def mean(self, X: Array, side: Array | None = None) -> Array:
        """The scores of both classes, (m, 2): eq. (4), Rodner and Denzler, for the positive one."""
        if self.chosen is None:
            score = self.covariance.expansion(X, self.target.coefficients[:, None])[:, 0]
        else:
            one, rho = self.chosen
            blocks = (self._values(*part, one.support) for part in self.covariance.parts(X))
            means = (one.pair.mean(*block, rho) for block in blocks)
            score = bounded(lambda: np.concatenate([*means]))
        return np.outer(score, self.signs)

    def variance(self, X: Array) -> Array:
        """The predictive variance, (m,), the noise included."""
        if self.chosen is None:
            return self.covariance.variance(X)
        one, rho = self.chosen
        latent = (
            one.pair.variance(
                *self._values(begin, part, one.support), self.covariance.prior(part, begin), rho
            )
            for begin, part in self.covariance.parts(X)
        )
        return bounded(lambda: np.concatenate([*latent]) + self.covariance.noise)

    def _values(self, begin: int, X: Array, support: Support) -> tuple[Array, Array]:
        """k_T (n_T, m) and k_S (n_S, m) for rows X from `begin` on of a question."""
        kernel = self.covariance.kernel
        k_S = finite_at(kernel, cross(kernel, support.X, X), begin)
        return self.covariance.cross(X, begin), k_S

    def leave_one_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Scores (n_T, 2) and variances (n_T,) of the examples by those of other groups. Eq. (6).

        The support task, rho and the noise stay: they were chosen on these very scores.
        """
        return self.verdicts(groups)[:2]

    def verdicts(self, groups: Array | None = None) -> Verdicts:
        """The same, and of whom neither the others nor the support task say anything."""
        if self.chosen is None:
            a, diagonal = self.target.coefficients, self.target.inverse_diagonal
            block = partial(inverse_block, self.target.factor)
        else:
            one, rho = self.chosen
            a, diagonal = one.pair.coefficients(rho), one.pair.inverse_diagonal(rho)
            block = partial(one.pair.inverse_block, rho=rho)
        A, T = np.outer(a, self.signs), self.targets.T
        codes = np.arange(len(T)) if groups is None else np.unique(groups, return_inverse=True)[1]
        left = leave_out(diagonal if groups is None else block, A, T, codes)
        if self.chosen is None:
            error = rounding(left, A, T, Scale.of(self.covariance))
        else:
            error = one.pair.rounding(left.mean @ self.signs / 2, left.variance, rho)[:, None]
            error = np.broadcast_to(error, T.shape)
        scores, silent = silenced(left, error, 0.0)
        return Verdicts(tied(scores, error), left.variance, silent)

    def verdicts_on(
        self, X: Array, side: Array | None, groups: tuple[Array, Array] | None
    ) -> Verdicts:
        """The same for new rows."""
        raise NotImplementedError

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples, given noise, support and rho.

        The backward error of the coefficients of both tasks, as in `Covariance.residual`.
        """
        y = self.target.y
        if self.chosen is None:
            return self.covariance.residual(self.target.coefficients[:, None], y[:, None])
        one, rho = self.chosen
        A = np.vstack([K for _, K in self.covariance.matrix_rows()])
        C, S = cross(self.covariance.kernel, self.covariance.X, one.support.X), one.support.K
        B = S + self.covariance.noise * np.eye(len(S))
        K = np.block([[A, rho * C], [rho * C.T, B]])
        a = np.concatenate([one.pair.coefficients(rho), one.pair.exchanged.coefficients(rho)])
        y = np.concatenate([y, one.pair.support.y])
        return norm(y - K @ a) / (norm(K) * norm(a) + norm(y))


def _outweighs(
    covariance: Covariance, examples: Examples, peak: float, supports: Collection[Support]
) -> bool:
    """Is every pair of these examples and a support sound, as its noise outweighs all rounding?

    The canonical correlations s are found to about n eps cond(K~), and cond(K~) is at most
    n (peak + noise) / noise; 1 - s is at least the reciprocal of that. So its square must stay
    below 1 / (n eps).
    """
    weights = covariance.weighting(examples)
    n = len(examples) + max((len(one.X) for one in supports), default=0)
    peak = max([peak, *(float(np.diagonal(one.K).max()) for one in supports)])
    least = covariance.noise / weights.max(initial=1)
    most = covariance.noise / weights.min(initial=1)
    return bool(least > n * np.sqrt(n * _EPS) * (peak + most))


def _names(supports: tuple[Support, ...]) -> tuple[str, ...]:
    return tuple(one.name for one in supports)


def _check(covariance: Covariance, support: Support, C: Array, rho: float) -> None:
    """Complain unless the covariance matrix of both tasks at the largest rho can be factorised.

    Pivots show that more surely than correlations do: their rounding does not grow with cond(K~).
    """
    noise, n = covariance.noise, len(C)
    try:
        covariance.factor.append(rho * C, support.K + noise * np.eye(len(support.K)))
    except NotPositiveDefinite as error:
        row = error.row - n
        with np.errstate(divide="ignore", invalid="ignore"):
            theirs = diagonal(covariance.kernel, covariance.X)
            prior = np.append(theirs, np.diagonal(support.K)[:row]) * support.K[row, row]
            values = np.append(rho * C[:, row], support.K[row, :row])
            similar = np.nan_to_num(values / np.sqrt(prior), nan=-1.0, posinf=-1.0)
        twin = int(similar.argmax())
        mine = covariance.examples.names
        whose, one = ("the target's", mine[twin]) if twin < n else ("its own", twin - n)
        raise NotPositiveDefinite(
            f"With the support {support.name!r} the covariance matrix is not positive definite at "
            f"rho = {rho:g}: its example {row} adds nothing. Of {whose}, example {one!r} is "
            f"nearest to it (correlation {similar[twin]:.12g}). Either (a) one picture is there "
            f"twice: leave it out once; or (b) noise={noise:g} is too small for so smooth a "
            f"kernel: raise it, or leave it to noise='adaptive'; or (c) the kernel "
            f"{covariance.kernel!r} is not positive definite. Nothing was changed.",
            error.row,
        ) from error
