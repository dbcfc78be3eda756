"""Timing, drawing and reporting for the demonstration and the experiments of the papers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from rich import box
from rich.console import Console, RichCast
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table as RichTable
from threadpoolctl import threadpool_limits

from knowmore._base import check_folder, optional, require, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

# The width of lines that nobody sees on a terminal.
_UNBOUNDED = 10_000

# Called with the share that is done and the name of the next step.
Progress = Callable[[float, str], None]

# Within `with one_thread():` BLAS runs on one thread. OpenBLAS threads wait for each other by
# spinning: while another program used one of two cores, a solve on two threads was measured to take
# fifty times as long as on one.
one_thread = partial(threadpool_limits, limits=1, user_api="blas")


class ResultTable(NamedTuple):
    """A table to print; numbers are already formatted."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __rich__(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left", box=box.SIMPLE_HEAD)
        for name in self.header:
            table.add_column(name, justify="right")
        for row in self.rows:
            table.add_row(*row)
        return table


class Report(NamedTuple):
    """Paragraphs and objects for rich to print in order, the files written, and commands to try."""

    parts: tuple[str | RichCast, ...]
    files: tuple[Path, ...]
    commands: tuple[str, ...] = ()


def present(module: str, out: Path, seed: int, quick: bool) -> None:
    """Run the experiment in a module under a progress bar, and print its report.

    The module has run(seed=, quick=, progress=), which computes a frozen result and writes or
    prints nothing, and report(result, out), which writes files into the folder `out` and returns a
    `Report`.
    """
    # These fail before the work, not after it.
    require("matplotlib", "plots")
    check_folder(out)
    experiment = import_module(module)
    with progress_bar() as progress:
        result = experiment.run(seed=seed, quick=quick, progress=progress)
        progress(1.0, "drawing")
        report: Report = experiment.report(result, out)
    # What is no terminal has no width: lines stay whole.
    width = None if sys.stdout.isatty() else _UNBOUNDED
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    for part in report.parts:
        console.print()
        console.print(part)
    console.print()
    for path in report.files:
        # Unwrapped, so that a long path can be copied.
        print(f"Written: {path}")
    if report.commands:
        print("\nTry next:")
    for command in report.commands:
        print(f"  {command}")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on stderr, so that stdout has only the report."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with ProgressBar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda share, step: bar.update(task, completed=share, description=step)


def silent(share: float, step: str) -> None:
    """Show no progress."""


def timed(act: Callable[[], T], repeats: int = 5, patience: float = 1.0) -> tuple[T, float]:
    """The result of `act` and its median time in seconds.

    It runs `repeats` times, or as often as `patience` seconds allow, but at least three times: the
    median of three survives one disturbance by other programs.
    """
    times: list[float] = []
    while len(times) < 3 or (len(times) < repeats and sum(times) < patience):
        begin = perf_counter()
        result = act()
        times.append(perf_counter() - begin)
    return result, median(times)


def as_time(seconds: float) -> str:
    """Seconds with two digits and a suitable unit.

    >>> as_time(0.00123), as_time(0.0456), as_time(7.89), as_time(456)
    ('1.2 ms', '46 ms', '7.9 s', '456 s')
    """
    value, unit = (seconds * 1e3, "ms") if seconds < 1 else (seconds, "s")
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, without pyplot and its global state."""
    create = optional("matplotlib.figure", "plots").Figure
    return cast("Figure", create(figsize=(width, height), dpi=150, layout="constrained"))


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as PNG."""
    with written(path) as file:
        figure.savefig(file, format="png")
    return path
