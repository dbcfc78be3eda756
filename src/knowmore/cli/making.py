"""A new model, and what its first examples settle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import knowmore
from knowmore.cli.model import Model
from knowmore.cli.showing import Progress
from knowmore.cli.sources.records import Source
from knowmore.errors import InvalidInput

_CLASSES = {
    "gp": "GPClassifier",
    "gp-regression": "GPRegressor",
    "lssvm": "LSSVMClassifier",
    "linear": "LinearGPClassifier",
    "linear-regression": "LinearGPRegressor",
    "forest": "ForestGPClassifier",
    "forest-regression": "ForestGPRegressor",
    "one-shot": "OneShotClassifier",
    "n-plus-one": "NPlusOneClassifier",
}
# Features that are histograms, which have a kernel of their own.
_HISTOGRAMS = ("sift-pyramid", "bow", "phog")
_DEFAULT = "sift-pyramid"


def new_estimator(kind: str, source: Path | None = None) -> Any:
    """An unfitted estimator of a kind; `source` is the known model of an N+1 classifier."""
    create = getattr(knowmore, _CLASSES[kind])
    if (kind == "n-plus-one") != (source is not None):
        raise InvalidInput(
            "A model of kind n-plus-one learns a new class from those of another model, and no "
            "other kind does. Give both: --kind n-plus-one --source KNOWN.km."
        )
    return create() if source is None else create(knowmore.open(source))


@contextmanager
def made(path: Path, source: Source) -> Iterator[Model]:
    """A new model for a source; if the block raises before anything was learnt, there is none."""
    del source
    store = knowmore.open(path, new_estimator("gp"))
    try:
        with store:
            yield Model(store)
    except BaseException:
        with suppress(Exception):
            with knowmore.open(path) as again:
                empty = not len(again)
            if empty:
                for file in (path, path.with_name(f"{path.name}-journal")):
                    file.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, eq=False)
class Settled:
    """What the first examples settle, to be kept with them.

    notes, arrays : those of `Store.set_notes`
    kernel : None if that of the model stays
    """

    notes: dict[str, Any]
    arrays: dict[str, Any]
    kernel: Any = None

    def keep(self, store: Any) -> None:
        """Keep it in the file of a model."""
        if self.notes:
            store.set_notes(self.arrays, **self.notes)
        if self.kernel is not None:
            store.set_parameters(kernel=self.kernel)


def settled(model: Model, source: Source, pictures: Any, progress: Progress) -> Settled:
    """What examples settle if they are the first: names of columns, how pictures become vectors."""
    known, store = model.notes, model.store
    roles = {"columns": source.columns, "label": source.label, "id": source.id}
    notes: dict[str, Any] = {
        name: one for name, one in roles.items() if one is not None and name not in known
    }
    if len(store) or not (source.pictures or source.about):
        return Settled(notes, {})
    arrays: dict[str, Any] = {}
    if "pictures" not in known:
        notes["pictures"], arrays = _described(model, source, pictures, progress)
    kind = (known | notes)["pictures"]["about"]["kind"]
    estimator, kernel = store.estimator, None
    if kind in _HISTOGRAMS and "kernel" in estimator.get_params() and estimator.kernel is None:
        from knowmore.kernels import HistogramIntersection

        kernel = HistogramIntersection()
    return Settled(notes, arrays, kernel)


def _described(
    model: Model, source: Source, pictures: Any, progress: Progress
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A note and arrays that say how pictures become vectors; the model knows it from now on."""
    from knowmore.cli.describing import DEFAULT_SIZE, Describer, plain_about

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
