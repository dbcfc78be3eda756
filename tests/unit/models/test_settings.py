"""What is kept of the examples that chose the settings of a model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from knowmore import ForestGPRegressor, GPRegressor
from knowmore.errors import InvalidInput
from knowmore.models import SettingsRule

SECRET = 123.456789
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]])


def learnt(kind):
    return kind().fit(X, [SECRET, 1.0, 2.0], ids=["the name of a patient", "b", "c"])


def tells(model):
    """Whether a pickle of the model has the target or the name of the example that left."""
    data = pickle.dumps(model)
    return np.float64(SECRET).tobytes() in data or b"the name of a patient" in data


@pytest.mark.parametrize("kind", [GPRegressor, ForestGPRegressor])
def test_an_emptied_model_keeps_nothing_of_the_examples_that_chose(kind):
    model = learnt(kind)
    assert tells(model)
    model.remove(model.ids_)
    assert not tells(model)
    assert model.settings_.ids == ()
    # It is still open: the next examples choose as in a fresh fit.
    model.add(X, [0.0, 1.0, 5.0], ids=["d", "e", "f"])
    fresh = kind().fit(X, [0.0, 1.0, 5.0], ids=["d", "e", "f"])
    assert model.settings_.agree(fresh.settings_)
    assert model.settings_.ids == fresh.settings_.ids


@pytest.mark.parametrize("kind", [GPRegressor, ForestGPRegressor])
def test_examples_are_forgotten_even_where_the_rest_cannot_choose(kind, monkeypatch):
    def failing(*arguments):
        raise InvalidInput("No kernel suits the rest.")

    model = learnt(kind)
    before = model.settings_
    with monkeypatch.context() as patch:
        patch.setattr(SettingsRule, "chosen", failing)
        model.remove(["the name of a patient"])
    assert not tells(model)
    assert model.settings_.agree(before)
    model.add(X[:1], [4.0], ids=["d"])
    fresh = kind().fit(X[[1, 2, 0]], [1.0, 2.0, 4.0], ids=["b", "c", "d"])
    assert model.settings_.agree(fresh.settings_)
