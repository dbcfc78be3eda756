"""Histogram intersection: least squares against the hinge on the same kernel values."""

from __future__ import annotations

from functools import partial

from knowmore import GPClassifier
from knowmore.kernels import HistogramIntersection, corner, cross
from papers.arrays import Array
from papers.findings import Progress, silent
from papers.practice.recognition import TASKS, compared
from papers.practice.rows import Found, attempted
from papers.practice.tables import BAGS, PYRAMIDS


def measure(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Found:
    """Pyramids and bags of words of the Fifteen Scenes and of Caltech-101, five splits."""
    found: Found = []
    settings = [(task, feature) for task in TASKS[:2] for feature in (PYRAMIDS, BAGS)]
    make = partial(GPClassifier, HistogramIntersection())
    for i, (task, feature) in enumerate(settings):
        where = f"intersection, {task.source}, {feature}, {task.learnt} a class"
        progress(i / len(settings), where)
        rows = partial(compared, "intersection", task, feature, make, _values, seed, quick)
        found += attempted(where, rows)
    return found


def _values(X: Array, Z: Array) -> tuple[Array, Array]:
    kernel = HistogramIntersection()
    return corner(kernel, X).astype(float), cross(kernel, Z, X).astype(float)
