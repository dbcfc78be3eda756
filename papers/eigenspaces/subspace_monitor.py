"""Time series and change points, the applications of Kim's slides, on the temperature of the sea.

The water off Peru follows the year; in an El Niño it does not. Twenty years teach the monitor what
is usual, then it runs on month by month, merging each new row into its window and splitting the
oldest one off. A row is the last twelve months.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from knowmore import Eigenspace, SubspaceMonitor
from knowmore.subspaces import lagged
from knowmore.subspaces.monitor import Measures, Observation
from papers.arrays import Array
from papers.findings import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    Progress,
    Report,
    Table,
    Verdict,
    new_figure,
    quiet_axes,
    save_figure,
    silent,
    write_csv,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A year of months in each row, two directions for its cosine and sine, windows of two years.
MONTHS, DIRECTIONS, WINDOW, FALSE_ALARMS = 12, 2, 24, 0.01
# The monitor learns up to this year.
BEGIN = 1970
# Of an event that was strong, or not.
_SHADES = {True: (ORANGE, 0.45), False: (ORANGE, 0.18)}


class Event(NamedTuple):
    """An El Niño from its first to its last month, and whether it was strong on this coast."""

    name: str
    first: np.datetime64
    last: np.datetime64
    strong: bool


# About the months in which NOAA's Oceanic Niño Index was at half a degree or more, of the events
# that are counted as strong or moderate off Peru.
EVENTS = (
    Event("1972-73", np.datetime64("1972-05"), np.datetime64("1973-03"), True),
    Event("1982-83", np.datetime64("1982-04"), np.datetime64("1983-06"), True),
    Event("1986-88", np.datetime64("1986-09"), np.datetime64("1988-02"), False),
    Event("1991-92", np.datetime64("1991-05"), np.datetime64("1992-06"), False),
    Event("1997-98", np.datetime64("1997-05"), np.datetime64("1998-05"), True),
)


@final
@dataclass(frozen=True, eq=False)
class Watched:
    """The series and what the monitor made of it.

    months (T,) and temperatures (T,) are the whole series, `seen` is of its last m months.
    difference: the largest one between the window's covariance after the last month and that of
    its rows; `tolerance` is what rounding allows.
    """

    months: Array
    temperatures: Array
    seen: Observation
    difference: float
    tolerance: float

    @property
    def watched(self) -> Array:
        """The months of `seen`, (m,)."""
        return self.months[-len(self.seen.errors) :]

    def during(self, event: Event, after: int = 0) -> Array:
        """Which of the months watched are in an event or up to so many `after` it, (m,)."""
        return np.asarray((self.watched >= event.first) & (self.watched <= event.last + after))


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Watched:
    """Learn twenty years and watch the next forty; `quick` twenty. Nothing is random."""
    progress(0.0, "learning what is usual")
    months, temperatures = _series(1990 if quick else None)
    rows, known = lagged(temperatures, MONTHS), int((months < np.datetime64(f"{BEGIN}")).sum())
    reference, stream = np.split(rows, [known - MONTHS + 1])
    monitor = SubspaceMonitor(DIRECTIONS, WINDOW, false_alarms=FALSE_ALARMS).fit(reference)
    progress(0.1, "watching")
    seen = monitor.observe(stream)
    window, batch = monitor.window_.eigenspace, Eigenspace.of(rows[-WINDOW:])
    return Watched(
        months=months,
        temperatures=temperatures,
        seen=seen,
        difference=float(abs(window.covariance() - batch.covariance()).max()),
        tolerance=sum(float(e.rounding.scatters.max()) for e in (window, batch)) / WINDOW,
    )


def _series(end: int | None) -> tuple[Array, Array]:
    """The months and their temperatures up to the year `end`, all without one."""
    table = np.loadtxt(Path(__file__).with_name("nino12.csv"), delimiter=",", skiprows=3)
    table = table if end is None else table[table[:, 0] < end]
    temperatures = table[:, 1:].ravel()
    first = np.datetime64(f"{table[0, 0]:.0f}-01", "M")
    return first + np.arange(len(temperatures)), temperatures


# -- what it means -------------------------------------------------------------------------------


def report(result: Watched, out: Path) -> Report:
    """The picture, the numbers month by month, and what was found and what was not."""
    seen = result.seen
    numbers = write_csv(
        out / "subspace-monitor.csv",
        ("month", "temperature", *Measures._fields, "anomaly", "change"),
        zip(
            result.watched,
            result.temperatures[-len(seen.errors) :],
            *seen.measures,
            seen.anomalies.astype(int),
            seen.changes.astype(int),
            strict=True,
        ),
    )
    picture = save_figure(_draw(result), out / "subspace-monitor.png")
    rows = tuple(
        (event.name, "strong" if event.strong else "moderate", *_fired(result, event))
        for event in _events(result)
    )
    return Report(
        parts=(
            f"{(len(result.months) - len(seen.errors)) // 12} years of the sea off Peru were "
            f"learnt, and {len(seen.errors)} months watched.",
            Table("Months in which it fired", ("El Niño", "kind", "anomaly", "change"), rows),
            *verdicts(result),
        ),
        files=(picture, numbers),
    )


def _events(result: Watched) -> list[Event]:
    return [event for event in EVENTS if result.during(event).any()]


def _fired(result: Watched, event: Event) -> tuple[str, str]:
    """During the event, and for the change until a window has forgotten it."""
    anomalies = result.seen.anomalies[result.during(event)].sum()
    changes = result.seen.changes[result.during(event, WINDOW)].sum()
    return f"{anomalies}", f"{changes}"


def verdicts(result: Watched) -> list[Verdict]:
    """Whether the monitor finds the known events, and raises no other alarm."""
    seen = result.seen
    usual = ~np.any([result.during(event, MONTHS - 1) for event in EVENTS], axis=0)
    # A window of rows that hold a year each reaches back by both.
    calm = ~np.any([result.during(event, WINDOW + MONTHS - 2) for event in EVENTS], axis=0)
    odd, turned = seen.anomalies[usual].sum(), seen.changes[calm].sum()
    return [
        _finds(result, strong=True),
        _finds(result, strong=False),
        Verdict(
            claim="Where there is no El Niño it is silent.",
            holds=bool(max(odd / usual.sum(), turned / calm.sum()) <= FALSE_ALARMS),
            measured=(
                f"{odd} anomalies in the {usual.sum()} months whose year touches no event, and "
                f"{turned} changes in the {calm.sum()} whose window does not; "
                f"{FALSE_ALARMS:.0%} may be"
            ),
        ),
        Verdict(
            claim="After all merges and splits the window's model is that of its rows.",
            holds=result.difference <= result.tolerance,
            measured=(
                f"the largest difference of a covariance is {result.difference:.1e} "
                f"(rounding allows {result.tolerance:.1e}) after {len(seen.errors)} of each"
            ),
        ),
    ]


def _finds(result: Watched, *, strong: bool) -> Verdict:
    events = [event for event in _events(result) if event.strong is strong]
    found = [e.name for e in events if result.seen.anomalies[result.during(e)].any()]
    missed = [e.name for e in events if e.name not in found]
    return Verdict(
        claim=f"It finds the {'strong' if strong else 'moderate'} events while they last.",
        holds=not missed,
        measured=f"{len(found)} of {len(events)}" + f" (not {', '.join(missed)})" * bool(missed),
    )


# -- the picture ---------------------------------------------------------------------------------


def _draw(result: Watched) -> Figure:
    figure, seen = new_figure(11, 7.2), result.seen
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 1, 1))
    top.plot(_years(result.months), result.temperatures, color=GREY, linewidth=0.9)
    top.set_ylabel("sea surface, °C")
    _draw_scores(middle, result, {"out of the subspace": 0, "within it": 1}, seen.anomalies)
    middle.set_ylabel("anomalies:\nthe last year / limit")
    _draw_scores(bottom, result, {"turned": 2, "moved": 3}, seen.changes)
    bottom.set_ylabel("changes:\nthe window / limit")
    bottom.set_xlabel("year")
    for ax in (top, middle, bottom):
        quiet_axes(ax)
        _shade(ax, result)
    top.set_xlim(_years(result.months[0]), _years(result.months[-1]))
    _name_events(top, result)
    handles = _event_handles()
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _draw_scores(ax: Axes, result: Watched, names: dict[str, int], fires: Array) -> None:
    """Two measures, each in parts of its limit; the larger one says whether the monitor fires."""
    years, seen = _years(result.watched), result.seen
    scores = {name: seen.measures[i] / seen.limits[i] for name, i in names.items()}
    for (name, values), color in zip(scores.items(), (BLUE, GREEN), strict=True):
        ax.plot(years, values, color=color, linewidth=1.2, label=name)
    ax.axhline(1, color=GREY, linestyle="--", linewidth=1)
    larger = np.max([*scores.values()], axis=0)
    ax.plot(years[fires], larger[fires], "o", color=VERMILION, markersize=3.5, label="it fires")
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left", frameon=False, ncols=3, fontsize="small")


def _shade(ax: Axes, result: Watched) -> None:
    ax.axvspan(_years(result.months[0]), _years(result.watched[0]), color="0.95", zorder=0)
    for event in _events(result):
        shade = _SHADES[event.strong]
        ax.axvspan(_years(event.first), _years(event.last + 1), color=shade, linewidth=0, zorder=0)


def _event_handles() -> list[Any]:
    from matplotlib.patches import Patch

    kinds = ((True, "strong El Niño"), (False, "moderate El Niño"))
    return [Patch(color=_SHADES[strong], linewidth=0, label=label) for strong, label in kinds]


def _name_events(ax: Axes, result: Watched) -> None:
    def name(text: str, first: Any, last: Any, **style: Any) -> None:
        middle = (_years(first) + _years(last)) / 2
        ax.text(middle, 1.03, text, transform=ax.get_xaxis_transform(), ha="center", **style)

    name("learnt as usual", result.months[0], result.watched[0], color=GREY)
    for event in _events(result):
        name(event.name, event.first, event.last, weight="bold" if event.strong else "normal")


def _years(months: Any) -> Any:
    """Months of NumPy, which count from 1970, as years with fractions."""
    return 1970 + np.asarray(months).astype(int) / 12
