"""Against what others offer for the same job, in the same run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor

from benchmarks import gpytorch_peer
from benchmarks.scene import NOISE, Array, Scale, adding, classifier, data, facts, kernel, stream
from benchmarks.table import Benchmark, Row, faster
from benchmarks.timing import REST, interleaved
from knowmore.edits import Add
from knowmore.linalg import Factor, Inverse
from knowmore.models import KernelModel, matrix_rows

_ADDS = 15


def regressor(scale: Scale) -> Iterator[Row]:
    """scikit-learn's GaussianProcessRegressor has no other way than to fit again."""
    n = scale.n
    X, y = data(n)
    T = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    peer = GaussianProcessRegressor(kernel(), alpha=NOISE, optimizer=None)
    operations = {
        "refit": lambda: peer.fit(X, T),
        "add": adding(classifier(n)),
        "ask": adding(classifier(n), ask=True),
    }
    times = interleaved(2, operations, times={"add": _ADDS, "ask": _ADDS}, rest=REST, warm=0)
    yield faster("add one", times["add"], "scikit-learn GPR refit", times["refit"], 500, **facts(n))
    yield faster(
        "add one, ask one", times["ask"], "scikit-learn GPR refit", times["refit"], None, **facts(n)
    )


def laplace(scale: Scale) -> Iterator[Row]:
    """scikit-learn's GaussianProcessClassifier: ten Laplace approximations, one-vs-rest."""
    n = scale.laplace
    X, y = data(n)
    peer = GaussianProcessClassifier(kernel(), optimizer=None, multi_class="one_vs_rest")
    operations = {"refit": lambda: peer.fit(X, y), "add": adding(classifier(n))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        times = interleaved(1, operations, times={"add": 5 * _ADDS}, rest=REST, warm=0)
    yield faster(
        f"add one, n = {n}",
        times["add"],
        "scikit-learn GPC refit",
        times["refit"],
        1000,
        **facts(n),
    )


def woodbury(scale: Scale) -> Iterator[Row]:
    """The papers' own update of an explicit inverse, and coefficients for the next question."""
    for n in scale.woodbury:
        ours = classifier(n).model_
        K = np.vstack([rows for _, rows in matrix_rows(ours.covariance)])
        inverse = Inverse(patience=np.inf).append(np.empty((0, n)), K)
        ways: list[tuple[str, int]] = [("direct", 1), ("direct", scale.block)]
        # k updates of rank 2 each rewrite the whole inverse: minutes at the largest size.
        if n == min(scale.woodbury):
            ways.append(("iterative", scale.block))
        for update, k in ways:
            papers = _with_factor(ours, inverse, update)
            operations = {"ours": _growing(ours, k), "papers": _growing(papers, k)}
            times = interleaved(3, operations, rest=REST)
            yield faster(
                f"add {k}, n = {n}",
                times["ours"],
                f"Woodbury, {update}",
                times["papers"],
                None,
                **facts(n),
            )


def _with_factor(gp: KernelModel, factor: Factor, update: str) -> KernelModel:
    covariance = replace(gp.covariance, factor=factor, update=update)
    return replace(gp, covariance=covariance, head=gp.head[:0])


def _growing(gp: KernelModel, k: int) -> Callable[[], object]:
    more = stream(11, k)

    def add() -> Array:
        nonlocal gp
        gp = gp.follow(gp.examples.apply(Add(*next(more))))
        return gp.coefficients

    return add


def fantasy(scale: Scale) -> Iterator[Row]:
    """GPyTorch's get_fantasy_model."""
    if find_spec("torch") is None or find_spec("gpytorch") is None:
        yield Row("add one: GPyTorch", note='not installed: pip install ".[bench]"')
        return
    yield from gpytorch_peer.fantasy(scale)


BENCHMARKS: list[Benchmark] = [regressor, laplace, woodbury, fantasy]
