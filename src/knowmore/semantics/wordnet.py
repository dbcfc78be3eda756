"""Names of things, what they mean, and how similar that is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, final, get_args

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType
from knowmore.semantics.information import DEFAULT, INTRINSIC, information_content
from knowmore.semantics.noun_cache import read
from knowmore.semantics.nouns import Nouns
from knowmore.semantics.sources import Source

Unknown = Literal["raise", "keep"]

_SYNSET = re.compile(r"(.+)\.n\.(\d+)")


@final
@dataclass(frozen=True)
class Synset:
    """A meaning: nouns that share it, and what they mean in words.

    "dog.n.01" is the first, most frequent meaning of "dog". A meaning goes by its first noun, but
    every noun may name it: "domestic_dog.n.01" is the same.
    """

    name: str
    lemmas: tuple[str, ...]
    gloss: str


@final
@dataclass(frozen=True, eq=False)
class Similarities:
    """One name against others, each (m,): see `WordNet.resnik`, `WordNet.lin`, `WordNet.path`."""

    resnik: Array
    lin: Array
    path: Array


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordNet:
    """The nouns of WordNet, with how much each synset says.

    n synsets; content (n,) is their information content, by the `information` that is named.
    A name may be a synset ("crane.n.04"), a name that `meanings` has a synset for, or a noun,
    singular or plural, with blanks, hyphens or underscores. A noun stands for all its meanings,
    and two nouns are as similar as the most similar of them (Resnik, IJCAI 1995).
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

        Without a path it is looked for in the folder KNOWMORE_DATA and where Debian's
        package wordnet-base puts it. `information` names counts that came with it, such as
        "ic-brown", a file of counts, or "intrinsic": by the hierarchy alone. None is Brown's,
        "ic-brown-resnik-add1", if they came along, else intrinsic. `meanings` says which synsets
        names stand for. The second time is faster: there is a cache.
        """
        if not isinstance(meanings, Mapping | None):
            raise InvalidType(
                f"meanings is a {type(meanings).__name__}. Give a dict of names and synsets."
            )
        nouns = read(Source.of(path))
        if information is None:
            information = DEFAULT if DEFAULT in nouns.frequencies else INTRINSIC
        content = information_content(nouns, information)
        found = _frozen(nouns, os.fspath(information), content, meanings or {})
        for name, synset in found.meanings.items():
            _check_name(name)
            if not isinstance(synset, str) or not found._synset(synset):
                raise InvalidInput(
                    f"meanings says that {name!r} is {synset!r}, but WordNet has no such synset. "
                    f"Synsets are named as in 'dog.n.01'; synsets(noun) lists those of a noun."
                )
        return found

    def __contains__(self, name: str) -> bool:
        return bool(self._rows(name))

    def synsets(self, name: str) -> tuple[Synset, ...]:
        """What a name means, most frequent first; nothing if it is not known."""
        return self._shown(self._rows(name))

    def hypernyms(self, name: str) -> tuple[Synset, ...]:
        """What the thing is a kind of, or, if it is one of a kind, one of. `name` means one."""
        return self._shown(self.nouns.hypernyms(self._one(name)))

    def lowest_common_subsumers(self, a: str, b: str) -> tuple[Synset, ...]:
        """What both are, as far down as that goes: no more special synset is above both.

        There may be several, or none, as a synset may be of several kinds. Those that say most
        come first. `a` and `b` mean one synset each.
        """
        above = self.nouns.subsumers
        common = above(self._one(a)).keys() & above(self._one(b)).keys()
        higher = {up for row in common for up in above(row) if up != row}
        lowest = sorted(common - higher, key=lambda row: (-self.content[row], row))
        return self._shown(lowest)

    def information_content(self, name: str) -> float:
        """How much it says that something is of that kind. `name` means one."""
        return float(self.content[self._one(name)])

    def resnik(self, a: str, b: str) -> float:
        """max IC(c), c among all that is above both: zero if they have nothing in common."""
        return float(self.similarities(a, [b]).resnik[0])

    def lin(self, a: str, b: str) -> float:
        """2 resnik(a, b) / (IC(a) + IC(b)), from zero to one.

        Lin, An information-theoretic definition of similarity, ICML 1998. Of what no text speaks,
        IC is infinite: then it is zero, or one if no text speaks of what is above both.
        """
        return float(self.similarities(a, [b]).lin[0])

    def path(self, a: str, b: str) -> float:
        """1 / (1 + the steps from a up to what is above both and down to b), zero without a way."""
        return float(self.similarities(a, [b]).path[0])

    def similarities(self, name: str, names: Iterable[str]) -> Similarities:
        """The similarities of a name to each of m others."""
        names = _listed(names)
        self._check_known([name, *names])
        mine = self._above(name)
        found = [self._compared(mine, self._above(one)) for one in names]
        return Similarities(*np.array(found).reshape(-1, 3).T)

    def most_similar(
        self, name: str, names: Iterable[str], k: int | None = None, *, unknown: Unknown = "raise"
    ) -> tuple[str, ...]:
        """The k of the names, or all, that are most similar to `name`; the best first.

        Resnik's similarity decides; many have the same, so then Lin's does, then the path, then
        the alphabet. With unknown="keep" names that WordNet does not know are no error: it has no
        say on them, so they follow after the k, all of them, in their order. If it does not know
        `name` itself, it has no say at all, and all names are returned in their order.
        """
        names = _listed(names)
        k = _count(k, len(names))
        if unknown not in get_args(Unknown):
            raise InvalidInput(f"unknown={unknown!r} must be 'raise' or 'keep'.")
        if unknown == "raise":
            self._check_known([name, *names], "; or let unknown='keep' such names")
        elif name not in self:
            return tuple(names)
        known = [one for one in names if one in self]
        by = self.similarities(name, known)
        keys = zip(-by.resnik, -by.lin, -by.path, known, strict=True)
        ranked = [one for *_, one in sorted(keys)]
        return (*ranked[:k], *(one for one in names if one not in self))

    def __repr__(self) -> str:
        told = f", {len(self.meanings)} meanings" if self.meanings else ""
        return f"WordNet({len(self.nouns)} synsets, information={self.information!r}{told})"

    def __deepcopy__(self, _: dict[int, Any]) -> WordNet:
        # Nothing in it changes, and scikit-learn copies every parameter of an estimator it clones.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen, (self.nouns, self.information, self.content, dict(self.meanings))

    # -- names to rows ---------------------------------------------------------------------------

    def _rows(self, name: str) -> tuple[int, ...]:
        """The synsets that a name stands for."""
        _check_name(name)
        name = self.meanings.get(name, name)
        return self._synset(name) or self.nouns.mean(name)

    def _synset(self, name: str) -> tuple[int, ...]:
        """The row of a synset's name, if it is one."""
        if not (parts := _SYNSET.fullmatch(name)):
            return ()
        number = int(parts[2])
        return self.nouns.senses_of(parts[1].lower())[number - 1 : number] if number else ()

    def _one(self, name: str) -> int:
        """The only synset that a name stands for."""
        self._check_known([name])
        rows = self._rows(name)
        if len(rows) > 1:
            senses = "; ".join(f"{one.name}: {one.gloss}" for one in self._shown(rows[:5]))
            more = f"; and {len(rows) - 5} more" if len(rows) > 5 else ""
            raise InvalidInput(f"{name!r} means {len(rows)} things. Name one of {senses}{more}.")
        return rows[0]

    def _check_known(self, names: Sequence[str], instead: str = "") -> None:
        strangers = [name for name in dict.fromkeys(names) if name not in self]
        if not strangers:
            return
        shown = ", ".join(map(repr, strangers[:5])) + (", ..." if len(strangers) > 5 else "")
        first = strangers[0]
        close = self._close_to(first)
        raise InvalidInput(
            f"WordNet does not know {shown} ({len(strangers)} of {len(set(names))} names)."
            + (f" Is {first!r} {close!r}?" if close else "")
            + f" Say which synset it is: WordNet.load(meanings={{{first!r}: ...}}){instead}."
        )

    def _close_to(self, name: str) -> str:
        """A noun that is spelt nearly so and begins alike."""
        plain = name.lower().replace(" ", "_")
        alike = [lemma for lemma in self.nouns.lines if lemma.startswith(plain[:2])]
        return next(iter(get_close_matches(plain, alike, n=1, cutoff=0.8)), "")

    def _shown(self, rows: Iterable[int]) -> tuple[Synset, ...]:
        return tuple(
            Synset(self._name(row), self.nouns.words_of(row), self.nouns.gloss_of(row))
            for row in rows
        )

    def _name(self, row: int) -> str:
        lemma = self.nouns.words_of(row)[0].lower()
        return f"{lemma}.n.{self.nouns.senses_of(lemma).index(row) + 1:02}"

    # -- rows to numbers -------------------------------------------------------------------------

    def _above(self, name: str) -> dict[int, tuple[int, float]]:
        """All that is above a meaning of the name: the steps from the nearest one up to it, and
        the IC of the one below it that says least."""
        found: dict[int, tuple[int, float]] = {}
        for row in self._rows(name):
            says = float(self.content[row])
            for up, steps in self.nouns.subsumers(row).items():
                least = found.get(up, (steps, says))
                found[up] = min(steps, least[0]), min(says, least[1])
        return found

    def _compared(
        self, a: dict[int, tuple[int, float]], b: dict[int, tuple[int, float]]
    ) -> tuple[float, float, float]:
        """The largest of each similarity among all pairs of meanings.

        Each is the largest, over all that is above both of a pair, of what grows as the steps and
        the IC of either become less. So the pair that is best below c need not be looked for.
        """
        resnik = lin = path = 0.0
        for c in a.keys() & b.keys():
            shared = float(self.content[c])
            (steps_a, says_a), (steps_b, says_b) = a[c], b[c]
            resnik = max(resnik, shared)
            lin = max(lin, _lin(shared, says_a, says_b))
            path = max(path, 1 / (1 + steps_a + steps_b))
        return resnik, lin, path


def _frozen(nouns: Nouns, information: str, content: Array, meanings: Mapping[str, str]) -> WordNet:
    content.setflags(write=False)
    return WordNet(nouns, information, content, MappingProxyType(dict(meanings)))


def _lin(shared: float, a: float, b: float) -> float:
    # Infinite or zero, all three: the quotient would not be defined.
    return 1.0 if shared == a == b else 2 * shared / (a + b)


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise InvalidType(
            f"{name!r} is no name: it is of type {type(name).__name__}. Names are text."
        )


def _listed(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise InvalidType(f"names={names!r} must be a list of names: [{names!r}].")
    listed, seen = list(names), set()
    for name in listed:
        _check_name(name)
        if name in seen:
            raise InvalidInput(f"names has {name!r} more than once. Name each one once.")
        seen.add(name)
    return listed


def _count(k: int | None, most: int) -> int:
    if k is None:
        return most
    if not isinstance(k, Integral) or isinstance(k, bool):
        raise InvalidType(f"k={k!r} must be a whole number.")
    if not 1 <= k <= most:
        raise InvalidInput(f"k={k} must be between 1 and the number of names, {most}.")
    return int(k)
