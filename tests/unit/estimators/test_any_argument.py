"""Models for many rows: any argument at all gives a finite answer, or an error of the library.

The catalogue is the product of the public functions of one argument and of values that nobody means
to give. (`get_feature_names_out` is scikit-learn's own, and raises its errors.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from anything import GRID, SUMS, X, Y, assert_sound
from sklearn.gaussian_process.kernels import RBF

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    Grid,
    IntersectionMap,
    Landmarks,
    LinearGPClassifier,
    LinearGPRegressor,
)
from knowmore.linalg import Sums

LINEAR = LinearGPClassifier(), LinearGPRegressor()
FORESTS = ForestGPClassifier(RBF(), capacity=4), ForestGPRegressor(RBF(), capacity=4)
MAPS = Landmarks(RBF()), IntersectionMap()
FUNCTIONS = {
    "Grid": Grid,
    "Grid-bits": partial(Grid, [0, 0]),
    "Grid.covering": Grid.covering,
    "Grid.covering-bits": partial(Grid.covering, X),
    "Grid.reaching": Grid.reaching,
    "Grid.reaching-bits": partial(Grid.reaching, [1.0]),
    "Grid.multiples": GRID.multiples,
    "Grid.rounded": GRID.rounded,
    "Grid+": GRID.__add__,
    "Grid==": GRID.__eq__,
    "Sums.of-grid": lambda value: Sums.of(value, X),
    "Sums.of": partial(Sums.of, GRID),
    "Sums.of-tables": lambda value: Sums.of(GRID, (X[:, :1], value)),
    "Sums.of-keys": partial(Sums.of, GRID, X),
    "Sums.of-weights": partial(Sums.of, GRID, X, None),
    "Sums+": SUMS.__add__,
    "Sums-": SUMS.__sub__,
    "Sums==": SUMS.__eq__,
    "Sums.weights": lambda value: SUMS.weights([value]),
    "Sums.cross": lambda value: SUMS.cross([value]),
}


def parameter(estimator, name):
    return lambda value: deepcopy(estimator).set_params(**{name: value}).fit(X, Y)


def argument(estimator, verb, *before, name=None, after=()):
    """The verb as a function of one of its arguments, by position or by name."""

    def call(value):
        method = getattr(deepcopy(estimator), verb)
        return method(*before, **{name: value}) if name else method(*before, value, *after)

    return call


def methods(estimator) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Each parameter, and each argument of each verb of a fitted estimator."""
    of = partial(argument, estimator)
    for name in estimator.get_params(deep=False):
        yield f"({name})", parameter(estimator, name)
    questions = "predict", "predict_variance", "decision_function", "predict_proba", "transform"
    for verb in (*questions, "rounded", "remove", "merge", "split"):
        if hasattr(estimator, verb):
            yield f".{verb}", of(verb)
    if isinstance(estimator, MAPS_TYPES):
        yield ".fit", of("fit")
        if isinstance(estimator, Landmarks):
            yield ".fit-ids", of("fit", X, name="ids")
            yield ".forget", of("forget")
            yield ".forget-ids", of("forget", name="ids")
        return
    linear = isinstance(estimator, LinearGPClassifier | LinearGPRegressor)
    verbs = ("forget", "leave_one_out") if linear else ("add",)
    for verb in ("fit", "partial_fit", *verbs):
        yield f".{verb}-X", of(verb, after=(Y,))
        yield f".{verb}-y", of(verb, X)
        yield f".{verb}-weights", of(verb, X, Y, name="sample_weight")
    yield ".leave_one_out-groups", of("leave_one_out", *((X, Y) if linear else ()), name="groups")
    if not linear:
        yield ".fit-ids", of("fit", X, Y, name="ids")
        yield ".add-ids", of("add", X, Y, name="ids")
        yield ".relabel-ids", of("relabel", after=(Y,))
        yield ".relabel-y", of("relabel", range(12))
        yield ".replace-ids", of("replace", after=(X,))
        yield ".replace-X", of("replace", range(12))
    if hasattr(estimator, "classes_"):
        for name in ("unknown", "rate"):
            yield f".predict-{name}", of("predict", X, name=name)
        yield ".partial_fit-classes", of("partial_fit", X, Y, name="classes")
    else:
        yield ".predict-return_std", of("predict", X, name="return_std")


MAPS_TYPES = tuple(map(type, MAPS))
ENTRIES = FUNCTIONS | {
    f"{type(estimator).__name__}{name}": call
    for estimator in (*LINEAR, *FORESTS, *MAPS)
    for name, call in methods(estimator.fit(X, Y))
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_any_argument_is_answered_or_refused_in_words(entry):
    assert_sound(ENTRIES[entry])
