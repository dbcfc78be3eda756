"""Codebooks: local descriptors to visual words.

A codebook is learnt once and then stays the same: words that changed with later classes would
change every histogram. What it has learnt is a few arrays, which `save` writes and `load` reads.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from knowmore._base import Array, File, Frozen, load, save, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.local import Descriptors, Words, values
from knowmore.images.reading import Transformer, fitted, threaded

# The range of NumPy's older generators, which scikit-learn uses.
LARGEST_SEED = 2**32 - 1
# How many random splits a node chooses from: the most that Moosmann et al. try.
_TRIALS = 50


@final
@dataclass(frozen=True, eq=False)
class Centres(Frozen):
    """A vocabulary of points; the word of a descriptor is the nearest one.

    centres : (size, d), float32
    """

    centres: Array

    def __post_init__(self) -> None:
        shape = self.centres.shape
        if len(shape) != 2 or 0 in shape or self.centres.dtype != np.float32:
            raise InvalidInput(f"Centres must be float32 (size, d), but have shape {shape}.")
        _single(self.centres)
        super().__post_init__()

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.centres)

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return int(self.centres.shape[1])

    def words(self, vectors: Array) -> Array:
        """The words of descriptors (k, d): argmin |x - c|^2 = argmax x'c - |c|^2 / 2, (k, 1)."""
        scores = _single(vectors) @ self.centres.T
        scores -= np.einsum("ij,ij->i", self.centres, self.centres) / 2
        return np.asarray(scores.argmax(axis=1))[:, None]


@final
@dataclass(frozen=True, eq=False)
class Leaves(Frozen):
    """A vocabulary of the leaves of several trees; a descriptor has one word in every tree.

    children : the two nodes below each node, (nodes, 2); a leaf has -1
    feature : which number of the descriptor a node compares, (nodes,)
    threshold : if it is at most this, go to the first child, else to the second, (nodes,)
    roots : where each tree begins, (trees,)
    features : how many numbers a descriptor has, ()
    """

    children: Array
    feature: Array
    threshold: Array
    roots: Array
    features: Array

    def __post_init__(self) -> None:
        n, inner = len(self.feature), ~self._is_leaf
        nodes, compared = self.children[inner], self.feature[inner]
        integers = (self.children, self.feature, self.roots, self.features)
        fits = (
            all(array.dtype.kind == "i" for array in integers)
            and (self.children.shape, self.threshold.shape) == ((n, 2), (n,))
            and self.roots.ndim == 1
            # A child comes after its parent, so that every path ends.
            and (nodes > np.flatnonzero(inner)[:, None]).all()
            and (nodes < n).all()
            and ((compared >= 0) & (compared < self.features)).all()
            and ((self.roots >= 0) & (self.roots < n)).all()
        )
        if not fits:
            raise InvalidInput("The nodes of the trees do not fit together.")
        super().__post_init__()

    @property
    def size(self) -> int:
        """The number of words."""
        return int(self._is_leaf.sum())

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return int(self.features)

    @property
    def _is_leaf(self) -> Array:
        return np.asarray(self.children[:, 0] < 0)

    def words(self, vectors: Array) -> Array:
        """The leaf that each descriptor reaches in each tree, (k, trees)."""
        leaf = self._is_leaf
        # A leaf leads to itself, so its comparison has no effect.
        children = np.where(leaf[:, None], np.arange(len(leaf))[:, None], self.children)
        feature = np.where(leaf, 0, self.feature)
        row = np.arange(len(vectors))[:, None]
        # scikit-learn compares numbers in single precision with thresholds in double.
        vectors = _single(vectors)
        node = np.broadcast_to(self.roots, (len(vectors), len(self.roots)))
        while True:
            right = vectors[row, feature[node]] > self.threshold[node]
            below = children[node, right.astype(np.intp)]
            if (below == node).all():
                return np.asarray((np.cumsum(leaf) - 1)[node])
            node = below


