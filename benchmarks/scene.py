"""Sizes, data and the classifier that several benchmarks share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import RBF

from knowmore import GPClassifier
from knowmore.models import matrix_rows

Array = npt.NDArray[Any]

FEATURES, CLASSES, LENGTH, NOISE = 64, 10, 8.0, 0.1


@dataclass(frozen=True)
class Scale:
    """How large and how often. `n` is the size that the targets speak of."""

    name: str
    n: int
    block: int
    many: int
    rounds: int
    gemm: int
    laplace: int
    woodbury: tuple[int, ...]
    small: int
    small_rounds: int
    growth: tuple[int, ...]
    growth_rounds: int
    memory: int
    histories: int
    edits: int
    drift: int
    starts: int
    forest: tuple[int, ...]
    forest_rounds: int
    windows: tuple[int, int]
    window_rounds: int
    pool: int
    fits: tuple[int, ...]
    fit_rounds: int
    bulk: int
    deletions: tuple[int, ...]


FULL = Scale(
    name="full",
    n=8000,
    block=100,
    many=1000,
    rounds=60,
    gemm=4000,
    laplace=1000,
    woodbury=(2000, 8000),
    small=500,
    small_rounds=25,
    growth=(1000, 2000, 4000, 8000, 16000),
    growth_rounds=15,
    memory=16000,
    histories=20,
    edits=60,
    drift=5000,
    starts=7,
    forest=(10_000, 100_000, 1_000_000),
    forest_rounds=200,
    windows=(500, 2000),
    window_rounds=100,
    pool=2000,
    fits=(2000, 4000, 8000),
    fit_rounds=5,
    bulk=1000,
    deletions=(16, 50, 100, 200, 500, 1000),
)

QUICK = Scale(
    name="quick",
    n=300,
    block=20,
    many=40,
    rounds=3,
    gemm=200,
    laplace=80,
    woodbury=(150,),
    small=100,
    small_rounds=2,
    growth=(100, 200, 400),
    growth_rounds=3,
    memory=1500,
    histories=1,
    edits=15,
    drift=200,
    starts=1,
    forest=(800, 1600, 3200),
    forest_rounds=3,
    windows=(40, 80),
    window_rounds=2,
    pool=50,
    fits=(100, 200),
    fit_rounds=2,
    bulk=40,
    deletions=(5, 20),
)


def data(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Ten overlapping clouds in 64 dimensions: X (n, 64), y (n,)."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(CLASSES, FEATURES))
    y = rng.integers(CLASSES, size=n)
    return centres[y] + rng.normal(size=(n, FEATURES)), y


def stream(seed: int, k: int = 1) -> Iterator[tuple[Array, Array]]:
    """New examples without end, k at a time, made ahead so that making them is not timed."""
    X, y = data(4096, seed)
    at = 0
    while True:
        if at + k > len(X):
            # Shifted a little: the same example twice would not be a new one.
            X, at = X + 1e-3, 0
        yield X[at : at + k], y[at : at + k]
        at += k


def kernel() -> RBF:
    return RBF(LENGTH)


@cache
def _fitted(n: int) -> GPClassifier:
    clf = GPClassifier(kernel(), NOISE).fit(*data(n))
    clf.predict(data(1)[0])
    return clf


def classifier(n: int) -> GPClassifier:
    """A classifier of n examples, to be changed at will: its frozen model is shared."""
    return copy.copy(_fitted(n))


def adding(clf: GPClassifier, seed: int = 2, k: int = 1, ask: bool = False) -> Callable[[], object]:
    """Add k examples and bring the factor up to date; then one question if `ask`."""
    examples = stream(seed, k)
    question = data(1, seed=3)[0]

    def add() -> object:
        X, y = next(examples)
        clf.add(X, y)
        return clf.predict(question) if ask else clf.model_

    return add


@cache
def triangle(n: int) -> Array:
    """The factor of the shared model, (n, n), as BLAS wants it."""
    return np.asfortranarray(_fitted(n).model_.covariance.factor.lower())  # type: ignore[attr-defined]


@cache
def condition(n: int) -> float:
    """LAPACK's estimate of the condition of K~ in the 1-norm."""
    rows = matrix_rows(_fitted(n).model_.covariance)
    norm = max(float(abs(K).sum(axis=1).max()) for _, K in rows)
    reciprocal, _ = lapack.dpocon(triangle(n), norm, uplo="L")
    return 1 / float(reciprocal)


def facts(n: int) -> dict[str, Any]:
    """The size and condition of the shared model, for a row of results."""
    return {"n": n, "features": FEATURES, "classes": CLASSES, "condition": condition(n)}
