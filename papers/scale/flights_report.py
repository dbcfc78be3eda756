"""Tables, figures and verdicts of the models of flights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from papers.arrays import Array
from papers.findings import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Report,
    Table,
    Verdict,
    as_time,
    new_figure,
    quiet_axes,
    save_figure,
    write_csv,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT, GROWING = "linear GP, four weeks", "linear GP, all"
_COLOURS = (BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE)


class Course(NamedTuple):
    """How one method did.

    errors, overall : of each week, (weeks,), and of all weeks at once
    first, day : seconds to learn the first window, and on average what a day brings
    answer : seconds for all answers
    """

    method: str
    errors: Array
    overall: float
    first: float
    day: float
    answer: float


class Checked(NamedTuple):
    """How often the window's model was compared with a fresh fit of its rows, how often the sums
    were equal, bit for bit, and the median seconds of that fit."""

    times: int
    same: int
    refit: float


@final
@dataclass(frozen=True, eq=False)
class Delays:
    """Results of a question: all methods, and the error of a constant in each week, (weeks,)."""

    title: str
    unit: str
    courses: tuple[Course, ...]
    constant: Array
    checked: Checked

    def named(self, method: str) -> Course:
        """The course of a method."""
        return next(course for course in self.courses if course.method == method)


@final
@dataclass(frozen=True, eq=False)
class Flown:
    """Both questions. The weeks begin on the dates `weeks`; the model has so many columns."""

    late: Delays
    minutes: Delays
    weeks: Array
    flights: int
    columns: int
    river: bool


def report(result: Flown, out: Path) -> Report:
    """The picture, all numbers, and the verdicts."""
    numbers = write_csv(
        out / "scale-flights.csv",
        ("question", "method", "week", "error"),
        (
            (delays.title, course.method, week, error)
            for delays in (result.late, result.minutes)
            for course in delays.courses
            for week, error in zip(result.weeks, course.errors, strict=True)
        ),
    )
    picture = save_figure(_draw(result), out / "scale-flights.png")
    setting = (
        f"{result.flights:,} flights, {result.columns} columns; {len(result.weeks)} weeks are "
        f"predicted, day by day. Times are wall times of this run."
    )
    if not result.river:
        setting += " river is not installed and left out: pip install river"
    tables = (_table(delays) for delays in (result.late, result.minutes))
    return Report(parts=(setting, *tables, *verdicts(result)), files=(picture, numbers))


def _table(delays: Delays) -> Table:
    return Table(
        f"{delays.title} Error: {delays.unit}",
        ("method", "error", "first window", "each day", "all answers"),
        tuple(
            (c.method, f"{c.overall:.4g}", *map(as_time, (c.first, c.day, c.answer)))
            for c in delays.courses
        ),
    )


def verdicts(result: Flown) -> Iterator[Verdict]:
    """Exactness, what forgetting is good for, and who is best."""
    both = (result.late, result.minutes)
    times, same = (sum(d.checked[i] for d in both) for i in range(2))
    days = [d.named(EXACT).day for d in both]
    yield Verdict(
        claim="After learning and forgetting, the sums are those of a fresh fit of the window.",
        holds=times == same,
        measured=f"equal bits in {same} of {times} comparisons; a day in and a day out took "
        f"{_times(days)}, a fresh fit {_times([d.checked.refit for d in both])}",
    )
    for delays in both:
        own, growing = delays.named(EXACT), delays.named(GROWING)
        better = int((own.errors < growing.errors).sum())
        yield Verdict(
            claim=f"{delays.title} Forgetting pays: four weeks predict better than all.",
            holds=own.overall < growing.overall,
            measured=f"{own.overall:.4g} against {growing.overall:.4g} ({delays.unit}); better in "
            f"{better} of {len(own.errors)} weeks",
        )
        peers = [c for c in delays.courses if c.method not in (EXACT, GROWING)]
        best = min(peers, key=lambda c: c.overall)
        yield Verdict(
            claim=f"{delays.title} The window's linear Gaussian process is as good as any peer.",
            holds=own.overall <= best.overall,
            measured=f"{own.overall:.4g} against {best.overall:.4g} of {best.method}; "
            f"{as_time(own.day)} against {as_time(best.day)} of learning a day",
        )


def _times(seconds: list[float]) -> str:
    return " and ".join(map(as_time, seconds))


def _draw(result: Flown) -> Figure:
    """The error of every week, and what a constant would give."""
    figure = new_figure(10, 7)
    panels = figure.subplots(2, 1, sharex=True)
    for ax, delays in zip(panels, (result.late, result.minutes), strict=True):
        ax.plot(result.weeks, delays.constant, ":", color=GREY, label="a constant")
        for course, colour in zip(delays.courses, _COLOURS, strict=False):
            width = 2 if course.method == EXACT else 1.1
            ax.plot(result.weeks, course.errors, color=colour, linewidth=width, label=course.method)
        ax.set_title(delays.title)
        ax.set_ylabel(delays.unit)
        quiet_axes(ax)
    panels[-1].set_xlabel("week from")
    handles, _ = panels[0].get_legend_handles_labels()
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure
