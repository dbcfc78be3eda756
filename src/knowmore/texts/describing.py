"""How the texts of a model become vectors: settled by the first ones, and kept with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.texts.reading import unusable
from knowmore.texts.vectors import TextVectors
from knowmore.texts.words import WORDLLAMA, is_installed, words_digest

# Increase it when the same settings give other numbers.
VERSION = 1
# Texts that are described between two reports.
_AT_ONCE = 256


@final
@dataclass(frozen=True, eq=False)
class TextDescriber:
    """Turns texts into vectors.

    model : of `TextVectors`, None or "wordllama"
    letters : columns in which runs of letters are counted
    """

    model: str | None = None
    letters: int = 1024
    _steps: TextVectors = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_steps", TextVectors(self.model, self.letters))

    @classmethod
    def usual(cls) -> TextDescriber:
        """By letters, and by words if these are installed."""
        return cls(WORDLLAMA if is_installed() else None)

    @classmethod
    def stored(cls, note: Mapping[str, Any]) -> TextDescriber:
        """As a note says that a model keeps; checks that vectors will be the same."""
        model, letters = note.get("model"), note.get("letters")
        if model not in (None, WORDLLAMA) or not isinstance(letters, int):
            raise InvalidInput(
                f"The model has vectors of texts by {model!r}, which this version of knowmore does "
                f"not know. Install the version that the model was made with."
            )
        described = cls(model, letters)
        mine = described.about
        changed = [name for name in ("version", "digest") if mine[name] != note.get(name)]
        if changed:
            what = "knowmore" if changed[0] == "version" else str(model)
            raise InvalidInput(
                f"This version of {what} makes other vectors of texts than the model has learnt "
                f"({changed[0]} {note.get(changed[0])}, here {mine[changed[0]]}). Install the "
                f"version of {what} that the model was made with."
            )
        return described

    @property
    def about(self) -> dict[str, Any]:
        """Everything that the vectors depend on."""
        digest = None if self.model is None else words_digest()
        return {
            "version": VERSION,
            "model": self.model,
            "digest": digest,
            "letters": self.letters,
        }

    def kept(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The note that a model keeps of it, and no arrays: see `stored`."""
        return self.about, {}

    def vectors(
        self, texts: Sequence[Any], progress: Callable[[int, int], None] | None = None
    ) -> list[Array | str]:
        """The vector of each text, or the reason why it has none."""
        found: list[Array | str] = [unusable(text) or "" for text in texts]
        good = [i for i, why in enumerate(found) if why == ""]
        for begin in range(0, len(good), _AT_ONCE):
            rows = good[begin : begin + _AT_ONCE]
            for i, vector in zip(
                rows, self._steps.transform([texts[i] for i in rows]), strict=True
            ):
                found[i] = vector
            if progress is not None:
                progress(begin + len(rows), len(good))
        return found
