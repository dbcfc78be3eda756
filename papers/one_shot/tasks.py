"""Target tasks: few pictures of a class against a background, and supports to learn from.

A split draws, for all tasks at once, pictures of the background, of each class as a support, and of
each class as a target. Tasks share the background's factor, to which the pictures of a target are
appended; targets share the supports' factors. The inputs of models are rows of pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from knowmore.edits import Add
from knowmore.examples import Examples
from knowmore.linalg import Cholesky
from knowmore.models import KernelModel, one_vs_all
from knowmore.transfer import OneShot, Rule, Support
from knowmore.transfer.choice import CRITERIA, Best, Search, average_precision, grid
from knowmore.transfer.pairs import Pair
from papers.adapted import Adapted, Prior
from papers.arrays import Array
from papers.one_shot.pictures import Seen

# What an LS-SVM may choose from.
COSTS = (0.1, 1.0, 10.0, 100.0)
BETAS = np.linspace(0, 1, 21)


class Sizes(NamedTuple):
    """Numbers of pictures: background, each support, each target, and tested at most."""

    background: int
    support: int
    positives: tuple[int, ...]
    tested: int


@final
@dataclass(frozen=True, eq=False)
class Split:
    """Rows of pictures in a random split.

    background, others : the background's pictures for training (b,) and for the test (o,)
    supports : the pictures of each support class (s,)
    positives, tested : the pictures of each target for training (p,) and for the test (m,)
    """

    background: Array
    others: Array
    supports: dict[str, Array]
    positives: dict[str, Array]
    tested: dict[str, Array]


def split(
    seen: Seen, background: str, targets: Sequence[str], sizes: Sizes, rng: np.random.Generator
) -> Split:
    """Draw a split. All classes but the background are supports; no picture put aside is tested."""
    learnt, others = _apart(seen, background, sizes.background, rng)
    names = [str(name) for name in np.unique(seen.labels) if name != background]
    supports = {name: rng.permutation(seen.rows(name))[: sizes.support] for name in names}
    drawn = {name: _apart(seen, name, max(sizes.positives), rng) for name in targets}
    return Split(
        learnt,
        others,
        supports,
        positives={name: mine for name, (mine, _) in drawn.items()},
        tested={name: rest[: sizes.tested] for name, (_, rest) in drawn.items()},
    )


def _apart(seen: Seen, name: str, learnt: int, rng: np.random.Generator) -> tuple[Array, Array]:
    rows = rng.permutation(seen.rows(name))
    rest = rows[learnt:]
    return rows[:learnt], rest[~seen.aside[rest]]


class Score(NamedTuple):
    """How well the tested pictures are told apart.

    ap : average precision
    rate : recognition rate by the sign of the scores, object and background counting alike
    """

    ap: float
    rate: float


@final
@dataclass(frozen=True, eq=False)
class Stage:
    """A split with its features and its noise, which all tasks share."""

    seen: Seen
    noise: float
    split: Split

    @classmethod
    def of(cls, seen: Seen, split: Split) -> Stage:
        """With the smallest noise for the pictures of all targets and any one support together.

        What each target needs with each support is a part of that.
        """
        ground = np.unique(np.concatenate([split.background, *split.positives.values()]))
        examples = Examples.of(_inputs(ground), np.isin(ground, split.background))
        rests = {name: np.setdiff1d(rows, ground) for name, rows in split.supports.items()}
        supports = tuple(
            Support.of(seen.kernel, name, _inputs(rest))
            for name, rest in rests.items()
            if len(rest)
        )
        model = OneShot.of(seen.kernel, examples, supports, rule=Rule(noise="adaptive"))
        return cls(seen, model.covariance.noise, split)

    @cached_property
    def ground(self) -> KernelModel:
        """The background."""
        return self._model(self.split.background, -1)

    @cached_property
    def supports(self) -> dict[str, KernelModel]:
        """Each support, pictures of the object only: they share the background with the target."""
        return {name: self._model(rows, 1) for name, rows in self.split.supports.items()}

    @cached_property
    def priors(self) -> Array:
        """Scores of all n pictures by LS-SVMs of each support against the background,
        (2, costs, n, supports).

        Tasks share the background, so its pictures were learnt, and their scores are no guide to
        the scores of other pictures. The second table has their leave-one-out scores instead.
        """
        return np.stack([self._machines(rows) for rows in self.split.supports.values()], axis=3)

    def _machines(self, rows: Array) -> Array:
        """(2, costs, n)."""
        learnt = np.concatenate([self.split.background, rows])
        y = np.repeat([-1.0, 1.0], [len(self.split.background), len(rows)])
        K, nothing = self.seen.block(learnt, learnt), np.zeros((len(learnt), 1))
        machines = [Adapted.of(K, y, C, nothing) for C in COSTS]
        fitted = [machine.coefficients(np.zeros(1)) for machine in machines]
        A, b = (np.stack(parts) for parts in zip(*fitted, strict=True))
        scores = np.stack([A @ self.seen.gram[learnt] + b[:, None]] * 2)
        scores[1, :, learnt] = np.array(
            [each.leave_one_out(np.zeros(1))[0, 0] for each in machines]
        ).T
        return scores

    def _model(self, rows: Array, label: int) -> KernelModel:
        examples = Examples.of(_inputs(rows), np.full(len(rows), label))
        return KernelModel.of(self.seen.kernel, self.noise, examples, one_vs_all, Cholesky())

    def target(self, name: str, positives: int) -> Target:
        """A target task that knows some pictures of its class, with each support but itself."""
        rows = self.split.positives[name][:positives]
        examples = self.ground.examples.apply(Add(_inputs(rows), np.ones(positives, dtype=int)))
        model = self.ground.follow(examples)
        learnt = np.concatenate([self.split.background, rows])
        supports = self.split.supports
        C = self.seen.block(learnt, np.concatenate(list(supports.values())))
        ends = np.cumsum([len(rows) for rows in supports.values()])[:-1]
        pairs = {
            other: Pair.of(model, self.supports[other], block, positive=1)
            for other, block in zip(supports, np.split(C, ends, axis=1), strict=True)
            if other != name
        }
        return Target(self, name, learnt, model, pairs)


def _inputs(rows: Array) -> Array:
    """Rows of pictures as inputs of a model, (n, 1)."""
    return rows[:, None].astype(float)


@final
@dataclass(frozen=True, eq=False)
class Target:
    """A target task: rows (n_T,) of its pictures, the background's first.

    pairs : the task with each support
    prior : the label of what resembles nothing; zero, as in the paper, is neither
    """

    stage: Stage
    name: str
    rows: Array
    model: KernelModel
    pairs: dict[str, Pair]
    prior: float = 0.0

    def expecting(self, prior: float) -> Target:
        """The target with another prior mean: the label expected of pictures unlike all others."""
        coding = Rule(prior=prior).coding
        # The class is the second of the target's two, and the only one of a support.
        model = KernelModel.on(self.model.covariance, coding(self.model.names[-1]))
        pairs = {
            name: replace(
                pair,
                target=model,
                support=KernelModel.on(pair.support.covariance, coding(pair.support.names[-1])),
                prior=prior,
            )
            for name, pair in self.pairs.items()
        }
        return replace(self, model=model, pairs=pairs, prior=prior)

    def found(
        self, criterion: str, search: Search = grid, among: Sequence[str] | None = None
    ) -> dict[str, Best]:
        """The best rho of each support, or of some."""
        names = self.pairs if among is None else among
        return {name: search(self.pairs[name], CRITERIA[criterion]) for name in names}

    def pooled(self, criterion: str) -> dict[str, Best]:
        """Each support at rho = 1."""
        one = np.ones(1)
        return {name: grid(pair, CRITERIA[criterion], one) for name, pair in self.pairs.items()}

    # -- the test --------------------------------------------------------------------------------

    @cached_property
    def asked(self) -> Array:
        """Rows of the test pictures, the class before the background, (m,)."""
        mine = self.stage.split.tested[self.name]
        return np.concatenate([mine, self.stage.split.others])

    @cached_property
    def _k(self) -> Array:
        return self.stage.seen.block(self.rows, self.asked)

    def alone(self) -> Array:
        """Scores (m,) of the pictures asked, learnt independently."""
        return np.asarray(self.prior + self.model.coefficients[:, 1] @ self._k)

    def helped(self, support: str, rho: float) -> Array:
        """Their scores, learnt with the help of a support."""
        k = self.stage.seen.block(self.stage.split.supports[support], self.asked)
        a = self.pairs[support].coefficients(rho)
        return np.asarray(self.prior + a @ np.vstack([self._k, rho * k]))

    def averaged(self, found: Sequence[tuple[str, float]]) -> Array:
        """The mean of their scores with the help of each of some supports at its rho."""
        return np.asarray(np.mean([self.helped(*one) for one in found], axis=0))

    def adapted(self, *, unseen: bool) -> tuple[str, Prior, Array]:
        """Their scores by Adapted LS-SVM, and whose machine it starts from, how far.

        Prior, beta and C are chosen by the weighted leave-one-out error. `unseen`: priors speak
        of the shared background by leave-one-out, too.
        """
        names = list(self.stage.split.supports)
        others = [i for i, name in enumerate(names) if name != self.name]
        K, tried = self.stage.seen.block(self.rows, self.rows), []
        for C, scores in zip(COSTS, self.stage.priors[int(unseen)], strict=True):
            t = scores[:, others]
            machine = Adapted.of(K, self._labels, C, t[self.rows])
            tried.append((machine.best(BETAS), machine, t[self.asked]))
        best, machine, t = max(tried, key=lambda one: one[0].value)
        scores = machine.mean(self._k, t, best.along(len(others)))
        return names[others[best.which]], best, scores

    @property
    def _labels(self) -> Array:
        """Labels of the training pictures, 1 for the class and -1 for the background, (n_T,)."""
        return np.where(self.stage.seen.labels[self.rows] == self.name, 1.0, -1.0)

    def judged(self, scores: Array) -> Score:
        """Average precision and recognition rate of scores (m,)."""
        wanted = np.where(self.stage.seen.labels[self.asked] == self.name, 1.0, -1.0)
        rate = ((scores[wanted > 0] > 0).mean() + (scores[wanted < 0] <= 0).mean()) / 2
        return Score(float(average_precision(wanted, scores)), float(rate))
