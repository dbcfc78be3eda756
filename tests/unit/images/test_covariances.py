"""Region covariances against NumPy's, and under changes of the picture."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.linalg import logm
from tolerance import assert_rounded

from knowmore.images import RegionCovariance

cv2 = pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
PICTURE = rng.integers(0, 200, (21, 18, 3), dtype=np.uint8)
# Logarithms of nine eigenvalues that go over five orders of magnitude.
ROUNDINGS = 255**2 * 100


def grey(picture):
    return np.asarray(pytest.importorskip("PIL.Image").fromarray(picture).convert("L"))


def features(picture):
    """The nine numbers of each pixel, by their definition."""
    h, w = picture.shape[:2]
    image = np.pad(grey(picture) / 255, 1, mode="edge")
    found = np.empty((h, w, 9))
    for y, x in np.ndindex(h, w):
        (_, up, _), (left, here, right), (_, down, _) = image[y : y + 3, x : x + 3]
        slopes = (right - left) / 2, (down - up) / 2, left + right - 2 * here, up + down - 2 * here
        found[y, x] = [(x + 0.5) / w, (y + 0.5) / h, *picture[y, x] / 255, *map(abs, slopes)]
    return found


def naive(picture, weights):
    F = features(picture)
    h, w = F.shape[:2]
    y, x = np.indices((h, w))
    found = []
    for level, weight in enumerate(weights):
        cells = 2**level
        for i, j in np.ndindex(cells, cells):
            Z = F[(y * cells // h == i) & (x * cells // w == j)]
            L = logm(np.cov(Z.T, bias=True) + np.eye(9) / 255**2).real
            pairs = [L[a, b] * (1 if a == b else 2**0.5) for a in range(9) for b in range(a, 9)]
            found.extend(np.array(pairs) * (weight / cells**2) ** 0.5)
    return np.array(found)


@pytest.mark.parametrize("weights", ["equal", "match"])
@pytest.mark.parametrize("levels", [1, 3])
def test_equals_the_definition(levels, weights):
    (found,) = RegionCovariance(levels=levels, weights=weights).transform([PICTURE])
    numbers = {"equal": [1 / levels] * levels, "match": [0.25, 0.25, 0.5] if levels > 1 else [1]}
    assert_rounded(found, naive(PICTURE, numbers[weights]), ROUNDINGS)


def test_it_does_not_change_with_more_light():
    levels = RegionCovariance(levels=2)
    grey_picture = PICTURE[:, :, 0]
    one, other = levels.transform([grey_picture, grey_picture + 50])
    assert_rounded(one, other, ROUNDINGS)


def test_a_mirrored_picture_differs_only_in_what_goes_with_x():
    covariance = RegionCovariance(levels=1)
    one, other = covariance.transform([PICTURE, PICTURE[:, ::-1].copy()])
    row, _ = np.triu_indices(9)
    with_x = (row == 0) & (np.arange(45) > 0)
    assert_rounded(other, np.where(with_x, -one, one), ROUNDINGS)


PICTURES = {
    "grey": PICTURE[:, :, 0],
    "constant": np.full((8, 8), 77, np.uint8),
    "black": np.zeros((8, 8, 3), np.uint8),
    "a pixel for each cell": PICTURE[:4, :4],
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_every_picture_has_a_finite_vector(picture):
    (found,) = RegionCovariance().transform([picture])
    assert np.isfinite(found).all()
    assert len(found) == len(RegionCovariance().get_feature_names_out()) == 945


def test_bad_settings_are_reported():
    words = "Picture 0 has 18 x 21 pixels. Use fewer than 6 levels."
    with pytest.raises(ValueError, match=re.escape(words)):
        RegionCovariance(levels=6).transform([PICTURE])
    with pytest.raises(ValueError, match=re.escape("levels=0. Give a whole number from 1 to 12.")):
        RegionCovariance(levels=0).fit([PICTURE])
