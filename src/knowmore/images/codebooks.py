"""Codebooks: local descriptors to visual words.

A codebook is learnt once and then stays: words that changed with later classes would change
every histogram. What it has learnt is a few arrays, which `save` writes and `load` reads.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, final

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import Tags

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.files import load, save
from knowmore.images.local import Descriptors, Words, values
from knowmore.images.settings import seed_number, whole
from knowmore.images.vocabulary import Centres, Leaves, Vocabulary, single
from knowmore.unfitted import Unfitted

# How many random splits a node chooses from: the most that Moosmann et al. try.
_TRIALS = 50


class Codebook(TransformerMixin, BaseEstimator, ABC):
    """`Descriptors` to `Words`: one of each for every picture. `vocabulary_` is what was learnt."""

    size: int
    sample: int
    random_state: int | None
    n_jobs: int | None
    vocabulary_: Any
    _kind: ClassVar[type[Any]]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a seeded `sample` of all descriptors of the pictures X."""
        self._check()
        X = values(Descriptors, X, "DenseSIFT")
        _same_width(X, X[0].vectors.shape[1])
        chosen, owners = _sample([len(each) for each in X], self.sample, self.random_state)
        parts = zip(X, chosen, strict=True)
        vectors = np.concatenate([each.vectors[rows] for each, rows in parts])
        self.vocabulary_ = self._learn(single(vectors), owners, y, len(X))
        return self

    def transform(self, X: Any) -> list[Words]:
        """The `Words` of each picture."""
        vocabulary = self._held()
        X = values(Descriptors, X, "DenseSIFT")
        _same_width(X, vocabulary.width)
        tasks = (delayed(_worded)(vocabulary, each) for each in X)
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(tasks))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codebook to an .npz file. No pickle is in it."""
        held: Any = self._held()
        arrays = {field.name: getattr(held, field.name) for field in fields(held)}
        save(path, type(self).__name__, self.get_params(), arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The codebook that `save` wrote: it gives the same words, bit for bit."""
        return load(path, cls.__name__, cls._built)

    @classmethod
    def _built(cls, settings: dict[str, Any], arrays: dict[str, Array]) -> Self:
        codebook = cls(**settings)
        codebook._check()
        codebook.vocabulary_ = cls._kind(**arrays)
        return codebook

    @abstractmethod
    def _learn(self, vectors: Array, owners: Array, y: Any, n: int) -> Vocabulary:
        """Learn from descriptors (m, d); `owners` (m,) tells which of n pictures each is from."""

    def _check(self) -> None:
        for name in "size", "sample":
            whole(name, getattr(self, name), 2)
        if self.random_state is not None:
            seed_number("random_state", self.random_state)

    def _held(self) -> Vocabulary:
        if not self.__sklearn_is_fitted__():
            raise Unfitted(f"This {type(self).__name__} has no words yet. Call fit, or load one.")
        vocabulary: Vocabulary = self.vocabulary_
        return vocabulary

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vocabulary_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


@final
class KMeansCodebook(Codebook):
    """Words are the centres of clusters; the word of a descriptor is the nearest one.

    Parameters
    ----------
    size : how many words
    sample : how many descriptors to learn from, at most; drawn from all pictures
    random_state : a whole number; the same one gives the same words
    n_jobs : threads of `transform`; None is one, -1 as many as there are cores

    Examples
    --------
    >>> from knowmore.images import DenseSIFT
    >>> pictures = np.random.default_rng(0).random((3, 64, 64))
    >>> descriptors = DenseSIFT().transform(pictures)
    >>> KMeansCodebook(size=10).fit_transform(descriptors)[0]
    Words(49 of 10 different ones)
    """

    _kind = Centres

    def __init__(
        self,
        size: int = 200,
        *,
        sample: int = 100_000,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.size = size
        self.sample = sample
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, vectors: Array, owners: Array, y: Any, n: int) -> Centres:
        # By hand: np.unique sorts a hundred thousand rows for longer than the clusters take.
        different = len({row.tobytes() for row in vectors})
        if different < self.size:
            raise InvalidInput(
                f"size={self.size} words were asked for, but the sample has only {different} "
                f"different descriptors. Give more pictures, or ask for fewer words."
            )
        kmeans = MiniBatchKMeans(
            self.size, batch_size=4096, n_init=3, random_state=self.random_state
        )
        return Centres(kmeans.fit(vectors).cluster_centers_.astype(np.float32))


