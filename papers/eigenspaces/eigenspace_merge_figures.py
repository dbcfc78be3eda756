"""The pictures of merged and split eigenspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.arrays import Array
from papers.data import FACE_SHAPE
from papers.eigenspaces.eigenspace_merge_report import (
    BATCH,
    INCREMENTAL,
    JOINT,
    MERGE,
    PEER,
    ROWS,
    SPLIT,
    UPDATES,
    EigenspaceMerge,
)
from papers.findings import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, new_figure, quiet_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The numbers of the eigenfaces shown, and then the last one.
_SHOWN = (1, 2, 3, 10, 20)


def draw_errors(result: EigenspaceMerge) -> Figure:
    """Times, errors of eigenvalues and directions by the sizes of the sets, and many updates."""
    figure = new_figure(11, 8.8)
    times, values, angles, updates = figure.subplots(2, 2).flat
    _draw_times(times, result)
    _draw_values(values, result)
    _draw_angles(angles, result)
    _draw_updates(updates, result)
    for ax in times, values, angles:
        ax.set_xlabel(f"faces in the first set, of {result.batch.n_samples}")
        ax.set_xticks(list(result.values(MERGE, None, "mean")))
    for ax in times, values, angles, updates:
        quiet_axes(ax)
        _legend_below(ax)
    return figure


def _legend_below(ax: Axes) -> None:
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize="small"
    )


def _draw_times(ax: Axes, result: EigenspaceMerge) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for method, colour in (PEER, VERMILION), (BATCH, GREY):
        ax.axhline(result.seconds(method)[0], color=colour, linestyle="--", label=method)
    firsts = list(result.values(MERGE, None, "mean"))
    for method, colour, marker in (
        (JOINT, ORANGE, "s"),
        (INCREMENTAL, BLUE, "o"),
        (ROWS, GREEN, "^"),
    ):
        ax.plot(firsts, result.seconds(method), color=colour, marker=marker, label=method)
    ax.set_yscale("log")
    # Less than a decade: marks at powers of ten would be too few.
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylabel("time (s)")
    ax.set_title("Time to the model of all faces")


def _draw_values(ax: Axes, result: EigenspaceMerge) -> None:
    for act, rank, colour, marker, label in (
        (SPLIT, result.rank, ORANGE, "s", f"split, {result.rank} directions"),
        (MERGE, result.rank, BLUE, "o", f"merge, {result.rank} directions"),
        (SPLIT, None, PURPLE, "v", "split, all directions"),
        (MERGE, None, GREEN, "^", "merge, all directions"),
    ):
        _draw_range(ax, result.values(act, rank, "eigenvalues"), colour, marker, label)
    ax.set_yscale("log")
    ax.set_ylabel("mean $|a - b| / a$")
    ax.set_title("Error of the eigenvalues")


def _draw_angles(ax: Axes, result: EigenspaceMerge) -> None:
    for error, colour, marker, label in (
        ("subspace", VERMILION, "s", f"worst within all {result.rank}"),
        ("paired", ORANGE, "D", "mean of pairs of the same number"),
        ("leading", BLUE, "o", "worst within the leading ten"),
    ):
        found = result.values(MERGE, result.rank, error)
        _draw_range(ax, found, colour, marker, label, np.degrees)
    ax.set_yscale("log")
    ax.set_ylabel("angle (degrees)")
    ax.set_title("Error of the directions, merged")


def _draw_updates(ax: Axes, result: EigenspaceMerge) -> None:
    N = result.batch.n_samples
    for error, colour, marker, label, scale in (
        ("leading", BLUE, "o", "leading ten, worst angle (degrees)", np.degrees),
        ("eigenvalues", GREEN, "^", "eigenvalues, mean error (%)", lambda part: 100 * part),
    ):
        found = result.values(UPDATES, result.rank, error)
        by_count = {N // portion - 1: found[portion] for portion in sorted(found, reverse=True)}
        _draw_range(ax, by_count, colour, marker, label, scale)
    ax.set_xscale("log")
    ax.set_xticks(list(by_count), [str(count) for count in by_count])
    ax.minorticks_off()
    ax.set_xlabel(f"updates until all {N} faces are in")
    ax.set_ylim(bottom=0)
    ax.set_title(f"Error after many updates, {result.rank} directions")


def _draw_range(
    ax: Axes,
    values: dict[int, list[float]],
    colour: str,
    marker: str,
    label: str,
    scale: Callable[[Array], Any] = np.asarray,
) -> None:
    """The mean over the draws, and the range from the least to the largest."""
    found = scale(np.array(list(values.values())))
    mean = found.mean(axis=1)
    reach = np.abs([mean - found.min(axis=1), found.max(axis=1) - mean])
    ax.errorbar(list(values), mean, yerr=reach, color=colour, marker=marker, capsize=3, label=label)


def draw_faces(result: EigenspaceMerge) -> Figure:
    """The mean face and some eigenfaces of both models, and what differs, on the same scale."""
    figure = new_figure(11, 6.1)
    figure.set_layout_engine("compressed")
    shown = (*_SHOWN, result.rank)
    axes = figure.subplots(3, 1 + len(shown))
    means = result.batch.mean, result.merged.mean
    _draw_column(axes[:, 0], *means, (0.0, 1.0))
    axes[0, 0].set_title("mean face")
    for column, number in zip(axes[:, 1:].T, shown, strict=True):
        p, q = (model.components[number - 1] for model in (result.batch, result.merged))
        q = q if p @ q > 0 else -q
        reach = float(abs(p).max())
        _draw_column(column, p, q, (-reach, reach))
        angle = np.degrees(2 * np.arcsin(np.linalg.norm(p - q) / 2))
        column[0].set_title(f"eigenface {number}")
        column[2].set_xlabel(f"{angle:.2g}° apart")
    axes[2, 0].set_xlabel(f"{np.linalg.norm(means[0] - means[1]):.0e} apart")
    for ax, name in zip(axes[:, 0], ("batch", "merged", "difference"), strict=True):
        ax.set_ylabel(name, fontsize="large")
    half = result.batch.n_samples // 2
    figure.suptitle(
        f"{2 * half} faces at once, and {half} merged with {half}; {result.rank} directions each"
    )
    return figure


def _draw_column(axes: Any, one: Array, two: Array, limits: tuple[float, float]) -> None:
    reach = (limits[1] - limits[0]) / 2
    for ax, values, (least, most) in zip(
        axes, (one, two, one - two), (limits, limits, (-reach, reach)), strict=True
    ):
        ax.imshow(values.reshape(FACE_SHAPE), cmap="gray", vmin=least, vmax=most)
        ax.set_xticks([])
        ax.set_yticks([])
