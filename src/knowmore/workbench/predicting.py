"""Predictions for rows: label, probability, deviation, and whether a row is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
from sklearn.base import is_classifier

from knowmore._base import Array, Id, some
from knowmore.errors import NoExamples, warn
from knowmore.estimators import unnamed
from knowmore.examples import Examples
from knowmore.insight import WITH_VARIANCE, Novelty, count_of, novelty
from knowmore.models import class_probabilities, newness_of, values_by, weighed
from knowmore.workbench.describing import novelty_method
from knowmore.workbench.model import check_source, noted, usable_records, wanted
from knowmore.workbench.sources import Source, open_source

if TYPE_CHECKING:
    from knowmore.store import Store

# A linear model holds no rows to leave out: so many rows of the file set the threshold.
_SAMPLE: Final = 5000
# The weights of a linear model that has learnt rows with nothing in common with others.
_LEARNT: Final = (0.0,)
# Rates whose thresholds are kept.
_RATES: Final = 8


@final
class RowPrediction(NamedTuple):
    """The prediction for a row. The label of a regressor is the value, or q values.

    std : the standard deviation of the score of the label (classes are -1 and 1), or of the value

    A field is None if the kind of model lacks it: a least-squares SVM has no std.
    """

    label: Any
    probability: float | None
    std: Any
    unknown: bool | None


class Judge(NamedTuple):
    """Tells rows that are unknown to a classifier, by the best method that its model has.

    threshold : the novelty above which a row is unknown
    weights : of the parts of novelty that a model combines; `_LEARNT`, or empty if it combines none
    method : by which novelty is measured; None: by the best that the model has
    """

    threshold: float
    weights: tuple[float, ...]
    method: str | None = None

    @classmethod
    def of(
        cls, estimator: Any, examples: Examples, rate: float, method: str | None = None
    ) -> Judge | None:
        """The judge of a fitted classifier and its examples; None if nothing can be told.

        rate : the fraction of the examples that may be called unknown
        """
        if not _can_judge(estimator):
            return None
        found, weights = _compared(estimator, examples, method)
        least = found.threshold(1 - rate)
        return cls(least, weights, method) if found.separates(1 - rate) else None

    def unknown(self, model: Any, rows: Array, mean: Array, variance: Array) -> Array:
        """Which rows (m, d) are unknown, (m,), from their means (m, M) and variances (m,)."""
        return np.asarray(self._novelty(model, rows, mean, variance) > self.threshold)

    def _novelty(self, model: Any, rows: Array, mean: Array, variance: Array) -> Array:
        method = self.method or model.best_novelty
        if method == "combined":
            return weighed(model, rows, variance, np.array(self.weights))
        unrelated = model.unrelated(rows)
        if not model.keeps_rows:
            unrelated &= self.weights != _LEARNT
        return values_by(
            method,
            lambda: mean,
            lambda: variance,
            lambda: model.nearest(rows),
            unrelated,
            lambda: model.largest_variance,
        )


@final
class Predictor:
    """A model at one moment, which answers from any thread.

    store : an open file that holds examples
    rate : the fraction of known examples that may be called unknown; 0: none is
    keep : whether what takes long is kept in the file
    """

    def __init__(self, store: Store, rate: float, *, keep: bool) -> None:
        if not len(store):
            raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
        self.is_classifier = bool(is_classifier(store))
        self.judge: Judge | None = None
        if self.is_classifier:
            self.judge = judge_of(store, rate, keep=keep)
        self.temperature = temperature(store, keep=keep) if self.is_classifier else 1.0
        # After these, which follow what others have written.
        self.estimator = unnamed(store.estimator)
        self._blank = _blank_row(store)

    def __call__(self, X: Array) -> list[RowPrediction]:
        """The answers, one for each row of X (m, d)."""
        estimator, nothing = self.estimator, [None] * len(X)
        columns: tuple[list[Any], ...]
        if not self.is_classifier:
            values, std = estimator.predict(X, return_std=True)
            columns = values.tolist(), nothing, std.tolist(), nothing
        else:
            columns = self._by_scores(X)
        return [RowPrediction(*each) for each in zip(*columns, strict=True)]

    def is_blank(self, X: Array) -> Array:
        """Which rows X (m, d) are blank, or a new level, in every column, (m,)."""
        if self._blank is None:
            return np.zeros(len(X), dtype=bool)
        return np.asarray((self._blank == X).all(axis=1))

    def _by_scores(self, X: Array) -> tuple[list[Any], ...]:
        """The columns of answers of a classifier, from one mean and one variance."""
        estimator, nothing = self.estimator, [None] * len(X)
        model, rows = estimator.frozen_model(), estimator.model_inputs(X)
        mean, std, unknown = model.mean(rows), nothing, list[Any](nothing)
        variance = np.zeros(len(X))
        if hasattr(estimator, "predict_variance"):
            variance = model.variance(rows)
            std = np.sqrt(variance).tolist()
        if self.judge is not None:
            unknown = self.judge.unknown(model, rows, mean, variance).tolist()
        # Blanks say nothing, whatever those of other rows went with.
        for i in np.flatnonzero(self.is_blank(X)).tolist():
            unknown[i] = True
        P, best = class_probabilities(mean, variance, self.temperature), mean.argmax(axis=1)
        chances = P[np.arange(len(P)), best]
        return model.names[best].tolist(), chances.tolist(), std, unknown


def _blank_row(store: Store) -> Array | None:
    """The features (d,) of a row without any cell; None if a usual row may have the same."""
    table = store.table
    if table is None or not any(one.blank or one.kind == "category" for one in table.columns):
        return None
    row: Array = table.vectors([(None,) * len(table.columns)])[0]
    return row


def temperature(store: Store, *, keep: bool) -> float:
    """The temperature of the probabilities of a classifier.

    keep : whether to write it to the file, if that is possible
    """
    held, state, kept = store.session.recall("temperature")
    with suppress(LookupError, TypeError, ValueError):
        if 0 < (known := float(kept["temperature"])) < float("inf"):
            return known
    found = float(unnamed(held.estimator).temperature_)
    if keep:
        store.session.remember("temperature", state, {"temperature": found})
    return found


def judge_of(store: Store, rate: float, *, keep: bool) -> Judge | None:
    """The judge of a classifier in a file; None if it cannot tell known rows from unknown ones.

    rate : the fraction of the examples that may be called unknown
    keep : whether to write it to the file, if that is possible
    """
    held, state, kept = store.session.recall("thresholds")
    estimator = unnamed(held.estimator)
    if not rate or not _can_judge(estimator):
        return None
    known: dict[float, float] = {}
    method = novelty_method(noted(store))
    with suppress(LookupError, TypeError, ValueError):
        known = {float(each): float(value) for each, value in kept["known"]}
        weights = tuple(map(float, kept["weights"]))
        if rate in known:
            return Judge(known[rate], weights, method)
    found, weights = _compared(estimator, store.examples, method)
    known |= {rate: found.threshold(1 - rate)}
    # A useless threshold is not cached, so that its warning repeats.
    if keep and found.separates(1 - rate):
        last = list(known.items())[-_RATES:]
        store.session.remember("thresholds", state, {"weights": weights, "known": last})
    return Judge(known[rate], weights, method)


def _can_judge(estimator: Any) -> bool:
    return isinstance(estimator, WITH_VARIANCE) and count_of(estimator.model_) > 1


def _compared(
    estimator: Any, examples: Examples, method: str | None
) -> tuple[Novelty, tuple[float, ...]]:
    """A row beside the examples that are held; and the weights of `Judge`."""
    model, reference = estimator.model_, None
    weights: tuple[float, ...] = ()
    if not model.keeps_rows:
        learnt = np.flatnonzero(examples.weights > 0)
        rows = learnt[np.linspace(0, len(learnt) - 1, min(len(learnt), _SAMPLE)).astype(int)]
        reference = examples.X[rows], examples.labels[rows], examples.weights[rows]
        weights = _LEARNT if model.unrelated(examples.X[learnt]).any() else ()
    elif model.has_gram and method is None:
        weights = tuple(newness_of(model).weights.tolist())
    return novelty(estimator, examples.X[:1], method, reference=reference), weights


def predictions(
    store: Store, predictor: Predictor, words: Sequence[str], id_: str | None
) -> tuple[list[Source], Iterator[tuple[list[Id], list[RowPrediction], list[str] | None]]]:
    """The sources that words name; and for each block their ids, predictions and texts.

    id_ : the name of the column of ids; None for the usual one
    """
    needs = wanted(store, None, id_, labelled=False, gaps=True)
    sources = [open_source(word, needs, streaming=True) for word in words]
    for source in sources:
        check_source(store, source)
    blocks = usable_records(store, sources)

    def answers() -> Iterator[tuple[list[Id], list[RowPrediction], list[str] | None]]:
        for ids, X, texts in blocks:
            yield ids, predictor(X), texts
            if blank := [ids[i] for i in np.flatnonzero(predictor.is_blank(X)).tolist()]:
                warn(
                    f"Blank or new in every column, so that the answer means nothing: "
                    f"{some(blank)}. Fill in what is known, or leave the row out."
                )

    return sources, answers()