@final
class ForestCodebook(Codebook):
    """Words are the leaves of extremely randomised trees that tell the pictures' classes apart.

    Moosmann, Triggs and Jurie (2006): descriptors carry the class of their picture; at each node
    the best of some random splits is taken; the leaves are words and the classes are forgotten.
    Every descriptor has one word in each tree.

    Parameters
    ----------
    size : how many words, at most; each tree has size // trees leaves
    trees : how many trees
    sample : how many descriptors to learn from, at most; drawn from all pictures
    random_state : a whole number; the same one gives the same words
    n_jobs : threads; None is one, -1 as many as there are cores

    Examples
    --------
    >>> from knowmore.images import DenseSIFT
    >>> pictures = np.random.default_rng(0).random((3, 64, 64))
    >>> descriptors = DenseSIFT().transform(pictures)
    >>> ForestCodebook(size=20, trees=2).fit_transform(descriptors, ["a", "b", "a"])[0]
    Words(98 of 20 different ones)
    """

    _kind = Leaves

    def __init__(
        self,
        size: int = 1000,
        *,
        trees: int = 5,
        sample: int = 100_000,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.size = size
        self.trees = trees
        self.sample = sample
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, vectors: Array, owners: Array, y: Any, n: int) -> Leaves:
        labels = _labels(y, n)
        forest = ExtraTreesClassifier(
            self.trees,
            criterion="entropy",
            max_features=min(_TRIALS, vectors.shape[1]),
            max_leaf_nodes=self.size // self.trees,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        forest.fit(vectors, labels[owners])
        return Leaves.of([tree.tree_ for tree in forest.estimators_], vectors.shape[1])

    def _check(self) -> None:
        super()._check()
        whole("trees", self.trees, 1)
        if self.size < 2 * self.trees:
            raise InvalidInput(
                f"size={self.size} words cannot be shared by {self.trees} trees: each needs 2 "
                f"leaves or more. Ask for more words or fewer trees."
            )


def _worded(vocabulary: Vocabulary, descriptors: Descriptors) -> Words:
    words = vocabulary.words(descriptors.vectors)
    positions = np.repeat(descriptors.positions, words.shape[1], axis=0)
    return Words(positions, words.ravel(), vocabulary.size)


def _sample(counts: Sequence[int], most: int, seed: int | None) -> tuple[list[Array], Array]:
    """`most` of the descriptors of all pictures, evenly: the rows of each, and whose they are."""
    total = sum(counts)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(total, min(most, total), replace=False))
    ends = np.cumsum(counts)
    owners = np.searchsorted(ends, chosen, side="right")
    rows = chosen - (ends - counts)[owners]
    return np.split(rows, np.searchsorted(chosen, ends[:-1])), owners


def _labels(y: Any, n: int) -> Array:
    if y is None:
        raise InvalidInput(
            "A ForestCodebook learns from classes, but y is None. Give y, the class of each "
            "picture, or use KMeansCodebook."
        )
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInput(
            f"y has shape {labels.shape}, but {n} pictures were given: it must have one class for "
            f"each."
        )
    if len(np.unique(labels)) < 2:
        raise InvalidInput(
            f"All pictures are of the class {labels.tolist()[0]!r}: there is nothing to tell "
            f"apart. Give pictures of two classes or more, or use KMeansCodebook."
        )
    return labels


def _same_width(X: list[Descriptors], width: int) -> None:
    for i, each in enumerate(X):
        if each.vectors.shape[1] != width:
            raise InvalidInput(
                f"The descriptors of picture {i} have {each.vectors.shape[1]} numbers, but "
                f"{width} are expected. Use the same settings of DenseSIFT for all."
            )
