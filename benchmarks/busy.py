"""Slowdown of a fit and other work while another program takes a core.

Two cores are shared by three threads, so two thirds of the speed are left.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.scene import NOISE, Scale, adding, classifier, data, kernel
from benchmarks.table import Benchmark, Row, slower
from benchmarks.timing import REST, interleaved
from knowmore import GPClassifier


@contextmanager
def _core_taken() -> Iterator[None]:
    """Another process that never waits."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.5)
        yield
    finally:
        child.kill()
        child.wait()


def core_taken(scale: Scale) -> Iterator[Row]:
    n, k = max(scale.windows), scale.block
    clf, question = classifier(n), data(scale.bulk, seed=7)[0]
    factor = clf.model_.covariance.factor
    X, y = data(n)
    rows = np.random.default_rng(6).permutation(n)[:k]
    many = np.random.default_rng(6).permutation(n)[: 3 * k]

    def inverse_diagonal() -> object:
        return factor.delete(np.array([n - 1])).inverse_diagonal()

    operations: dict[str, Callable[[], object]] = {
        "fit": lambda: GPClassifier(kernel(), NOISE).fit(X, y).model_,
        "add one, ask one": adding(classifier(n), ask=True),
        f"add {k} at once": adding(classifier(n), k=k),
        f"delete {k} at once": lambda: factor.delete(rows),
        f"delete {3 * k} at once": lambda: factor.delete(many),
        f"decision_function of {len(question)} rows": lambda: clf.decision_function(question),
        f"predict_variance of {len(question)} rows": lambda: clf.predict_variance(question),
        "the diagonal of the inverse": inverse_diagonal,
    }
    rounds = max(scale.rounds // 6, 3)
    quiet = interleaved(rounds, operations, rest=REST)
    with _core_taken():
        busy = interleaved(rounds, operations, rest=REST)
    for name in operations:
        yield slower(f"a core is taken: {name}", busy[name], "quiet", quiet[name], 2.5, n=n)


BENCHMARKS: list[Benchmark] = [core_taken]
