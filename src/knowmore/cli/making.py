"""A new model, and what its first examples settle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def settle(model: Model, source: Source, pictures: Any, progress: Progress) -> None:
    """Keep what the first examples settle: names of columns, and how pictures become vectors."""
    notes, store = model.notes, model.store
    roles = {"columns": source.columns, "label": source.label, "id": source.id}
    new = {name: value for name, value in roles.items() if value is not None and name not in notes}
    if new:
        store.set_notes(**new)
    if len(store) or "pictures" in notes or not (source.pictures or source.about):
        return
    kind = _settle_pictures(model, source, pictures, progress)
    estimator = store.estimator
    if kind in _HISTOGRAMS and "kernel" in estimator.get_params() and estimator.kernel is None:
        from knowmore.kernels import HistogramIntersection

        store.set_parameters(kernel=HistogramIntersection())


def _settle_pictures(model: Model, source: Source, pictures: Any, progress: Progress) -> str:
    """Keep how pictures become vectors; the kind of features."""
    from knowmore.cli.describing import DEFAULT_SIZE, Describer, plain_about

    if source.about is not None:
        described = Describer.of_table(source.about, source.words)
        if described is None:
            model.store.set_notes(pictures={"about": plain_about(source.about)})
        else:
            described.keep(model.store)
        return str(source.about["kind"])
    wish = model.notes.get("features", {"kind": _DEFAULT, "words": DEFAULT_SIZE})

    def report(done: int, total: int) -> None:
        progress(done / total, f"learning visual words from {done} of {total} pictures")

    described = Describer.learnt(wish["kind"], pictures, wish["words"], report)
    described.keep(model.store)
    return str(described.kind)
