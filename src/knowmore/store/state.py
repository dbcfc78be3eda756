"""The state of a file in memory and on disk: created, read, followed, saved, loaded and restored.

A state is made from nothing, from caches, or from an earlier state. Some estimators need more than
examples: support tasks, or a source, the model that they start from. Support tasks are arrays in
the file. A source is a file of its own, named by its path from the folder of this one, so that both
can move together, and by the digest of the model in it.

Any estimator of the library can be saved, and is read with the same answers to the last bit. An
estimator that holds examples becomes a living model with one entry in its journal. Of the others a
file has what they learnt: numbers, and arrays of them. The factors of a forest's leaves are not in
the file: a forest that is read answers as a fresh fit of its examples does, to the last bit.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from knowmore._base import (
    Array,
    Id,
    a_type,
    check_free,
    check_name,
    check_writable,
    part_of,
    some,
    write_errors,
)
from knowmore._base import File as Name
from knowmore._living import Living
from knowmore.edits import Add, Relabel, Remove
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError
from knowmore.estimators import LinearGP, declared, fitted
from knowmore.examples import Examples, new_serials
from knowmore.kernels import describe_difference
from knowmore.models import Forest, beside_rows, max_variance
from knowmore.store import kinds
from knowmore.store.cache import FactorCache, read_arrays, read_sums, write_arrays, write_sums
from knowmore.store.cells import ENCODED, columns_of, table_of
from knowmore.store.changing import Change, next_id
from knowmore.store.file import (
    TABLES,
    File,
    check_size,
    damaged,
    make,
    put_in_place,
    reported,
)
from knowmore.store.journal import (
    FORGETS,
    KEY,
    Journal,
    Marker,
    Numbers,
    Version,
    Withdrawal,
    without,
)
from knowmore.store.kinds import (
    bytes_of,
    id_text,
    label_texts,
    plain,
    read_id,
    string,
    valued,
)
from knowmore.store.verification import clean, recover
from knowmore.store.work import (
    About,
    FileEdit,
    HeldState,
    all_examples,
    examples_of,
    live_index,
    live_versions,
    restored,
    split,
)
from knowmore.transfer import NPlusOneClassifier, OneShotClassifier, Scores

# -- what an estimator needs besides its examples ------------------------------------------------


SUPPORT = "support/"
# The files of estimators that were loaded or saved: sources of others, maybe.
_homes: WeakKeyDictionary[Any, Path] = WeakKeyDictionary()
# The files whose sources are being loaded.
_loading: ContextVar[tuple[Path, ...]] = ContextVar("_loading", default=())


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
            "The source of this classifier is in no file, so a file cannot name it. An estimator "
            "of knowmore can be saved first: source.save('known.km'), and give the very estimator "
            "that was saved or loaded. Of any other give the scores as columns beside the "
            "features: Scores(classes)."
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
    if (classes := declared(estimator)) is not None:
        settings["classes"] = kinds.plain(classes.tolist())
    mark = blake2b(dumps(settings | kinds.state(estimator)).encode(), digest_size=32)
    if kinds.capabilities(kind).has_sums:
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


def read_state(
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
        live = live_versions(versions)
        index = live_index(live)
    attach(file, estimator, facts)
    if facts["state"] is not None:
        with file.understood("settings"):
            kinds.set_columns(estimator, facts["columns"])
        with file.understood("settings and examples", "contradict each other"):
            estimator = _fitted(file, estimator, facts, live, before, cache)
    return HeldState(file.stamp, estimator, facts, index)


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
        not before.fitted
        or before.facts["parameters"] != facts["parameters"]
        or before.facts.get(ENCODED) != facts.get(ENCODED)
    ):
        before = None
    can = kinds.capabilities(facts["kind"])
    if can.has_sums:
        return _summed(file, estimator, facts, live, before)
    if before is not None:
        followed = _followed(file, facts, live, before)
        if followed is not None:
            return estimator.holding(followed)
    examples = examples_of(file, facts, live, {row[0]: row for row in file.all_rows("vectors")})
    value = None
    if can.has_factor and len(examples.counted):
        numbers = np.array([one.vector for one in live], dtype=np.int64)
        value = cache.read(file, estimator, facts["state"], examples, numbers)
    return estimator.holding(value or kinds.living(estimator, facts["state"], examples))


def fresh(file: File, facts: dict[str, Any], versions: Sequence[Version]) -> tuple[Any, Examples]:
    """An estimator that is fitted to the live ones of these versions from scratch, and these.

    If `facts` have no state, the examples choose it.
    """
    live = live_versions(versions)
    if facts["columns"] is None and (table := table_of(facts)) is not None:
        # The examples came back to an empty file.
        facts = facts | {"columns": columns_of(table)}
    estimator = kinds.unfitted(facts["kind"], facts["parameters"])
    attach(file, estimator, facts)
    kinds.set_columns(estimator, facts["columns"])
    examples = examples_of(file, facts, live, {row[0]: row for row in file.all_rows("vectors")})
    if facts["state"] is None:
        return kinds.chosen_by(estimator, examples), examples
    if kinds.capabilities(facts["kind"]).has_sums:
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
    examples = _joined(file, facts, live, before, value.examples)
    choice = kinds.choice_of(before.estimator, state, examples)
    if describe_difference(choice.settings.kernel, value.kernel) is None:
        choice = choice.with_kernel(value.kernel)
    if not value.current.has(choice.settings):
        followed = value.current.follow(examples.counted, choice.settings)
        return Living.of(followed, examples, choice)
    covariance = value.model.covariance
    peak = max(value.peak, max_variance(covariance.kernel, covariance.seen(examples.X)))
    after: Living[Any] = replace(value, examples=examples, choice=choice, peak=peak, reserve=[])
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
    new = examples_of(file, facts, missing)
    at = np.array(rows, dtype=np.int64)
    old = at >= 0
    X = np.empty((len(live), (new if missing else held).X.shape[1]))
    X[old] = held.X[at[old]]
    if missing:
        X[~old] = new.X
    first = len(live) if old.all() else int(old.argmin())
    serials = np.append(held.serials[at[:first]], new_serials(len(live) - first))
    return restored(facts, live, X, serials)


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
        labels = kinds.read_labels(facts["labels"], [one.label for one in changed])
        forest = forest.apply(Relabel(tuple(kinds.read_id(v.id) for v in changed), labels))
    if coming:
        new = examples_of(file, facts, coming)
        forest = forest.apply(Add(new.X, new.labels, new.names, new.weights))
    ids = map(kinds.read_id, (one.id for one in live))
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
    except kinds.OtherLabels:
        # The file was empty in between.
        return None
    return made


def _add_all(
    file: File, made: Any, facts: dict[str, Any], versions: Sequence[Version], sign: int
) -> Any:
    """The linear model with these versions, or without them if `sign` is -1."""
    rest, sums = iter(versions), made.model_.sums
    while block := list(islice(rest, _BLOCK)):
        examples = examples_of(file, facts, block)
        part = made.model_.summed(examples.X, examples.labels, examples.weights)
        sums = sums + part if sign > 0 else sums - part
    return made.holding(made.editable_.of(sums))


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
    facts, arrays = _first_facts(estimator, path)

    def write(file: File) -> None:
        journal = Journal(file, Numbers())
        facts["arrays"] = write_arrays(journal, arrays)
        file.write_facts(facts | {"numbers": list(journal.numbers)})

    make(path, write, timeout)


def _first_facts(estimator: Any, path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The facts of a file without examples, and its arrays."""
    kind, arrays = kinds.kind_of(estimator), dict[str, Array]()
    facts: dict[str, Any] = {
        "kind": kind,
        "parameters": kinds.parameters(estimator),
        "numbers": list(Numbers()),
        "columns": None,
        "labels": None,
        "state": None,
        "notes": {},
    }
    if kinds.capabilities(kind).has_source:
        facts["source"] = _noted(estimator, path)
    if kinds.capabilities(kind).has_supports:
        supports = _supports(estimator)
        facts["supports"] = list(supports)
        arrays = {f"{SUPPORT}{i}": X for i, X in enumerate(supports.values())}
    return facts, arrays


