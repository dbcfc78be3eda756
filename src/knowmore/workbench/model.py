"""A model as the commands see it: the store, and what they keep beside its examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

import knowmore
from knowmore._base import Array, Id
from knowmore.errors import InvalidInput, UnknownId
from knowmore.store import Store
from knowmore.workbench.sources.records import RecordBlock, Source, Wanted

if TYPE_CHECKING:
    from knowmore.images import Describer

# The notes that the first examples settle.
SETTLED = ("columns", "label", "id", "pictures")
_NAMES = {str: "text", int: "whole numbers", float: "numbers", bool: "true or false"}
_TRUTH = {"true": True, "false": False}

# Called with the share that is done and the name of the next step.
Progress = Callable[[float, str], None]


@final
class OpenModel:
    """An open model.

    store : the file
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    # -- what is in it -----------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The short name of the kind of model."""
        return str(self.store.kind)

    @property
    def predicts_values(self) -> bool:
        """Whether labels are values."""
        return predicts_values(self.store)

    @property
    def notes(self) -> dict[str, Any]:
        """The notes of the file that count."""
        return noted(self.store)

    def held(self) -> dict[Id, Any]:
        """The records of the examples, by id."""
        return {record.id: record for record in self.store.records()}

    def origin_of(self, source: str) -> str:
        """The name under which the examples of a source are held: its path from the model's folder.

        So folder and model can move together.
        """
        if source == "-":
            return source
        return Path(os.path.relpath(source, Path(self.store.path).parent)).as_posix()

    # -- words of the command line ------------------------------------------------------------

    def wanted(
        self,
        label: str | None = None,
        id_: str | None = None,
        *,
        labelled: bool = True,
        gaps: bool = False,
    ) -> Wanted:
        """The columns and labels that a source needs for this model."""
        notes = self.notes
        return Wanted(
            label,
            id_,
            self._columns,
            labelled,
            notes.get("label"),
            notes.get("id"),
            gaps,
        )

    @property
    def _columns(self) -> tuple[str, ...] | None:
        """Names of the features, from the first file or from a table given in Python."""
        from knowmore._base import is_count
        from knowmore.estimators import names_in

        noted = self.notes.get("columns")
        names = names_in(self.store.estimator) if noted is None else tuple(noted)
        return None if names is None or is_count(names) else tuple(map(str, names))

    def ids(self, words: Sequence[str], *, undone: bool = False) -> list[Id]:
        """The ids of examples that words name; a word may stand for a whole number.

        undone : whether those of examples that were undone count, too
        """
        held = self.store.forgettable() if undone else set(self.store.ids_.tolist())
        named = [same_id(word, held) for word in words]
        unknown = next((one for one in named if one not in held), None)
        if unknown is not None:
            near = meant(unknown, self.store.ids_.tolist())
            raise UnknownId(
                f"The model has no example {unknown!r}. `knowmore export MODEL --table FILE` "
                f"lists all ids.{near}"
            )
        return list(dict.fromkeys(named))

    def label(self, word: str) -> Any:
        """A label that a word names, of the type of the labels held."""
        if not word.strip():
            raise InvalidInput("The label is empty. Give a name.")
        if word != word.strip() and word not in self.store.status().classes:
            raise InvalidInput(
                f"The label {word!r} begins or ends with a space. Say {word.strip()!r}."
            )
        return self.labels([word], ["the label"])[0]

    def labels(self, given: Sequence[Any], places: Sequence[str]) -> Array:
        """Labels (k,) in the type of the model's labels; texts stand for numbers where needed."""
        held = self._label_type
        numerals = held is str and all(map(is_numeral, self.store.status().classes))
        return typed(given, places, held, numerals=numerals)

    @property
    def _label_type(self) -> type | None:
        if self.predicts_values:
            return float
        if not len(self.store):
            return None
        (first,) = self.store.records(self.store.ids_[:1])
        return type(first.label)

    # -- pictures ----------------------------------------------------------------------------

    @cached_property
    def describer(self) -> Describer | None:
        """The describer that turns pictures into vectors; None for a model of numbers."""
        note = self.notes.get("pictures")
        if note is None:
            return None
        from knowmore.images import WORDS, Describer

        return Describer.stored(note, self.store.arrays(WORDS))

    def check(self, source: Source) -> None:
        """Raise InvalidInput if the features of a source are not what the model knows."""
        note = self.notes.get("pictures")
        if source.pictures:
            if note is None and len(self.store):
                raise InvalidInput(
                    f"The model has learnt numbers, and {source.name!r} holds pictures. Teach "
                    f"these to a model of their own."
                )
            return
        if note is not None:
            from knowmore.images import plain_about, unlike

            way = describing(self.store.path)
            if source.about is None:
                raise InvalidInput(
                    f"The model has learnt pictures, and {source.name!r} holds plain numbers. "
                    f"Teach these to a model of their own, or describe pictures as this one does: "
                    f"{way}"
                )
            if difference := unlike(plain_about(source.about), note["about"]):
                raise InvalidInput(
                    f"The features in {source.name!r} cannot be used with this model: they have "
                    f"{difference}. Give the pictures themselves, or make the table again: {way}"
                )

    def rows(
        self, source: Source, block: RecordBlock, progress: Progress | None = None
    ) -> tuple[Array | None, list[int]]:
        """The numbers (k, d) of a block, and which of its records they are.

        Pictures that cannot be read and rows with gaps are left out, and noted in `source.skipped`.
        """
        if not source.pictures:
            X = np.asarray(block.X)
            self._check_width(source, X.shape[1])
            there = np.isfinite(X)
            whole = there.all(axis=1)
            for row in np.flatnonzero(~whole).tolist():
                gap = int(there[row].argmin())
                column = gap if source.columns is None else repr(source.columns[gap])
                place = f"{source.name}, {block.places[row]}"
                source.skipped[place] = f"has no finite number in column {column}"
            return (X[whole] if whole.any() else None), np.flatnonzero(whole).tolist()
        describer = self.describer
        assert describer is not None

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done / total, f"{done} of {total} pictures described")

        pictures: Any = block.X
        found = describer.vectors(pictures, report)
        for i, vector in enumerate(found):
            if isinstance(vector, str):
                source.skipped[pictures[i].name] = vector
        kept = [i for i, vector in enumerate(found) if not isinstance(vector, str)]
        return (np.stack([found[i] for i in kept]) if kept else None), kept

    def one_row(self, source: Source, block: RecordBlock) -> Array:
        """The numbers (1, d) of the only record of a source."""
        self.check(source)
        X, _ = self.rows(source, block)
        if X is None:
            name, why = next(iter(source.skipped.items()))
            raise InvalidInput(f"{name!r} {why}")
        return X

    def _check_width(self, source: Source, d: int) -> None:
        known = self.store.n_features_in_ if len(self.store) else d
        if d != known:
            raise InvalidInput(
                f"{source.name!r} has {d} numbers in a row, but the model has learnt {known}."
            )


