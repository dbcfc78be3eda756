"""The features of many pictures, computed once.

Pictures go through the same steps as in a scikit-learn pipeline, on all cores. With a `Cache`,
features that were computed before are looked up: by the content of a picture, wherever it is, and
by everything else that they depend on. So an interrupted run continues where it stopped.

Whatever is wrong with a picture, the others go on: its result is a text that says why it has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from threadpoolctl import threadpool_limits

from knowmore._base import Array, choice, is_whole, optional, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.codebooks import LARGEST_SEED, Centres, Codebook, KMeansCodebook
from knowmore.images.embedding import Embedding, by_callers
from knowmore.images.local import LocalDescriptor
from knowmore.images.networks import is_installed
from knowmore.images.patches import DenseSIFT, SelfSimilarity
from knowmore.images.pyramids import SpatialPyramid
from knowmore.images.reading import encoded, fitted, named, small
from knowmore.images.storage import LONGEST, Cache, canonical, digest, settings_of
from knowmore.images.whole import LBP, PHOG, ColourHistogram, RegionCovariance

# The local descriptors of the kinds that count visual words, and the transformers of the others.
_WORDS: dict[str, Callable[[], LocalDescriptor]] = {
    "sift-pyramid": DenseSIFT,
    "bow": DenseSIFT,
    "colour-sift": partial(DenseSIFT, colour="opponent"),
    "self-similarity": SelfSimilarity,
}
_OTHERS: dict[str, Callable[[], Any]] = {
    "phog": PHOG,
    "lbp": LBP,
    "colours": ColourHistogram,
    "covariance": RegionCovariance,
    "embedding": Embedding,
}
WORDED, KINDS = tuple(_WORDS), (*_WORDS, *_OTHERS)
# Called with the number of pictures done, and of all pictures.
Progress = Callable[[int, int], None]

# A thread takes so many pictures at a time, and writes their features to the cache.
BLOCK = 16
# Decoded pictures go through the steps together until they have so many bytes.
TOGETHER = 2**26
# A codebook is learnt from so many pictures at most, so that their descriptors fit in memory.
SAMPLE = 300
# What transformers call the only picture of a list.
_ALONE = "Picture 0"


@final
@dataclass(frozen=True, eq=False)
class Extraction:
    """The features of pictures.

    features : (k, D)
    rows : which of the pictures they belong to, (k,), ascending
    skipped : why the others have none: "cannot be read: ..." by row
    computed : how many of the features were not in the cache
    """

    features: Array
    rows: Array
    skipped: dict[int, str]
    computed: int


def default_kind(*, words: bool = False) -> str:
    """How pictures become vectors unless somebody says it: by a network, where it is installed.

    words : whether visual words were asked for
    """
    return "embedding" if is_installed() and not words else "sift-pyramid"


def steps_of(kind: str, codebook: Codebook | None = None) -> tuple[Any, ...]:
    """The steps of a kind of features; those that count visual words need a fitted codebook."""
    choice("kind", kind, KINDS)
    if kind in _OTHERS:
        return (_OTHERS[kind](),)
    if codebook is None:
        raise InvalidInput(f"kind={kind!r} needs a codebook. Learn one, or load one.")
    pyramid = SpatialPyramid(1 if kind == "bow" else 3)
    pyramid.size_ = fitted(codebook, "vocabulary_").size
    return local_of(kind), codebook, pyramid


def local_of(kind: str) -> LocalDescriptor:
    """The local descriptor of a kind of features that counts visual words."""
    return _WORDS[kind]()


def extract(
    pictures: Sequence[Any],
    steps: Sequence[Any],
    *,
    longest: int = LONGEST,
    cache: Cache | None = None,
    n_jobs: int = -1,
    progress: Progress | None = None,
) -> Extraction:
    """The features of each picture after all `steps`, fitted transformers of `knowmore.images`.

    Pictures are paths, encoded bytes, or anything whose read() returns such bytes. Those that
    cannot be used are skipped, with the reason. `n_jobs` is the number of threads, -1 for as many
    as there are cores: they do no worse than processes here, as Pillow, OpenCV and BLAS release the
    interpreter.
    """
    whole_number("longest", longest, 1)
    settings = b"" if cache is None else digest(settings_of(steps, longest).encode())
    jobs = _jobs(steps, n_jobs)
    # Vectors of different lengths cannot all be right: then those in the cache are not used.
    for looks_up in (False,) if cache is None else (True, False):
        work = _Work(steps, longest, cache, settings, looks_up)
        found, computed = _in_blocks(work, pictures, jobs, progress)
        usable, skipped = _usable(found)
        vectors = list(usable.values())
        lengths = sorted({len(each) for each in vectors})
        if len(lengths) == 1:
            return Extraction(np.stack(vectors), np.array(list(usable)), skipped, computed)
    spread = f"from {lengths[0]} to {lengths[-1]}"
    raise InvalidInput(f"The last step gives vectors of different lengths, {spread}, not of one.")


def described(
    pictures: Sequence[Any], steps: Sequence[Any], longest: int, progress: Progress | None = None
) -> list[Array | str]:
    """The features of each picture, (D,), as `extract` has them, or the reason why it has none."""
    found, _ = _in_blocks(_Work(steps, longest), pictures, _jobs(steps, -1), progress)
    return found


def learn_codebook(
    pictures: Sequence[Any],
    *,
    size: int = 200,
    seed: int = 0,
    sift: LocalDescriptor | None = None,
    longest: int = LONGEST,
    cache: Cache | None = None,
    n_jobs: int = -1,
    progress: Progress | None = None,
) -> KMeansCodebook:
    """A codebook of `size` words from the descriptors of a sample of 300 pictures.

    `sift` describes them, by default as `DenseSIFT` does. Other pictures give other words. To
    compare features of later pictures, keep the codebook: save it, and load it again.
    """
    whole_number("longest", longest, 1)
    whole_number("seed", seed, 0, LARGEST_SEED)
    whole_number("size", size, 2)
    sift = sift or DenseSIFT()
    codebook = KMeansCodebook(size, random_state=seed, n_jobs=n_jobs)
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(len(pictures), min(SAMPLE, len(pictures)), replace=False))
    chosen = [pictures[row] for row in sample]
    if cache is not None:
        facts = [settings_of([sift], longest), {"size": size, "seed": seed}]
        settings = digest(canonical(facts).encode())
        digests, _ = _in_blocks(_digests, chosen, n_jobs, None)
        content = digest(b"".join(digests))
        known = cache.get(settings, content)
        if known is not None and known.size == size * sift.width:
            codebook.vocabulary_ = Centres(known.reshape(size, -1).astype(np.float32))
            return codebook
    found, _ = _in_blocks(_Work([sift], longest), chosen, n_jobs, progress)
    usable, _ = _usable(found)
    # Clustering goes in small steps: more threads took ten times as long on a busy machine.
    with threadpool_limits(1):
        codebook.fit(usable.values())
    if cache is not None:
        cache.put(settings, {content: codebook.vocabulary_.centres.ravel()})
    return codebook


# -- the work ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """Computes the results of a block of pictures, or looks them up in the cache.

    Only one file is in memory at a time, and of large decoded pictures only a few.
    """

    steps: Sequence[Any]
    longest: int
    cache: Cache | None = None
    settings: bytes = b""
    looks_up: bool = False

    def __call__(self, block: list[Any]) -> tuple[list[Any], int]:
        """The vector of each picture, or why it has none; and how many vectors were computed."""
        keys: list[Any] = []
        known: dict[Any, Any] = {}
        new: dict[Any, Any] = {}
        waiting: dict[Any, Array] = {}
        for picture in block:
            key, value, is_known = self._prepared(picture)
            keys.append(key)
            (known if is_known else waiting)[key] = value
            if sum(pixels.nbytes for pixels in waiting.values()) >= TOGETHER:
                new |= self._computed(waiting)
                waiting = {}
        if waiting:
            new |= self._computed(waiting)
        computed = sum(not isinstance(each, str) for each in new.values())
        return [(known | new)[key] for key in keys], computed

    def _prepared(self, picture: Any) -> tuple[Any, Any, bool]:
        """A key, and either the result, which is then known, or pixels."""
        file = _attempt(encoded, picture, _ALONE)
        if isinstance(file, str):
            return file, file, True
        key = digest(file)
        if self.cache is not None and self.looks_up:
            known = self.cache.get(self.settings, key)
            if known is not None:
                return key, known, True
        pixels = _attempt(small, file, _ALONE, self.longest)
        return key, pixels, isinstance(pixels, str)

    def _computed(self, pictures: dict[Any, Array]) -> dict[Any, Any]:
        """The results of the pictures; the features among them go into the cache."""
        results = _attempt(self._transformed, list(pictures.values()))
        if isinstance(results, str):
            # One picture cannot be used: find out which.
            alone = [_attempt(self._transformed, [each]) for each in pictures.values()]
            results = [each if isinstance(each, str) else each[0] for each in alone]
        found: dict[Any, Any] = dict(zip(pictures, results, strict=True))
        if self.cache is not None:
            fine = {key: each for key, each in found.items() if not isinstance(each, str)}
            self.cache.put(self.settings, fine)
        return found

    def _transformed(self, values: Any) -> Any:
        for step in self.steps:
            values = step.transform(values)
        if not all(np.isfinite(each).all() for each in values if isinstance(each, np.ndarray)):
            raise InvalidInput("has features with NaN or infinity among them.")
        return values


def _attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), or the reason why a picture cannot be used, without its name."""
    try:
        return function(*arguments)
    except InvalidInput as error:
        name = getattr(arguments[0], "name", None)
        return str(error).removeprefix(f"{_ALONE} ").removeprefix(f"{name!r} ")
    except (MemoryError, optional("cv2", "images").error) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        return f"cannot be used: {why}. Leave it out, or reduce it first."


