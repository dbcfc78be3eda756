"""The state in memory of a file: made from nothing, from caches, or from an earlier state.

Some estimators need more than examples: support tasks, or a source, the model that they start from.

Support tasks are arrays in the file. A source is a file of its own, named by its path from the
folder of this one, so that both can move together, and by the digest of the model in it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from knowmore._base import Array, a_type, check_free
from knowmore._living import Living
from knowmore.edits import Add, Relabel, Remove
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError
from knowmore.examples import Examples, new_serials
from knowmore.kernels import describe_difference
from knowmore.models import Forest, max_variance
from knowmore.store import codec, kinds
from knowmore.store.cache import FactorCache, read_arrays, read_sums, write_arrays
from knowmore.store.changing import next_id
from knowmore.store.codec import bytes_of, id_text, label_texts, plain, valued
from knowmore.store.file import File, damaged, make
from knowmore.store.journal import FORGETS, Journal, Numbers, Version
from knowmore.store.work import HeldState, examples_of, live_index, split
from knowmore.transfer import NPlusOneClassifier, OneShotClassifier, Scores

# -- what an estimator needs besides its examples ------------------------------------------------


SUPPORT = "support/"
# The files of estimators that were loaded or saved.
_homes: WeakKeyDictionary[Any, Path] = WeakKeyDictionary()
# The files whose sources are being loaded.
_loading: ContextVar[tuple[Path, ...]] = ContextVar("_loading", default=())


def note_home(estimator: Any, path: Path) -> Any:
    """Remember that the file at `path` holds an estimator, and return the estimator."""
    _homes[estimator] = path
    return estimator


def facts_of(estimator: Any, path: Path) -> dict[str, Any]:
    """The facts in a file at `path` about the supports or the source of an estimator."""
    can = kinds.capabilities(kinds.kind_of(estimator))
    if can.has_source:
        return {"source": _noted(estimator, path)}
    if can.has_supports:
        return {"supports": list(_supports(estimator))}
    return {}


def arrays_of(estimator: Any) -> dict[str, Array]:
    """The supports of an estimator as arrays."""
    if not kinds.capabilities(kinds.kind_of(estimator)).has_supports:
        return {}
    return {f"{SUPPORT}{i}": X for i, X in enumerate(_supports(estimator).values())}


def _supports(estimator: OneShotClassifier) -> dict[str, Array]:
    if kinds.is_fitted(estimator):
        return estimator.supports_
    return {name: np.asarray(X, dtype=float) for name, X in (estimator.supports or {}).items()}


def attach(file: File, estimator: Any, facts: dict[str, Any]) -> None:
    """Give an estimator the supports or the source that its file notes."""
    can = kinds.capabilities(facts["kind"])
    if can.has_supports:
        arrays = read_arrays(file, facts.get("arrays", {}))
        with file.understood("supports"):
            names = facts["supports"]
            estimator.supports = {
                str(name): arrays[f"{SUPPORT}{i}"] for i, name in enumerate(names)
            }
    if can.has_source:
        estimator.source = _found(file, facts)
        estimator.source_ = copy(estimator.source)


def _noted(estimator: NPlusOneClassifier, path: Path) -> dict[str, Any]:
    source = estimator.source
    if isinstance(source, Scores):
        if source.of is not None:
            raise InvalidInput(
                "The source is a function, which cannot be written to a file. Give its scores as "
                "columns beside the features: Scores(classes)."
            )
        return {"classes": plain(source.classes_)}
    home = getattr(source, "path", None) or _homes.get(source)
    if home is None:
        raise InvalidInput(
            "The source of this classifier is in no file, so a file cannot name it. Save it first: "
            "source.save('known.km'), and give the very estimator that was saved or loaded."
        )
    relative = Path(os.path.relpath(home, path.parent)).as_posix()
    held = getattr(source, "estimator", source)
    return {"path": relative, "digest": digest(getattr(estimator, "source_", held))}


def _found(file: File, facts: dict[str, Any]) -> Any:
    with file.understood("source"):
        noted = facts["source"]
        if "classes" in noted:
            return Scores(valued(noted["classes"]))
        path, wanted = (file.path.parent / noted["path"]).resolve(), str(noted["digest"])
    from knowmore.store.saving import load

    chain = (*_loading.get(), file.path)
    if path in chain:
        raise InvalidInput(
            f"The model in {str(file.path)!r} starts from that in {str(path)!r}, which leads back "
            f"to it. Restore the file of the model that it started from."
        )
    token = _loading.set(chain)
    try:
        source = load(path)
    except OSError as error:
        raise InvalidInput(
            f"The model in {str(file.path)!r} starts from that in {str(path)!r}, which is not "
            f"there. Put that file back in its place."
        ) from error
    finally:
        _loading.reset(token)
    if digest(source) != wanted:
        raise InvalidInput(
            f"The model in {str(file.path)!r} starts from that in {str(path)!r}, which has been "
            f"changed since. Restore that file as it was, or learn these examples anew."
        )
    return source


def digest(estimator: Any) -> str:
    """A digest of what an estimator has learnt: settings and examples, in hexadecimal."""
    kind = kinds.kind_of(estimator)
    if kind not in kinds.LIVING:
        raise damaged(Path(kind), "a source is a classifier")
    settings = {"kind": kind, "parameters": kinds.parameters(estimator)}
    mark = blake2b(dumps(settings | kinds.state(estimator)).encode(), digest_size=32)
    if not estimator.keeps_rows:
        mark.update(estimator.digest().encode())
        return mark.hexdigest()
    examples = estimator.editable_.examples
    for texts in (map(id_text, examples.names), label_texts(examples.labels)):
        mark.update("\0".join(texts).encode())
    vectors, beside = split(examples.X, kinds.columns(estimator)["width"])
    for array in (vectors, examples.weights, beside):
        mark.update(bytes_of(array))
    return mark.hexdigest()


# -- loading -------------------------------------------------------------------------------------

# Rows that are summed at a time.
_BLOCK = 4096


def load(
    file: File, facts: dict[str, Any], before: HeldState | None, cache: FactorCache
) -> HeldState:
    """The state of a file, checked.

    before : an earlier state
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
    attach(file, estimator, facts)
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
    return HeldState(file.stamp, estimator, facts, numbers, index)


