"""Random histories of exact sums: edits, merges and splits over a changing set of shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from knowmore._base import Array


@dataclass
class Shard:
    """An estimator, and the numbers of the rows it should hold, each as often as it was learnt."""

    estimator: Any
    rows: Array


@dataclass
class History:
    """Shards that learn, forget, merge and split rows of one table.

    empty : a fitted estimator that has forgotten all its rows; all shards start as copies of it
    X, y, weights : the table; labels or targets; a weight for each row, or None
    most : the number of rows that are held at most, in all shards together
    threads : how many learn at once, now and then
    """

    empty: Any
    X: Any
    y: Array
    weights: Array | None
    rng: np.random.Generator
    most: int = 400
    threads: int = 2
    shards: list[Shard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shards = [Shard(deepcopy(self.empty), np.empty(0, int))]

    def edits(self, n: int) -> Iterator[Shard]:
        """Each of n random edits: the shard that it changed."""
        with ThreadPoolExecutor(self.threads) as pool:
            self._pool = pool
            for _ in range(n):
                yield self._edit()

    def fresh(self, shard: Shard) -> Any:
        """The estimator that a shard must equal: a fit of its rows in random order and blocks."""
        rows = self.rng.permutation(shard.rows)
        return self._learnt(deepcopy(self.empty), rows, int(self.rng.integers(1, 4)))

    def _edit(self) -> Shard:
        held = sum(len(shard.rows) for shard in self.shards)
        shard = self.shards[self.rng.integers(len(self.shards))]
        kinds: list[Callable[[Shard], Shard]] = [self._learn, self._learn_at_once]
        kinds = [] if held > self.most else kinds
        if len(shard.rows):
            kinds += [self._forget, self._forget_a_class, self._split]
        if len(self.shards) > 1:
            kinds += [self._merge]
        return kinds[self.rng.integers(len(kinds))](shard)

    def _some(self) -> Array:
        """Rows to learn: one, a few, or more than wait to be summed."""
        k = int(self.rng.choice([1, 1, 3, 10, 150]))
        return self.rng.integers(self.X.shape[0], size=k)

    def _part(self, shard: Shard) -> tuple[Array, Array]:
        """The rows of a shard in two parts: one, a few or most of them, and the rest."""
        k = int(self.rng.choice([1, 2, len(shard.rows) // 2, len(shard.rows)]))
        rows = self.rng.permutation(shard.rows)
        return rows[: max(k, 1)], rows[max(k, 1) :]

    def _given(self, rows: Array) -> tuple[Any, Array, Array | None]:
        weights = None if self.weights is None else self.weights[rows]
        return self.X[rows], self.y[rows], weights

    def _learnt(self, estimator: Any, rows: Array, blocks: int) -> Any:
        for block in np.array_split(rows, blocks):
            if len(block):
                X, y, weights = self._given(block)
                estimator.partial_fit(X, y, sample_weight=weights)
        return estimator

    def _learn(self, shard: Shard) -> Shard:
        rows = self._some()
        self._learnt(shard.estimator, rows, int(self.rng.integers(1, 4)))
        shard.rows = np.append(shard.rows, rows)
        return shard

    def _learn_at_once(self, shard: Shard) -> Shard:
        """Several threads teach the same estimator."""
        parts = [self._some() for _ in range(self.threads)]
        taught = [self._pool.submit(self._learnt, shard.estimator, part, 2) for part in parts]
        for one in taught:
            one.result()
        shard.rows = np.concatenate([shard.rows, *parts])
        return shard

    def _forget(self, shard: Shard) -> Shard:
        rows, shard.rows = self._part(shard)
        shard.estimator.forget(*self._given(rows))
        return shard

    def _forget_a_class(self, shard: Shard) -> Shard:
        labels = self.y[shard.rows].reshape(len(shard.rows), -1)[:, 0]
        gone = labels == labels[self.rng.integers(len(labels))]
        shard.estimator.forget(*self._given(shard.rows[gone]))
        shard.rows = shard.rows[~gone]
        return shard

    def _split(self, shard: Shard) -> Shard:
        rows, shard.rows = self._part(shard)
        part = Shard(self._learnt(deepcopy(self.empty), rows, 1), rows)
        shard.estimator.split(part.estimator)
        self.shards.append(part)
        return shard

    def _merge(self, shard: Shard) -> Shard:
        others = [i for i, each in enumerate(self.shards) if each is not shard]
        other = self.shards.pop(others[self.rng.integers(len(others))])
        shard.estimator.merge(other.estimator)
        shard.rows = np.append(shard.rows, other.rows)
        return shard
