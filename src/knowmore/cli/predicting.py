"""What a model says of records: label, probability, deviation, and whether it knows such."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from knowmore.arrays import Array
from knowmore.cli.model import Model
from knowmore.cli.showing import show_json, show_table
from knowmore.cli.sources import Source
from knowmore.errors import NoExamples
from knowmore.insight.asking import WITH_VARIANCE, count_of
from knowmore.insight.novelty import novelty
from knowmore.models import LinearModel, class_probabilities
from knowmore.models.novelty import improbability

# A linear model holds no rows to leave out: so many of those in the file set the threshold.
_SAMPLE = 5000
CLASSES = ("id", "label", "probability", "std", "unknown")
VALUES = ("id", "value", "std")
Row = dict[str, Any]


class Predictor:
    """Answers about rows of numbers.

    rate : the fraction of known examples that may be called unknown; 0: none is
    """

    def __init__(self, model: Model, rate: float) -> None:
        if not len(model.store):
            raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
        self.estimator = model.store.estimator
        self.columns = VALUES if model.is_regression else CLASSES
        self.threshold = None if model.is_regression else _threshold(model, self.estimator, rate)

    def __call__(self, X: Array) -> list[list[Any]]:
        """The answers without ids, one for each row of X (m, d)."""
        estimator = self.estimator
        if self.columns is VALUES:
            values, std = estimator.predict(X, return_std=True)
            return [list(each) for each in zip(values.tolist(), std.tolist(), strict=True)]
        nothing = [None] * len(X)
        if not isinstance(estimator, WITH_VARIANCE):
            return self._by_methods(X)
        model, (rows, _) = estimator.model_, estimator.model_inputs(X)
        mean, variance = model.mean(rows), model.variance(rows)
        P = class_probabilities(mean, variance)
        best = P.argmax(axis=1)
        unknown: list[Any] = nothing
        if self.threshold is not None:
            unknown = (improbability(mean, variance) > self.threshold).tolist()
        columns = model.names[best], P.max(axis=1), np.sqrt(variance)
        return [list(each) for each in zip(*(c.tolist() for c in columns), unknown, strict=True)]

    def _by_methods(self, X: Array) -> list[list[Any]]:
        """The answers of models that are no plain Gaussian processes."""
        estimator, nothing = self.estimator, [None] * len(X)
        labels = estimator.predict(X).tolist()
        if not hasattr(estimator, "predict_proba"):
            return [list(each) for each in zip(labels, nothing, nothing, nothing, strict=True)]
        P, std = estimator.predict_proba(X).max(axis=1), np.sqrt(estimator.predict_variance(X))
        return [list(each) for each in zip(labels, P.tolist(), std.tolist(), nothing, strict=True)]


def _threshold(model: Model, estimator: Any, rate: float) -> float | None:
    """Above this a record is unknown; None if the model cannot tell."""
    if not rate or not isinstance(estimator, WITH_VARIANCE) or count_of(estimator.model_) < 2:
        return None
    reference = None
    examples = model.store.examples
    if isinstance(estimator.model_, LinearModel):
        rows = np.linspace(0, len(examples) - 1, min(len(examples), _SAMPLE)).astype(int)
        reference = (examples.X[rows], examples.labels[rows])
    return novelty(estimator, examples.X[:1], reference=reference).threshold(1 - rate)


def predictions(
    model: Model, source: Source, predictor: Predictor
) -> Iterator[tuple[list[Any], list[list[Any]]]]:
    """The ids of the records in each block, and the answers about them."""
    done = 0
    for block in source.blocks():
        X, kept = model.rows(source, block)
        ids = [*range(done, done + len(block))] if block.ids is None else list(block.ids)
        done += len(block)
        if X is not None:
            yield [ids[i] for i in kept], predictor(X)


def show(found: Iterator[Any], columns: tuple[str, ...], form: str) -> None:
    """Print the answers as they come: as a table, as CSV or as JSON lines."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    widths: list[int] | None = None
    if form == "csv":
        writer.writerow(columns)
    for ids, answers in found:
        rows = [[one, *answer] for one, answer in zip(ids, answers, strict=True)]
        if form == "json":
            for row in rows:
                show_json(dict(zip(columns, row, strict=True)))
        elif form == "csv":
            writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
            sys.stdout.flush()
        else:
            widths = show_table(columns, rows, widths)
            sys.stdout.flush()