def _fitted(
    file: File,
    estimator: Any,
    facts: dict[str, Any],
    live: list[Version],
    before: HeldState | None,
    cache: FactorCache,
) -> Any:
    """The estimator with these versions, which are in the order of their vectors."""
    if before is not None and (
        not before.fitted or before.facts["parameters"] != facts["parameters"]
    ):
        before = None
    if not estimator.keeps_rows:
        return _summed(file, estimator, facts, live, before)
    if before is not None:
        followed = _followed(file, facts, live, before)
        if followed is not None:
            return estimator.holding(followed)
    examples = examples_of(facts, live, {row[0]: row for row in file.all_rows("vectors")})
    value = None
    if kinds.capabilities(facts["kind"]).has_factor and len(examples.counted):
        numbers = np.array([one.vector for one in live], dtype=np.int64)
        value = cache.read(file, estimator, facts["state"], examples, numbers)
    return estimator.holding(value or kinds.living(estimator, facts["state"], examples))


def fresh(file: File, facts: dict[str, Any], versions: Sequence[Version]) -> tuple[Any, Examples]:
    """An estimator that is fitted to the live ones of these versions from scratch, and these.

    If `facts` have no state, the examples choose it.
    """
    live = sorted((one for one in versions if one.live), key=lambda one: one.vector)
    estimator = kinds.unfitted(facts["kind"], facts["parameters"])
    attach(file, estimator, facts)
    kinds.set_columns(estimator, facts["columns"])
    examples = examples_of(facts, live, {row[0]: row for row in file.all_rows("vectors")})
    if facts["state"] is None:
        return kinds.chosen_by(estimator, examples), examples
    if not estimator.keeps_rows:
        return _add_all(file, kinds.linear(estimator, facts["state"]), facts, live, 1), examples
    return estimator.holding(kinds.living(estimator, facts["state"], examples)), examples


# -- following an earlier state ------------------------------------------------------------------


