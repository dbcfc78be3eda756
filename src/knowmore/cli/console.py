"""Reports on the terminal. Colours and bars vanish by themselves where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import assert_never, cast

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from knowmore.cli import reports
from knowmore.extras import require
from knowmore.files import check_folder


def present(module: str, out: Path, seed: int, quick: bool) -> None:
    """Run the experiment in a module under a progress bar, and tell what it found."""
    # Before the work, not after it.
    require("matplotlib", "plots")
    check_folder(out)
    experiment = cast(reports.Experiment, import_module(module))
    with watched() as progress:
        result = experiment.run(seed=seed, quick=quick, progress=progress)
        progress(1.0, "drawing")
        report = experiment.report(result, out)
    tell(report)


@contextmanager
def watched() -> Iterator[reports.Progress]:
    """A progress bar on stderr, so that the report alone is on stdout."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def progress(share: float, step: str) -> None:
            bar.update(task, completed=share, description=step)

        yield progress


def tell(report: reports.Report) -> None:
    """Print a report: its parts in order, then where the files are."""
    console = Console(highlight=False)
    for part in report.parts:
        console.print()
        match part:
            case str():
                console.print(Text(part))
            case reports.Table():
                console.print(_table(part))
            case reports.Verdict():
                console.print(_verdict(part))
            case _:
                assert_never(part)
    console.print()
    for path in report.files:
        # Unwrapped, so that a long path can be copied.
        console.print(Text(f"Written: {path}"), soft_wrap=True)


def _table(table: reports.Table) -> RichTable:
    drawn = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in table.header:
        drawn.add_column(name, justify="right")
    for row in table.rows:
        drawn.add_row(*row)
    return drawn


def _verdict(verdict: reports.Verdict) -> Padding:
    word, style = ("Holds.", "bold green") if verdict.holds else ("Does not hold here.", "bold red")
    text = Text.assemble(
        (verdict.claim, "bold"), "\n", (word, style), f" Measured: {verdict.measured}."
    )
    return Padding(text, (0, 0, 0, 2))
