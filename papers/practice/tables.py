"""The pictures of all questions, described once: tables of features, and how they are split.

Visual words are learnt from a few pictures of each class. These may be learnt from, but are never
in a test. All features are kept in the user's cache, and tables in memory for the next question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np

from knowmore.examples import Examples
from papers.arrays import Array
from papers.data import animals_with_attributes, caltech101, caltech256, digits, fifteen_scenes
from papers.held_out import in_order, pyramid_steps
from papers.picture_features import FINE_STEP, STEP, WORDS, edges, features, network

CALTECH101, CALTECH256, SCENES = "Caltech-101", "Caltech-256", "Fifteen Scenes"
ANIMALS, DIGITS = "Animals with Attributes", "digits"
EMBEDDINGS, PYRAMIDS, BAGS, EDGES = "embeddings", "pyramids", "bags of words", "PHOG"
BACKGROUND = "BACKGROUND_Google"
# Faces_easy shows the pictures of Faces once more.
_SOURCES: dict[str, tuple[Callable[[], Examples], int]] = {
    CALTECH101: (lambda: caltech101(leave_out=("Faces_easy",)), FINE_STEP),
    CALTECH256: (caltech256, FINE_STEP),
    SCENES: (fifteen_scenes, STEP),
}
# So many pictures of each class may be learnt from, but not tested.
_ASIDE = {CALTECH101: 3, CALTECH256: 3, SCENES: 20}
# For a quick look: so many classes, and so many pictures of each, of the background, and aside.
_FEW_CLASSES, _FEW_PICTURES, _FEW_BACKGROUND, _FEW_ASIDE = 8, 22, 60, 3


@final
@dataclass(frozen=True, eq=False)
class Table:
    """n examples by one of their features.

    name : of the examples and the feature
    X (n, D), y (n,), and `aside` (n,), whether an example may not be tested
    histograms : whether X are histograms
    """

    name: str
    X: Array
    y: Array
    aside: Array
    histograms: bool

    @property
    def classes(self) -> Array:
        """The names of all classes but the background."""
        names = np.unique(self.y)
        return np.asarray(names[names != BACKGROUND])

    def rows(self, name: object, rng: np.random.Generator) -> tuple[Array, Array]:
        """The rows of a class in random order: those that may be tested, and those that may not."""
        rows = rng.permutation(np.flatnonzero(self.y == name))
        return rows[~self.aside[rows]], rows[self.aside[rows]]

    def split(
        self, rng: np.random.Generator, learnt: int, tested: int, among: Array | None = None
    ) -> tuple[Array, Array]:
        """Rows to learn from, so many a class, and rows to be tested, at most so many.

        At least one of each class is tested.
        """
        train, test = [], []
        for name in self.classes if among is None else among:
            open_, aside = self.rows(name, rng)
            spare = len(open_) + len(aside) - learnt
            asked = max(1, min(tested, spare, len(open_)))
            test.append(open_[:asked])
            train.append(rng.permutation(np.concatenate([open_[asked:], aside]))[:learnt])
        return np.concatenate(train), np.concatenate(test)


@cache
def look(source: str, feature: str, quick: bool) -> Table:
    """The table of a data set by one feature; `quick`: a few examples of a few classes."""
    if source == DIGITS:
        return _plain(digits(), source, False)
    if source == ANIMALS:
        # The parts that visual words make up.
        counts = animals_with_attributes("surf")
        parts = counts.X / counts.X.sum(axis=1, keepdims=True)
        return _plain(Examples.of(parts, counts.labels), f"{source}, {feature}", True)
    load, step = _SOURCES[source]
    pictures = load()
    groups = _chosen(pictures.labels, quick)
    rows = np.concatenate(groups)
    few = _FEW_ASIDE if quick else _ASIDE[source]
    aside = np.concatenate([np.arange(len(group)) < few for group in groups])
    X = _described(list(pictures.X[rows]), list(pictures.X[rows[aside]]), feature, step)
    return Table(f"{source}, {feature}", X, pictures.labels[rows], aside, feature != EMBEDDINGS)


def _plain(examples: Examples, name: str, histograms: bool) -> Table:
    nothing = np.zeros(len(examples), dtype=bool)
    return Table(name, examples.X, examples.labels, nothing, histograms)


def _chosen(labels: Array, quick: bool) -> list[Array]:
    """The rows of each class, in an order that is always the same."""
    names = np.unique(labels)
    if not quick:
        return [in_order(np.flatnonzero(labels == name)) for name in names]
    few = [*names[names != BACKGROUND][:_FEW_CLASSES], *names[names == BACKGROUND]]
    most = {name: _FEW_BACKGROUND if name == BACKGROUND else _FEW_PICTURES for name in few}
    return [in_order(np.flatnonzero(labels == name))[:n] for name, n in most.items()]


def _described(pictures: list[Any], aside: list[Any], feature: str, step: int) -> Array:
    if feature == EMBEDDINGS:
        return features(pictures, (network(),))
    # Histograms in single precision: their kernels take half the time.
    if feature == EDGES:
        return features(pictures, (edges(),)).astype(np.float32)
    pyramids = features(pictures, pyramid_steps(aside, step)).astype(np.float32)
    if feature == PYRAMIDS:
        return pyramids
    # The coarsest level of a pyramid is the bag of words.
    bags = pyramids[:, :WORDS]
    return np.asarray(bags / bags.sum(axis=1, keepdims=True))
