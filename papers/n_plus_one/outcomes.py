"""Outcomes of the experiment on one class more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from papers.arrays import Array
from papers.n_plus_one.features import LINEAR, NON_LINEAR
from papers.n_plus_one.groups import Group

ANIMALS, THINGS = "Animals with Attributes", "Caltech-256"
OURS, SCALED = "MULTIpLE", "MULTIpLE, scaled"
NONE, OWN_C = "no transfer", "no transfer, own C"
BATCH, BALANCED = "batch", "batch, balanced"
SOURCE, PLUS_ONE, HINGE = "source", "source+1", "source+1 (hinge)"
MULTI_KT, ADDED = "MultiKT", "MKTL"
# "Few examples" of each class.
FEW = 5
# Which accuracies there are, by what they are accuracies on.
MEASURES = {"everything": "N+1 classes", "known": "N known classes", "new": "the new class"}


class Setting(NamedTuple):
    """A group of classes of a data set, with a new class among them, and a kind of kernel."""

    data: str
    classes: int
    group: str
    kernel: str


class Outcome(NamedTuple):
    """Rates of a method in a split, after `learnt` examples of each class.

    everything, known, new : the part of test pictures that is recognised, as means over the N+1
        classes, over the N known ones, and of the class `newcomer`
    C : the one that suits the source best by leave-one-out
    """

    data: str
    classes: int
    group: str
    kernel: str
    split: int
    newcomer: str
    learnt: int
    method: str
    C: float
    everything: float
    known: float
    new: float

    @property
    def setting(self) -> Setting:
        """The data, number of classes, group and kernel."""
        return Setting(self.data, self.classes, self.group, self.kernel)


class Share(NamedTuple):
    """How much of the class `known` went into `newcomer`, by MULTIpLE's beta."""

    data: str
    classes: int
    group: str
    kernel: str
    split: int
    newcomer: str
    learnt: int
    known: str
    beta: float

    @property
    def setting(self) -> Setting:
        """The data, number of classes, group and kernel."""
        return Setting(self.data, self.classes, self.group, self.kernel)


class Plan(NamedTuple):
    """Numbers of pictures of each class: learnt by the source, and learnt after it."""

    source: int
    learnt: tuple[int, ...]


@final
@dataclass(frozen=True)
class NPlusOneRun:
    """All outcomes and betas, the groups by data and number of classes, and how it was done."""

    outcomes: tuple[Outcome, ...]
    shares: tuple[Share, ...]
    groups: dict[tuple[str, int], dict[str, Group]]
    plans: dict[str, Plan]
    quick: bool = False

    @cached_property
    def _rates(self) -> dict[tuple[Setting, int, str], Array]:
        rates: dict[tuple[Setting, int, str], list[tuple[float, ...]]] = {}
        for one in self.outcomes:
            key = one.setting, one.learnt, one.method
            rates.setdefault(key, []).append((one.everything, one.known, one.new))
        return {key: np.array(found) for key, found in rates.items()}

    @property
    def settings(self) -> list[Setting]:
        """Settings with a linear kernel or all features, in the order of their appearance."""
        found = dict.fromkeys(setting for setting, _, _ in self._rates)
        return [one for one in found if one.kernel in (LINEAR, NON_LINEAR)]

    @property
    def alone(self) -> list[Setting]:
        """Settings with one kind of features; the kernel has the name of the features."""
        found = dict.fromkeys(setting for setting, _, _ in self._rates)
        return [one for one in found if one.kernel not in (LINEAR, NON_LINEAR)]

    def of(self, data: str, classes: int) -> list[Setting]:
        """The settings of a set and a number of classes."""
        return [one for one in self.settings if (one.data, one.classes) == (data, classes)]

    def rates(self, setting: Setting, learnt: int, method: str, measure: str) -> Array:
        """The rates by `measure`, a key of `MEASURES`, in each split, (splits,)."""
        return self._rates[setting, learnt, method][:, list(MEASURES).index(measure)]

    def margin(
        self,
        setting: Setting,
        learnt: int,
        over: str,
        measure: str = "everything",
        of: str = OURS,
    ) -> Margin:
        """How much more MULTIpLE, or `of`, recognises than another method in the same splits."""
        ours, theirs = (self.rates(setting, learnt, who, measure) for who in (of, over))
        return Margin(setting, learnt, *mean_and_error(100 * (ours - theirs)))

    def best_batch(self, setting: Setting, learnt: int) -> str:
        """The better of the two."""
        return max(
            (BATCH, BALANCED),
            key=lambda method: self.rates(setting, learnt, method, "everything").mean(),
        )


class Margin(NamedTuple):
    """A mean of differences between two methods in points, and its standard error."""

    setting: Setting
    learnt: int
    mean: float
    error: float

    @property
    def points(self) -> str:
        """Without where."""
        return f"{self.mean:+.1f} ± {self.error:.1f}"

    def __str__(self) -> str:
        where = f"{self.setting.group}, {self.setting.kernel}, {self.learnt} examples"
        return f"{self.points} ({where})"


def mean_and_error(values: Array) -> tuple[float, float]:
    """The mean and its standard error.

    >>> mean_and_error(np.array([1.0, 2.0, 3.0, 2.0]))
    (2.0, 0.408)
    """
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
