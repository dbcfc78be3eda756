"""Verdicts on the rates of recognition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, final

import numpy as np

from papers.arrays import Array
from papers.findings import Table, Verdict
from papers.picture_features import WORDS

SCENES, CALTECH = "Fifteen Scenes", "Caltech-101"
# What was found when nothing was sought, and the pictures of Faces once more, cut out.
LEFT_OUT = ("BACKGROUND_Google", "Faces_easy")

BAG, PYRAMID, EDGES, NETWORK = "bag of words", "pyramid", "PHOG", "network"
PLAIN = "pyramid, plain intersection"
# Rates as they are headed in the table.
_SHOWN = {
    "ours": "ours",
    "hinge": "squared hinge",
    "left_out": "left out",
    "svc": "SVC",
    "svc_against_all": "SVC against all",
}
# Allowed distance of our rates below an SVM's, by the squared loss and the squared hinge.
_POINT, _HALF = 0.01, 0.005
# Allowed error of leave-one-out.
_NEAR = 0.03


class Task(NamedTuple):
    """Pictures of each class that are learnt, and how many others are tested at most."""

    source: str
    learnt: int
    tested: int | None

    def __str__(self) -> str:
        return f"{self.source}, {self.learnt} a class"


class Outcome(NamedTuple):
    """Rates of a feature in a split, with n pictures learnt and `asked` pictures tested.

    left_out : the part of the n recognised by all others under this gamma and noise, the best
    ours, hinge, svc, svc_against_all : the part of a class's test pictures that is recognised, in
        the mean over the classes; ours by the squared loss, and by the squared hinge
    """

    source: str
    learnt: int
    tested: int | None
    feature: str
    split: int
    n: int
    asked: int
    gamma: float
    noise: float
    left_out: float
    ours: float
    hinge: float
    C: float
    svc: float
    svc_against_all: float

    @property
    def task(self) -> Task:
        """The source, and the numbers of pictures learnt and tested."""
        return Task(self.source, self.learnt, self.tested)


@final
@dataclass(frozen=True)
class Recognition:
    """All outcomes; `lacking`: why there is no network, if there is none."""

    outcomes: tuple[Outcome, ...]
    lacking: str | None

    @property
    def tasks(self) -> list[Task]:
        """In the order of their appearance."""
        return list(dict.fromkeys(one.task for one in self.outcomes))

    @property
    def features(self) -> list[str]:
        """In the order of their appearance."""
        return list(dict.fromkeys(one.feature for one in self.outcomes))

    def of(self, task: Task, feature: str) -> list[Outcome]:
        """The outcomes of all splits."""
        return [one for one in self.outcomes if (one.task, one.feature) == (task, feature)]

    def rate(self, task: Task, feature: str, classifier: str = "ours") -> Array:
        """The rate of `classifier`, a field of `Outcome`, in each split, (splits,)."""
        return np.array([getattr(one, classifier) for one in self.of(task, feature)])


class Published(NamedTuple):
    """A rate of Lazebnik, Schmid and Ponce (2006), and our target; None where there is none."""

    theirs: float | None
    target: float | None


# Theirs: plain intersection, 400 words for the scenes; their pictures of Caltech-101 were larger.
PUBLISHED = {
    (SCENES, 100, BAG): Published(None, 0.71),
    (SCENES, 100, PLAIN): Published(0.814, None),
    (SCENES, 100, PYRAMID): Published(0.814, 0.78),
    (SCENES, 100, NETWORK): Published(None, 0.90),
    (CALTECH, 15, PLAIN): Published(0.564, None),
    (CALTECH, 15, PYRAMID): Published(0.564, 0.52),
    (CALTECH, 30, PLAIN): Published(0.646, None),
    (CALTECH, 30, PYRAMID): Published(0.646, 0.59),
    (CALTECH, 15, NETWORK): Published(None, 0.85),
}


def published(task: Task, feature: str) -> Published:
    """The published rates for this task and feature."""
    return PUBLISHED.get((task.source, task.learnt, feature), Published(None, None))


def is_quick(result: Recognition) -> bool:
    """Were there so few pictures that no target applies?"""
    return not any((task.source, task.learnt, PYRAMID) in PUBLISHED for task in result.tasks)


def preface(result: Recognition) -> str:
    """The setting of the experiment, in a few sentences."""
    splits = len({one.split for one in result.outcomes})
    network = (
        "The network has learnt from ImageNet, whose classes include many of Caltech-101 and whose "
        "pictures may include some of its own, so it is no wonder that it does well there."
        if result.lacking is None
        else f"There is no network: {result.lacking}."
    )
    text = (
        f"Rates are means over the classes; given are mean and standard deviation of {splits} "
        f"random splits. Of {CALTECH} the folders {' and '.join(LEFT_OUT)} are left out. The "
        f"{WORDS} words of a split are learnt from its training pictures. {network}"
    )
    return text + " For judging the rates run it without --quick." * is_quick(result)


def rates(result: Recognition) -> Table:
    """Each task and feature in a row."""
    rows = []
    for task, feature in product(result.tasks, result.features):
        theirs = published(task, feature).theirs
        shown = [_percent(result.rate(task, feature, who)) for who in _SHOWN]
        beside = "" if theirs is None else f"{100 * theirs:.1f}"
        rows.append((str(task), feature, *shown, beside))
    return Table(
        "Recognition in percent",
        ("learnt", "feature", *_SHOWN.values(), "Lazebnik et al."),
        tuple(rows),
    )


def verdicts(result: Recognition) -> Iterator[Verdict]:
    """The targets one by one, our classifier beside the SVMs, and leave-one-out."""
    for task, feature in product(result.tasks, result.features):
        theirs, target = published(task, feature)
        if target is not None:
            ours = result.rate(task, feature)
            beside = "" if theirs is None else f" (Lazebnik et al.: {100 * theirs:.1f} %)"
            yield Verdict(
                claim=f"{task}, {feature}: at least {100 * target:.0f} %{beside}.",
                holds=bool(ours.mean() >= target),
                measured=f"{_percent(ours)} %",
            )
    yield _beside(result, "svc", "SVC, which sets one class against one")
    yield _beside(result, "svc_against_all", "SVC with one class against all others")
    yield _hinges(result)
    yield _foretold(result)


def _beside(result: Recognition, peer: str, words: str) -> Verdict:
    least, measured = _gaps(result, "ours", peer)
    claim = f"On the same kernel values ours is at most one point below scikit-learn's {words}."
    return Verdict(claim=claim, holds=least >= -_POINT, measured=measured)


def _hinges(result: Recognition) -> Verdict:
    least, measured = _gaps(result, "hinge", "svc_against_all")
    claim = (
        "With the squared hinge ours is at most half a point below scikit-learn's SVC with one "
        "class against all others."
    )
    return Verdict(claim=claim, holds=least >= -_HALF, measured=measured)


def _gaps(result: Recognition, ours: str, peer: str) -> tuple[float, str]:
    """The least of the mean differences from a peer, and all in words."""
    gaps = {
        f"{task}, {feature}": float(
            (result.rate(task, feature, ours) - result.rate(task, feature, peer)).mean()
        )
        for task, feature in product(result.tasks, result.features)
    }
    worst, best = min(gaps, key=gaps.__getitem__), max(gaps, key=gaps.__getitem__)
    words = f"from {100 * gaps[worst]:+.1f} points ({worst}) to {100 * gaps[best]:+.1f} ({best})"
    return gaps[worst], words


def _foretold(result: Recognition) -> Verdict:
    """Leave-one-out knows one picture more than the test, and was chosen to be the largest."""
    gaps = np.array(
        [
            (result.rate(task, feature, "left_out") - result.rate(task, feature)).mean()
            for task, feature in product(result.tasks, result.features)
        ]
    )
    return Verdict(
        claim="Leave-one-out on the pictures learnt foretells the rate on others to three points.",
        holds=bool(abs(gaps).max() <= _NEAR),
        measured=f"it is off by {100 * gaps.min():+.1f} to {100 * gaps.max():+.1f} points",
    )


def _percent(values: Array) -> str:
    return f"{100 * values.mean():.1f} ± {100 * values.std():.1f}"
