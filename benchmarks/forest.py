"""Forests of leaf GPs: how the fit grows, and what an edit takes among many examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from benchmarks.scene import Scale
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import interleaved, once
from knowmore import ForestGPClassifier
from knowmore._base import Array

_FITS = 3


def points(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Points on a sphere, X (n, 3), and the side of a wavy line, y (n,)."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, (np.sin(7 * X[:, 0]) + X[:, 1] > X[:, 2]).astype(int)


def forest() -> ForestGPClassifier:
    return ForestGPClassifier(Matern(0.5, nu=0.5), 0.1)


def growth(scale: Scale) -> Iterator[Row]:
    """time = c n^p for the shape of a tree; its leaves are factorised when they are asked."""
    seconds = []
    for n in scale.forest:
        X, y = points(n)
        seconds.append([once(lambda X=X, y=y: forest().fit(X, y)) for _ in range(_FITS)])
    logs, best = np.log(scale.forest), np.min(seconds, axis=1)
    yield Row(
        f"forest: fit, n = {scale.forest[0]} ... {scale.forest[-1]}: exponent",
        float(np.polyfit(logs, np.log(best), 1)[0]),
        "",
        target=Target("<=", 1.1),
        note=", ".join(f"{one:.3g}" for one in best) + " s",
        raw={"sizes": list(scale.forest), "seconds": seconds},
    )


def edits(scale: Scale) -> Iterator[Row]:
    """Adding and removing an example, with one tree, among the fewest and the most examples."""
    found, fits = {}, {}
    for n in (scale.forest[0], scale.forest[-1]):
        X, y = points(n)
        clf = forest()
        fits[n] = once(lambda clf=clf, X=X, y=y: clf.fit(X, y))
        found[n] = interleaved(scale.forest_rounds, _one_edit(clf, n))
    few, many = found
    for verb in found[many]:
        samples = found[many][verb]
        times = samples.median / found[few][verb].median
        yield Row(
            f"forest: {verb} one, n = {many}",
            samples.median,
            target=Target("<=", 2e-3),
            note=f"{times:.2g} x that at n = {few}; 1 / {fits[many] / samples.median:.0f} of a fit",
            raw={"n": many, "measured": samples.raw(), "few": found[few][verb].raw(), "fit": fits},
        )


def _one_edit(clf: Any, n: int) -> dict[str, Callable[[], object]]:
    X, y = points(4096, seed=1)
    rows = iter(range(4096))
    gone = iter(np.random.default_rng(2).permutation(n).tolist())

    def add() -> None:
        row = next(rows)
        clf.add(X[row : row + 1], y[row : row + 1])

    return {"add": add, "remove": lambda: clf.remove(next(gone))}


def questions(scale: Scale) -> Iterator[Row]:
    """A row a question, from leaves that are factorised already, against the first question."""
    X, y = points(scale.forest[1])
    clf, Q = forest().fit(X, y), points(scale.forest[1] // 10, seed=3)[0]
    first, again = (once(lambda: clf.predict(Q)) for _ in range(2))
    yield Row(
        f"forest: ask {len(Q)} rows, n = {len(X)}",
        again,
        "s",
        "the first time",
        first,
        again / first,
        note=f"{again / len(Q) * 1e6:.3g} us a row",
        raw={"n": len(X), "rows": len(Q)},
    )


BENCHMARKS: list[Benchmark] = [growth, edits, questions]
