"""A store beside what people say and bring: labels, ids, columns, rows and pictures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from knowmore._base import Array, Id, is_count
from knowmore.errors import InvalidInput, UnknownId
from knowmore.estimators import names_in
from knowmore.store import Store
from knowmore.workbench.cells import replace_cells
from knowmore.workbench.describing import NOTES, Describer, shown, stored_describer, text_of, told
from knowmore.workbench.sources import (
    TEXT,
    Holds,
    RecordBlock,
    Source,
    Wanted,
    content_id,
    single_row,
)

# The notes that the first examples settle.
SETTLED = ("columns", "label", "id", "text", *NOTES.values())
# A label of a type, and labels of it.
_NAMES = {
    str: ("text", "text"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("a truth value", "true or false"),
}
_TRUTH = {"true": True, "false": False}
# What sources hold, in words.
_HOLDS = {"cells": "a table by the names of its columns"}

# Called with the share that is done and the name of the next step.
Progress = Callable[[float, str], None]


# -- what is in a model ----------------------------------------------------------------------


def predicts_values(store: Store) -> bool:
    """Whether the labels of a model are values."""
    return store.kind.endswith("-regression")


def noted(store: Store) -> dict[str, Any]:
    """The notes of a file that count.

    What the first examples settled counts for nothing while none is left, but supports stay, and so
    does a source.
    """
    void = () if len(store) or store.kind in ("one-shot", "n-plus-one") else SETTLED
    return {name: one for name, one in store.notes.items() if one is not None and name not in void}


def describer_of(store: Store) -> Describer | None:
    """The describer that turns records into vectors; None for a model of numbers."""
    return stored_describer(store, noted(store))


def learnt_kind(store: Store) -> Holds:
    """What the records of a model are: numbers, unless a describer was settled."""
    known = noted(store)
    return next((holds for holds, name in NOTES.items() if name in known), "numbers")


def describing(model: Path) -> str:
    """The command that describes new pictures as the model in this file does."""
    return f"knowmore features NEW -o new.npz --like {model}"


def origin_of(store: Store, source: str) -> str:
    """The name under which the examples of a source are held: its path from the model's folder.

    So folder and model can move together.
    """
    if source == "-":
        return source
    return Path(os.path.relpath(source, store.path.parent)).as_posix()


def check_same_features(store: Store, other: Store) -> None:
    """Raise InvalidInput if the features of the two files do not mean the same."""
    here, there = store.table, other.table
    if here is not None and there is not None and here.alike(there):
        return
    for name in ("columns", *NOTES.values()):
        if noted(store).get(name) != noted(other).get(name) and len(store):
            way = f"made from {name} in another way"
            what = "of other columns" if name == "columns" else way
            raise InvalidInput(
                f"The two models cannot be merged: features of {other.path.name} are {what}."
            )


# -- words of the command line ---------------------------------------------------------------


def wanted(
    store: Store,
    label: str | None = None,
    id_: str | None = None,
    *,
    labelled: bool = True,
    gaps: bool = False,
    text: str | None = None,
) -> Wanted:
    """The columns and labels that a source needs for a model; parameters are as of `Wanted`."""
    notes, table = noted(store), store.table
    if table is not None:
        roles = notes.get("label"), notes.get("id")
        return Wanted(
            label, id_, table.names, labelled, *roles, gaps, table, holds="cells", text=text
        )
    # The names come from the first file, or from a table given in Python.
    names = notes["columns"] if "columns" in notes else names_in(store.estimator)
    columns = None if names is None or is_count(names) else tuple(map(str, names))
    usual, holds = (notes.get("label"), notes.get("id")), learnt_kind(store) if len(store) else None
    usual_text = notes.get("text", TEXT) if "texts" in notes else None
    known = label, id_, columns, labelled, *usual, gaps
    return Wanted(*known, text=text, usual_text=usual_text, holds=holds)


def ids_named(
    store: Store, words: Sequence[str], *, undone: bool = False, aside: bool = False
) -> list[Id]:
    """The ids of examples that words name; a word may stand for a whole number.

    undone : whether examples whose learning was undone count, too
    aside : whether examples that were put aside count, too
    """
    held = store.forgettable() if undone else set(store.ids_.tolist())
    if aside:
        held |= {record.id for record in store.aside()}
    named = [same_id(word, held) for word in words]
    unknown = next((one for one in named if one not in held), None)
    if unknown is not None:
        near = meant(unknown, store.ids_.tolist())
        raise UnknownId(
            f"The model has no example {unknown!r}. `knowmore export MODEL --table FILE` "
            f"lists all ids.{near}"
        )
    return list(dict.fromkeys(named))


def same_id(one: Id, held: Any) -> Id:
    """The id that is held and reads the same: 7 for "7"; the id itself if there is none.

    >>> same_id("7", {7, "8"}), same_id(8, {7, "8"}), same_id("rose", {7})
    (7, '8', 'rose')
    """
    if one in held:
        return one
    other: Id = str(one)
    if isinstance(one, str):
        if not is_numeral(one):
            return one
        other = int(one)
    return other if other in held else one


def meant(word: Any, known: Iterable[Any]) -> str:
    """A question about the known word that is nearest, with a blank before it; "" if none is near.

    >>> meant("airplane", ["airplanes", "faces"]), meant("b.jpg", ["roses/b.jpg"]), meant("x", [])
    (' Did you mean airplanes?', ' Did you mean roses/b.jpg?', '')

    A file of the same name in another folder is nearer than a similar name.

    >>> meant("law/6.txt", ["law/16.txt", "food/6.txt"])
    ' Did you mean food/6.txt?'
    """
    text, texts = str(word), [str(one) for one in known]
    name = PurePosixPath(text).name
    found = [one for one in texts if name and PurePosixPath(one).name == name]
    # Of several of this name the one in a folder that is asked for.
    found = [one for one in found if one.endswith(f"/{text}")] or found
    found += get_close_matches(text, texts, 1)
    return f" Did you mean {found[0]}?" if found else ""


# -- labels ----------------------------------------------------------------------------------


def label_named(store: Store, word: str) -> Any:
    """The label that a word names, in the type of the model's labels."""
    if not word.strip():
        raise InvalidInput("The label is empty. Give a name.")
    if word != word.strip() and word not in store.status().classes:
        raise InvalidInput(f"The label {word!r} begins or ends with a space. Say {word.strip()!r}.")
    return labels_of(store, [word], ["the label"])[0]


