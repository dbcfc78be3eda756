"""The features of many pictures, computed once.

Pictures go through the same steps as in a scikit-learn pipeline, on all cores. With a `Cache`,
features that were computed before are looked up: by the content of a picture, wherever it is, and
by everything else that they depend on. So an interrupted run continues where it stopped.

Whatever is wrong with a picture, the others go on: its result is a text that says why it has none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache as once
from importlib.metadata import version
from typing import Any, Literal, final, get_args

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from knowmore.arguments import choice, whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.extras import optional, require
from knowmore.images.codebooks import LARGEST_SEED, Codebook, KMeansCodebook
from knowmore.images.embedding import EXTRA, Embedding
from knowmore.images.extraction_cache import Cache
from knowmore.images.local import DenseSIFT, Words
from knowmore.images.pyramid import PHOG, SpatialPyramid
from knowmore.images.reading import encoded, named, small

Kind = Literal["sift-pyramid", "bow", "phog", "embedding"]
# Called with the number of pictures done, and of all pictures.
Progress = Callable[[int, int], None]

# To be changed when the same settings begin to give other numbers: old entries of caches are void.
VERSION = 2
# Pictures are reduced to this longest side. Much more shows little that patches of 16 pixels need.
LONGEST = 480
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


def steps_of(kind: Kind, codebook: Codebook | None = None) -> tuple[Any, ...]:
    """The steps of a kind of features; "sift-pyramid" and "bow" need a fitted codebook."""
    choice("kind", kind, get_args(Kind))
    if kind == "phog":
        return (PHOG(),)
    if kind == "embedding":
        return (Embedding(),)
    if codebook is None:
        raise InvalidInput(f"kind={kind!r} needs a codebook. Learn one, or load one.")
    nothing = Words(np.empty((0, 2)), np.empty(0, dtype=np.intp), codebook._learnt().size)
    levels = 3 if kind == "sift-pyramid" else 1
    return DenseSIFT(), codebook, SpatialPyramid(levels).fit([nothing])


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
    settings = b"" if cache is None else _digest(settings_of(steps, longest).encode())
    # A network has threads of its own.
    jobs = 1 if any(isinstance(step, Embedding) for step in steps) else n_jobs
    # Vectors of different lengths cannot all be right: then those in the cache are not used.
    for looks_up in (False,) if cache is None else (True, False):
        work = _Work(steps, longest, cache, settings, looks_up)
        found, computed = _in_blocks(work, pictures, jobs, progress)
        usable, skipped = _usable(found)
        vectors = list(usable.values())
        lengths = {len(each) for each in vectors}
        if len(lengths) == 1:
            return Extraction(np.stack(vectors), np.array(list(usable)), skipped, computed)
    raise InvalidInput(
        f"The steps give vectors of different lengths, from {min(lengths)} to {max(lengths)}. "
        f"The last of them must give one vector for each picture, all equally long."
    )


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

    `sift` describes them, by default as in `steps_of`. Other pictures give other words. To
    compare features of later pictures, keep the codebook: save it, and load it again.
    """
    whole_number("longest", longest, 1)
    whole_number("seed", seed, 0, LARGEST_SEED)
    whole_number("size", size, 2)
    sift = DenseSIFT() if sift is None else sift
    codebook = KMeansCodebook(size, random_state=seed, n_jobs=n_jobs)
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(len(pictures), min(SAMPLE, len(pictures)), replace=False))
    chosen = [pictures[row] for row in sample]
    if cache is not None:
        facts = [settings_of([sift], longest), {"size": size, "seed": seed}]
        settings = _digest(canonical(facts).encode())
        digests, _ = _in_blocks(_digests, chosen, n_jobs, None)
        content = _digest(b"".join(digests))
        known = cache.get(settings, content)
        if known is not None and known.size == size * sift.width:
            centres = known.reshape(size, sift.width).astype(np.float32)
            return KMeansCodebook._built(codebook.get_params(), {"centres": centres})
    found, _ = _in_blocks(_Work([sift], longest), chosen, n_jobs, progress)
    usable, _ = _usable(found)
    # Clustering goes in small steps: more threads took ten times as long on a busy machine.
    with threadpool_limits(1):
        codebook.fit(usable.values())
    if cache is not None:
        cache.put(settings, {content: codebook._arrays()["centres"].ravel()})
    return codebook


# -- what features depend on ---------------------------------------------------------------------


def settings_of(steps: Sequence[Any], longest: int = LONGEST) -> str:
    """Everything but the picture that features depend on, as canonical JSON.

    A codebook counts by what it has learnt, not by how. Other versions of the libraries may round
    differently. The number of threads does not matter.
    """
    libraries = {name: optional(name, "images").__version__ for name in ("PIL", "cv2")}
    if any(isinstance(step, Embedding) for step in steps):
        # Loading it would take longer than looking up the features.
        require("torch", EXTRA)
        libraries["torch"] = version("torch")
    facts = {"version": VERSION, "longest": longest, "libraries": libraries}
    return canonical(facts | {"steps": [[type(step).__name__, _facts(step)] for step in steps]})


