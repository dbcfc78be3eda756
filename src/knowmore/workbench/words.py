"""Which words of a text speak for and against a label.

The effect of a word is exact for the vectors in use: the score of the text, less its score without
that word wherever it stands. Effects do not add up: two words may say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput, MissingData, UnknownId
from knowmore.estimators import unnamed
from knowmore.store import Store
from knowmore.workbench.describing import Describer, text_of
from knowmore.workbench.model import (
    check_source,
    describer_of,
    label_named,
    meant,
    noted,
    same_id,
    wanted,
)
from knowmore.workbench.sources import single_row

# Each word takes another vector: a text of more different words is explained by these.
MOST: Final = 400
# Characters of all these texts together: a long text is explained by fewer words.
_CHARACTERS: Final = 4_000_000


@final
@dataclass(frozen=True)
class WordEffect:
    """What a word of a text does to a score.

    word : in lower case
    places : where it stands in the text, each its first character and the one behind it
    effect : the score less the score without it: above zero speaks for the label
    score_without : the score of the text without it
    """

    word: str
    places: tuple[tuple[int, int], ...]
    effect: float
    score_without: float

    def row(self) -> dict[str, Any]:
        """The word for a table: how often it is there, and what it does."""
        effects = {"effect": self.effect, "score_without": self.score_without}
        return {"word": self.word, "count": len(self.places), **effects}


@final
@dataclass(frozen=True)
class WordsExplanation:
    """The score of a label for a text, and the effects of its words, the strongest first.

    left_out : the number of different words that were not tried
    """

    label: Any
    score: float
    words: tuple[WordEffect, ...]
    left_out: int = 0


def explain_words(store: Store, what: str, label: str | None = None) -> WordsExplanation:
    """Which words of a text speak for a label, and which against it.

    what : the id of an example, or a text: see `one_row`
    label : the class to explain; None for the predicted one
    """
    if "texts" not in noted(store):
        raise InvalidInput("The model has learnt no texts, so it has no words to explain.")
    wanted_label = None if label is None else label_named(store, label)
    return words_of_text(store, text_named(store, what), wanted_label)


def text_named(store: Store, what: str) -> str:
    """The text of an example, or the text that somebody gives."""
    held = set(store.ids_.tolist())
    name = same_id(what, held)
    if name in held:
        (record,) = store.records([name])
        text = text_of(noted(store), record.thumbnail)
        if text is None:
            raise InvalidInput(
                f"The file keeps no text of {name!r}: its vector was given. Ask about the text."
            )
        return text
    try:
        source, block = single_row(what, wanted(store, labelled=False))
    except MissingData:
        raise UnknownId(
            f"{what!r} is neither the id of an example nor a file, and one word is no text. Give "
            f'one of these, or the text as JSON: {{"text": "..."}}.{meant(what, held)}'
        ) from None
    check_source(store, source)
    return str(block.X[0])


def words_of_text(
    store: Store, text: str, label: Any = None, estimator: Any = None
) -> WordsExplanation:
    """The effects of the words of a text.

    label : a class; None for the predicted one
    estimator : the one to ask; None for that of the file
    """
    from knowmore.texts import words_of

    describer = describer_of(store)
    assert describer is not None
    places = words_of(text)
    most = min(MOST, max(_CHARACTERS // max(len(text), 1), 1))
    tried = dict([*places.items()][:most])
    rest = [_without(text, spans) for spans in tried.values()]
    X = _vectors(describer, [text, *rest])
    own = unnamed(store.estimator) if estimator is None else estimator
    model = own.frozen_model()
    scores = model.mean(own.model_inputs(X))
    names = model.names.tolist()
    if label is not None and label not in names:
        raise InvalidInput(f"label={label!r} is not scored. Choose one of {names}.")
    c = int(scores[0].argmax()) if label is None else names.index(label)
    score, others = float(scores[0, c]), scores[1:, c].tolist()
    found = [
        WordEffect(word, tuple(spans), score - other, other)
        for (word, spans), other in zip(tried.items(), others, strict=True)
    ]
    found.sort(key=lambda one: -abs(one.effect))
    return WordsExplanation(names[c], score, tuple(found), len(places) - len(tried))


def _vectors(describer: Describer, texts: Sequence[str]) -> Array:
    """The vectors (n, d) of texts; zeros for one of which nothing is left."""
    found = describer.vectors(texts)
    if isinstance(found[0], str):
        raise InvalidInput(f"The text {found[0]}")
    nothing = np.zeros_like(found[0])
    return np.stack([nothing if isinstance(one, str) else one for one in found])


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text without some places of it."""
    parts, begin = [], 0
    for first, last in spans:
        parts.append(text[begin:first])
        begin = last
    return "".join([*parts, text[begin:]])
