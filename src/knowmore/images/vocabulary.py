"""What a codebook has learnt: arrays that turn descriptors into the numbers of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, final

import numpy as np

from knowmore.arrays import Array
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput


class Vocabulary(Protocol):
    """A frozen value, all of whose fields are arrays."""

    @property
    def size(self) -> int:
        """How many words there are."""

    @property
    def width(self) -> int:
        """How many numbers a descriptor has."""

    def words(self, vectors: Array) -> Array:
        """The words of descriptors (k, d), (k, votes)."""


def single(vectors: Array) -> Array:
    """Descriptors (k, d) in single precision, where their squares must have room too."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = vectors.astype(np.float32)
        squares = np.einsum("ij,ij->i", found, found)
    if not np.isfinite(squares).all():
        raise InvalidInput(
            "The descriptors have NaN or infinity among their values, or numbers whose squares go "
            "beyond single precision. Scale them down."
        )
    return found


@final
@dataclass(frozen=True, eq=False)
class Centres:
    """Each word is a point, and the word of a descriptor is the nearest of them.

    centres : (size, d), float32
    """

    centres: Array

    def __post_init__(self) -> None:
        shape = self.centres.shape
        if len(shape) != 2 or 0 in shape or self.centres.dtype != np.float32:
            raise InvalidInput(f"Centres must be float32 (size, d), but have shape {shape}.")
        single(self.centres)
        self.centres.flags.writeable = False

    @property
    def size(self) -> int:
        """How many words there are."""
        return len(self.centres)

    @property
    def width(self) -> int:
        """How many numbers a descriptor has."""
        return int(self.centres.shape[1])

    @cached_property
    def _half_squares(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.centres, self.centres) / 2)

    def words(self, vectors: Array) -> Array:
        """argmin |x - c|^2 = argmax x'c - |c|^2 / 2, (k, 1)."""
        scores = single(vectors) @ self.centres.T
        scores -= self._half_squares
        return np.asarray(scores.argmax(axis=1))[:, None]


@final
@dataclass(frozen=True, eq=False)
class Leaves:
    """Each word is a leaf of one of several trees; a descriptor has one word in every tree.

    children : the two nodes below each node, (nodes, 2); a leaf has -1
    feature : the number of the descriptor that a node looks at, (nodes,)
    threshold : down to the first child if that number is at most this, else to the second, (nodes,)
    roots : where each tree begins, (trees,)
    features : how many numbers a descriptor has, ()
    """

    children: Array
    feature: Array
    threshold: Array
    roots: Array
    features: Array

    def __post_init__(self) -> None:
        n = len(self.feature)
        inner = ~self._is_leaf
        # A child stands after its parent, so that every way down ends.
        fine = (
            {a.dtype.kind for a in (self.children, self.feature, self.roots, self.features)}
            == {"i"}
            and self.children.shape == (n, 2)
            and self.threshold.shape == (n,)
            and self.roots.ndim == 1
            and bool((self.children[inner] > np.flatnonzero(inner)[:, None]).all())
            and bool((self.children < n).all())
            and bool(((self.feature >= 0) & (self.feature < self.features))[inner].all())
            and bool(((self.roots >= 0) & (self.roots < n)).all())
        )
        if not fine:
            raise InvalidInput("The nodes of the trees do not fit together.")
        for array in (self.children, self.feature, self.threshold, self.roots):
            array.flags.writeable = False

    @classmethod
    def of(cls, trees: list[Any], features: int) -> Self:
        """The nodes of scikit-learn's `Tree`s, one after the other."""
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        children = [np.column_stack([t.children_left, t.children_right]) for t in trees]
        shifted = [np.where(c < 0, -1, c + r) for c, r in zip(children, roots, strict=True)]
        return cls(
            np.concatenate(shifted),
            np.concatenate([tree.feature for tree in trees]),
            np.concatenate([tree.threshold for tree in trees]),
            roots,
            np.array(features),
        )

    @property
    def size(self) -> int:
        """How many words there are."""
        return int(self._is_leaf.sum())

    @property
    def width(self) -> int:
        """How many numbers a descriptor has."""
        return int(self.features)

    @property
    def _is_leaf(self) -> Array:
        return np.asarray(self.children[:, 0] < 0)

    @cached_property
    def _word(self) -> Array:
        """The leaves, counted from the first to the last tree."""
        return np.cumsum(self._is_leaf) - 1

    @cached_property
    def _down(self) -> tuple[Array, Array]:
        """Children and features such that a leaf leads to itself, whatever it looks at."""
        leaf = self._is_leaf
        itself = np.arange(len(leaf))[:, None]
        return np.where(leaf[:, None], itself, self.children), np.where(leaf, 0, self.feature)

    def words(self, vectors: Array) -> Array:
        """The leaf that each descriptor reaches in each tree, (k, trees)."""
        children, feature = self._down
        row = np.arange(len(vectors))[:, None]
        # scikit-learn compares in single precision with thresholds in double.
        vectors = single(vectors)
        node = np.broadcast_to(self.roots, (len(vectors), len(self.roots)))
        while True:
            right = vectors[row, feature[node]] > self.threshold[node]
            below = children[node, right.astype(np.intp)]
            if (below == node).all():
                return np.asarray(self._word[node])
            node = below
