"""Records without labels, compared with what a model knows: `suggest`, `novel`, `studio --pool`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast, final

import numpy as np

from knowmore import insight
from knowmore._base import Array, Id
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.workbench.asking import GAUSSIAN, estimator_of, kept_rows
from knowmore.workbench.model import OpenModel, same_id
from knowmore.workbench.sources import Source, open_source
from knowmore.workbench.sources.records import content_id
from knowmore.workbench.sources.texts import Sheet, csv_source


@final
@dataclass(frozen=True, eq=False)
class UnlabelledPool:
    """Rows X (u, d) without labels.

    name : of the table or folder
    ids : of the rows, as the model will know them
    columns : names of the features; None if the source has none
    pictures : the pictures that the rows describe, by their ids, if they do
    skipped : how many records could not be used
    """

    name: str
    ids: tuple[Id, ...]
    X: Array
    columns: tuple[str, ...] | None = None
    pictures: Mapping[Id, Any] = field(default_factory=dict)
    skipped: int = 0

    def without(self, gone: Collection[Id]) -> UnlabelledPool:
        """The pool without the rows of these ids."""
        stay = [i for i, one in enumerate(self.ids) if one not in gone]
        pictures = {one: picture for one, picture in self.pictures.items() if one not in gone}
        ids = tuple(self.ids[i] for i in stay)
        return replace(self, ids=ids, X=self.X[stay], pictures=pictures)

    def row(self, one: Id) -> Array:
        """The features of a row, (1, d)."""
        try:
            return self.X[[self.ids.index(one)]]
        except ValueError:
            raise InvalidInput(f"The pool has no row {one!r}.") from None


@final
@dataclass(frozen=True)
class Suggested:
    """A record of a pool that is worth a label.

    value : what the criterion says of the record when it is chosen
    """

    id: Id
    value: float
    reason: str


@final
@dataclass(frozen=True)
class NovelRecord:
    """A record compared with what a model knows.

    unknown : whether the novelty is above the threshold
    """

    id: Id
    novelty: float
    threshold: float
    unknown: bool


def suggest(model: OpenModel, source: Source, count: int, criterion: str | None) -> list[Suggested]:
    """The most useful records of a source without labels; records already held are skipped."""
    estimator = estimator_of(model.store, GAUSSIAN)
    ids, X = _pool(model, source)
    held = set(model.store.ids_.tolist())
    new = [i for i, name in enumerate(ids) if same_id(name, held) not in held]
    if not new:
        raise InvalidInput(
            f"The model holds all records of {source.name!r} already: there is nothing new."
        )
    answer = insight.suggest(estimator, X[new], min(count, len(new)), criterion, random_state=0)
    columns = answer.indices.tolist(), answer.values.tolist(), answer.reasons
    return [
        Suggested(ids[new[i]], value, reason) for i, value, reason in zip(*columns, strict=True)
    ]


def novelty(model: OpenModel, source: Source, rate: float, method: str | None) -> list[NovelRecord]:
    """Every record of a source without labels, the most unlike what the model knows first."""
    estimator = estimator_of(model.store, GAUSSIAN)
    if model.predicts_values:
        method = None
    ids, X = _pool(model, source)
    rows = kept_rows(model.store, estimator)
    answer = insight.novelty(estimator, X, method, reference=rows or None)
    threshold = answer.threshold(1 - rate)
    order = np.argsort(-answer.values, kind="stable").tolist()
    values = answer.values.tolist()
    return [NovelRecord(ids[i], values[i], threshold, values[i] > threshold) for i in order]


def pool_for(store: Store, word: str, text: str | None = None) -> UnlabelledPool:
    """A source without labels for the questions of a studio; of a CSV table the text may be given.

    Rows without ids go by their contents, so that those which are answered are known again.
    """
    model = OpenModel(store)
    wanted = model.wanted(labelled=False, gaps=True)
    source = open_source(word, wanted) if text is None else csv_source(Sheet(word, text), wanted)
    if source.pictures and model.describer is None:
        raise InvalidInput("The model has learnt no pictures yet. Teach it some: knowmore learn.")
    ids, X = _pool(model, source, numbered=False)
    held = set(store.ids_.tolist())
    rows: dict[Id, int] = {}
    for row, one in enumerate(ids):
        rows.setdefault(same_id(one, held), row)
    name = model.origin_of(word) if text is None else word
    X, skipped = X[[*rows.values()]].astype(float), len(source.skipped)
    pictures: dict[Id, Any] = {}
    if source.pictures:
        shown = ((one.name, one) for block in source.blocks() for one in cast("Any", block.X))
        pictures = {one: picture for one, picture in shown if one in rows}
    return UnlabelledPool(name, tuple(rows), X, source.columns, pictures, skipped)


def _pool(model: OpenModel, source: Source, *, numbered: bool = True) -> tuple[list[Id], Array]:
    """All records of a source that can be read: their ids, and their rows (u, d).

    numbered : records without ids go by their numbers; else by their contents
    """
    model.check(source)
    ids: list[Id] = []
    rows: list[Array] = []
    done = 0
    for block in source.blocks():
        X, kept = model.rows(source, block)
        names: Any = block.ids
        if names is None:
            numbers = range(done, done + len(block))
            names = numbers if numbered else [content_id(one) for one in block.contents()]
        done += len(block)
        if X is not None:
            ids += [names[i] for i in kept]
            rows.append(X)
    if not rows:
        name, why = next(iter(source.skipped.items()))
        raise InvalidInput(f"Nothing in {source.name!r} can be used. {name!r} {why}")
    return ids, np.concatenate(rows)
