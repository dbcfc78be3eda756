"""Tables, figures and verdicts on the detection of attacks that training never saw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
from sklearn.metrics import roc_auc_score

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
from papers.scale.contest import standard_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NORMAL = "normal"
VARIANCE, KNOWN, UNLIKELY = "variance (normal)", "variance (all)", "improbability"
SCORE, MONITOR = "score of normal", "SubspaceMonitor"
# Rates of false alarms, and the one that thresholds are made for.
RATES, RATE = (0.001, 0.01, 0.05), 0.01
_STYLES = {
    VARIANCE: (BLUE, "-"),
    KNOWN: (SKY, "-"),
    UNLIKELY: (PURPLE, "-"),
    SCORE: (GREY, "-"),
    MONITOR: (GREEN, "-"),
    "IsolationForest": (GREEN, "--"),
    "RandomForest": (ORANGE, "--"),
    "HistGradientBoost": (VERMILION, "--"),
    "LogisticRegression": (GREY, "--"),
}


@final
@dataclass(frozen=True, eq=False)
class Alarm:
    """A method that ranks connections, the most suspicious highest.

    held : the values of normal training connections that it did not learn, (h,)
    values : those of the test connections, (m,)
    seconds : to learn and to answer
    """

    method: str
    held: Array
    values: Array
    seconds: float


class Relearnt(NamedTuple):
    """Before and after some connections of each late kind are learnt.

    late, others : the part of the late connections, and of the other ones, whose kind is right; of
        those that were not learnt
    same : whether the sums are those of a fit of all, bit for bit
    labelled, seconds : how many were learnt, and how long that took
    """

    late: tuple[float, float]
    others: tuple[float, float]
    same: bool
    labelled: int
    seconds: float


@final
@dataclass(frozen=True, eq=False)
class Watched:
    """All methods on the same connections, whose kinds are `labels` (m,); `late` are new ones.

    promised : the monitor's own threshold, made for the rate of false alarms that is asked for
    """

    alarms: tuple[Alarm, ...]
    labels: Array
    late: tuple[str, ...]
    learnt: int
    promised: float
    relearnt: Relearnt

    @property
    def normal(self) -> Array:
        """Which connections are normal, (m,)."""
        return np.asarray(self.labels == NORMAL)

    @property
    def new(self) -> Array:
        """Which connections are attacks of late kinds, (m,)."""
        return np.isin(self.labels, self.late)

    def found(self, alarm: Alarm, rate: float) -> Array:
        """Which late attacks are above the threshold that has so many false alarms."""
        limit = np.quantile(alarm.values[self.normal], 1 - rate)
        return np.asarray(alarm.values[self.new] > limit)

    def at(self, alarm: Alarm, limit: float) -> tuple[float, float]:
        """The part of the late attacks, and of the normal connections, above a threshold."""
        fires = alarm.values > limit
        return float(fires[self.new].mean()), float(fires[self.normal].mean())

    def area(self, alarm: Alarm) -> float:
        """The chance that a late attack is above a normal connection."""
        asked = self.normal | self.new
        return float(roc_auc_score(self.new[asked], alarm.values[asked]))

    def named(self, method: str) -> Alarm:
        """The alarm of a method."""
        return next(alarm for alarm in self.alarms if alarm.method == method)


def report(result: Watched, out: Path) -> Report:
    """The curves, all numbers, and the verdicts."""
    numbers = write_csv(
        out / "scale-kdd99.csv",
        ("method", "kind", "late", "connections", *(f"found_at_{rate:g}" for rate in RATES)),
        _by_kind(result),
    )
    picture = save_figure(_draw(result), out / "scale-kdd99.png")
    setting = (
        f"KDD Cup 1999 without duplicates: {result.learnt:,} connections learnt, "
        f"{result.normal.sum():,} normal ones and {result.new.sum():,} attacks of "
        f"{len(result.late)} late kinds watched. A threshold that {RATE:.0%} of normal training "
        f"connections exceed, which were not learnt, has other rates in the test part, which is of "
        f"a later time."
    )
    return Report(
        parts=(setting, _table(result), _kinds(result), *verdicts(result)),
        files=(picture, numbers),
    )


def _by_kind(result: Watched) -> Iterator[tuple[object, ...]]:
    """The part of each kind of attack that each method finds, at each rate of false alarms."""
    for alarm in result.alarms:
        limits = np.quantile(alarm.values[result.normal], 1 - np.array(RATES))
        for kind in np.unique(result.labels[~result.normal]):
            values = alarm.values[result.labels == kind]
            found = (values[:, None] > limits).mean(axis=0)
            yield alarm.method, kind, int(kind in result.late), len(values), *found


def _table(result: Watched) -> Table:
    return Table(
        "Late attacks found at rates of false alarms, and by the threshold of training",
        (
            "method",
            *(f"{rate:.1%}" for rate in RATES),
            "area",
            "found",
            "false",
            "time",
        ),
        tuple(
            (
                alarm.method,
                *(f"{result.found(alarm, rate).mean():.3f}" for rate in RATES),
                f"{result.area(alarm):.3f}",
                *(f"{part:.3f}" for part in result.at(alarm, _limit(alarm))),
                as_time(alarm.seconds),
            )
            for alarm in result.alarms
        ),
    )


def _limit(alarm: Alarm) -> float:
    """The threshold that the training part sets."""
    return float(np.quantile(alarm.held, 1 - RATE))


def _kinds(result: Watched) -> Table:
    """The part found of the most frequent late kinds, by each method."""
    kinds, counts = np.unique(result.labels[result.new], return_counts=True)
    most = kinds[np.argsort(-counts)[:5]]
    found = {(row[0], row[1]): row[4 + RATES.index(RATE)] for row in _by_kind(result)}
    return Table(
        f"Found of the late kinds at {RATE:.0%} false alarms",
        ("method", *most),
        tuple(
            (alarm.method, *(f"{found[alarm.method, kind]:.2f}" for kind in most))
            for alarm in result.alarms
        ),
    )


def verdicts(result: Watched) -> Iterator[Verdict]:
    """Verdicts on detection, on its price, and on the exactness of learning."""
    own = result.named(VARIANCE)
    peers = [alarm for alarm in result.alarms if _STYLES[alarm.method][1] == "--"]
    for rate in RATES[1:]:
        best = max(peers, key=lambda alarm: result.found(alarm, rate).mean())
        ours, theirs = result.found(own, rate), result.found(best, rate)
        gap, error = ours.mean() - theirs.mean(), standard_error(ours, theirs)
        yield Verdict(
            claim=f"At {rate:.0%} false alarms the variance of the linear Gaussian process finds "
            f"as many late attacks as the best peer.",
            holds=bool(gap >= -2 * error),
            measured=f"{ours.mean():.3f}, {gap:+.3f} ± {error:.3f} against {best.method}",
        )
    caught, alarms = result.at(result.named(MONITOR), result.promised)
    yield Verdict(
        claim=f"The monitor keeps its promise of at most {RATE:.0%} false alarms.",
        holds=alarms <= RATE,
        measured=f"{alarms:.2%} of the normal connections, {caught:.1%} of the late attacks",
    )
    learnt = result.relearnt
    yield Verdict(
        claim="A few labels make late kinds known, and the others lose little.",
        holds=learnt.late[1] >= 0.5 and learnt.others[1] >= learnt.others[0] - 0.02,
        measured=f"{learnt.labelled} connections learnt in {as_time(learnt.seconds)}: the kind is "
        f"right for {learnt.late[1]:.3f} of the other late ones instead of {learnt.late[0]:.0f}, "
        f"and for {learnt.others[1]:.3f} of all others instead of {learnt.others[0]:.3f}",
    )
    yield Verdict(
        claim="After that the sums are those of one fit of all, bit for bit.",
        holds=learnt.same,
        measured="the digests are equal" if learnt.same else "the digests differ",
    )


def _draw(result: Watched) -> Figure:
    """The part of late attacks found, over the rate of false alarms."""
    figure = new_figure(8, 5.4)
    ax = figure.subplots()
    rates = np.geomspace(max(1e-4, 1 / result.normal.sum()), 1, 200)
    for alarm in result.alarms:
        colour, line = _STYLES[alarm.method]
        limits = np.quantile(alarm.values[result.normal], 1 - rates)
        found = (alarm.values[result.new] > limits[:, None]).mean(axis=1)
        ax.plot(rates, found, line, color=colour, label=alarm.method)
        late, false = result.at(alarm, _limit(alarm))
        ax.plot(max(false, rates[0]), late, "o", color=colour, markersize=5)
    ax.set_xscale("log")
    ax.set_xlabel("false alarms: part of the normal connections")
    ax.set_ylabel("part of the late attacks found")
    ax.set_title(f"Dots: thresholds that {RATE:.0%} of normal training connections exceed")
    ax.legend(frameon=False, loc="upper left", fontsize=8)
    quiet_axes(ax)
    return figure
