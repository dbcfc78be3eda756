"""Streams: a sliding window that predicts a row, learns it and forgets the oldest.

What is timed is processor time of this process, in chunks of a few steps: a stream is served by one
core, so every library has one thread, and the fastest chunk says what it takes when nothing else
runs. With more threads, those of a peer's library would go on spinning into our chunk.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
from scipy.linalg import blas
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from benchmarks.scene import NOISE, Array, Scale, adding, classifier, data, kernel, stream, triangle
from benchmarks.table import Benchmark, Row, Target, faster, slower
from benchmarks.timing import REST, Samples, interleaved, once
from knowmore import GPClassifier
from knowmore.edits import Add, Remove
from knowmore.examples import Examples
from knowmore.linalg import Cholesky
from knowmore.models import Following, KernelModel, one_vs_all

# Neighbours of the peers' classifiers.
_NEIGHBOURS = 5

Steps = Callable[[int, int], object]


def digits(n: int) -> tuple[Array, Array]:
    """n handwritten digits, (n, 64), drawn with replacement and a little noise, and their names."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.integers(len(X), size=n)
    return X[rows] + 0.1 * rng.normal(size=(n, X.shape[1])), y[rows]


def _ours(n: int, X: Array, y: Array) -> Steps:
    clf = GPClassifier(noise=NOISE).fit(X[:n], y[:n], ids=range(n))

    def run(begin: int, end: int) -> None:
        for i in range(begin, end):
            clf.predict(X[i : i + 1])
            clf.add(X[i : i + 1], y[i : i + 1], ids=[i])
            clf.remove(i - n)

    return run


def _river(n: int, X: Array, y: Array) -> Steps:
    from river import neighbors

    engine = neighbors.LazySearch(window_size=n)
    knn = neighbors.KNNClassifier(n_neighbors=_NEIGHBOURS, engine=engine)
    rows, names = [dict(enumerate(row)) for row in X.tolist()], y.tolist()
    for i in range(n):
        knn.learn_one(rows[i], names[i])

    def run(begin: int, end: int) -> None:
        for i in range(begin, end):
            knn.predict_one(rows[i])
            knn.learn_one(rows[i], names[i])

    return run


def _refitted(n: int, X: Array, y: Array) -> Steps:
    knn = KNeighborsClassifier(_NEIGHBOURS).fit(X[:n], y[:n])

    def run(begin: int, end: int) -> None:
        for i in range(begin, end):
            knn.predict(X[i : i + 1])
            knn.fit(X[i - n + 1 : i + 1], y[i - n + 1 : i + 1])

    return run


_PEERS = {"river KNN": _river, "scikit-learn KNN refit": _refitted}


def window(scale: Scale) -> Iterator[Row]:
    for n, least in zip(scale.windows, (1200, 150), strict=True):
        chunk, rounds = max(2000 // n, 2), scale.window_rounds
        X, y = digits(n + chunk * (rounds + 1))
        peers = {
            name: peer
            for name, peer in _PEERS.items()
            if not name.startswith("river") or find_spec("river")
        }
        runs = {"ours": _ours(n, X, y)} | {name: peer(n, X, y) for name, peer in peers.items()}
        with threadpool_limits(1):
            times = _chunks(runs, n, chunk, rounds)
        mine = times["ours"]
        yield Row(
            f"window of {n}: predict, add, remove the oldest",
            1 / mine.best,
            "/s",
            target=Target(">=", least),
            note=f"median {1 / mine.median:.0f} /s",
            raw={"n": n, "measured": mine.raw()},
        )
        for name in peers:
            bound = 1.0 if name.startswith("river") and n == min(scale.windows) else None
            yield faster(f"window of {n}", mine, name, times[name], bound, n=n)


def _chunks(runs: dict[str, Steps], n: int, chunk: int, rounds: int) -> dict[str, Samples]:
    """Seconds of processor time a step takes, for each run, in turn."""
    found: dict[str, deque[float]] = {name: deque() for name in runs}
    for index in range(rounds + 1):
        begin = n + index * chunk
        for name, run in runs.items():
            start = time.process_time()
            run(begin, begin + chunk)
            if index:
                found[name].append((time.process_time() - start) / chunk)
    return {name: Samples(tuple(seconds)) for name, seconds in found.items()}


def one_and_ask(scale: Scale) -> Iterator[Row]:
    n = max(scale.windows)
    L, b = triangle(n), np.random.default_rng(4).normal(size=n)
    operations = {
        "dtrsv": lambda: blas.dtrsv(L, b, lower=1),
        "add": adding(classifier(n), ask=True),
    }
    times = interleaved(scale.rounds, operations, rest=REST)
    yield slower(f"add one, ask one, n = {n}", times["add"], "dtrsv", times["dtrsv"], 2.5, n=n)


def following(scale: Scale) -> Iterator[Row]:
    """The scores of a pool after one edit, against asking for them anew."""
    n, m = max(scale.windows), scale.pool
    X, y = data(n)
    pool, new = data(m, seed=12)[0], stream(13)
    examples = Examples.of(X, y)
    model = KernelModel.of(kernel(), NOISE, examples, one_vs_all, Cholesky())
    state = [Following(model, pool)]
    _ = state[0].scores

    def follow(edit: Add | Remove) -> float:
        model = state[0].model.follow(state[0].model.examples.apply(edit))
        # What the model itself takes does not count.
        _ = model.half

        def answer() -> object:
            state[0] = state[0].follow(model)
            return state[0].scores, state[0].variance

        return once(answer)

    def ask() -> object:
        return state[0].model.mean(pool), state[0].model.variance(pool)

    added, removed, anew = [], [], []
    for _ in range(max(scale.rounds // 6, 3)):
        added.append(follow(Add(*next(new))))
        removed.append(follow(Remove(state[0].model.examples.names[:1])))
        anew.append(once(ask))
    asked = Samples(tuple(anew))
    for edit, seconds in ("add one", added), ("remove the oldest", removed):
        name = f"{edit}: a pool of {m} follows, n = {n}"
        yield faster(name, Samples(tuple(seconds)), "asked anew", asked, None, n=n, m=m)


BENCHMARKS: list[Benchmark] = [window, one_and_ask, following]
