"""A small model, where Python itself is what takes the time."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial

from benchmarks.scene import Scale, adding, classifier, data
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import Samples, once

# A round grows the model by this many; then it starts again, so that n stays about the same.
_GROWTH = 20


def one_and_ask(scale: Scale) -> Iterator[Row]:
    n = scale.small
    base = classifier(n - _GROWTH // 2)
    question = data(1, seed=3)[0]
    both: list[float] = []
    alone: list[float] = []
    asked: list[float] = []
    for index in range(scale.small_rounds):
        together = adding(copy.copy(base), seed=10 + index, ask=True)
        both += [once(together) for _ in range(_GROWTH)]
        clf = copy.copy(base)
        add = adding(clf, seed=10 + index)
        for _ in range(_GROWTH):
            alone.append(once(add))
            asked.append(once(partial(clf.predict, question)))
    samples = Samples(tuple(both))
    yield Row(
        f"add one, ask one, n = {n}",
        samples.median,
        target=Target("<=", 0.4e-3),
        note=f"best {samples.best * 1e3:.3g} ms",
        raw={
            "n": n,
            "measured": samples.raw(),
            "add": Samples(tuple(alone)).raw(),
            "ask": Samples(tuple(asked)).raw(),
        },
    )


BENCHMARKS: list[Benchmark] = [one_and_ask]
