"""How findings are reported, drawn and written; mostly as in the demonstration of knowmore."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.padding import Padding
from rich.text import Text

from knowmore._base import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, quiet_axes, written
from knowmore.cli.experiments import (
    Progress,
    Report,
    as_time,
    new_figure,
    save_figure,
    silent,
)
from knowmore.cli.experiments import ResultTable as Table

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "Progress",
    "Report",
    "Table",
    "Verdict",
    "as_time",
    "new_figure",
    "quiet_axes",
    "save_figure",
    "silent",
    "write_csv",
]


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper, whether it holds here, and the number that says so."""

    claim: str
    holds: bool
    measured: str

    def __rich__(self) -> Padding:
        word, style = ("Holds.", "green") if self.holds else ("Does not hold here.", "red")
        text = Text.assemble(
            (self.claim, "bold"), "\n", (word, f"bold {style}"), f" Measured: {self.measured}."
        )
        return Padding(text, (0, 0, 0, 2))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table for other programs."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    with written(path) as file:
        file.write(text.getvalue().encode())
    return path
