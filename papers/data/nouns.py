"""The nouns of WordNet."""

from __future__ import annotations

from collections.abc import Mapping

from knowmore.errors import MissingData
from knowmore.semantics import WordNet
from papers.data.class_meanings import CLASS_MEANINGS
from papers.data.location import find


def wordnet(
    information: str | None = None, meanings: Mapping[str, str] = CLASS_MEANINGS
) -> WordNet:
    """WordNet, with the meanings of all classes: from the data folder, or as installed."""
    try:
        path = find("wordnet30_nouns.tar.xz")
    except MissingData:
        path = None
    return WordNet.load(path, information=information, meanings=meanings)
