"""The nouns of WordNet as its database files have them.

A synset is a set of nouns that mean the same. Inside, synsets are rows in the order of
data.noun, and lemmas, the nouns themselves in lower case, are lines in the order of index.noun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import final

import numpy as np
from scipy.sparse import csr_array, eye_array

from knowmore.arrays import Array
from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput
from knowmore.semantics.database import check_exceptions, frequencies, read_lemmas, read_synsets
from knowmore.semantics.morphology import forms, joined, key


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
        offsets, words, glosses, above, n_above = read_synsets(files["data.noun"])
        if not offsets:
            raise InvalidInput("data.noun holds no synset. Is it the file of the database?")
        rows = {offset: row for row, offset in enumerate(offsets)}
        lemmas, senses, n_senses = read_lemmas(files["index.noun"])
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
        check_exceptions(files["noun.exc"])
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
