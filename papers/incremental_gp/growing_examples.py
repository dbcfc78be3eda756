"""Fig. 4 of Lütz, Rodner and Denzler: recognition while every class gets more examples.

A model of all Fifteen Scenes starts with five pictures of each and gets ten more of each in every
step. See `scenes`. The times are those of one run on spatial pyramids, from the histograms of the
new pictures to the coefficients of all classes, kernel values included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from knowmore import GPClassifier
from knowmore.kernels import HistogramIntersection
from papers.arrays import Array
from papers.findings import (
    BLUE,
    GREY,
    Progress,
    Report,
    Table,
    Verdict,
    as_time,
    new_figure,
    quiet_axes,
    save_figure,
    silent,
    write_csv,
)
from papers.incremental_gp.scenes import (
    PYRAMID,
    Courses,
    Run,
    Scenes,
    Step,
    draw_rates,
    learn,
    load,
    same_as_batch,
    setting,
    spread,
)
from papers.stopwatch import median_seconds, one_thread, timed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FIRST, _MORE = 5, 10
_RUNS, _LEARNT, _TESTED = 10, 105, 100
_QUICK_RUNS, _QUICK_LEARNT, _QUICK_TESTED = 2, 25, 15


class Pace(NamedTuple):
    """Seconds from n pictures to n + k, by an update and by a fit from scratch."""

    n: int
    k: int
    update: float
    batch: float


@final
@dataclass(frozen=True)
class GrowingExamples:
    """The courses of all runs, and the pace of one."""

    courses: Courses
    paces: tuple[Pace, ...]


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> GrowingExamples:
    """Learn more and more pictures in some runs; `quick`: in two, from few pictures."""
    rng = np.random.default_rng(seed)
    runs, learnt, tested = (
        (_QUICK_RUNS, _QUICK_LEARNT, _QUICK_TESTED) if quick else (_RUNS, _LEARNT, _TESTED)
    )
    with one_thread():
        scenes = load(learnt + tested if quick else None, progress)
        plans = [_run(scenes, rng, learnt, tested) for _ in range(runs)]
        courses = learn(scenes, plans, progress)
        progress(0.99, "times")
        noise = next(s.noise for s in courses.steps if s.feature == PYRAMID)
        paces = tuple(_paces(scenes, plans[0].portions, noise))
    return GrowingExamples(courses, paces)


def _run(scenes: Scenes, rng: np.random.Generator, learnt: int, tested: int) -> Run:
    train, test = scenes.split(rng, learnt, tested)
    portions = np.split(train, range(_FIRST, learnt, _MORE), axis=1)
    return Run([rows.ravel() for rows in portions], test.ravel())


def _paces(scenes: Scenes, portions: list[Array], noise: float) -> Iterator[Pace]:
    X, y = scenes.histograms[PYRAMID], scenes.labels

    def fresh(rows: Array) -> GPClassifier:
        return _ready(GPClassifier(HistogramIntersection(), noise).fit(X[rows], y[rows]))

    def grown(clf: GPClassifier, rows: Array) -> GPClassifier:
        # A copy, as this is done several times over.
        more = copy(clf)
        more.add(X[rows], y[rows])
        return _ready(more)

    held = portions[0]
    clf = fresh(held)
    for rows in portions[1:]:
        n, held = len(held), np.concatenate([held, rows])
        batch = median_seconds(partial(fresh, held))
        clf, update = timed(partial(grown, clf, rows))
        yield Pace(n, len(rows), update, batch)


def _ready(clf: GPClassifier) -> GPClassifier:
    """The classifier with its coefficients computed, as far as training goes."""
    _ = clf.model_.coefficients
    return clf


def report(result: GrowingExamples, out: Path) -> Report:
    """The picture, all numbers, and a verdict on each claim."""
    courses, paces = result.courses, result.paces
    numbers = write_csv(out / "growing-examples.csv", Step._fields, courses.steps)
    times = write_csv(out / "growing-examples-times.csv", Pace._fields, paces)
    picture = save_figure(_draw(result), out / "growing-examples.png")
    return Report(
        parts=(setting(courses), _rates(courses), _times(paces), *verdicts(courses)),
        files=(picture, numbers, times),
    )


def _per_class(courses: Courses) -> Array:
    return np.array(courses.sizes) // max(s.classes for s in courses.steps)


def _rates(courses: Courses) -> Table:
    rates = [courses.rates(feature, lambda s: s.everywhere) for feature in courses.features]
    return Table(
        "Recognition rates",
        ("examples of each class", *courses.features),
        tuple(
            (str(each), *map(spread, row))
            for each, *row in zip(_per_class(courses), *rates, strict=True)
        ),
    )


def _times(paces: tuple[Pace, ...]) -> str:
    first, last = paces[0], paces[-1]
    ratios = [pace.batch / pace.update for pace in paces]
    return (
        f"With spatial pyramids, {last.k} more to {first.n} pictures take {as_time(first.update)}, "
        f"{as_time(first.batch)} by a fit from scratch; {last.k} more to {last.n} take "
        f"{as_time(last.update)} and {as_time(last.batch)}. The update is {min(ratios):.1f} to "
        f"{max(ratios):.1f} times faster."
    )


def verdicts(courses: Courses) -> Iterator[Verdict]:
    """The paper's claims one by one."""
    yield _rises(courses)
    yield _rises_most_at_first(courses)
    yield same_as_batch(courses)