# -- saving and loading ---------------------------------------------------------------------------

# Where an estimator has what it learnt.
_LEARNT: Final = {
    "pca": ("eigenspace_",),
    "lda": ("model_",),
    "monitor": ("model_",),
    "landmarks": ("map_",),
    "intersection-map": ("step_", "levels_"),
}
# A fact of files: whether a linear estimator is loaded with its rows.
KEEPS: Final = "keeps_rows"


def save(estimator: Any, path: Name) -> None:
    """Write a fitted estimator of the library, or an `Eigenspace`, to a file: all, or nothing.

    What was there before is replaced. `load` reads it, and `knowmore.open` if it holds examples.
    """
    kind = kinds.kind_of(estimator)
    check_name(path)
    target = Path(os.path.realpath(path))
    check_writable(target)
    with write_errors(target), part_of(target, put_in_place) as part:
        make(part, lambda file: _write(file, target, kind, estimator))
    if kind != "eigenspace":
        _homes[estimator] = target


def load(path: Name) -> Any:
    """The estimator in a file of `save`, or of a living model: a copy in memory.

    Its answers are the same to the last bit; a forest's are, to the last bit, those of a fresh fit
    of its examples. To edit it does not touch the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from knowmore import EigenspacePCA
    >>> pca = EigenspacePCA(2).fit(np.random.default_rng(0).normal(size=(20, 5)))
    >>> with TemporaryDirectory() as folder:
    ...     pca.save(f"{folder}/pca.km")
    ...     bool((load(f"{folder}/pca.km").components_ == pca.components_).all())
    True
    """
    check_name(path)
    target = Path(os.path.realpath(path))
    file = File(target)
    try:
        with file.reading():
            check_size(file)
            facts = file.facts()
            with file.understood("settings"):
                kind, holds = facts["kind"], facts.get("holds")
                if kind not in kinds.KINDS:
                    raise ValueError(f"kind {kind}")
            if holds == "values":
                estimator = _read_value(file, facts)
            elif holds == "sums":
                estimator = _read_sums(file, facts)
            else:
                held = read_state(file, facts, None, FactorCache())
                estimator = held.estimator
                if held.fitted and facts.get(KEEPS):
                    rows = all_examples(held, Journal(file, held.numbers), {}, None)
                    estimator = estimator.holding(beside_rows(estimator.editable_, rows))
        if holds is None:
            recover(file)
    finally:
        file.close()
    if kind != "eigenspace":
        _homes[estimator] = target
    return estimator


