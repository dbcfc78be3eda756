"""river's own checks, of estimators behind its wrapper for scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.gaussian_process.kernels import RBF

from knowmore import (
    EigenspaceLDA,
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)

pytest.importorskip("river", reason="needs river")
compat, checks = pytest.importorskip("river.compat"), pytest.importorskip("river.checks")
evaluate, metrics = pytest.importorskip("river.evaluate"), pytest.importorskip("river.metrics")

MODELS = {
    "gp": GPClassifier(RBF(1.0), 0.1),
    "lssvm": LSSVMClassifier(RBF(1.0), 10.0),
    # One of river's checks wants equal answers in any order of the features. A temperature comes
    # from draws for the classes in the order of their means, which is by the first feature first.
    "linear": LinearGPClassifier(noise=1.0, probability="raw"),
    "lda": EigenspaceLDA(shrinkage=0.1),
    "gp regression": GPRegressor(RBF(1.0), 0.1),
    "linear regression": LinearGPRegressor(noise=1.0),
}
# These hold their examples, so that their memory grows with them.
GROWS = {"gp", "lssvm", "gp regression"}


def wrapped(model, classes=(False, True)):
    given = {"classes": list(classes)} if is_classifier(model) else {}
    return compat.convert_sklearn_to_river(model, **given)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:The rows 0 to:UserWarning")
def test_rivers_checks(name):
    model, done = wrapped(MODELS[name]), 0
    for check in checks.yield_checks(model):
        what = check.__name__
        skipped = {*model._unit_test_skips(), *(["check_bounded_memory_growth"] * (name in GROWS))}
        if what not in skipped:
            check(model.clone())
            done += 1
    assert done > 20


X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize("name", [name for name in MODELS if is_classifier(MODELS[name])])
def test_probabilities_stand_under_their_classes(name):
    """river pairs the columns with the classes that were declared, by their places."""
    model = wrapped(MODELS[name], classes=["a", "b", "c"])
    stream = [({"x": x, "y": y}, "b" if x > 0 else "c") for x, y in X.tolist()]
    model.learn_one(*stream[0])
    assert model.predict_proba_one(stream[0][0])[stream[0][1]] == 1.0
    for row, label in stream:
        model.learn_one(row, label)
    for row, _ in stream:
        chances = model.predict_proba_one(row)
        assert [*chances] == ["a", "b", "c"]
        assert chances["a"] == 0
        assert model.predict_one(row) == max(chances, key=chances.get)
    right = sum(model.predict_one(row) == label for row, label in stream)
    assert right > 50


def test_a_stream_is_judged_as_it_comes():
    for clf in (GPClassifier(RBF(1.0), 0.1), ForestGPClassifier(RBF(1.0), 0.1, capacity=16)):
        stream = [({"x": x, "y": y}, x > 0) for x, y in X.tolist()]
        accuracy = evaluate.progressive_val_score(stream, wrapped(clf), metrics.Accuracy())
        assert accuracy.get() > 0.8
