"""The demonstration on scikit-learn's digits: grow, find wrong labels, forget, say "unknown".

Everything is done with `GPClassifier()` as it comes: no parameter was chosen for these images.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from knowmore.cli.demo_figure import draw
from knowmore.cli.demo_steps import (
    QUANTILE,
    Audit,
    Forgetting,
    Growth,
    Novelty,
    Step,
    audit,
    forget,
    grow,
    load,
    notice,
)
from knowmore.cli.reports import (
    Progress,
    Report,
    Table,
    as_time,
    save_figure,
    silent,
    write_csv,
)
from knowmore.cli.stopwatch import one_thread

# Classes known at the start.
FIRST = 3


@final
@dataclass(frozen=True)
class Demo:
    """What was measured in the four parts; a novelty for each digit in turn."""

    test_images: int
    growth: Growth
    audit: Audit
    forgetting: Forgetting
    novelties: tuple[Novelty, ...]


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Demo:
    """Do the four parts, on one thread; `quick` learns from a quarter of the images."""
    with one_thread():
        return _run(seed, 300 if quick else 1200, progress)


def _run(seed: int, examples: int, progress: Progress) -> Demo:
    digits = load(seed, examples)
    clf, growth = grow(digits, FIRST, lambda share, step: progress(0.5 * share, step))
    progress(0.5, "looking for wrong labels")
    audited = audit(clf, digits, examples // 10, np.random.default_rng(seed))
    progress(0.6, "forgetting a contributor")
    clf, forgetting = forget(clf, digits, "ann")
    novelties = []
    for digit in range(10):
        progress(0.7 + 0.03 * digit, f"unlearning digit {digit} and meeting it as a stranger")
        novelties.append(notice(clf, digits, digit))
    return Demo(len(digits.y_test), growth, audited, forgetting, tuple(novelties))


def report(result: Demo, out: Path) -> Report:
    """One picture, the growth as a table, and a few sentences on each part."""
    picture = save_figure(
        draw(result.growth, result.audit, result.novelties, QUANTILE), out / "demo.png"
    )
    steps = write_csv(
        out / "demo.csv",
        ("classes", "examples", "accuracy", "update_seconds", "refit_seconds"),
        [
            (step.classes, step.examples, step.accuracy, step.update, step.refit)
            for step in (*result.growth.steps, result.growth.one)
        ],
    )
    return Report(
        parts=(
            _growth_table(result),
            _on_growth(result.growth),
            _on_audit(result.audit, result.growth.one.refit),
            _on_forgetting(result.forgetting),
            _on_novelty(result.novelties),
        ),
        files=(picture, steps),
    )


def _growth_table(result: Demo) -> Table:
    def row(step: Step, name: str) -> tuple[str, ...]:
        words = (name, str(step.examples), f"{step.accuracy:.1%}")
        if step.update is None:
            return (*words, "", as_time(step.refit), "")
        ratio = f"{step.refit / step.update:.0f} x"
        return (*words, as_time(step.update), as_time(step.refit), ratio)

    return Table(
        title=f"Digits, class by class. Accuracy on {result.test_images} test images of all ten.",
        header=("known classes", "examples", "accuracy", "update", "full refit", "faster"),
        rows=(
            *(row(step, str(step.classes)) for step in result.growth.steps),
            row(result.growth.one, "the last image alone"),
        ),
    )


def _on_growth(growth: Growth) -> str:
    first, last = growth.steps[0], growth.steps[-1]
    return (
        f"Growing. It started with {first.classes} digits and met the others one at a time. "
        f"Accuracy went from {first.accuracy:.1%} to {last.accuracy:.1%}. "
        f"Its scores differ from those of a full refit by at most {growth.difference:.0e}."
    )


def _on_audit(audit: Audit, refit: float) -> str:
    return (
        f"Wrong labels. {audit.planted} of {audit.examples} labels were made wrong. "
        f"Leaving each example out took {as_time(audit.seconds)}; "
        f"{audit.examples} refits would take about {as_time(audit.examples * refit)}. "
        f"For {audit.flagged} examples the others prefer another label, "
        f"and {audit.found} of the {audit.planted} planted ones are among them; "
        f"for {audit.suggested} of these the preferred label is the true one. "
        f"With the flagged images looked at and relabelled, "
        f"accuracy is {audit.after:.1%}. It was {audit.before:.1%} with the wrong labels "
        f"and {audit.clean:.1%} before."
    )


def _on_forgetting(forgetting: Forgetting) -> str:
    return (
        f"Forgetting. {forgetting.contributor.title()} withdrew {forgetting.withdrawn} images. "
        f"Removing them took {as_time(forgetting.seconds)}, one alone would take "
        f"{as_time(forgetting.one)}, a refit on the other {forgetting.left} takes "
        f"{as_time(forgetting.refit)}. "
        f"Scores differ from those of a model that never saw them "
        f"by at most {forgetting.difference:.0e}."
    )


def _on_novelty(novelties: tuple[Novelty, ...]) -> str:
    caught = np.concatenate([one.unknown for one in novelties]) > 1
    alarms = np.concatenate([one.known for one in novelties]) > 1
    best = max(novelties, key=lambda one: one.caught)
    worst = min(novelties, key=lambda one: one.caught)
    return (
        f"Not knowing. Each digit in turn was unlearnt and met as a stranger. "
        f"By its variance the model called {caught.mean():.0%} of the strangers unknown, "
        f"and {alarms.mean():.0%} of the digits it knew. "
        f"The easiest stranger was {best.digit} ({best.caught:.0%}), "
        f"the hardest {worst.digit} ({worst.caught:.0%})."
    )
