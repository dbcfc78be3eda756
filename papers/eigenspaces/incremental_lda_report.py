"""Verdicts on the claims of Kim et al., from accuracies and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from papers.arrays import Array
from papers.findings import Table, Verdict, as_time

FACES, ANIMALS, THINGS = "faces", "animals", "things"
ROWS, CLASSES = "rows", "classes"
LEARNT, FORGOTTEN, PEER_CHECK = "portions", "forgetting", "PCA + LDA"
# Below this exponent of n a time is called constant, above it growing.
_HALF = 0.5
# Rows less classes are about as many as the directions if they differ by at most this part.
_NEAR = 0.25


class Measure(NamedTuple):
    """Seconds to the model, and its accuracy on the test rows of the classes known."""

    seconds: float
    accuracy: float


class Arrival(NamedTuple):
    """Accuracy of the updated model on test rows of classes that are new in this step, and of
    those that are older, before and after it; NaN where there are none."""

    new: float
    older_before: float
    older_after: float


@final
@dataclass(frozen=True)
class Step:
    """The models after one more portion: updated, fitted from scratch, and scikit-learn's.

    `changed` of the `asked` predictions differ between the first two; `angle` is the mean
    principal angle between their discriminants, in radians.
    """

    source: str
    order: str
    split: int
    n: int
    classes: int
    asked: int
    update: Measure
    batch: Measure
    peer: Measure
    arrival: Arrival
    changed: int
    angle: float


class Check(NamedTuple):
    """A model against the batch fit of what it holds, with that many `directions` kept.

    discarded : the part of the variance that was dropped
    angle : largest principal angle between the discriminants, in radians; rounding allows
        `tolerance` where nothing was dropped
    changed : how many of the `asked` predictions differ
    """

    source: str
    what: str
    directions: int
    discarded: float
    angle: float
    tolerance: float
    changed: int
    asked: int
    accuracy: float
    batch_accuracy: float


@final
@dataclass(frozen=True)
class IncrementalLDA:
    """All steps and checks; `rank` directions of the total scatter were kept."""

    steps: tuple[Step, ...]
    checks: tuple[Check, ...]
    rank: int

    def courses(self) -> dict[tuple[str, str], Course]:
        """The course of learning for each source and order."""
        found: dict[tuple[str, str], list[Step]] = {}
        for step in self.steps:
            found.setdefault((step.source, step.order), []).append(step)
        return {key: Course(tuple(steps)) for key, steps in found.items()}


@final
@dataclass(frozen=True)
class Course:
    """The steps of one source in one order, of all splits."""

    steps: tuple[Step, ...]

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows held after each portion, (steps,)."""
        return sorted({s.n for s in self.steps})

    def values(self, of: Callable[[Step], Any]) -> Array:
        """A number or a `Measure` of each step, (steps, splits) or (steps, splits, 2)."""
        return np.array([[of(s) for s in self.steps if s.n == n] for n in self.sizes])

    def exponent(self, method: Method, beyond: int) -> float:
        """The slope of log time over log n from `beyond` rows on, of the medians of the splits."""
        n = np.array(self.sizes)
        chosen = n > beyond
        times = np.median(self.values(method)[..., 0], axis=1)
        return float(np.polyfit(np.log(n[chosen]), np.log(times[chosen]), 1)[0])


Method = Callable[[Step], Measure]
UPDATED, SCRATCH, PEER = "updated", "from scratch", "scikit-learn LDA"
METHODS: dict[str, Method] = {
    UPDATED: lambda s: s.update,
    SCRATCH: lambda s: s.batch,
    PEER: lambda s: s.peer,
}


def preface(result: IncrementalLDA) -> str:
    """The setting of the experiment, in a few sentences."""
    splits = len({s.split for s in result.steps})
    text = (
        f"{result.rank} directions of the total scatter are kept; scikit-learn's LDA keeps all. "
        f"Accuracies are on held-out rows of the classes known by then, means of {splits} random "
        f"split{'s'[: splits > 1]}; times are medians of them, on one thread."
    )
    return text if splits > 1 else text + " For judging the claims run it without --quick."


def step_table(result: IncrementalLDA) -> Table:
    """The last step of each course."""
    rows = []
    for (source, order), course in result.courses().items():
        last = [course.values(of)[-1] for of in METHODS.values()]
        shown = [f"{M[:, 1].mean():.3f}, {as_time(float(np.median(M[:, 0])))}" for M in last]
        rows.append((f"{source}, {order} arrive", *shown))
    return Table("The last step: accuracy, time", ("", *METHODS), tuple(rows))


