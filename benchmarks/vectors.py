"""Labelled vectors of two kinds: handwritten digits, and pictures of scenes by their words."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np

from benchmarks.scene import Array, Scale
from knowmore.errors import MissingData
from papers import data
from papers.findings import silent
from papers.incremental_gp.scenes import WORDS, load

# Pictures of each class, without those that the visual words were learnt from. In all there are
# about as many as digits.
_PER_CLASS = {"full": 120, "quick": 6}


@cache
def digits() -> tuple[Array, Array]:
    """All 1797 images, (n, 64), and their labels (n,)."""
    examples = data.digits()
    return examples.X, examples.labels


def scenes(scale: Scale) -> tuple[Array, Array]:
    """Pictures of Fifteen Scenes, (n, 200), and their labels, (n,), from 0 to 14.

    A picture is the square roots of its bag of words: a vector of length one, whose products with
    others are Bhattacharyya's coefficients, so that plain RBF kernels suit it.
    """
    return _scenes(_PER_CLASS[scale.name])


@cache
def _scenes(per_class: int) -> tuple[Array, Array]:
    found = load(per_class, silent)
    tested = ~found.aside
    y = np.unique(found.labels[tested], return_inverse=True)[1]
    return np.sqrt(found.histograms[WORDS][tested]), y


def lacking() -> str:
    """The data or library that `scenes` misses here, in words; empty if nothing is missing."""
    try:
        data.find("15scenes.tar")
    except MissingData:
        return "15scenes.tar is not in KNOWMORE_DATA"
    fine = all(find_spec(library) is not None for library in ("cv2", "PIL"))
    return "" if fine else 'not installed: pip install ".[images]"'
