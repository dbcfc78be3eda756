"""The pictures of the experiment on one class more: the figures of the supplement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from papers.findings import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, new_figure, quiet_axes
from papers.n_plus_one.outcomes import (
    ADDED,
    BALANCED,
    BATCH,
    FEW,
    HINGE,
    MEASURES,
    MULTI_KT,
    NONE,
    OURS,
    PLUS_ONE,
    SCALED,
    SOURCE,
    NPlusOneRun,
    Setting,
    mean_and_error,
)
from papers.n_plus_one.report import cases

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Colour, marker and line. The last is on top.
_STYLES = {
    SOURCE: (GREY, "", ":"),
    BALANCED: ("black", "", "-."),
    BATCH: ("black", "", "--"),
    NONE: (VERMILION, "s", "-"),
    PLUS_ONE: (GREEN, "^", "-"),
    HINGE: (GREEN, "v", ":"),
    ADDED: (ORANGE, "D", "-"),
    MULTI_KT: (PURPLE, "P", "-"),
    SCALED: (BLUE, "o", ":"),
    OURS: (BLUE, "o", "-"),
}
# So many known classes are shown of each case at most, and none with a smaller share than that.
_BARS, _SHOWN = 10, 0.01


def draw(result: NPlusOneRun, data: str, classes: int) -> Figure:
    """Rates for a set and a number of classes: a column for each group, a row for each kernel.

    As in the supplement, the N+1 classes stand above the N known classes and the new class.
    """
    settings = result.of(data, classes)
    kernels = list(dict.fromkeys(one.kernel for one in settings))
    groups = list(dict.fromkeys(one.group for one in settings))
    figure = new_figure(max(7.0, 4.4 * len(groups)), 0.8 + 4.4 * len(kernels))
    figure.suptitle(f"{data}, {classes} classes")
    parts = figure.subfigures(len(kernels), len(groups), squeeze=False)
    for row, kernel in zip(parts, kernels, strict=True):
        for part, group in zip(row, groups, strict=True):
            _draw_setting(part, result, Setting(data, classes, group, kernel))
    handles, labels = parts[0, 0].axes[0].get_legend_handles_labels()
    order = [labels.index(method) for method in reversed(_STYLES)]
    figure.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="outside lower center",
        ncols=min(len(labels), 3 if len(groups) == 1 else 9),
        frameon=False,
    )
    return figure


def _draw_setting(part: SubFigure, result: NPlusOneRun, setting: Setting) -> None:
    axes: dict[str, Axes] = part.subplot_mosaic(
        [["everything", "everything"], ["known", "new"]], height_ratios=(1.7, 1)
    )
    part.suptitle(f"{setting.group}, {setting.kernel}", fontsize="medium")
    for measure, ax in axes.items():
        small = "medium" if measure == "everything" else "small"
        ax.set_title(MEASURES[measure], fontsize=small, loc="left")
        _draw_measure(ax, result, setting, measure)
        ax.tick_params(labelsize=small)
        quiet_axes(ax)
    part.supxlabel("examples of each class", fontsize="small")
    axes["everything"].set_ylabel("recognised (%)")
    axes["new"].set_ylim(bottom=0)


def _draw_measure(ax: Axes, result: NPlusOneRun, setting: Setting, measure: str) -> None:
    learnt = np.array(result.plans[setting.data].learnt)
    for i, (method, (colour, marker, line)) in enumerate(_STYLES.items()):
        found = [mean_and_error(100 * result.rates(setting, p, method, measure)) for p in learnt]
        means, errors = np.transpose(found)
        style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker}
        # A little beside each other, so that the errors can be told apart.
        beside = 0.012 * (i - len(_STYLES) / 2) * np.ptp(learnt)
        ax.errorbar(
            learnt + beside,
            means,
            yerr=errors,
            label=method,
            markersize=4,
            linewidth=2.2 if method == OURS else 1.2,
            elinewidth=0.8,
            **style,
        )
    ax.set_xticks(learnt)


def draw_cases(result: NPlusOneRun) -> Figure:
    """The largest entries of beta of some new classes."""
    found = cases(result)
    figure = new_figure(3.2 * len(found), 3.4)
    axes = figure.subplots(1, len(found), sharex=True, squeeze=False)[0]
    for ax, (name, shares) in zip(axes, found.items(), strict=True):
        shown = [one for one in shares[:_BARS] if one.beta > _SHOWN][::-1]
        ax.barh([one.known for one in shown], [one.beta for one in shown], color=BLUE)
        ax.set_title(name)
        ax.tick_params(axis="y", labelsize="small")
        quiet_axes(ax)
        ax.grid(visible=False, axis="y")
    where = next(iter(found.values()))[0].setting
    figure.supxlabel(f"beta, {where.classes} animals, {FEW} examples of each", fontsize="medium")
    return figure
