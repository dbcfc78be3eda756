"""Dense SIFT against its definition in loops, and under turns of the picture."""

from __future__ import annotations

import re

import numpy as np
import oracle
import pytest
from sklearn.base import clone
from sklearn.datasets import load_sample_images

from knowmore import KnowmoreError
from knowmore.images import DenseSIFT
from knowmore.images.patches import _directions

cv2 = pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
NOISE = rng.integers(0, 256, (37, 44), dtype=np.uint8)
# Half of it is all but flat: some patches are of low contrast.
FAINT = np.where(np.arange(44) < 22, 100 + NOISE // 64, NOISE).astype(np.uint8)


def naive(image, patch, step, contrast=1.0):
    """Positions and descriptors of grey values in [0, 1], as the definition has them."""
    h, w = image.shape
    gx, gy = oracle.gradient(image)
    angle, length = np.arctan2(gy, gx), np.hypot(gx, gy)
    positions, vectors = [], []
    for top in range((h - patch) % step // 2, h - patch + 1, step):
        for left in range((w - patch) % step // 2, w - patch + 1, step):
            d = []
            for cell in np.ndindex(4, 4):
                side = patch / 4
                y, x = np.array([top, left]) + (np.array(cell) + 0.5) * side - 0.5
                along_y = np.maximum(1 - abs(np.arange(h) - y) / side, 0)
                along_x = np.maximum(1 - abs(np.arange(w) - x) / side, 0)
                weight = length * np.outer(along_y, along_x)
                for i in range(8):
                    d.append((weight * np.maximum(np.cos(angle - i * np.pi / 4), 0) ** 9).sum())
            positions.append([(left + patch / 2) / w, (top + patch / 2) / h])
            vectors.append(normalised(np.array(d), contrast))
    return np.array(positions), np.array(vectors)


def normalised(d, contrast):
    if np.linalg.norm(d) < contrast:
        return d / contrast
    d = np.minimum(d / np.linalg.norm(d), 0.2)
    return d / np.linalg.norm(d)


def assert_bytes_of(got, want, patch):
    """512 for one, at most 255, rounded; before that, sums in single precision."""
    assert got.dtype == np.uint8
    terms = patch**2
    error = 0.5 + 512 * terms * np.finfo(np.float32).eps
    assert abs(got - np.minimum(512 * want, 255)).max() <= error


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize(("patch", "step"), [(16, 8), (16, 5), (20, 10), (8, 8), (4, 7), (12, 3)])
@pytest.mark.parametrize("image", [NOISE, FAINT], ids=["noise", "faint"])
def test_equals_the_definition(image, patch, step):
    (found,) = DenseSIFT(patch, step).transform([image])
    positions, vectors = naive(image / 255, patch, step)
    np.testing.assert_allclose(found.positions, positions, rtol=np.finfo(float).eps * 2)
    assert_bytes_of(found.vectors, vectors, patch)


def test_opencv_sees_the_same():
    """Its SIFT weighs the patch by a Gaussian, so numbers differ; no other order is as alike."""
    image = load_sample_images().images[0][:128, :128].mean(axis=2).astype(np.uint8)
    (found,) = DenseSIFT().transform([image])
    places = [cv2.KeyPoint(*xy, 16 / 6, 0.0) for xy in (found.positions * 128 - 0.5).tolist()]
    mine = found.vectors.reshape(-1, 4, 4, 8).astype(float)
    theirs = cv2.SIFT_create(sigma=0.8).compute(image, places)[1].reshape(-1, 4, 4, 8)
    # OpenCV's angles go the other way round.
    theirs = theirs[..., -np.arange(8) % 8]
    likeness = {
        (turn, mirror, shift): (mine * np.rot90(cells, turn, (1, 2))[..., shifted]).sum()
        for mirror, cells in (("no", theirs), ("yes", theirs[:, ::-1]))
        for turn in range(4)
        for shift, shifted in ((i, (np.arange(8) + i) % 8) for i in range(8))
    }
    assert max(likeness, key=likeness.get) == (0, "no", 0)


def test_low_contrast_is_not_scaled_up():
    (found,) = DenseSIFT().transform([FAINT])
    length = np.linalg.norm(found.vectors / 512, axis=1)
    faint = found.positions[:, 0] < 0.25
    # A patch of low contrast is far shorter; all others have length one but for their rounding.
    assert length[faint].max() < 0.5
    assert abs(length[found.positions[:, 0] > 0.75] - 1).max() <= np.sqrt(128) * 0.5 / 512
    (sharp,) = DenseSIFT(contrast=1e-6).transform([FAINT])
    assert abs(np.linalg.norm(sharp.vectors / 512, axis=1) - 1).max() <= np.sqrt(128) * 0.5 / 512


def test_a_flat_picture_has_empty_descriptors():
    for colour in (None, "opponent"):
        (found,) = DenseSIFT(colour=colour).transform([np.full((32, 40, 3), 77, np.uint8)])
        assert not found.vectors.any()
        assert len(found) == 12


def within_rounding(a, b):
    """Sums of other order, in single precision, may round to the neighbouring byte."""
    return abs(a.astype(int) - b.astype(int)).max() <= 1


def as_grid(found, side):
    return found.vectors.reshape(side, side, 4, 4, 8)


def test_mirrored_pictures_have_mirrored_descriptors():
    image = rng.integers(0, 256, (48, 48), dtype=np.uint8)
    plain, mirrored, negative, transposed = (
        as_grid(found, 5)
        for found in DenseSIFT().transform([image, image[:, ::-1], 255 - image, image.T])
    )
    directions = np.arange(8)
    # x -> -x: direction a becomes pi - a.
    assert within_rounding(mirrored, plain[:, ::-1, :, ::-1][..., (4 - directions) % 8])
    assert within_rounding(negative, plain[..., (directions + 4) % 8])
    # x <-> y: direction a becomes pi/2 - a.
    assert within_rounding(transposed, plain.transpose(1, 0, 3, 2, 4)[..., (2 - directions) % 8])


def test_brightness_and_contrast_do_not_matter():
    image = rng.integers(0, 100, (48, 48)).astype(np.uint8)
    plain, brighter, stronger = DenseSIFT().transform([image, image + 50, image * 2])
    assert within_rounding(brighter.vectors, plain.vectors)
    assert within_rounding(stronger.vectors, plain.vectors)


def test_opponent_colours_are_three_channels():
    picture = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)
    (found,) = DenseSIFT(colour="opponent").transform([picture])
    assert found.vectors.shape == (16, 384)
    r, g, b = np.moveaxis(picture / 255, 2, 0)
    opponents = (r - g) / np.sqrt(2), (r + g - 2 * b) / np.sqrt(6), (r + g + b) / np.sqrt(3)
    for i, channel in enumerate(opponents):
        got = found.vectors[:, 128 * i : 128 * (i + 1)]
        assert_bytes_of(got, naive(channel, 16, 8)[1], 16)


def test_grey_pictures_have_no_colour_in_opponent_colours():
    (found,) = DenseSIFT(colour="opponent").transform([NOISE])
    assert not found.vectors[:, :256].any()
    (plain,) = DenseSIFT(contrast=1 / np.sqrt(3)).transform([NOISE])
    assert within_rounding(found.vectors[:, 256:], plain.vectors)


def test_slopes_that_are_rounding_have_no_direction():
    for tiny in np.float32([1e-45, 1e-30, 1e-20, 1e-10]):
        split = _directions(np.full((2, 3), tiny), np.full((2, 3), -tiny))
        assert np.isfinite(split).all()
        assert split.max() <= 2 * tiny


@pytest.mark.slow
def test_scales_are_pictures_of_that_size():
    image = rng.integers(0, 256, (80, 64), dtype=np.uint8)
    (found,) = DenseSIFT(scales=(1, 0.5)).transform([image])
    half = cv2.resize(image / np.float32(255), (32, 40), interpolation=cv2.INTER_AREA)
    positions, vectors = (
        np.concatenate(parts)
        for parts in zip(naive(image / 255, 16, 8), naive(half, 16, 8), strict=True)
    )
    np.testing.assert_allclose(found.positions, positions, rtol=np.finfo(float).eps * 2)
    assert_bytes_of(found.vectors, vectors, 16)


def test_large_pictures_are_reduced():
    image = rng.integers(0, 256, (80, 64), dtype=np.uint8)
    (reduced,) = DenseSIFT(longest=40).transform([image])
    (half,) = DenseSIFT(scales=[0.5]).transform([image])
    np.testing.assert_array_equal(reduced.vectors, half.vectors)
    np.testing.assert_array_equal(reduced.positions, half.positions)
    (untouched,) = DenseSIFT(longest=80).transform([image])
    np.testing.assert_array_equal(untouched.vectors, DenseSIFT().transform([image])[0].vectors)


@pytest.mark.parametrize("colour", [None, "opponent"])
def test_threads_change_nothing(colour):
    pictures = rng.integers(0, 256, (12, 40, 48, 3), dtype=np.uint8)
    alone = DenseSIFT(colour=colour).transform(pictures)
    together = DenseSIFT(colour=colour, n_jobs=3).transform(pictures)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a.vectors, b.vectors)
        np.testing.assert_array_equal(a.positions, b.positions)


def test_descriptors_are_frozen_and_lie_in_the_picture():
    (found,) = DenseSIFT().transform([NOISE])
    assert repr(found) == "Descriptors(12 of 128 numbers)"
    assert 0 < found.positions.min() < found.positions.max() < 1
    with pytest.raises(ValueError, match="read-only"):
        found.vectors[0] = 0
    with pytest.raises(AttributeError):
        found.vectors = None


BAD = {
    "patch": ({"patch": 10}, "patch=10 must be a multiple of 4."),
    "no patch": ({"patch": 0}, "patch=0. Give a whole number of at least 1."),
    "step": ({"step": 1.5}, "step=1.5. Give a whole number of at least 1."),
    "longest": ({"longest": -3}, "longest=-3. Give a whole number of at least 1."),
    "scale": ({"scales": (1, 2)}, "scales=(1, 2) must be a list of numbers in (0, 1]."),
    "scales": ({"scales": 1.0}, "scales=1.0 must be a list of numbers in (0, 1]."),
    "no scales": ({"scales": ()}, "scales=() must be a list of numbers in (0, 1]."),
    "colour": (
        {"colour": "lab"},
        'colour=\'lab\' is not known. Give None, "opponent", "rgb", "rg" or "hsv".',
    ),
    "contrast": ({"contrast": 0}, "contrast=0 must be a number in (0, inf)."),
    "small scale": (
        {"scales": (1, 0.25)},
        "Picture 0 has 11 x 9 pixels at scale 0.25, less than a patch of 16.",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_are_reported(bad):
    settings, words = BAD[bad]
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        DenseSIFT(**settings).fit([NOISE]).transform([NOISE])
    assert isinstance(caught.value, KnowmoreError)


def test_settings_survive_cloning():
    sift = DenseSIFT(20, 10, scales=(1, 0.5), longest=300, colour="opponent", contrast=0.5)
    assert clone(sift).get_params() == sift.get_params()


def test_channels_are_described_one_by_one():
    """In any colour space a picture has a descriptor for each channel, computed as for grey."""
    picture = rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)
    (found,) = DenseSIFT(colour="rgb").transform([picture])
    for i, part in enumerate(np.split(found.vectors, 3, axis=1)):
        (alone,) = DenseSIFT().transform([picture[:, :, i]])
        np.testing.assert_array_equal(part, alone.vectors)


def test_parts_of_the_light_do_not_change_with_its_strength():
    picture = rng.integers(1, 128, (24, 24, 3), dtype=np.uint8)
    one, other = (each.vectors for each in DenseSIFT(colour="rg").transform([picture, 2 * picture]))
    assert within_rounding(one[:, :256], other[:, :256])


@pytest.mark.parametrize("colour", ["rg", "hsv"])
def test_a_grey_picture_has_no_edges_of_colour(colour):
    (found,) = DenseSIFT(colour=colour).transform([NOISE])
    assert not found.vectors[:, :256].any()
    assert found.vectors[:, 256:].any()