def new_label(store: Store, label: Any) -> tuple[str, bool]:
    """A note that a label is a new class, or "", and whether a known class has a similar name."""
    classes = set(store.examples.labels.tolist())
    if predicts_values(store) or label in classes:
        return "", False
    near = meant(label, classes)
    return f"{label} is a new class.{near}", bool(near)


def labels_of(store: Store, given: Sequence[Any], places: Sequence[str]) -> Array:
    """Labels (k,) in the type of the model's labels; texts stand for numbers where needed."""
    held: type | None = float if predicts_values(store) else None
    if held is None and len(store):
        (first,) = store.records(store.ids_[:1])
        held = type(first.label)
    # Counting the classes takes long.
    whole = held is str and int in map(type, given)
    numerals = whole and all(map(is_numeral, store.status().classes))
    return typed(given, places, held, numerals=numerals)


def typed(
    given: Sequence[Any], places: Sequence[str], held: type | None, *, numerals: bool = False
) -> Array:
    """Labels (k,) of the type that is held, or of the type of the first.

    Files of text know no types: there a text stands for the number or truth value it reads as.

    numerals : whether all texts that are held are whole numbers, so that these may stand for texts
    places : where each was found, for errors
    """
    wanted = type(given[0]) if held is None else held
    labels = []
    for one, place in zip(given, places, strict=True):
        try:
            labels.append(_converted(str(one) if numerals and type(one) is int else one, wanted))
        except ValueError:
            whose = f"in {places[0]}" if held is None else "in the model"
            raise InvalidInput(
                f"The label {one!r} in {place} is {_NAMES[type(one)][0]}, but labels {whose} "
                f"are {_NAMES[wanted][1]}. Give all labels the same type."
            ) from None
    return np.array(labels)


def _converted(one: Any, wanted: type) -> Any:
    """The label in this type; raises ValueError if it has another."""
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
    if not (isinstance(text, str) and text.removeprefix("-").isdecimal()):
        return False
    try:
        return str(int(text)) == text
    except ValueError:
        # Python converts no text of thousands of digits.
        return False


# -- rows and pictures -----------------------------------------------------------------------


def check_source(store: Store, source: Source) -> None:
    """Raise InvalidInput if the features of a source are not what the model knows."""
    known = noted(store)
    learnt = learnt_kind(store)
    # Vectors of pictures may be in a table.
    if learnt == "numbers" and source.holds == "cells" and source.columns == wanted(store).columns:
        # Numbers of columns that have names are cells, too.
        return
    if len(store) and source.holds != learnt and (source.described or learnt != "pictures"):
        raise InvalidInput(
            f"The model has learnt {_HOLDS.get(learnt, learnt)}, and {source.name!r} holds "
            f"{_HOLDS.get(source.holds, source.holds)}. Teach these to a model of their own."
        )
    note = known.get("pictures")
    if source.pictures or note is None:
        return
    from knowmore.images import plain_about, unlike

    way = describing(store.path)
    if source.about is None:
        raise InvalidInput(
            f"The model has learnt pictures, and {source.name!r} holds plain numbers. Teach these "
            f"to a model of their own, or describe pictures as this one does: {way}"
        )
    if difference := unlike(plain_about(source.about), note["about"]):
        raise InvalidInput(
            f"The features in {source.name!r} cannot be used with this model: they have "
            f"{difference}. Give the pictures themselves, or make the table again: {way}"
        )


