"""The picture of how well pictures are recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from papers.findings import BLUE, GREEN, GREY, ORANGE, new_figure, quiet_axes
from papers.incremental_gp.recognition_report import Recognition, Task, published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 0.2
_BARS = {
    "ours": ("GPClassifier", BLUE, -1.5),
    "hinge": ("GPClassifier, squared hinge", GREY, -0.5),
    "svc": ("SVC, one against one", ORANGE, 0.5),
    "svc_against_all": ("SVC, one against all", GREEN, 1.5),
}
_MARKS: dict[str, dict[str, Any]] = {
    "theirs": {"label": "Lazebnik et al. 2006", "marker": "D", "markerfacecolor": "white"},
    "target": {"label": "target", "marker": "_", "markersize": 24, "markeredgewidth": 1.5},
}


def draw(result: Recognition) -> Figure:
    """A panel for each task, four bars for each feature."""
    figure = new_figure(4.2 * len(result.tasks), 4.6)
    axes = figure.subplots(1, len(result.tasks), sharey=True, squeeze=False)[0]
    for ax, task in zip(axes, result.tasks, strict=True):
        _draw_task(ax, result, task)
    axes[0].set_ylabel("recognised, mean over classes (%)")
    axes[0].set_ylim(0, 100)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        handlelength=2.5,
        frameon=False,
    )
    return figure


def _draw_task(ax: Axes, result: Recognition, task: Task) -> None:
    places = np.arange(len(result.features))
    for who, (label, colour, side) in _BARS.items():
        percent = [100 * result.rate(task, feature, who) for feature in result.features]
        means, spreads = ([f(p) for p in percent] for f in (np.mean, np.std))
        bars = ax.bar(
            places + side * _WIDTH,
            means,
            _WIDTH,
            yerr=spreads,
            color=colour,
            ecolor="0.2",
            capsize=2,
            label=label,
        )
        if who == "ours":
            ax.bar_label(bars, fmt="%.1f", fontsize="x-small", padding=2)
    for kind, style in _MARKS.items():
        known = {
            place: 100 * rate
            for place, feature in zip(places, result.features, strict=True)
            if (rate := getattr(published(task, feature), kind)) is not None
        }
        if known:
            ax.plot(list(known), list(known.values()), linestyle="", color="black", **style)
    ax.set_xticks(places, [name.replace(", ", ",\n") for name in result.features], fontsize="small")
    ax.tick_params(axis="x", rotation=30)
    ax.set_title(str(task))
    quiet_axes(ax)
    ax.grid(visible=False, axis="x")
