"""From an estimator and a user's arguments to a frozen model and clean arrays.

Everything that depends on the kind of the estimator or model is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from knowmore.arguments import a_type, is_real, one_each
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.estimators import GPClassifier, GPRegressor, LSSVMClassifier, NPlusOneClassifier
from knowmore.estimators.pipeline import LivingPipeline
from knowmore.models import KernelModel

# Which estimators a question is for.
GAUSSIAN = (GPClassifier, GPRegressor)
TUNABLE = (*GAUSSIAN, LSSVMClassifier)
EXPLAINABLE = (*TUNABLE, NPlusOneClassifier)


def asked(
    estimator: Any, kinds: tuple[type[Any], ...], about: str = "", instead: str = ""
) -> KernelModel:
    """The frozen model of a fitted estimator, or pipeline, of one of these kinds.

    about : if given, the question is about classes, and this names it in the error for a regressor
    instead : what to ask a regressor for
    """
    last, got = _last_step(estimator), type(estimator).__name__
    if not isinstance(last, kinds):
        names = [kind.__name__ for kind in kinds if not about or kind is not GPRegressor]
        hint = " Ask knowmore.living(pipeline)." if isinstance(estimator, Pipeline) else ""
        which = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        raise InvalidType(f"This question is for a fitted {which}, not {got}.{hint}")
    model: KernelModel = last.model_
    if len(model.examples) == 0:
        raise NoExamples("The model holds no examples: all were removed. Add some before asking.")
    if about and not is_classifier(estimator):
        raise InvalidInput(
            f"{about} is about classes, but {a_type(estimator)} has none. Ask for {instead}."
        )
    return model


def _last_step(estimator: Any) -> Any:
    return estimator.estimator if isinstance(estimator, LivingPipeline) else estimator


# -- what differs between the models -------------------------------------------------------------


def removal_weights(model: KernelModel, rows: Array) -> Array:
    """P_is / P_ss for each example s in `rows` (k,), (n, k).

    Without s the coefficients of the others are A_i - A_s P_is / P_ss (block inversion). With a
    bias P is the leading block of the inverse of the bordered matrix.
    """
    at = np.arange(len(rows))
    E = np.zeros((len(model.examples), len(rows)))
    E[rows, at] = 1
    P, _ = model.eliminated(E, model.covariance.factor.solve(E).astype(float))
    return np.asarray(P / P[rows, at])


def is_gaussian(estimator: Any) -> bool:
    """Is the estimator a Gaussian process, with a marginal likelihood?"""
    return isinstance(_last_step(estimator), GAUSSIAN)


def noise_parameter(estimator: Any, noise: float) -> tuple[str, float, float]:
    """The parameter of the estimator that sets its noise, its value now, and that for `noise`.

    A least-squares SVM has C = 1 / noise; a C that the user gave is not rounded there and back.
    """
    now = estimator.model_.covariance.noise
    if is_gaussian(estimator):
        return "noise", now, noise
    C = float(estimator.C if is_real(estimator.C) else estimator.C_)
    return "C", C, C if noise == now else 1 / noise


# -- arguments -----------------------------------------------------------------------------------


def inputs(estimator: Any, X: Any, name: str = "X") -> tuple[Array, Array | None]:
    """X as the model takes it, (m, d), and its side information; checked."""
    shape = (len(X),) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    if shape[:1] == (0,):
        raise InvalidInput(f"{name} is empty. Give at least one row to ask about.")
    rows: tuple[Array, Array | None] = estimator.model_inputs(X)
    return rows


def check_both(X: Any, y: Any) -> None:
    """Raise InvalidInput if only one of the test data X and y is given."""
    if (X is None) != (y is None):
        raise InvalidInput("Of the test data X and y only one was given. Give both, or neither.")


def true_labels(y: Any, m: int, classes: Any) -> Array:
    """y as the labels of m rows, (m,), that can be compared to the classes."""
    labels, known = np.asarray(y), np.asarray(classes)
    one_each("y", labels.shape, m)
    is_text = [all(isinstance(one, str) for one in each.tolist()) for each in (labels, known)]
    if m and is_text[0] != is_text[1]:
        raise InvalidInput(
            f"The labels in y, such as {labels.tolist()[0]!r}, are not of the type of the model's "
            f"classes, such as {known.tolist()[0]!r}. Convert y to the type of the classes."
        )
    return labels


def generator(random_state: Any) -> np.random.Generator:
    """Random numbers from a seed."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        remedy = "Give a whole number of at least 0, or None."
        raise InvalidInput(f"random_state={random_state!r} is not a seed. {remedy}") from error
