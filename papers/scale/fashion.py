"""Sixty thousand pictures of clothes, through a frozen feature map.

Pictures become histograms of edge directions (HOG). Of these, an RBF kernel makes features by its
values at landmarks, which linear classifiers learn; other peers learn the histograms. For
comparison there are random Fourier features of the same kernel, and landmarks of the pixels. The
width of the kernel and whatever a peer needs are chosen on training pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, final

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier

from knowmore import GPClassifier, Landmarks, LinearGPClassifier
from papers.arrays import Array
from papers.data import Split, fashion_mnist
from papers.findings import Progress, Report, Verdict, as_time, silent
from papers.scale.contest import (
    Entry,
    Method,
    clocked,
    enter,
    forests,
    no_faster_peer,
    saved,
    standard_error,
    table,
)

# Pixels along a cell, and directions.
_CELL, _DIRECTIONS = 4, 9
RAW, MARKS, FOURIER, PIXELS = "HOG", "landmarks", "Fourier", "pixels"
LINEAR, FULL = "LinearGPClassifier", "GPClassifier"
# Multiples of the median distance.
_WIDTHS = (0.7, 1.0, 1.4)


class Size(NamedTuple):
    """Pictures to learn and to test, features of a map, those to choose the width with, trees of a
    forest, rounds of boosting, and rows of the exact Gaussian process."""

    train: int
    test: int
    features: int
    trial: int
    trees: int
    rounds: int
    exact: int


FULL_SIZE = Size(60_000, 10_000, 2048, 512, 200, 100, 8000)
QUICK = Size(1500, 500, 256, 128, 20, 5, 500)


@final
@dataclass(frozen=True, eq=False)
class Forgotten:
    """Nine classes were learnt, the tenth came late, and then some rows were forgotten.

    same : whether the sums are those of a fresh fit, bit for bit
    rows : how many were forgotten
    seconds, refit : how long it took, and how long a fresh fit took
    """

    same: bool
    rows: int
    seconds: float
    refit: float


@final
@dataclass(frozen=True, eq=False)
class Fashion:
    """All methods, which test pictures each has right (m,), and the seconds to make features."""

    entries: tuple[Entry, ...]
    right: tuple[Array, ...]
    seconds: float
    forgotten: Forgotten


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Fashion:
    """Learn 60,000 pictures in many ways; `quick`: 1500, in smaller ways."""
    progress(0.0, "features")
    size = QUICK if quick else FULL_SIZE
    data, rng = fashion_mnist(), np.random.default_rng(seed)
    train = rng.permutation(len(data.y))[: size.train]
    test = rng.permutation(len(data.y_test))[: size.test]
    pictures = Split(data.X[train], data.y[train], data.X_test[test], data.y_test[test])
    began = perf_counter()
    edges = _mapped(pictures, histograms)
    pixels = _mapped(pictures, lambda X: (X.reshape(len(X), -1) / 255).astype(np.float32))
    width = _width(edges, size.trial, seed)
    splits = {
        RAW: edges,
        MARKS: _landmarks(edges, width, size.features, seed),
        FOURIER: _fourier(edges, width, size.features, seed),
        PIXELS: _landmarks(pixels, _width(pixels, size.trial, seed), size.features, seed),
    }
    seconds = perf_counter() - began
    found, methods = [], list(_methods(size, width, seed))
    for i, method in enumerate(methods):
        progress(0.1 + 0.8 * i / len(methods), method.name)
        found.append(enter(method, splits[method.features]))
    progress(0.95, "forgetting")
    entries, right = zip(*found, strict=True)
    return Fashion(entries, right, seconds, _forget(splits[MARKS]))


def _mapped(split: Split, act: Callable[[Array], Array]) -> Split:
    return split._replace(X=act(split.X), X_test=act(split.X_test))


def histograms(X: Array) -> Array:
    """Square roots of histograms of edge directions in cells of pictures X (n, h, w), length one.

    Each pixel votes for the two directions next to its own with the length of its gradient, which
    is that of the square roots of the grey levels.
    """
    blocks = [X[i : i + 1000] for i in range(0, len(X), 1000)]
    return np.concatenate([_histograms(block) for block in blocks])


def _histograms(X: Array) -> Array:
    n, h, w = X.shape
    levels = np.sqrt(X.astype(np.float32))
    dy, dx = (np.gradient(levels, axis=axis) for axis in (1, 2))
    turns = np.mod(np.arctan2(dy, dx) / np.pi, 1) * _DIRECTIONS
    below = np.floor(turns)
    length, upper = np.hypot(dx, dy), turns - below
    H = np.empty((n, h // _CELL, w // _CELL, _DIRECTIONS), np.float32)
    for k in range(_DIRECTIONS):
        votes = length * np.where(below == k, 1 - upper, 0)
        votes += length * np.where((below + 1) % _DIRECTIONS == k, upper, 0)
        H[..., k] = votes.reshape(n, h // _CELL, _CELL, w // _CELL, _CELL).sum(axis=(2, 4))
    H = np.sqrt(H).reshape(n, -1)
    return np.asarray(H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-6))


def _width(split: Split, features: int, seed: int) -> float:
    """The width of the kernel that recognises most of the training pictures kept for it."""
    X, y = split.X[:10_000], split.y[:10_000]
    half, n = len(y) // 2, len(y) - len(y) // 5
    median = float(np.median(np.linalg.norm(X[:half] - X[half : 2 * half], axis=1)))

    def recognised(width: float) -> float:
        part = Split(X[:n], y[:n], X[n:], y[n:])
        F = _landmarks(part, width, features, seed)
        return float(LinearGPClassifier("loo").fit(F.X, F.y).score(F.X_test, F.y_test))

    return max((median * factor for factor in _WIDTHS), key=recognised)


def _fourier(split: Split, width: float, features: int, seed: int) -> Split:
    sampler = RBFSampler(gamma=0.5 / width**2, n_components=features, random_state=seed)
    return _mapped(split, sampler.fit(split.X[:1]).transform)


def _landmarks(split: Split, width: float, features: int, seed: int) -> Split:
    landmarks = Landmarks(RBF(width), features, seed=seed).fit(split.X)
    return _mapped(split, landmarks.transform)


def _methods(size: Size, width: float, seed: int) -> Iterator[Method]:
    for features in (MARKS, FOURIER, PIXELS):
        yield Method(LINEAR, features, [LinearGPClassifier("loo")], ours=True)
    gps = [GPClassifier(RBF(width), noise) for noise in (0.03, 0.1, 0.3)]
    yield Method(FULL, RAW, gps, ours=True, rows=size.exact)
    ridges = [RidgeClassifier(alpha) for alpha in (0.1, 0.3, 1.0, 3.0)]
    yield Method("RidgeClassifier", MARKS, ridges)
    logistic = [LogisticRegression(C=C, max_iter=500) for C in (1.0, 10.0)]
    yield Method("LogisticRegression", MARKS, logistic)
    # Five passes of partial_fit.
    sgd = [
        SGDClassifier(alpha=alpha, max_iter=5, tol=None, average=True, random_state=seed)
        for alpha in (1e-6, 1e-5, 1e-4)
    ]
    yield Method("SGDClassifier", MARKS, sgd)
    yield from forests(size.trees, RAW, seed)
    boosting = HistGradientBoostingClassifier(max_iter=size.rounds, random_state=seed)
    yield Method("HistGradientBoost", RAW, [boosting])


def _forget(split: Split) -> Forgotten:
    """The last class comes late, a third of the rows go, and a fresh fit is compared."""
    X, y = split.X, split.y
    late, gone = y == y.max(), np.arange(len(y)) % 3 == 0
    model = LinearGPClassifier("loo").fit(X[~late], y[~late]).partial_fit(X[late], y[late])
    fresh = LinearGPClassifier("loo", resolution=model.grid_)
    _, forget = clocked(lambda: model.forget(X[gone], y[gone]))
    _, refit = clocked(lambda: fresh.fit(X[~gone], y[~gone]))
    return Forgotten(model.digest() == fresh.digest(), int(gone.sum()), forget, refit)


# -- what it means -------------------------------------------------------------------------------


def report(result: Fashion, out: Path) -> Report:
    """The picture, all numbers, and the verdicts."""
    rows = max(e.rows for e in result.entries)
    setting = (
        f"Fashion-MNIST, {rows:,} pictures learnt and {len(result.right[0]):,} tested. All "
        f"features took {as_time(result.seconds)}. Times are wall times of this run."
    )
    return Report(
        parts=(setting, table("Accuracy and time", result.entries), *verdicts(result)),
        files=saved({f"{rows:,} pictures": result.entries}, out, "scale-fashion"),
    )


def verdicts(result: Fashion) -> Iterator[Verdict]:
    """Accuracy, time and exactness."""
    entries = result.entries
    own, exact = entries[0], next(e for e in entries if e.method == FULL)
    peers = [i for i, e in enumerate(entries) if e.features == MARKS and not e.ours]
    gaps = [own.accuracy - entries[i].accuracy for i in peers]
    errors = [standard_error(result.right[0], result.right[i]) for i in peers]
    yield Verdict(
        claim="On the same features it is as accurate as other linear classifiers.",
        holds=all(gap >= -2 * error for gap, error in zip(gaps, errors, strict=True)),
        measured="; ".join(
            f"{gap:+.4f} ± {error:.4f} against {entries[i].method}"
            for i, gap, error in zip(peers, gaps, errors, strict=True)
        ),
    )
    holds, measured = no_faster_peer(entries, own)
    yield Verdict("No peer that is as accurate is faster.", holds, measured)
    yield Verdict(
        claim="All rows by a linear model beat the exact Gaussian process of as many as fit.",
        holds=own.accuracy > exact.accuracy,
        measured=f"{own.accuracy:.4f} with {own.rows:,} rows, {exact.accuracy:.4f} with "
        f"{exact.rows:,}",
    )
    forgotten = result.forgotten
    yield Verdict(
        claim="After a late class and forgetting, the sums are those of a fresh fit, bit for bit.",
        holds=forgotten.same,
        measured=f"{forgotten.rows:,} rows forgotten in {as_time(forgotten.seconds)}, a fresh fit "
        f"of the others took {as_time(forgotten.refit)}",
    )
