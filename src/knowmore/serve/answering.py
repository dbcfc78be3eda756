"""What a model answers about rows: label, probability, deviation, and whether it knows such."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.base import is_classifier

from knowmore.arguments import is_real, some
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, KnowmoreError, NoExamples
from knowmore.estimators.shell import unnamed
from knowmore.export.description import column_names
from knowmore.insight import novelty
from knowmore.insight.asking import WITH_VARIANCE, count_of
from knowmore.models import LinearModel, class_probabilities
from knowmore.models.novelty import improbability

# A linear model holds no rows to leave out: so many of those in the file set the threshold.
_SAMPLE = 5000
# Rows that are answered before the clock is looked at.
_AT_ONCE = 256


class TooSlow(KnowmoreError):
    """An answer that took longer than it may."""


class Answer(NamedTuple):
    """What is said of one row. Of a regressor the label is the value, or q of them.

    What a kind of model cannot say is None: a least-squares SVM has neither probability nor std.
    """

    label: Any
    probability: float | None
    std: Any
    unknown: bool | None


@final
class Answering:
    """A model at one moment, which answers from any thread.

    store : an open file, or anything with an estimator and examples
    version : the number of the last entry of the file's journal
    rate : the fraction of known examples that may be called unknown; 0: none is
    """

    def __init__(self, store: Any, version: int, rate: float) -> None:
        self.version, self.count = version, len(store.ids_)
        self.estimator = unnamed(store.estimator)
        self.is_classifier = is_classifier(self.estimator)
        self.columns: tuple[str, ...] = ()
        self.threshold: float | None = None
        if self.count:
            self.columns = column_names(store)
            self.threshold = self._threshold(store, rate)

    def _threshold(self, store: Any, rate: float) -> float | None:
        """Above this a row is unknown; None if the model cannot tell."""
        estimator, reference = self.estimator, None
        if not rate or not self.is_classifier or not isinstance(estimator, WITH_VARIANCE):
            return None
        if count_of(estimator.model_) < 2:
            return None
        examples = store.examples
        if isinstance(estimator.model_, LinearModel):
            learnt = np.flatnonzero(examples.weights > 0)
            rows = learnt[np.linspace(0, len(learnt) - 1, min(len(learnt), _SAMPLE)).astype(int)]
            reference = examples.X[rows], examples.labels[rows], examples.weights[rows]
        return novelty(estimator, examples.X[:1], reference=reference).threshold(1 - rate)

    def rows(self, given: Sequence[Any]) -> Array:
        """Rows of numbers, or of numbers by the names of columns, as an array (m, d)."""
        if not self.count:
            raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
        columns = self.columns
        X = [
            [*self._by_name(row, i)] if isinstance(row, dict) else row
            for i, row in enumerate(given)
        ]
        for i, row in enumerate(X):
            if len(row) != len(columns):
                raise InvalidInput(
                    f"Row {i} has {len(row)} numbers, but the model has {len(columns)} features."
                )
        return np.array(X, dtype=float).reshape(len(X), len(columns))

    def _by_name(self, row: dict[str, Any], i: int) -> Iterator[float]:
        if missing := [name for name in self.columns if name not in row]:
            problem = f"Row {i} lacks {some(missing)}."
            raise InvalidInput(f"{problem} Give a number for each feature: {some(self.columns)}.")
        for name in self.columns:
            value = row[name]
            if not is_real(value):
                raise InvalidInput(f"Row {i}, {name!r}: {_shown(value)} is not a number.")
            yield value

    def __call__(self, given: Sequence[Any], seconds: float = np.inf) -> list[Answer]:
        """An answer for each row; raises TooSlow if all take longer than so many seconds."""
        X, deadline = self.rows(given), time.monotonic() + seconds
        found: list[Answer] = []
        for begin in range(0, len(X), _AT_ONCE):
            if time.monotonic() > deadline:
                raise TooSlow(
                    f"{len(X)} rows take longer than {seconds:g} s. Ask about fewer at a time."
                )
            found += self._answers(X[begin : begin + _AT_ONCE])
        return found

    def _answers(self, X: Array) -> list[Answer]:
        estimator, nothing = self.estimator, [None] * len(X)
        if not self.is_classifier:
            values, std = estimator.predict(X, return_std=True)
            columns = values.tolist(), nothing, std.tolist(), nothing
        elif isinstance(estimator, WITH_VARIANCE):
            model, (rows, _) = estimator.model_, estimator.model_inputs(X)
            mean, variance = model.mean(rows), model.variance(rows)
            P, unknown = class_probabilities(mean, variance), nothing
            if self.threshold is not None:
                unknown = (improbability(mean, variance) > self.threshold).tolist()
            best = mean.argmax(axis=1)
            chances = P[np.arange(len(P)), best]
            columns = (
                model.names[best].tolist(),
                chances.tolist(),
                np.sqrt(variance).tolist(),
                unknown,
            )
        elif hasattr(estimator, "predict_proba"):
            P, std = estimator.predict_proba(X), np.sqrt(estimator.predict_variance(X))
            labels = estimator.predict(X).tolist()
            columns = labels, P.max(axis=1).tolist(), std.tolist(), nothing
        else:
            columns = estimator.predict(X).tolist(), nothing, nothing, nothing
        return [Answer(*each) for each in zip(*columns, strict=True)]


def _shown(value: Any) -> str:
    return repr(value)[:50]