def _gains(courses: Courses, feature: str) -> Array:
    """By how much the mean rate rises in each step, (steps - 1,)."""
    return np.diff(courses.rates(feature, lambda s: s.everywhere).mean(axis=1))


def _rises(courses: Courses) -> Verdict:
    each, words = _per_class(courses), []
    for feature in courses.features:
        rates = courses.rates(feature, lambda s: s.everywhere)
        words.append(
            f"{feature}: from {spread(rates[0])} with {each[0]} examples of each class to "
            f"{spread(rates[-1])} with {each[-1]}, up in "
            f"{(_gains(courses, feature) > 0).sum()} of {len(rates) - 1} steps"
        )
    return Verdict(
        claim="Recognition benefits from new examples.",
        holds=all((_gains(courses, feature) > 0).all() for feature in courses.features),
        measured="; ".join(words),
    )


def _rises_most_at_first(courses: Courses) -> Verdict:
    gains = {feature: _gains(courses, feature) for feature in courses.features}
    return Verdict(
        claim="It benefits especially while there are few examples.",
        holds=all(one[0] == one.max() and one[0] > one[-1] for one in gains.values()),
        measured="; ".join(
            f"{feature}: the first step adds {one[0]:.3f} to the rate, the last {one[-1]:.3f}; the "
            f"first makes up {one[0] / one.sum():.0%} of what all {len(one)} add"
            for feature, one in gains.items()
        ),
    )


# -- the picture ---------------------------------------------------------------------------------

_LINES: tuple[tuple[str, Callable[[Pace], float], str, str, str], ...] = (
    ("from scratch", lambda pace: pace.batch, GREY, "D", "--"),
    ("updated", lambda pace: pace.update, BLUE, "o", "-"),
)


def _draw(result: GrowingExamples) -> Figure:
    """Rates against examples of each class, and times against examples held."""
    figure = new_figure(11, 4.6)
    left, right = figure.subplots(1, 2)
    courses = result.courses
    each = _per_class(courses)
    for feature in courses.features:
        rates = courses.rates(feature, lambda s: s.everywhere)
        draw_rates(left, each, rates, feature, "-", feature)
    left.set_title(f"Recognition rate, {courses.runs} runs")
    left.set_xlabel("examples of each class")
    left.set_ylabel("recognition rate")
    left.set_xticks(each)
    _draw_times(right, result.paces)
    right.set_title(f"Time to have learnt {result.paces[0].k} more, {PYRAMID}s")
    for ax in left, right:
        quiet_axes(ax)
        ax.legend(frameon=False, loc="lower right" if ax is left else "upper left")
    return figure


def _draw_times(ax: Axes, paces: tuple[Pace, ...]) -> None:
    n = [pace.n for pace in paces]
    for label, of, colour, marker, line in _LINES:
        seconds = [of(pace) for pace in paces]
        ax.plot(n, seconds, color=colour, marker=marker, linestyle=line, markersize=5, label=label)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("n, examples held before")
    ax.set_ylabel("time (s)")
