"""Spatial pyramids whose visual words are learnt from pictures put aside: they are in no test.

They are the same pictures whatever the seed, so that features are computed once and for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from knowmore._base import user_folder
from knowmore.images import Cache, learn_codebook
from papers.arrays import Array
from papers.picture_features import LEVELS, WORDS, bag, sift


def in_order(rows: Array) -> Array:
    """The rows in an order that is random but always the same; the first may be put aside."""
    return np.random.default_rng(0).permutation(rows)


def pyramid_steps(aside: Sequence[Any], step: int, local: Any = None) -> tuple[Any, ...]:
    """The way from a picture to its pyramid, patches `step` pixels apart.

    local : what describes patches; None is `sift(step)`
    """
    local = sift(step) if local is None else local
    with Cache(user_folder()) as cache:
        words = learn_codebook(aside, size=WORDS, sift=local, cache=cache)
    return local, words, bag(LEVELS)
