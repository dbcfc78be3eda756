"""Choosing among support tasks: every rho from one decomposition, against a factor for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.scene import Array, Scale
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import Samples, interleaved
from knowmore.examples import Examples
from knowmore.linalg import Cholesky
from knowmore.models import Covariance, KernelModel, one_vs_all
from knowmore.transfer import OneShot, Rule, Support
from knowmore.transfer.choice import CRITERIA, RHOS, Best, average_precision, golden, grid
from knowmore.transfer.pairs import Pair

_KERNEL = RBF(5.0)
_NOISE = 1e-3
_SECONDS = 0.3


@dataclass(frozen=True)
class _Size:
    supports: int
    target: int
    support: int
    rounds: int


_SIZES = {"full": _Size(100, 201, 30, 7), "quick": _Size(4, 41, 8, 2)}


@dataclass(frozen=True)
class _Tasks:
    """A target with one positive example, supports, and kernel values K (n_T, n_T), C of each."""

    examples: Examples
    supports: tuple[Support, ...]
    K: Array
    C: tuple[Array, ...]

    @property
    def y(self) -> Array:
        return self.examples.labels

    def target(self) -> KernelModel:
        """The model of the target; its kernel values are known."""
        K = self.K + _NOISE * np.eye(len(self.K))
        factor = Cholesky().append(np.empty((0, len(K))), K)
        return KernelModel.on(Covariance(_KERNEL, _NOISE, self.examples, factor), one_vs_all)

    def models(self) -> list[KernelModel]:
        """The models of the supports."""
        return [support.model(_NOISE, one_vs_all) for support in self.supports]


def _tasks(size: _Size) -> _Tasks:
    """Clouds in 16 dimensions, each around its own centre."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(size.target, 16))
    y = np.where(np.arange(size.target) == 0, 1.0, -1.0)
    clouds = [
        rng.normal(size=(size.support, 16)) + 0.5 * rng.normal(size=16)
        for _ in range(size.supports)
    ]
    supports = tuple(Support.of(_KERNEL, str(i), Z) for i, Z in enumerate(clouds))
    C = tuple(_KERNEL(X, Z) for Z in clouds)
    return _Tasks(Examples.of(X, y), supports, _KERNEL(X), C)


def _pairs(tasks: _Tasks, models: list[KernelModel]) -> Iterator[Pair]:
    """The target factorised once, and paired with each support."""
    target = tasks.target()
    for model, C in zip(models, tasks.C, strict=True):
        yield Pair.of(target, model, C, positive=1)


def _chosen(tasks: _Tasks, models: list[KernelModel], name: str = "ap") -> list[Best]:
    """Each support's best rho."""
    return [grid(pair, CRITERIA[name]) for pair in _pairs(tasks, models)]


def _fresh(tasks: _Tasks, name: str = "ap") -> list[Best]:
    """The choices with fresh factors of the supports, which may be kept for other targets."""
    return _chosen(tasks, tasks.models(), name)


def _refactorised(tasks: _Tasks, which: int) -> Array:
    """The leave-one-out means for each rho with a separate factor and inverse from LAPACK."""
    C, B = tasks.C[which], tasks.supports[which].K
    n, count = C.shape
    y = np.concatenate([tasks.y, np.ones(count)])
    K = np.block([[tasks.K, C], [C.T, B]])
    K.flat[:: len(K) + 1] += _NOISE
    means = np.empty((len(RHOS), n))
    with threadpool_limits(1, user_api="blas"):
        for g, rho in enumerate(RHOS):
            K[:n, n:], K[n:, :n] = rho * C, rho * C.T
            L, _ = lapack.dpotrf(K.T, lower=1, clean=0)
            a, _ = lapack.dpotrs(L, y, lower=1)
            P, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
            means[g] = tasks.y - a[:n] / np.diagonal(P)[:n]
    return means


def _naive(tasks: _Tasks, which: int) -> int:
    """The grid's best by these means, without a look at ties."""
    return int(average_precision(tasks.y, _refactorised(tasks, which)).argmax())


def choice(scale: Scale) -> Iterator[Row]:
    """All supports and all rho; the peer does one support, and is multiplied."""
    size = _SIZES[scale.name]
    tasks = _tasks(size)
    kept = tasks.models()
    operations = {
        "fresh": partial(_fresh, tasks),
        "kept": partial(_chosen, tasks, kept),
        "refactorised": partial(_naive, tasks, 0),
    }
    times = interleaved(size.rounds, operations)
    all_ = Samples(tuple(size.supports * one for one in times["refactorised"].seconds))
    of = f"{size.supports} supports of {size.support}, target of {size.target}, {len(RHOS)} rho"
    facts = vars(size) | {"rhos": len(RHOS), "measured": times["fresh"].raw()}
    yield Row(
        "choose by average precision",
        times["fresh"].median,
        target=Target("<=", _SECONDS),
        note=f"{of}; the fastest run {times['fresh'].best:.3f} s",
        raw=facts,
    )
    for name, at_least in {"fresh": 50, "kept": None}.items():
        factors = "factors of supports kept" if name == "kept" else "all factors made"
        yield faster(
            f"choose by average precision, {factors}",
            times[name],
            "a factor for each rho",
            all_,
            at_least,
            "one support, times their number",
            **vars(size),
        )
    yield from _error(tasks)


def _error(tasks: _Tasks) -> Iterator[Row]:
    """How far the means are from those with a separate factor, for the first support."""
    C, B = tasks.C[0], tasks.supports[0].K
    mean, _ = next(_pairs(tasks, tasks.models())).leave_one_out(RHOS)
    whole = np.block([[tasks.K, C], [C.T, B]]) + _NOISE * np.eye(sum(C.shape))
    condition = float(np.linalg.cond(whole))
    error = float(abs(mean - _refactorised(tasks, 0)).max())
    yield Row(
        "leave-one-out means: scaled difference from those of a factor for each rho",
        error / (float(np.finfo(float).eps) * condition),
        "",
        target=Target("<=", 4),
        note=f"in units of eps cond(K), cond(K) = {condition:.1e}; the largest is {error:.1e}",
    )


def criteria(scale: Scale) -> Iterator[Row]:
    """The other criteria, golden section, the noise, and all of it by default."""
    size = _SIZES[scale.name]
    tasks = _tasks(size)
    pairs = list(_pairs(tasks, tasks.models()))
    operations = {name: partial(_fresh, tasks, name) for name in CRITERIA if name != "ap"}
    times = interleaved(
        min(size.rounds, 3),
        {
            **operations,
            "golden": lambda: [golden(pair, CRITERIA["ap"]) for pair in pairs],
            "noise": lambda: OneShot.of(
                _KERNEL, tasks.examples, tasks.supports, rule=Rule(noise="adaptive")
            ),
            "default": lambda: OneShot.of(_KERNEL, tasks.examples, tasks.supports).members,
        },
    )
    for name in operations:
        yield Row(f"choose by {name}", times[name].median, raw=times[name].raw())
    default = times["default"]
    name = "learn as by default, kernel values and the models that answer included"
    yield Row(name, default.median, target=Target("<=", _SECONDS), raw=default.raw())
    name = "golden section by average precision, pairs kept"
    yield Row(name, times["golden"].median, raw=times["golden"].raw())
    name = f"adaptive noise for {size.supports} supports"
    yield Row(name, times["noise"].median, raw=times["noise"].raw())


BENCHMARKS: list[Benchmark] = [choice, criteria]
