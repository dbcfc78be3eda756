"""Fifteen Scenes learnt step by step, as in section 7 of Lütz, Rodner and Denzler.

What the experiments on known classes and on growing examples share. In every run a hundred
pictures of each class are drawn for the test, and others to learn from. Pictures are compared by
histogram intersection, as bags of visual words, which is the paper's feature, and as spatial
pyramids. The paper names neither kernel nor noise. Here some pictures are put aside at the
beginning: from them the visual words are learnt, and by leave-one-out on them the noise is chosen.
They may be learnt from later, but are never in a test. The few pictures that the published set
holds twice are left in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from knowmore import GPClassifier
from knowmore.kernels import HistogramIntersection
from papers.arrays import Array
from papers.data import fifteen_scenes
from papers.findings import BLUE, ORANGE, Progress, Verdict
from papers.held_out import in_order, pyramid_steps
from papers.picture_features import STEP, features
from papers.picture_features import WORDS as SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS, PYRAMID = "bag of words", "spatial pyramid"
_STYLES = {WORDS: (ORANGE, "s"), PYRAMID: (BLUE, "o")}
# So many pictures of each class are put aside.
_ASIDE = 30
# Half decades; the kernel of a picture with itself is one.
_NOISES = tuple(float(noise) for noise in 10.0 ** np.arange(-3, 1, 0.5))


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """Pictures by one of their features: all values of the kernel (n, n), computed once for all
    runs, and the noise that goes with them."""

    gram: Array
    noise: float

    def __call__(self, A: Array, B: Array) -> Array:
        """The kernel between pictures given by their rows, (k, 1) and (m, 1)."""
        return np.asarray(self.gram[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))])

    def rounding(self, held: Array, asked: Array, A: Array) -> float:
        """4 eps cond(K~) |k_*| |alpha|, the largest: solving with K~ = K + noise I moves the
        coefficients alpha, the columns of A, by some eps cond(K~) of their norm."""
        values = np.linalg.eigvalsh(self(held, held)) + self.noise
        reach = np.linalg.norm(self(held, asked), axis=0).max() * np.linalg.norm(A, axis=0).max()
        return float(4 * np.finfo(float).eps * values[-1] / values[0] * reach)


@final
@dataclass(frozen=True, eq=False)
class Scenes:
    """Pictures by their row: labels (n,), histograms (n, d) of each feature, and `aside` (n,),
    whether the picture was put aside for the codebook."""

    labels: Array
    histograms: dict[str, Array]
    aside: Array

    def seen(self, feature: str) -> Seen:
        """The pictures by one feature, with the noise that suits the pictures put aside best.

        The best noise recognises most pictures by leave-one-out; of equal ones the largest is
        taken.
        """
        gram = HistogramIntersection()(self.histograms[feature])
        rows = np.flatnonzero(self.aside)

        def recognised(noise: float) -> tuple[int, float]:
            model = GPClassifier(Seen(gram, noise), noise=noise)
            left = model.fit(as_inputs(rows), self.labels[rows]).leave_one_out()
            return int((left.predicted == left.labels).sum()), noise

        return Seen(gram, max(_NOISES, key=recognised))

    def split(self, rng: np.random.Generator, learn: int, test: int) -> tuple[Array, Array]:
        """Rows to learn from (M, learn) and to be tested (M, test), in random order."""
        learnt, tested = [], []
        for name in np.unique(self.labels):
            rows = rng.permutation(np.flatnonzero(self.labels == name))
            tested.append(rows[~self.aside[rows]][:test])
            learnt.append(rows[~np.isin(rows, tested[-1])][:learn])
        return np.stack(learnt), np.stack(tested)


def as_inputs(rows: Array) -> Array:
    """Row numbers as a table with one column, (k, 1)."""
    return rows[:, None].astype(float)


def load(more: int | None, progress: Progress) -> Scenes:
    """All pictures, or so many of each class beside those put aside."""
    pictures = fifteen_scenes()
    classes = [np.flatnonzero(pictures.labels == name) for name in np.unique(pictures.labels)]
    drawn = [in_order(rows)[: None if more is None else _ASIDE + more] for rows in classes]
    aside = np.concatenate([np.arange(len(rows)) < _ASIDE for rows in drawn])
    chosen = np.concatenate(drawn)
    steps = pyramid_steps(pictures.X[chosen[aside]], STEP)
    pyramids = features(
        pictures.X[chosen], steps, lambda share, _: progress(0.0, f"{share:.0%} of the pictures")
    )
    # The coarsest level of a pyramid is the bag of words.
    bags = pyramids[:, :SIZE] / pyramids[:, :SIZE].sum(axis=1, keepdims=True)
    return Scenes(pictures.labels[chosen], {WORDS: bags, PYRAMID: pyramids}, aside)


# -- learning step by step -----------------------------------------------------------------------


class Run(NamedTuple):
    """Portions of rows that are learnt one after the other, and the rows that are tested."""

    portions: list[Array]
    tested: Array


class Step(NamedTuple):
    """The model of one run after one more portion.

    everywhere, known : recognition rate on all test pictures, and on those of known classes
    difference : the largest one of a score from the batch fit; rounding allows `tolerance`
    changed : how many of the `asked` predictions differ from those of the batch fit
    """

    feature: str
    run: int
    noise: float
    classes: int
    n: int
    everywhere: float
    known: float
    difference: float
    tolerance: float
    changed: int
    asked: int


def learn(scenes: Scenes, runs: list[Run], progress: Progress) -> Courses:
    """Every run by every feature."""
    steps: list[Step] = []
    for i, feature in enumerate(scenes.histograms):
        seen = scenes.seen(feature)
        for number, run in enumerate(runs):
            share = (i + (number + 1) / (len(runs) + 1)) / len(scenes.histograms)
            progress(share, f"{feature}, run {number + 1}")
            steps += _course(seen, scenes.labels, run, feature, number)
    return Courses(tuple(steps))


def _course(seen: Seen, labels: Array, run: Run, feature: str, number: int) -> Iterator[Step]:
    """Learn portion after portion, and hold each model against the batch fit."""
    grown = GPClassifier(seen, noise=seen.noise)
    X, wanted = as_inputs(run.tested), labels[run.tested]
    for rows in run.portions:
        grown.add(as_inputs(rows), labels[rows])
        held = grown.model_.examples
        batch = GPClassifier(seen, noise=seen.noise).fit(held.X, held.labels)
        answers = grown.predict(X)
        right = answers == wanted
        yield Step(
            feature=feature,
            run=number,
            noise=seen.noise,
            classes=len(grown.classes_),
            n=len(held),
            everywhere=float(right.mean()),
            known=float(right[np.isin(wanted, grown.classes_)].mean()),
            difference=float(abs(grown.decision_function(X) - batch.decision_function(X)).max()),
            tolerance=seen.rounding(held.X, X, batch.model_.coefficients),
            changed=int((answers != batch.predict(X)).sum()),
            asked=len(X),
        )


@final
@dataclass(frozen=True)
class Courses:
    """The steps of all features and runs."""

    steps: tuple[Step, ...]

    @property
    def features(self) -> list[str]:
        """In the order of their appearance."""
        return list(dict.fromkeys(s.feature for s in self.steps))

    @property
    def runs(self) -> int:
        """The number of random splits."""
        return len({s.run for s in self.steps})

    @property
    def sizes(self) -> list[int]:
        """Numbers of pictures held after each step, (steps,)."""
        return sorted({s.n for s in self.steps})

    def rates(self, feature: str, of: Callable[[Step], float]) -> Array:
        """A number of each step, (steps, runs)."""
        mine = [s for s in self.steps if s.feature == feature]
        return np.array([[of(s) for s in mine if s.n == n] for n in self.sizes])


# -- what it says --------------------------------------------------------------------------------


def spread(rates: Array) -> str:
    """The mean of some runs and their standard deviation."""
    return f"{rates.mean():.3f} ± {rates.std():.3f}"


def setting(result: Courses) -> str:
    """The setting in a sentence or two, with a warning if there are few runs."""
    noises = {s.feature: s.noise for s in result.steps}
    chosen = ", ".join(f"{noise:.2g} ({feature})" for feature, noise in noises.items())
    text = (
        f"Fifteen Scenes, {result.steps[0].asked} test pictures, means of {result.runs} random "
        f"splits and standard deviations. The kernel is histogram intersection; the noise was "
        f"chosen by leave-one-out on pictures that are in no test: {chosen}."
    )
    small = " That is too little to judge the claims: run it without --quick."
    return text + small if result.runs < 10 else text


def same_as_batch(result: Courses) -> Verdict:
    """The law: after every step the model is the batch fit."""
    worst = max(s.difference / s.tolerance for s in result.steps)
    changed, asked = sum(s.changed for s in result.steps), sum(s.asked for s in result.steps)
    return Verdict(
        claim="Incremental learning gives the result of batch training, up to rounding.",
        holds=all(s.difference <= s.tolerance for s in result.steps),
        measured=(
            f"after each of {len(result.steps)} steps the scores differ from those of a batch fit "
            f"by at most {max(s.difference for s in result.steps):.1e}, and nowhere by more than "
            f"{worst:.1g} of what rounding allows, 4 eps cond(K) |k| |alpha|; "
            f"{changed} of {asked} predictions changed"
        ),
    )


def draw_rates(ax: Axes, x: Array, rates: Array, feature: str, line: str, label: str) -> None:
    """The mean of the runs at each step, with their standard deviation."""
    colour, marker = _STYLES[feature]
    ax.errorbar(
        x,
        rates.mean(axis=1),
        yerr=rates.std(axis=1),
        color=colour,
        marker=marker,
        linestyle=line,
        markerfacecolor=colour if line == "-" else "white",
        markersize=4.5,
        capsize=2,
        label=label,
    )
