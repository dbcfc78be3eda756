"""How good a model is, by leave-one-out: each example is predicted by all the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.insight import WITH_VARIANCE, Reliability, reliability
from knowmore.store import Store
from knowmore.workbench.asking import estimator_of, kept_rows
from knowmore.workbench.model import predicts_values

# A probability, or the share of values within one deviation, that is wrong by more is far off.
_OFF = 0.1
# The share of values of a normal distribution within one standard deviation.
_WITHIN_ONE = 0.683


def evaluate(store: Store) -> ClassEvaluation | ValueEvaluation:
    """Leave each example out, and compare what the others say with what it is."""
    estimator = estimator_of(store)
    rows = kept_rows(store, estimator)
    left = estimator.leave_one_out(*rows)
    if predicts_values(store):
        return ValueEvaluation(
            np.asarray(left.labels, dtype=float), left.predicted, np.sqrt(left.variance)
        )
    names, judged = left.names, ~left.silent
    truth, said = (np.searchsorted(names, labels) for labels in (left.labels, left.predicted))
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (truth[judged], said[judged]), 1)
    calibration = None
    if isinstance(estimator, WITH_VARIANCE):
        calibration = reliability(estimator, reference=rows or None)
    return ClassEvaluation(names, np.bincount(truth, minlength=len(names)), counts, calibration)


@final
@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """The confusion and calibration of a classifier.

    names, held : the classes, and how many examples each has, (M,)
    counts : how many examples of each class, in rows, were taken for each, (M, M); without those
        of which the others say nothing
    calibration : probabilities against accuracy, if the model has probabilities
    """

    names: Array
    held: Array
    counts: Array
    calibration: Reliability | None

    @property
    def accuracy(self) -> float:
        """The share of examples that the others recognise."""
        return float(np.trace(self.counts) / self.held.sum())

    def by_class(self) -> list[tuple[Any, int, float, float | None]]:
        """Each class with its number of examples, recall, and precision (None if never said)."""
        right, said = np.diag(self.counts), self.counts.sum(axis=0)
        return [
            (name, int(n), float(r / n), float(r / s) if s else None)
            for name, n, r, s in zip(self.names.tolist(), self.held, right, said, strict=True)
            if n
        ]

    def as_json(self) -> dict[str, Any]:
        """The evaluation as a dictionary."""
        found: dict[str, Any] = {
            "examples": int(self.held.sum()),
            "accuracy": self.accuracy,
            "silent": int(self.held.sum() - self.counts.sum()),
            "classes": [
                dict(zip(("label", "examples", "recall", "precision"), row, strict=True))
                for row in self.by_class()
            ],
            "confusion": {"labels": self.names, "counts": self.counts},
            "calibration": None,
        }
        if self.calibration is not None:
            bins = self.calibration.confidence, self.calibration.accuracy, self.calibration.count
            found["calibration"] = {
                "error": self.calibration.error,
                "bins": [
                    dict(zip(("confidence", "accuracy", "count"), each, strict=True))
                    for each in zip(*(column.tolist() for column in bins), strict=True)
                ],
            }
        return found

    @property
    def is_off(self) -> bool:
        """Whether probabilities are far from the shares that are right."""
        return self.calibration is not None and bool(self.calibration.error > _OFF)


@final
@dataclass(frozen=True, eq=False)
class ValueEvaluation:
    """Targets, predictions and standard deviations of a regressor, (n,) each."""

    truth: Array
    predicted: Array
    std: Array

    def as_json(self) -> dict[str, Any]:
        """The evaluation as a dictionary."""
        if self.truth.ndim != 1:
            raise InvalidInput("Only models of one target are evaluated here. Ask leave_one_out().")
        error = self.predicted - self.truth
        variance = float(np.var(self.truth))
        return {
            "examples": len(self.truth),
            "rmse": float(np.sqrt(np.mean(error**2))),
            "mean_absolute_error": float(np.mean(abs(error))),
            "r2": 1 - float(np.mean(error**2)) / variance if variance else None,
            "within_one_std": float(np.mean(abs(error) <= self.std)),
            "within_two_std": float(np.mean(abs(error) <= 2 * self.std)),
        }

    @property
    def is_off(self) -> bool:
        """Whether far more, or far fewer, values than expected are within one deviation."""
        return abs(float(self.as_json()["within_one_std"]) - _WITHIN_ONE) > _OFF
