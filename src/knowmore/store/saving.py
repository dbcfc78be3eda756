"""Any estimator of the library in a file, and back, with the same answers to the last bit.

An estimator that holds examples becomes a living model with one entry in its journal. Of the others
a file has what they learnt: numbers, and arrays of them. The factors of a forest's leaves are not
in the file: a forest that is read answers as a fresh fit of its examples does, to the last bit.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from knowmore._base import Array, check_name, check_writable, part_of
from knowmore._base import File as Name
from knowmore.edits import Add
from knowmore.errors import NotWritten
from knowmore.estimators import LandmarkMap, LinearGP, fitted
from knowmore.examples import Examples
from knowmore.store import cache, kinds, state
from knowmore.store.changing import Change
from knowmore.store.codec import LabelType, plain, valued
from knowmore.store.file import File, check_size, make, put_in_place
from knowmore.store.journal import Journal, Numbers
from knowmore.store.store import Store
from knowmore.store.work import About, HeldState, Work
from knowmore.subspaces import (
    ClassMeans,
    Discriminant,
    Eigenspace,
    Measures,
    Reference,
    Rounding,
    Spread,
    Window,
)

# Frozen values by their names in files.
_VALUES: Final[dict[str, type]] = {
    "eigenspace": Eigenspace,
    "rounding": Rounding,
    "discriminant": Discriminant,
    "class-means": ClassMeans,
    "spread": Spread,
    "reference": Reference,
    "measures": Measures,
    "window": Window,
}
_NAMES: Final = {kind: name for name, kind in _VALUES.items()}
# Where an estimator has what it learnt.
_LEARNT: Final = {
    "pca": ("eigenspace_",),
    "lda": ("model_",),
    "monitor": ("model_",),
    "landmarks": ("map_",),
    "intersection-map": ("step_", "levels_"),
}


def save(estimator: Any, path: Name) -> None:
    """Write a fitted estimator of the library, or an `Eigenspace`, to a file: all, or nothing.

    What was there before is replaced. `load` reads it, and `knowmore.open` if it holds examples.
    """
    kind = kinds.kind_of(estimator)
    check_name(path)
    target = Path(os.path.realpath(path))
    check_writable(target)
    try:
        with part_of(target, put_in_place) as part:
            make(part, lambda file: _write(file, target, kind, estimator))
    except OSError as error:
        if isinstance(error, NotWritten):
            raise
        raise NotWritten(
            f"{str(target)!r} cannot be written: {error.strerror or error}. What was there before "
            f"is kept. Name another place."
        ) from error
    if not isinstance(estimator, Eigenspace):
        state.note_home(estimator, target)


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
                estimator = None
    finally:
        file.close()
    if estimator is None:
        with Store(target) as store:
            estimator = store.estimator
    if isinstance(estimator, Eigenspace):
        return estimator
    return state.note_home(estimator, target)


def _write(file: File, target: Path, kind: str, estimator: Any) -> None:
    if kind not in kinds.LIVING:
        _write_value(file, kind, estimator)
    elif not estimator.keeps_rows:
        _write_sums(file, kind, estimator)
    else:
        _write_living(file, target, kind, estimator)


def _write_living(file: File, target: Path, kind: str, estimator: Any) -> None:
    living = estimator.editable_
    examples: Examples = living.examples
    facts = {
        "kind": kind,
        "parameters": kinds.parameters(estimator),
        "numbers": list(Numbers(next_id=examples.next_id)),
        "columns": None,
        "labels": list(LabelType.of(examples.labels)),
        "state": None,
        "notes": {},
        **state.facts_of(estimator, target),
    }
    journal = Journal(file, Numbers(next_id=examples.next_id))
    facts["arrays"] = cache.write_arrays(journal, state.arrays_of(estimator))
    file.write_facts(facts)
    work = Work(file, HeldState("", estimator, facts, journal.numbers, {}))
    columns = examples.X, examples.labels, examples.names, examples.weights
    work.enter("save", Change(estimator, Add(*columns)), About())
    factor = cache.FactorCache()
    order = np.arange(1, len(examples) + 1)
    if kinds.capabilities(kind).has_factor and len(examples.counted):
        factor.write(work.journal, living, order)
    work.finish(factor)


def _write_sums(file: File, kind: str, estimator: LinearGP) -> None:
    fitted(estimator, "model_")
    facts = {
        "kind": kind,
        "holds": "sums",
        "parameters": kinds.parameters(estimator),
        "columns": kinds.columns(estimator),
        "state": kinds.state(estimator),
    }
    cache.write_sums(Journal(file, Numbers()), estimator, "")
    file.write_facts(facts)


def _read_sums(file: File, facts: dict[str, Any]) -> LinearGP:
    with file.understood("settings"):
        estimator = kinds.unfitted(facts["kind"], facts["parameters"])
        kinds.set_columns(estimator, facts["columns"])
        empty = kinds.linear(estimator, facts["state"])
        file.all_rows("arrays")
        found = cache.read_sums(file, empty.model_.sums.grid, "")
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
        facts["value"] = _described(estimator, keep)
    else:
        facts |= {
            "parameters": kinds.parameters(estimator),
            "value": {name: _described(fitted(estimator, name), keep) for name in _LEARNT[kind]},
            "columns": kinds.columns(estimator),
        }
    facts["arrays"] = cache.write_arrays(Journal(file, Numbers()), arrays)
    file.write_facts(facts)


def _described(value: Any, keep: Callable[[Array], dict[str, Any]]) -> Any:
    """A value as JSON can write it, but for its arrays."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return keep(value)
    if isinstance(value, LandmarkMap):
        settings = [plain(value.given), plain(value.kernel), value.changed]
        held = [keep(one) for one in (value.examples.X, value.used, value.L)]
        return {"landmarks": settings, "arrays": held, "ids": plain(list(value.examples.names))}
    if type(value) in _NAMES:
        parts = {name: _described(getattr(value, name), keep) for name in _fields(type(value))}
        return {"value": _NAMES[type(value)], "of": parts}
    if isinstance(value, tuple) and any(is_dataclass(one) for one in value):
        return {"several": [_described(one, keep) for one in value]}
    return {"plain": plain(value)}


