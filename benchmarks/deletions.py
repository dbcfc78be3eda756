"""Deleting many rows of a factor at once: 2 k r^2 flops, if r rows stay, at the rate of dgemm.

Beside each of the two ways, rotations and reflectors, stands the third: factorising what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import numpy as np

from benchmarks.scene import Array, Scale, classifier
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import REST, Samples, interleaved
from knowmore.linalg import Cholesky, removal
from knowmore.linalg.panels import PANEL


def many(scale: Scale) -> Iterator[Row]:
    n, m = scale.n, scale.gemm
    rng = np.random.default_rng(6)
    A, B = rng.normal(size=(m, m)), rng.normal(size=(m, m))
    factor = classifier(n).model_.covariance.factor
    for k in scale.deletions:
        # The first row too, so that all others change.
        rows = np.append(0, 1 + rng.permutation(n - 1)[: k - 1])
        operations = {
            "dgemm": lambda: A @ B,
            "delete": lambda rows=rows: factor.delete(rows),
            "reflectors": lambda rows=rows: _reflected(factor, rows),
        }
        times = interleaved(scale.fit_rounds, operations, rest=REST)
        flops, peak = 2 * k * (n - k) ** 2, 2 * m**3 / times["dgemm"].median
        again = (n - k) ** 3 / 3 / peak
        best = flops / times["delete"].best / (2 * m**3 / times["dgemm"].best)
        by = "rotations" if k <= PANEL else "reflectors"
        yield Row(
            f"delete {k} at once",
            flops / times["delete"].median,
            "flop/s",
            "dgemm",
            peak,
            flops / times["delete"].median / peak,
            best,
            Target(">=", 0.35) if k == scale.block else None,
            note=f"{_ms(times['delete'])} by {by}, {_ms(times['reflectors'])} by reflectors; "
            f"factorising the rest takes {again * 1e3:.0f} ms at the rate of dgemm",
            raw={"n": n, "k": k} | {name: each.raw() for name, each in times.items()},
        )


def _ms(times: Samples) -> str:
    return f"{times.median * 1e3:.0f} ms"


def _reflected(factor: Cholesky, rows: Array) -> object:
    with mock.patch.object(removal, "_SWEEPS", 0):
        return factor.delete(rows)


BENCHMARKS: list[Benchmark] = [many]
