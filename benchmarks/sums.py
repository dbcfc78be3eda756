"""Linear Gaussian processes on exact sums, against the machine's syrk and against scikit-learn.

D = 512 features, 100 classes. The rate of learning is held against the plain product that it
cannot do without, the memory against constants.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.linalg import lapack
from sklearn.linear_model import Ridge

from benchmarks.scene import Array, Scale
from benchmarks.table import Benchmark, Row, Target, faster, slower
from benchmarks.timing import REST, Samples, interleaved, once
from knowmore import Grid, LinearGPClassifier

FEATURES, CLASSES = 512, 100
# Single edits that are measured together.
_STREAM = 256


def _sizes(scale: Scale) -> tuple[int, int]:
    """Features, and rows that are learnt at once."""
    return (FEATURES, 50_000) if scale.name == "full" else (32, 2000)


def _data(n: int, D: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    centres = np.random.default_rng(99).normal(size=(CLASSES, D)).astype(np.float32)
    X = rng.standard_normal((n, D), dtype=np.float32)
    X *= 6
    for start in range(0, n, 10_000):
        X[start : start + 10_000] += centres[y[start : start + 10_000]]
    return X, y


def learning(scale: Scale) -> Iterator[Row]:
    """Rows a second against the symmetric product of the same rows in the same precision."""
    D, n = _sizes(scale)
    X, y = _data(n, D)
    for bits, dtype in (16, np.float64), (8, np.float32):
        grid, Z = Grid.covering(X, bits), X.astype(dtype)
        clf = LinearGPClassifier(resolution=grid).fit(X[:CLASSES], y[:CLASSES])
        operations = {"syrk": lambda Z=Z: Z.T @ Z, "learn": lambda clf=clf: clf.partial_fit(X, y)}
        times = interleaved(max(scale.rounds // 10, 3), operations, rest=REST)
        name = f"learn {n:,} rows, {bits} bits"
        peer = f"{dtype.__name__} syrk"
        yield faster(name, times["learn"], peer, times["syrk"], 0.7, features=D, rows=n)


def one_row(scale: Scale) -> Iterator[Row]:
    """Adding and removing a row of a stream, and the first question after it."""
    D, n = _sizes(scale)
    X, y = _data(n, D)
    clf = LinearGPClassifier().fit(X, y)
    small = LinearGPClassifier(resolution=clf.grid_).fit(X[: n // 10], y[: n // 10])
    A = clf.model_.moments.scatter + np.eye(D)
    B = np.asfortranarray(clf.model_.moments.cross)

    def edits(verb: str, model: LinearGPClassifier = clf) -> Callable[[], None]:
        change = getattr(model, verb)

        def run() -> None:
            for i in range(_STREAM):
                change(X[i : i + 1], y[i : i + 1])

        return run

    def limit() -> None:
        L, _ = lapack.dpotrf(A, lower=1)
        lapack.dpotrs(L, B, lower=1)

    def ask() -> None:
        clf.partial_fit(X[:1], y[:1])
        asked.append(once(lambda: clf.predict(X[:1])))

    asked: list[float] = []
    operations = {
        "learn one row": edits("partial_fit"),
        "forget one row": edits("forget"),
        "small": edits("partial_fit", small),
        "ask": ask,
        "limit": limit,
    }
    times = interleaved(max(scale.rounds // 4, 3), operations, rest=REST)
    single = {
        name: Samples(tuple(s / _STREAM for s in times[name].seconds))
        for name in ("learn one row", "forget one row", "small")
    }
    for name in ("learn one row", "forget one row"):
        found = single[name]
        yield Row(name, found.median, target=Target("<=", 2e-4), raw={"measured": found.raw()})
    few = f"with {n // 10:,} rows instead of {n:,}"
    yield slower("learn one row", single["learn one row"], few, single["small"], 1.2, features=D)
    questions = Samples(tuple(asked[1:]))
    yield slower(
        "the first question after an edit", questions, "dpotrf + dpotrs", times["limit"], 3
    )
    others = [LinearGPClassifier(resolution=clf.grid_).fit(X[i::2], y[i::2]) for i in range(2)]
    merges = [once(lambda: others[0].merge(others[1])) for _ in range(7)]
    yield Row("merge", float(np.median(merges)), target=Target("<=", 5e-3), raw={"seconds": merges})


def leaving_out(scale: Scale) -> Iterator[Row]:
    """Leave-one-out of all rows in one pass, against learning them."""
    D, n = _sizes(scale)
    X, y = _data(n, D)
    clf = LinearGPClassifier().fit(X, y)
    fresh = LinearGPClassifier(resolution=clf.grid_)
    operations = {
        "learn": lambda: fresh.fit(X, y),
        "leave out": lambda: clf.leave_one_out(X, y),
    }
    times = interleaved(3, operations, rest=REST)
    name = f"leave-one-out of {n:,} rows"
    yield slower(name, times["leave out"], "learning them", times["learn"], 2.5, features=D)


def peers(scale: Scale) -> Iterator[Row]:
    """scikit-learn's ridge regression: the same accuracy, its refit against our edit."""
    D, n = _sizes(scale)
    if scale.name == "full":
        n = 1_000_000
    X, y = _data(n, D)
    T, (Xt, yt) = np.eye(CLASSES, dtype=np.float32)[y] * 2 - 1, _data(5000, D, seed=1)
    clf = LinearGPClassifier(1.0)
    ridge = Ridge(1.0, solver="cholesky")
    operations = {"ridge": lambda: ridge.fit(X, T), "learn": lambda: clf.fit(X, y)}
    times = interleaved(2, operations, rest=REST, warm=0)
    yield faster(f"learn {n:,} rows", times["learn"], "Ridge", times["ridge"], 1.0, features=D)
    # RidgeClassifier is this regression and the largest score; it would hold the targets twice.
    ours, theirs = clf.score(Xt, yt), float((ridge.predict(Xt).argmax(axis=1) == yt).mean())
    yield Row(
        "accuracy",
        ours,
        "",
        "Ridge, largest score",
        theirs,
        ours / theirs,
        target=Target(">=", 0.999),
    )

    def edit() -> None:
        clf.forget(X[:1], y[:1])
        clf.predict(X[:1])
        clf.partial_fit(X[:1], y[:1])

    edits = interleaved(9, {"edit": edit}, rest=REST)["edit"]
    yield faster("edit and ask", edits, "Ridge refitted", times["ridge"], 500, rows=n)