def check_table(result: IncrementalLDA) -> Table:
    """Each check in a row."""
    return Table(
        "Discriminants and predictions, held against our fit from scratch",
        ("", "", "kept", "largest angle", "changed", "accuracy", "scratch"),
        tuple(
            (
                c.source,
                c.what,
                str(c.directions),
                f"{np.degrees(c.angle):.2g}°",
                f"{c.changed} of {c.asked}",
                f"{c.accuracy:.3f}",
                f"{c.batch_accuracy:.3f}",
            )
            for c in result.checks
        ),
    )


def verdicts(result: IncrementalLDA) -> Iterator[Verdict]:
    """The claims of the paper one by one, and the law."""
    yield _same_accuracy(result)
    yield _constant_time(result)
    yield _exact(result, LEARNT, "With all directions kept, learning in portions is exact.")
    yield _exact(result, FORGOTTEN, "With all directions kept, so is forgetting a class.")


def _same_accuracy(result: IncrementalLDA) -> Verdict:
    holds, words = [], []
    for (source, order), course in result.courses().items():
        update, batch = (
            course.values(METHODS[name])[..., 1].mean(axis=1) for name in (UPDATED, SCRATCH)
        )
        # What another test set of that size would change by chance.
        asked = course.values(lambda s: s.asked).min(axis=1)
        chance = np.sqrt(batch * (1 - batch) / asked)
        holds.append(bool((abs(update - batch) <= chance).all()))
        worst = int(abs(update - batch).argmax())
        words.append(
            f"{source}, {order} arrive: {update[-1]:.3f} and {batch[-1]:.3f} at the end "
            f"(± {chance[-1]:.3f}), {update[worst]:.3f} and {batch[worst]:.3f} where they differ "
            f"most, at n = {course.sizes[worst]}"
        )
    return Verdict(
        claim="The accuracy of incremental LDA is that of batch LDA, at every step.",
        holds=all(holds),
        measured="; ".join(words),
    )


def _constant_time(result: IncrementalLDA) -> Verdict:
    holds, words = [], []
    for (source, order), course in result.courses().items():
        update, *batch = (course.exponent(method, result.rank) for method in METHODS.values())
        holds.append(update < _HALF < min(batch))
        words.append(f"{source}, {order} arrive: {update:.1f}, {batch[0]:.1f} and {batch[1]:.1f}")
    return Verdict(
        claim="The time of an update stays constant while that of batch grows.",
        holds=all(holds),
        measured=(
            "exponents of n in the times of update, our batch and scikit-learn's: "
            + "; ".join(words)
        ),
    )


def _exact(result: IncrementalLDA, what: str, claim: str) -> Verdict:
    mine = [c for c in result.checks if c.what == what]
    exact, truncated = [c for c in mine if c.discarded == 0], [c for c in mine if c.discarded > 0]
    return Verdict(
        claim=claim,
        holds=all(c.angle <= c.tolerance for c in exact),
        measured=(
            f"the discriminants are at most {max(c.angle for c in exact):.0e} radians off batch "
            f"(rounding allows {min(c.tolerance for c in exact):.0e}) and "
            f"{sum(c.changed for c in exact)} of {sum(c.asked for c in exact)} predictions change. "
            f"With {result.rank} directions "
            + ", ".join(f"{c.changed / c.asked:.0%} ({c.source})" for c in truncated)
            + " of them change"
        ),
    )


def late_classes(result: IncrementalLDA) -> str:
    """Accuracy of new and older classes when the last classes arrive, in words."""
    words = []
    for (source, order), course in result.courses().items():
        if order == CLASSES:
            new, before, after = course.values(lambda s: s.arrival)[-1].mean(axis=0)
            words.append(
                f"{source}: they are recognised with {new:.3f} at once, the older ones with "
                f"{before:.3f} before and {after:.3f} after"
            )
    return f"When the last classes arrive, {'; '.join(words)}."


def worst_moment(result: IncrementalLDA) -> str:
    """LDA where the scatter within the classes is closest to singular in the directions kept."""

    def distance(step: Step) -> int:
        return abs(step.n - step.classes - result.rank)

    words = []
    for (source, order), course in result.courses().items():
        nearest = min(course.steps, key=distance)
        if distance(nearest) <= _NEAR * result.rank:
            at = course.sizes.index(nearest.n)
            update, batch = (
                course.values(METHODS[name])[at, :, 1].mean() for name in (UPDATED, SCRATCH)
            )
            words.append(
                f"{source}, {order} arrive, n = {nearest.n}: {update:.3f} updated and "
                f"{batch:.3f} from scratch"
            )
    return (
        "While rows less classes are about as many as the directions kept, the scatter within the "
        f"classes is nearly singular there: {'; '.join(words) or 'no step came near that'}."
    )