@contextmanager
def opened(path: Path) -> Iterator[OpenModel]:
    """The model in a file."""
    with knowmore.open(path) as store:
        yield OpenModel(store)


def same_id(one: Id, held: Any) -> Id:
    """The id that is held and reads the same: 7 for "7"; the id itself if there is none.

    >>> same_id("7", {7, "8"}), same_id(8, {7, "8"}), same_id("rose", {7})
    (7, '8', 'rose')
    """
    if one in held:
        return one
    other: Id = str(one)
    if isinstance(one, str):
        if not one.removeprefix("-").isdecimal() or str(int(one)) != one:
            return one
        other = int(one)
    return other if other in held else one


def predicts_values(store: Store) -> bool:
    """Whether the labels of a model are values."""
    return str(store.kind).endswith("-regression")


def noted(store: Store) -> dict[str, Any]:
    """The notes of a file that count.

    What the first examples settled counts for nothing while none is left, but supports stay, and so
    does a source.
    """
    void = () if len(store) or store.kind in ("one-shot", "n-plus-one") else SETTLED
    return {name: one for name, one in store.notes.items() if one is not None and name not in void}


def describing(model: Path) -> str:
    """The command that describes new pictures as the model in this file does."""
    return f"knowmore features NEW -o new.npz --like {model}"


