"""Names of things, what they mean, and how similar that is."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, final, get_args

import numpy as np

from knowmore._base import Array, choice, some, whole_number
from knowmore.errors import InvalidInput, InvalidType, MissingData
from knowmore.transfer.nouns import Nouns, frequencies, read

Unknown = Literal["raise", "keep"]

INTRINSIC = "intrinsic"
# Preferred among the counts that come with WordNet 3.0: none of them is zero, so that all synsets
# can be compared, and the senses of a noun share its occurrences, as in Resnik's paper.
DEFAULT = "ic-brown-resnik-add1"

_SYNSET = re.compile(r"(.+)\.n\.(\d+)")


@final
@dataclass(frozen=True)
class Synset:
    """A meaning: the nouns that share it, and a gloss that explains it.

    "dog.n.01" is the first, most frequent meaning of "dog". A synset is named after its first
    noun, but is found by any of them: "domestic_dog.n.01" is the same.
    """

    name: str
    lemmas: tuple[str, ...]
    gloss: str


@final
@dataclass(frozen=True, eq=False)
class Similarities:
    """Similarities of a name to m others, (m,) by each method of `WordNet`."""

    resnik: Array
    lin: Array
    path: Array


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordNet:
    """The nouns of WordNet, with the information content of each synset.

    content : (n,), the information content of the n synsets, computed from `information`

    A name may be a synset ("crane.n.04"), a key of `meanings`, or a noun, singular or plural, with
    blanks, hyphens or underscores. A noun stands for all its meanings, and two nouns are as similar
    as the most similar of them (Resnik, IJCAI 1995).
    """

    nouns: Nouns
    information: str
    content: Array
    meanings: Mapping[str, str]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        information: str | os.PathLike[str] | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> WordNet:
        """Read the database in the folder or tar archive `path`.

        path : default: wordnet30_nouns.tar.xz in the folder KNOWMORE_DATA, or else the folder of
            Debian's package wordnet-base
        information : what to compute information content from: counts that come with the database,
            such as "ic-brown"; a file of counts; or "intrinsic", the hierarchy alone. Default:
            "ic-brown-resnik-add1" if it is there, else "intrinsic"
        meanings : a dict of names and the synsets they stand for

        What was parsed is cached, so that later calls are faster.
        """
        for name, value in {"path": path, "information": information}.items():
            if not isinstance(value, str | os.PathLike | None):
                raise InvalidType(f"{name}={value!r}. Give a string or a path.")
        if not isinstance(meanings, Mapping | None):
            raise InvalidType(f"meanings={meanings!r}. Give a dict of names and synsets.")
        nouns = read(path)
        default = DEFAULT if DEFAULT in nouns.counts else INTRINSIC
        information = default if information is None else os.fspath(information)
        content = _information_content(nouns, information)
        found = cls(nouns, information, content, meanings or {})
        for name, synset in found.meanings.items():
            _check_name(name)
            if not isinstance(synset, str) or not _synset(nouns, synset):
                given = f"meanings={{{name!r}: {synset!r}}}, but WordNet has no such synset."
                raise InvalidInput(f"{given} synsets(noun) lists those of a noun.")
        return found

    def __post_init__(self) -> None:
        self.content.setflags(write=False)
        object.__setattr__(self, "meanings", MappingProxyType(dict(self.meanings)))

    def __contains__(self, name: str) -> bool:
        return bool(self._rows(name))

    def synsets(self, name: str) -> tuple[Synset, ...]:
        """The meanings of a name, most frequent first; empty if WordNet does not know it."""
        return self._described(self._rows(name))

    def hypernyms(self, name: str) -> tuple[Synset, ...]:
        """The synsets that `name` is a kind or an instance of. `name` must have one meaning."""
        return self._described(self.nouns.hypernyms(self._one(name)))

    def lowest_common_subsumers(self, a: str, b: str) -> tuple[Synset, ...]:
        """The synsets above both that have no other such synset below them.

        There may be several, since a synset may have several hypernyms, or none; those of highest
        information content come first. `a` and `b` must have one meaning each.
        """
        above = self.nouns.subsumers
        common = above(self._one(a)).keys() & above(self._one(b)).keys()
        higher = {up for row in common for up in above(row) if up != row}
        lowest = sorted(common - higher, key=lambda row: (-self.content[row], row))
        return self._described(lowest)

    def information_content(self, name: str) -> float:
        """IC(name), how much it says that something is of this kind; `name` must have one meaning.

        From counts IC(c) = -log p(c), infinite if no text speaks of c; from the hierarchy alone
        it is between zero and one.
        """
        return float(self.content[self._one(name)])

    def resnik(self, a: str, b: str) -> float:
        """max IC(c) over all c above both; zero if nothing is above both."""
        return float(self.similarities(a, [b]).resnik[0])

    def lin(self, a: str, b: str) -> float:
        """2 resnik(a, b) / (IC(a) + IC(b)), from zero to one.

        Lin, An information-theoretic definition of similarity, ICML 1998. If IC(a) or IC(b) is
        infinite it is zero, or one if resnik(a, b) is infinite too.
        """
        return float(self.similarities(a, [b]).lin[0])

    def path(self, a: str, b: str) -> float:
        """1 / (1 + the steps from a up to what is above both and down to b), or else zero."""
        return float(self.similarities(a, [b]).path[0])

    def similarities(self, name: str, names: Iterable[str]) -> Similarities:
        """The similarities of a name to each of m others."""
        names = _listed(names)
        self._check_known([name, *names])
        above = self._above(name)
        found = [self._compared(above, self._above(other)) for other in names]
        return Similarities(*np.array(found).reshape(-1, 3).T)

    def most_similar(
        self, name: str, names: Iterable[str], k: int | None = None, *, unknown: Unknown = "raise"
    ) -> tuple[str, ...]:
        """The k of the names, or all, that are most similar to `name`; the best first.

        They are ordered by Resnik's similarity; ties, which are frequent, by Lin's, by the path and
        by the alphabet. Names that WordNet does not know are an error, or with unknown="keep" they
        all follow after the k, in their order. If it does not know `name` itself, all names are
        returned in their order.
        """
        names = _listed(names)
        k = len(names) if k is None else whole_number("k", k, 1, len(names))
        choice("unknown", unknown, get_args(Unknown))
        if unknown == "raise":
            self._check_known([name, *names], ", or pass unknown='keep'")
        elif name not in self:
            return tuple(names)
        known = [one for one in names if one in self]
        by = self.similarities(name, known)
        keys = zip(-by.resnik, -by.lin, -by.path, known, strict=True)
        ranked = [one for *_, one in sorted(keys)]
        return (*ranked[:k], *(one for one in names if one not in self))

    def __repr__(self) -> str:
        meanings = f", {len(self.meanings)} meanings" if self.meanings else ""
        return f"WordNet({len(self.nouns)} synsets, information={self.information!r}{meanings})"

    def __deepcopy__(self, _: dict[int, Any]) -> WordNet:
        # It never changes, and scikit-learn's clone copies the parameters of an estimator.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled.
        return WordNet, (self.nouns, self.information, self.content, dict(self.meanings))

    # -- names to rows ---------------------------------------------------------------------------

    def _rows(self, name: str) -> tuple[int, ...]:
        """The synsets that a name stands for."""
        name = self.meanings.get(_check_name(name), name)
        return _synset(self.nouns, name) or self.nouns.look_up(name)

    def _one(self, name: str) -> int:
        """The only synset that a name stands for."""
        self._check_known([name])
        rows = self._rows(name)
        if len(rows) > 1:
            senses = "; ".join(f"{one.name}: {one.gloss}" for one in self._described(rows[:5]))
            more = "; ..." if len(rows) > 5 else "."
            raise InvalidInput(f"{name!r} means {len(rows)} things. Name one of {senses}{more}")
        return rows[0]

    def _check_known(self, names: Sequence[str], instead: str = "") -> None:
        missing = [name for name in dict.fromkeys(names) if name not in self]
        if not missing:
            return
        share, first = f"{len(missing)} of {len(set(names))}", missing[0]
        # Only lemmas that begin alike: to compare with all of them would take seconds.
        plain = first.lower().replace(" ", "_")
        lemmas = [lemma for lemma in self.nouns.lines if lemma.startswith(plain[:2])]
        close = get_close_matches(plain, lemmas, n=1, cutoff=0.8)
        hint = f" Did you mean {close[0]!r} by {first!r}?" if close else ""
        remedy = f"Name its synset: WordNet.load(meanings={{{first!r}: ...}}){instead}."
        raise InvalidInput(f"WordNet does not know {some(missing)} ({share} names).{hint} {remedy}")

    def _described(self, rows: Iterable[int]) -> tuple[Synset, ...]:
        found = []
        for row in rows:
            nouns, gloss = self.nouns.describe(row)
            lemma = nouns[0].lower()
            number = self.nouns.senses_of(lemma).index(row) + 1
            found.append(Synset(f"{lemma}.n.{number:02}", nouns, gloss))
        return tuple(found)

    # -- rows to numbers -------------------------------------------------------------------------

    def _above(self, name: str) -> dict[int, tuple[int, float]]:
        """For each synset above a meaning of the name: the smallest number of steps up to it, and
        the smallest IC, among the meanings below it."""
        found: dict[int, tuple[int, float]] = {}
        for row in self._rows(name):
            content = float(self.content[row])
            for up, steps in self.nouns.subsumers(row).items():
                least = found.get(up, (steps, content))
                found[up] = min(steps, least[0]), min(content, least[1])
        return found

    def _compared(
        self, a: dict[int, tuple[int, float]], b: dict[int, tuple[int, float]]
    ) -> tuple[float, float, float]:
        """The largest Resnik, Lin and path similarity among all pairs of meanings.

        Each is a maximum over the synsets c above both of a pair, and decreases with the steps to c
        and with the IC of either meaning. So for each c the smallest of them suffice, and the pairs
        need not be enumerated.
        """
        resnik = lin = path = 0.0
        for c in a.keys() & b.keys():
            shared = float(self.content[c])
            (steps_a, content_a), (steps_b, content_b) = a[c], b[c]
            resnik = max(resnik, shared)
            # Where all three are zero or infinite the quotient is not defined.
            same = shared == content_a == content_b
            lin = max(lin, 1.0 if same else 2 * shared / (content_a + content_b))
            path = max(path, 1 / (1 + steps_a + steps_b))
        return resnik, lin, path


def _synset(nouns: Nouns, name: str) -> tuple[int, ...]:
    """The row of a synset's name, if it is one."""
    if not (parts := _SYNSET.fullmatch(name)):
        return ()
    number = int(parts[2])
    return nouns.senses_of(parts[1].lower())[number - 1 : number] if number else ()