def numbers_of(
    store: Store,
    source: Source,
    given: Any,
    places: Sequence[str],
    describer: Describer | None,
    progress: Progress = lambda share, step: None,
) -> tuple[Array, list[int]]:
    """The numbers (k, d) of records of a source, and which of the records they are.

    Records that cannot be described and rows with gaps are left out, and noted in
    `source.skipped`.

    given : rows of numbers; or other records, if there is a describer
    places : where each is in the source
    """
    if describer is None:
        X = np.asarray(given)
        known = store.n_features_in_ if len(store) else X.shape[1]
        if X.shape[1] != known:
            raise InvalidInput(
                f"{source.name!r} has {X.shape[1]} numbers in a row, but the model has learnt "
                f"{known}."
            )
        finite = np.isfinite(X)
        whole = finite.all(axis=1)
        for row in np.flatnonzero(~whole).tolist():
            gap = int(finite[row].argmin())
            column = gap if source.columns is None else repr(source.columns[gap])
            place = f"{source.name}, {places[row]}"
            source.skipped[place] = f"has no finite number in column {column}"
        return X[whole], np.flatnonzero(whole).tolist()
    what = source.holds
    vectors = describer.vectors(
        given, lambda done, total: progress(done / total, f"{done} of {total} {what} described")
    )
    source.skipped.update(
        (record.name if source.pictures else f"{source.name}, {place}", why)
        for record, place, why in zip(given, places, vectors, strict=True)
        if isinstance(why, str)
    )
    kept = [i for i, vector in enumerate(vectors) if not isinstance(vector, str)]
    return np.array([vectors[i] for i in kept]), kept


def usable_records(
    store: Store, sources: Sequence[Source], *, hashed: bool = False
) -> Iterator[tuple[list[Id], Array, list[str] | None]]:
    """The ids, the rows (k, d) and the texts of the records in each block of some sources.

    There are texts if the model learns texts. Records that cannot be used are noted in
    `Source.skipped`. Records without ids are numbered, through all sources.

    hashed : records without ids go by their contents instead
    """
    done = 0
    for source in sources:
        describer = describer_of(store) if source.described else None
        for block in source.blocks():
            X, kept = numbers_of(store, source, block.X, block.places, describer)
            ids: Sequence[Id] | None = block.ids
            if ids is None:
                numbers = range(done, done + len(block))
                ids = [content_id(one) for one in block.contents()] if hashed else numbers
            done += len(block)
            if kept:
                words = told(source, [block.X[i] for i in kept])
                yield [ids[i] for i in kept], X, words


def all_records(
    store: Store, source: Source, *, hashed: bool = False
) -> tuple[list[Id], Array, list[str] | None]:
    """The ids, rows and texts of all records of a source that can be used: see `usable_records`."""
    check_source(store, source)
    parts = [*usable_records(store, [source], hashed=hashed)]
    if not parts:
        name, why = next(iter(source.skipped.items()))
        raise InvalidInput(f"Nothing in {source.name!r} can be used. {name!r} {why}")
    words = None if parts[0][2] is None else [one for _, _, some in parts for one in some or ()]
    ids = [one for some, *_ in parts for one in some]
    return ids, np.concatenate([X for _, X, _ in parts]), words


def one_row(store: Store, word: str) -> Array:
    """The features (1, d) of the only record that a word names: JSON, a text, a picture, a file."""
    return described_row(store, *single_row(word, wanted(store, labelled=False)))


def replace_row(store: Store, one: Id, word: str, *, dry_run: bool = False) -> None:
    """Give an example the features of the only record that a word names.

    The source that it was learnt from has not changed: to learn that again does not bring the old
    features back.
    """
    source, block = single_row(word, wanted(store, labelled=False))
    X = described_row(store, source, block)
    (record,) = store.records([one])
    if dry_run:
        return
    if store.table is not None:
        cells: Any = block.X
        replace_cells(store, one, cells[0], record.content)
    else:
        store.replace([one], X, contents=[record.content], thumbnails=shown(source, [*block.X]))


def described_row(store: Store, source: Source, block: RecordBlock) -> Array:
    """The features (1, d) of the only record of a source."""
    check_source(store, source)
    describer = describer_of(store) if source.described else None
    X, kept = numbers_of(store, source, block.X, block.places, describer)
    if not kept:
        name, why = next(iter(source.skipped.items()))
        raise InvalidInput(f"{name!r} {why}")
    return X


def texts_of(store: Store, ids: Sequence[Id]) -> list[str | None] | None:
    """The texts of examples; None if the model has learnt no texts."""
    notes = noted(store)
    if "texts" not in notes:
        return None
    return [text_of(notes, record.thumbnail) for record in store.records([*ids])] if ids else []
