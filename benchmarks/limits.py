"""Against the machine: memory speed (one triangular solve) and arithmetic (dgemm)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest import mock

import numpy as np
from scipy.linalg import blas

from benchmarks.scene import Array, Scale, adding, classifier, data, facts, stream, triangle
from benchmarks.table import Benchmark, Row, Target, slower
from benchmarks.timing import REST, Samples, interleaved
from knowmore import GPClassifier
from knowmore.linalg import Cholesky


def one(scale: Scale) -> Iterator[Row]:
    """Add one, remove one at random: n stays the same."""
    clf, n = classifier(scale.n), scale.n
    L, b = triangle(n), np.random.default_rng(4).normal(size=n)
    rng, ids = np.random.default_rng(5), clf.ids_.tolist()

    def remove() -> object:
        return clf.remove(ids.pop(rng.integers(len(ids)))).model_

    operations = {
        "dtrsv": lambda: blas.dtrsv(L, b, lower=1),
        "add": adding(clf),
        "remove": remove,
    }
    times = interleaved(scale.rounds, operations, rest=REST)
    yield slower("add one", times["add"], "dtrsv", times["dtrsv"], 1.5, **facts(n))
    row = slower("remove one at random", times["remove"], "dtrsv", times["dtrsv"], 3.5, **facts(n))
    # The fastest is the one whose row happened to stand last: it says nothing.
    yield replace(row, best_ratio=None)


def one_and_ask(scale: Scale) -> Iterator[Row]:
    n = scale.n
    L, b = triangle(n), np.random.default_rng(4).normal(size=n)
    clf = classifier(n)
    operations = {
        "dtrsv": lambda: blas.dtrsv(L, b, lower=1),
        "add": adding(clf, ask=True),
    }
    times = interleaved(max(scale.rounds // 2, 3), operations, rest=REST)
    yield slower("add one, ask one", times["add"], "dtrsv", times["dtrsv"], None, **facts(n))


def block(scale: Scale) -> Iterator[Row]:
    """n^2 k + n k^2 + k^3 / 3 flops, at the rate of a matrix product."""
    n, k, m = scale.n, scale.block, scale.gemm
    rng = np.random.default_rng(6)
    A, B = rng.normal(size=(m, m)), rng.normal(size=(m, m))
    operations = {"dgemm": lambda: A @ B, "add": adding(classifier(n), k=k)}
    rounds = max(scale.rounds // 8, 3)
    times = interleaved(rounds, operations, rest=REST)
    # One round went before, to warm up.
    sizes = n + k * np.arange(1, rounds + 1)
    flops = sizes**2 * k + sizes * k**2 + k**3 / 3
    rates = flops / np.array(times["add"].seconds)
    peak = 2 * m**3 / np.array(times["dgemm"].seconds)
    yield Row(
        f"add {k} at once",
        float(np.median(rates)),
        "flop/s",
        "dgemm",
        float(np.median(peak)),
        float(np.median(rates) / np.median(peak)),
        float(rates.max() / peak.max()),
        Target(">=", 0.6),
        raw=facts(n) | {"measured": times["add"].raw(), "against": times["dgemm"].raw(), "gemm": m},
    )


def folding(scale: Scale) -> Iterator[Row]:
    """Single adds between two questions against one add of them all."""
    n, k = scale.n, scale.many
    base, question = classifier(n), data(1, seed=3)[0]
    X, y = next(stream(7, k))

    def singly() -> object:
        clf = copy.copy(base)
        for i in range(k):
            clf.add(X[i : i + 1], y[i : i + 1])
        return clf.predict(question)

    def together() -> object:
        clf = copy.copy(base)
        clf.add(X, y)
        return clf.predict(question)

    times = interleaved(3, {"together": together, "singly": singly}, rest=REST)
    yield slower(
        f"{k} single adds, ask one",
        times["singly"],
        f"one add of {k}, ask one",
        times["together"],
        2,
        **facts(n),
    )


def relabelling(scale: Scale) -> Iterator[Row]:
    """A label touches no matrix: one solve for the coefficients, and the prediction."""
    n, asked = scale.n, data(100, seed=8)[0]
    clf, rng = classifier(n), np.random.default_rng(9)
    ids = clf.ids_
    factor, targets = clf.model_.covariance.factor, clf.model_.targets.basis
    operations = {
        "relabel": lambda: _relabelled(clf, int(rng.choice(ids)), int(rng.integers(10)), asked),
        "solve": lambda: factor.solve(targets),
        "predict": lambda: clf.predict(asked),
    }
    with (
        _spied("append") as append,
        _spied("without") as delete,
    ):
        times = interleaved(max(scale.rounds // 4, 3), operations, rest=REST)
    both = Samples(
        tuple(map(sum, zip(times["solve"].seconds, times["predict"].seconds, strict=True)))
    )
    calls = append.call_count + delete.call_count
    yield slower(
        "relabel one, ask 100",
        times["relabel"],
        "solve + predict",
        both,
        None,
        solve=times["solve"].raw(),
        predict=times["predict"].raw(),
        **facts(n),
    )
    yield Row(
        "relabel one: appends and deletes of the factor",
        float(calls),
        "",
        target=Target("<=", 0),
        raw={"append": append.call_count, "delete": delete.call_count},
    )


def _relabelled(clf: GPClassifier, one: int, label: int, asked: Array) -> object:
    return clf.relabel([one], [label]).predict(asked)


def _spied(method: str) -> AbstractContextManager[mock.MagicMock]:
    """Count the calls of a method of the factor, which does its work as ever."""
    original = getattr(Cholesky, method)
    return mock.patch.object(Cholesky, method, autospec=True, side_effect=original)


BENCHMARKS: list[Benchmark] = [one, one_and_ask, block, folding, relabelling]
