"""Least-squares SVMs: leave-one-out against refits, and one more class against a new fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.scene import FEATURES, LENGTH, Array, Scale
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import REST, Samples, interleaved, once
from knowmore import LSSVMClassifier, NPlusOneClassifier

_KERNEL = RBF(LENGTH)
_C = 10.0


@dataclass(frozen=True)
class _Sizes:
    n: int
    classes: int
    refits: int
    compared: int
    per_class: int
    few: int
    rounds: int


_FULL = _Sizes(n=2000, classes=50, refits=4, compared=200, per_class=100, few=10, rounds=3)
_QUICK = _Sizes(n=100, classes=5, refits=2, compared=30, per_class=12, few=3, rounds=1)


def _sizes(scale: Scale) -> _Sizes:
    return _FULL if scale.name == "full" else _QUICK


def _clouds(n: int, classes: int, seed: int) -> tuple[Array, Array]:
    """Overlapping clouds: X (n, 64), and classes in turn, y (n,)."""
    centres = np.random.default_rng(1).normal(size=(classes, FEATURES))
    y = np.arange(n) % classes
    return centres[y] + np.random.default_rng(seed).normal(size=(n, FEATURES)), y


def leave_one_out(scale: Scale) -> Iterator[Row]:
    """The closed form, from a fitted model, against a refit for each example."""
    size = _sizes(scale)
    X, y = _clouds(size.n, size.classes, seed=2)
    clf = LSSVMClassifier(_KERNEL, _C).fit(X, y)
    _ = clf.model_.coefficients
    rows = np.random.default_rng(0).choice(size.n, size.refits, replace=False)

    def refit(i: int) -> Array:
        rest = np.arange(size.n) != i
        return np.asarray(LSSVMClassifier(_KERNEL, _C).fit(X[rest], y[rest]).predict(X[i : i + 1]))

    closed = Samples(tuple(once(partial(_left_out, clf)) for _ in range(2 * size.rounds)))
    refits = Samples(tuple(size.n * once(partial(refit, int(i))) for i in rows))
    yield faster(
        f"leave one out, {size.n} examples, {size.classes} classes",
        closed,
        f"{size.n} refits",
        refits,
        200,
        f"the refits are extrapolated from {size.refits}",
        n=size.n,
        classes=size.classes,
    )


def _left_out(clf: LSSVMClassifier) -> object:
    """Leave-one-out of a model that was never asked for it: nothing is remembered."""
    model = clf.model_
    factor = replace(model.covariance.factor)
    covariance = replace(model.covariance, factor=factor)
    return replace(model, covariance=covariance, head=model.half).left_out.scores()[:2]


def exactness(scale: Scale) -> Iterator[Row]:
    """The largest error of the closed form against all refits, in units of eps cond(K~)."""
    n = _sizes(scale).compared
    X, y = _clouds(n, 10, seed=3)
    weights = np.random.default_rng(4).uniform(0.5, 2, n)
    for bias in True, False:
        for name, given in ("", None), (" and weights", weights):
            clf = LSSVMClassifier(_KERNEL, _C, bias).fit(X, y, sample_weight=given)
            scores = clf.leave_one_out().scores
            error = 0.0
            for i in range(n):
                rest = np.arange(n) != i
                own = None if given is None else given[rest]
                other = LSSVMClassifier(_KERNEL, _C, bias).fit(X[rest], y[rest], sample_weight=own)
                error = max(
                    error, float(abs(other.decision_function(X[i : i + 1]) - scores[i]).max())
                )
            noises = 1 / _C if given is None else 1 / (_C * given)
            cond = float(np.linalg.cond(_KERNEL(X) + noises * np.eye(n)))
            yield Row(
                f"leave one out against {n} refits, {'bias' if bias else 'no bias'}{name}",
                error,
                "",
                "eps cond(K~)",
                float(np.finfo(float).eps) * cond,
                error / (float(np.finfo(float).eps) * cond),
                target=Target("<=", 4),
            )


def one_more_class(scale: Scale) -> Iterator[Row]:
    """N+1 from a source and a few examples of all classes, against a fit of everything."""
    size = _sizes(scale)
    N = size.classes
    X, y = _clouds((N + 1) * size.per_class, N + 1, seed=5)
    known = y < N
    few, few_y = _clouds((N + 1) * size.few, N + 1, seed=6)
    source = LSSVMClassifier(_KERNEL, _C).fit(X[known], y[known])
    source.predict(X[:1])
    both, both_y = np.vstack([X[known], few]), np.append(y[known], few_y)
    question = X[:1]
    times = interleaved(
        size.rounds,
        {
            "transfer": lambda: (
                NPlusOneClassifier(source, _KERNEL, _C).fit(few, few_y).predict(question)
            ),
            "refit": lambda: LSSVMClassifier(_KERNEL, _C).fit(both, both_y).predict(question),
        },
        rest=REST,
    )
    facts: dict[str, Any] = {"classes": N, "few": len(few), "all": len(both)}
    yield faster(
        f"class {N + 1} by transfer, {size.few} examples a class",
        times["transfer"],
        f"fit of all {len(both)} examples",
        times["refit"],
        None,
        "leave-one-out, beta and a prediction included",
        **facts,
    )
    found = NPlusOneClassifier(source, _KERNEL, _C).fit(few, few_y).model_.minimum
    yield Row(
        f"loss of beta (N = {N}): certified gap",
        found.gap / found.value,
        "",
        target=Target("<=", 1e-6),
        note="relative; a lower bound of the least loss comes with every beta",
    )


BENCHMARKS: list[Benchmark] = [leave_one_out, exactness, one_more_class]
