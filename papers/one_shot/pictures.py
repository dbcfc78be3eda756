"""The pictures of the experiments on one-shot learning: what they show, and how alike they are.

Caltech-101 is seen as in section 4 of Rodner and Denzler: visual words of OpponentSIFT descriptors
on a dense grid, and the pyramid match kernel. The words are the leaves of a forest that tells the
classes apart, as in the paper, or clusters; they are learnt from a few pictures of each class, put
aside: they are never tested. Caltech-256 is seen by its edges, PHOG, as Tommasi and Caputo did.
Every kernel value is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore._base import user_folder
from knowmore.images import Cache, ForestCodebook, learn_codebook
from knowmore.kernels import ChiSquared, HistogramIntersection
from papers.arrays import Array
from papers.data import caltech101, caltech256
from papers.findings import Progress
from papers.held_out import in_order
from papers.picture_features import (
    FINE_STEP,
    LEVELS,
    WORDS,
    bag,
    edges,
    features,
    sift,
)

BACKGROUND, CLUTTER = "BACKGROUND_Google", "257.clutter"
# So many pictures of each class are put aside for the visual words.
ASIDE = 3
# Leaves of a forest of five trees: each descriptor has a word in each of them.
LEAVES, TREES = 500, 5


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """n pictures by their row: labels (n,), kernel values (n, n), and `aside` (n,), whether a
    picture may not be tested."""

    labels: Array
    gram: Array
    aside: Array

    def rows(self, name: str) -> Array:
        """The pictures of one class."""
        return np.flatnonzero(self.labels == name)

    def block(self, rows: Array, columns: Array) -> Array:
        """Kernel values between pictures, in double precision."""
        return np.asarray(self.gram[np.ix_(rows, columns)], dtype=float)

    def kernel(self, X: Array, Y: Array) -> Array:
        """The kernel of models whose inputs are the rows of pictures: (n, 1) and (m, 1)."""
        return self.block(X[:, 0].astype(int), Y[:, 0].astype(int))


def things(most: Mapping[str, int | None], progress: Progress, *, forest: bool = False) -> Seen:
    """Pictures of Caltech-101 by OpponentSIFT pyramids: of each class so many, or all (None).

    forest : whether the words are the leaves of a forest, not clusters
    """
    pictures = caltech101(leave_out=())
    drawn = [in_order(np.flatnonzero(pictures.labels == name))[:n] for name, n in most.items()]
    aside = np.concatenate([np.arange(len(rows)) < ASIDE for rows in drawn])
    chosen = np.concatenate(drawn)
    progress(0.1, "visual words")
    steps = _words(pictures.X[chosen[aside]], pictures.labels[chosen[aside]], forest=forest)

    def told(share: float, _: str) -> None:
        progress(0.1 + 0.8 * share, f"pictures: {share:.0%}")

    pyramids = features(pictures.X[chosen], steps, told)
    progress(0.9, "kernel")
    # In single precision it takes half the time and memory; 1e-7 of a value changes no rank.
    gram = HistogramIntersection()(pyramids.astype(np.float32))
    # Each word of the several that a descriptor has in a forest counts: to one scale.
    return Seen(pictures.labels[chosen], gram / np.diagonal(gram).mean(), aside)


def _words(pictures: Sequence[Any], labels: Array, *, forest: bool) -> tuple[Any, ...]:
    """The way from a picture to its pyramid, with words learnt from these."""
    colour = sift(FINE_STEP).set_params(colour="opponent")
    if forest:
        book = ForestCodebook(LEAVES, trees=TREES, n_jobs=-1)
        return colour, book.fit(colour.transform(list(pictures)), labels), bag(LEVELS, LEAVES)
    with Cache(user_folder()) as cache:
        words = learn_codebook(pictures, size=WORDS, sift=colour, cache=cache)
    return colour, words, bag(LEVELS)


def vehicles_and_animals(names: Sequence[str]) -> Seen:
    """Pictures of Caltech-256 by their edges; the width of the kernel is the mean distance."""
    pictures = caltech256(leave_out=())
    chosen = np.flatnonzero(np.isin(pictures.labels, names))
    histograms = features(list(pictures.X[chosen]), (edges(),))
    alike = ChiSquared()(histograms)
    gram = alike ** (-1 / np.log(alike).mean())
    return Seen(pictures.labels[chosen], gram, np.zeros(len(chosen), dtype=bool))
