"""Calibrated probabilities: of predictions made with 80 %, four in five are right.

Those of `predict_proba` are calibrated, unless an estimator was made with probability="raw". These
can be calibrated here; and so can a linear model, by rows that are given again.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from knowmore._base import Array, TableAnswer, whole_number
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.estimators import in_classes
from knowmore.insight.asking import (
    WITH_VARIANCE,
    asked,
    check_both,
    inputs,
    last_step,
    left_out,
    reference_rows,
    true_labels,
)
from knowmore.models import class_probabilities

_HOW = "Give rows that it has learnt, reliability(model, reference=(X, y)), or test data."
# More bins than anyone has predictions for them.
_MOST_BINS = 10**6


@final
class Calibrated:
    """A living classifier with calibrated probabilities, which follow its edits.

    The temperature is that of the examples held when a question is asked: the first question after
    an edit computes it again, for about the price of `leave_one_out`. A linear model holds none:
    after an edit it has to be calibrated again.

    estimator : the classifier, which may be edited further
    X, y, sample_weight : for a linear model, rows that it has learnt; they are not kept
    """

    def __init__(
        self, estimator: Any, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> None:
        self.estimator = estimator
        self._known: tuple[weakref.ref[Any], float] | None = None
        self.current(X, y, sample_weight)

    @property
    def temperature(self) -> float:
        """tau: above one if the probabilities were overconfident, below one if underconfident."""
        return self.current()[1]

    @property
    def classes_(self) -> Array:
        """The classes that have examples now or were declared, (M,), sorted."""
        return np.asarray(self.estimator.classes_)

    def predict(self, X: Any) -> Array:
        """The estimator's predictions: a temperature does not change the order of the classes."""
        return np.asarray(self.estimator.predict(X))

    def decision_function(self, X: Any) -> Array:
        """The estimator's scores, to which no temperature applies."""
        return np.asarray(self.estimator.decision_function(X))

    def score(self, X: Any, y: Any) -> float:
        """The accuracy of the predictions for X with respect to y."""
        predicted = self.predict(X)
        return float(np.mean(predicted == true_labels(y, len(predicted), self.classes_)))

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, (m, M), columns as in `classes_`."""
        X = inputs(self.estimator, X)
        gp, temperature = self.current()
        chances = class_probabilities(gp.mean(X), gp.variance(X), temperature)
        return in_classes(last_step(self.estimator), gp.names, chances, 0.0)

    def current(self, *rows: Any) -> tuple[Any, float]:
        """The current model and its temperature. An earlier model is not kept alive for it."""
        gp = asked(self.estimator, WITH_VARIANCE, "Calibration", "predict_variance()")
        known = self._known
        if known is None or known[0]() is not gp:
            how = "Give rows that it has learnt, again after each edit: calibrate(model, X, y)."
            self._known = known = weakref.ref(gp), self._temperature(gp, how, *rows)
        return gp, known[1]

    def _temperature(self, gp: Any, how: str, *rows: Any) -> float:
        if not gp.keeps_rows or any(one is not None for one in rows):
            return left_out(self.estimator, gp, how, *rows).trial().temperature
        return float(gp.temperature)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: with the temperature, unless the model has changed since."""
        model, known = self.estimator.model_, self._known
        held = model if known is not None and known[0]() is model else None
        return {"estimator": self.estimator, "model": held, "temperature": known and known[1]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.estimator, model = state["estimator"], state["model"]
        self._known = None if model is None else (weakref.ref(model), state["temperature"])

    def __repr__(self) -> str:
        try:
            state = f"temperature {self.temperature:.4g}"
        except NoExamples:
            state = "no examples are held"
        except InvalidInput:
            state = "the model has changed since, calibrate it again"
        return f"Calibrated({self.estimator!r}): {state}"


def calibrate(model: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None) -> Calibrated:
    """Calibrated probabilities of a fitted Gaussian-process classifier, from leave-one-out.

    It is a GPClassifier, ForestGPClassifier or LinearGPClassifier. The others judge each example as
    they would a new row; it counts once, whatever its weight. The answer is not frozen: it asks the
    estimator, and so follows its edits.

    Probabilities are calibrated without it, unless the estimator has probability="raw"; those of a
    LinearGPClassifier by what its sums let expect, and here by rows.

    X, y, sample_weight : only for a LinearGPClassifier that keeps no rows: rows that it has
        learnt, all or some. They are not kept: after an edit, calibrate again.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier(RBF(1.0), 0.1).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> calibrated = calibrate(clf)
    >>> calibrated.predict_proba([[1.4]]).round(2)
    array([[0.74, 0.26]])
    >>> clf = clf.relabel([1], ["b"])
    >>> calibrated.predict_proba([[1.4]]).round(2)
    array([[0.12, 0.88]])
    """
    return Calibrated(model, X, y, sample_weight)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Reliability(TableAnswer):
    """Predicted probabilities against accuracy, in bins of equal width; empty bins are left out.

    confidence, accuracy, count : (b,), the mean probability of the predicted class, the fraction
        that is right, and the number of predictions
    error : the expected calibration error, the mean of |confidence - accuracy| over predictions
    """

    confidence: Array
    accuracy: Array
    count: Array

    # All bins, unless someone asked for very many.
    _shown: ClassVar[tuple[int, int]] = 30, 0

    @property
    def error(self) -> float:
        """sum_b count_b |confidence_b - accuracy_b| / sum_b count_b."""
        return float(self.count @ abs(self.confidence - self.accuracy) / self.count.sum())

    def _columns(self) -> dict[str, Array]:
        return {"confidence": self.confidence, "accuracy": self.accuracy, "count": self.count}

    def _summary(self) -> str:
        return f"expected calibration error {self.error:.4f} of {self.count.sum()} predictions"


def reliability(
    model: Any, X: Any = None, y: Any = None, *, bins: int = 15, reference: Any = None
) -> Reliability:
    """How well the probabilities of a classifier match its accuracy.

    X (m, d), y (m,): test data, for any classifier that has `predict_proba`; default:
    leave-one-out, for a GPClassifier, a ForestGPClassifier, a LinearGPClassifier or a calibrated
    one.
    reference : only for leave-one-out of a LinearGPClassifier that keeps no rows: (X, y) or
        (X, y, sample_weight), rows that it has learnt, all or some

    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [1.0], [5.0], [6.0]], ["a", "a", "b", "b"])
    >>> reliability(clf, [[0.5], [2.0], [5.5]], ["a", "b", "b"], bins=2)
    Reliability: expected calibration error 0.2338 of 3 predictions
    confidence  accuracy  count
        0.9004    0.6667      3
    """
    bins = whole_number("bins", bins, 1, _MOST_BINS)
    check_both(X, y)
    rows = reference_rows(reference)
    if X is not None and rows:
        raise InvalidInput("Test data and a reference were given. Give one of them.")
    if X is None:
        if isinstance(model, Calibrated):
            estimator, (gp, temperature) = model.estimator, model.current()
        else:
            estimator, gp = model, asked(model, WITH_VARIANCE, "Reliability", "predict_variance()")
            temperature = last_step(model).model_temperature(gp)
        left = left_out(estimator, gp, _HOW, *rows)
        P = class_probabilities(left.trial().completed, left.variance, temperature)
        classes, labels = left.names, left.labels
    elif isinstance(model, type) or not hasattr(model, "predict_proba"):
        raise InvalidType(f"{type(model).__name__} has no predict_proba. Give a GPClassifier.")
    else:
        P, classes = model.predict_proba(X), model.classes_
        labels = true_labels(y, len(P), classes)
    return binned(P.max(axis=1), np.asarray(classes)[P.argmax(axis=1)] == labels, bins)


def binned(confidence: Array, right: Array, bins: int = 15) -> Reliability:
    """The probabilities of predictions (m,), and whether they are right (m,), in bins."""
    bin_ = np.minimum((confidence * bins).astype(int), bins - 1)
    filled, which, count = np.unique(bin_, return_inverse=True, return_counts=True)
    sums = [np.bincount(which, values, len(filled)) for values in (confidence, right)]
    return Reliability(sums[0] / count, sums[1] / count, count)