def _built(found: Any, arrays: dict[str, Array]) -> Any:
    """The value that `_described` was given; raises any error if it makes no sense."""
    match found:
        case {"kept": str(name)}:
            return arrays[name]
        case {"several": list(parts)}:
            return tuple(_built(one, arrays) for one in parts)
        case {"plain": value}:
            return valued(value)
        case {"value": str(name), "of": dict(parts)}:
            kind = _VALUES[name]
            if not _required(kind) <= set(parts) <= set(_fields(kind)):
                raise ValueError(f"a value with the parts {set(parts)}")
            return kind(**{part: _built(one, arrays) for part, one in parts.items()})
        case {"landmarks": [given, kernel, bool(changed)], "arrays": list(held), "ids": ids}:
            X, used, L = (_built(one, arrays) for one in held)
            examples = Examples.of(X, np.zeros(len(X)), tuple(valued(ids)))
            return LandmarkMap(valued(given), examples, valued(kernel), used, L, changed)
    raise ValueError("an unknown value")


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a frozen value, in their order."""
    return tuple(inspect.signature(kind).parameters)


def _required(kind: type) -> set[str]:
    """The fields without a default. Files of earlier versions may lack the others."""
    given = inspect.signature(kind).parameters.values()
    return {one.name for one in given if one.default is one.empty}


def _read_value(file: File, facts: dict[str, Any]) -> Any:
    arrays = cache.read_arrays(file, facts["arrays"])
    with file.understood("value"):
        if facts["kind"] == "eigenspace":
            value = _built(facts["value"], arrays)
            if not isinstance(value, Eigenspace):
                raise ValueError("no eigenspace")
            return value
        estimator = kinds.unfitted(facts["kind"], facts["parameters"])
        kinds.set_columns(estimator, facts["columns"])
        for name in _LEARNT[facts["kind"]]:
            setattr(estimator, name, _built(facts["value"][name], arrays))
        return estimator
