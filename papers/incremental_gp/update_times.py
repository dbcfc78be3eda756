"""Fig. 2 of Lütz, Rodner and Denzler: the time to add k examples to n, against batch training.

Five ways to the same model: the batch fit by an explicit inverse (the paper's baseline) and by a
Cholesky factor; the paper's iterative and direct updates of the inverse; and the append to the
Cholesky factor. A time runs from the arrival of the examples until the coefficients of all classes
are known, kernel values included. As in the paper, the examples are pictures of Caltech-101 under
the spatial pyramid kernel; how long it takes to describe a picture is measured too. Beside them
are scikit-learn's digits, of far fewer features; they are all there is where Caltech-101 is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import final

import numpy as np
from sklearn.datasets import load_digits

from knowmore.edits import Add
from knowmore.errors import MissingData
from knowmore.examples import Examples
from knowmore.images import extract
from knowmore.kernels import AnyKernel, HistogramIntersection, corner, median_rbf
from knowmore.linalg import Cholesky, Inverse
from knowmore.models import Covariance, KernelModel, one_vs_all
from papers.arrays import Array
from papers.data import caltech101
from papers.findings import (
    Progress,
    Report,
    save_figure,
    silent,
    write_csv,
)
from papers.held_out import in_order, pyramid_steps
from papers.incremental_gp.update_times_report import (
    APPEND,
    BATCH_CHOLESKY,
    BATCH_INVERSE,
    CALTECH,
    DIGITS,
    DIRECT,
    ITERATIVE,
    Timing,
    UpdateTimes,
    draw,
    preface,
    verdicts,
)
from papers.picture_features import FINE_STEP, features
from papers.stopwatch import median_seconds, one_thread, timed

NOISE = 0.1
# Points at which scores are compared.
_QUERIES = 200
_SIZES = {CALTECH: (100, 200, 400, 800, 2000), DIGITS: (100, 200, 400, 800, 1500)}
# Pictures that the words are learnt from, and pictures whose description is timed.
_ASIDE, _DESCRIBED = 300, 20
_ADDED = (1, 10, 100, 200)
_QUICK_SIZES = {CALTECH: (50, 100), DIGITS: (50, 100)}
_QUICK_ADDED = (1, 10, 50)


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
    progress(0.0, "looking at pictures")
    sources = [_digits(rng)]
    describing = None
    with one_thread():
        with suppress(MissingData):
            pictures, describing = _caltech(rng, max(sizes[CALTECH]) + max(added))
            sources.insert(0, pictures)
        plan = [(source, n) for source in sources for n in sizes[source.name]]
        return _run(plan, added, describing, progress)


def _run(
    plan: list[tuple[_Source, int]],
    added: tuple[int, ...],
    describing: float | None,
    progress: Progress,
) -> UpdateTimes:
    # The first calls include loading, which should not be timed.
    for source, n in plan[:1] + plan[-1:]:
        _cell(source, _Start.of(source, min(n, 50)), 10)
    costs = np.cumsum([0.0] + [n**3 + source.X.shape[1] * n**2 for source, n in plan])
    timings: list[Timing] = []
    gaps = [0.0]
    for cost, (source, n) in zip(costs, plan, strict=False):
        progress(cost / costs[-1], f"{source.name}: more to {n}")
        start = _Start.of(source, n)
        for k in added:
            some, gap = _cell(source, start, k)
            timings += some
            gaps += [gap] if k == 1 else []
    return UpdateTimes(tuple(timings), max(gaps), describing)


@final
@dataclass(frozen=True, eq=False)
class _Start:
    """The state before each update: the examples held, and their models."""

    held: Examples
    iterative: KernelModel
    direct: KernelModel
    factor: KernelModel

    @classmethod
    def of(cls, source: _Source, n: int) -> _Start:
        held, kernel = source.first(n), source.kernel
        return cls(
            held,
            _ready(_inverted(kernel, held, "iterative")),
            _ready(_inverted(kernel, held, "direct")),
            _ready(KernelModel.of(kernel, NOISE, held, one_vs_all, Cholesky())),
        )


def _cell(source: _Source, start: _Start, k: int) -> tuple[list[Timing], float]:
    """All methods at one n and k, and the relative gap between the two updated inverses."""
    grown = source.more(start.held, k)
    models, seconds = {}, {}
    for method, act in _methods(source.kernel, start, grown):
        models[method], seconds[method] = timed(act)
    scores = {method: model.mean(source.queries) for method, model in models.items()}
    batch = scores[BATCH_CHOLESKY]
    timings = [
        Timing(
            source=source.name,
            n=len(start.held),
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
    kernel: AnyKernel, start: _Start, grown: Examples
) -> Iterator[tuple[str, Callable[[], KernelModel]]]:
    """Each method as something to be timed that leads to the model of `grown`."""
    yield BATCH_INVERSE, lambda: _ready(_inverted(kernel, grown, "direct"))
    yield (
        BATCH_CHOLESKY,
        lambda: _ready(KernelModel.of(kernel, NOISE, grown, one_vs_all, Cholesky())),
    )
    yield ITERATIVE, lambda: _ready(start.iterative.follow(grown))
    yield DIRECT, lambda: _ready(start.direct.follow(grown))
    yield APPEND, lambda: _ready(start.factor.follow(grown))


def _ready(model: KernelModel) -> KernelModel:
    """The model with its coefficients computed, as far as training goes."""
    _ = model.coefficients
    return model


def _inverted(kernel: AnyKernel, examples: Examples, update: str) -> KernelModel:
    """The paper's batch fit: the whole matrix, inverted at once and never refreshed."""
    K = corner(kernel, examples.X)
    K[np.diag_indices_from(K)] += NOISE
    factor = Inverse(patience=inf).append(np.empty((0, len(K))), K)
    return KernelModel.on(Covariance(kernel, NOISE, examples, factor, update=update), one_vs_all)


def _inverse_of(model: KernelModel) -> Array:
    factor = model.covariance.factor
    assert isinstance(factor, Inverse)
    return factor.P


def _digits(rng: np.random.Generator) -> _Source:
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    queries = X[rng.choice(len(X), _QUERIES, replace=False)] + rng.normal(size=(_QUERIES, 64))
    return _Source(DIGITS, X[order], y[order], queries, median_rbf(X))


def _caltech(rng: np.random.Generator, count: int) -> tuple[_Source, float]:
    """So many spatial pyramids of random pictures, and the seconds that one of them takes."""
    pictures = caltech101()
    aside, others = np.split(in_order(np.arange(len(pictures))), [_ASIDE])
    drawn = rng.permutation(others)[: count + _QUERIES]
    steps = pyramid_steps(pictures.X[aside], FINE_STEP)
    X, y = features(pictures.X[drawn], steps), pictures.labels[drawn]
    some = pictures.X[drawn[:_DESCRIBED]]
    seconds = median_seconds(lambda: extract(some, steps)) / len(some)
    return _Source(CALTECH, X[:count], y[:count], X[count:], HistogramIntersection()), seconds


def report(result: UpdateTimes, out: Path) -> Report:
    """The picture, all numbers, and a verdict on each claim."""
    numbers = write_csv(out / "update-times.csv", Timing._fields, result.timings)
    picture = save_figure(draw(result), out / "update-times.png")
    return Report(parts=(preface(result), *verdicts(result)), files=(picture, numbers))
