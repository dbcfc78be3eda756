"""The nouns of WordNet as its database files have them.

A synset is a set of nouns that mean the same. Inside, synsets are rows in the order of
data.noun, and lemmas, the nouns themselves in lower case, are lines in the order of index.noun.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, eye_array

from knowmore.errors import InvalidInput
from knowmore.semantics.morphology import forms, joined, key

Array = npt.NDArray[Any]

# A hypernym is what a noun is a kind of, an instance hypernym what a name is one of.
_HYPERNYMS = ("@", "@i")
# Counts are written in fifteen digits.
_ROUNDING = 1e-14


@final
@dataclass(frozen=True, eq=False)
class Nouns:
    """n synsets, and m nouns that mean them.

    `words` and `glosses` have a line for each synset, `lemmas` one for each noun. The hypernyms of
    row i are `above[above_from[i]:above_from[i + 1]]`, the senses of noun i, most frequent first,
    `senses[senses_from[i]:senses_from[i + 1]]`. hyponyms (n,) counts the synsets below each,
    frequencies (n,) are parts of a text that speak of a synset or of one below, by the text.

    >>> nouns = Nouns.of({
    ...     "data.noun": "00000000 03 n 01 entity 0 000 | all there is  \\n"
    ...     "00000052 05 n 02 dog 0 Canis_familiaris 0 001 @ 00000000 n 0000 | it barks  \\n",
    ...     "index.noun": "canis_familiaris n 1 1 @ 1 0 00000052  \\ndog n 1 1 @ 1 1 00000052  \\n"
    ...     "entity n 1 1 ~ 1 1 00000000  \\n",
    ...     "noun.exc": "",
    ... })
    >>> nouns.mean("dogs"), nouns.hypernyms(1), nouns.hyponyms
    ((1,), (0,), array([1, 0]))
    """

    words: str
    glosses: str
    above: Array
    above_from: Array
    hyponyms: Array
    lemmas: str
    senses: Array
    senses_from: Array
    exceptions: str
    offsets: Array
    frequencies: Mapping[str, Array]

    def __post_init__(self) -> None:
        arrays = (self.above, self.above_from, self.hyponyms, self.senses, self.senses_from)
        for array in (*arrays, self.offsets, *self.frequencies.values()):
            array.setflags(write=False)

    @classmethod
    def of(cls, files: Mapping[str, str]) -> Nouns:
        """Read the texts of data.noun, index.noun, noun.exc and of counts, ic-*.dat."""
        offsets, words, glosses, above, n_above = _synsets(files["data.noun"])
        if not offsets:
            raise InvalidInput("data.noun holds no synset. Is it the file of the database?")
        rows = {offset: row for row, offset in enumerate(offsets)}
        lemmas, senses, n_senses = _lemmas(files["index.noun"])
        hypernyms, above_from = _pointed(above, n_above, rows, "data.noun")
        meant, senses_from = _pointed(senses, n_senses, rows, "index.noun")
        nameless = np.flatnonzero(np.bincount(meant, minlength=len(rows)) == 0)
        if len(nameless):
            raise InvalidInput(
                f"index.noun has no noun for the synset {offsets[nameless[0]]!r} of data.noun. The "
                f"files are of different versions, or damaged."
            )
        lines = set(lemmas)
        if lost := [
            noun for some in words for noun in some.lower().split(" ") if noun not in lines
        ]:
            raise InvalidInput(
                f"index.noun has no line for {lost[0]!r}, a noun of data.noun. It is cut off, or "
                f"the files are of different versions."
            )
        _check_exceptions(files["noun.exc"])
        numbers = np.array(offsets, dtype=np.int64)
        return cls(
            "\n".join(words),
            "\n".join(glosses),
            hypernyms,
            above_from,
            _hyponyms(hypernyms, above_from),
            "\n".join(lemmas),
            meant,
            senses_from,
            files["noun.exc"],
            numbers,
            {
                name.removesuffix(".dat"): frequencies(text, numbers, hypernyms, above_from, name)
                for name, text in files.items()
                if name.endswith(".dat")
            },
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def lines(self) -> dict[str, int]:
        """Which line a lemma has."""
        return {lemma: line for line, lemma in enumerate(self.lemmas.split("\n"))}

    def mean(self, noun: str) -> tuple[int, ...]:
        """The synsets that a noun means, plural or not; most frequent first, none if unknown.

        Only if no lemma is spelt so, it is taken as a plural: gas is none of Ga. If no lemma is
        spelt so either, one that differs by blanks, hyphens or full stops will do.
        """
        spelt = forms(noun, self._exceptions)
        alike = ([lemma for form in some for lemma in self._alike(form)] for some in spelt)
        for lemmas in chain(spelt, alike):
            if found := [sense for lemma in lemmas for sense in self.senses_of(lemma)]:
                return tuple(dict.fromkeys(found))
        return ()

    def _alike(self, form: str) -> tuple[str, ...]:
        return self._joined.get(joined(form), ())

    def senses_of(self, lemma: str) -> tuple[int, ...]:
        """The synsets that a lemma means."""
        line = self.lines.get(lemma)
        if line is None:
            return ()
        return tuple(self.senses[self.senses_from[line] : self.senses_from[line + 1]].tolist())

    def hypernyms(self, row: int) -> tuple[int, ...]:
        """What a synset is a kind of, or one of."""
        above, start = self._hierarchy
        return tuple(above[start[row] : start[row + 1]])

    def subsumers(self, row: int) -> dict[int, int]:
        """The synset and all above it, each with the least number of steps that lead there."""
        found, steps, ring = {row: 0}, 0, [row]
        while ring:
            steps += 1
            ring = [up for one in ring for up in self.hypernyms(one) if up not in found]
            found |= dict.fromkeys(ring, steps)
        return found

    def words_of(self, row: int) -> tuple[str, ...]:
        """The nouns of a synset, written as they should be."""
        return tuple(self._words[row].split(" "))

    def gloss_of(self, row: int) -> str:
        """What a synset means, in words."""
        return self._glosses[row]

    @cached_property
    def _hierarchy(self) -> tuple[list[int], list[int]]:
        # Few numbers at a time are read faster from a list.
        return self.above.tolist(), self.above_from.tolist()

    @cached_property
    def _words(self) -> list[str]:
        return self.words.split("\n")

    @cached_property
    def _glosses(self) -> list[str]:
        return self.glosses.split("\n")

    @cached_property
    def _joined(self) -> dict[str, tuple[str, ...]]:
        """The lemmas by what is left when their parts are joined."""
        found: dict[str, tuple[str, ...]] = {}
        for lemma, left in zip(
            self.lemmas.split("\n"), joined(self.lemmas).split("\n"), strict=True
        ):
            found[left] = (*found.get(left, ()), lemma)
        return found

    @cached_property
    def _exceptions(self) -> dict[str, tuple[str, ...]]:
        """The singulars of a plural, by its `key`."""
        found: dict[str, tuple[str, ...]] = {}
        for line in filter(None, map(str.split, self.exceptions.splitlines())):
            found[key(line[0])] = (*found.get(key(line[0]), ()), *line[1:])
        return found


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


def _synsets(text: str) -> tuple[list[str], list[str], list[str], list[str], list[int]]:
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


def _lemmas(text: str) -> tuple[list[str], list[str], list[int]]:
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


def _check_exceptions(text: str) -> None:
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


def _pointed(
    offsets: list[str], counts: list[int], rows: Mapping[str, int], name: str
) -> tuple[Array, Array]:
    """Offsets as rows, and where each list of so many begins; at last, where all of them end."""
    try:
        found = np.array([rows[offset] for offset in offsets], dtype=np.int64)
    except KeyError as error:
        raise InvalidInput(
            f"{name} speaks of the synset {error.args[0]!r}, but data.noun does not have it. The "
            f"files are of different versions, or damaged."
        ) from error
    return found, np.cumsum([0, *counts])


def _hyponyms(above: Array, above_from: Array) -> Array:
    """(n,): how many synsets are below each, however many ways lead there."""
    n = len(above_from) - 1
    step = csr_array((np.ones(len(above), dtype=bool), above, above_from), shape=(n, n))
    reach, known = step + eye_array(n, dtype=bool, format="csr"), -1
    while reach.nnz != known:
        known = reach.nnz
        reach = reach @ reach
    return np.bincount(reach.indices, minlength=n) - 1


def _unreadable(name: str, number: int) -> InvalidInput:
    return InvalidInput(
        f"Line {number} of {name} is not as WordNet writes it. The file is damaged, or another one."
    )
