"""The settings that examples choose: what a fit takes for it, and what it takes to follow edits.

An edit of a living choice searches again if it touches the panel, which gets rarer as examples get
more, and factorises anew if the choice changes, which takes longer. So the mean of many edits is
what counts, not their median.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.scene import Array, Scale, data
from benchmarks.streams import digits
from benchmarks.table import Benchmark, Row, slower
from benchmarks.timing import REST, Samples, interleaved
from knowmore import GPClassifier

# Edits whose mean is taken, and how many times.
_EDITS, _TIMES = 60, 5


def fits(scale: Scale) -> Iterator[Row]:
    """A fit with its choice, against one with the settings that it chooses."""
    sizes = (1000, scale.n) if scale.name == "full" else (scale.n,)
    for n in sizes:
        X, y = data(n)
        chosen = GPClassifier().fit(X, y)
        given = GPClassifier(chosen.kernel_, chosen.noise_)
        operations = {
            "chosen": lambda X=X, y=y: GPClassifier().fit(X, y).model_,
            "given": lambda X=X, y=y, given=given: given.fit(X, y).model_,
        }
        times = interleaved(scale.fit_rounds, operations, rest=REST)
        bound = 1.3 if n == scale.n else None
        name = f"fit with its choice, n = {n}"
        yield slower(name, times["chosen"], "given settings", times["given"], bound, n=n)


def follow(scale: Scale) -> Iterator[Row]:
    """Add one, ask one, remove the oldest, ask one: a living choice against the first."""
    for n in (200, 2000, scale.n) if scale.name == "full" else (scale.small,):
        X, y = data(n)
        yield _against(f"single edits, n = {n}", n, X, y, _EDITS if scale.name == "full" else 10)


def window(scale: Scale) -> Iterator[Row]:
    """A window of digits, as in the streams."""
    n = min(scale.windows)
    X, y = digits(n)
    yield _against(f"window of {n}", n, X, y, 4 * _EDITS if scale.name == "full" else 10)


def _against(name: str, n: int, X: Array, y: Array, edits: int) -> Row:
    found = {
        mode: Samples(tuple(_edited(mode, X, y, edits, seed) for seed in range(_TIMES)))
        for mode in ("living", "first")
    }
    return slower(
        f"{name}, settings='living'", found["living"], "'first'", found["first"], None, n=n
    )


def _edited(mode: str, X: Array, y: Array, edits: int, seed: int) -> float:
    """Mean seconds of an edit with a question after it."""
    clf = GPClassifier(settings=mode).fit(X, y)
    clf.predict(X[:1])
    # Rows like those held.
    rng = np.random.default_rng(seed)
    new = [
        (X[[row]] + 0.1 * rng.normal(size=(1, X.shape[1])), y[[row]])
        for row in rng.integers(0, len(X), edits)
    ]
    start = time.perf_counter()
    for i, (x, label) in enumerate(new):
        clf.add(x, label)
        clf.predict(x)
        clf.remove(i)
        clf.predict(x)
    return (time.perf_counter() - start) / (2 * edits)


BENCHMARKS: list[Benchmark] = [fits, follow, window]
