"""Tables, a picture of ranks and verdicts on models that learnt public tables as they come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from papers.arrays import Array
from papers.findings import (
    BLUE,
    GREY,
    Report,
    Table,
    Verdict,
    as_time,
    new_figure,
    quiet_axes,
    save_figure,
    write_csv,
)
from papers.practice.rows import Figure as Mean
from papers.tables.measures import (
    ACCURACY,
    BALANCED_ACCURACY,
    DENSITY,
    FIT,
    LOG_LOSS,
    ONE,
    PREDICT,
    R2,
    TWO,
)
from papers.tables.models import BALANCED, CLASSES, EARLIER, FOREST, GRID, LSSVM, VALUES
from papers.tables.result import Panel, Tables
from papers.tables.tasks import FEW, MANY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BESIDE = (BALANCED, LSSVM, FOREST, EARLIER)
# Each panel: its title, the size and kind of its tasks, ours, and what ranks.
_PANELS = {
    f"classes, {FEW} rows": (FEW, False, CLASSES),
    f"classes, {MANY} rows": (MANY, False, CLASSES),
    f"values, {FEW} rows": (FEW, True, VALUES),
}
# Ours may be so far behind the best of the others, on so many of the tables.
_BEHIND, _PART = 0.02, 0.1
# The parts of the values that should be within one and two deviations, and how far off is fine.
_COVERED = {ONE: (0.68, 0.05), TWO: (0.95, 0.03)}
# The share of the time of the SVC's grid, and seconds.
_SHARE, _SECONDS = 0.1, 0.5
# Tables that are named where ours is the furthest behind.
_NAMED = 10


def report(result: Tables, out: Path) -> Report:
    """The picture, the numbers of each table, means and ranks, and a verdict on each claim."""
    found = {title: result.panel(*which, _BESIDE) for title, which in _PANELS.items()}
    panels = {title: panel for title, panel in found.items() if panel.tasks}
    files = [write_csv(out / "tables.csv", *_figures(panels))]
    if panels:
        files.insert(0, save_figure(draw(panels), out / "tables.png"))
    parts: list[str | Table | Verdict] = [preface(result, found)]
    for title, panel in panels.items():
        parts += [_means(title, panel), _behind(title, panel)]
    for title, panel in panels.items():
        parts += verdicts(title, panel)
    return Report(tuple(parts), tuple(files))


def preface(result: Tables, panels: dict[str, Panel]) -> str:
    """The setting, and what is yet to be measured."""
    waiting = sum(panel.waiting for panel in panels.values())
    tables = "; ".join(f"{title}: {len(panel.tasks)} tables" for title, panel in panels.items())
    text = (
        f"{tables[:1].upper()}{tables[1:]}. Each in {result.splits} random splits, the same for "
        "all; small tables learn two thirds of their rows. Ours get the table as it comes and no "
        "argument. Ranks are means over tables. Times are of one processor, without the "
        "calibration that gives an SVC probabilities and without the folds that give a peer of "
        "values a deviation."
    )
    text += f" Left out, for not all have learnt them yet: {waiting} tables." * bool(waiting)
    return text + " For judging run it without --quick." * result.quick


# -- tables --------------------------------------------------------------------------------------


def _sorts(panel: Panel) -> tuple[str, str]:
    """The two measures that rank."""
    return (R2, DENSITY) if panel.ours == VALUES else (ACCURACY, LOG_LOSS)


def _means(title: str, panel: Panel) -> Table:
    """A line for each model, the best rank first; those beside at the end, without ranks."""
    first, second = _sorts(panel)
    measures = [R2, DENSITY, ONE, TWO, FIT] if panel.ours == VALUES else _OF_CLASSES
    ranks = {measure: panel.ranks(measure) for measure in (first, second)}
    order = sorted(panel.ranked, key=lambda name: ranks[first][name].mean())
    return Table(
        f"Means: {title}",
        ("", f"rank, {first}", f"rank, {second}", *(_HEADS.get(one, one) for one in measures)),
        tuple(
            (
                _named(panel, name),
                *(_shown(ranks[one].get(name)) for one in (first, second)),
                *(_cell(panel, name, one) for one in measures),
            )
            for name in [*order, *(name for name in panel.values if name in panel.beside)]
        ),
    )


_HEADS = {FIT: "fit", PREDICT: "predict", ONE: "1 deviation", TWO: "2 deviations"}
_OF_CLASSES = [ACCURACY, BALANCED_ACCURACY, LOG_LOSS, FIT, PREDICT]


def _named(panel: Panel, name: str) -> str:
    learnt = len(panel.values[name])
    return name if learnt == len(panel.tasks) else f"{name} ({learnt} tables)"


def _shown(ranks: Array | None) -> str:
    return "-" if ranks is None else f"{ranks.mean():.2f}"


def _cell(panel: Panel, name: str, measure: str) -> str:
    if measure not in next(iter(panel.values[name].values())):
        return "-"
    mean = float(panel.means(name, measure).mean())
    return as_time(mean) if measure in (FIT, PREDICT) else f"{mean:.3f}"


def _behind(title: str, panel: Panel) -> Table:
    """The tables on which ours is the furthest behind the best of the others."""
    measure = _sorts(panel)[0]
    return Table(
        f"Furthest behind in {measure}: {title}",
        ("", "ours", "the best other", "", "ours less that"),
        tuple(
            (
                task,
                f"{panel.values[panel.ours][task][measure].mean():.3f}",
                best,
                f"{panel.values[best][task][measure].mean():.3f}",
                str(gain),
            )
            for task, (best, gain) in list(panel.behind(measure).items())[:_NAMED]
        ),
    )


def _figures(panels: dict[str, Panel]) -> tuple[list[str], list[list[object]]]:
    """The mean over splits of each measure, for each table and model."""
    measures = [*_OF_CLASSES[:3], R2, DENSITY, ONE, TWO, FIT, PREDICT]
    lines: list[list[object]] = [
        [title, task, name, *(each[one].mean() if one in each else "" for one in measures)]
        for title, panel in panels.items()
        for name, learnt in panel.values.items()
        for task, each in learnt.items()
    ]
    return ["what", "table", "model", *measures], lines


# -- verdicts ------------------------------------------------------------------------------------


def verdicts(title: str, panel: Panel) -> list[Verdict]:
    """Whether the claims on tasks of this kind and size hold."""
    if panel.ours == VALUES:
        return [*(_above_all(panel, one) for one in (R2, DENSITY)), _covers(panel)]
    found = [*(_best_rank(title, panel, one) for one in (ACCURACY, LOG_LOSS))]
    found += [_above_grid(title, panel), _seldom_behind(title, panel)]
    return [*found, _fast(title, panel)] if title.startswith(f"classes, {MANY}") else found


def _best_rank(title: str, panel: Panel, measure: str) -> Verdict:
    ranks = {name: float(each.mean()) for name, each in panel.ranks(measure).items()}
    best, mine = min(panel.peers, key=ranks.__getitem__), ranks[panel.ours]
    return Verdict(
        f"{title}: the mean rank of {panel.ours} in {measure} is the best of all.",
        mine < ranks[best],
        f"{mine:.2f} of {len(ranks)}; the best other is {best} with {ranks[best]:.2f}",
    )


def _above_grid(title: str, panel: Panel) -> Verdict:
    gain = panel.ahead(GRID, ACCURACY)
    return Verdict(
        f"{title}: the mean accuracy is above an SVC's with its grid by more than a standard "
        "error.",
        gain.mean > gain.error,
        f"{panel.means(panel.ours, ACCURACY).mean():.4f} against "
        f"{panel.means(GRID, ACCURACY).mean():.4f}, a difference of {gain.mean:+.4f} "
        f"± {gain.error:.4f} over {len(gain.values)} tables",
    )


def _seldom_behind(title: str, panel: Panel) -> Verdict:
    """Behind: by more than 2 points, and by more than two standard errors of the splits."""
    far = [
        task
        for task, (_, gain) in panel.behind(ACCURACY).items()
        if gain.mean < -max(_BEHIND, 2 * gain.error)
    ]
    return Verdict(
        f"{title}: on at most a tenth of the tables more than 2 points behind the best of the "
        "others, by more than two standard errors.",
        len(far) <= _PART * len(panel.tasks),
        f"{len(far)} of {len(panel.tasks)} tables" + f" ({', '.join(far)})" * bool(far),
    )


def _fast(title: str, panel: Panel) -> Verdict:
    mine, grid = (panel.means(name, FIT) for name in (panel.ours, GRID))
    return Verdict(
        f"{title}: a fit takes at most a tenth of the time of an SVC's grid, and at most half a "
        "second.",
        bool(mine.mean() <= _SHARE * grid.mean() and mine.mean() <= _SECONDS),
        f"{as_time(mine.mean())} against {as_time(grid.mean())} on average, at most "
        f"{as_time(mine.max())} ({panel.tasks[int(mine.argmax())]}); the larger share is on "
        f"{panel.tasks[int((mine / grid).argmax())]}: {(mine / grid).max():.2f}",
    )


def _above_all(panel: Panel, measure: str) -> Verdict:
    means = {name: panel.means(name, measure) for name in panel.ranked}
    best = max(panel.peers, key=lambda name: float(means[name].mean()))
    gain = panel.ahead(best, measure)
    medians = (float(np.median(means[name])) for name in (panel.ours, best))
    return Verdict(
        f"Values: the mean {measure} of {panel.ours} is at or above that of every peer.",
        gain.mean >= 0,
        f"{means[panel.ours].mean():.3f}; the best other is {best} with {means[best].mean():.3f}, "
        f"a difference of {gain.mean:+.3f} ± {gain.error:.3f} over {len(panel.tasks)} tables "
        f"(medians: {next(medians):.3f} and {next(medians):.3f})",
    )


def _covers(panel: Panel) -> Verdict:
    covered = {one: Mean(tuple(panel.means(panel.ours, one)), 0.0) for one in _COVERED}
    return Verdict(
        "Values: 68 ± 5 % are within one deviation, and 95 ± 3 % within two.",
        all(abs(covered[one].mean - part) <= off for one, (part, off) in _COVERED.items()),
        " and ".join(f"{100 * mean.mean:.1f} %" for mean in covered.values()),
    )


# -- the picture ---------------------------------------------------------------------------------


def draw(panels: dict[str, Panel]) -> Figure:
    """A panel for each kind and size: mean ranks by two measures, with standard errors."""
    figure = new_figure(5.2 * len(panels), 4.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (title, panel) in zip(axes, panels.items(), strict=True):
        first, second = _sorts(panel)
        ranks = panel.ranks(first), panel.ranks(second)
        order = sorted(panel.ranked, key=lambda name: float(ranks[0][name].mean()))
        for place, name in enumerate(order):
            colour = BLUE if name == panel.ours else GREY
            for each, measure, filled, above in zip(
                ranks, (first, second), (True, False), (-0.12, 0.12), strict=True
            ):
                mean = Mean(tuple(each[name]), 0.0)
                ax.errorbar(
                    mean.mean,
                    place + above,
                    xerr=mean.error,
                    fmt="o",
                    color=colour,
                    markerfacecolor=colour if filled else "white",
                    markersize=5,
                    capsize=2,
                    label=measure if name == panel.ours else None,
                )
        ax.set_yticks(range(len(order)), [_named(panel, name) for name in order], fontsize="small")
        ax.invert_yaxis()
        ax.set_xlabel("mean rank; left is better")
        ax.set_title(f"{title}, {len(panel.tasks)} tables", fontsize="medium")
        ax.legend(frameon=False, fontsize="small")
        quiet_axes(ax)
    return figure
