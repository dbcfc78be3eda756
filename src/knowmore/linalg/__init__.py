"""Matrices that grow and shrink. NumPy and SciPy only; no word of machine learning."""

from importlib import import_module
from typing import Any

from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.counting import padded, trimmed
from knowmore.linalg.earlier import Earlier
from knowmore.linalg.factor import Border, Factor, eliminated, lost_pivots, probes
from knowmore.linalg.grid import LAYOUTS, Grid
from knowmore.linalg.inverse import Inverse
from knowmore.linalg.panels import PANEL, Panel
from knowmore.linalg.products import eigh, evaluated, product, svd
from knowmore.linalg.sketch import Sketch
from knowmore.linalg.sums import LOG_UNIT, NO_ROWS, Group, Sums
from knowmore.linalg.tables import BLOCK, LARGEST, blocks, extremes
from knowmore.linalg.tasks import Ended, in_turn, one_thread, side_by_side, workers
from knowmore.linalg.threads import threads_for
from knowmore.linalg.totals import FEWER_COLUMNS, MANY_BYTES, UNIT, WORDS, in_units

__all__ = ["Border", "Cholesky", "Factor", "Grid", "Inverse", "Sums"]

# Names that were here before; they stay importable from here.
_MOVED = {"Eigenspace": "knowmore.subspaces", "Truncation": "knowmore.subspaces"}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MOVED[name]), name)
