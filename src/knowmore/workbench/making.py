"""A new model, and what its first examples settle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import knowmore
from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.store import KINDS, Store
from knowmore.workbench.model import SETTLED, Progress, describer_of, noted
from knowmore.workbench.sources import Source, Wanted, open_source

if TYPE_CHECKING:
    from knowmore.images import Describer

_DEFAULT = "sift-pyramid"


def new_estimator(
    kind: str, source: Path | None = None, supports: dict[str, Array] | None = None
) -> Any:
    """An unfitted estimator of a kind.

    source : the known model of an N+1 classifier
    supports : the support tasks of a one-shot classifier, {name: (n_S, d)}
    """
    if (kind == "n-plus-one") != (source is not None):
        raise InvalidInput(
            "A model of kind n-plus-one learns a new class from those of another model, and no "
            "other kind does. Give both: --kind n-plus-one --source KNOWN.km."
        )
    if (kind == "one-shot") != (supports is not None):
        raise InvalidInput(
            "A model of kind one-shot learns a new class with the help of examples of others, and "
            "no other kind does. Give both: --kind one-shot --supports SOURCE."
        )
    create: Any = KINDS[kind]
    if source is not None:
        return create(knowmore.open(source))
    return create() if supports is None else create(supports=supports)


def gathered(
    word: str, wish: dict[str, Any]
) -> tuple[dict[str, Array], dict[str, Any], dict[str, Any]]:
    """Each class of a source as a support task, {name: (n_S, d)}; the notes and arrays to keep.

    wish : how pictures are to become vectors, as the note "features" says it
    """
    source = open_source(word, Wanted())
    blocks = list(source.blocks())
    labels = [str(one) for block in blocks for one in block.labels or ()]
    rows: list[Any] = [row for block in blocks for row in block.X]
    notes: dict[str, Any] = _roles(source)
    arrays: dict[str, Any] = {}
    if source.pictures:
        from knowmore.images import Describer

        described = Describer.learnt(wish["kind"], rows, wish["words"], lambda done, total: None)
        note, arrays = described.kept()
        notes, rows = {"pictures": note}, described.vectors(rows)
    if wrong := next((row for row in rows if isinstance(row, str)), None):
        raise InvalidInput(f"A picture in {word!r} {wrong}")
    found: dict[str, list[Array]] = {name: [] for name in labels}
    for name, row in zip(labels, rows, strict=True):
        found[name].append(row)
    return {name: np.stack(each) for name, each in found.items()}, notes, arrays


def seen_by(source: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Notes and arrays on the features of a known model, for one that learns from its scores."""
    with knowmore.open(source) as store:
        notes = {k: note for k, note in noted(store).items() if k in ("columns", "pictures")}
        return notes, store.arrays()


@contextmanager
def made(path: Path) -> Iterator[Store]:
    """A new model; if the block raises before anything was learnt, there is none."""
    store = knowmore.open(path, new_estimator("gp"))
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
    store: Store, source: Source, pictures: Any, progress: Progress
) -> tuple[dict[str, Any], dict[str, Any], Describer | None]:
    """The notes that the first examples settle, with their arrays; what describes pictures.

    They are the names of columns, and how pictures become vectors.
    """
    known = noted(store)
    arrays: dict[str, Any] = {}
    # What examples that are gone had settled is void.
    notes: dict[str, Any] = {
        name: None for name in SETTLED if name in store.notes and name not in known
    }
    notes |= {name: one for name, one in _roles(source).items() if name not in known}
    describer = describer_of(store) if source.pictures else None
    if len(store) or "pictures" in known or not (source.pictures or source.about is not None):
        return notes, arrays, describer
    from knowmore.images import DEFAULT_SIZE, Describer, plain_about

    if source.pictures:
        wish = known.get("features", {"kind": _DEFAULT, "words": DEFAULT_SIZE})

        def report(done: int, total: int) -> None:
            progress(done / total, f"learning visual words from {done} of {total} pictures")

        describer = Describer.learnt(wish["kind"], pictures, wish["words"], report)
        notes["pictures"], arrays = describer.kept()
    elif source.about is not None:
        notes["pictures"] = {"about": plain_about(source.about)}
        if (of_table := Describer.of_table(source.about, source.words)) is not None:
            notes["pictures"], arrays = of_table.kept()
    return notes, arrays, describer


def _roles(source: Source) -> dict[str, Any]:
    """The columns of features, label and id of a source, as far as it has them."""
    roles = {"columns": source.columns, "label": source.label, "id": source.id}
    return {name: one for name, one in roles.items() if one is not None}
