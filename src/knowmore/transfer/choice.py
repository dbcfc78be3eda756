"""The choice of support tasks, and of a rho for each.

A criterion scores a rho, the larger the better, mostly from leave-one-out predictions for the
target's examples: labels y (n,) of -1 and 1, mean and variance (..., n), with a result of shape
(...). If there is only one positive example, its prediction comes from the support task and the
background alone. A rank, as in average precision, then says that any support is better than none;
a density says how much better, and what the background loses by it.

No transfer, rho = 0, is always a candidate. Ties go to the larger leave-one-out log predictive
probability, then to the smaller rho. Values that differ by rounding alone are ties: otherwise the
order in which examples came would decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from scipy.special import expit

from knowmore._base import Array, Frozen, derived, optional
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Cholesky
from knowmore.models import (
    Coding,
    Covariance,
    KernelModel,
    Targets,
    finite,
    log_density,
    one_vs_all,
)
from knowmore.transfer.pairs import Pair

# Each is the nearest float to its two digits.
RHOS = np.arange(101) / 100

# Evaluations after the first two until the bracket is narrower than a thousandth.
_STEPS = 15
_GOLDEN = (5**0.5 - 1) / 2

# The label of all examples of a support task.
POSITIVE = 1

# Support tasks that a ranking shows.
_SHOWN = 10


# -- criteria ------------------------------------------------------------------------------------


def average_precision(y: Array, mean: Array) -> Array:
    """The area under the precision-recall curve, as defined by PASCAL VOC since 2010.

    The precision at a recall is the largest at that recall or above. Examples with equal scores
    are found together, so that their order does not matter. With one positive example this is
    1 / rank, as with every other definition of average precision.

    >>> float(average_precision(np.array([1, -1, 1]), np.array([0.3, 0.2, 0.1])))
    0.833
    """
    hits = np.sort(mean[..., y > 0], axis=-1)
    precision = _count(np.greater_equal, hits, hits) / _count(np.greater_equal, mean, hits)
    # From the lowest score, which has the largest recall, upwards.
    return np.asarray(np.maximum.accumulate(precision, axis=-1).mean(axis=-1))[()]


def roc_auc(y: Array, mean: Array) -> Array:
    """The share of pairs of a positive and a negative example that are in order; a tie is half.

    >>> float(roc_auc(np.array([1, -1, 1, -1]), np.array([0.3, 0.2, 0.2, 0.1])))
    0.875
    """
    hits, others = mean[..., y > 0], mean[..., y <= 0]
    above = _count(np.greater_equal, others, hits) + _count(np.greater, others, hits)
    return np.asarray(1 - above.mean(axis=-1) / (2 * others.shape[-1]))[()]


def _count(compare: np.ufunc, scores: Array, hits: Array) -> Array:
    """The number of scores (..., n) that compare so to each of the hits (..., p).

    Positive examples are few here: comparing each with all is faster than sorting.
    """
    counts = [compare(scores, hits[..., [i]]).sum(axis=-1) for i in range(hits.shape[-1])]
    return np.stack(counts, axis=-1)


def squashed(y: Array, mean: Array, weights: Array) -> Array:
    """Minus the weighted mean of a smooth count of errors, 1 / (1 + exp(10 y mean)).

    After Tommasi and Caputo (2009), who write it with residuals: y (y - mean) - 1 = -y mean.
    """
    return np.asarray(-(expit(-10 * y * mean) @ weights) / len(y))[()]


def balanced(y: Array) -> Array:
    """Weights that give both classes the same total: n / (2 n_+) and n / (2 n_-), (n,)."""
    positive = y > 0
    n, count = len(y), int(positive.sum())
    return np.where(positive, n / (2 * count), n / (2 * (n - count)))


Criterion = Callable[[Pair, Array], Array]


def _loo(score: Callable[[Array, Array, Array], Array]) -> Criterion:
    """The criterion that scores leave-one-out estimates: labels, means and variances."""
    return lambda pair, rho: score(pair.y, *pair.leave_one_out(rho))


# "lpp" is the log predictive probability, eq. (5), Rodner and Denzler. The last criterion is no
# leave-one-out estimate, but log p(y_T | y_S).
CRITERIA: dict[str, Criterion] = {
    "ap": _loo(lambda y, mean, _: average_precision(y, mean)),
    "auc": _loo(lambda y, mean, _: roc_auc(y, mean)),
    "lpp": _loo(lambda *estimates: log_density(*estimates).sum(axis=-1)),
    "squashed": _loo(lambda y, mean, _: squashed(y, mean, np.ones(len(y)))),
    "weighted": _loo(lambda y, mean, _: squashed(y, mean, balanced(y))),
    "likelihood": Pair.conditional_likelihood,
}


# Step functions of means that are zero if they are only rounding.
_STEP_FUNCTIONS = frozenset((CRITERIA["ap"], CRITERIA["auc"]))


# -- searches over rho ---------------------------------------------------------------------------


class Best(NamedTuple):
    """A rho, the criterion's value there, and the log predictive probability there."""

    rho: float
    value: float
    lpp: float


