"""The demonstration on scikit-learn's digits: grow, find wrong labels, forget, say "unknown".

It uses `GPClassifier()` with its defaults: no parameter was chosen for these images.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from knowmore.arrays import Array
from knowmore.cli import demo_steps as steps
from knowmore.cli.experiments import (
    Progress,
    Report,
    Table,
    as_time,
    new_figure,
    one_thread,
    save_figure,
    silent,
    write_csv,
)
from knowmore.drawing import BLUE, GREY, VERMILION, quiet_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Classes known at the start.
_FIRST = 3
# Suspects of each kind in the figure.
_SHOWN = 6


class Demo(NamedTuple):
    """The measurements of the four parts; the last was done for each digit in turn."""

    test_images: int
    growth: steps.Growth
    audit: steps.Audit
    forgetting: steps.Forgetting
    unlearnt: tuple[steps.Unlearnt, ...]

    @property
    def known(self) -> Array:
        """The variances of images of known digits, divided by the threshold."""
        return np.concatenate([one.known for one in self.unlearnt])

    @property
    def unknown(self) -> Array:
        """The variances of images of the digit that was unlearnt."""
        return np.concatenate([one.unknown for one in self.unlearnt])


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Demo:
    """Run the four parts on one thread; `quick` learns from a quarter of the images."""
    examples = 300 if quick else 1200
    with one_thread():
        digits = steps.load(seed, examples)
        clf, growth = steps.grow(digits, _FIRST, lambda share, name: progress(0.5 * share, name))
        progress(0.5, "looking for wrong labels")
        audit = steps.audit(clf, digits, examples // 10, np.random.default_rng(seed))
        progress(0.6, "forgetting a contributor")
        clf, forgetting = steps.forget(clf, digits, "ann")
        unlearnt = []
        for digit in range(10):
            progress(0.7 + 0.03 * digit, f"unlearning digit {digit} and meeting it as a stranger")
            unlearnt.append(steps.unlearn(clf, digits, digit))
        return Demo(len(digits.y_test), growth, audit, forgetting, tuple(unlearnt))


def report(result: Demo, out: Path) -> Report:
    """One figure, the growth as a table, and a few sentences on each part."""
    figure = save_figure(_figure(result), out / "demo.png")
    numbers = write_csv(
        out / "demo.csv",
        ("classes", "examples", "accuracy", "update_seconds", "refit_seconds"),
        [*result.growth.steps, result.growth.one],
    )
    return Report((_growth_table(result), *_sentences(result)), (figure, numbers))


def _growth_table(result: Demo) -> Table:
    def row(name: str, step: steps.Step) -> tuple[str, ...]:
        update, ratio = "", ""
        if step.update is not None:
            update, ratio = as_time(step.update), f"{step.refit / step.update:.0f} x"
        accuracy = f"{step.accuracy:.1%}"
        return name, str(step.examples), accuracy, update, as_time(step.refit), ratio

    return Table(
        title=f"Digits, class by class. Accuracy on {result.test_images} test images of all ten.",
        header=("known classes", "examples", "accuracy", "update", "full refit", "faster"),
        rows=(
            *(row(str(step.classes), step) for step in result.growth.steps),
            row("the last image alone", result.growth.one),
        ),
    )


def _sentences(result: Demo) -> tuple[str, ...]:
    growth, audit, forgetting = result.growth, result.audit, result.forgetting
    first, last = growth.steps[0], growth.steps[-1]
    examples, found = last.examples, int(audit.is_planted.sum())
    best = max(result.unlearnt, key=lambda one: one.caught)
    worst = min(result.unlearnt, key=lambda one: one.caught)
    return (
        f"Growing. It started with {first.classes} digits and met the others one at a time. "
        f"Accuracy went from {first.accuracy:.1%} to {last.accuracy:.1%}. "
        f"Its scores differ from those of a full refit by at most {growth.difference:.0e}.",
        f"Wrong labels. {audit.planted} of {examples} labels were made wrong. "
        f"Leaving each example out took {as_time(audit.seconds)}; "
        f"{examples} refits would take about {as_time(examples * growth.one.refit)}. "
        f"For {len(audit.suspects)} examples the others prefer another label, "
        f"and {found} of the {audit.planted} planted ones are among them; "
        f"for {(audit.is_planted & audit.is_right).sum()} of these the preferred label is the true "
        f"one. With the flagged images looked at and relabelled, "
        f"accuracy is {audit.after:.1%}. It was {audit.before:.1%} with the wrong labels "
        f"and {audit.clean:.1%} before.",
        f"Forgetting. {forgetting.contributor.title()} withdrew {forgetting.withdrawn} images. "
        f"Removing them took {as_time(forgetting.seconds)}, one alone would take "
        f"{as_time(forgetting.one)}, a refit on the other {forgetting.left} takes "
        f"{as_time(forgetting.refit)}. Scores differ from those of a model that never saw them "
        f"by at most {forgetting.difference:.0e}.",
        f"Not knowing. Each digit in turn was unlearnt and met as a stranger. "
        f"By its variance the model called {(result.unknown > 1).mean():.0%} of the strangers "
        f"unknown, and {(result.known > 1).mean():.0%} of the digits it knew. "
        f"The easiest stranger was {best.digit} ({best.caught:.0%}), "
        f"the hardest {worst.digit} ({worst.caught:.0%}).",
    )


# -- the figure ----------------------------------------------------------------------------------


def _figure(result: Demo) -> Figure:
    figure = new_figure(11, 7.6)
    parts: Any = figure.subfigures(2, 2, hspace=0.04, wspace=0.02)
    accuracy, times, suspects, variances = parts.flat
    _draw_accuracy(accuracy.subplots(), result.growth)
    _draw_times(times.subplots(), result.growth)
    _draw_suspects(suspects, result.audit)
    _draw_variances(variances.subplots(), result)
    return figure


def _draw_accuracy(ax: Axes, growth: steps.Growth) -> None:
    classes = [step.classes for step in growth.steps]
    accuracy = [100 * step.accuracy for step in growth.steps]
    best = [10 * c for c in classes]
    ax.plot(classes, accuracy, "o-", color=BLUE, label="measured")
    ax.plot(classes, best, "--", color=GREY, label="all images of known classes right")
    ax.set(
        title="It can only be right about digits it has met",
        xlabel="known classes",
        ylabel="accuracy over all ten digits (%)",
        ylim=(0, 105),
        xticks=classes,
    )
    ax.legend(loc="lower right", frameon=False)
    quiet_axes(ax)


def _draw_times(ax: Axes, growth: steps.Growth) -> None:
    examples = [step.examples for step in growth.steps]
    # The first step is a fit, not an update.
    updates = [1e3 * step.update for step in growth.steps if step.update is not None]
    ax.plot(examples[1:], updates, "o-", color=BLUE, label="update by a class")
    if growth.one.update is not None:
        style: Any = {"color": BLUE, "markerfacecolor": "white", "label": "update by one image"}
        ax.plot(growth.one.examples, 1e3 * growth.one.update, "D", **style)
    refits = [1e3 * step.refit for step in growth.steps]
    ax.plot(examples, refits, "s-", color=VERMILION, label="full refit")
    ax.set(
        title="Time until the model answers again",
        xlabel="examples held after the update",
        ylabel="time (ms)",
        yscale="log",
    )
    decades = np.log10(ax.get_ylim())
    ax.set_ylim(10 ** np.floor(decades[0]), 10 ** np.ceil(decades[1]))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.legend(loc="best", frameon=False)
    quiet_axes(ax)


def _draw_suspects(figure: SubFigure, audit: steps.Audit) -> None:
    figure.suptitle("Labels that the other examples doubt most", fontsize="large")
    found = audit.suspects
    kinds = (VERMILION, "planted", audit.is_planted), (BLUE, "not planted", ~audit.is_planted)
    for (colour, name, mask), row in zip(kinds, figure.subplots(2, _SHOWN), strict=True):
        row[0].set_ylabel(f"{name} ({mask.sum()})", color=colour)
        for ax in row:
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        for ax, i in zip(row, np.flatnonzero(mask), strict=False):
            image = found.model.examples.X[found.rows[i]].reshape(8, 8)
            ax.imshow(image, cmap="Greys", interpolation="nearest")
            ax.set_title(f"label {found.labels[i]}\nothers say {found.preferred[i]}", fontsize=8)


def _draw_variances(ax: Axes, result: Demo) -> None:
    bins = np.histogram_bin_edges(np.concatenate([result.known, result.unknown]), 49).tolist()
    samples = (result.known, BLUE, "known"), (result.unknown, VERMILION, "unknown")
    for values, colour, name in samples:
        label = f"{name}: {(values > 1).mean():.0%} called unknown"
        weights = np.full(len(values), 100 / len(values))
        ax.hist(values, bins, weights=weights, color=colour, alpha=0.6, label=label)
    ax.axvline(1, color="black", linewidth=1)
    ax.annotate("I don't know this", (1, 0.93), (6, 0), ("data", "axes fraction"), "offset points")
    ax.set(
        title="Digits it knows, and one it never met",
        xlabel=f"variance / threshold ({steps.QUANTILE:.0%} quantile of leave-one-out)",
        ylabel="images (%)",
    )
    ax.legend(loc="center right", frameon=False)
    quiet_axes(ax)
