"""Many questions at once, against what BLAS and LAPACK take for the same arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.linalg import blas, lapack

from benchmarks.scene import Scale, classifier, data, facts, triangle
from benchmarks.table import Benchmark, Row, faster, slower
from benchmarks.timing import REST, interleaved
from knowmore.models import KernelModel


def questions(scale: Scale) -> Iterator[Row]:
    n, m = scale.n, scale.bulk
    model, L = classifier(n).model_, triangle(n)
    X, Q, A = model.examples.X, data(m, seed=7)[0], model.coefficients
    B = np.asfortranarray(np.random.default_rng(4).normal(size=(n, m)))
    operations = {
        "gemm": lambda: (Q @ X.T) @ A,
        "scores": lambda: model.mean(Q),
        "dtrsm": lambda: blas.dtrsm(1.0, L, B, lower=1),
        "variance": lambda: model.variance(Q),
    }
    times = interleaved(scale.fit_rounds, operations, rest=REST)
    scores = f"decision_function of {m} rows"
    yield slower(scores, times["scores"], "its two products", times["gemm"], None, **facts(n))
    variance = f"predict_variance of {m} rows"
    yield faster(variance, times["variance"], "dtrsm", times["dtrsm"], 0.7, **facts(n))


def leaving_out(scale: Scale) -> Iterator[Row]:
    n = scale.n
    model, L = classifier(n).model_, triangle(n)

    def left_out() -> object:
        # A factor remembers the diagonal of its inverse: each time a new one that shares its rows.
        factor = replace(model.covariance.factor)
        covariance = replace(model.covariance, factor=factor)
        fresh = KernelModel.on(covariance, model.coding)
        return fresh.left_out.scores()

    operations = {"dtrtri": lambda: lapack.dtrtri(L, lower=1), "left out": left_out}
    times = interleaved(scale.fit_rounds, operations, rest=REST)
    yield slower("leave_one_out", times["left out"], "dtrtri", times["dtrtri"], 1.5, **facts(n))


BENCHMARKS: list[Benchmark] = [questions, leaving_out]