Search = Callable[[Pair, Criterion], Best]


def _rounding(pair: Pair, rho: Array, values: Array) -> Array:
    """About how far the values of a smooth criterion at rho are from exact, all (...).

    4 eps cond(K~), relative; the condition is at least diag(K~) diag(K~^-1).
    """
    condition = (pair.diagonal * pair.inverse_diagonal(rho)).max(axis=-1)
    return np.asarray(4 * np.finfo(float).eps * condition * (1 + abs(values)))


def _largest(pair: Pair, rhos: Array, values: Array) -> Array:
    """The places of the largest values (g,) of a smooth criterion, to rounding; ascending."""
    error = _rounding(pair, rhos, values)
    return np.flatnonzero(values + error >= (values - error).max())


def grid(pair: Pair, criterion: Criterion, rhos: Array = RHOS) -> Best:
    """The best of all `rhos` (g,), which ascend from 0."""
    values = criterion(pair, rhos)
    if criterion in _STEP_FUNCTIONS:
        equal = np.flatnonzero(values == values.max())
    else:
        equal = _largest(pair, rhos, values)
    lpps = CRITERIA["lpp"](pair, rhos[equal])
    first = int(_largest(pair, rhos[equal], lpps)[0])
    best = int(equal[first])
    return Best(float(rhos[best]), float(values[best]), float(lpps[first]))


def golden(pair: Pair, criterion: Criterion) -> Best:
    """Golden section search on [0, 1] (Kiefer 1953), as in Rodner and Denzler; and rho = 0.

    It assumes that the criterion has one peak. Average precision is a step function of rho with any
    number of peaks, so this may miss the best. On a plateau it moves towards the larger rho.
    Returns the best of all points that were evaluated.
    """
    seen = [0.0]

    def value(rho: float) -> Array:
        seen.append(rho)
        at = criterion(pair, np.array(rho))
        error = 0.0 if criterion in _STEP_FUNCTIONS else _rounding(pair, np.array(rho), at)
        return np.array([at - error, at + error])

    low, high, left, right = 0.0, 1.0, 1 - _GOLDEN, _GOLDEN
    at_left, at_right = value(left), value(right)
    for _ in range(_STEPS):
        if at_left[0] > at_right[1]:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
    return grid(pair, criterion, np.array(sorted(seen)))


SEARCHES: dict[str, Search] = {"grid": grid, "golden": golden}


@final
@dataclass(frozen=True)
class Rule:
    """How rho and the support tasks are chosen, and for which class.

    criterion : one of `CRITERIA`
    search : one of `SEARCHES`, or the only rho to consider
    noise : sigma^2; "auto" for about a quarter of the examples' variance, or "adaptive" for the
        smallest that is large enough
    name : the name of the positive class
    prior : the mean of the process, in labels: -1 if what resembles nothing is background
    members : how many of the best support tasks answer; their answers are averaged
    """

    criterion: str = "lpp"
    search: str | float = "grid"
    noise: float | str = "auto"
    name: str | None = None
    prior: float = -1.0
    members: int = 10

    @property
    def largest(self) -> float:
        """The largest rho that is considered."""
        return 1.0 if isinstance(self.search, str) else self.search

    def positive(self, labels: Array) -> Any:
        """The positive class among these labels (n,); None without labels.

        It is the class `name`, or else the class with fewer examples, or the last of two alike. If
        the prior is not background, which one is makes less of a difference: it is the last.
        """
        classes, counts = np.unique(labels, return_counts=True)
        if self.name in classes.tolist():
            return self.name
        if self.prior >= 0:
            counts = np.zeros_like(counts)
        return classes[::-1][counts[::-1].argmin()].item() if len(classes) else None

    def means(self, classes: Array, positive: Any) -> Array:
        """The prior mean of each class's label, (M,)."""
        return np.where(classes == positive, self.prior, -self.prior)

    def coding(self, positive: Any) -> Coding:
        """Labels of 1 and -1 for each class, less its prior mean: what there is to learn."""
        return CentredCoding(self, positive)


