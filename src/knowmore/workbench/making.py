"""A new model, and what its first examples settle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import knowmore
from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.store import KINDS
from knowmore.workbench.model import SETTLED, OpenModel, Progress, noted
from knowmore.workbench.sources import Source, Wanted, open_source

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


def gathered(word: str, wish: dict[str, Any]) -> tuple[dict[str, Array], Settled]:
    """Each class of a source as a support task, {name: (n_S, d)}, and what these settle.

    wish : how pictures are to become vectors, as the note "features" says it
    """
    source = open_source(word, Wanted())
    blocks = list(source.blocks())
    labels = [str(one) for block in blocks for one in block.labels or ()]
    rows: list[Any] = [row for block in blocks for row in block.X]
    first = Settled({name: one for name, one in _roles(source).items() if one is not None}, {})
    if source.pictures:
        from knowmore.images import Describer

        described = Describer.learnt(wish["kind"], rows, wish["words"], lambda done, total: None)
        note, arrays = described.kept()
        first, rows = Settled({"pictures": note}, arrays), described.vectors(rows)
    if wrong := next((row for row in rows if isinstance(row, str)), None):
        raise InvalidInput(f"A picture in {word!r} {wrong}")
    found: dict[str, list[Array]] = {name: [] for name in labels}
    for name, row in zip(labels, rows, strict=True):
        found[name].append(row)
    return {name: np.stack(each) for name, each in found.items()}, first


def seen_by(source: Path) -> Settled:
    """The meaning of the features of a known model, for a model that learns from its scores."""
    with knowmore.open(source) as store:
        wanted = ("columns", "pictures")
        notes = {name: note for name, note in noted(store).items() if name in wanted}
        return Settled(notes, store.arrays())


@contextmanager
def made(path: Path) -> Iterator[OpenModel]:
    """A new model; if the block raises before anything was learnt, there is none."""
    store = knowmore.open(path, new_estimator("gp"))
    try:
        with store:
            yield OpenModel(store)
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


@dataclass(frozen=True, eq=False)
class Settled:
    """Notes that the first examples settle, to be kept with them.

    notes, arrays : as for `Store.set_notes`
    """

    notes: dict[str, Any]
    arrays: dict[str, Any]

    def keep(self, store: Any) -> None:
        """Keep it in the file of a model."""
        if self.notes:
            store.set_notes(self.arrays, **self.notes)


def settled(model: OpenModel, source: Source, pictures: Any, progress: Progress) -> Settled:
    """Notes of a first source: names of columns, and how pictures become vectors."""
    known, store = model.notes, model.store
    notes: dict[str, Any] = {
        name: one for name, one in _roles(source).items() if one is not None and name not in known
    }
    # What examples that are gone had settled is void.
    notes = {name: None for name in SETTLED if name in store.notes and name not in known} | notes
    if len(store) or not (source.pictures or source.about is not None):
        return Settled(notes, {})
    arrays: dict[str, Any] = {}
    if "pictures" not in known:
        notes["pictures"], arrays = _described(model, source, pictures, progress)
    return Settled(notes, arrays)


def _roles(source: Source) -> dict[str, Any]:
    """The columns of features, label and id of a source; None for a missing one."""
    return {"columns": source.columns, "label": source.label, "id": source.id}


def _described(
    model: OpenModel, source: Source, pictures: Any, progress: Progress
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A note and arrays that say how pictures become vectors; the model knows it from now on."""
    from knowmore.images import DEFAULT_SIZE, Describer, plain_about

    if source.about is not None:
        described = Describer.of_table(source.about, source.words)
        if described is None:
            return {"about": plain_about(source.about)}, {}
    else:
        wish = model.notes.get("features", {"kind": _DEFAULT, "words": DEFAULT_SIZE})

        def report(done: int, total: int) -> None:
            progress(done / total, f"learning visual words from {done} of {total} pictures")

        described = Describer.learnt(wish["kind"], pictures, wish["words"], report)
    model.describer = described
    return described.kept()
