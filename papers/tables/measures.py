"""How well a model does in one split, and how long it takes.

Times are of the processor, not of the clock: all is computed in one thread, so that programs that
run beside it count little.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, TypeVar

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict

from papers.arrays import Array
from papers.data import Split

T = TypeVar("T")

ACCURACY, BALANCED_ACCURACY, LOG_LOSS = "accuracy", "balanced accuracy", "log loss"
R2, DENSITY, ONE, TWO = "R2", "log density", "within one deviation", "within two deviations"
FIT, PREDICT = "seconds to fit", "seconds to predict"
_FOLDS = 5
# No probability is less: one that is certain of what is wrong would be infinitely far off.
_LEAST = 1e-6


def classified(model: Any, split: Split) -> dict[str, float]:
    """Accuracies, log loss and times of a classifier that is not fitted.

    A model without probabilities gets them by calibration, whose time does not count.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, fit = _clocked(lambda: model.fit(split.X, split.y))
        answers, predict = _clocked(lambda: model.predict(split.X_test))
        likely = model if hasattr(model, "predict_proba") else _calibrated(model, split)
        P = likely.predict_proba(split.X_test)
    right = answers == split.y_test
    codes = np.unique(split.y_test, return_inverse=True)[1]
    recalls = np.bincount(codes, right) / np.bincount(codes)
    return {
        ACCURACY: float(right.mean()),
        BALANCED_ACCURACY: float(recalls.mean()),
        LOG_LOSS: log_loss(P, np.searchsorted(model.classes_, split.y_test)),
        FIT: fit,
        PREDICT: predict,
    }


def log_loss(P: Array, codes: Array) -> float:
    """The mean of -log of the probability of each row's class, P (n, C), codes (n,).

    >>> log_loss(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0]))
    0.347
    """
    P = np.clip(P, _LEAST, 1.0)
    likely = P[np.arange(len(codes)), codes] / P.sum(axis=1)
    return float(-np.log(likely).mean())


def _calibrated(model: Any, split: Split) -> Any:
    """Probabilities from the scores of folds, of the settings that were chosen."""
    folds = min(_FOLDS, int(np.unique(split.y, return_counts=True)[1].min()))
    fresh = CalibratedClassifierCV(clone(_chosen(model)), cv=folds, ensemble=False)
    return fresh.fit(split.X, split.y)


def regressed(model: Any, split: Split) -> dict[str, float]:
    """R2, log density and times of a regressor that is not fitted; of those that have
    deviations, how much is within one and two of them.

    A model without deviations has that of its errors in folds. Densities are in units of the
    deviation of the values that were learnt.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, fit = _clocked(lambda: model.fit(split.X, split.y))
        answers, predict = _clocked(lambda: model.predict(split.X_test))
        try:
            _, deviations = model.predict(split.X_test, return_std=True)
        except TypeError:
            deviations = None
        own = deviations is not None
        if not own:
            found = cross_val_predict(clone(_chosen(model)), split.X, split.y, cv=_FOLDS)
            deviations = np.full(len(answers), np.sqrt(np.mean((found - split.y) ** 2)))
    error = split.y_test - answers
    density = norm.logpdf(error, scale=deviations) + np.log(split.y.std())
    far = abs(error) / deviations
    return {
        R2: float(1 - (error**2).sum() / ((split.y_test - split.y_test.mean()) ** 2).sum()),
        DENSITY: float(density.mean()),
        **({ONE: float((far <= 1).mean()), TWO: float((far <= 2).mean())} if own else {}),
        FIT: fit,
        PREDICT: predict,
    }


def _chosen(model: Any) -> Any:
    """The model with the settings that it chose, which are not to be chosen again."""
    if isinstance(model, GridSearchCV):
        return model.best_estimator_
    if isinstance(model, TransformedTargetRegressor):
        inner = _chosen(model.regressor_)
        return TransformedTargetRegressor(inner, transformer=model.transformer)
    return model


def _clocked(act: Callable[[], T]) -> tuple[T, float]:
    """The value of `act()`, and the seconds that the processor took for it."""
    began = process_time()
    found = act()
    return found, process_time() - began
