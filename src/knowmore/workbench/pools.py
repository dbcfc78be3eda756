"""Records without labels, compared with what a model knows: `suggest`, `novel`, `studio --pool`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np

from knowmore import insight
from knowmore._base import Array, Id
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.tables import Encoding
from knowmore.workbench.asking import GAUSSIAN, estimator_of
from knowmore.workbench.describing import novelty_method
from knowmore.workbench.model import (
    all_records,
    noted,
    origin_of,
    predicts_values,
    same_id,
    wanted,
)
from knowmore.workbench.sources import Source, open_source
from knowmore.workbench.sources.texts import csv_source


@final
@dataclass(frozen=True, eq=False)
class UnlabelledPool:
    """Rows X (u, d) without labels.

    name : of the table or folder
    ids : of the rows, as the model will know them
    columns : names of the features; None if the source has none
    pictures : the pictures that the rows describe, by their ids, if they do
    cells : the rows of cells that they are made from, by their ids; empty if they are numbers
    table : how cells became X
    skipped : how many records could not be used
    texts : the texts that the rows describe, by their ids, if they do
    """

    name: str
    ids: tuple[Id, ...]
    X: Array
    columns: tuple[str, ...] | None = None
    pictures: Mapping[Id, Any] = field(default_factory=dict)
    cells: Mapping[Id, Any] = field(default_factory=dict)
    table: Encoding | None = None
    skipped: int = 0
    texts: Mapping[Id, str] | None = None

    def without(self, gone: Collection[Id]) -> UnlabelledPool:
        """The pool without the rows of these ids."""
        stay = [i for i, one in enumerate(self.ids) if one not in gone]
        pictures = {one: picture for one, picture in self.pictures.items() if one not in gone}
        ids = tuple(self.ids[i] for i in stay)
        texts = None if self.texts is None else {one: self.texts[one] for one in ids}
        cells = {one: row for one, row in self.cells.items() if one not in gone}
        X = self.X[stay]
        return replace(self, ids=ids, X=X, pictures=pictures, cells=cells, texts=texts)

    def by(self, table: Encoding | None) -> UnlabelledPool:
        """The pool for a model that turns cells into vectors in this way."""
        if table is None or self.table is None or table == self.table:
            return self
        X = table.vectors([self.cells[one] for one in self.ids])
        return replace(self, X=X, table=table)

    def row(self, one: Id) -> Array:
        """The features of a row, (1, d)."""
        try:
            return self.X[[self.ids.index(one)]]
        except ValueError:
            raise InvalidInput(f"The pool has no row {one!r}.") from None


def unlabelled(store: Store, word: str, id_: str | None) -> Source:
    """A source without labels, for a model that can compare its records."""
    # A model of another kind is refused before the source is read.
    estimator_of(store, GAUSSIAN)
    return open_source(word, wanted(store, None, id_, labelled=False))


def suggest(
    store: Store, source: Source, count: int, criterion: str | None
) -> list[dict[str, Any]]:
    """The most useful records of a source without labels; records already held are skipped.

    Each is a dictionary; `value` is what the criterion says of the record when it is chosen.
    """
    estimator = estimator_of(store, GAUSSIAN)
    ids, X, texts = all_records(store, source)
    held = set(store.ids_.tolist())
    new = [i for i, name in enumerate(ids) if same_id(name, held) not in held]
    if not new:
        raise InvalidInput(
            f"The model holds all records of {source.name!r} already: there is nothing new."
        )
    answer = insight.suggest(estimator, X[new], min(count, len(new)), criterion, random_state=0)
    columns = answer.indices.tolist(), answer.values.tolist(), answer.reasons
    return [
        {"id": ids[new[i]], "value": value, "reason": reason} | _said(texts, new[i])
        for i, value, reason in zip(*columns, strict=True)
    ]


def novelty(store: Store, source: Source, rate: float, method: str | None) -> list[dict[str, Any]]:
    """Every record of a source without labels, the most unlike what the model knows first.

    Each is a dictionary; a record is unknown if its novelty is above the threshold.
    """
    estimator = estimator_of(store, GAUSSIAN, rows=True)
    ids, X, texts = all_records(store, source)
    chosen = None if predicts_values(store) else method or novelty_method(noted(store))
    answer = insight.novelty(estimator, X, chosen)
    threshold = answer.threshold(1 - rate)
    values = answer.values.tolist()
    return [
        {
            "id": ids[i],
            "novelty": values[i],
            "threshold": threshold,
            "unknown": values[i] > threshold,
        }
        | _said(texts, i)
        for i in np.argsort(-answer.values, kind="stable").tolist()
    ]


def _said(texts: list[str] | None, i: int) -> dict[str, str]:
    return {} if texts is None else {"text": texts[i]}


def pool_for(store: Store, word: str, text: str | None = None) -> UnlabelledPool:
    """A source without labels for the questions of a studio; of a CSV table the text may be given.

    Rows without ids go by their contents, so that those which are answered are known again.
    """
    needs = wanted(store, labelled=False, gaps=True)
    source = open_source(word, needs) if text is None else csv_source(Path(word), needs, text)
    if source.pictures and "pictures" not in noted(store):
        raise InvalidInput("The model has learnt no pictures yet. Teach it some: knowmore learn.")
    ids, X, texts = all_records(store, source, hashed=True)
    held = set(store.ids_.tolist())
    rows: dict[Id, int] = {}
    for row, one in enumerate(ids):
        rows.setdefault(same_id(one, held), row)
    name = origin_of(store, word) if text is None else word
    X, skipped = X[[*rows.values()]].astype(float), len(source.skipped)
    pictures: dict[Id, Any] = {}
    if source.pictures:
        shown = ((one.name, one) for block in source.blocks() for one in cast("Any", block.X))
        pictures = {one: picture for one, picture in shown if one in rows}
    cells: dict[Id, Any] = {}
    if source.table is not None:
        usable = (row for block in source.blocks() for row in block.X if not isinstance(row, str))
        cells = {one: row for one, row in zip(ids, usable, strict=True) if one in rows}
    words = None if texts is None else {one: texts[row] for one, row in rows.items()}
    return UnlabelledPool(
        name, tuple(rows), X, source.columns, pictures, cells, store.table, skipped, words
    )