def _digests(block: list[Any]) -> tuple[list[bytes], int]:
    """The digests of the files; of one that cannot be read, nothing."""
    files = (_attempt(encoded, picture, _ALONE) for picture in block)
    return [b"" if isinstance(file, str) else digest(file) for file in files], 0


def _in_blocks(
    work: Callable[[list[Any]], tuple[list[Any], int]],
    pictures: Sequence[Any],
    n_jobs: int,
    progress: Progress | None,
) -> tuple[list[Any], int]:
    """work(block) of all blocks of pictures, in order, on threads; and the sum of its counts."""
    pictures = [picture for picture, _ in named(pictures)]
    every = is_whole(n_jobs) and n_jobs == -1
    jobs = (os.cpu_count() or 1) if every else whole_number("n_jobs", n_jobs, 1)
    blocks = [pictures[i : i + BLOCK] for i in range(0, len(pictures), BLOCK)]
    found: list[Any] = []
    total = 0
    # The threads of BLAS would only get in the way of ours.
    limits = threadpool_limits(1, user_api="blas") if jobs > 1 else nullcontext()
    with limits, ThreadPoolExecutor(jobs, initializer=by_callers) as pool:
        for results, count in pool.map(work, blocks):
            found += results
            total += count
            if progress is not None:
                progress(len(found), len(pictures))
    return found, total


def _jobs(steps: Sequence[Any], n_jobs: int) -> int:
    """The number of threads; one if there is a network that only one may ask at a time."""
    networks = (step for step in steps if isinstance(step, Embedding))
    return n_jobs if all(network.is_shared for network in networks) else 1


def _usable(found: list[Any]) -> tuple[dict[int, Any], dict[int, str]]:
    """The results by row, and the reasons why other rows have none; one at least must have one."""
    skipped = {row: each for row, each in enumerate(found) if isinstance(each, str)}
    if len(skipped) == len(found):
        raise InvalidInput(f"None of the {len(found)} pictures can be used. The first {found[0]}")
    return {row: each for row, each in enumerate(found) if row not in skipped}, skipped
