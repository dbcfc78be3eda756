"""Fig. 2 of Lütz, Rodner and Denzler: the time to add k examples to n, against batch training.

Five ways to the same model: the batch fit by an explicit inverse (the paper's baseline) and by a
Cholesky factor; the paper's iterative and direct updates of the inverse; and the append to the
Cholesky factor. A time runs from the arrival of the examples until the coefficients of all classes
are known, kernel values included. The paper used Caltech-101 with spatial pyramids; here they are
scikit-learn's digits and synthetic features of the same dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from knowmore.edits import Add
from knowmore.examples import Examples
from knowmore.experiments.findings import (
    Progress,
    Report,
    save_figure,
    silent,
    write_csv,
)
from knowmore.experiments.stopwatch import one_thread, timed
from knowmore.experiments.update_times_report import (
    APPEND,
    BATCH_CHOLESKY,
    BATCH_INVERSE,
    DIRECT,
    ITERATIVE,
    Timing,
    draw,
    preface,
    verdicts,
)
from knowmore.kernels import AnyKernel, corner, median_rbf
from knowmore.linalg import Cholesky, Inverse
from knowmore.linalg.factor import Update
from knowmore.models import GP, Covariance, one_vs_all

Array = npt.NDArray[Any]

NOISE = 0.1
# Points at which scores are compared.
_QUERIES = 200
_SIZES = {"digits": (100, 200, 400, 800, 1500), "synthetic": (100, 200, 400, 800, 2000)}
_ADDED = (1, 10, 100, 200)
_QUICK_SIZES = {"digits": (50, 100), "synthetic": (50, 100)}
_QUICK_ADDED = (1, 10, 50)


@final
@dataclass(frozen=True)
class UpdateTimes:
    """All timings, and how far the two updated inverses are apart at k = 1, relative to them."""

    timings: tuple[Timing, ...]
    inverse_gap: float


@final
@dataclass(frozen=True, eq=False)
class _Source:
    """Examples in the order of their arrival, and points to compare scores at."""

    name: str
    X: Array
    y: Array
    queries: Array
    kernel: AnyKernel

    def first(self, n: int) -> Examples:
        return Examples.of(self.X[:n], self.y[:n])

    def more(self, held: Examples, k: int) -> Examples:
        n = len(held)
        return held.apply(Add(self.X[n : n + k], self.y[n : n + k]))


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> UpdateTimes:
    """Take all times, on one thread; `quick` stays with few examples."""
    rng = np.random.default_rng(seed)
    sizes, added = (_QUICK_SIZES, _QUICK_ADDED) if quick else (_SIZES, _ADDED)
    cells = [
        (source, n, k)
        for source in (_digits(rng), _synthetic(rng))
        for n in sizes[source.name]
        for k in added
    ]
    with one_thread():
        return _run(cells, progress)


def _run(cells: list[tuple[_Source, int, int]], progress: Progress) -> UpdateTimes:
    # The first calls pay for loading; that is not what is to be measured.
    _cell(cells[0][0], 50, 10)
    costs = np.cumsum([0.0] + [(n + k) ** 3 + 20 * k * (n + k) ** 2 for _, n, k in cells])
    timings: list[Timing] = []
    gaps = [0.0]
    for cost, (source, n, k) in zip(costs, cells, strict=False):
        progress(cost / costs[-1], f"{source.name}: {k} more to {n}")
        some, gap = _cell(source, n, k)
        timings += some
        gaps += [gap] if k == 1 else []
    return UpdateTimes(tuple(timings), max(gaps))


def _cell(source: _Source, n: int, k: int) -> tuple[list[Timing], float]:
    """All methods at one n and k, and the relative gap between the two updated inverses."""
    held = source.first(n)
    grown = source.more(held, k)
    models, seconds = {}, {}
    for method, act in _methods(source.kernel, held, grown):
        models[method], seconds[method] = timed(act)
    scores = {method: model.mean(source.queries) for method, model in models.items()}
    batch = scores[BATCH_CHOLESKY]
    timings = [
        Timing(
            source=source.name,
            n=n,
            k=k,
            method=method,
            seconds=seconds[method],
            difference=float(abs(S - batch).max()),
            changed=int((S.argmax(axis=1) != batch.argmax(axis=1)).sum()),
            asked=len(S),
        )
        for method, S in scores.items()
    ]
    P, Q = (_inverse_of(models[method]) for method in (DIRECT, ITERATIVE))
    return timings, float(abs(P - Q).max() / abs(P).max())


def _methods(
    kernel: AnyKernel, held: Examples, grown: Examples
) -> Iterator[tuple[str, Callable[[], GP]]]:
    """Each method as something to be timed that leads to the model of `grown`."""
    yield BATCH_INVERSE, lambda: _ready(_inverted(kernel, grown, "direct"))
    yield BATCH_CHOLESKY, lambda: _ready(GP.of(kernel, NOISE, grown, one_vs_all, Cholesky()))
    iterative = _ready(_inverted(kernel, held, "iterative"))
    yield ITERATIVE, lambda: _ready(iterative.follow(grown))
    direct = _ready(_inverted(kernel, held, "direct"))
    yield DIRECT, lambda: _ready(direct.follow(grown))
    factor = _ready(GP.of(kernel, NOISE, held, one_vs_all, Cholesky()))
    yield APPEND, lambda: _ready(factor.follow(grown))


def _ready(model: GP) -> GP:
    """The model with its coefficients computed, as far as training goes."""
    _ = model.coefficients
    return model


def _inverted(kernel: AnyKernel, examples: Examples, update: Update) -> GP:
    """The paper's batch fit: the whole matrix, inverted at once and never refreshed."""
    K = corner(kernel, examples.X)
    K[np.diag_indices_from(K)] += NOISE
    factor = Inverse(update=update, patience=inf).append(np.empty((0, len(K))), K)
    targets = one_vs_all(examples.labels)
    covariance = Covariance(kernel, NOISE, examples, factor)
    return GP(covariance, one_vs_all, targets, targets.basis[:0])


def _inverse_of(model: GP) -> Array:
    factor = model.covariance.factor
    assert isinstance(factor, Inverse)
    return factor.P


def _digits(rng: np.random.Generator) -> _Source:
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    queries = X[rng.choice(len(X), _QUERIES, replace=False)] + rng.normal(size=(_QUERIES, 64))
    return _Source("digits", X[order], y[order], queries, median_rbf(X))


def _synthetic(rng: np.random.Generator) -> _Source:
    """Ten Gaussian clouds in 64 dimensions."""
    count = max(_SIZES["synthetic"]) + max(_ADDED)
    centres = rng.normal(size=(10, 64))
    y = rng.integers(10, size=count + _QUERIES)
    X = centres[y] + rng.normal(size=(len(y), 64))
    return _Source("synthetic", X[:count], y[:count], X[count:], median_rbf(X[:count]))


def report(result: UpdateTimes, out: Path) -> Report:
    """The picture, all numbers, and a verdict on each claim."""
    numbers = write_csv(
        out / "update-times.csv",
        ("source", "n", "k", "method", "seconds", "difference", "changed", "asked"),
        [
            (t.source, t.n, t.k, t.method, t.seconds, t.difference, t.changed, t.asked)
            for t in result.timings
        ],
    )
    picture = save_figure(draw(result.timings), out / "update-times.png")
    claims = verdicts(result.timings, result.inverse_gap)
    return Report(parts=(preface(result.timings), *claims), files=(picture, numbers))
