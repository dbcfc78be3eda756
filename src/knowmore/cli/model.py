"""A model as the commands see it: the store, and what they keep beside its examples."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import knowmore
from knowmore.cli.sources.records import Block, Source, Wanted
from knowmore.edits import Id
from knowmore.errors import InvalidInput, UnknownId
from knowmore.store.notes import describing, noted

if TYPE_CHECKING:
    from knowmore.arrays import Array
    from knowmore.cli.showing import Progress
    from knowmore.images.describing import Describer


@final
class Model:
    """An open model.

    store : the file
    """

    def __init__(self, store: Any) -> None:
        self.store = store

    # -- what is in it -----------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The short name of the kind of model."""
        return str(self.store.kind)

    @property
    def is_regression(self) -> bool:
        """Whether labels are values."""
        return self.kind.endswith("-regression")

    @property
    def notes(self) -> dict[str, Any]:
        """What the commands keep in the file."""
        return noted(self.store)

    def held(self) -> dict[Id, Any]:
        """Where each example came from, by its id."""
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
        """What a source must have to be used with this model."""
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
        """The names of the features: those of its first file, or of a table that Python gave."""
        from knowmore.columns import is_count
        from knowmore.estimators.shell import names_in

        noted = self.notes.get("columns")
        names = names_in(self.store.estimator) if noted is None else tuple(noted)
        return None if names is None or is_count(names) else tuple(map(str, names))

    def ids(self, words: Sequence[str], *, undone: bool = False) -> list[Id]:
        """The ids of examples that words name; a word may stand for a whole number.

        undone : whether those of examples that were undone count, too
        """
        held = self.store.forgettable() if undone else set(self.store.ids_.tolist())
        found = [same_id(word, held) for word in words]
        unknown = [one for one in found if one not in held]
        if unknown:
            raise UnknownId(
                f"The model has no example {unknown[0]!r}. `knowmore export MODEL --table FILE` "
                f"lists all ids."
            )
        return list(dict.fromkeys(found))

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
        """Labels (k,) of the type of those held; texts stand for numbers where needed."""
        from knowmore.cli.labels import is_numeral, typed

        held = self._label_type
        numerals = held is str and all(map(is_numeral, self.store.status().classes))
        return typed(given, places, held, numerals=numerals)

    @property
    def _label_type(self) -> type | None:
        if self.is_regression:
            return float
        if not len(self.store):
            return None
        (first,) = self.store.records(self.store.ids_[:1])
        return type(first.label)

    # -- pictures ----------------------------------------------------------------------------

    @cached_property
    def describer(self) -> Describer | None:
        """What turns pictures into vectors, if this is a model of pictures."""
        note = self.notes.get("pictures")
        if note is None:
            return None
        from knowmore.images.describing import WORDS, Describer

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
            from knowmore.images.describing import plain_about
            from knowmore.images.storage import unlike

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
        self, source: Source, block: Block, progress: Progress | None = None
    ) -> tuple[Array | None, list[int]]:
        """The numbers (k, d) of a block, and which of its records they are.

        Pictures that cannot be read and rows with gaps are left out, and noted in `source.skipped`.
        """
        import numpy as np

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

    def one_row(self, source: Source, block: Block) -> Array:
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
def opened(path: Path) -> Iterator[Model]:
    """The model in a file."""
    with knowmore.open(path) as store:
        yield Model(store)


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
