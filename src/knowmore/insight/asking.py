"""The way from an estimator and what was handed in with it to a frozen model and clean arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.models import GP, LSSVM, Model, NPlusOne
from knowmore.tables import index_of

AnyModel = GP | LSSVM | NPlusOne

# The estimators in front of each kind of model.
_FACES: dict[type, tuple[str, ...]] = {
    GP: ("GPClassifier", "GPRegressor"),
    LSSVM: ("LSSVMClassifier",),
    NPlusOne: ("NPlusOneClassifier",),
}


def asked(estimator: Any, *kinds: type[Any], classes: bool = False) -> Any:
    """The frozen model behind a fitted estimator, one of these kinds, ready for a question.

    classes : only classifiers can be asked; what to say to others of that kind is `of_classes`'s
    """
    name = type(estimator).__name__
    model = getattr(type(estimator), "model_", None) and estimator.model_
    if not isinstance(model, kinds):
        known = (face for kind in kinds for face in _FACES[kind])
        *most, last = (face for face in known if not (classes and face.endswith("Regressor")))
        faces = f"{', '.join(most)} or {last}" if most else last
        hint = " Ask knowmore.living(pipeline)." if isinstance(estimator, Pipeline) else ""
        raise InvalidType(
            f"This question is for a fitted {faces}, but it was put to an object of type {name}."
            f"{hint}"
        )
    if len(model.examples) == 0:
        raise NoExamples(
            f"This {name} holds no examples: all were removed. Add some before asking."
        )
    return model


def machine(model: AnyModel) -> LSSVM:
    """The model as one least-squares SVM, so that a closed form is written once for all.

    Without a bias that is a Gaussian process; N+1 classes are one on shifted targets.
    """
    match model:
        case GP():
            return LSSVM(model, bias=False)
        case NPlusOne():
            return model.shifted
        case LSSVM():
            return model


def unseen(model: Model) -> tuple[Array, Array]:
    """Scores (n, M) and variances of the examples had the model never seen them.

    The variances are (n,), or (n, M) if the columns have units. Leave-one-out counts the noise
    sigma^2 / w that an example of weight w has itself; a new row weighs one.
    """
    scores, variance = model.leave_one_out()
    rest = model.targets.rest()
    noise, w = np.asarray(model.covariance.noise), model.covariance.weights
    if rest is not None:
        noise, w = noise * rest.scale**2, w[:, None]
    return scores, np.maximum(variance + noise * (1 - 1 / w), noise)


def inputs(estimator: Any, X: Any, name: str = "X") -> Array:
    """X as the model has it, (m, d): finite, with the features that the estimator learnt from."""
    shape = (len(X),) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    if shape[:1] == (0,):
        raise InvalidInput(f"{name} is empty. Give at least one row to ask about.")
    return np.asarray(estimator._inputs(X, reset=False))


def row_names(X: Any, m: int) -> Array:
    """What the m rows of X are called: by their index if it is a table of pandas, else 0, 1, ..."""
    index = index_of(X)
    return np.arange(m) if index is None else np.asarray(index.to_flat_index())


def true_labels(y: Any, m: int, classes: Any) -> Array:
    """y as the labels of m rows, (m,), that can be compared to the classes."""
    labels, known = np.asarray(y), np.asarray(classes)
    if labels.shape != (m,):
        raise InvalidInput(f"X has {m} rows, but y has shape {labels.shape}. Give one label each.")
    is_text = [all(isinstance(one, str) for one in each.tolist()) for each in (labels, known)]
    if m and is_text[0] != is_text[1]:
        words = ["text" if text else "not text" for text in is_text]
        raise InvalidInput(
            f"The labels in y are {words[0]}, such as {labels[:1].tolist()[0]!r}, but the classes "
            f"of the model are {words[1]}, such as {known[:1].tolist()[0]!r}: no prediction could "
            f"be right. Convert y to what the model was fitted with."
        )
    return labels


def generator(random_state: Any) -> np.random.Generator:
    """Random numbers from a seed."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"random_state={random_state!r} is no seed. Give a whole number that is not below "
            f"zero, or None."
        ) from error


def of_classes(estimator: Any, asking: str, instead: str) -> None:
    """Complain unless the estimator tells classes apart."""
    if not is_classifier(estimator):
        raise InvalidInput(
            f"{asking} is about classes, but a {type(estimator).__name__} has none. "
            f"Ask for {instead}."
        )
