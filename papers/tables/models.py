"""Who learns: ours with no argument at all, and scikit-learn's usual models as they are used.

Ours get the table as it comes. Peers that want standardised columns get them. A peer of SVCs
chooses among thirty settings by three folds, whose answers are then made probabilities, or get a
deviation, by folds of what was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from knowmore import ForestGPClassifier, GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.kernels import default_kernel
from papers.arrays import Array
from papers.tables.remembered import digest_of_knowmore
from papers.tables.tasks import FEW, Task
from papers.tables.xrfm_peer import XRFMClassifier, XRFMRegressor, xrfm_is_there

CLASSES, VALUES = "GPClassifier", "GPRegressor"
BALANCED, EARLIER = "GPClassifier, balanced", "earlier default"
LSSVM, FOREST = "LSSVMClassifier", "ForestGPClassifier"
GRID, FIELD, XRFM = "SVC, grid", "GaussianProcessClassifier", "xRFM"
_TREES, _FOLDS = 300, 3
_COSTS = tuple(10.0**power for power in range(-2, 4))
# Parts of the width "scale", in half decades.
_WIDTHS = tuple(10.0**power for power in (-1, -0.5, 0, 0.5, 1))
# scikit-learn's Gaussian process of classes has a process for each class: more take minutes.
_MOST_CLASSES = 4


class Model(NamedTuple):
    """A way to learn.

    make : from the rows learnt (n, d) and a seed to an estimator that is not fitted
    version : of the library that it comes from; what is remembered is of this version
    ours : whether it is one of knowmore's
    suits : whether it is tried on a task
    """

    make: Callable[[Array, int], Any]
    version: str
    ours: bool = False
    suits: Callable[[Task], bool] = lambda task: True


def models(regression: bool) -> dict[str, Model]:
    """All models for classes, or for values, by their names."""
    knowmore, peers = f"knowmore {digest_of_knowmore()}", f"scikit-learn {sklearn.__version__}"
    ours = _our_regressors() if regression else _our_classifiers()
    theirs = _regressors() if regression else _classifiers()
    found = {name: Model(make, knowmore, ours=True) for name, make in ours.items()}
    found |= {name: Model(make, peers) for name, make in theirs.items()}
    if FIELD in found:
        found[FIELD] = found[FIELD]._replace(suits=_few)
    if xrfm_is_there():
        # Imported now: the first fit is not to be charged for it.
        name = f"xrfm {import_module('xrfm').__version__}"
        kind = XRFMRegressor if regression else XRFMClassifier
        found[XRFM] = Model(lambda X, seed: kind(seed), name)
    return found


def _few(task: Task) -> bool:
    return task.size == FEW and task.classes <= _MOST_CLASSES


_Makers = Mapping[str, Callable[[Array, int], Any]]


def _our_classifiers() -> _Makers:
    return {
        CLASSES: lambda X, seed: GPClassifier(),
        BALANCED: lambda X, seed: GPClassifier(class_weight="balanced"),
        LSSVM: lambda X, seed: LSSVMClassifier(),
        FOREST: lambda X, seed: ForestGPClassifier(),
        EARLIER: lambda X, seed: GPClassifier(default_kernel(X), 0.1),
    }


def _our_regressors() -> _Makers:
    return {
        VALUES: lambda X, seed: GPRegressor(),
        EARLIER: lambda X, seed: GPRegressor(default_kernel(X), 0.1),
    }


def _classifiers() -> _Makers:
    return {
        "LogisticRegression": lambda X, seed: _scaled(LogisticRegression(max_iter=1000)),
        "SVC": lambda X, seed: _scaled(SVC()),
        GRID: lambda X, seed: _grid(SVC(), "svc", X),
        "RandomForest": lambda X, seed: RandomForestClassifier(_TREES, random_state=seed),
        "ExtraTrees": lambda X, seed: ExtraTreesClassifier(_TREES, random_state=seed),
        "HistGradientBoosting": lambda X, seed: HistGradientBoostingClassifier(random_state=seed),
        FIELD: lambda X, seed: _scaled(
            GaussianProcessClassifier(ConstantKernel() * RBF(X.shape[1] ** 0.5), random_state=seed)
        ),
        "5 nearest neighbours": lambda X, seed: _scaled(KNeighborsClassifier()),
    }


def _regressors() -> _Makers:
    return {
        "GaussianProcessRegressor": lambda X, seed: _scaled(
            GaussianProcessRegressor(
                ConstantKernel() * RBF(X.shape[1] ** 0.5) + WhiteKernel(),
                normalize_y=True,
                random_state=seed,
            )
        ),
        "SVR, grid": lambda X, seed: TransformedTargetRegressor(
            _grid(SVR(), "svr", X), transformer=StandardScaler()
        ),
        "RandomForest": lambda X, seed: RandomForestRegressor(_TREES, random_state=seed),
        "HistGradientBoosting": lambda X, seed: HistGradientBoostingRegressor(random_state=seed),
        "RidgeCV": lambda X, seed: _scaled(RidgeCV(np.logspace(-3, 3, 13))),
    }


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _grid(machine: Any, step: str, X: Array) -> Any:
    """The best of thirty; widths are parts of `gamma="scale"` of standardised columns."""
    varied = int((X.std(axis=0) > 0).sum())
    widths = [float(part / max(1, varied)) for part in _WIDTHS]
    choice = {f"{step}__C": _COSTS, f"{step}__gamma": widths}
    return GridSearchCV(_scaled(machine), choice, cv=_FOLDS)