@dataclass(eq=False, repr=False)
class Codebook(Transformer):
    """`Descriptors` to `Words`: one of each for every picture. `vocabulary_` is what was learnt."""

    size: int = 200
    _: KW_ONLY
    sample: int = 100_000
    random_state: int | None = 0
    n_jobs: int | None = None
    _vocabulary: ClassVar[type[Any]]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a seeded `sample` of all descriptors of the pictures X."""
        self._check()
        X = values(Descriptors, X, "DenseSIFT")
        vectors, owners = _sample(X, self.sample, self.random_state)
        self.vocabulary_: Any = self._learn(vectors, owners, y, len(X))
        return self

    def transform(self, X: Any) -> list[Words]:
        """The `Words` of each picture."""
        vocabulary = fitted(self, "vocabulary_")
        X = values(Descriptors, X, "DenseSIFT", vocabulary.width)
        return threaded(_words, ((vocabulary, each) for each in X), self.n_jobs)

    def save(self, path: File) -> None:
        """Write the codebook to an .npz file, without pickle."""
        save(path, type(self).__name__, self.get_params(), vars(fitted(self, "vocabulary_")))

    @classmethod
    def load(cls, path: File) -> Self:
        """The codebook that `save` wrote: it gives the same words, bit for bit."""
        return load(path, cls.__name__, lambda settings, arrays: cls(**settings).holding(arrays))

    def holding(self, arrays: dict[str, Array]) -> Self:
        """Take the arrays of a vocabulary learnt before, `vars(codebook.vocabulary_)`."""
        self._check()
        self.vocabulary_ = self._vocabulary(**arrays)
        return self

    @abstractmethod
    def _learn(self, vectors: Array, owners: Array, y: Any, n: int) -> Centres | Leaves:
        """Learn from descriptors (m, d); `owners` (m,) says which of n pictures each is from."""

    def _check(self) -> None:
        whole_number("size", self.size, 2)
        whole_number("sample", self.sample, 2)
        if self.random_state is not None:
            whole_number("random_state", self.random_state, 0, LARGEST_SEED)


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

    _vocabulary = Centres

    def _learn(self, vectors: Array, owners: Array, y: Any, n: int) -> Centres:
        # A set, as np.unique would sort a hundred thousand rows for longer than clustering takes.
        different = len({row.tobytes() for row in vectors})
        if different < self.size:
            why = f"size={self.size}, but the sample has only {different} different descriptors."
            raise InvalidInput(f"{why} Give more pictures, or ask for fewer words.")
        # It takes longer to load than all else here, and is seldom needed.
        from sklearn.cluster import MiniBatchKMeans

        model = MiniBatchKMeans(
            self.size, batch_size=4096, n_init=3, random_state=self.random_state
        )
        return Centres(model.fit(vectors).cluster_centers_.astype(np.float32))


@final
@dataclass(eq=False, repr=False)
class ForestCodebook(Codebook):
    """Words are the leaves of extremely randomised trees that tell the pictures' classes apart.

    Moosmann, Triggs and Jurie (2006): descriptors carry the class of their picture; each node takes
    the best of some random splits; the leaves are words, and the classes are dropped. Every
    descriptor has one word in each tree.

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

    size: int = 1000
    _: KW_ONLY
    trees: int = 5
    _vocabulary = Leaves

    def _learn(self, vectors: Array, owners: Array, y: Any, n: int) -> Leaves:
        labels = np.asarray(y)
        classes = len(np.unique(labels))
        if labels.shape != (n,) or classes < 2:
            got = "is None" if y is None else f"has shape {labels.shape} and {classes} class(es)"
            raise InvalidInput(f"y {got}. Give the class of each of the {n} pictures, two or more.")
        forest = ExtraTreesClassifier(
            self.trees,
            criterion="entropy",
            max_features=min(_TRIALS, vectors.shape[1]),
            max_leaf_nodes=self.size // self.trees,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        forest.fit(vectors, labels[owners])
        # The nodes of one tree after the other.
        trees = [tree.tree_ for tree in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        children = [np.column_stack([t.children_left, t.children_right]) for t in trees]
        shifted = [np.where(c < 0, -1, c + root) for c, root in zip(children, roots, strict=True)]
        feature = np.concatenate([tree.feature for tree in trees])
        threshold = np.concatenate([tree.threshold for tree in trees])
        width = np.array(vectors.shape[1])
        return Leaves(np.concatenate(shifted), feature, threshold, roots, width)

    def _check(self) -> None:
        super()._check()
        whole_number("trees", self.trees, 1)
        if self.size < 2 * self.trees:
            raise InvalidInput(f"size={self.size} is too few for {self.trees} trees of two words.")


def codebook_in(path: File) -> Codebook:
    """The codebook in a file, of either class."""
    with suppress(InvalidInput):
        return ForestCodebook.load(path)
    return KMeansCodebook.load(path)


def _single(vectors: Array) -> Array:
    """Descriptors (k, d) in single precision, whose squares must be finite too."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = vectors.astype(np.float32)
        squares = np.einsum("ij,ij->i", found, found)
    if not np.isfinite(squares).all():
        raise InvalidInput("Squares of descriptors go beyond single precision. Scale them down.")
    return found


def _words(vocabulary: Centres | Leaves, descriptors: Descriptors) -> Words:
    words = vocabulary.words(descriptors.vectors)
    positions = np.repeat(descriptors.positions, words.shape[1], axis=0)
    return Words(positions, words.ravel(), vocabulary.size)


def _sample(X: list[Descriptors], most: int, seed: int | None) -> tuple[Array, Array]:
    """`most` descriptors, drawn evenly from all pictures, (m, d), and whose they are, (m,)."""
    starts = np.cumsum([0, *map(len, X)])
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(starts[-1], min(most, starts[-1]), replace=False))
    owners = np.searchsorted(starts, chosen, side="right") - 1
    rows = np.split(chosen - starts[owners], np.searchsorted(owners, np.arange(1, len(X))))
    parts = [each.vectors[mine] for each, mine in zip(X, rows, strict=True)]
    return _single(np.concatenate(parts)), owners
