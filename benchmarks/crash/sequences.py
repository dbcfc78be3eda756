"""Ten sequences of edits, each the same every time, and what a file holds after each edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LSSVMClassifier,
)
from knowmore.store import Store

Sequence = Callable[[Path], Iterator[None]]
NAMES = ("ant", "bee", "cow")


def gp() -> GPClassifier:
    """The model of most sequences."""
    return GPClassifier(kernel=RBF(2.0), noise=0.1)


def rows(rng: Any, k: int, d: int = 3) -> tuple[Any, list[str]]:
    """k examples, (k, d), and their labels."""
    return rng.normal(size=(k, d)), rng.choice(NAMES, k).tolist()


def growing(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(1)
    with knowmore.open(path, gp()) as store:
        yield
        for k in (1, 5, 1, 40, 2, 1):
            store.add(*rows(rng, k))
            yield


def correcting(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(2)
    with knowmore.open(path, gp()) as store:
        yield
        store.add(*rows(rng, 12), contributor="Ada")
        yield
        store.relabel([1, 2], "cow")
        yield
        store.replace([3, 4], rows(rng, 2)[0])
        yield
        store.undo()
        yield
        store.redo()
        yield
        store.undo()
        yield
        store.relabel([5], "ant")
        yield


def forgetting(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(3)
    with knowmore.open(path, gp()) as store:
        yield
        store.add(*rows(rng, 30, 40), thumbnails=[rng.bytes(700) for _ in range(30)])
        yield
        store.relabel([1, 7], "cow")
        yield
        store.forget([1, 2, 3, 20])
        yield
        store.add(*rows(rng, 3, 40))
        yield
        store.forget([25])
        yield


def contributors(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(4)
    with knowmore.open(path, gp()) as store:
        yield
        for name in ("Ada", "Ben", "Ada"):
            store.add(*rows(rng, 8), contributor=name, origins="field")
            yield
        store.forget(contributor="Ada")
        yield
        store.add(*rows(rng, 2), contributor="Cleo")
        yield


def reopening(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(5)
    for k in (3, 2, 9):
        with knowmore.open(path, gp()) as store:
            yield
            store.add(*rows(rng, k))
            yield


def linear(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(6)
    with knowmore.open(path, LinearGPClassifier()) as store:
        yield
        store.add(*rows(rng, 60))
        yield
        store.forget([4, 9])
        yield
        store.relabel([11], "bee")
        yield
        store.undo()
        yield


def forest(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(7)
    with knowmore.open(path, ForestGPClassifier(kernel=RBF(2.0), noise=0.1)) as store:
        yield
        store.add(*rows(rng, 40))
        yield
        store.replace([0], rows(rng, 1)[0])
        yield
        store.forget([1, 2])
        yield


def regression(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(8)
    with knowmore.open(path, GPRegressor(kernel=RBF(2.0), noise=0.01)) as store:
        yield
        for k in (6, 3):
            X = rng.normal(size=(k, 300))
            store.add(X, X[:, 0])
            yield
        store.set_parameters(noise=0.02)
        yield
        store.forget([0, 5])
        yield


def merging(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(9)
    other = path.with_name("other.km")
    with knowmore.open(path, gp()) as store:
        yield
        store.add(*rows(rng, 4))
        yield
        with knowmore.open(other, gp()) as theirs:
            if len(theirs) == 0:
                theirs.add(*rows(rng, 4), ids=["a", "b", "c", "d"])
        store.merge(other)
        yield
        store.undo()
        yield


def machine(path: Path) -> Iterator[None]:
    rng = np.random.default_rng(10)
    with knowmore.open(path, LSSVMClassifier(kernel=RBF(2.0))) as store:
        yield
        for _ in range(4):
            store.add(*rows(rng, 5, 600))
            yield
        store.forget(list(range(0, 12, 2)))
        yield


SEQUENCES: dict[str, Sequence] = {
    one.__name__: one
    for one in (
        growing,
        correcting,
        forgetting,
        contributors,
        reopening,
        linear,
        forest,
        regression,
        merging,
        machine,
    )
}
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "linear": LinearGPClassifier,
    "forest": lambda: ForestGPClassifier(kernel=RBF(2.0), noise=0.1),
    "regression": lambda: GPRegressor(kernel=RBF(2.0), noise=0.01),
    "machine": lambda: LSSVMClassifier(kernel=RBF(2.0)),
}


def estimator(name: str) -> Any:
    """The estimator that the file of a sequence is made with."""
    return ESTIMATORS.get(name, gp)()


def signature(store: Store) -> str:
    """A digest of examples and journal of a store, without times."""
    entries = [(one.number, one.verb, one.count, one.undone) for one in store.log()]
    parts = [repr(entries).encode()]
    if len(store):
        held = store.examples
        parts += [repr((held.names, held.labels.tolist(), held.weights.tolist())).encode()]
        parts += [np.ascontiguousarray(held.X, dtype=float).tobytes()]
    return blake2b(b"\0".join(parts), digest_size=16).hexdigest()


def signatures(name: str, path: Path) -> list[str]:
    """The signature of the file at `path` after each edit of a sequence."""
    found = []
    for _ in SEQUENCES[name](path):
        with knowmore.open(path) as store:
            found.append(signature(store))
    return found
