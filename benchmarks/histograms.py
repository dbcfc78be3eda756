"""Histogram kernels against the loops over pairs that SciPy and scikit-learn have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, manhattan_distances

from benchmarks.scene import Array, Scale
from benchmarks.table import Benchmark, Row, faster
from benchmarks.timing import interleaved
from knowmore.kernels import ChiSquared, HistogramIntersection

# Histograms and bins: a pyramid of three levels over 200 words.
_SIZES = {"full": (2000, 4200), "quick": (60, 420)}
_ROUNDS = 3
# scikit-learn's loops are slow: for them, this part of the histograms.
_PART = 4


def _histograms(scale: Scale, filled: float) -> Array:
    """Rows that sum to one, with the part `filled` of their bins not empty."""
    n, d = _SIZES[scale.name]
    rng = np.random.default_rng(7)
    X = rng.exponential(size=(n, d)) * (rng.random((n, d)) < filled)
    return np.asarray(X / X.sum(axis=1, keepdims=True))


def intersection(scale: Scale) -> Iterator[Row]:
    """sum min(x, y) = (|x| + |y| - |x - y|_1) / 2, which is the way with SciPy."""
    X, kernel = _histograms(scale, 0.4), HistogramIntersection()
    single = X.astype(np.float32)
    operations = {
        "cityblock": lambda: cdist(X, X, "cityblock"),
        "float64": lambda: kernel(X),
        "float32": lambda: kernel(single),
        "half": lambda: kernel(X[::2], X),
    }
    times = interleaved(_ROUNDS, operations)
    size = " x ".join(map(str, (len(X), *X.shape)))
    for dtype, at_least in {"float64": 5, "float32": 15}.items():
        name = f"intersection, {size}, {dtype}"
        yield faster(name, times[dtype], "cdist cityblock", times["cityblock"], at_least)
    yield faster(
        "intersection of the half with all, float64",
        times["half"],
        "cdist cityblock of all",
        times["cityblock"],
        None,
        note="without the symmetry, the same number of pairs",
    )


def chi_squared(scale: Scale) -> Iterator[Row]:
    X = _histograms(scale, 0.4)[::_PART]
    kernel, single = ChiSquared(), X.astype(np.float32)
    operations = {
        "scikit-learn": lambda: chi2_kernel(X),
        "float64": lambda: kernel(X),
        "float32": lambda: kernel(single),
    }
    times = interleaved(_ROUNDS, operations)
    for dtype in "float64", "float32":
        name = f"chi-squared, {len(X)} rows, {dtype}"
        yield faster(name, times[dtype], "scikit-learn", times["scikit-learn"], None)


def sparse_rows(scale: Scale) -> Iterator[Row]:
    """Few bins filled: the lists of shared bins against the same rows written out."""
    X, kernel = _histograms(scale, 0.05)[::_PART], HistogramIntersection()
    rows = sparse.csr_matrix(X)
    operations = {
        "scikit-learn": lambda: manhattan_distances(rows),
        "dense": lambda: kernel(X),
        "sparse": lambda: kernel(rows),
    }
    times = interleaved(_ROUNDS, operations)
    name = f"intersection, {len(X)} sparse rows, 5% filled"
    yield faster(name, times["sparse"], "scikit-learn", times["scikit-learn"], None)
    yield faster(name, times["sparse"], "the same rows dense", times["dense"], None)


BENCHMARKS: list[Benchmark] = [intersection, chi_squared, sparse_rows]
