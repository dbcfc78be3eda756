"""The pictures of the experiments on one-shot learning, in the style of the paper's figures."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from papers.arrays import Array
from papers.findings import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    quiet_axes,
)
from papers.one_shot.report import CRITERION_NAMES
from papers.one_shot.result import (
    ADAPTED,
    FEW,
    INDEPENDENT,
    POOLED,
    RELATED,
    STRICT,
    THINGS,
    UNRELATED,
    UNSEEN,
    Measure,
    OneShot,
    Way,
    average,
    transfer,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Label, colour, marker and line.
_LINES: dict[Way, tuple[str, str, str, str]] = {
    transfer(FEW): (f"transfer, WordNet, K = {FEW}", BLUE, "o", "-"),
    transfer(STRICT): (f"transfer, WordNet, K = {STRICT}", SKY, "v", "-"),
    transfer(): ("transfer", VERMILION, "s", "-"),
    average(): ("the mean of ten supports", "0.15", "*", "-"),
    POOLED: ("pooled", ORANGE, "^", "--"),
    ADAPTED: ("Adapted LS-SVM", GREEN, "P", "--"),
    UNSEEN: ("Adapted LS-SVM, priors left out", PURPLE, "X", "--"),
    INDEPENDENT: ("independent", GREY, "D", ":"),
}
# The task whose course over K the paper shows.
_SHOWN = "kangaroo"


def draw_things(result: OneShot) -> Figure:
    """Fig. 3 and 4: against examples, against K, by criterion, by task."""
    figure = new_figure(15, 9.4)
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 0.95), width_ratios=(1, 1, 1.1))
    _draw_course(figure.add_subplot(grid[0, 0]), result, THINGS, "ap")
    _draw_preselection(figure.add_subplot(grid[0, 1]), result)
    _draw_criteria(figure.add_subplot(grid[0, 2]), result)
    _draw_tasks(figure.add_subplot(grid[1, :]), result)
    return figure


def draw_sets(result: OneShot) -> Figure:
    """Fig. 2: related and unrelated classes."""
    figure = new_figure(11, 4.8)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, source in zip(axes, (RELATED, UNRELATED), strict=True):
        _draw_course(ax, result, source, "rate")
    axes[1].set_ylabel("")
    return figure


def _mean(values: Array) -> tuple[float, float]:
    """In percent: the mean of (tasks, splits), and its standard error over splits."""
    percent = 100 * values.mean(axis=0)
    return float(percent.mean()), float(percent.std(ddof=1) / np.sqrt(len(percent)))


def _draw_course(ax: Axes, result: OneShot, source: str, measure: Measure) -> None:
    positives = result.positives(source)
    places = np.arange(len(positives))
    for way, (label, colour, marker, line) in _LINES.items():
        if way not in result.ways(source, positives[-1]):
            continue
        means, errors = zip(
            *(_mean(result.values(source, p, way, measure)) for p in positives), strict=True
        )
        ax.errorbar(
            places,
            means,
            yerr=errors,
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=5,
            capsize=2,
            label=label,
        )
    ax.set_xticks(places, [str(p) for p in positives])
    ax.set_xlabel("pictures of the class")
    ax.set_ylabel("mean average precision (%)" if measure == "ap" else "mean recognition rate (%)")
    ax.set_title(f"{source}, {len(result.tasks(source))} tasks, {result.splits(source)} splits")
    quiet_axes(ax)
    ax.legend(frameon=False, loc="lower right", fontsize="small")


def _draw_preselection(ax: Axes, result: OneShot) -> None:
    """Against K: all tasks, those that lose without WordNet, and the one that the paper shows."""
    ways = [way for way in result.ways(THINGS, 1) if way == transfer(way.K)]
    ways.sort(key=lambda way: way.K or result.supports)
    values = np.array([result.values(THINGS, 1, way) for way in ways])
    alone = result.values(THINGS, 1, INDEPENDENT)
    lost = values[-1].mean(axis=1) <= alone.mean(axis=1)
    tasks = np.array(result.tasks(THINGS))
    shown = tasks == _SHOWN
    losers = tasks[lost][0] if lost.sum() == 1 else f"{lost.sum()} tasks"
    lines = (
        (np.ones(len(lost), dtype=bool), f"all {len(lost)} tasks", BLUE, "o"),
        (lost, f"{losers}, loss without WordNet", VERMILION, "s"),
        (shown, _SHOWN, PURPLE, "^"),
    )
    places = np.arange(len(ways))
    for rows, label, colour, marker in lines:
        if not rows.any():
            continue
        means, errors = zip(*(_mean(each[rows]) for each in values), strict=True)
        ax.errorbar(
            places,
            means,
            yerr=errors,
            color=colour,
            marker=marker,
            markersize=5,
            capsize=2,
            label=label,
        )
        ax.axhline(100 * alone[rows].mean(), color=colour, linestyle=":", linewidth=1)
    ax.set_xticks(places, [str(way.K or "all") for way in ways])
    ax.set_xlabel("K, supports that WordNet leaves")
    ax.set_ylabel("mean average precision (%)")
    ax.set_title("One picture; dotted: independent")
    quiet_axes(ax)
    _legend_below(ax)


def _draw_criteria(ax: Axes, result: OneShot) -> None:
    names = list(CRITERION_NAMES)
    places = np.arange(len(names))[::-1]
    for K, label, colour, side in (
        (None, "all supports", VERMILION, 0.2),
        (FEW, f"WordNet, K = {FEW}", BLUE, -0.2),
    ):
        means, errors = zip(
            *(_mean(result.values(THINGS, 1, transfer(K, name))) for name in names), strict=True
        )
        bars = ax.barh(
            places + side, means, 0.38, xerr=errors, color=colour, ecolor="0.2", label=label
        )
        ax.bar_label(bars, fmt="%.1f", fontsize="x-small", padding=3)
    alone = 100 * result.values(THINGS, 1, INDEPENDENT).mean()
    ax.axvline(alone, color=GREY, linestyle=":", label="independent")
    ax.set_yticks(places, [fill(CRITERION_NAMES[name], 18) for name in names])
    ax.tick_params(axis="y", labelsize="small")
    ax.set_xlabel("mean average precision (%)")
    ax.set_title("One picture, by criterion")
    quiet_axes(ax)
    ax.grid(visible=False, axis="y")
    ax.margins(x=0.12)
    _legend_below(ax)


def _draw_tasks(ax: Axes, result: OneShot) -> None:
    tasks = result.tasks(THINGS)
    gains = result.values(THINGS, 1, transfer()) - result.values(THINGS, 1, INDEPENDENT)
    order = np.argsort(-gains.mean(axis=1))
    places = np.arange(len(tasks))
    for way, side in ((INDEPENDENT, -1), (transfer(), 0), (transfer(FEW), 1)):
        label, colour, *_ = _LINES[way]
        values = 100 * result.values(THINGS, 1, way)[order]
        errors = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        ax.bar(
            places + 0.28 * side,
            values.mean(axis=1),
            0.27,
            yerr=errors,
            color=colour,
            ecolor="0.2",
            capsize=2,
            label=label,
        )
    ax.set_xticks(places, [tasks[i].replace("_", " ") for i in order], rotation=25, ha="right")
    ax.set_ylabel("average precision (%)")
    ax.set_title("One picture, by task, in the order of what transfer gains without WordNet")
    quiet_axes(ax)
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, 110)
    ax.legend(frameon=False, loc="upper center", ncols=3)


def _legend_below(ax: Axes) -> None:
    ax.legend(
        frameon=False, loc="upper center", bbox_to_anchor=(0.45, -0.12), ncols=3, fontsize="small"
    )
