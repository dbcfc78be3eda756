"""From what is in a file to what is held in memory, by the shortest way."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from knowmore._living import Living
from knowmore.edits import Add, Relabel, Remove
from knowmore.errors import KnowmoreError
from knowmore.examples import Examples, new_serials
from knowmore.kernels.rules import describe_difference
from knowmore.memory import check_free
from knowmore.models.forest import Forest
from knowmore.store import codec, kinds, sources
from knowmore.store.caches import FactorCache, read_sums
from knowmore.store.changing import next_id
from knowmore.store.codec import valued
from knowmore.store.journal import FORGETS, Journal, Numbers, Version
from knowmore.store.layout import File, damaged
from knowmore.store.work import Held, examples_of, live_index

# Rows that are summed at a time.
_BLOCK = 4096


def load(file: File, facts: dict[str, Any], before: Held | None, cache: FactorCache) -> Held:
    """All that is in the file, checked.

    before : what was held of an earlier state
    """
    with file.understood("settings"):
        kind, numbers = facts["kind"], Numbers(*facts["numbers"])
        if kind not in kinds.LIVING or not all(type(n) is int for n in numbers):
            raise ValueError(f"kind {kind}")
        if len(facts["numbers"]) != len(numbers):
            raise ValueError("counters are missing")
        estimator = kinds.unfitted(kind, facts["parameters"])
    file.all_rows("journal")
    file.all_rows("changes")
    versions = [Version(*row) for row in file.all_rows("examples")]
    with file.understood("examples"):
        live = sorted((one for one in versions if one.live), key=lambda one: one.vector)
        index = live_index(live)
    sources.attach(file, estimator, facts)
    if facts["state"] is not None:
        with file.understood("settings"):
            kinds.set_columns(estimator, facts["columns"])
        try:
            fitted = _fitted(file, estimator, facts, live, before, cache)
        except (KnowmoreError, MemoryError, sqlite3.Error):
            raise
        # Numbers that contradict each other raise anything.
        except Exception as error:
            raise damaged(file.path, "its settings and examples contradict each other") from error
        estimator = fitted
    return Held(file.stamp, estimator, facts, numbers, index)


def _fitted(
    file: File,
    estimator: Any,
    facts: dict[str, Any],
    live: list[Version],
    before: Held | None,
    cache: FactorCache,
) -> Any:
    """The estimator with these versions, which are in the order of their vectors."""
    if before is not None and (
        not before.fitted or before.facts["parameters"] != facts["parameters"]
    ):
        before = None
    if kinds.is_linear(facts["kind"]):
        return _summed(file, estimator, facts, live, before)
    if before is not None:
        followed = _followed(file, facts, live, before)
        if followed is not None:
            estimator._living = followed
            return estimator
    examples = examples_of(facts, live, {row[0]: row for row in file.all_rows("vectors")})
    value = None
    if not facts["kind"].startswith("forest") and len(examples.counted):
        numbers = np.array([one.vector for one in live], dtype=np.int64)
        value = cache.read(file, estimator, facts["state"], examples, numbers)
    estimator._living = value or kinds.living(estimator, facts["state"], examples)
    return estimator


def fresh(file: File, facts: dict[str, Any], versions: Sequence[Version]) -> tuple[Any, Examples]:
    """An estimator that is fitted to the live ones of these versions from scratch, and these.

    If `facts` have no state, the examples choose it.
    """
    live = sorted((one for one in versions if one.live), key=lambda one: one.vector)
    estimator = kinds.unfitted(facts["kind"], facts["parameters"])
    sources.attach(file, estimator, facts)
    kinds.set_columns(estimator, facts["columns"])
    examples = examples_of(facts, live, {row[0]: row for row in file.all_rows("vectors")})
    if facts["state"] is None:
        return kinds.chosen_by(estimator, examples), examples
    if kinds.is_linear(facts["kind"]):
        return _add_all(file, kinds.linear(estimator, facts["state"]), facts, live, 1), examples
    estimator._living = kinds.living(estimator, facts["state"], examples)
    return estimator, examples


# -- following an earlier state ------------------------------------------------------------------


def _followed(
    file: File, facts: dict[str, Any], live: list[Version], before: Held
) -> Living[Any] | Forest | None:
    """The fitted value of these versions from that of earlier ones; None if it must be anew."""
    value: Living[Any] | Forest = before.estimator._living
    state = facts["state"]
    if isinstance(value, Forest):
        return _edited(file, facts, live, before, value)
    # A one-shot model chooses its noise itself.
    if facts["kind"] != "one-shot" and state["noise"] != value.model.covariance.noise:
        return None
    examples = _joined(file, facts, live, before, value.examples)
    kernel, settled = valued(state["kernel"]), bool(state["settled"])
    if describe_difference(kernel, value.kernel) is not None:
        return Living.of(value.current.refit(kernel, examples.counted), examples, settled=settled)
    peak = max(value.peak, value.model.covariance.max_variance(examples.X))
    after = replace(value, examples=examples, settled=settled, peak=peak, reserve=[])
    _ = after.current
    return after


def _joined(
    file: File, facts: dict[str, Any], live: list[Version], before: Held, held: Examples
) -> Examples:
    """These versions as examples that share with those held what they can.

    Serial numbers must ascend. From the first version that is not held on, all get new ones.
    """
    places = {vector: place for place, (_, vector) in enumerate(before.index.values())}
    rows = [places.get(one.vector, -1) for one in live]
    missing = [one for one, row in zip(live, rows, strict=True) if row < 0]
    journal = Journal(file, before.numbers)
    new = examples_of(facts, missing, journal.vectors(one.vector for one in missing))
    at = np.array(rows, dtype=np.int64)
    old = at >= 0
    d = facts["columns"]["width"]
    X = np.empty((len(live), held.X.shape[1] if len(held) else d))
    X[old], X[~old] = held.X[at[old]], new.X
    side = np.empty((len(live), held.side.shape[1]))
    side[old] = held.side[at[old]]
    if missing:
        side[~old] = new.side
    first = len(live) if old.all() else int(old.argmin())
    serials = np.append(held.serials[at[:first]], new_serials(len(live) - first))
    labels = codec.LabelType(*facts["labels"]).read([one.label for one in live])
    weights = np.array([one.weight for one in live], dtype=float)
    ids = [codec.read_id(one.id) for one in live]
    following = next_id(Numbers(*facts["numbers"]).next_id, ids)
    return Examples.restored(ids, X, labels, weights, serials, following, side)


def _edited(
    file: File, facts: dict[str, Any], live: list[Version], before: Held, forest: Forest
) -> Forest | None:
    """The forest after what leaves and what comes at the end; None if something comes between."""
    state = facts["state"]
    kernel, settled = valued(state["kernel"]), bool(state["settled"])
    if settled != forest.settled or describe_difference(kernel, forest.kernel) is not None:
        return None
    held = {vector: (row, name) for name, (row, vector) in before.index.items()}
    last = max(held, default=0)
    coming = [one for one in live if one.vector not in held]
    if not settled or any(one.vector < last for one in coming):
        return None
    kept = {one.vector for one in live}
    if leaving := tuple(name for vector, (_, name) in held.items() if vector not in kept):
        forest = forest.apply(Remove(leaving))
    changed = [one for one in live if one.vector in held and held[one.vector][0] != one.row]
    if changed:
        labels = codec.LabelType(*facts["labels"]).read([one.label for one in changed])
        forest = forest.apply(Relabel(tuple(codec.read_id(v.id) for v in changed), labels))
    if coming:
        vectors = Journal(file, before.numbers).vectors(one.vector for one in coming)
        new = examples_of(facts, coming, vectors)
        forest = forest.apply(Add(new.X, new.labels, new.names, new.weights))
    ids = map(codec.read_id, (one.id for one in live))
    return replace(forest, next_id=next_id(Numbers(*facts["numbers"]).next_id, ids))


# -- linear models -------------------------------------------------------------------------------


def _summed(
    file: File, estimator: Any, facts: dict[str, Any], live: list[Version], before: Held | None
) -> Any:
    """The linear model of these versions: from sums that are known, or from all of them."""
    position = Numbers(*facts["numbers"]).position
    empty = kinds.linear(estimator, facts["state"])
    grid = empty.model_.sums.grid
    known = []
    if before is not None and before.estimator.model_.sums.grid == grid:
        known.append((before.numbers.position, before.estimator.model_.sums))
    if (stored := read_sums(file, grid)) is not None:
        known.append(stored)
    for begin, sums in known:
        made = kinds.linear(estimator, facts["state"], sums)
        if (after := _caught_up(file, made, facts, begin, position)) is not None:
            return after
    size = 16 * len(grid) ** 2
    check_free(size, f"The sums of {len(grid)} columns take", "Open it on a larger machine.")
    return _add_all(file, empty, facts, live, 1)


def _caught_up(file: File, made: Any, facts: dict[str, Any], begin: int, end: int) -> Any:
    """A linear model of one entry of the journal, as of another; None if the way is not known."""
    if begin == end:
        return made
    verbs = {row[0]: row[2] for row in file.rows("journal")}
    low, high = min(begin, end), max(begin, end)
    between = [number for number in verbs if low < number <= high]
    if (begin and begin not in verbs) or any(verbs[number] in FORGETS for number in between):
        return None
    journal = Journal(file, Numbers(*facts["numbers"]))
    net: dict[int, int] = {}
    for _, row, enters in journal.changes(low, high):
        sign = (1 if enters else -1) * (1 if end > begin else -1)
        net[row] = net.get(row, 0) + sign
    try:
        for sign in (1, -1):
            rows = [row for row, total in net.items() if total == sign]
            made = _add_all(file, made, facts, journal.versions(rows), sign)
    except codec.OtherLabels:
        # The file was empty in between.
        return None
    return made


def _add_all(
    file: File, made: Any, facts: dict[str, Any], versions: Sequence[Version], sign: int
) -> Any:
    """The linear model with these versions, or without them if `sign` is -1."""
    journal, after, rest = Journal(file, Numbers()), copy(made), iter(versions)
    sums = after.model_.sums
    while block := list(islice(rest, _BLOCK)):
        vectors = journal.vectors(one.vector for one in block)
        examples = examples_of(facts, block, vectors)
        parts = examples.X, examples.labels, examples.weights
        part = made._sums(made.model_, *parts)
        sums = sums + part if sign > 0 else sums - part
    after.model_ = after.model_.of(sums)
    return after