_MEMORY = """
import resource, sys
import numpy as np
from knowmore import Grid, LinearGPClassifier
path, n, D = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = np.memmap(path, np.float32, "r", shape=(n, D))
clf = LinearGPClassifier(resolution=Grid(np.full(D, -11), 16)).fit(X[:1000], np.arange(1000) % 100)
clf.fit(X, np.arange(n) % 100)
clf.predict(X[:10])
private = sum(
    int(line.split()[1])
    for line in open("/proc/self/smaps_rollup")
    if line.startswith("Anonymous:")
)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, private * 1024)
"""


def memory(scale: Scale) -> Iterator[Row]:
    """A million rows of a file, and ten million that are made on the way."""
    D, n = (FEATURES, 1_000_000) if scale.name == "full" else (32, 10_000)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        with path.open("wb") as file:
            for _ in range(0, n, 10_000):
                rng.standard_normal((10_000, D), dtype=np.float32).tofile(file)
        words = [sys.executable, "-c", _MEMORY, str(path), str(n), str(D)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    peak, private = map(int, done.stdout.split())
    name, raw = f"{n:,} mapped rows, memory without the file", {"peak": peak, "private": private}
    yield Row(name, private, "B", target=Target("<=", 2**30), raw=raw)
    yield from _streamed(scale, D)


def _streamed(scale: Scale, D: int) -> Iterator[Row]:
    n, block = (10_000_000, 50_000) if scale.name == "full" else (20_000, 5000)
    X, y = _data(block, D)
    clf = LinearGPClassifier(resolution=8).fit(X, y)
    start, sizes = time.perf_counter(), []
    for i in range(n // block):
        clf.partial_fit(np.roll(X, i, axis=0), y)
        if i == n // block // 10:
            sizes.append(_resident())
    sizes.append(_resident())
    name = f"{n:,} rows streamed, growth of memory after a tenth of them"
    raw = {"sizes": sizes, "seconds": time.perf_counter() - start}
    yield Row(name, sizes[1] - sizes[0], "B", target=Target("<=", 2**25), raw=raw)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


BENCHMARKS: list[Benchmark] = [learning, one_row, leaving_out, peers, memory]
