"""An estimator of every kind that a file can hold, with data for it."""

from __future__ import annotations

import numpy as np
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
    Scores,
)

D = 3
_RNG = np.random.default_rng(7)
SUPPORTS = {"one": _RNG.normal(size=(4, D)), "other": _RNG.normal(size=(3, D))}

# By a name for the test: a function that makes an unfitted estimator.
KINDS = {
    "gp": lambda: GPClassifier(),
    "gp-balanced": lambda: GPClassifier(RBF(2.0), class_weight="balanced"),
    "gp-inverse": lambda: GPClassifier(RBF(1.5), 0.5, solver="inverse"),
    "gp-loo": lambda: GPClassifier(noise="loo"),
    "gp-single": lambda: GPClassifier(RBF(2.0), 1.0, dtype="float32"),
    "gp-regression": lambda: GPRegressor(),
    "lssvm": lambda: LSSVMClassifier(C="loo"),
    "n-plus-one": lambda: NPlusOneClassifier(Scores([0, 1])),
    "one-shot": lambda: OneShotClassifier(RBF(2.0), SUPPORTS),
    "forest": lambda: ForestGPClassifier(RBF(2.0), capacity=8, n_trees=2),
    "forest-median": lambda: ForestGPClassifier(capacity=8),
    "forest-regression": lambda: ForestGPRegressor(RBF(2.0), capacity=8),
    "linear": lambda: LinearGPClassifier(),
    "linear-evidence": lambda: LinearGPClassifier("evidence", resolution="exact"),
    "linear-regression": lambda: LinearGPRegressor(),
}


def drawn(name, rng, n):
    """X and y for an estimator of KINDS; the first examples have all classes in turn."""
    columns = D + 2 if name == "n-plus-one" else D
    X = rng.normal(size=(n, columns)).round(3)
    if "regression" in name:
        return X, rng.normal(size=n).round(3)
    classes = 2 if name == "one-shot" else 3
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)[:n]
    return X, y


def answers(model, X):
    """The scores of X by an estimator or a store."""
    ask = getattr(model, "decision_function", None) or model.predict
    return np.asarray(ask(X))
