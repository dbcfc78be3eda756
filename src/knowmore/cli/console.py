"""Reports on the terminal. Colours and bars vanish by themselves where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from knowmore.experiments import findings


@contextmanager
def watched() -> Iterator[findings.Progress]:
    """A progress bar on stderr, so that the report alone is on stdout."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def progress(share: float, step: str) -> None:
            bar.update(task, completed=share, description=step)

        yield progress


def tell(report: findings.Report) -> None:
    """Print a report: its parts in order, then where the files are."""
    console = Console(highlight=False)
    for part in report.parts:
        console.print()
        match part:
            case str():
                console.print(Text(part))
            case findings.Table():
                console.print(_table(part))
            case findings.Verdict():
                console.print(_verdict(part))
            case _:
                assert_never(part)
    console.print()
    for path in report.files:
        # Unwrapped, so that a long path can be copied.
        console.print(Text(f"Written: {path}"), soft_wrap=True)


def _table(table: findings.Table) -> RichTable:
    drawn = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in table.header:
        drawn.add_column(name, justify="right")
    for row in table.rows:
        drawn.add_row(*row)
    return drawn


def _verdict(verdict: findings.Verdict) -> Padding:
    word, style = ("Holds.", "bold green") if verdict.holds else ("Does not hold here.", "bold red")
    text = Text.assemble(
        (verdict.claim, "bold"), "\n", (word, style), f" Measured: {verdict.measured}."
    )
    return Padding(text, (0, 0, 0, 2))
