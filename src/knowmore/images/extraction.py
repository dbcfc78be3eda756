"""The features of many pictures, computed once.

Pictures go through the same steps as in a scikit-learn pipeline, on all cores. With a `Cache`,
what was computed before is looked up: by the content of a picture, wherever it lies, and by all
that its features depend on. So an interrupted run goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache as once
from typing import Any, Literal, final

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.images.codebooks import Codebook, KMeansCodebook
from knowmore.images.embedding import Embedding
from knowmore.images.extraction_cache import Cache
from knowmore.images.extraction_settings import LONGEST, canonical, digest, settings_of
from knowmore.images.extraction_work import Failure, Work, content_of, read
from knowmore.images.local import Words
from knowmore.images.phog import PHOG
from knowmore.images.pyramid import SpatialPyramid
from knowmore.images.reading import named
from knowmore.images.settings import seed_number, whole
from knowmore.images.sift import DenseSIFT

Kind = Literal["sift-pyramid", "bow", "phog", "embedding"]
# Called with how many pictures are done, and of how many.
Progress = Callable[[int, int], None]

KINDS: tuple[Kind, ...] = ("sift-pyramid", "bow", "phog", "embedding")
# A thread works on so many pictures, and then writes them to the cache.
BLOCK = 16
# A codebook is learnt from so many pictures at most, so that their descriptors fit in memory.
SAMPLE = 300


@final
@dataclass(frozen=True, eq=False)
class Extraction:
    """What came out.

    features : (k, D)
    rows : which of the pictures given they belong to, (k,), ascending
    skipped : why the others have none: "cannot be read: ..." by row
    computed : how many of the features were not in the cache
    """

    features: Array
    rows: Array
    skipped: dict[int, str]
    computed: int


def steps_of(kind: Kind, codebook: Codebook | None = None) -> tuple[Any, ...]:
    """The steps of a kind of features; "sift-pyramid" and "bow" need a fitted codebook."""
    if kind in ("sift-pyramid", "bow"):
        if codebook is None:
            raise InvalidInput(f"kind={kind!r} needs a codebook. Learn one, or load one.")
        nowhere, none = np.empty((0, 2)), np.empty(0, dtype=np.intp)
        words = Words(nowhere, none, codebook._held().size)
        levels = 3 if kind == "sift-pyramid" else 1
        return DenseSIFT(), codebook, SpatialPyramid(levels).fit([words])
    if kind in ("phog", "embedding"):
        return (PHOG(),) if kind == "phog" else (Embedding(),)
    raise InvalidInput(f"kind={kind!r} is not known. Choose one of {', '.join(KINDS)}.")


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

    Pictures are paths, encoded bytes, or anything whose read() gives them. Those that cannot be
    used are skipped, and why is told. `n_jobs` are threads, -1 as many as there are cores: they
    do no worse than processes here, as Pillow, OpenCV and BLAS let go of the interpreter.
    """
    _check(longest, n_jobs)
    settings = b"" if cache is None else digest(settings_of(steps, longest).encode())
    # A network has threads of its own.
    jobs = 1 if any(isinstance(step, Embedding) for step in steps) else n_jobs
    work = Work(steps, longest, cache, settings)
    found, computed = _in_blocks(work, pictures, jobs, progress)
    if cache is not None and len(_lengths(found)) > 1:
        # Not all that is in the cache can be what these steps give.
        found, computed = _in_blocks(replace(work, anew=True), pictures, jobs, progress)
    skipped = {row: each.why for row, each in enumerate(found) if isinstance(each, Failure)}
    vectors = [each for each in found if not isinstance(each, Failure)]
    if not vectors:
        raise _nothing_left(skipped)
    if len(lengths := _lengths(found)) > 1:
        raise InvalidInput(
            f"The steps give vectors of different lengths, from {min(lengths)} to {max(lengths)}. "
            f"The last of them must give one vector for each picture, all equally long."
        )
    rows = np.array([row for row in range(len(found)) if row not in skipped])
    return Extraction(np.stack(vectors), rows, skipped, computed)


def _lengths(found: Sequence[Any]) -> set[int]:
    return {len(each) for each in found if not isinstance(each, Failure)}


def learn_codebook(
    pictures: Sequence[Any],
    *,
    size: int = 200,
    seed: int = 0,
    sift: DenseSIFT | None = None,
    longest: int = LONGEST,
    cache: Cache | None = None,
    n_jobs: int = -1,
    progress: Progress | None = None,
) -> KMeansCodebook:
    """A codebook of `size` words from the descriptors of a sample of 300 pictures.

    `sift` is what describes them, by default as in `steps_of`. Other pictures give other words. To
    compare features of pictures that come later, keep the codebook: save it, and load it again.
    """
    _check(longest, n_jobs)
    seed_number("seed", seed)
    whole("size", size, 2)
    sift = DenseSIFT() if sift is None else sift
    codebook = KMeansCodebook(size, random_state=seed, n_jobs=n_jobs)
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(len(pictures), min(SAMPLE, len(pictures)), replace=False))
    chosen = [pictures[row] for row in sample]
    contents, _ = _in_blocks(_contents, chosen, n_jobs, None)
    told = canonical([settings_of([sift], longest), {"size": size, "seed": seed}])
    settings, content = digest(told.encode()), digest(b"".join(contents))
    known = {} if cache is None else cache.get(settings, [content])
    if content in known and known[content].size == size * sift.width:
        centres = known[content].reshape(size, sift.width).astype(np.float32)
        return KMeansCodebook._built(codebook.get_params(), {"centres": centres})

    found, _ = _in_blocks(Work([sift], longest), chosen, n_jobs, progress)
    descriptors = [each for each in found if not isinstance(each, Failure)]
    if not descriptors:
        raise _nothing_left({i: each.why for i, each in enumerate(found)})
    # Clusters are found in small steps: more threads took ten times as long on a busy machine.
    with threadpool_limits(1):
        codebook.fit(descriptors)
    if cache is not None:
        cache.put(settings, {content: codebook.vocabulary_.centres.ravel()})
    return codebook


def _check(longest: int, n_jobs: int) -> None:
    whole("longest", longest)
    if n_jobs != -1:
        whole("n_jobs", n_jobs)


def _in_blocks(
    work: Callable[[list[Any]], tuple[list[Any], int]],
    items: Sequence[Any],
    n_jobs: int,
    progress: Progress | None,
) -> tuple[list[Any], int]:
    """work(block) of all blocks of items, in order, on threads; and the sum of what it counts."""
    items = [item for item, _ in named(items)]
    jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
    blocks = [items[i : i + BLOCK] for i in range(0, len(items), BLOCK)]
    found: list[Any] = []
    total = 0
    # BLAS on threads of its own would only get in the way of ours.
    limits = _pools().limit(limits=1, user_api="blas") if jobs > 1 else nullcontext()
    with limits, ThreadPoolExecutor(jobs) as pool:
        for values, count in pool.map(work, blocks):
            found += values
            total += count
            if progress is not None:
                progress(len(found), len(items))
    return found, total


@once
def _pools() -> Any:
    # To find them takes as long as a hundred pictures that are known.
    return ThreadpoolController()


def _contents(block: list[Any]) -> tuple[list[bytes], int]:
    return [content_of(read(picture)) for picture in block], len(block)


def _nothing_left(skipped: dict[int, str]) -> InvalidInput:
    row, why = next(iter(skipped.items()))
    return InvalidInput(
        f"None of the {len(skipped)} pictures can be used. The first of them, picture {row}, {why}"
    )
