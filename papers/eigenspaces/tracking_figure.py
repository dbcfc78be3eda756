"""The pictures of the trackers: overlap and error in the course of time, and a short film."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from knowmore._base import optional, written
from papers.arrays import Array
from papers.eigenspaces.tracking_report import EVERYTHING, FIXED, SLIDING, Tracking
from papers.findings import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, new_figure, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {SLIDING: BLUE, EVERYTHING: ORANGE, FIXED: VERMILION}
_OTHERS = (GREEN, PURPLE, GREY)
# Every so-manieth picture is in the film; each is shown for so many milliseconds.
_EVERY, _SHOWN = 8, 120


def _colours(result: Tracking) -> dict[str, str]:
    others = [method for method in result.methods if method not in _COLOURS]
    return {**_COLOURS, **dict(zip(others, _OTHERS, strict=False))}


def draw(result: Tracking) -> Figure:
    """Above the overlap, below the distance of the centres; a column for each film."""
    figure = new_figure(12, 6)
    axes = figure.subplots(2, len(result.films), sharex="col", squeeze=False)
    for (top, bottom), film in zip(axes.T, result.films, strict=True):
        for method, colour in _colours(result).items():
            tracks = result.of(film, method)
            for ax, curves in (
                (top, [one.overlap for one in tracks]),
                (bottom, [one.distance for one in tracks]),
            ):
                ax.plot(np.mean(curves, axis=0), color=colour, linewidth=1.1, label=method)
        top.set_title(film)
        bottom.set_yscale("symlog", linthresh=10)
        bottom.set_ylim(bottom=0)
        bottom.set_xlabel("picture")
        for ax in (top, bottom):
            quiet_axes(ax)
    axes[0, 0].set_ylabel("overlap")
    axes[1, 0].set_ylabel("pixels between centres")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def film(result: Tracking, name: str, frames: Array, path: Path) -> Path:
    """An animation of some pictures of a film with the boxes of the first run: the true one white,
    the others in the colours of the plot."""
    image, drawing = (optional(f"PIL.{part}", "images") for part in ("Image", "ImageDraw"))
    boxes = {result.of(name, m)[0].method: result.of(name, m)[0] for m in result.methods}
    pictures = []
    for t in range(0, len(frames), _EVERY):
        picture = image.fromarray((255 * frames[t]).astype(np.uint8)).convert("RGB")
        pen = drawing.Draw(picture)
        pen.rectangle(_corners(next(iter(boxes.values())).truth[t]), outline="white")
        for method, colour in _colours(result).items():
            pen.rectangle(_corners(boxes[method].boxes[t]), outline=colour)
        pictures.append(picture.quantize(64))
    with written(path) as file:
        pictures[0].save(
            file,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=_SHOWN,
            loop=0,
        )
    return path


def _corners(box: Array) -> list[float]:
    x, y, w, h = box.tolist()
    return [x, y, x + w, y + h]
