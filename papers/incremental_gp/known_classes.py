"""Fig. 3 of Lütz, Rodner and Denzler: recognition while the classes become known one by one.

A hundred pictures of each of the Fifteen Scenes are learnt, class after class in random order, by
a model that grows; all fifteen are tested at every step. See `scenes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from papers.arrays import Array
from papers.findings import (
    GREY,
    Progress,
    Report,
    Verdict,
    new_figure,
    quiet_axes,
    save_figure,
    silent,
    write_csv,
)
from papers.incremental_gp.scenes import (
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
from papers.stopwatch import one_thread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# To tell something apart takes two.
_FIRST = 2
_RUNS, _LEARNT, _TESTED = 10, 100, 100
_QUICK_RUNS, _QUICK_LEARNT, _QUICK_TESTED = 2, 25, 15


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Courses:
    """Learn class after class in some runs; `quick`: in two, from few pictures."""
    rng = np.random.default_rng(seed)
    runs, learnt, tested = (
        (_QUICK_RUNS, _QUICK_LEARNT, _QUICK_TESTED) if quick else (_RUNS, _LEARNT, _TESTED)
    )
    with one_thread():
        scenes = load(learnt + tested if quick else None, progress)
        return learn(scenes, [_run(scenes, rng, learnt, tested) for _ in range(runs)], progress)


def _run(scenes: Scenes, rng: np.random.Generator, learnt: int, tested: int) -> Run:
    train, test = scenes.split(rng, learnt, tested)
    train = rng.permutation(train)
    return Run([train[:_FIRST].ravel(), *train[_FIRST:]], test.ravel())


def report(result: Courses, out: Path) -> Report:
    """The picture, all numbers, and a verdict on each claim."""
    numbers = write_csv(out / "known-classes.csv", Step._fields, result.steps)
    picture = save_figure(_draw(result), out / "known-classes.png")
    return Report(
        parts=(setting(result), _confusion(result), *verdicts(result)), files=(picture, numbers)
    )


def _classes(result: Courses) -> Array:
    return np.array(sorted({s.classes for s in result.steps}))


def _confusion(result: Courses) -> str:
    """Accuracy on pictures of known classes alone, which Fig. 3 does not show."""
    known = [result.rates(feature, lambda s: s.known) for feature in result.features]
    words = [
        f"from {spread(rates[0])} to {spread(rates[-1])} ({feature})"
        for feature, rates in zip(result.features, known, strict=True)
    ]
    return (
        "On pictures of known classes alone the rate falls as classes come, since there is more "
        f"to confuse: {', '.join(words)}."
    )


def verdicts(result: Courses) -> Iterator[Verdict]:
    """The paper's claims one by one."""
    yield _rises(result)
    yield same_as_batch(result)


def _rises(result: Courses) -> Verdict:
    first, last = _classes(result)[[0, -1]]
    holds, words = [], []
    for feature in result.features:
        rates = result.rates(feature, lambda s: s.everywhere)
        # Of each run: the splits differ more than the steps.
        gains = np.diff(rates, axis=0)
        holds.append(bool((gains.mean(axis=1) > 0).all()))
        words.append(
            f"{feature}: from {spread(rates[0])} with {first} classes known to "
            f"{spread(rates[-1])} with {last}, by {gains.mean(axis=1).min():.3f} to "
            f"{gains.mean(axis=1).max():.3f} a class; {(gains > 0).sum()} of {gains.size} steps up"
        )
    return Verdict(
        claim="Recognition of all classes increases significantly with the number of those known.",
        holds=all(holds),
        measured="; ".join(words),
    )


def _draw(result: Courses) -> Figure:
    """Rates on all and on known classes, and the most that could be right."""
    figure = new_figure(7.5, 5.2)
    ax = figure.subplots()
    classes = _classes(result)
    for of, line, where in (
        (lambda s: s.known, "--", "known classes tested"),
        (lambda s: s.everywhere, "-", "all classes tested"),
    ):
        for feature in reversed(result.features):
            draw_rates(ax, classes, result.rates(feature, of), feature, line, f"{feature}, {where}")
    most = classes / classes[-1]
    ax.plot(classes, most, color=GREY, linestyle=":", label="the most that can be right of all")
    ax.set_xlabel("classes known")
    ax.set_ylabel(f"recognition rate, {result.runs} runs")
    ax.set_xticks(classes)
    ax.set_ylim(0, 1.02)
    quiet_axes(ax)
    ax.legend(loc="lower right", frameon=False)
    return figure
