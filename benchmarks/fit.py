"""A fit from scratch, its kernel included, against LAPACK: one dpotrf and one product X X'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import DotProduct, Matern

from benchmarks.scene import LENGTH, NOISE, Array, Scale, data, kernel
from benchmarks.table import Benchmark, Row, slower
from benchmarks.timing import REST, Samples, interleaved
from knowmore import GPClassifier
from knowmore.kernels import HistogramIntersection, corner

_KERNELS = {
    "RBF": kernel(),
    "Matern": Matern(LENGTH, nu=1.5),
    "dot product": DotProduct(),
    "histogram intersection": HistogramIntersection(),
}


def fits(scale: Scale) -> Iterator[Row]:
    for n in scale.fits:
        X, y = data(n)
        # Histograms are not negative.
        X = abs(X)
        A = np.asfortranarray(corner(kernel(), X) + NOISE * np.eye(n))
        operations: dict[str, Any] = {
            "dpotrf": lambda A=A: lapack.dpotrf(A, lower=1),
            "gemm": lambda X=X: X @ X.T,
        }
        operations |= {
            name: lambda one=one, X=X, y=y: _fitted(one, X, y) for name, one in _KERNELS.items()
        }
        times = interleaved(scale.fit_rounds, operations, rest=REST)
        pairs = zip(times["dpotrf"].seconds, times["gemm"].seconds, strict=True)
        floor = Samples(tuple(map(sum, pairs)))
        bound = 1.4 if n == max(scale.fits) else None
        for name in _KERNELS:
            yield slower(f"fit, n = {n}, {name}", times[name], "dpotrf + gemm", floor, bound, n=n)


def _fitted(one: Any, X: Array, y: Array) -> object:
    return GPClassifier(one, NOISE).fit(X, y).model_


BENCHMARKS: list[Benchmark] = [fits]