def _followed(
    file: File, facts: dict[str, Any], live: list[Version], before: HeldState
) -> Living[Any] | Forest | None:
    """The fitted value of these versions, from an earlier value; None if a fresh fit is needed."""
    value: Any = before.estimator.editable_
    state = facts["state"]
    can = kinds.capabilities(facts["kind"])
    if not can.has_factor:
        return _edited(file, facts, live, before, value)
    # A one-shot model chooses its noise itself.
    if not can.has_supports and state["noise"] != value.model.covariance.noise:
        return None
    examples = _joined(file, facts, live, before, value.examples)
    kernel, settled = valued(state["kernel"]), bool(state["settled"])
    if describe_difference(kernel, value.kernel) is not None:
        return Living.of(value.current.follow(examples.counted, kernel), examples, settled=settled)
    covariance = value.model.covariance
    peak = max(value.peak, max_variance(covariance.kernel, covariance.seen(examples.X)))
    after: Living[Any] = replace(value, examples=examples, settled=settled, peak=peak, reserve=[])
    _ = after.current
    return after


def _joined(
    file: File, facts: dict[str, Any], live: list[Version], before: HeldState, held: Examples
) -> Examples:
    """Versions as examples, which share rows and serial numbers with the examples held.

    Serial numbers must ascend. From the first version that is not held on, all get new ones.
    """
    places = {vector: place for place, (_, vector) in enumerate(before.index.values())}
    rows = [places.get(one.vector, -1) for one in live]
    missing = [one for one, row in zip(live, rows, strict=True) if row < 0]
    journal = Journal(file, before.numbers)
    new = examples_of(facts, missing, journal.vectors(one.vector for one in missing))
    at = np.array(rows, dtype=np.int64)
    old = at >= 0
    X = np.empty((len(live), (new if missing else held).X.shape[1]))
    X[old] = held.X[at[old]]
    if missing:
        X[~old] = new.X
    first = len(live) if old.all() else int(old.argmin())
    serials = np.append(held.serials[at[:first]], new_serials(len(live) - first))
    labels = codec.LabelType(*facts["labels"]).read([one.label for one in live])
    weights = np.array([one.weight for one in live], dtype=float)
    ids = [codec.read_id(one.id) for one in live]
    following = next_id(Numbers(*facts["numbers"]).next_id, ids)
    return Examples.restored(ids, X, labels, weights, serials, following)


def _edited(
    file: File, facts: dict[str, Any], live: list[Version], before: HeldState, forest: Forest
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
    file: File, estimator: Any, facts: dict[str, Any], live: list[Version], before: HeldState | None
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
    where = "WHERE number > ? AND number <= ? ORDER BY number, row"
    for _, row, enters in file.rows("changes", where, (low, high)):
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
    journal, rest, sums = Journal(file, Numbers()), iter(versions), made.model_.sums
    while block := list(islice(rest, _BLOCK)):
        vectors = journal.vectors(one.vector for one in block)
        examples = examples_of(facts, block, vectors)
        parts = examples.X, examples.labels, examples.weights
        part = made.sums_of(*parts)
        sums = sums + part if sign > 0 else sums - part
    return made.holding(made.model_.of(sums))


# -- creating ------------------------------------------------------------------------------------


def create(path: Path, estimator: Any, timeout: float) -> None:
    """Make a file with the settings of an unfitted estimator, unless somebody else has made it."""
    kind = kinds.kind_of(estimator)
    if kind not in kinds.LIVING:
        raise InvalidType(
            f"{a_type(estimator)} holds no examples that a file could keep. Write what it "
            f"learnt with save(path), and read it with knowmore.load(path)."
        )
    if kinds.is_fitted(estimator):
        raise InvalidInput(
            "A new file is made with an unfitted estimator, whose settings it takes. Write a "
            "fitted one with save(path), and open that."
        )
    facts = {
        "kind": kind,
        "parameters": kinds.parameters(estimator),
        "numbers": list(Numbers()),
        "columns": None,
        "labels": None,
        "state": None,
        "notes": {},
        **facts_of(estimator, path),
    }
    arrays = arrays_of(estimator)

    def write(file: File) -> None:
        journal = Journal(file, Numbers())
        facts["arrays"] = write_arrays(journal, arrays)
        facts["numbers"] = list(journal.numbers)
        file.write_facts(facts)

    make(path, write, timeout)
