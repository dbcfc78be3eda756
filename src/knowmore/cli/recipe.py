"""What `knowmore features` is asked for, and how the features are then made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowmore.errors import InvalidInput
from knowmore.files import check_writable
from knowmore.images import ForestCodebook, KMeansCodebook
from knowmore.images.codebooks import Codebook
from knowmore.images.extraction import LONGEST, Kind, canonical, settings_of, steps_of
from knowmore.images.tables import check_form, made_with, unlike

KIND: Kind = "sift-pyramid"
WORDS = 200
_WORDED = ("sift-pyramid", "bow")


@dataclass(frozen=True)
class Recipe:
    """How features are made: their kind, the longest side of a picture, and words to be loaded.

    `like` is a table whose features they must be comparable with.
    """

    kind: Kind
    longest: int
    codebook: Path | None
    like: Path | None

    @classmethod
    def of_table(cls, like: Path, codebook: Path | None) -> Recipe:
        """As the features of another table were made, with the words that lie beside it."""
        about = made_with(like)
        if about["kind"] in _WORDED and codebook is None:
            codebook = beside(like)
            if not codebook.is_file():
                raise InvalidInput(
                    f"The visual words of {str(like)!r} are not beside it, in {str(codebook)!r}. "
                    f"Say where they are: --codebook."
                )
        return cls(about["kind"], about["longest"], codebook, like)

    @property
    def has_words(self) -> bool:
        """Does this kind count visual words?"""
        return self.kind in _WORDED

    def steps(self, codebook: Codebook | None) -> tuple[tuple[Any, ...], str]:
        """The transformers, and what the table is to say of them."""
        steps = steps_of(self.kind, codebook)
        about = {"kind": self.kind, **json.loads(settings_of(steps, self.longest))}
        difference = None if self.like is None else unlike(about, made_with(self.like))
        if difference:
            raise InvalidInput(
                f"Features like those of {str(self.like)!r} cannot be made: they would have "
                f"{difference}. Name the words it was made with: --codebook."
            )
        return steps, canonical(about)


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line; None where nothing was said."""

    source: Path
    out: Path
    kind: Kind | None = None
    words: int | None = None
    codebook: Path | None = None
    save_codebook: Path | None = None
    like: Path | None = None
    longest: int | None = None
    seed: int = 0
    jobs: int = -1
    cache: Path | None = None
    no_cache: bool = False

    @property
    def keeps(self) -> Path | None:
        """Where the words are kept. Beside the table, unless they were named: they stay there."""
        return self.save_codebook or (beside(self.out) if self.codebook is None else None)

    def recipe(self) -> Recipe:
        """How to do it; what cannot work is said before the work, not after it."""
        check_form(self.out)
        check_writable(self.out)
        self._check_options()
        if self.like is not None:
            recipe = Recipe.of_table(self.like, self.codebook)
        else:
            recipe = Recipe(self.kind or KIND, self.longest or LONGEST, self.codebook, None)
        if recipe.has_words:
            self._check_places()
        else:
            self._check_wordless(recipe.kind)
        return recipe

    def _check_options(self) -> None:
        if self.words is not None and self.codebook is not None:
            raise InvalidInput(
                f"--words {self.words} asks for new visual words, but --codebook "
                f"{str(self.codebook)!r} brings its own. Leave one of them out."
            )
        settled = {"--kind": self.kind, "--words": self.words, "--longest": self.longest}
        if self.like is not None and (given := _given(settled)):
            raise InvalidInput(
                f"--like {str(self.like)!r} settles how the features are made. Leave {given} out."
            )

    def _check_wordless(self, kind: Kind) -> None:
        places = {"--codebook": self.codebook, "--save-codebook": self.save_codebook}
        if given := _given({"--words": self.words, **places}):
            raise InvalidInput(
                f"--kind {kind} has no visual words. Leave {given} out, or choose "
                f"{' or '.join(_WORDED)}."
            )

    def _check_places(self) -> None:
        for path in filter(None, (self.codebook, self.keeps)):
            if path.resolve() == self.out.resolve():
                raise InvalidInput(
                    f"{str(path)!r} is to be both the table and the codebook, and would hold only "
                    f"the table. Name two files."
                )
        if self.keeps is not None:
            check_writable(self.keeps)


def beside(table: Path) -> Path:
    """Where the visual words of a table are kept."""
    return table.with_suffix(".words.npz")


def loaded(path: Path) -> Codebook:
    """The codebook in a file, of whichever sort."""
    try:
        return KMeansCodebook.load(path)
    except InvalidInput as error:
        try:
            return ForestCodebook.load(path)
        except InvalidInput:
            raise error from None


def check_kept(codebook: Codebook, place: Path, table: Path) -> None:
    """Complain if there are other words at a place that nobody named."""
    if not place.exists():
        return
    try:
        same = settings_of([loaded(place)]) == settings_of([codebook])
    except InvalidInput:
        same = False
    if not same:
        raise InvalidInput(
            f"{str(place)!r} holds other visual words, or something else. Whatever has learnt from "
            f"{str(table)!r} needs its words: only features in the same words can be compared. To "
            f"use those that are there: --codebook {place}. To replace them: --save-codebook "
            f"{place}."
        )


def _given(options: dict[str, Any]) -> str:
    return " and ".join(name for name, value in options.items() if value is not None)
