"""Records without labels, compared with what a model knows: `suggest`, `novel`, `studio --pool`."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from knowmore.arrays import Array
from knowmore.cli.left_out import GAUSSIAN, fitted, rows_of
from knowmore.cli.model import Model, same_id
from knowmore.cli.sources import Source, open_source
from knowmore.cli.sources.csvs import Sheet, csv_source
from knowmore.cli.sources.records import content_id
from knowmore.edits import Id
from knowmore.errors import InvalidInput
from knowmore.insight.novelty import novelty
from knowmore.insight.suggest import suggest
from knowmore.store import Store
from knowmore.studio.pool import Pool


def suggestions(
    model: Model, word: str, id_: str | None, count: int, criterion: str | None
) -> tuple[list[list[Any]], Source]:
    """The most useful records of a pool: id, value, reason. Those that are held are no news."""
    estimator = fitted(model, GAUSSIAN)
    source = open_source(word, model.wanted(None, id_, labelled=False))
    ids, X = _pool(model, source)
    held = model.held()
    new = [i for i, one in enumerate(ids) if same_id(one, held) not in held]
    if not new:
        raise InvalidInput(
            f"The model holds all records of {word!r} already: there is nothing new."
        )
    found = suggest(estimator, X[new], min(count, len(new)), criterion, random_state=0)
    values = found.values.tolist()
    picked = [ids[new[i]] for i in found.indices.tolist()]
    return [list(row) for row in zip(picked, values, found.reasons, strict=True)], source


def novelties(
    model: Model, word: str, id_: str | None, rate: float, method: str | None
) -> tuple[list[list[Any]], Source]:
    """Every record: id, novelty, the threshold, and whether it is above; the most unlike first."""
    estimator = fitted(model, GAUSSIAN)
    if model.is_regression:
        method = None
    source = open_source(word, model.wanted(None, id_, labelled=False))
    ids, X = _pool(model, source)
    found = novelty(estimator, X, method, reference=rows_of(model, estimator) or None)
    threshold = found.threshold(1 - rate)
    order = np.argsort(-found.values, kind="stable").tolist()
    values = found.values.tolist()
    return [[ids[i], values[i], threshold, values[i] > threshold] for i in order], source


def pool_for(store: Store, word: str, text: str | None = None) -> Pool:
    """A source without labels for the questions of a studio; of a CSV table the text may be given.

    Rows without ids go by their contents, so that those which are answered are known again.
    """
    model = Model(store)
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
    return Pool(name, tuple(rows), X, source.columns, pictures, skipped)


def _pool(model: Model, source: Source, *, numbered: bool = True) -> tuple[list[Id], Array]:
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
