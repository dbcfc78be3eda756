"""Self-similarities against loops over displacements, and under changes of light and turns."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from knowmore.images import KMeansCodebook, SelfSimilarity, SpatialPyramid

cv2 = pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
PICTURE = cv2.GaussianBlur(rng.integers(0, 256, (30, 26), dtype=np.uint8), (0, 0), 1.5)
FINE = SelfSimilarity(15, 4, inner=3)


def naive(image, patch, step, inner):
    """The descriptors of grey values in [0, 1], in loops."""
    h, w = image.shape
    half, reach = inner // 2, (patch - inner) // 2
    found = []
    for top in range((h - patch) % step // 2, h - patch + 1, step):
        for left in range((w - patch) % step // 2, w - patch + 1, step):
            y, x = top + patch // 2, left + patch // 2
            square = image[y - half : y + half + 1, x - half : x + half + 1]
            nearest, jitter = [math.inf] * 80, 0.0
            for v in range(-reach, reach + 1):
                for u in range(-reach, reach + 1):
                    distance = math.hypot(v, u)
                    if not 1 <= distance <= reach:
                        continue
                    other = image[y + v - half : y + v + half + 1, x + u - half : x + u + half + 1]
                    D = float(((square - other) ** 2).sum())
                    ring = min(int(math.log(distance) / math.log(reach) * 4), 3)
                    angle = math.floor(math.atan2(-v, u) / (2 * math.pi) * 20 + 0.5) % 20
                    nearest[ring * 20 + angle] = min(nearest[ring * 20 + angle], D)
                    if max(abs(v), abs(u)) == 1:
                        jitter = max(jitter, D)
            S = np.exp(-np.array(nearest) / max(jitter, inner**2 * (4 / 255) ** 2))
            found.append((S - S.min()) / (S.max() - S.min()) if S.max() > S.min() else 0 * S)
    return np.array(found)


def within_rounding(got, want):
    """255 for one, rounded; before that, sums in single precision, of which bins may be none."""
    return abs(got - 255 * want).max() <= 0.5 + 255 * 1000 * np.finfo(np.float32).eps


@pytest.mark.parametrize(("patch", "step", "inner"), [(15, 4, 3), (21, 5, 5), (9, 3, 1)])
def test_equals_loops(patch, step, inner):
    (found,) = SelfSimilarity(patch, step, inner=inner).transform([PICTURE])
    assert found.vectors.dtype == np.uint8
    assert within_rounding(found.vectors, naive(PICTURE / 255, patch, step, inner))


def test_it_does_not_change_with_more_light_or_a_negative():
    half = PICTURE // 2
    same = FINE.transform([half, half + 100, 255 - half])
    for other in same[1:]:
        assert abs(other.vectors.astype(int) - same[0].vectors).max() <= 1


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_a_turn_moves_the_angles(quarter):
    square = PICTURE[:25, :25]
    k = len(range((25 - 15) % 4 // 2, 25 - 15 + 1, 4))
    one, other = (
        each.vectors.reshape(k, k, 4, 20).astype(int)
        for each in FINE.transform([square, np.rot90(square, quarter).copy()])
    )
    turned = np.roll(np.rot90(one, quarter), 5 * quarter, axis=3)
    assert abs(turned - other).max() <= 1


def test_a_flat_picture_is_the_same_everywhere_but_for_its_empty_bins():
    (found,) = SelfSimilarity().transform([np.full((60, 50), 77, np.uint8)])
    assert np.isfinite(found.vectors).all()
    assert (found.vectors == found.vectors[0]).all()


def test_words_and_pyramids_take_them():
    words = KMeansCodebook(5).fit_transform(FINE.transform([PICTURE, PICTURE[::-1].copy()]))
    assert SpatialPyramid(2).fit_transform(words).shape == (2, 25)


BAD = {
    "even": ({"patch": 40}, "patch=40 and inner=5 must be odd, and patch larger than inner by 4"),
    "small": ({"patch": 7}, "patch=7 and inner=5 must be odd, and patch larger than inner by 4"),
    "inner": ({"inner": 0}, "inner=0. Give a whole number of at least 1."),
    "picture": ({}, "Picture 0 has 26 x 30 pixels at scale 1, less than a patch of 41."),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_are_reported(bad):
    settings, words = BAD[bad]
    with pytest.raises(ValueError, match=re.escape(words)):
        SelfSimilarity(**settings).transform([PICTURE])
