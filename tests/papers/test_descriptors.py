"""Descriptors of the experiments against their definition in loops."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from knowmore import KnowmoreError
from knowmore.images import KMeansCodebook, SpatialPyramid
from papers.descriptors import DenseSURF

pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
NOISE = rng.integers(0, 256, (37, 44), dtype=np.uint8)
# Half of it is all but flat: some patches are of low contrast.
FAINT = np.where(np.arange(44) < 22, 100 + NOISE // 64, NOISE).astype(np.uint8)


def naive_surf(image, patch, step):
    h, w = image.shape
    gx, gy = oracle.gradient(image)
    vectors = []
    for top in range((h - patch) % step // 2, h - patch + 1, step):
        for left in range((w - patch) % step // 2, w - patch + 1, step):
            d = []
            for cell in np.ndindex(4, 4):
                side = patch / 4
                y, x = np.array([top, left]) + (np.array(cell) + 0.5) * side - 0.5
                along_y = np.maximum(1 - abs(np.arange(h) - y) / side, 0)
                along_x = np.maximum(1 - abs(np.arange(w) - x) / side, 0)
                weight = np.outer(along_y, along_x)
                d += [(weight * each).sum() for each in (gx, abs(gx), gy, abs(gy))]
            vectors.append(np.array(d) / max(np.linalg.norm(d), 1))
    return np.array(vectors)


@pytest.mark.parametrize("image", [NOISE, FAINT], ids=["noise", "faint"])
def test_surf_equals_the_definition(image):
    (found,) = DenseSURF(16, 5).transform([image])
    want = naive_surf(image / 255, 16, 5)
    assert found.vectors.dtype == np.float32
    assert abs(found.vectors - want).max() <= 16**2 * np.finfo(np.float32).eps
    assert not DenseSURF().transform([np.full((20, 20), 9, np.uint8)])[0].vectors.any()


def stripes(n):
    """Noisy pictures with stripes along and across, in turn."""
    y, x = np.indices((48, 48))
    for i in range(n):
        yield np.clip((x, y)[i % 2] // 4 % 2 * 0.5 + rng.random((48, 48)) * 0.5, 0, 1), i % 2


def test_surf_goes_through_a_pipeline_and_tells_stripes_apart():
    pictures, labels = (list(each) for each in zip(*stripes(24), strict=True))
    pipeline = make_pipeline(DenseSURF(), KMeansCodebook(30), SpatialPyramid(1), SVC())
    pipeline.fit(pictures[:12], labels[:12])
    right = pipeline.score(pictures[12:], labels[12:])
    # More often than a coin, by three of its standard deviations.
    assert right > 0.5 + 3 * 0.5 / np.sqrt(12)
    features = pipeline[:-1]
    X = features.transform(pictures)
    again = clone(features).fit(pictures[:12], labels[:12])
    np.testing.assert_array_equal(X, again.transform(pictures))
    np.testing.assert_array_equal(X[:3], [features.transform([each])[0] for each in pictures[:3]])


def test_surf_clones_and_refuses_what_it_cannot_use():
    assert clone(DenseSURF()).get_params() == DenseSURF().get_params()
    assert repr(DenseSURF()) == "DenseSURF()"
    with pytest.raises(KnowmoreError, match=r"^patch=18 must be a multiple of 4\.$"):
        DenseSURF(18).transform([NOISE])
    with pytest.raises(KnowmoreError, match=r"^contrast=0 must be a number in \(0, inf\)\.$"):
        DenseSURF(contrast=0).transform([NOISE])


def test_surf_says_where_it_went():
    with pytest.raises(ImportError, match=r"papers\.descriptors"):
        from knowmore.images import DenseSURF  # noqa: F401
