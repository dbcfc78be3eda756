"""Detections and false alarms of the subspace monitor, in simulated streams.

Rows of ten features are normal or have heavy tails (Student's t with three degrees of freedom).
Three features have most of the variance. The monitor learns a thousand rows, with three directions,
and watches the rows that follow: unchanged, with another mean within the subspace or out of it, or
with another spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from knowmore import SubspaceMonitor
from papers.arrays import Array
from papers.findings import Progress, Report, Table, Verdict, silent, write_csv

# Standard deviations of the features; the monitor keeps the first few directions.
SPREADS = np.array([4.0, 3.0, 2.0, *[0.3] * 7])
DIRECTIONS, WINDOW, LEARNT, FALSE_ALARMS = 3, 50, 1000, 0.01
# Numbers of rows watched where nothing changes, and after a change.
CALM, AFTER = 400, 2 * WINDOW
NONE = "nothing"
# The features that change: one or all within the subspace, one or all out of it.
_IN, _OUT, _ALL_IN, _ALL_OUT = np.s_[1:2], np.s_[7:8], np.s_[:3], np.s_[3:]


def _moved(axes: slice, by: float) -> Callable[[Array], Array]:
    return lambda Z: Z + by * np.isin(np.arange(len(SPREADS)), np.arange(len(SPREADS))[axes])


def _spread(axes: slice, factor: float) -> Callable[[Array], Array]:
    scales = np.ones(len(SPREADS))
    scales[axes] = factor
    return lambda Z: Z * scales


# What happens to rows in units of their standard deviations.
CHANGES: dict[str, Callable[[Array], Array]] = {
    NONE: lambda Z: Z,
    "mean, by 1 within": _moved(_IN, 1),
    "mean, by 2 within": _moved(_IN, 2),
    "mean, by 10 within": _moved(_IN, 10),
    "mean, by 1 out": _moved(_OUT, 1),
    "mean, by 2 out": _moved(_OUT, 2),
    "spread, twice within": _spread(_ALL_IN, 2),
    "spread, half within": _spread(_ALL_IN, 0.5),
    "spread, twice out": _spread(_ALL_OUT, 2),
}
TAILS = "normal", "heavy"


@final
@dataclass(frozen=True)
class Power:
    """How often the monitor fired after a change, as parts of one.

    anomalies : of the rows
    changes : of the windows that hold rows after the change only
    soon : of the streams, within a window's length
    """

    tails: str
    change: str
    anomalies: float
    changes: float
    soon: float


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> tuple[Power, ...]:
    """Watch sixty streams of each kind through all changes; `quick`: one."""
    streams = 1 if quick else 60
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for i, tails in enumerate(TAILS):
        for j in range(streams):
            progress((i * streams + j) / (2 * streams), f"{tails} tails, stream {j + 1}")
            for change, fired in _stream(np.random.default_rng([seed, i, j]), tails):
                found.setdefault((tails, change), []).append(fired)
    return tuple(Power(*key, *np.mean(rates, axis=0).tolist()) for key, rates in found.items())


def _stream(
    rng: np.random.Generator, tails: str
) -> Iterator[tuple[str, tuple[float, float, float]]]:
    shape = (LEARNT + CALM, len(SPREADS))
    Z = rng.normal(size=shape) if tails == "normal" else rng.standard_t(3, shape) / np.sqrt(3)
    learnt, later = np.split(Z, [LEARNT])
    monitor = SubspaceMonitor(DIRECTIONS, WINDOW, false_alarms=FALSE_ALARMS)
    monitor.fit(learnt * SPREADS)
    for name, change in CHANGES.items():
        rows = change(later if name == NONE else later[:AFTER])
        seen = deepcopy(monitor).observe(rows * SPREADS)
        changes = seen.changes
        rates = seen.anomalies.mean(), changes[WINDOW:].mean(), changes[:WINDOW].any()
        yield name, (float(rates[0]), float(rates[1]), float(rates[2]))


# -- what it means -------------------------------------------------------------------------------


def report(result: tuple[Power, ...], out: Path) -> Report:
    """The rates, and what they say of the promises."""
    header = "tails", "what changes", "anomalies", "changes", "within a window"
    rows = [(p.tails, p.change, p.anomalies, p.changes, p.soon) for p in result]
    table = tuple(
        (tails, change, *(f"{rate:.1%}" for rate in rates)) for tails, change, *rates in rows
    )
    return Report(
        parts=(Table("How often it fires", header, table), *verdicts(result)),
        files=(write_csv(out / "monitor-power.csv", header, rows),),
    )


def verdicts(result: tuple[Power, ...]) -> list[Verdict]:
    """Whether false alarms are as rare as asked for, and changes are seen."""
    calm = [one for one in result if one.change == NONE]
    moved = [one for one in result if one.change in ("mean, by 2 within", "mean, by 2 out")]
    wider = [one for one in result if one.change.startswith("spread, twice")]
    false = max(max(one.anomalies, one.changes) for one in calm)
    soon, odd = min(one.soon for one in moved), min(one.anomalies for one in wider)
    return [
        Verdict(
            claim=f"Where nothing changes, about {FALSE_ALARMS:.0%} fires: less than twice that.",
            holds=false < 2 * FALSE_ALARMS,
            measured=f"at most {false:.1%} of the rows or windows",
        ),
        Verdict(
            claim="A mean that moves by two standard deviations, within or out of the subspace, "
            "is reported before the window has passed.",
            holds=soon == 1,
            measured=f"in at least {soon:.0%} of the streams",
        ),
        Verdict(
            claim="Twice the spread makes four times as many anomalies as are allowed.",
            holds=odd >= 4 * FALSE_ALARMS,
            measured=f"at least {odd:.1%} of the rows",
        ),
    ]
