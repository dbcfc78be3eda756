"""How good a model is on records that others have labelled: a test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.insight import binned
from knowmore.store import Store
from knowmore.workbench.asking import ClassEvaluation, ValueEvaluation
from knowmore.workbench.model import (
    check_source,
    describer_of,
    labels_of,
    numbers_of,
    predicts_values,
    same_id,
    wanted,
)
from knowmore.workbench.predicting import Predictor, RowPrediction
from knowmore.workbench.sources import Source, content_id, open_source

# Networks describe a picture again up to the rounding of single precision.
_SAME = 1e-4


@final
@dataclass(frozen=True, eq=False)
class SourceEvaluation:
    """How good a model is on the records of a source.

    answer : of the records that the model does not hold
    held : how many were left out, since the model holds them
    unknown : the labels of classes that the model does not know, whose records count as wrong
    strangers : how many records have such labels
    source : what was read
    """

    answer: ClassEvaluation | ValueEvaluation
    held: int
    unknown: tuple[Any, ...]
    strangers: int
    source: Source

    def as_json(self) -> dict[str, Any]:
        """The evaluation as a dictionary."""
        found = self.answer.as_json() | {"held": self.held}
        if isinstance(self.answer, ClassEvaluation):
            found["unknown_classes"] = [*self.unknown]
        return found


def evaluate_source(
    store: Store, word: str, label: str | None = None, id_: str | None = None
) -> SourceEvaluation:
    """Predict the records of a labelled source, and compare what is said with their labels.

    label, id_ : the names of these columns; None for the usual ones
    """
    predictor = Predictor(store, 0, keep=False)
    source = open_source(word, wanted(store, label, id_))
    check_source(store, source)
    describer = describer_of(store) if source.described else None
    ids: list[Any] = []
    given: list[Any] = []
    places: list[str] = []
    rows: list[Array] = []
    for block in source.blocks():
        if block.labels is None:
            raise InvalidInput(
                f"{word!r} has no labels to compare with. Give a labelled source, such as a "
                f"folder for each class, or name the column: --label COLUMN."
            )
        X, kept = numbers_of(store, source, block.X, block.places, describer)
        names = block.ids or [content_id(one) for one in block.contents()]
        ids += [names[i] for i in kept]
        given += [block.labels[i] for i in kept]
        places += [block.places[i] for i in kept]
        rows += [*X]
    if not rows:
        why = next(iter(source.skipped.values()), "It is empty.")
        raise InvalidInput(f"Nothing in {word!r} can be used. {why}")
    new = ~_held(store, source, ids, rows)
    if not new.any():
        raise InvalidInput(
            f"The model holds all records of {word!r}, so that they cannot test it. Leave the "
            f"source out: each is then predicted by the others."
        )
    truth = labels_of(store, given, places)[new]
    said = predictor(np.array(rows)[new])
    left = len(new) - int(new.sum())
    if predicts_values(store):
        columns = (np.array([getattr(one, name) for one in said]) for name in ("label", "std"))
        return SourceEvaluation(ValueEvaluation(truth, *columns), left, (), 0, source)
    known = [*store.status().classes]
    strange = ~np.isin(truth, known)
    unknown = tuple(np.unique(truth[strange]).tolist())
    return SourceEvaluation(
        _of_classes(truth, said, known), left, unknown, int(strange.sum()), source
    )


def _of_classes(truth: Array, said: list[RowPrediction], known: list[Any]) -> ClassEvaluation:
    """The evaluation of these predictions by a model of these classes."""
    labels = np.array([one.label for one in said])
    names = np.unique(np.concatenate([truth, labels, known]))
    rows, columns = np.searchsorted(names, truth), np.searchsorted(names, labels)
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (rows, columns), 1)
    calibration = None
    if said[0].probability is not None:
        calibration = binned(np.array([one.probability for one in said]), truth == labels)
    return ClassEvaluation(names, counts.sum(axis=1), counts, calibration)


def _held(store: Store, source: Source, ids: list[Any], rows: list[Array]) -> Array:
    """Which records the model holds, (k,).

    In folders the name of a file is its id, and train/crab/1.jpg is not test/crab/1.jpg: there the
    rows must be equal, too.
    """
    held = set(store.ids_.tolist())
    names = [same_id(one, held) for one in ids]
    found = np.array([one in held for one in names])
    if source.in_folders:
        examples = store.examples
        for i in np.flatnonzero(found):
            (other,) = examples.X[examples.rows((names[i],))]
            found[i] = np.allclose(rows[i], other, rtol=_SAME, atol=_SAME * abs(other).max())
    return found
