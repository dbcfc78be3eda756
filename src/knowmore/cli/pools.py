"""Records without labels, compared with what a model knows: `knowmore suggest` and `novel`."""

from __future__ import annotations

from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.cli.left_out import GAUSSIAN, fitted, rows_of
from knowmore.cli.model import Model, same_id
from knowmore.cli.sources import Source, open_source
from knowmore.edits import Id
from knowmore.errors import InvalidInput
from knowmore.insight.novelty import novelty
from knowmore.insight.suggest import suggest


def suggestions(
    model: Model, word: str, id_: str | None, count: int, criterion: str | None
) -> tuple[list[list[Any]], Source]:
    """The most useful records of a pool: id, value, reason. Those that are held are no news."""
    estimator = fitted(model, GAUSSIAN)
    ids, X, source = _pool(model, word, id_)
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
    ids, X, source = _pool(model, word, id_)
    found = novelty(estimator, X, method, reference=rows_of(model, estimator) or None)
    threshold = found.threshold(1 - rate)
    order = np.argsort(-found.values, kind="stable").tolist()
    values = found.values.tolist()
    return [[ids[i], values[i], threshold, values[i] > threshold] for i in order], source


def _pool(model: Model, word: str, id_: str | None) -> tuple[list[Id], Array, Source]:
    """All records of a source that can be read: their ids, or numbers, and their rows (u, d)."""
    source = open_source(word, model.wanted(None, id_, labelled=False))
    model.check(source)
    ids: list[Id] = []
    rows: list[Array] = []
    done = 0
    for block in source.blocks():
        X, kept = model.rows(source, block)
        names: Any = range(done, done + len(block)) if block.ids is None else block.ids
        done += len(block)
        if X is not None:
            ids += [names[i] for i in kept]
            rows.append(X)
    if not rows:
        name, why = next(iter(source.skipped.items()))
        raise InvalidInput(f"Nothing in {word!r} can be used. {name!r} {why}")
    return ids, np.concatenate(rows), source
