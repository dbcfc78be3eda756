"""Sizes and data of the benchmarks of eigenspaces: faces, and tables whose spectrum decays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.scene import Array, Scale

_BLOCK = 4096


@dataclass(frozen=True)
class Stream:
    """Batches of `batch` rows after a `first` one; so many components are kept."""

    first: int
    batch: int
    components: int


@dataclass(frozen=True)
class Sizes:
    """How large. Of the faces every `step`-th pixel across and down is taken."""

    step: int
    faces: Stream
    rows: int
    features: int
    table: Stream
    rounds: int
    shards: int
    shard_features: int
    classes: int
    of_class: int
    class_features: int
    rank: int


_SIZES = {
    "full": Sizes(
        step=1,
        faces=Stream(100, 50, 100),
        rows=100_000,
        features=1024,
        table=Stream(256, 256, 64),
        rounds=3,
        shards=16,
        shard_features=512,
        classes=50,
        of_class=100,
        class_features=2000,
        rank=200,
    ),
    "quick": Sizes(
        step=8,
        faces=Stream(20, 20, 10),
        rows=640,
        features=32,
        table=Stream(32, 32, 8),
        rounds=1,
        shards=4,
        shard_features=16,
        classes=5,
        of_class=20,
        class_features=40,
        rank=20,
    ),
}


def sizes(scale: Scale) -> Sizes:
    """The sizes that go with the others'."""
    return _SIZES[scale.name]


def faces(step: int) -> Array | None:
    """The ORL faces in any order, (400, 10304) if all pixels are taken; None: not there."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    file = Path(os.environ.get("KNOWMORE_DATA", beside)) / "orl_faces.npz"
    if not file.exists():
        return None
    with np.load(file) as held:
        pictures = held["images"][:, ::step, ::step]
    X = pictures.reshape(len(pictures), -1).astype(float)
    # In the file one person comes after the other.
    return np.asarray(np.random.default_rng(0).permutation(X))


def table(n: int, features: int, seed: int = 0) -> Array:
    """X (n, features), made block by block, of standard deviation 1/i along direction i."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, features))
    for begin in range(0, n, _BLOCK):
        block = X[begin : begin + _BLOCK]
        block[:] = mixed(rng.normal(size=block.shape) * deviations(features)) + 1.0
    return X


def deviations(features: int) -> Array:
    """1, 1/2, 1/3 ..., (features,)."""
    return 1 / np.arange(1.0, features + 1)


def mixed(X: Array) -> Array:
    """X (n, D) in a mirror, so that no feature is a direction of its own."""
    v = np.random.default_rng(1).normal(size=(X.shape[1],))
    return np.asarray(X - np.outer(X @ v, 2 * v / (v @ v)))


def labelled(classes: Array, of_class: int, features: int, seed: int) -> tuple[Array, Array]:
    """X (n, features) and y (n,): rows of `classes`, whose means differ in forty directions."""
    y = np.repeat(classes, of_class)
    means = np.zeros((y.max() + 1, features))
    width = min(40, features // 2)
    for label in classes:
        means[label, :width] = np.random.default_rng((2, label)).normal(size=width)
    noise = np.random.default_rng(seed).normal(size=(len(y), features))
    return mixed((means[y] + noise) * deviations(features)), y