def _write(file: File, target: Path, kind: str, estimator: Any) -> None:
    if kind not in kinds.LIVING:
        _write_value(file, kind, estimator)
    elif kinds.is_fitted(estimator) and not estimator.editable_.keeps_rows:
        _write_sums(file, kind, estimator)
    else:
        _write_living(file, target, kind, estimator)


def _write_living(file: File, target: Path, kind: str, estimator: Any) -> None:
    living = estimator.editable_
    examples: Examples = living.examples
    facts, arrays = _first_facts(estimator, target)
    journal = Journal(file, Numbers(next_id=examples.next_id))
    facts["arrays"] = write_arrays(journal, arrays)
    can = kinds.capabilities(kind)
    facts |= {"numbers": list(journal.numbers), "labels": kinds.label_type(examples.labels)}
    facts |= {KEEPS: True} if can.has_sums else {}
    file.write_facts(facts)
    work = FileEdit(file, HeldState("", estimator, facts, {}))
    columns = examples.X, examples.labels, examples.names, examples.weights
    work.enter("save", Change(estimator, Add(*columns)), About())
    factor = FactorCache()
    order = np.arange(1, len(examples) + 1)
    if can.has_sums:
        write_sums(work.journal, estimator)
    if can.has_factor and len(examples.counted):
        factor.write(work.journal, living, order)
    work.finish(factor)


def _write_sums(file: File, kind: str, estimator: LinearGP) -> None:
    facts = {
        "kind": kind,
        "holds": "sums",
        "parameters": kinds.parameters(estimator),
        "columns": kinds.columns(estimator),
        "state": kinds.state(estimator),
    }
    write_sums(Journal(file, Numbers()), estimator, "")
    file.write_facts(facts)


def _read_sums(file: File, facts: dict[str, Any]) -> LinearGP:
    with file.understood("settings"):
        estimator = kinds.unfitted(facts["kind"], facts["parameters"])
        kinds.set_columns(estimator, facts["columns"])
        empty = kinds.linear(estimator, facts["state"])
        file.all_rows("arrays")
        found = read_sums(file, empty.model_.sums.grid, "")
        if found is None:
            raise ValueError("sums that make no sense")
        return kinds.linear(estimator, facts["state"], found[1])


