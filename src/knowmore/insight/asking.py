"""From an estimator and a user's arguments to a frozen model and clean arrays.

Everything that depends on the kind of the estimator or model is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.pipeline import Pipeline

from knowmore._base import Array, Id, a_type, as_array, is_real, one_each
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.estimators import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LivingPipeline,
    LSSVMClassifier,
    group_names,
    names_in,
    unnamed,
)
from knowmore.examples import Examples, among
from knowmore.linalg import UNIT, eliminated
from knowmore.models import Forest, KernelModel, LinearLoo, LinearModel, Reached, Unseen, unseen
from knowmore.transfer import NPlusOneClassifier

# Which estimators a question is for.
LINEAR = (LinearGPClassifier, LinearGPRegressor)
GAUSSIAN = (GPClassifier, GPRegressor)
FORESTS = (ForestGPClassifier, ForestGPRegressor)
WITH_VARIANCE = (*GAUSSIAN, *LINEAR, *FORESTS)
TUNABLE = (*GAUSSIAN, LSSVMClassifier)
EXPLAINABLE = (*TUNABLE, NPlusOneClassifier, *LINEAR, *FORESTS)
GROUNDED = (*TUNABLE, NPlusOneClassifier, *FORESTS)


def asked(
    estimator: Any,
    kinds: tuple[type[Any], ...],
    about: str = "",
    instead: str = "",
    *,
    linear: str = "",
    forest: str = "",
) -> Any:
    """The frozen model of a fitted estimator, or pipeline, of one of these kinds.

    about : if given, the question is about classes, and this names it in the error for a regressor
    instead : what to ask a regressor for
    linear, forest : what to do with a linear model or a forest that is not of these kinds
    """
    last = last_step(estimator)
    got = type(last).__name__
    if not isinstance(last, kinds):
        names = [k.__name__ for k in kinds if not (about and issubclass(k, RegressorMixin))]
        other = "Ask knowmore.living(pipeline)." if isinstance(estimator, Pipeline) else ""
        # Files are a layer above: known by name.
        other = "Ask about what it holds: store.estimator." if got == "Store" else other
        hints = ((LINEAR, linear), (FORESTS, forest), (object, other))
        hint = next(hint for kind, hint in hints if isinstance(last, kind))
        which = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        raise InvalidType(f"This question is for a fitted {which}, not {got}. {hint}".rstrip())
    model = last.model_
    if count_of(model) == 0:
        raise NoExamples("The model holds no examples: all were removed. Add some before asking.")
    if about and not is_classifier(estimator):
        raise InvalidInput(
            f"{about} is about classes, but {a_type(last)} has none. Ask for {instead}."
        )
    return model


def has_grounds(estimator: Any) -> bool:
    """Whether `grounds` is for this fitted estimator: a sum over examples, in closed form."""
    model = last_step(estimator).model_
    return bool(model.keeps_rows) and getattr(model, "loss", "squared") == "squared"


def last_step(estimator: Any) -> Any:
    """The estimator, or the one at the end of a living pipeline."""
    return estimator.estimator if isinstance(estimator, LivingPipeline) else estimator


# -- what differs between the models -------------------------------------------------------------


def count_of(model: KernelModel | LinearModel | Forest) -> int:
    """The number of examples or rows that a frozen model has learnt from."""
    return model.count


def left_out(estimator: Any, model: Any, how: str, *rows: Any, groups: Any = None) -> Unseen:
    """The examples of the frozen model of an estimator, each predicted as a new row by the others.

    how : how to give rows to a linear model that keeps none, for the error
    rows : these, if any: X, y, their weights, their ids
    groups : (n,), of the examples that count, or rows; those of one group are left out together
    """
    X, y, weights, ids = (*rows, None, None, None, None)[:4]
    last = last_step(estimator)
    if last.editable_.keeps_rows:
        if any(one is not None for one in rows):
            kind = type(last).__name__
            raise InvalidInput(f"{kind} holds its own examples. Leave out X and y, or reference.")
        if (kept := kept_rows(last, model)) is None:
            return unseen(model, groups)
        estimator = unnamed(last)
        X, y, weights, ids = kept.X, kept.labels, kept.weights, kept.names
    if X is None or y is None:
        raise InvalidInput(f"A linear model holds no rows, so it has none to leave out. {how}")
    left = estimator.leave_one_out(X, y, weights, groups)
    groups = None if groups is None else group_names(groups, tuple(range(len(left.ids))))
    scores, variance, numbers = left.scores, left.variance, left.ids
    if ids is not None:
        one_each("ids", (len(ids),), len(numbers))
        numbers = np.array(ids, dtype=None if len({*map(type, ids)}) == 1 else object)
    if weights is not None:
        # A new row weighs one, and has the noise sigma^2 instead of sigma^2 / w.
        w = np.rint(np.asarray(weights, dtype=float) * UNIT) / UNIT
        if groups is None:
            # Alone: 1 / (w (1 - wh)) of `LinearLoo.scores` becomes 1 + h / (1 - wh).
            h = model.leverage(model.grid.rounded(estimator.model_inputs(X)))
            variance = (variance.T * w * (1 + h - w * h)).T
        else:
            more = np.outer(1 - 1 / w, model.noise * model.scale**2)
            variance = variance + (more if variance.ndim == 2 else more[:, 0])
    classes = model.sums.groups if model.classes else {}
    counts = np.array([classes[one].rows if classes else 0 for one in left.names.tolist()])
    class_support = np.zeros(len(scores))
    if model.classes:
        # What all say is one with an intercept, and about one without.
        class_support = (scores[left.labels[:, None] == left.names] + 1) / 2
    found = Unseen(
        numbers,
        left.labels,
        left.names,
        scores,
        variance,
        left.silent,
        counts,
        class_support,
        groups=groups,
    )
    if not model.classes:
        return found
    w = np.ones(len(scores)) if weights is None else w
    rows = estimator.model_inputs(X)
    return replace(found, distance=LinearLoo(model).nearest(rows, found.codes, w, groups))


def groups_of(estimator: Any, model: Any, groups: Any) -> Array | None:
    """The groups of the examples that count, (n,), from a name for each that is held."""
    held = last_step(estimator).editable_.examples
    names, kept = group_names(groups, held.names), kept_rows(estimator, model)
    if names is None:
        return None
    counted = held.counted if kept is None else kept
    names = names[among(held.serials, counted.serials)]
    if (names == names[:1]).all():
        raise InvalidInput(
            "groups has one name, and a group is left out as a whole, so no example is left to "
            "compare it with. Give each group its own name."
        )
    return names


def kept_rows(estimator: Any, model: Any) -> Examples | None:
    """Rows that are kept beside a linear model, or None.

    The earlier steps of a pipeline have transformed them.
    """
    value = last_step(estimator).editable_
    return value.counted if value.keeps_rows and not model.keeps_rows else None


def reference_rows(reference: Any) -> tuple[Any, ...]:
    """Rows that a linear model has learnt, (X, y) or (X, y, sample_weight); none if it is None."""
    given = () if reference is None else reference
    if not isinstance(given, (tuple, list)) or len(given) not in (0, 2, 3):
        raise InvalidInput("reference must be a pair, (X, y), or (X, y, sample_weight).")
    return tuple(given)


def processes(model: Any, X: Array, ids: Sequence[Id] | None = None) -> list[Reached]:
    """The Gaussian processes whose mean the model is, each with the rows of X (m, d) it answers.

    A kernel model is one; a forest has several lists, one for each tree, of those of its leaves.

    ids : those of the rows, if they are examples of the model
    """
    if model.one_covariance:
        return [[(model, np.arange(len(X)))]]
    found: list[Reached] = model.answering(X, ids)
    return found


def removal_weights(model: KernelModel, rows: Array) -> Array:
    """P_is / P_ss for each example s in `rows` (k,), (n, k).

    Without s the coefficients of the others are A_i - A_s P_is / P_ss (block inversion). With a
    bias P is the leading block of the inverse of the bordered matrix.
    """
    at = np.arange(len(rows))
    E = np.zeros((len(model.examples), len(rows)))
    E[rows, at] = 1
    P, _ = eliminated(model.border, E, model.covariance.factor.solve(E).astype(float))
    return np.asarray(P / P[rows, at])


def is_gaussian(estimator: Any) -> bool:
    """Is the estimator a Gaussian process, with a marginal likelihood?"""
    return isinstance(last_step(estimator), GAUSSIAN)


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


def inputs(estimator: Any, X: Any, name: str = "X") -> Array:
    """X as the model takes it, (m, d); checked."""
    shape = (len(X),) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    if shape[:1] == (0,):
        raise InvalidInput(f"{name} is empty. Give at least one row to ask about.")
    rows: Array = estimator.model_inputs(X)
    return rows


def feature_names(estimator: Any, D: int) -> Array:
    """The names of the D features of the last step, or their numbers."""
    names: Any = names_in(last_step(estimator))
    if names is None and isinstance(estimator, LivingPipeline) and len(estimator.pipeline) > 1:
        # A step may have no names, or may want names of columns that it was not fitted to.
        with suppress(AttributeError, ValueError):
            names = estimator.pipeline[:-1].get_feature_names_out()
    return np.arange(D) if names is None else np.array(names, dtype=object)


def check_both(X: Any, y: Any) -> None:
    """Raise InvalidInput if only one of the test data X and y is given."""
    if (X is None) != (y is None):
        raise InvalidInput("Of the test data X and y only one was given. Give both, or neither.")


def true_labels(y: Any, m: int, classes: Any) -> Array:
    """y as the labels of m rows, (m,), that can be compared to the classes."""
    labels, known = as_array("y", y), np.asarray(classes)
    one_each("y", labels.shape, m)
    labels = labels.astype(object) if labels.dtype.kind == "V" else labels
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
