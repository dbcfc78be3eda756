"""The way from an estimator and what was handed in with it to a frozen model and clean arrays."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import validate_data

from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.models import GP

Array = npt.NDArray[Any]


def asked(estimator: Any) -> GP:
    """The Gaussian process behind a fitted estimator, ready for a question."""
    name = type(estimator).__name__
    model = getattr(type(estimator), "model_", None) and estimator.model_
    if not isinstance(model, GP):
        raise InvalidType(
            f"A question was put to a {name}, which is no Gaussian process of knowmore. "
            f"Give a fitted GPClassifier or GPRegressor."
        )
    if len(model.examples) == 0:
        raise NoExamples(
            f"This {name} holds no examples: all were removed. Add some before asking."
        )
    return model


def inputs(estimator: BaseEstimator, X: Any, name: str = "X") -> Array:
    """X as finite float64 (m, d), with the features that the estimator learnt from."""
    if hasattr(X, "__len__") and len(X) == 0:
        raise InvalidInput(f"{name} is empty. Give at least one row to ask about.")
    try:
        return np.asarray(validate_data(estimator, X, reset=False, dtype=np.float64))
    except TypeError as error:
        raise InvalidType(str(error)) from error
    except ValueError as error:
        raise InvalidInput(str(error)) from error


def choice(name: str, value: Any, known: Collection[str]) -> None:
    """Complain unless `value` is one of the words that are known."""
    if value not in known:
        words = ", ".join(map(repr, known))
        raise InvalidInput(f"{name}={value!r} is not known. Choose one of {words}.")


def of_classes(estimator: Any, asking: str, instead: str) -> None:
    """Complain unless the estimator tells classes apart."""
    if not is_classifier(estimator):
        raise InvalidInput(
            f"{asking} is about classes, but a {type(estimator).__name__} has none. "
            f"Ask for {instead}."
        )
