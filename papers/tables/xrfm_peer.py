"""xRFM (Beaglehole et al. 2025), kernels that learn which features matter, as scikit-learn has it.

Its defaults, on standardised columns; a fifth of the rows is put aside, which it asks for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from papers.arrays import Array

_ASIDE = 0.2


def xrfm_is_there() -> bool:
    """Whether xRFM and what it needs are installed."""
    return all(find_spec(name) for name in ("xrfm", "torch", "tqdm"))


class XRFMClassifier(ClassifierMixin, BaseEstimator):
    """Classes of numbers (n, d)."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Array, y: Array) -> XRFMClassifier:
        """Learn rows (n, d) and their classes (n,)."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.scaler_ = StandardScaler().fit(X)
        self.model_ = _fitted(self.scaler_.transform(X), codes, codes, self.seed)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities (m, C)."""
        return np.asarray(self.model_.predict_proba(self.scaler_.transform(X).astype(np.float32)))

    def predict(self, X: Array) -> Array:
        """Classes (m,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class XRFMRegressor(RegressorMixin, BaseEstimator):
    """Values of numbers (n, d)."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Array, y: Array) -> XRFMRegressor:
        """Learn rows (n, d) and their values (n,)."""
        self.mean_, self.unit_ = y.mean(), y.std()
        values = ((y - self.mean_) / self.unit_).astype(np.float32)
        self.scaler_ = StandardScaler().fit(X)
        self.model_ = _fitted(self.scaler_.transform(X), values, None, self.seed)
        return self

    def predict(self, X: Array) -> Array:
        """Values (m,)."""
        found = self.model_.predict(self.scaler_.transform(X).astype(np.float32))
        values = np.asarray(found, dtype=float).reshape(len(X))
        return np.asarray(values * self.unit_ + self.mean_)


def _fitted(X: Array, y: Array, classes: Array | None, seed: int) -> Any:
    X, X_aside, y, y_aside = train_test_split(
        X.astype(np.float32), y, test_size=_ASIDE, stratify=classes, random_state=seed
    )
    model = import_module("xrfm").xRFM(device="cpu", n_threads=1, random_state=seed, verbose=False)
    model.fit(X, y, X_aside, y_aside)
    return model
