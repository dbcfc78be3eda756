"""Local binary patterns and colours against loops over pixels, and under changes of light."""

from __future__ import annotations

import colorsys
import math
import re

import numpy as np
import pytest
from tolerance import assert_rounded

from knowmore import KnowmoreError
from knowmore.images import LBP, ColourHistogram

pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
GREY = rng.integers(0, 256, (13, 10), dtype=np.uint8)
COLOUR = rng.integers(0, 256, (13, 10, 3), dtype=np.uint8)


def naive(shape, bins, size, levels):
    """Histograms of bins[y, x] over the cells of all levels of equal weight."""
    h, w = shape
    columns = []
    for level in range(levels):
        cells = 2**level
        counts = np.zeros((cells, cells, size))
        for y, x in np.ndindex(h, w):
            counts[y * cells // h, x * cells // w, bins[y, x]] += 1
        columns.extend(counts.ravel() / (h * w * levels))
    return np.array(columns)


def pattern(image, y, x, radius, points):
    """Which neighbours are at least as light, places being rounded to a 1024th of a pixel."""
    h, w = image.shape
    bits = []
    for i in range(points):
        angle = 2 * math.pi * i / points
        v = y * 1024 + round(-radius * 1024 * math.sin(angle))
        u = x * 1024 + round(radius * 1024 * math.cos(angle))
        total = 0
        for yy in (v // 1024, v // 1024 + 1):
            for xx in (u // 1024, u // 1024 + 1):
                share = (1024 - abs(v - yy * 1024)) * (1024 - abs(u - xx * 1024))
                total += share * int(image[min(max(yy, 0), h - 1), min(max(xx, 0), w - 1)])
        bits.append(total >= 1024**2 * int(image[y, x]))
    return bits


def lbp_bins(image, radius, points, invariant):
    uniform = [
        number
        for number in range(2**points)
        if sum((number >> i & 1) != (number >> (i + 1) % points & 1) for i in range(points)) <= 2
    ]
    bins = np.zeros(image.shape, dtype=int)
    for y, x in np.ndindex(*image.shape):
        bits = pattern(image, y, x, radius, points)
        number = sum(bit << i for i, bit in enumerate(bits))
        if number not in uniform:
            bins[y, x] = points + 1 if invariant else len(uniform)
        else:
            bins[y, x] = sum(bits) if invariant else uniform.index(number)
    return bins


@pytest.mark.parametrize("invariant", [False, True], ids=["all", "invariant"])
@pytest.mark.parametrize(("radius", "points", "levels"), [(1, 8, 3), (2, 6, 1), (1.5, 4, 2)])
def test_patterns_equal_loops(radius, points, levels, invariant):
    found = LBP(radius, points, invariant=invariant, levels=levels).transform([GREY])
    size = points + 2 if invariant else points * (points - 1) + 3
    want = naive(GREY.shape, lbp_bins(GREY, radius, points, invariant), size, levels)
    assert_rounded(found[0], want)


def test_patterns_do_not_change_with_the_light():
    darker = np.rint(np.sqrt(np.arange(256) / 255) * 100 + 20)
    image = GREY // 16 * 16
    # Of interpolated neighbours the order may change; of four neighbours none is interpolated.
    lbp = LBP(points=4)
    np.testing.assert_array_equal(
        lbp.transform([image]), lbp.transform([darker.astype(np.uint8)[image]])
    )
    np.testing.assert_array_equal(LBP().transform([GREY // 2]), LBP().transform([GREY // 2 + 99]))


@pytest.mark.parametrize("quarter", range(1, 4))
def test_invariant_patterns_do_not_change_with_turns(quarter):
    lbp = LBP(invariant=True, levels=1)
    turned = lbp.transform([np.rot90(GREY, quarter)])
    np.testing.assert_array_equal(turned, lbp.transform([GREY]))


def naive_colour(rgb, space):
    """A colour's channels, in [0, 1]."""
    r, g, b = (int(one) / 255 for one in rgb)
    if space == "rgb":
        return r, g, b
    if space == "hsv":
        return colorsys.rgb_to_hsv(r, g, b)
    if space == "rg":
        return (r / (r + g + b), g / (r + g + b)) if r + g + b else (1 / 3, 1 / 3)
    return (r - g + 1) / 2, (r + g - 2 * b + 2) / 4, (r + g + b) / 3


@pytest.mark.parametrize("space", ["rgb", "opponent", "hsv", "rg"])
@pytest.mark.parametrize(("bins", "levels"), [(3, 2), (1, 1), (5, 3)])
def test_colours_equal_loops(space, bins, levels):
    found = ColourHistogram(bins, space, levels=levels).transform([COLOUR])
    where = np.zeros(COLOUR.shape[:2], dtype=int)
    for y, x in np.ndindex(*where.shape):
        for value in naive_colour(COLOUR[y, x], space):
            where[y, x] = where[y, x] * bins + min(int(value * bins + 1e-9), bins - 1)
    channels = 2 if space == "rg" else 3
    assert_rounded(found[0], naive(where.shape, where, bins**channels, levels))


def test_parts_of_the_light_do_not_change_with_its_strength():
    colours = rng.integers(0, 128, (9, 9, 3), dtype=np.uint8)
    histogram = ColourHistogram(8, "rg")
    np.testing.assert_array_equal(
        histogram.transform([colours]), histogram.transform([2 * colours])
    )


PICTURES = {
    "grey": GREY,
    "constant": np.full((8, 8), 77, np.uint8),
    "black": np.zeros((8, 8, 3), np.uint8),
    "white": np.full((8, 8, 3), 255, np.uint8),
    "a pixel for each cell": COLOUR[:4, :4],
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
@pytest.mark.parametrize(
    "transformer",
    [LBP(), *(ColourHistogram(space=space) for space in ("rgb", "opponent", "hsv", "rg"))],
    ids=["lbp", "rgb", "opponent", "hsv", "rg"],
)
def test_every_picture_has_one_vote_a_pixel(transformer, picture):
    (found,) = transformer.transform([picture])
    assert_rounded(found.sum(), 1.0)
    assert found.min() >= 0
    assert len(found) == len(transformer.get_feature_names_out())


def test_a_grey_picture_is_the_same_in_colour():
    for transformer in LBP(), ColourHistogram(space="opponent"), ColourHistogram(space="hsv"):
        in_colour = np.repeat(GREY[:, :, None], 3, axis=2)
        found = transformer.transform([GREY, in_colour])
        np.testing.assert_array_equal(found[0], found[1])


def test_columns_are_named_after_the_kind():
    assert LBP(levels=1).get_feature_names_out()[:2].tolist() == ["lbp0", "lbp1"]
    assert ColourHistogram(2, levels=1).get_feature_names_out()[-1] == "colour7"


BAD = {
    "points": (LBP(points=17), "points=17. Give a whole number from 3 to 16."),
    "radius": (LBP(0), "radius=0 must be a number in (0, inf)."),
    "levels": (LBP(levels=0), "levels=0. Give a whole number from 1 to 12."),
    "bins": (ColourHistogram(0), "bins=0. Give a whole number from 1 to 256."),
    "space": (ColourHistogram(space="lab"), "space='lab' is not known."),
    "tiny": (LBP(levels=5), "Picture 0 has 10 x 13 pixels. Use fewer than 5 levels."),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_are_reported(bad):
    transformer, words = BAD[bad]
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        transformer.fit_transform([GREY])
    assert isinstance(caught.value, KnowmoreError)
