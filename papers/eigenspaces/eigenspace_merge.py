"""Merging and splitting eigenspaces of faces, after Hall, Marshall and Martin and Kim's slides.

300 of the 400 ORL faces are drawn and divided into two sets, whose sizes are multiples of 50; no
model keeps more than 100 directions. The model of all faces at once (batch) is held against the
merged ones in time and error; so is the model of the first set against that of all faces with the
second set taken out. Everything is repeated with all directions kept, where it is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import final

import numpy as np
from scipy import linalg
from sklearn.decomposition import PCA

from knowmore import Eigenspace
from papers.arrays import Array
from papers.data import orl_faces
from papers.eigenspaces.eigenspace_merge_figures import draw_errors, draw_faces
from papers.eigenspaces.eigenspace_merge_report import (
    BATCH,
    INCREMENTAL,
    JOINT,
    MERGE,
    PEER,
    ROWS,
    SPLIT,
    UPDATES,
    Comparison,
    EigenAnalysis,
    EigenspaceMerge,
    Errors,
    Timing,
    preface,
    table,
    verdicts,
)
from papers.findings import Progress, Report, save_figure, silent, write_csv
from papers.stopwatch import median_seconds, one_thread

LEADING = 10


@final
@dataclass(frozen=True)
class _Protocol:
    """Numbers of faces, of random draws and of directions kept, and the sizes of first sets.

    `portions`: numbers of faces that arrive at a time when a model is updated repeatedly.
    """

    faces: int
    draws: int
    rank: int
    firsts: tuple[int, ...]
    portions: tuple[int, ...]


_SLIDES = _Protocol(300, 3, 100, (50, 100, 150, 200, 250), (150, 100, 75, 60, 50, 30, 20, 10))
_QUICK = _Protocol(120, 1, 40, (40, 80), (60, 40, 20))


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> EigenspaceMerge:
    """Take the times, on one thread, and the errors in some draws; `quick` draws fewer faces."""
    rng = np.random.default_rng(seed)
    protocol = _QUICK if quick else _SLIDES
    rank, X = protocol.rank, orl_faces().X
    draws = [X[rng.permutation(len(X))[: protocol.faces]] for _ in range(protocol.draws)]
    progress(0.0, "times")
    with one_thread():
        timings = tuple(_timings(draws[0], protocol))
        analysis = _analysis(draws[0], protocol)
    comparisons: list[Comparison] = []
    for i, X in enumerate(draws):
        progress((i + 1) / (len(draws) + 1), f"errors in draw {i + 1} of {len(draws)}")
        comparisons += _comparisons(i, X, protocol)
    halves = [Eigenspace.of(half, rank) for half in np.split(draws[0], 2)]
    batch, merged = Eigenspace.of(draws[0], rank), halves[0].merge(halves[1], rank)
    return EigenspaceMerge(timings, analysis, tuple(comparisons), batch, merged, rank)


# -- times ---------------------------------------------------------------------------------------


def _timings(X: Array, protocol: _Protocol) -> Iterator[Timing]:
    rank = protocol.rank
    # The first calls include loading, which should not be timed.
    Eigenspace.of(X[:50], 10).merge(Eigenspace.of(X[50:100], 10))
    yield Timing(BATCH, None, median_seconds(lambda: Eigenspace.of(X, rank)))
    peer = PCA(rank, svd_solver="full")
    yield Timing(PEER, None, median_seconds(lambda: peer.fit(X)))
    for first in protocol.firsts:
        for method, act in _methods(X[:first], X[first:], rank):
            yield Timing(method, first, median_seconds(act))


def _methods(X1: Array, X2: Array, rank: int) -> Iterator[tuple[str, Callable[[], Eigenspace]]]:
    """The ways from two sets to the model of both."""
    held = Eigenspace.of(X1, rank)
    yield INCREMENTAL, lambda: held.merge(Eigenspace.of(X2, rank), rank)
    yield JOINT, lambda: Eigenspace.of(X1, rank).merge(Eigenspace.of(X2, rank), rank)
    yield ROWS, lambda: held.add_rows(X2, rank)


def _analysis(X: Array, protocol: _Protocol) -> EigenAnalysis:
    """The eigenproblems alone: of the largest sufficient spanning set, and of all rows."""
    N, rank = len(X), protocol.rank
    size = max(min(first, rank) + min(N - first, rank) + 1 for first in protocol.firsts)
    B = X - X.mean(axis=0)
    G = B @ B.T
    small, large = (
        median_seconds(partial(linalg.eigh, A, driver="evd")) for A in (G[:size, :size], G)
    )
    return EigenAnalysis(size, N, small, large, median_seconds(lambda: B @ B.T))


# -- errors --------------------------------------------------------------------------------------


def _comparisons(draw: int, X: Array, protocol: _Protocol) -> Iterator[Comparison]:
    """Merging and splitting against batch, in one draw."""
    N, most = len(X), protocol.rank
    for rank in (most, None):
        whole = Eigenspace.of(X, rank)
        for first in protocol.firsts:
            one, two = Eigenspace.of(X[:first], rank), Eigenspace.of(X[first:], rank)
            merged, left = one.merge(two, rank), whole.split(two, rank)
            yield Comparison(MERGE, rank, draw, first, 1, errors(whole, merged))
            yield Comparison(SPLIT, rank, draw, first, 1, errors(one, left))
    whole = Eigenspace.of(X, most)
    for portion in protocol.portions:
        parts = (Eigenspace.of(X[i : i + portion], most) for i in range(0, N, portion))
        model = reduce(lambda one, two: one.merge(two, most), parts)
        yield Comparison(UPDATES, most, draw, portion, N // portion - 1, errors(whole, model))


def errors(batch: Eigenspace, other: Eigenspace) -> Errors:
    """How far `other` is from `batch`, of the same rows."""
    d = min(len(batch.variances), len(other.variances))
    a, b = batch.variances[:d], other.variances[:d]
    leading = batch.truncate(LEADING).angles(other.truncate(LEADING))
    return Errors(
        mean=float(np.linalg.norm(batch.mean - other.mean)),
        paired=float(_paired_angles(batch.components[:d], other.components[:d]).mean()),
        leading=float(leading.max()),
        subspace=float(batch.angles(other).max()),
        eigenvalues=float((abs(a - b) / a).mean()),
        covariance=_covariance_gap(batch, other) / float(batch.variances[0]),
    )


def _paired_angles(P: Array, Q: Array) -> Array:
    """arccos |p_i . q_i| for the unit rows of P and Q, (d,), to full precision at small angles."""
    signs = np.where((P * Q).sum(axis=1) < 0, -1.0, 1.0)
    halves = np.linalg.norm(P - signs[:, None] * Q, axis=1) / 2
    return np.asarray(2 * np.arcsin(halves.clip(0, 1)))


def _covariance_gap(one: Eigenspace, two: Eigenspace) -> float:
    """|S_1 - S_2|, the spectral norm, without any matrix (D, D).

    The rows sqrt(Lambda) P of both, stacked, are (QR)': S_1 - S_2 = Q (R_1 R_1' - R_2 R_2') Q'.
    """
    W = np.concatenate([np.sqrt(e.variances)[:, None] * e.components for e in (one, two)])
    R = np.linalg.qr(W.T, mode="r")
    R1, R2 = np.split(R, [len(one.variances)], axis=1)
    return float(abs(np.linalg.eigvalsh(R1 @ R1.T - R2 @ R2.T)).max())


def report(result: EigenspaceMerge, out: Path) -> Report:
    """The pictures, all numbers, and a verdict on each claim."""
    times = write_csv(
        out / "eigenspace-merge-times.csv",
        ("method", "first", "seconds"),
        [(t.method, t.first or "", t.seconds) for t in result.timings],
    )
    numbers = write_csv(
        out / "eigenspace-merge-errors.csv",
        ("act", "rank", "draw", "first", "updates", *Errors._fields),
        [
            (c.act, c.rank or "all", c.draw, c.first, c.updates, *c.errors)
            for c in result.comparisons
        ],
    )
    picture = save_figure(draw_errors(result), out / "eigenspace-merge.png")
    faces = save_figure(draw_faces(result), out / "eigenspace-merge-faces.png")
    return Report(
        parts=(preface(result), table(result), *verdicts(result)),
        files=(picture, faces, times, numbers),
    )
