"""How findings are said, drawn and written down, as the demonstration of knowmore has them too."""

from knowmore.cli.reports import (
    Experiment,
    Progress,
    Report,
    Table,
    Verdict,
    as_time,
    new_figure,
    save_figure,
    silent,
    write_csv,
)
from knowmore.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, quiet_axes

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "Experiment",
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
