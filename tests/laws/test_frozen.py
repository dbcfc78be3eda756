"""Arrays that a model shows are read-only, also in a copy and in a pickle."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import is_dataclass
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
)
from knowmore._base import read_only
from knowmore.models import Transfer

rng = np.random.default_rng(7)
X, Y = rng.normal(size=(24, 3)), np.arange(24) % 3
SOURCE = LSSVMClassifier(RBF(1.0)).fit(X[Y < 2], Y[Y < 2])
SUPPORTS = {"one": X[:5] + 0.1, "two": X[5:9] + 0.3}
LIVING = {
    "GPClassifier": (GPClassifier(RBF(1.0)), Y),
    "GPClassifier-inverse": (GPClassifier(RBF(1.0), solver="inverse"), Y),
    "GPRegressor": (GPRegressor(RBF(1.0)), X[:, :2]),
    "ForestGPClassifier": (ForestGPClassifier(RBF(1.0), capacity=8, n_trees=2), Y),
    "ForestGPRegressor": (ForestGPRegressor(RBF(1.0), capacity=8), X[:, :2]),
    "LSSVMClassifier": (LSSVMClassifier(RBF(1.0), class_weight="balanced"), Y),
    "NPlusOneClassifier": (NPlusOneClassifier(SOURCE, RBF(1.0)), Y),
    "OneShotClassifier": (OneShotClassifier(RBF(1.0), SUPPORTS), Y > 1),
}


# Panels are shared and grow; the exchange of a pair, exchanged, is the pair again.
NOT_SHOWN = {"panels", "exchanged"}


def tells_what_is_new(model):
    """Whether a model has classes to be new to, all of its own."""
    return model.classes and not isinstance(getattr(model, "coding", None), Transfer)


def shown(value, seen):
    """All arrays that are reached from a value by its public names, each with its path."""
    if id(value) in seen or type(value).__module__.startswith("sklearn"):
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield "", value
    elif isinstance(value, tuple):
        for i, one in enumerate(value):
            yield from ((f"[{i}]{path}", array) for path, array in shown(one, seen))
    elif is_dataclass(value) and type(value).__module__.startswith("knowmore"):
        for name in dir(value):
            if name in ("newness", "indicators") and not tells_what_is_new(value):
                continue
            if name.startswith("_") or name in NOT_SHOWN or callable(getattr(value, name)):
                continue
            one, again = getattr(value, name), getattr(value, name)
            # What is made anew at each call belongs to who asked.
            if isinstance(one, np.ndarray) and not np.shares_memory(one, again):
                continue
            yield from ((f".{name}{path}", array) for path, array in shown(one, seen))


@pytest.mark.parametrize("name", LIVING)
def test_no_array_of_a_model_can_be_written_to(name):
    estimator, y = LIVING[name]
    clf = deepcopy(estimator).fit(X, y)
    clf.predict(X)
    clf.leave_one_out()
    # What is cached is copied with the rest.
    assert dict(shown(clf.model_, {}))
    for one in (clf, deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        arrays = dict(shown(one.model_, {}))
        assert any(path.endswith("coefficients") for path in arrays)
        for path, array in arrays.items():
            assert not array.flags.writeable, path


@pytest.mark.parametrize("name", ["GPClassifier", "GPRegressor", "LSSVMClassifier"])
def test_writing_to_the_coefficients_is_refused_and_changes_nothing(name):
    estimator, y = LIVING[name]
    clf = deepcopy(estimator).fit(X, y)
    before = clf.predict(X)
    for array in (clf.model_.coefficients, clf.model_.targets.basis, clf.model_.covariance.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    np.testing.assert_array_equal(clf.predict(X), before)


@pytest.mark.parametrize("resolution", [None, 8, "exact"])
@pytest.mark.parametrize("kind", [LinearGPClassifier, LinearGPRegressor])
def test_no_array_of_a_linear_model_can_be_written_to(kind, resolution):
    clf = kind(resolution=resolution).fit(X, Y)
    clf.partial_fit(X, Y).predict(X)
    for one in (clf, deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        arrays = dict(shown(one.model_, {}))
        assert {".weights", ".sums.products[0]", ".moments[2]", ".moments[1][0]"} <= arrays.keys()
        arrays |= {key: group.first for key, group in one.model_.sums.groups.items()}
        for path, array in arrays.items():
            assert not array.flags.writeable, path


class Pair(NamedTuple):
    """Two values, one of them an array."""

    one: np.ndarray
    two: str


def test_tuples_are_locked_through_and_the_rest_is_left_alone():
    mine = np.zeros(2)
    pair = read_only(Pair(mine, "two"))
    assert type(pair) is Pair
    assert not pair.one.flags.writeable
    assert pair.two == "two"
    one, (two, three) = read_only((mine, (np.ones(1), "three")))
    assert not one.flags.writeable
    assert not two.flags.writeable
    assert three == "three"
    assert mine.flags.writeable
