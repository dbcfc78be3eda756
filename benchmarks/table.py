"""Rows of the table: a measurement, what it is held against, and whether the target is met."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.scene import Scale
from benchmarks.timing import Samples

_SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt}


@dataclass(frozen=True)
class Target:
    """A bound on a row's ratio, or on what it measured if it has none."""

    sign: str
    bound: float

    def met(self, value: float) -> bool:
        """NaN meets nothing."""
        return bool(_SIGNS[self.sign](value, self.bound))


@dataclass(frozen=True)
class Row:
    """A line of results: `ratio` is of medians, `best_ratio` of fastest runs; `raw` is saved."""

    name: str
    measured: float | None = None
    unit: str = "s"
    against: str = ""
    reference: float | None = None
    ratio: float | None = None
    best_ratio: float | None = None
    target: Target | None = None
    note: str = ""
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """None: there is nothing to meet, or what it needs is not installed."""
        if self.target is None:
            return None
        value = self.measured if self.ratio is None else self.ratio
        return value is not None and self.target.met(value)

    def record(self) -> dict[str, Any]:
        """For the JSON file."""
        return asdict(self) | {"met": self.met}


Benchmark = Callable[[Scale], Iterator[Row]]


def slower(
    name: str,
    mine: Samples,
    against: str,
    other: Samples,
    at_most: float | None,
    note: str = "",
    **facts: Any,
) -> Row:
    """A row with the time of `mine` over the time of `other`."""
    return Row(
        name,
        mine.median,
        "s",
        against,
        other.median,
        mine.median / other.median,
        mine.best / other.best,
        None if at_most is None else Target("<=", at_most),
        note,
        facts | {"measured": mine.raw(), "against": other.raw()},
    )


def faster(
    name: str,
    mine: Samples,
    against: str,
    other: Samples,
    at_least: float | None,
    note: str = "",
    **facts: Any,
) -> Row:
    """A row with the time of `other` over the time of `mine`."""
    row = slower(name, mine, against, other, None, note, **facts)
    return replace(
        row,
        ratio=other.median / mine.median,
        best_ratio=other.best / mine.best,
        target=None if at_least is None else Target(">=", at_least),
    )


def show(rows: Iterable[tuple[str, Row]], console: Console) -> None:
    """Print the table; `rows` with the names of their groups."""
    table = Table(title="knowmore benchmarks", title_justify="left", show_lines=False)
    for heading in "name", "measured", "limit or peer", "ratio", "best", "target", "":
        right = heading in ("measured", "ratio", "best", "target")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    before = None
    for group, row in rows:
        if group != before:
            table.add_section()
            table.add_row(f"[bold]{group}[/bold]")
            before = group
        name = escape(row.name) + (f"\n  [dim]{escape(row.note)}[/dim]" if row.note else "")
        table.add_row(name, *_cells(row))
    console.print(table)


def _cells(row: Row) -> list[str]:
    against = row.against
    if row.reference is not None:
        against = f"{against} {quantity(row.reference, row.unit)}"
    unit = row.unit if row.ratio is None else "x"
    target = f"{row.target.sign} {quantity(row.target.bound, unit)}" if row.target else ""
    verdict = {True: "[green]met[/green]", False: "[bold red]missed[/bold red]", None: ""}[row.met]
    return [
        "-" if row.measured is None else quantity(row.measured, row.unit),
        against,
        "" if row.ratio is None else quantity(row.ratio, "x"),
        "" if row.best_ratio is None else quantity(row.best_ratio, "x"),
        target,
        verdict,
    ]


def in_words(row: Row) -> str:
    """A row on one line, to be read while the others are still being measured."""
    measured, against, ratio, *_ = _cells(row)
    against = f", against {against}: {ratio}" if row.against else ""
    return f"{row.name}: {measured}{against}"


def quantity(value: float, unit: str) -> str:
    """A number as people read it.

    >>> quantity(0.0123, "s"), quantity(2.5e9, "B"), quantity(1.5, "x"), quantity(2e-11, "")
    ('12.3 ms', '2.5 GB', '1.5 x', '2e-11')
    """
    steps = {
        "s": [(1, "s"), (1e-3, "ms"), (1e-6, "us")],
        "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
        "flop/s": [(1e9, "Gflop/s"), (1e6, "Mflop/s")],
    }.get(unit)
    if steps is None:
        return f"{value:.3g} {unit}".rstrip() if abs(value) < 1000 else f"{value:,.0f} {unit}"
    factor, name = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{value / factor:.3g} {name}"
