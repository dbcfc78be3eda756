"""A new model, and what its first examples settle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import knowmore
from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.store import KINDS, Store, notes_of
from knowmore.workbench.cells import CellDescriber, encoding_for
from knowmore.workbench.describing import (
    NOTES,
    Describer,
    learnt_describer,
)
from knowmore.workbench.model import SETTLED, Progress, describer_of, noted
from knowmore.workbench.sources import Source, Wanted, open_source

if TYPE_CHECKING:
    from knowmore.workbench.sources.records import Holds

# The kernel of models of texts. All their vectors have length one, which settles it (decision 31).
TEXT_KERNEL = Matern(1.0, nu=1.5)
# Notes of a store by name, and the arrays that they speak of: as `Store.set_notes` takes them.
Notes = tuple[dict[str, Any], dict[str, Any]]


def make(
    path: Path,
    kind: str,
    *,
    features: str | None = None,
    words: int | None = None,
    source: Path | None = None,
    supports: str | None = None,
) -> None:
    """Make an empty model of a kind.

    features : how pictures become vectors, with so many visual words
    source : the known model of an N+1 classifier
    supports : a source with the classes that are the support tasks of a one-shot classifier
    """
    from knowmore.images import DEFAULT_SIZE, WORDED, default_kind

    if path.exists():
        raise InvalidInput(f"{str(path)!r} exists. Name another file, or teach that one: learn.")
    chosen = features or default_kind(words=words is not None)
    if words is not None and chosen not in WORDED:
        raise InvalidInput(f"--features {chosen} has no visual words. Leave --words out.")
    wish = {"kind": chosen, "words": words or DEFAULT_SIZE}
    given: dict[str, Any] = {}
    settled: Notes = {}, {}
    if supports is not None:
        given["supports"], settled = _gathered(supports, wish)
    if source is not None:
        settled = _features_of(source, own=features is not None)
    for needy, need, how, option in (
        ("n-plus-one", source, "from those of another model", "--source KNOWN.km"),
        ("one-shot", supports, "with the help of examples of others", "--supports SOURCE"),
    ):
        if (kind == needy) != (need is not None):
            raise InvalidInput(
                f"A model of kind {needy} learns a new class {how}, and no other kind does. Give "
                f"both: --kind {needy} {option}."
            )
    if source is not None:
        given["source"] = knowmore.open(source)
    with knowmore.open(path, KINDS[kind](**given)) as store:
        if features is not None or words is not None:
            store.set_notes(features=wish)
        keep_notes(store, settled)


def keep_notes(store: Store, settled: Notes) -> None:
    """Keep notes and their arrays in the file of a model, if there are any."""
    notes, arrays = settled
    if notes:
        store.set_notes(arrays, **notes)


def _gathered(word: str, wish: dict[str, Any]) -> tuple[dict[str, Array], Notes]:
    """Each class of a source as a support task, {name: (n_S, d)}, and notes on its features.

    wish : how pictures are to become vectors, as the note "features" says it
    """
    source = open_source(word, Wanted())
    blocks = list(source.blocks())
    labels = [str(one) for block in blocks for one in block.labels or ()]
    rows: list[Any] = [row for block in blocks for row in block.X]
    notes: dict[str, Any] = _roles(source)
    arrays: dict[str, Any] = {}
    if source.holds == "cells":
        raise InvalidInput(
            f"Supports are rows of numbers or pictures, and {word!r} has other cells."
        )
    if source.described:
        described = learnt_describer(source, rows, wish, lambda done, total: None)
        note, arrays = described.kept()
        notes |= {NOTES[source.holds]: note}
        rows = described.vectors(rows)
    if wrong := next((row for row in rows if isinstance(row, str)), None):
        raise InvalidInput(f"A record in {word!r} {wrong}")
    found: dict[str, list[Array]] = {name: [] for name in labels}
    for name, row in zip(labels, rows, strict=True):
        found[name].append(row)
    return {name: np.stack(each) for name, each in found.items()}, (notes, arrays)


def _features_of(path: Path, *, own: bool) -> Notes:
    """Notes on the features of a known model, for one that learns from its scores.

    own : whether the user asked for other features
    """
    with knowmore.open(path) as store:
        notes = {
            k: one for k, one in noted(store).items() if k in ("columns", "text", *NOTES.values())
        }
        if own and "pictures" in notes:
            raise InvalidInput(
                f"A model of kind n-plus-one sees pictures as its source does, which has "
                f"{notes['pictures']['about']['kind']}. Leave --features out."
            )
        return notes, store.arrays()


@contextmanager
def made(path: Path, holds: Holds = "numbers") -> Iterator[Store]:
    """A new model; if the block raises before anything was learnt, there is none."""
    store = knowmore.open(path, knowmore.GPClassifier(TEXT_KERNEL if holds == "texts" else None))
    try:
        with store:
            yield store
    except BaseException:
        with suppress(Exception):
            _discard(store.path)
        raise


def _discard(path: Path) -> None:
    """Delete a model that nobody has taught."""
    with knowmore.open(path) as store:
        entries = store.log()
        with store.together("discard"):
            # It changes nothing, but from here on nobody else can write.
            store.set_notes()
            if entries or len(store):
                return
            path.unlink()
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)


def settled(
    store: Store, source: Source, records: Any, progress: Progress
) -> tuple[Notes, Describer | None]:
    """The notes that the first examples settle, and what describes records.

    They are the names of columns, and how records become vectors.
    """
    known = noted(store)
    arrays: dict[str, Any] = {}
    # What examples that are gone had settled is void.
    notes: dict[str, Any] = {
        name: None for name in SETTLED if name in store.notes and name not in known
    }
    notes |= {name: one for name, one in _roles(source).items() if name not in known}
    describer = describer_of(store) if source.described else None
    if len(store) or describer is not None or "pictures" in known:
        return (notes, arrays), describer
    if source.table is not None:
        table = encoding_for(store, source, records)
        return (notes | notes_of(table), arrays), CellDescriber(table)
    if source.described:

        def report(done: int, total: int) -> None:
            progress(done / total, f"learning visual words from {done} of {total} pictures")

        describer = learnt_describer(source, records, known.get("features", {}), report)
        notes[NOTES[source.holds]], arrays = describer.kept()
    elif source.about is not None:
        from knowmore.images import PictureDescriber, plain_about

        notes["pictures"] = {"about": plain_about(source.about)}
        if (of_table := PictureDescriber.of_table(source.about, source.words)) is not None:
            notes["pictures"], arrays = of_table.kept()
    return (notes, arrays), describer


def _roles(source: Source) -> dict[str, Any]:
    """The columns of features, label, id and text of a source, as far as it has them."""
    # Cells become features of other names.
    columns = None if source.holds == "cells" else source.columns
    roles = {"columns": columns} | {name: getattr(source, name) for name in ("label", "id", "text")}
    return {name: one for name, one in roles.items() if one is not None}
