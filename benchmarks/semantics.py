"""WordNet: how long it takes to be of use, and to compare names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from benchmarks.scene import Scale
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import Samples, interleaved, once
from knowmore.errors import MissingData
from knowmore.semantics import WordNet
from papers.data import CLASS_MEANINGS
from papers.data import wordnet as load_wordnet

NAMES = 101
# So many meanings that a noun against nouns is at its slowest.
_AMBIGUOUS = "head"


def loading(scale: Scale) -> Iterator[Row]:
    """The database files, and after that what was kept of them."""
    first, again = [], []
    for _ in range(_rounds(scale)):
        with _own_cache():
            try:
                first.append(once(_load))
            except MissingData as error:
                yield Row("load WordNet", note=str(error))
                return
            again.append(once(_load))
    yield _row("load WordNet, the first time", Samples(tuple(first)), 3.0)
    yield _row("load WordNet, after that", Samples(tuple(again)), 0.5)
    yield faster(
        "load WordNet, after that",
        Samples(tuple(again)),
        "the first time",
        Samples(tuple(first)),
        None,
    )


def comparing(scale: Scale) -> Iterator[Row]:
    """A name compared with 101 names: classes with one meaning, and nouns with many."""
    with _own_cache():
        try:
            wordnet = _load()
        except MissingData as error:
            yield Row(f"one name against {NAMES}", note=str(error))
            return
    classes = list(CLASS_MEANINGS)[:NAMES]
    nouns = [noun for noun in wordnet.nouns.lines if noun.isalpha()][::500][:NAMES]
    operations = {
        f"one class against {NAMES}": lambda: wordnet.most_similar("okapi", classes, 10),
        f"{_AMBIGUOUS!r} against {NAMES} nouns": lambda: wordnet.most_similar(_AMBIGUOUS, nouns),
    }
    for name, samples in interleaved(scale.rounds, operations).items():
        yield _row(name, samples, 0.05)


def _load() -> WordNet:
    # Meanings are looked up, so that nothing is left to be read later.
    return load_wordnet()


@contextmanager
def _own_cache() -> Iterator[None]:
    """A cache that is empty at first."""
    before = os.environ.get("XDG_CACHE_HOME")
    with TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before


def _row(name: str, samples: Samples, at_most: float) -> Row:
    note = f"best {samples.best:.3g} s"
    target = Target("<=", at_most)
    return Row(name, samples.median, target=target, note=note, raw=samples.raw())


def _rounds(scale: Scale) -> int:
    return 1 if scale.name == "quick" else 5


BENCHMARKS: list[Benchmark] = [loading, comparing]
