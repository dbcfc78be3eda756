"""From a noun as people write it to the nouns that a dictionary lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# The rules of WordNet's own morphy for nouns.
_ENDINGS = {
    "s": "",
    "ses": "s",
    "xes": "x",
    "zes": "z",
    "ches": "ch",
    "shes": "sh",
    "men": "man",
    "ies": "y",
}
_JOINTS = str.maketrans("", "", "-_.")


def forms(
    noun: str, exceptions: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The noun as WordNet writes it, with underscores for blanks; then what rules make of it.

    exceptions: the singulars of plurals that follow no rule, by `key`. They come with the noun:
    rules are for those of which nothing is written.

    >>> forms("Church mice", {"mice": ("mouse",)})
    (('church_mice',), ('church_mouse',))
    >>> forms("Men of war", {"men_of_war": ("man-of-war",)})
    (('men_of_war', 'man-of-war'), ())
    >>> forms("boxes", {})
    (('boxes',), ('boxe', 'box'))
    """
    plain = re.sub(r"\s+", "_", noun.strip().lower())
    return (plain, *exceptions.get(key(plain), ())), tuple(_singulars(plain, exceptions))


def key(noun: str) -> str:
    """By which a plural is found among the exceptions, hyphens or not.

    >>> key("men-of-war")
    'men_of_war'
    """
    return noun.replace("-", "_")


def joined(noun: str) -> str:
    """The noun without what its parts are joined by: nobody agrees on that.

    >>> joined("hot-air_balloon")
    'hotairballoon'
    """
    return noun.translate(_JOINTS)


def _singulars(noun: str, exceptions: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    # Of several words the last one has the ending.
    last = re.split("[-_]", noun)[-1]
    head = noun.removesuffix(last)
    yield from (head + base for base in exceptions.get(last, ()))
    if last.endswith("ss"):
        return
    for ending, instead in _ENDINGS.items():
        if last.endswith(ending) and last != ending:
            yield head + last.removesuffix(ending) + instead
