"""The picture of discriminants that are learnt bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.arrays import Array
from papers.eigenspaces.incremental_lda_report import (
    CLASSES,
    METHODS,
    PEER,
    ROWS,
    SCRATCH,
    UPDATED,
    Course,
    IncrementalLDA,
)
from papers.findings import BLUE, GREY, PURPLE, VERMILION, new_figure, quiet_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = {UPDATED: (BLUE, "o", "-"), SCRATCH: (GREY, "D", "--"), PEER: (VERMILION, "s", ":")}
_NEW = "updated, classes that just arrived"


def draw(result: IncrementalLDA) -> Figure:
    """Accuracy and time against n: a row for each source, columns for the orders."""
    courses = result.courses()
    sources = list(dict.fromkeys(source for source, _ in courses))
    figure = new_figure(13, 0.6 + 3 * len(sources))
    axes = figure.subplots(len(sources), 4, sharex="row", squeeze=False)
    for row, source in zip(axes, sources, strict=True):
        row[1].sharey(row[0])
        row[3].sharey(row[2])
        for j, order in enumerate((ROWS, CLASSES)):
            _draw_accuracy(row[j], courses[source, order], order)
            _draw_times(row[2 + j], courses[source, order])
            for ax, what in (row[j], "accuracy"), (row[2 + j], "time"):
                ax.set_title(f"{source}: {what}, {order} arrive", fontsize="medium")
                ax.set_xlabel("rows held")
                quiet_axes(ax)
        row[0].set_ylabel("accuracy on classes known")
        row[2].set_ylabel("time of the step (s)")
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _draw_accuracy(ax: Axes, course: Course, order: str) -> None:
    for method, of in METHODS.items():
        _draw_range(ax, course.sizes, course.values(of)[..., 1], method, *_STYLES[method])
    if order == CLASSES:
        new = course.values(lambda s: s.arrival.new)
        _draw_range(ax, course.sizes, new, _NEW, PURPLE, "^", "none")


def _draw_times(ax: Axes, course: Course) -> None:
    for method, of in METHODS.items():
        colour, marker, line = _STYLES[method]
        times = np.median(course.values(of)[..., 0], axis=1)
        ax.plot(course.sizes, times, color=colour, marker=marker, linestyle=line, markersize=4.5)
    ax.set_yscale("log")


def _draw_range(
    ax: Axes, n: list[int], values: Array, label: str, colour: str, marker: str, line: str
) -> None:
    """The mean over the splits, and the range from the least to the largest."""
    mean = values.mean(axis=1)
    reach = np.abs([mean - values.min(axis=1), values.max(axis=1) - mean])
    ax.errorbar(
        n,
        mean,
        yerr=reach,
        color=colour,
        marker=marker,
        linestyle=line,
        markersize=4.5,
        capsize=2,
        label=label,
    )
