"""PHOG against loops over the edge pixels of every level."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from tolerance import assert_rounded

from knowmore import KnowmoreError
from knowmore.images import PHOG

cv2 = pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
PICTURE = cv2.GaussianBlur(rng.integers(0, 256, (45, 52), dtype=np.uint8), (0, 0), 1.5)


def sobel(image):
    padded = np.pad(image.astype(int), 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    slope = np.outer([1, 2, 1], [-1, 0, 1])
    return (windows * slope).sum(axis=(2, 3)), (windows * slope.T).sum(axis=(2, 3))


def edges(image):
    smooth = cv2.GaussianBlur(image, (0, 0), math.sqrt(2), borderType=cv2.BORDER_REPLICATE)
    gx, gy = sobel(smooth)
    strong = float(np.quantile(np.hypot(gx, gy).astype(np.float32), 0.7))
    shorts = gx.astype(np.int16), gy.astype(np.int16)
    return cv2.Canny(*shorts, 0.4 * strong, strong, L2gradient=True)


def naive(image, bins, degrees, weights):
    h, w = image.shape
    gx, gy = sobel(image)
    columns = []
    for level, weight in enumerate(weights):
        cells = 2**level
        histogram = np.zeros((cells, cells, bins))
        for y, x in np.argwhere(edges(image)):
            angle = math.degrees(math.atan2(gy[y, x], gx[y, x])) % degrees
            where = y * cells // h, x * cells // w, int(angle * bins / degrees) % bins
            histogram[where] += math.hypot(gx[y, x], gy[y, x])
        columns.extend(weight * histogram.ravel() / histogram.sum())
    return np.array(columns)


@pytest.mark.parametrize("degrees", [180, 360])
@pytest.mark.parametrize(("bins", "levels"), [(20, 4), (40, 1), (7, 3), (1, 2)])
def test_equals_loops(bins, levels, degrees):
    found = PHOG(bins, degrees=degrees, levels=levels).transform([PICTURE])
    assert found.shape == (1, bins * (4**levels - 1) // 3)
    want = naive(PICTURE, bins, degrees, [1 / levels] * levels)
    assert_rounded(found[0], want, roundings=PICTURE.size)


def test_levels_are_weighted():
    found = PHOG(8, levels=3, weights=[1, 2, 3]).transform([PICTURE])[0]
    assert_rounded(found, naive(PICTURE, 8, 180, [1, 2, 3]), roundings=PICTURE.size)
    matched = PHOG(8, levels=3, weights="match").transform([PICTURE])[0]
    want = naive(PICTURE, 8, 180, [0.25, 0.25, 0.5])
    assert_rounded(matched, want, roundings=PICTURE.size)


@pytest.mark.parametrize("quarter", range(4))
def test_a_step_has_the_direction_it_was_turned_to(quarter):
    picture = np.zeros((32, 32))
    picture[:, 16:] = 1
    found = PHOG(4, degrees=360, levels=1).transform([np.rot90(picture, -quarter)])
    # y points down: a turn to the right goes from the direction x to y.
    np.testing.assert_array_equal(found, [np.eye(4)[quarter]])


def test_a_flat_picture_is_zero():
    assert not PHOG().transform([np.full((32, 32), 9, np.uint8)]).any()


def test_threads_change_nothing():
    pictures = rng.integers(0, 256, (9, 40, 40), dtype=np.uint8)
    np.testing.assert_array_equal(PHOG().transform(pictures), PHOG(n_jobs=3).transform(pictures))


BAD = {
    "bins": ({"bins": 0}, "bins=0. Give a whole number of at least 1."),
    "degrees": ({"degrees": 90}, "degrees=90 is not known. Give 180 or 360."),
    "levels": ({"levels": 1.5}, "levels=1.5. Give a whole number from 1 to 12."),
    "weights": ({"weights": [1]}, 'weights=[1] must be "match", "equal", or 4 numbers'),
    "small": (
        {"levels": 7},
        "Picture 0 has 52 x 45 pixels. Use fewer than 7 levels.",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_are_reported(bad):
    settings, words = BAD[bad]
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        PHOG(**settings).fit([PICTURE]).transform([PICTURE])
    assert isinstance(caught.value, KnowmoreError)
