"""Outcomes of the experiments on one-shot learning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np

from papers.arrays import Array
from papers.one_shot.tasks import Sizes

Measure = Literal["ap", "rate"]

THINGS, FOREST = "Caltech-101", "Caltech-101, forest"
RELATED, UNRELATED = "Caltech-256, related", "Caltech-256, unrelated"
# How many supports the paper lets WordNet leave, and how many it finds too few.
FEW, STRICT = 10, 3


class Way(NamedTuple):
    """How a task is learnt.

    K : how many supports WordNet leaves to choose from; None leaves all
    prior : the label that is expected of a picture unlike all others
    """

    kind: Literal[
        "independent", "pooled", "transfer", "average", "adapted", "adapted, unseen", "hindsight"
    ]
    criterion: str = ""
    search: str = ""
    K: int | None = None
    prior: float = -1.0


def transfer(K: int | None = None, criterion: str = "ap", search: str = "grid") -> Way:
    """Dependent Gaussian processes, the support and rho chosen by leave-one-out."""
    return Way("transfer", criterion, search, K)


def average(K: int | None = None) -> Way:
    """The mean of ten supports, each at its rho, by their log predictive probability."""
    return Way("average", "lpp", "grid", K)


def undecided(way: Way) -> Way:
    """As in the paper: of a picture unlike all others neither label is expected."""
    return way._replace(prior=0.0)


# Without a support; with the best one at rho = 1; an LS-SVM that starts from the best of theirs,
# which know the background, or speak of it as if they did not; and with the support that turns out
# to be best in the test, each with the rho it would have.
INDEPENDENT = Way("independent")
POOLED = Way("pooled", "ap")
ADAPTED = Way("adapted", "weighted", "grid")
UNSEEN = Way("adapted, unseen", "weighted", "grid")
HINDSIGHT = Way("hindsight", "ap", "grid")


class Outcome(NamedTuple):
    """The test of a task with some positives in a split, learnt in one way.

    support, rho : what was chosen; for an LS-SVM rho is its beta
    left_out : the criterion's value
    ap, rate : average precision and recognition rate on the pictures tested
    """

    source: str
    task: str
    split: int
    positives: int
    kind: str
    criterion: str
    search: str
    K: int | None
    prior: float
    support: str
    rho: float
    left_out: float
    ap: float
    rate: float


class Gain(NamedTuple):
    """A mean difference of two ways, and its standard error over tasks and over splits."""

    mean: float
    over_tasks: float
    over_splits: float

    @property
    def error(self) -> float:
        """The larger one."""
        return max(self.over_tasks, self.over_splits)

    @property
    def is_clear(self) -> bool:
        """More than its standard error?"""
        return self.mean > self.error

    def __str__(self) -> str:
        return (
            f"{100 * self.mean:+.1f} points (standard error {100 * self.over_tasks:.1f} over "
            f"tasks, {100 * self.over_splits:.1f} over splits)"
        )


@final
@dataclass(frozen=True)
class OneShot:
    """All outcomes, and what they rest on, by source.

    sizes : how many pictures are learnt
    others : how many of the background are tested, at least
    noises : each that a split needed
    supports : how many there are to choose from in Caltech-101
    """

    outcomes: tuple[Outcome, ...]
    sizes: Mapping[str, Sizes]
    others: Mapping[str, int]
    noises: Mapping[str, tuple[float, ...]]
    supports: int

    @cached_property
    def _found(self) -> dict[tuple[str, int, Way], dict[str, list[Outcome]]]:
        found: dict[tuple[str, int, Way], dict[str, list[Outcome]]] = defaultdict(dict)
        for one in self.outcomes:
            way = Way(one.kind, one.criterion, one.search, one.K, one.prior)  # type: ignore[arg-type]
            found[one.source, one.positives, way].setdefault(one.task, []).append(one)
        return dict(found)

    def splits(self, source: str) -> int:
        """The number of random splits of a source."""
        return 1 + max(one.split for one in self.outcomes if one.source == source)

    def tasks(self, source: str) -> list[str]:
        """The tasks of a source, in the order of their appearance."""
        return list(dict.fromkeys(one.task for one in self.outcomes if one.source == source))

    def positives(self, source: str) -> list[int]:
        """Numbers of positive examples, ascending."""
        return sorted({positives for where, positives, _ in self._found if where == source})

    def ways(self, source: str, positives: int) -> list[Way]:
        """The ways of learning, in the order of their appearance."""
        return [way for where, p, way in self._found if (where, p) == (source, positives)]

    def of(self, source: str, positives: int, way: Way) -> dict[str, list[Outcome]]:
        """The outcomes of each task, split by split."""
        return self._found[source, positives, way]

    def values(self, source: str, positives: int, way: Way, measure: Measure = "ap") -> Array:
        """Average precisions, or recognition rates, (tasks, splits)."""
        found = self.of(source, positives, way).values()
        return np.array([[getattr(one, measure) for one in mine] for mine in found])

    def gain(
        self, source: str, positives: int, way: Way, over: Way, measure: Measure = "ap"
    ) -> Gain:
        """By how much one way is better than another: pairs of the same task and split."""
        values = (self.values(source, positives, each, measure) for each in (way, over))
        return gain(np.subtract(*values))

    def favourite(self, source: str, positives: int, way: Way, task: str) -> tuple[str, float]:
        """The support that is chosen most often, and in what part of the splits."""
        return favourite(one.support for one in self.of(source, positives, way)[task])


def gain(D: Array) -> Gain:
    """The mean of differences D (tasks, splits), with its errors over tasks and over splits."""

    def error(means: Array) -> float:
        return float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0

    return Gain(float(D.mean()), error(D.mean(axis=1)), error(D.mean(axis=0)))


def favourite(names: Iterable[str]) -> tuple[str, float]:
    """The most frequent name, and its part of all.

    >>> favourite(["llama", "okapi", "llama", "rhino"])
    ('llama', 0.5)
    """
    counts = Counter(names)
    (name, count), *_ = counts.most_common()
    return name, count / counts.total()
