"""All questions of practice in one table: ours by default, peers on the same splits, and a verdict.

Each question is a module beside this one with `measure`. To ask one more, write it and name it in
`QUESTIONS`. No setting of ours is chosen here: the classifiers are made as a user makes them first,
and where a row has another setting its name says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from papers.findings import (
    BLUE,
    VERMILION,
    Progress,
    Report,
    Table,
    new_figure,
    quiet_axes,
    save_figure,
    silent,
    write_csv,
)
from papers.practice.rows import Absent, Found, Row, part
from papers.stopwatch import one_thread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The modules, each with the share of the time that it takes.
QUESTIONS = {
    "one_shot": 0.25,
    "one_more": 0.1,
    "audit": 0.15,
    "strangers": 0.1,
    "chances": 0.1,
    "kernels": 0.1,
    "intersection": 0.05,
    "recognition": 0.1,
    "active": 0.05,
}


@final
@dataclass(frozen=True)
class Practice:
    """All rows, what could not be measured, and whether it was a quick run."""

    rows: tuple[Row, ...]
    absent: tuple[Absent, ...]
    quick: bool


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Practice:
    """All questions; `quick`: a few examples of a few classes in two splits."""
    there = {f"papers.practice.{name}": share for name, share in QUESTIONS.items()}
    there = {module: share for module, share in there.items() if find_spec(module)}
    ends = np.cumsum([0.0, *there.values()]) / (sum(there.values()) + 1e-9)
    found: Found = []
    with one_thread():
        for module, begin, end in zip(there, ends[:-1], ends[1:], strict=True):
            told = part(progress, module.rpartition(".")[2].replace("_", " "), begin, end)
            found += import_module(module).measure(seed=seed, quick=quick, progress=told)
    return Practice(
        tuple(one for one in found if isinstance(one, Row)),
        tuple(one for one in found if isinstance(one, Absent)),
        quick,
    )


# -- what it says --------------------------------------------------------------------------------


def report(result: Practice, out: Path) -> Report:
    """The picture, all figures, a table and a verdict on each row."""
    return report_of(result, preface(result), out, "practice")


def report_of(result: Practice, text: str, out: Path, name: str) -> Report:
    """The report that begins with this text; its files have this name."""
    files = [write_csv(out / f"{name}.csv", _HEADER, _figures(result.rows))]
    if result.rows:
        files.insert(0, save_figure(draw(result.rows), out / f"{name}.png"))
    missing: dict[str, list[str]] = {}
    for one in result.absent:
        missing.setdefault(one.why, []).append(one.where)
    return Report(
        parts=(
            text,
            *(f"Not measured ({'; '.join(where)}): {why}" for why, where in missing.items()),
            table(result.rows),
            *(row.verdict for row in result.rows),
        ),
        files=tuple(files),
    )


def preface(result: Practice) -> str:
    """The number of targets reached, and the setting."""
    reached = sum(row.holds for row in result.rows)
    text = (
        f"Ours reaches the target in {reached} of {len(result.rows)} rows. Figures are means over "
        "random splits, the same for all, with standard errors; times are those of one fit and its "
        "answers. Folds and one-against-all machines of peers run side by side."
    )
    return text + " For judging run it without --quick." if result.quick else text


def table(rows: Sequence[Row]) -> Table:
    """A line for each row: ours, the peer that decides, and the difference."""
    return Table(
        "Ours, and the peer that decides",
        ("", "ours", "peer", "better by", ""),
        tuple(
            (
                f"{row.question}: {row.where}, {row.measure}",
                f"{row.ours.mean:.3f}",
                f"{row.peers[row.best].mean:.3f}",
                str(row.difference),
                "holds" if row.holds else "fails",
            )
            for row in rows
        ),
    )


_HEADER = (
    *("question", "where", "measure", "way", "mean", "error", "seconds", "splits"),
    *("ours_better_by", "its_error", "target", "holds"),
)


def _figures(rows: Sequence[Row]) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    for row in rows:
        where = (row.question, row.where, row.measure)
        for name, one in {"ours": row.ours, **row.peers}.items():
            figure = (name, one.mean, one.error, one.seconds, len(one.values))
            gain = ("", "") if name == "ours" else row.against(name)
            lines.append((*where, *figure, *gain, row.target, int(row.holds)))
    return lines


def draw(rows: Sequence[Row]) -> Figure:
    """A dot for each row: ours less the peer that decides, with its standard error."""
    figure = new_figure(11, 1.2 + 0.24 * len(rows))
    ax = figure.subplots()
    for place, row in enumerate(rows):
        # Labels as a part of what the peer needs.
        unit = row.peers[row.best].mean if row.question == "labels needed" else 1.0
        gain, error = (one / unit for one in row.difference)
        colour = BLUE if row.holds else VERMILION
        ax.errorbar(gain, place, xerr=error, fmt="o", color=colour, markersize=4, capsize=2)
    ax.axvline(0, color="0.4", linewidth=1)
    names = [f"{row.question}: {row.where}, {row.measure}" for row in rows]
    ax.set_yticks(range(len(rows)), names, fontsize="x-small")
    ax.invert_yaxis()
    ax.set_xlabel("ours less the peer that decides; right of zero ours is better")
    ax.set_title("Blue: the target is reached", fontsize="medium")
    quiet_axes(ax)
    return figure
