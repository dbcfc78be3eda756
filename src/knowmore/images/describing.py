"""How the pictures of a model become vectors: settled by the first ones, and kept with it.

The kind of features, their settings and the visual words are in the model's file, so that later
pictures are described in the same way, wherever the file goes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.images import extraction, storage
from knowmore.images.codebooks import Codebook, ForestCodebook, KMeansCodebook, codebook_in

DEFAULT_SIZE = 200
_NOT_TOLD = (
    "The table does not say how its features were made from pictures, as `knowmore features` does"
)
# Where the arrays of a codebook are kept.
WORDS = "words/"
# Names of what is kept of a codebook.
_CODEBOOKS: dict[str, type[Codebook]] = {"k-means": KMeansCodebook, "trees": ForestCodebook}


@final
@dataclass(frozen=True, eq=False)
class PictureDescriber:
    """Turns pictures into vectors.

    kind : of the features
    longest : pictures are reduced to this longest side
    codebook : the visual words, if the kind has any
    """

    kind: Any
    longest: int = storage.LONGEST
    codebook: Codebook | None = None

    @classmethod
    def learnt(
        cls, kind: Any, pictures: Sequence[Any], words: int, progress: Callable[[int, int], None]
    ) -> PictureDescriber:
        """With words learnt from a sample of these pictures, if the kind has words."""
        if kind not in extraction.WORDED:
            return cls(kind)
        found = extraction.learn_codebook(
            pictures, size=words, sift=extraction.local_of(kind), progress=progress
        )
        return cls(kind, codebook=found)

    @classmethod
    def stored(cls, note: Mapping[str, Any], arrays: Mapping[str, Array]) -> PictureDescriber:
        """As a note and arrays say that a model keeps."""
        about = note["about"]
        codebook = None
        if about["kind"] in extraction.WORDED:
            if "words" not in note:
                raise InvalidInput(
                    "This model has learnt a table of features, but not its visual words, so it "
                    "cannot describe pictures. Learn the table again with its .words.npz beside it."
                )
            codebook = _CODEBOOKS[note["words"]](**note["parameters"]).holding(dict(arrays))
        described = cls(about["kind"], about["longest"], codebook)
        if difference := storage.unlike(described.about, about):
            raise InvalidInput(
                f"This version of knowmore describes pictures with {difference} than the model. "
                f"Install the version that the model was made with."
            )
        return described

    @classmethod
    def of_table(cls, about: Mapping[str, Any], words: Path) -> PictureDescriber | None:
        """The describer of a table of `knowmore features`; None if the words are not at hand."""
        about = plain_about(about)
        try:
            codebook = codebook_in(words) if about["kind"] in extraction.WORDED else None
        except InvalidInput:
            return None
        described = cls(about["kind"], about["longest"], codebook)
        return None if storage.unlike(described.about, about) else described

    @property
    def about(self) -> dict[str, Any]:
        """Everything that the features depend on, but for the libraries' versions."""
        steps = extraction.steps_of(self.kind, self.codebook)
        settings = json.loads(storage.settings_of(steps, self.longest))
        return plain_about({"kind": self.kind, **settings})

    def kept(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The note and the arrays that a model keeps of it: see `stored`."""
        if self.codebook is None:
            return {"about": self.about}, {}
        name = next(name for name, kind in _CODEBOOKS.items() if type(self.codebook) is kind)
        arrays = {f"{WORDS}{one}": array for one, array in vars(self.codebook.vocabulary_).items()}
        parameters = self.codebook.get_params()
        return {"about": self.about, "words": name, "parameters": parameters}, arrays

    def vectors(
        self, pictures: Sequence[Any], progress: Callable[[int, int], None] | None = None
    ) -> list[Array | str]:
        """The vector of each picture, or the reason why it has none."""
        steps = extraction.steps_of(self.kind, self.codebook)
        return extraction.described(pictures, steps, self.longest, progress)


def plain_about(about: Any) -> dict[str, Any]:
    """Facts that two ways to make features must share; raises InvalidInput if one is missing."""
    names = ("kind", "version", "longest", "steps")
    if not isinstance(about, Mapping) or not all(name in about for name in names):
        raise InvalidInput(f"{_NOT_TOLD}: {', '.join(names)}.")
    if about["kind"] not in extraction.KINDS or not isinstance(about["longest"], int):
        raise InvalidInput(f"{_NOT_TOLD}: its kind or its longest side is none that is known.")
    steps = about["steps"]
    pairs = isinstance(steps, Sequence) and all(
        isinstance(one, Sequence) and len(one) == 2 and isinstance(one[0], str) for one in steps
    )
    if not pairs:
        raise InvalidInput(f"{_NOT_TOLD}: its steps are not pairs of a name and settings.")
    return {name: about[name] for name in names}
