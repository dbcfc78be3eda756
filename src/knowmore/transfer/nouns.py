"""The nouns of WordNet: which synsets a noun means, and which synsets are above a synset.

A synset is a set of nouns that mean the same. Synsets are numbered in the order of data.noun;
lemmas, the nouns in lower case, in the order of index.noun.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import final

from knowmore._base import Array, Frozen, cached_property

# The rules of WordNet's morphy for nouns: endings of plurals, and of their singulars.
_PLURAL = ("s", "ses", "xes", "zes", "ches", "shes", "men", "ies")
_SINGULAR = ("", "s", "x", "z", "ch", "sh", "man", "y")
_JOINTS = str.maketrans("", "", "-_.")
# Parts and sides that data sets name after a thing, as in "car_side" or "cougar_face".
_VIEWS = frozenset(("back", "body", "easy", "face", "front", "head", "rear", "side", "top", "view"))
# The singulars of irregular plurals.
_Exceptions = Mapping[str, Sequence[str]]


@final
@dataclass(frozen=True, eq=False)
class Nouns(Frozen):
    """n synsets, and m lemmas that mean them.

    synsets : a line for each synset: its nouns, then " | " and the gloss; all lines as bytes
    lemmas : a line for each lemma
    exceptions : noun.exc, lines of a plural and its singulars
    above, above_from : the hypernyms of synset i are above[above_from[i]:above_from[i + 1]]
    senses, senses_from : the synsets that lemma i means, most frequent first, in the same way
    hyponyms : (n,), how many synsets are below each
    offsets : (n,), the positions in data.noun, by which other files refer to a synset
    texts, frequencies : the names of the texts that were counted, and (texts, n), the part of each
        that speaks of a synset or of one below
    """

    synsets: Array
    lemmas: Array
    exceptions: Array
    above: Array
    above_from: Array
    senses: Array
    senses_from: Array
    hyponyms: Array
    offsets: Array
    texts: Array
    frequencies: Array

    def __len__(self) -> int:
        return len(self.offsets)

    def look_up(self, noun: str) -> tuple[int, ...]:
        """The synsets that a noun means, most frequent first; none if WordNet does not have it.

        A noun counts as a plural only if no lemma is spelt like it: gas is not a plural of Ga. Then
        come lemmas that differ by blanks, hyphens or full stops. The last resort is the head of a
        compound: a touring bike is a bike.
        """
        return next(filter(None, map(self._spelt, (noun, *heads(noun)))), ())

    def _spelt(self, noun: str) -> tuple[int, ...]:
        """The synsets that a noun means as a whole."""
        spellings = forms(noun, self._exceptions)
        similar = (
            [lemma for form in some for lemma in self._by_letters.get(letters(form), ())]
            for some in spellings
        )
        for lemmas in chain(spellings, similar):
            if found := [sense for lemma in lemmas for sense in self.senses_of(lemma)]:
                return tuple(dict.fromkeys(found))
        return ()

    def senses_of(self, lemma: str) -> tuple[int, ...]:
        """The synsets that a lemma means, most frequent first."""
        line = self.lines.get(lemma)
        if line is None:
            return ()
        return tuple(self.senses[self.senses_from[line] : self.senses_from[line + 1]].tolist())

    def hypernyms(self, row: int) -> tuple[int, ...]:
        """The synsets that a synset is a kind of, or an instance of."""
        above, start = self._hierarchy
        return tuple(above[start[row] : start[row + 1]])

    def subsumers(self, row: int) -> dict[int, int]:
        """The synset and all synsets above it, each with the smallest number of steps to it."""
        found, steps, ring = {row: 0}, 0, [row]
        while ring:
            steps += 1
            ring = [up for one in ring for up in self.hypernyms(one) if up not in found]
            found |= dict.fromkeys(ring, steps)
        return found

    def describe(self, row: int) -> tuple[tuple[str, ...], str]:
        """The nouns of a synset, in their own spelling, and its gloss."""
        nouns, _, gloss = self._synset_lines[row].partition(" | ")
        return tuple(nouns.split(" ")), gloss

    @cached_property
    def lines(self) -> dict[str, int]:
        """The line of each lemma."""
        return {lemma: line for line, lemma in enumerate(_lines(self.lemmas))}

    @cached_property
    def counts(self) -> dict[str, Array]:
        """The frequencies (n,) by the name of the text."""
        return dict(zip(self.texts.tolist(), self.frequencies, strict=True))

    @cached_property
    def _synset_lines(self) -> list[str]:
        return _lines(self.synsets)

    @cached_property
    def _hierarchy(self) -> tuple[list[int], list[int]]:
        # A few numbers at a time are read faster from a list.
        return self.above.tolist(), self.above_from.tolist()

    @cached_property
    def _by_letters(self) -> dict[str, list[str]]:
        return _grouped((letters(lemma), [lemma]) for lemma in self.lines)

    @cached_property
    def _exceptions(self) -> dict[str, list[str]]:
        lines = [line.split() for line in _lines(self.exceptions) if line]
        return _grouped((plural.replace("-", "_"), singulars) for plural, *singulars in lines)


def _lines(text: Array) -> list[str]:
    return text.tobytes().decode().split("\n")


def _grouped(pairs: Iterable[tuple[str, list[str]]]) -> dict[str, list[str]]:
    """All values of each key."""
    found: dict[str, list[str]] = {}
    for key, values in pairs:
        found.setdefault(key, []).extend(values)
    return found


def forms(noun: str, exceptions: _Exceptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The spelling of WordNet, with irregular singulars; then the singulars that rules give.

    exceptions : the singulars of irregular plurals, which are spelt with underscores

    >>> forms("Church mice", {"mice": ("mouse",)})
    (('church_mice',), ('church_mouse',))
    >>> forms("Men of war", {"men_of_war": ("man-of-war",)})
    (('men_of_war', 'man-of-war'), ())
    >>> forms("boxes", {})
    (('boxes',), ('boxe', 'box'))
    """
    plain = re.sub(r"\s+", "_", noun.strip().lower())
    irregular = exceptions.get(plain.replace("-", "_"), ())
    return (plain, *irregular), tuple(_singulars(plain, exceptions))


def heads(noun: str) -> Iterator[str]:
    """Nouns that a compound may be a kind of: its last words, the most words first.

    Numbers at either end, and words for what is seen of a thing, are no part of its name.

    >>> list(heads("touring-bike")), list(heads("electric-guitar-101")), list(heads("car_side"))
    (['bike'], ['electric_guitar', 'guitar'], ['car'])
    """
    whole = words = re.split(r"[-_\s]+", noun.strip(" -_").lower())
    # As in "252.car-side-101".
    words = [re.sub(r"^\d+\.?", "", words[0]), *words[1:]]
    words = words if words[0] else words[1:]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _VIEWS):
        words = words[:-1]
    if words != whole and words:
        yield "_".join(words)
    for i in range(1, len(words)):
        yield "_".join(words[i:])


def _singulars(noun: str, exceptions: _Exceptions) -> Iterator[str]:
    # Only the last of several words has the ending of the plural.
    last = re.split("[-_]", noun)[-1]
    head = noun.removesuffix(last)
    yield from (head + singular for singular in exceptions.get(last, ()))
    if last.endswith("ss"):
        return
    for plural, singular in zip(_PLURAL, _SINGULAR, strict=True):
        if last.endswith(plural) and last != plural:
            yield head + last.removesuffix(plural) + singular


def letters(noun: str) -> str:
    """The noun without hyphens, underscores and full stops, whose use varies.

    >>> letters("hot-air_balloon")
    'hotairballoon'
    """
    return noun.translate(_JOINTS)