def _facts(step: Any) -> Any:
    """The parameters of a step, or the digest of what a codebook has learnt."""
    if not isinstance(step, Codebook):
        return {name: value for name, value in step.get_params().items() if name != "n_jobs"}
    arrays = step._arrays().items()
    parts = [canonical([n, a.dtype.str, a.shape]).encode() + a.tobytes() for n, a in arrays]
    return _digest(b"".join(parts)).hex()


def canonical(facts: Any) -> str:
    """JSON that is the same for the same facts."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        raise InvalidInput(
            f"A setting is a {type(value).__name__}, which cannot be written down. Use no cache."
        )

    return json.dumps(facts, sort_keys=True, separators=(",", ":"), default=plain)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


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
        """What the steps make of each picture, or why they cannot; and how many were computed."""
        keys: list[bytes] = []
        found: dict[bytes, Any] = {}
        waiting: dict[bytes, Array] = {}
        computed = 0
        for place, picture in enumerate(block, start=1):
            key, value, is_known = self._prepared(picture, place)
            keys.append(key)
            (found if is_known else waiting)[key] = value
            is_full = sum(pixels.nbytes for pixels in waiting.values()) >= TOGETHER
            if waiting and (is_full or place == len(block)):
                results = self._computed(waiting)
                found |= results
                computed += sum(not isinstance(each, str) for each in results.values())
                waiting = {}
        return [found[key] for key in keys], computed

    def _prepared(self, picture: Any, place: int) -> tuple[bytes, Any, bool]:
        """A key, and either the result, which is then known, or pixels."""
        file = _attempt(encoded, picture, _ALONE)
        if isinstance(file, str):
            return b"%d" % place, file, True
        key = _digest(file)
        if self.cache is not None and self.looks_up:
            known = self.cache.get(self.settings, key)
            if known is not None:
                return key, known, True
        pixels = _attempt(small, file, _ALONE, self.longest)
        return key, pixels, isinstance(pixels, str)

    def _computed(self, pictures: dict[bytes, Array]) -> dict[bytes, Any]:
        """The results of the pictures; the features among them go into the cache."""
        results = _attempt(self._transformed, list(pictures.values()))
        if isinstance(results, str):
            # One picture cannot be used: find out which.
            results = [
                _attempt(lambda one: self._transformed([one])[0], each)
                for each in pictures.values()
            ]
        found: dict[bytes, Any] = dict(zip(pictures, results, strict=True))
        for key, each in found.items():
            if isinstance(each, np.ndarray) and not np.isfinite(each).all():
                found[key] = "has features with NaN or infinity among them."
        if self.cache is not None:
            fine = {key: each for key, each in found.items() if not isinstance(each, str)}
            self.cache.put(self.settings, fine)
        return found

    def _transformed(self, values: Any) -> Any:
        for step in self.steps:
            values = step.transform(values)
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
    return [b"" if isinstance(file, str) else _digest(file) for file in files], 0


def _in_blocks(
    work: Callable[[list[Any]], tuple[list[Any], int]],
    pictures: Sequence[Any],
    n_jobs: int,
    progress: Progress | None,
) -> tuple[list[Any], int]:
    """work(block) of all blocks of pictures, in order, on threads; and the sum of its counts."""
    pictures = [picture for picture, _ in named(pictures)]
    jobs = (os.cpu_count() or 1) if n_jobs == -1 else whole_number("n_jobs", n_jobs, 1)
    blocks = [pictures[i : i + BLOCK] for i in range(0, len(pictures), BLOCK)]
    found: list[Any] = []
    total = 0
    # The threads of BLAS would only get in the way of ours.
    limits = _pools().limit(limits=1, user_api="blas") if jobs > 1 else nullcontext()
    with limits, ThreadPoolExecutor(jobs) as pool:
        for results, count in pool.map(work, blocks):
            found += results
            total += count
            if progress is not None:
                progress(len(found), len(pictures))
    return found, total


@once
def _pools() -> Any:
    # Finding them takes as long as a hundred pictures from the cache.
    return ThreadpoolController()


def _usable(found: list[Any]) -> tuple[dict[int, Any], dict[int, str]]:
    """The results by row, and the reasons why other rows have none; one at least must have one."""
    skipped = {row: each for row, each in enumerate(found) if isinstance(each, str)}
    if len(skipped) == len(found):
        raise InvalidInput(
            f"None of the {len(found)} pictures can be used. The first, picture 0, {found[0]}"
        )
    return {row: each for row, each in enumerate(found) if row not in skipped}, skipped