# -- frozen values -------------------------------------------------------------------------------


def _write_value(file: File, kind: str, estimator: Any) -> None:
    arrays: dict[str, Array] = {}

    def keep(array: Array) -> dict[str, Any]:
        name = f"value/{len(arrays)}"
        arrays[name] = array
        return {"kept": name}

    facts: dict[str, Any] = {"kind": kind, "holds": "values"}
    if kind == "eigenspace":
        facts["value"] = kinds.described(estimator, keep)
    else:
        facts |= {
            "parameters": kinds.parameters(estimator),
            "value": {
                name: kinds.described(fitted(estimator, name), keep) for name in _LEARNT[kind]
            },
            "columns": kinds.columns(estimator),
        }
    facts["arrays"] = write_arrays(Journal(file, Numbers()), arrays)
    file.write_facts(facts)


def _read_value(file: File, facts: dict[str, Any]) -> Any:
    arrays = read_arrays(file, facts["arrays"])
    with file.understood("value"):
        if facts["kind"] == "eigenspace":
            value = kinds.built(facts["value"], arrays)
            if type(value) is not kinds.VALUES["eigenspace"]:
                raise ValueError("no eigenspace")
            return value
        estimator = kinds.unfitted(facts["kind"], facts["parameters"])
        kinds.set_columns(estimator, facts["columns"])
        for name in _LEARNT[facts["kind"]]:
            setattr(estimator, name, kinds.built(facts["value"][name], arrays))
        return estimator


# -- a copy in the place of a model --------------------------------------------------------------


class Restored(NamedTuple):
    """The result of `restore`.

    examples : how many the model holds now
    forgotten : the ids of examples that are in the copy, and had been forgotten since: they were
        forgotten again
    changed : the ids of examples that stay, without features or labels that had been forgotten
    warning : why what had been forgotten may be back, and what to do; "" if there is no reason
    """

    examples: int
    forgotten: list[Id]
    changed: list[Id]
    warning: str


def restore(path: Name, copy: Name, *, again: bool = False) -> Restored:
    """Put a copy of a model in the place of the model, whose journal goes: all of it, or nothing.

    To copy the file by hand leaves the journal of an interrupted edit beside it, which belongs to
    another state. What the model at `path` has forgotten since the copy was made is forgotten in
    the copy, too: examples, and features and labels that other examples had lost. Only that model
    knows it. If it is missing, cannot be read, or has another past than the copy, `warning` says
    so. What was forgotten without marks, and what was undone and overwritten before it could be
    forgotten, comes back with the copy; if it was all that somebody gave, `warning` has their name.

    copy : another file of a model; it stays as it is
    again : keep what had been forgotten
    """
    for name in (path, copy):
        check_name(name)
    target, source = Path(os.path.realpath(path)), Path(os.path.realpath(copy))
    if target == source:
        raise InvalidInput(f"{str(copy)!r} is the model itself. Give another file: a copy of it.")
    check_writable(target)
    found, warning = Withdrawal(), ""
    with write_errors(target), part_of(target, put_in_place) as part:
        _copied(source, part)
        if not again:
            past = _past(target)
            if past is not None and past.marks:
                if _examples_in(part):
                    found = _forgotten(part, past)
                else:
                    _adopt(part, past)
            warning = _warning(target, past, part)
        holds = _examples_in(part)
    changed = sorted((*found.changed, *found.erased))
    return Restored(holds, [*map(read_id, sorted(found.gone))], [*map(read_id, changed)], warning)


def _copied(source: Path, part: Path) -> None:
    """Write a checked copy of one state of a model."""
    with closing(File(source)) as file, file.reading():
        check_size(file)
        for table in TABLES:
            file.all_rows(table)
        with reported(source, file.timeout), closing(sqlite3.connect(part)) as there:
            file.connection.backup(there)
    with open(part, "rb") as data:
        os.fsync(data.fileno())


def _examples_in(path: Path) -> int:
    """The number of examples in a file."""
    with closing(File(path)) as file, file.reading():
        ((count,),) = file.fetched("SELECT count(*) FROM examples WHERE live = 1")
        return int(count)


