"""The peers: what many would reach for, with the settings that they would take."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from knowmore.kernels import squared_distances
from papers.arrays import Array
from papers.picture_features import unit

_COSTS, _FOLDS = (1.0, 10.0, 100.0), 3
# So many directions at most are kept before distances to classes are measured.
_KEPT = 100


def logistic(histograms: bool, *, balanced: bool = False) -> Any:
    """scikit-learn's default, with iterations enough to get there.

    Histograms are square-rooted and standardised first: as they are, their numbers are so small
    that the regularisation would leave next to nothing.
    """
    model = LogisticRegression(max_iter=1000, class_weight="balanced" if balanced else None)
    if not histograms:
        return model
    return make_pipeline(FunctionTransformer(np.sqrt), StandardScaler(), model)


def centroid(X: Array, positive: Array, Z: Array, histograms: bool) -> Array:
    """Scores (m,) of Z (m, D): along the line from the negative mean to the positive mean.

    X (n, D), positive (n,). Rows are scaled to unit length; histograms are square-rooted first.
    """
    X, Z = (unit(np.sqrt(rows) if histograms else rows) for rows in (X, Z))
    return np.asarray(Z @ (X[positive].mean(axis=0) - X[~positive].mean(axis=0)))


def svc(K: Array, y: Array) -> GridSearchCV:
    """An SVC on kernel values (n, n), one class against one, its C by cross-validation."""
    return GridSearchCV(SVC(kernel="precomputed"), {"C": _COSTS}, cv=_FOLDS).fit(K, y)


def against_all(K: Array, y: Array, C: float) -> Any:
    """SVCs on kernel values (n, n) with a given C, each class against all others."""
    return OneVsRestClassifier(SVC(C=C, kernel="precomputed"), n_jobs=-1).fit(K, y)


def softmax_novelty(model: Any, Z: Array) -> Array:
    """1 - the largest probability, (m,)."""
    return np.asarray(1 - model.predict_proba(Z).max(axis=1))


def energy(model: Any, Z: Array) -> Array:
    """Minus the log of the sum of exponentials of the scores, (m,)."""
    scores = model.decision_function(Z)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores]) / 2
    return np.asarray(-logsumexp(scores, axis=1))


def mahalanobis(X: Array, y: Array, Z: Array) -> Array:
    """The distance (m,) to the nearest class mean by the covariance within classes, after PCA.

    The covariance is Ledoit and Wolf's: few rows would leave another one singular.
    """
    pca = PCA(min(_KEPT, *X.shape), svd_solver="full").fit(X)
    A, B = pca.transform(X), pca.transform(Z)
    names, codes = np.unique(y, return_inverse=True)
    means = np.stack([A[codes == c].mean(axis=0) for c in range(len(names))])
    L = np.linalg.cholesky(LedoitWolf(assume_centered=True).fit(A - means[codes]).covariance_)
    a, b = (solve_triangular(L, rows.T, lower=True).T for rows in (means, B))
    return np.asarray(squared_distances(b, a, 1.0).min(axis=1))
