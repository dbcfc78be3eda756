"""Matrices that grow and shrink. NumPy and SciPy only; no word of machine learning."""

from importlib import import_module
from typing import Any

from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.counting import padded as padded
from knowmore.linalg.counting import trimmed as trimmed
from knowmore.linalg.earlier import Earlier as Earlier
from knowmore.linalg.factor import Border, Factor
from knowmore.linalg.factor import lost_pivots as lost_pivots
from knowmore.linalg.factor import probes as probes
from knowmore.linalg.grid import LAYOUTS as LAYOUTS
from knowmore.linalg.grid import Grid
from knowmore.linalg.inverse import Inverse
from knowmore.linalg.panels import PANEL as PANEL
from knowmore.linalg.panels import Panel as Panel
from knowmore.linalg.products import eigh as eigh
from knowmore.linalg.products import evaluated as evaluated
from knowmore.linalg.products import product as product
from knowmore.linalg.products import svd as svd
from knowmore.linalg.sketch import Sketch as Sketch
from knowmore.linalg.sums import FEWER_COLUMNS as FEWER_COLUMNS
from knowmore.linalg.sums import LOG_UNIT as LOG_UNIT
from knowmore.linalg.sums import MANY_BYTES as MANY_BYTES
from knowmore.linalg.sums import NO_ROWS as NO_ROWS
from knowmore.linalg.sums import Group as Group
from knowmore.linalg.sums import Sums
from knowmore.linalg.sums import in_units as in_units
from knowmore.linalg.tables import BLOCK as BLOCK
from knowmore.linalg.tables import LARGEST as LARGEST
from knowmore.linalg.tables import blocks as blocks
from knowmore.linalg.tables import extremes as extremes
from knowmore.linalg.tasks import Ended as Ended
from knowmore.linalg.tasks import in_turn as in_turn
from knowmore.linalg.tasks import one_thread as one_thread
from knowmore.linalg.tasks import side_by_side as side_by_side
from knowmore.linalg.tasks import workers as workers
from knowmore.linalg.threads import threads_for as threads_for
from knowmore.linalg.totals import UNIT as UNIT
from knowmore.linalg.totals import WORDS as WORDS

__all__ = ["Border", "Cholesky", "Factor", "Grid", "Inverse", "Sums"]

# Names that were here before; they stay importable from here.
_MOVED = {"Eigenspace": "knowmore.subspaces", "Truncation": "knowmore.subspaces"}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MOVED[name]), name)
