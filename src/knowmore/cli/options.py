"""The options that the demonstration and the experiments of the papers share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[
    Path,
    typer.Option(help="Folder for pictures and tables; made if it is missing.", file_okay=False),
]
# As far as NumPy's older generators go, which scikit-learn uses.
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0, max=2**32 - 1)]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, to see that it works.")]