@final
@dataclass(frozen=True)
class CentredCoding(Coding):
    """Targets of 1 and -1 for each class, less its prior mean."""

    rule: Rule
    positive: Any

    def __call__(self, examples: Examples) -> Targets:
        """The targets, (n, 2)."""
        targets = one_vs_all(examples)
        # Of the indicators that are the basis, one is one in each row.
        return replace(targets, mix=targets.mix - self.rule.means(targets.names, self.positive))


# -- support tasks -------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Support(Frozen):
    """A support task: examples of another class, and their kernel matrix K (n_S, n_S).

    The background is the target's. In the support it would count twice, so all its examples have
    the same label (section 3 of Rodner and Denzler).
    """

    transient: ClassVar[frozenset[str]] = frozenset({"digests"})
    kernel: AnyKernel
    name: str
    examples: Examples
    K: Array

    @classmethod
    def of(cls, kernel: AnyKernel, name: str, X: Array) -> Support:
        """The task of a copy of X (n_S, d)."""
        examples = Examples.of(X, np.full(len(X), POSITIVE))
        return cls(kernel, name, examples, finite(kernel, corner(kernel, X)))

    @property
    def X(self) -> Array:
        """The inputs, (n_S, d)."""
        return self.examples.X

    def noisy(self, noise: float) -> Array:
        """K + noise I."""
        return np.asarray(self.K + noise * np.eye(len(self.K)))

    def model(self, noise: float, coding: Coding) -> KernelModel:
        """The model of the task by itself."""
        factor = Cholesky().append(np.empty((0, len(self.K))), self.noisy(noise))
        covariance = Covariance(self.kernel, noise, self.examples, factor)
        return KernelModel.on(covariance, coding)

    @derived
    def digests(self) -> dict[bytes, int]:
        """The row of each example by its digest."""
        return {digest: row for row, digest in enumerate(row_digests(self.X))}


def row_digests(X: Array) -> list[bytes]:
    """A hash of each row of X (n, d), equal for equal rows."""
    # Adding zero turns a negative zero into the other.
    rows = np.ascontiguousarray(X + 0.0, dtype=float)
    return [blake2b(row.tobytes(), digest_size=16).digest() for row in rows]


@final
@dataclass(frozen=True, eq=False)
class Candidate(Frozen):
    """A support task that may be chosen: its values C (n_T, n_S), and its pair with the target."""

    support: Support
    C: Array
    pair: Pair
    rule: Rule

    @derived
    def best(self) -> Best:
        """The best rho by the rule."""
        search, criterion = self.rule.search, CRITERIA[self.rule.criterion]
        if isinstance(search, str):
            return SEARCHES[search](self.pair, criterion)
        return grid(self.pair, criterion, np.array([search]))


class Ranked(NamedTuple):
    """A support task with its best rho, the criterion's value, and the log predictive probability.

    The last decides between equal values.
    """

    support: str
    rho: float
    value: float
    lpp: float


@final
@dataclass(frozen=True, repr=False)
class Ranking:
    """Support tasks, the best first.

    >>> Ranking("ap", (Ranked("cheetah", 0.42, 1.0, -3.25), Ranked("wrench", 0.0, 0.5, -4.5)))
    support   rho     ap     lpp
    cheetah  0.42  1.000   -3.25
    wrench   0.00  0.500   -4.50
    """

    criterion: str
    rows: tuple[Ranked, ...]

    @classmethod
    def of(cls, criterion: str, found: Mapping[str, Best]) -> Ranking:
        """Rank supports by the best rho found for each; of equal ones the first stays first."""
        rows = [Ranked(name, *best) for name, best in found.items()]
        return cls(criterion, tuple(sorted(rows, key=lambda one: (-one.value, -one.lpp, one.rho))))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> Ranked:
        return self.rows[place]

    def __repr__(self) -> str:
        own = self.criterion != "lpp"
        table = [("support", "rho", *[f"{self.criterion:>6}"] * own, f"{'lpp':>7}")]
        table += [
            (name, f"{rho:.2f}", *[f"{value:.3f}"] * own, f"{lpp:.2f}")
            for name, rho, value, lpp in self.rows[:_SHOWN]
        ]
        wide = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            f"{name:{wide[0]}}  {rho:>4} "
            + " ".join(f"{number:>{width}}" for number, width in zip(rest, wide[2:], strict=True))
            for name, rho, *rest in table
        ]
        more = [f"... and {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return "\n".join(lines + more)

    def to_pandas(self) -> Any:
        """A table with the columns that the repr shows: support, rho, the criterion and lpp.

        If lpp is the criterion, there is one column of it.
        """
        columns = ["support", "rho", "value", "lpp"]
        table = optional("pandas", "tables").DataFrame(list(self.rows), columns=columns)
        if self.criterion == "lpp":
            return table.drop(columns="value")
        return table.rename(columns={"value": self.criterion})
