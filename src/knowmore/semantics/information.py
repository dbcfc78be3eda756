"""How much a synset says: its information content, (n,)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, MissingData
from knowmore.semantics.database import frequencies
from knowmore.semantics.nouns import Nouns

INTRINSIC = "intrinsic"
# Used if they are there. Of the counts that come with WordNet 3.0 the ones in which no synset is
# without a count, so that all of them can be compared. Resnik's way to count, too: the senses of a
# noun share it.
DEFAULT = "ic-brown-resnik-add1"


def information_content(nouns: Nouns, information: str | os.PathLike[str]) -> Array:
    """By the name of counts that came with the nouns, by a file of counts, or intrinsic."""
    if not isinstance(information, str | os.PathLike):
        raise InvalidType(
            f"information={information!r} is of type {type(information).__name__}. Give the name "
            f"of counts, a file of counts, or {INTRINSIC!r}."
        )
    if information == INTRINSIC:
        return intrinsic(nouns.hyponyms)
    name = os.fspath(information)
    if name in nouns.frequencies:
        return of_counts(nouns.frequencies[name])
    if not os.path.isfile(name):
        there = ", ".join(sorted(nouns.frequencies)) or "none"
        raise MissingData(
            f"information={name!r} is neither among the counts that came with this WordNet "
            f"({there}) nor a file of counts. Name one, or information={INTRINSIC!r}, which needs "
            f"the hierarchy alone."
        )
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The file of counts {name!r} cannot be read: {error}.") from error
    return of_counts(frequencies(text, nouns.offsets, nouns.above, nouns.above_from, name))


def of_counts(p: Array) -> Array:
    """IC(c) = -log p(c), p (n,) the part of a text that speaks of c or of what is below it.

    What a text never speaks of would be infinitely surprising. Resnik, Using information content
    to evaluate semantic similarity in a taxonomy, IJCAI 1995.

    >>> of_counts(np.array([1.0, 0.5, 0.0]))
    array([0.        , 0.69314718,        inf])
    """
    with np.errstate(divide="ignore"):
        # Zero is added as the logarithm of one would become a negative zero.
        return -np.log(p) + 0.0


def intrinsic(hyponyms: Array) -> Array:
    """IC(c) = 1 - log(h(c) + 1) / log n, h (n,) the number of synsets below c: no text needed.

    From zero, for a root above all, to one, for all with nothing below. Seco, Veale and Hayes, An
    intrinsic information content metric for semantic similarity in WordNet, ECAI 2004.

    >>> intrinsic(np.array([3, 1, 0, 0]))
    array([0. , 0.5, 1. , 1. ])
    """
    n = max(len(hyponyms), 2)
    return np.asarray(1 - np.log(hyponyms + 1) / np.log(n))