class _Past(NamedTuple):
    """The past of a model, as far as its file knows it.

    entries : the numbers, times and verbs of its journal
    givers : all who gave something
    key, marks : of what it has forgotten
    back : what it holds again under ids that it had forgotten, by the texts of these
    """

    entries: set[tuple[int, int, str]]
    givers: set[str | None]
    key: str
    marks: set[bytes]
    back: dict[str, Any]


def _past(path: Path) -> _Past | None:
    """The past of a model; None if it cannot be read."""
    with suppress(KnowmoreError), closing(File(path)) as file, file.reading():
        check_size(file)
        facts = file.facts()
        if "holds" in facts:
            return None
        marks = {row[0] for row in file.all_rows("forgotten")}
        with file.understood("marks"):
            key = str(facts[KEY]) if marks else ""
            marker = Marker(key)
            versions = live_versions([Version(*row) for row in file.all_rows("examples")])
            again = [one for one in versions if marker.id(read_id(one.id)) in marks]
            back = _said(Journal(file, Numbers()), again)
        return _Past(_entries(file), _givers(file), key, marks, back)
    return None


def _entries(file: File) -> set[tuple[int, int, str]]:
    return {row[:3] for row in file.all_rows("journal")}


def _givers(file: File) -> set[str | None]:
    versions = [Version(*row) for row in file.all_rows("examples")]
    return {one for givers in Journal(file, Numbers()).givers(versions) for one in givers}


def _said(journal: Journal, versions: Sequence[Version]) -> dict[str, Any]:
    """Features or cells, label, weight and givers of versions, by the texts of their ids."""
    has_cells = table_of(journal.file.facts()) is not None
    part = slice(4, 5) if has_cells else slice(1, 3)
    vectors, givers = journal.vectors(one.vector for one in versions), journal.givers(versions)
    return {
        one.id: (vectors[one.vector][part], one.label, one.weight, whose)
        for one, whose in zip(versions, givers, strict=True)
    }


def _warning(target: Path, past: _Past | None, part: Path) -> str:
    """A note that somebody may be back who was forgotten since the copy was made, or ""."""
    if past is not None:
        with closing(File(part)) as file, file.reading():
            entries, givers = _entries(file), _givers(file)
        if not entries or entries & past.entries:
            forgot = any(verb in FORGETS for _, _, verb in past.entries - entries)
            names = sorted(filter(None, map(string, givers - past.givers)))
            if not (forgot and names):
                return ""
            return (
                f"The copy has contributions of {some(names)}, and {str(target)!r} had none and "
                f"has forgotten something since. If that was theirs: knowmore forget "
                f"{target.name} --contributor NAME"
            )
        why = f"{str(target)!r} has another past than the copy"
    elif target.exists():
        why = f"{str(target)!r} could not be read"
    else:
        why = f"There was no model {str(target)!r}"
    return (
        f"{why}, so nobody can tell what was forgotten since the copy was made: it may be back. "
        f"Forget it again: knowmore forget {target.name} ..."
    )


def _forgotten(path: Path, past: _Past) -> Withdrawal:
    """Forget in a copy what the past of the model has forgotten since."""
    lost = past.marks - _adopt(path, past)
    marker, cache = Marker(past.key), FactorCache()
    with closing(File(path)) as file:
        with file.writing():
            work = FileEdit(file, read_state(file, file.facts(), None, cache))
            versions = [Version(*row) for row in file.all_rows("examples")]
            marked = {v.id for v in versions if marker.id(read_id(v.id)) in past.marks}
            held = _said(work.journal, [v for v in versions if v.live and v.id in past.back])
            gone = marked - dict(held.items() & past.back.items()).keys()
            found = without(
                work.journal,
                lambda version, _: version.id in gone or marker.lost(b"features", version) in lost,
                lambda version, _: version.id in gone or marker.lost(b"label", version) in lost,
            )
            if found.count:
                work.withdraw(found, fresh, mark=True)
            work.finish(cache)
        if file.unclean:
            clean(file)
    return found


def _adopt(path: Path, past: _Past) -> set[bytes]:
    """Write marks into a copy, unless that has others of its own; returns those it had."""
    with closing(File(path)) as file, file.writing():
        facts = file.facts()
        known = {row[0] for row in file.rows("forgotten")}
        if "holds" not in facts and facts.get(KEY) in (None, past.key):
            file.insert("forgotten", ((one,) for one in sorted(past.marks - known)))
            file.write_facts({KEY: past.key})
        return known
