"""How the findings of an experiment, such as the demonstration, are said, drawn and written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from knowmore.extras import require
from knowmore.files import written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Called with the share that is done and what comes next.
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper, whether it holds here, and the number that says so."""

    claim: str
    holds: bool
    measured: str


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers as they are to be read."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    """What is told at the end: sentences, tables and verdicts in order, and the files written."""

    parts: tuple[str | Table | Verdict, ...]
    files: tuple[Path, ...]


class Experiment(Protocol):
    """What a module offers that computes something and tells what it found."""

    def run(self, *, seed: int, quick: bool, progress: Progress) -> Any:
        """Compute the result, a frozen value; write and print nothing."""

    def report(self, result: Any, out: Path) -> Report:
        """Draw and write the result into the folder `out`, and put it into words."""


def silent(share: float, step: str) -> None:
    """Progress that nobody watches."""


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table for other programs."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    with written(path) as file:
        file.write(text.getvalue().encode())
    return path


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, outside pyplot and so without any global state."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as PNG."""
    with written(path) as file:
        figure.savefig(file, format="png")
    return path


def as_time(seconds: float) -> str:
    """Seconds with two digits and a unit that suits them.

    >>> as_time(0.00123), as_time(0.0456), as_time(7.89), as_time(456)
    ('1.2 ms', '46 ms', '7.9 s', '456 s')
    """
    value, unit = (seconds * 1e3, "ms") if seconds < 1 else (seconds, "s")
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
