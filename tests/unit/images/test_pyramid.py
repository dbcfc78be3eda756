"""The pyramid against loops, and against the kernel that counts matches level by level."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerance import assert_rounded

from knowmore import KnowmoreError
from knowmore.images import Descriptors, SpatialPyramid, Words

seeds = st.integers(0, 2**32 - 1)


def some_words(rng, size=5, most=40):
    k = int(rng.integers(1, most))
    # Edges of cells and of the picture are among the positions.
    positions = rng.integers(0, 17, (k, 2)) / 16
    return Words(positions, rng.integers(size, size=k), size)


def cell(position, cells):
    return min(int(position * cells), cells - 1)


def naive(words, weights):
    columns = []
    for level, weight in enumerate(weights):
        cells = 2**level
        histogram = np.zeros((cells, cells, words.size))
        for (x, y), word in zip(words.positions, words.indices, strict=True):
            histogram[cell(y, cells), cell(x, cells), word] += weight / len(words)
        columns.extend(histogram.ravel())
    return np.array(columns)


@given(seeds, st.integers(1, 4))
def test_equals_loops(seed, levels):
    rng = np.random.default_rng(seed)
    words = [some_words(rng) for _ in range(3)]
    weights = rng.random(levels)
    found = SpatialPyramid(levels, weights).fit_transform(words)
    assert found.shape == (3, 5 * (4**levels - 1) // 3)
    assert_rounded(found, np.array([naive(each, weights) for each in words]))


def matches(a, b, cells):
    """Count of words of two equally long pictures that find a partner in their cell."""
    found = 0
    left = [(cell(x, cells), cell(y, cells), w) for (x, y), w in zip(*b, strict=True)]
    for (x, y), word in zip(*a, strict=True):
        key = cell(x, cells), cell(y, cells), word
        if key in left:
            left.remove(key)
            found += 1
    return found


@given(seeds, st.integers(1, 4))
def test_intersection_is_the_pyramid_match_kernel(seed, levels):
    """New matches at a level count half of those at the next finer one; the finest count whole."""
    rng = np.random.default_rng(seed)
    k = 20
    a, b = (Words(rng.random((k, 2)), rng.integers(4, size=k), 4) for _ in range(2))
    pairs = (a.positions, a.indices), (b.positions, b.indices)
    at_level = [matches(*pairs, 2**level) for level in range(levels)] + [0]
    L = levels - 1
    want = sum((at_level[l] - at_level[l + 1]) / 2 ** (L - l) for l in range(levels)) / k  # noqa: E741
    A, B = SpatialPyramid(levels).fit_transform([a, b])
    assert_rounded(np.minimum(A, B).sum(), want, scale=1)
    assert_rounded(A.sum(), 1.0)


def test_one_level_is_a_bag_of_words():
    words = Words(np.full((4, 2), 0.5), np.array([0, 2, 2, 2]), 3)
    np.testing.assert_array_equal(SpatialPyramid(1).fit_transform([words]), [[0.25, 0, 0.75]])


def test_equal_weights_sum_to_one():
    words = some_words(np.random.default_rng(0))
    assert_rounded(SpatialPyramid(3, "equal").fit_transform([words]).sum(), 1.0)


def test_a_picture_without_words_is_zero():
    none = Words(np.zeros((0, 2)), np.zeros(0, int), 3)
    assert not SpatialPyramid(2).fit_transform([none]).any()


WORDS = some_words(np.random.default_rng(0))

BAD = {
    "levels": (lambda: SpatialPyramid(0), "levels=0. Give a whole number from 1 to 12."),
    "many levels": (lambda: SpatialPyramid(13), "levels=13. Give a whole number from 1 to 12."),
    "weights": (
        lambda: SpatialPyramid(3, [1, 2]),
        'weights=[1, 2] must be "match", "equal", or 3 numbers, none negative.',
    ),
    "negative weight": (lambda: SpatialPyramid(1, [-1]), "weights=[-1] must be"),
    "unknown weights": (
        lambda: SpatialPyramid(1, "no"),
        "weights='no' is not known. Choose one of 'equal', 'match'.",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_are_reported(bad):
    make, words = BAD[bad]
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        make().fit([WORDS])
    assert isinstance(caught.value, KnowmoreError)


def test_words_of_two_codebooks_do_not_mix():
    other = Words(WORDS.positions.copy(), WORDS.indices.copy(), 7)
    words = r"a list of Words from one codebook, of size 5, but item 1 is of size 7\."
    with pytest.raises(ValueError, match=words):
        SpatialPyramid().fit([WORDS, other])
    with pytest.raises(ValueError, match=words):
        SpatialPyramid().fit([WORDS]).transform([WORDS, other])


def test_other_things_are_refused():
    wanted = r"^X must be a list of Words from one codebook"
    with pytest.raises(TypeError, match=rf"{wanted}, but item 0 is an int\."):
        SpatialPyramid().fit([3])
    with pytest.raises(TypeError, match=rf"{wanted}, but is a Words\."):
        SpatialPyramid().fit(WORDS)
    with pytest.raises(ValueError, match=rf"{wanted}, one for each picture, but is empty"):
        SpatialPyramid().fit([])
    with pytest.raises(AttributeError, match=r"This SpatialPyramid has no words yet. Call fit"):
        SpatialPyramid().transform([WORDS])


def test_impossible_values_are_refused():
    one = np.zeros((1, 2))
    with pytest.raises(ValueError, match=r"The words go from 3 to 3, not within \[0, 3\)"):
        Words(one.copy(), np.array([3]), 3)
    with pytest.raises(ValueError, match=r"but \(1, 2\) of float64 and \(2,\) of int64 were given"):
        Words(one.copy(), np.array([0, 1]), 3)
    with pytest.raises(
        ValueError, match=r"Real positions \(k, 2\) and vectors \(k, d\) are needed"
    ):
        Descriptors(one.copy(), np.zeros(1))
    with pytest.raises(ValueError, match=r"The positions go from 2 to 2, but must lie in \[0, 1\]"):
        Descriptors(one + 2, np.zeros((1, 3)))
