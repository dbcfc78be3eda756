"""The picture of the demonstration: growth, times, suspected labels, variances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from knowmore.cli.demo_steps import Audit, Growth, Novelty
from knowmore.cli.reports import new_figure
from knowmore.drawing import BLUE, GREY, VERMILION, quiet_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Suspects shown of each kind.
_SHOWN = 6


def draw(growth: Growth, audit: Audit, novelties: tuple[Novelty, ...], quantile: float) -> Figure:
    """The four parts in a square."""
    figure = new_figure(11, 7.6)
    parts: Any = figure.subfigures(2, 2, hspace=0.04, wspace=0.02)
    accuracy, times, suspects, variances = parts.flat
    _draw_accuracy(accuracy.subplots(), growth)
    _draw_times(times.subplots(), growth)
    _draw_suspects(suspects, audit)
    _draw_variances(variances.subplots(), novelties, quantile)
    return figure


def _draw_accuracy(ax: Axes, growth: Growth) -> None:
    classes = [step.classes for step in growth.steps]
    ax.plot(
        classes, [100 * step.accuracy for step in growth.steps], "o-", color=BLUE, label="measured"
    )
    ax.plot(
        classes,
        [10 * c for c in classes],
        "--",
        color=GREY,
        label="all images of known classes right",
    )
    ax.set(
        title="It can only be right about digits it has met",
        xlabel="known classes",
        ylabel="accuracy over all ten digits (%)",
        ylim=(0, 105),
        xticks=classes,
    )
    ax.legend(loc="lower right", frameon=False)
    quiet_axes(ax)


def _draw_times(ax: Axes, growth: Growth) -> None:
    for steps, marker, face, name in (
        (growth.steps, "o-", BLUE, "update by a class"),
        ((growth.one,), "D", "white", "update by one image"),
    ):
        updates = [(one.examples, 1e3 * one.update) for one in steps if one.update is not None]
        n, times = zip(*updates, strict=True)
        ax.plot(n, times, marker, color=BLUE, markerfacecolor=face, label=name)
    refits = [1e3 * step.refit for step in growth.steps]
    examples = [step.examples for step in growth.steps]
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


def _draw_suspects(figure: SubFigure, audit: Audit) -> None:
    figure.suptitle("Labels that the other examples doubt most", fontsize="large")
    rows = (
        (VERMILION, "planted", [one for one in audit.suspects if one.planted]),
        (BLUE, "not planted", [one for one in audit.suspects if not one.planted]),
    )
    axes = figure.subplots(len(rows), _SHOWN)
    for (colour, name, suspects), row in zip(rows, axes, strict=True):
        row[0].annotate(
            f"{name} ({len(suspects)})",
            (-0.25, 0.5),
            xycoords="axes fraction",
            rotation=90,
            ha="center",
            va="center",
            color=colour,
        )
        for ax in row:
            ax.set_axis_off()
        for ax, one in zip(row, suspects, strict=False):
            ax.imshow(one.image.reshape(8, 8), cmap="Greys", interpolation="nearest")
            ax.set_title(f"label {one.label}\nothers say {one.suggested}", fontsize=8)


def _draw_variances(ax: Axes, novelties: tuple[Novelty, ...], quantile: float) -> None:
    known = np.concatenate([one.known for one in novelties])
    unknown = np.concatenate([one.unknown for one in novelties])
    bins = np.linspace(
        min(known.min(), unknown.min()), max(known.max(), unknown.max()), 50
    ).tolist()
    for values, colour, name in ((known, BLUE, "known"), (unknown, VERMILION, "unknown")):
        ax.hist(
            values,
            bins,
            weights=np.full(len(values), 100 / len(values)),
            color=colour,
            alpha=0.6,
            label=f"{name}: {(values > 1).mean():.0%} called unknown",
        )
    ax.axvline(1, color="black", linewidth=1)
    ax.annotate("I don't know this", (1, 0.93), (6, 0), ("data", "axes fraction"), "offset points")
    ax.set(
        title="Digits it knows, and one it never met",
        xlabel=f"variance / threshold ({quantile:.0%} quantile of leave-one-out)",
        ylabel="images (%)",
    )
    ax.legend(loc="center right", frameon=False)
    quiet_axes(ax)
