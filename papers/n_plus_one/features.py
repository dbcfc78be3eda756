"""How animals and things are compared: one feature alone, or all by an average of kernels.

The supplement has six kinds of features for animals and fourteen for things, after Gehler and
Nowozin. Here things are seen by the twelve of `papers.picture_features`, and by bags of words
beside pyramids: another kind that is put there is one more in the average.

All but the covariances are histograms. These are taken as the square roots of their parts, so that
all are of length one: some pictures have all their words in a few bins, and would be far from
everything.

Non-linear is the average of exp(-gamma d^2) over all features and over gamma = 2^-5, ..., 2^8. The
supplement does not say how its features are scaled, on which the meaning of gamma depends. Here the
squared distances d^2 of each feature are divided by their mean over all pictures, with which no
label has to do, and by 2^8: the exponent of the narrowest kernel is one at the mean. Of powers from
1 to 2^10, leave-one-out on the examples of sources liked this best for animals; for things 2^10 was
a little better. Without it, half of the kernels tell only whether two pictures are the same, which
is noise on the diagonal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import final, get_args

import numpy as np

from knowmore.kernels import squared_distances
from papers.arrays import Array
from papers.data import Feature, animals_with_attributes, caltech256
from papers.findings import Progress
from papers.held_out import in_order, pyramid_steps
from papers.picture_features import FINE_STEP, features, patches, wholes
from papers.picture_features import WORDS as SIZE

LINEAR, NON_LINEAR = "linear", "non-linear"
# What things are seen by in a quick look, and what a linear kernel sees.
_QUICK, _PYRAMID = ("SIFT", "PHOG", "covariance"), "SIFT"
# gamma = 2^-5, ..., 2^8.
_FIRST, _LAST = -5, 8


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """Pictures given by their number, as a table (n, 1): labels (n,) and the kernel's values."""

    labels: Array
    gram: Array

    def __call__(self, A: Array, B: Array) -> Array:
        """The kernel between pictures A (k, 1) and B (m, 1)."""
        return np.asarray(self.gram[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))])


def as_table(numbers: Array) -> Array:
    """Numbers of pictures as inputs, (k, 1)."""
    return numbers[:, None].astype(float)


def part(progress: Progress, what: str, begin: float, end: float) -> Progress:
    """Progress within a part of the whole."""

    def told(share: float, step: str) -> None:
        progress(begin + share * (end - begin), f"{what}: {step}" if step else what)

    return told


def animals(names: Collection[str], progress: Progress) -> dict[str, Seen]:
    """The animals `names`, by each kind of kernel. The linear kernel is on PHOG."""
    tables: dict[str, Array] = {}
    for i, feature in enumerate(get_args(Feature)):
        progress(i / len(get_args(Feature)), feature)
        examples = animals_with_attributes(feature)
        rows = np.isin(examples.labels, list(names))
        tables[feature] = _roots(examples.X[rows])
    return _seen(examples.labels[rows], tables, "phog")


def things(
    names: Collection[str], grouped: Collection[str], progress: Progress, *, quick: bool = False
) -> dict[str, Seen]:
    """The classes `names` of Caltech-256, by each kind of kernel.

    The linear kernel is on pyramids of visual words. Besides the linear and the mean kernel, each
    kind of features has a non-linear kernel of its name. The words are learnt from one picture of
    each class that is in no group. `quick`: few kinds of features.
    """
    examples = caltech256()
    others = np.setdiff1d(examples.labels, list(grouped))
    aside = [in_order(np.flatnonzero(examples.labels == name))[0] for name in others]
    rows = np.isin(examples.labels, list(names))
    pictures = list(examples.X[rows])
    progress(0.0, "visual words")
    kinds = patches(FINE_STEP) | wholes()
    local, kinds = set(patches()), {k: v for k, v in kinds.items() if not quick or k in _QUICK}
    tables = {}
    for i, (kind, way) in enumerate(kinds.items()):
        told = part(progress, kind, i / len(kinds), (i + 1) / len(kinds))
        is_local = kind in local
        steps = pyramid_steps(list(examples.X[aside]), FINE_STEP, way) if is_local else (way,)
        tables[kind] = features(pictures, steps, told)
    # The coarsest level of a pyramid is the bag of words.
    tables["bag of words"] = tables[_PYRAMID][:, :SIZE]
    roots = {kind: X if X.min() < 0 else _roots(X) for kind, X in tables.items()}
    labels = examples.labels[rows]
    alone = {kind: Seen(labels, average_rbf([X])) for kind, X in roots.items()}
    return _seen(labels, roots, _PYRAMID) | alone


def average_rbf(tables: Iterable[Array]) -> Array:
    """The average of the kernels over features (n, D) and gammas, (n, n).

    With twice gamma the values are the squares.
    """
    grams = []
    for X in tables:
        D = squared_distances(X, X, 1.0)
        power = np.exp(-(2.0 ** (_FIRST - _LAST)) / D.mean() * D)
        gram = power.copy()
        for _ in range(_FIRST, _LAST):
            np.square(power, out=power)
            gram += power
        grams.append(gram / (_LAST - _FIRST + 1))
    K = sum(grams) / len(grams)
    return np.asarray((K + K.T) / 2)


def _seen(labels: Array, tables: dict[str, Array], alone: str) -> dict[str, Seen]:
    X = tables[alone]
    return {
        LINEAR: Seen(labels, X @ X.T),
        NON_LINEAR: Seen(labels, average_rbf(tables.values())),
    }


def _roots(counts: Array) -> Array:
    """The square roots of the parts that bins (n, D) make up; an empty histogram stays so."""
    sums = counts.sum(axis=1, keepdims=True)
    return np.sqrt(counts / np.where(sums > 0, sums, 1))
