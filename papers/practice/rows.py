"""Results of the questions of practice: rows of figures, with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np

from knowmore.errors import MissingData, MissingExtra
from papers.findings import Progress, Verdict, as_time


class Figure(NamedTuple):
    """A measure in each split, (splits,), and the mean time in seconds that a split took.

    The splits of a row are the same for all of its figures, in the same order.
    """

    values: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean of all splits."""
        return float(np.mean(self.values))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return _error(self.values)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


class Difference(NamedTuple):
    """By how much one is better than another in the same splits, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f}"


@final
@dataclass(frozen=True)
class Row:
    """Ours by default and its peers on the same splits.

    question, where : what is asked, and of which examples
    measure : what the figures are; "error" and the like are better if smaller, see `smaller`
    ours : of the default
    peers : of each peer by its name
    slack : ours may be worse than a peer by so much, beyond the standard error of the difference
    smaller : whether a smaller figure is the better one

    >>> peers = {"coin": Figure((0.5, 0.6), 0.1), "oracle": Figure((0.9, 1.0), 2.0)}
    >>> row = Row("guess", "heads", "accuracy", Figure((0.8, 0.8), 0.2), peers)
    >>> row.best, str(row.difference), row.verdict.holds
    ('oracle', '-0.150 ± 0.050', False)
    """

    question: str
    where: str
    measure: str
    ours: Figure
    peers: Mapping[str, Figure]
    slack: float = 0.0
    smaller: bool = False

    @property
    def best(self) -> str:
        """The peer that decides: that which ours is the furthest behind, or the least ahead of."""
        return min(self.peers, key=lambda name: sum(self.against(name)))

    def against(self, peer: str) -> Difference:
        """By how much ours is better than a peer; below zero: worse."""
        gain = np.subtract(self.ours.values, self.peers[peer].values) * (-1 if self.smaller else 1)
        return Difference(float(gain.mean()), _error(gain))

    @property
    def difference(self) -> Difference:
        """The difference from the peer that decides."""
        return self.against(self.best)

    @property
    def target(self) -> str:
        """The target in words."""
        allowed = f" less {self.slack:g}" if self.slack else ""
        return f"as good as every peer{allowed}, within a standard error"

    @property
    def holds(self) -> bool:
        """Whether ours is as good as every peer, up to the slack and a standard error."""
        return sum(self.difference) >= -self.slack

    @property
    def verdict(self) -> Verdict:
        """Whether the target is reached, by which figures."""
        return Verdict(
            claim=f"{self.question}, {self.where}, {self.measure}: {self.target}.",
            holds=self.holds,
            measured=(
                f"{self.ours} ({as_time(self.ours.seconds)}); {self.best} "
                f"{self.peers[self.best]} ({as_time(self.peers[self.best].seconds)}); "
                f"a difference of {self.difference}"
            ),
        )


@final
@dataclass(frozen=True)
class Absent:
    """A question that could not be asked, and why."""

    where: str
    why: str


Found = list[Row | Absent]


def attempted(where: str, act: Callable[[], Iterable[Row | Absent]]) -> Found:
    """The rows of `act`, or what is missing here in words: a data set or a library."""
    try:
        return list(act())
    except (MissingData, MissingExtra) as error:
        return [Absent(where, str(error))]


class Tally:
    """Collects what each way measures in each split, and its time.

    >>> tally = Tally()
    >>> for split, (mine, theirs) in enumerate([(0.7, 0.5), (0.9, 0.5)]):
    ...     tally.timed(split, "ours", lambda: {"accuracy": mine})
    ...     tally.timed(split, "theirs", lambda: {"accuracy": theirs})
    >>> (row,) = tally.rows("guess", "heads", "ours")
    >>> row.ours.values, row.best, row.difference
    ((0.7, 0.9), 'theirs', Difference(mean=0.3, error=0.1))
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[int, list[float]]] = {}
        self._seconds: dict[str, list[float]] = {}

    def timed(self, split: int, way: str, act: Callable[[], Mapping[str, float]]) -> None:
        """Add what `act` measures, {measure: value}. Of several in a split the mean counts."""
        begin = perf_counter()
        found = act()
        self._seconds.setdefault(way, []).append(perf_counter() - begin)
        for measure, value in found.items():
            splits = self._values.setdefault((way, measure), {})
            splits.setdefault(split, []).append(float(value))

    def rows(
        self,
        question: str,
        where: str,
        ours: str,
        *,
        beside: Collection[str] = (),
        slack: float = 0.0,
        smaller: bool = False,
    ) -> list[Row]:
        """A row for each measure.

        `ours` names our way, and `beside` other ways of ours. All other ways are peers.
        """
        peers = [way for way in self._seconds if way != ours and way not in beside]
        return [
            Row(
                question,
                where,
                measure,
                self._figure(ours, measure),
                {peer: self._figure(peer, measure) for peer in peers},
                slack,
                smaller,
            )
            for way, measure in self._values
            if way == ours
        ]

    def _figure(self, way: str, measure: str) -> Figure:
        values = [float(np.mean(some)) for some in self._values[way, measure].values()]
        return Figure(tuple(values), float(np.mean(self._seconds[way])))


def part(progress: Progress, what: str, begin: float, end: float) -> Progress:
    """Progress within a part of the whole."""

    def told(share: float, step: str) -> None:
        progress(begin + share * (end - begin), f"{what}: {step}" if step else what)

    return told


def _error(values: Any) -> float:
    """The standard error of a mean; of a single value none is known, so it is zero."""
    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
