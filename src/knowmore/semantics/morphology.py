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


def forms(noun: str, exceptions: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The noun as WordNet writes it, with underscores for blanks, and what it may be a plural of.

    exceptions: the singulars of plurals that follow no rule.

    >>> forms("Church mice", {"mice": ("mouse",)})
    ('church_mice', 'church_mouse')
    >>> forms("boxes", {})
    ('boxes', 'boxe', 'box')
    """
    plain = re.sub(r"\s+", "_", noun.strip().lower())
    return tuple(dict.fromkeys((plain, *_singulars(plain, exceptions))))


def joined(noun: str) -> str:
    """The noun without what its parts are joined by: nobody agrees on that.

    >>> joined("hot-air_balloon")
    'hotairballoon'
    """
    return noun.translate(_JOINTS)


def _singulars(noun: str, exceptions: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    yield from exceptions.get(noun, ())
    # Of several words the last one has the ending.
    last = re.split("[-_]", noun)[-1]
    head = noun.removesuffix(last)
    yield from (head + base for base in exceptions.get(last, ()))
    if last.endswith("ss"):
        return
    for ending, instead in _ENDINGS.items():
        if last.endswith(ending) and last != ending:
            yield head + last.removesuffix(ending) + instead
