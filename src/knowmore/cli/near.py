"""What was likely meant by a word that the model does not know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from knowmore.cli.model import Model, same_id
from knowmore.edits import Id
from knowmore.errors import UnknownId


def meant(word: Any, known: Iterable[Any]) -> str:
    """A question about the known word that is nearest, with a blank before it; "" if none is near.

    >>> meant("airplane", ["airplanes", "faces"]), meant("b.jpg", ["roses/b.jpg"]), meant("x", [])
    (' Did you mean airplanes?', ' Did you mean roses/b.jpg?', '')
    """
    text, texts = str(word), [str(one) for one in known]
    found = [one for one in texts if text and one.endswith(f"/{text}")]
    found += get_close_matches(text, texts, 1)
    return f" Did you mean {found[0]}?" if found else ""


def ids_of(model: Model, words: Sequence[str], *, undone: bool = False) -> list[Id]:
    """As `Model.ids`; of an id that is unknown, the error names the nearest."""
    try:
        return model.ids(words, undone=undone)
    except UnknownId as error:
        held = set(model.store.ids_.tolist())
        strange = next(word for word in words if same_id(word, held) not in held)
        raise UnknownId(f"{error}{meant(strange, held)}") from None


class Newness(NamedTuple):
    """A note that a label is a new class, or "", and whether a known class has a similar name."""

    note: str = ""
    doubtful: bool = False


def newness(model: Model, label: Any) -> Newness:
    """Whether a label that somebody typed is a new class, and may be a slip."""
    classes = set(model.store.examples.labels.tolist())
    if model.is_regression or label in classes:
        return Newness()
    near = meant(label, classes)
    return Newness(f"{label} is a new class.{near}", bool(near))