def check_same_features(store: Store, other: Store) -> None:
    """Raise InvalidInput if the features of the two files do not mean the same."""
    for name in ("columns", "pictures"):
        if noted(store).get(name) != noted(other).get(name) and len(store):
            way = "made from pictures in another way"
            what = "of other columns" if name == "columns" else way
            raise InvalidInput(
                f"The two models cannot be merged: features of {other.path.name} are {what}."
            )


def typed(
    given: Sequence[Any], places: Sequence[str], held: type | None, *, numerals: bool = False
) -> Array:
    """Labels (k,) of the type that is held, or of the type of the first.

    Files of text know no types: there a text stands for the number or truth value it reads as.

    numerals : whether all texts that are held are whole numbers, so that these may stand for texts
    places : where each was found, for errors
    """
    wanted = type(given[0]) if held is None else held
    found = []
    for one, place in zip(given, places, strict=True):
        try:
            found.append(_converted(str(one) if numerals and type(one) is int else one, wanted))
        except ValueError:
            whose = f"in {places[0]}" if held is None else "in the model"
            raise InvalidInput(
                f"The label {one!r} in {place} is {_type_name(one)}, but labels {whose} are "
                f"{_NAMES[wanted]}. Give all labels the same type."
            ) from None
    return np.array(found)


def _converted(one: Any, wanted: type) -> Any:
    """The label in that type; raises ValueError if it has another."""
    value: Any
    if type(one) is wanted:
        value = one
    elif wanted is float and type(one) is int:
        value = float(one)
    elif not isinstance(one, str):
        raise ValueError
    elif wanted is bool:
        value = _TRUTH.get(one.lower())
    else:
        value = wanted(one)
    if value is None or (wanted is float and not np.isfinite(value)):
        raise ValueError
    return value


def is_numeral(text: Any) -> bool:
    """Whether a label is a whole number as it would be written.

    >>> is_numeral("-7"), is_numeral("007"), is_numeral("rose"), is_numeral(7)
    (True, False, False, False)
    """
    return (
        isinstance(text, str)
        and text.isascii()
        and text.removeprefix("-").isdecimal()
        and (str(int(text)) == text)
    )


def _type_name(one: Any) -> str:
    return {str: "text", int: "a whole number", float: "a number", bool: "a truth value"}[type(one)]


def meant(word: Any, known: Iterable[Any]) -> str:
    """A question about the known word that is nearest, with a blank before it; "" if none is near.

    >>> meant("airplane", ["airplanes", "faces"]), meant("b.jpg", ["roses/b.jpg"]), meant("x", [])
    (' Did you mean airplanes?', ' Did you mean roses/b.jpg?', '')
    """
    text, texts = str(word), [str(one) for one in known]
    found = [one for one in texts if text and one.endswith(f"/{text}")]
    found += get_close_matches(text, texts, 1)
    return f" Did you mean {found[0]}?" if found else ""


@final
@dataclass(frozen=True)
class NewLabel:
    """A note that a label is a new class, or "", and whether a known class has a similar name."""

    note: str = ""
    doubtful: bool = False


def new_label(store: Store, label: Any) -> NewLabel:
    """Whether a label that somebody typed is a new class, and may be a slip."""
    classes = set(store.examples.labels.tolist())
    if predicts_values(store) or label in classes:
        return NewLabel()
    near = meant(label, classes)
    return NewLabel(f"{label} is a new class.{near}", bool(near))
