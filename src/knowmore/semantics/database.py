"""The files of WordNet's database, line by line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput

# A hypernym is what a noun is a kind of, an instance hypernym what a name is one of.
_HYPERNYMS = ("@", "@i")
# Counts are written in fifteen digits.
_ROUNDING = 1e-14


def frequencies(text: str, offsets: Array, above: Array, above_from: Array, name: str) -> Array:
    """(n,): the counts of a file such as ic-brown.dat as parts of the count of the roots.

    Its lines have the offset of a synset with its part of speech, how often the text speaks of it
    or of one below, and ROOT if nothing is above. Every synset has a line, also one that is never
    spoken of: so a file that was cut off shows.
    """
    rows = {f"{offset}n": row for row, offset in enumerate(offsets.tolist())}
    counts, whole = np.full(len(offsets), np.nan), 0.0
    if text and not text.endswith("\n"):
        raise InvalidInput(f"{name} breaks off within its last line. Fetch it again.")
    for number, line in _numbered(text):
        synset, _, rest = line.partition(" ")
        row = rows.get(synset)
        if row is None:
            if synset.startswith("wnver::") or synset.endswith("v"):
                continue
            raise InvalidInput(
                f"Line {number} of {name} counts {synset!r}, but the database has no such "
                f"synset. Counts belong to one version of WordNet, and these to another."
            )
        if not np.isnan(counts[row]):
            raise InvalidInput(f"Line {number} of {name} counts {synset!r} once more.")
        try:
            count, *root = rest.split()
            counts[row] = float(count)
        except ValueError as error:
            raise _unreadable(name, number) from error
        if root == ["ROOT"]:
            whole += counts[row]
    _check_counts(counts, whole, above, above_from, name)
    return counts / whole


def _check_counts(counts: Array, whole: float, above: Array, above_from: Array, name: str) -> None:
    if missing := int(np.isnan(counts).sum()):
        raise InvalidInput(
            f"{name} has no count for {missing} of {len(counts)} synsets. It is cut off, or of "
            f"another version of WordNet: each synset has a line, with a zero if no text speaks of "
            f"it. Fetch the file again."
        )
    if not (0 < whole < np.inf and counts.min() >= 0 and counts.max() <= whole):
        raise InvalidInput(
            f"{name} holds no counts: they must be between zero and the count of the roots, which "
            f"are marked as ROOT, and finite."
        )
    below = np.repeat(np.arange(len(counts)), np.diff(above_from))
    if (counts[above] < counts[below] * (1 - _ROUNDING)).any():
        raise InvalidInput(
            f"{name} counts a synset more often than what it is a kind of, which holds it. The "
            f"file is damaged: fetch it again."
        )


def read_synsets(text: str) -> tuple[list[str], list[str], list[str], list[str], list[int]]:
    """The offset, nouns and gloss of each synset; its hypernyms, and how many they are."""
    offsets, words, glosses, counts = [], [], [], []
    above: list[str] = []
    for number, line in _numbered(text):
        facts, bar, gloss = line.partition(" | ")
        try:
            # offset, file, n, number of words (hexadecimal), word, id, ..., number of pointers,
            # pointer, offset, part of speech, which words, ...
            fields = facts.split(" ")
            end = 4 + 2 * int(fields[3], 16)
            pointers = fields[end + 1 :]
            if not bar or end == 4 or len(pointers) != 4 * int(fields[end]):
                raise ValueError(line)
        except (IndexError, ValueError) as error:
            raise _unreadable("data.noun", number) from error
        offsets.append(fields[0])
        words.append(" ".join(fields[4:end:2]))
        glosses.append(gloss.strip())
        before = len(above)
        above += [
            offset
            for kind, offset in zip(pointers[::4], pointers[1::4], strict=True)
            if kind in _HYPERNYMS
        ]
        counts.append(len(above) - before)
    return offsets, words, glosses, above, counts


def read_lemmas(text: str) -> tuple[list[str], list[str], list[int]]:
    """Each noun; the offsets of the synsets that it means, and how many they are."""
    lemmas, counts = [], []
    senses: list[str] = []
    for number, line in _numbered(text):
        fields = line.split()
        try:
            # noun, n, number of senses, number of pointers, pointers, two counts, offsets.
            count = int(fields[2])
            if count < 1 or len(fields) != 6 + int(fields[3]) + count:
                raise ValueError(line)
        except (IndexError, ValueError) as error:
            raise _unreadable("index.noun", number) from error
        lemmas.append(fields[0])
        senses += fields[-count:]
        counts.append(count)
    return lemmas, senses, counts


def check_exceptions(text: str) -> None:
    """Each line has a plural and its singulars, and the last one ends as the others do."""
    *lines, last = text.split("\n")
    if last or any(line and len(line.split()) < 2 for line in lines):
        raise InvalidInput(
            "noun.exc is not as WordNet writes it: a line has a plural, its singulars and an end. "
            "The file is cut off or damaged."
        )


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines and their numbers; the licence is indented."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line[:1].strip():
            yield number, line


def _unreadable(name: str, number: int) -> InvalidInput:
    return InvalidInput(
        f"Line {number} of {name} is not as WordNet writes it. The file is damaged, or another one."
    )