def _information_content(nouns: Nouns, name: str) -> Array:
    """(n,), from counts that come with the nouns, from a file of counts, or from the hierarchy."""
    if name == INTRINSIC:
        return intrinsic(nouns.hyponyms)
    if name in nouns.counts:
        return from_frequencies(nouns.counts[name])
    try:
        text = Path(name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        available = ", ".join(sorted(nouns.counts)) or "none"
        problem = f"information={name!r} is neither a file nor one of the counts ({available})."
        raise MissingData(f"{problem} {INTRINSIC!r} needs only the hierarchy.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The file of counts {name!r} cannot be read: {error}.") from error
    return from_frequencies(frequencies(nouns, name, text))


def from_frequencies(p: Array) -> Array:
    """IC(c) = -log p(c), p (n,) the part of a text that speaks of c or of a synset below.

    It is infinite if the text never does. Resnik, Using information content to evaluate semantic
    similarity in a taxonomy, IJCAI 1995.

    >>> from_frequencies(np.array([1.0, 0.5, 0.0]))
    array([0.        , 0.69314718,        inf])
    """
    with np.errstate(divide="ignore"):
        # Adding zero turns the negative zero of -log 1 into zero.
        return -np.log(p) + 0.0


def intrinsic(hyponyms: Array) -> Array:
    """IC(c) = 1 - log(h(c) + 1) / log n, h (n,) the number of synsets below c: no text needed.

    From zero for a root above all others to one for synsets with none below. Seco, Veale and Hayes,
    An intrinsic information content metric for semantic similarity in WordNet, ECAI 2004.

    >>> intrinsic(np.array([3, 1, 0, 0]))
    array([0. , 0.5, 1. , 1. ])
    """
    return np.asarray(1 - np.log(hyponyms + 1) / np.log(max(len(hyponyms), 2)))


def _check_name(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidType(f"The name {name!r} is of type {type(name).__name__}. Names are strings.")
    return name


def _listed(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise InvalidType(f"names={names!r} must be a list of names: [{names!r}].")
    listed = [_check_name(name) for name in names]
    repeated = [name for name, count in Counter(listed).items() if count > 1]
    if repeated:
        raise InvalidInput(f"names has {some(repeated)} more than once. Give each name once.")
    return listed
