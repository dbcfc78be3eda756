"""Classifiers that keep learning, and forget exactly.

The one law: a model equals the batch fit of the examples it holds now.

>>> from knowmore import GPClassifier
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> clf = GPClassifier().fit(X[:100], y[:100])      # two kinds of iris
>>> ids = clf.add(X[100:], y[100:])                 # a third turns up
>>> clf.classes_
array([0, 1, 2])
>>> clf = clf.remove(ids[:10]).relabel([0], [1])    # some are withdrawn, one was wrong
>>> held = clf.model_.examples
>>> refit = GPClassifier(clf.kernel_, clf.noise_).fit(held.X, held.labels)
>>> bool(abs(clf.decision_function(X) - refit.decision_function(X)).max() < 1e-9)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowmore._base import progress
    from knowmore.editable import Editable
    from knowmore.errors import KnowmoreError
    from knowmore.estimators import (
        ForestGPClassifier,
        ForestGPRegressor,
        GPClassifier,
        GPRegressor,
        IntersectionMap,
        Landmarks,
        LinearGPClassifier,
        LinearGPRegressor,
        LSSVMClassifier,
        living,
    )
    from knowmore.linalg import Grid
    from knowmore.store import Store, load, open  # noqa: A004  as in gzip
    from knowmore.subspaces import (
        Eigenspace,
        EigenspaceLDA,
        EigenspacePCA,
        SubspaceMonitor,
        Truncation,
    )
    from knowmore.transfer import NPlusOneClassifier, OneShotClassifier, Scores

    __version__: str

__all__ = [
    "Editable",
    "Eigenspace",
    "EigenspaceLDA",
    "EigenspacePCA",
    "ForestGPClassifier",
    "ForestGPRegressor",
    "GPClassifier",
    "GPRegressor",
    "Grid",
    "IntersectionMap",
    "KnowmoreError",
    "LSSVMClassifier",
    "Landmarks",
    "LinearGPClassifier",
    "LinearGPRegressor",
    "NPlusOneClassifier",
    "OneShotClassifier",
    "Scores",
    "Store",
    "SubspaceMonitor",
    "Truncation",
    "living",
    "load",
    "progress",
]

# Public, too, but not for `from knowmore import *`, which would replace the builtin.
_NOT_BY_STAR = ("open",)

# Names whose module is not `knowmore.estimators`.
_HOMES = {
    "Editable": "knowmore.editable",
    "Eigenspace": "knowmore.subspaces",
    "EigenspaceLDA": "knowmore.subspaces",
    "EigenspacePCA": "knowmore.subspaces",
    "Grid": "knowmore.linalg",
    "KnowmoreError": "knowmore.errors",
    "NPlusOneClassifier": "knowmore.transfer",
    "OneShotClassifier": "knowmore.transfer",
    "Scores": "knowmore.transfer",
    "Store": "knowmore.store",
    "SubspaceMonitor": "knowmore.subspaces",
    "Truncation": "knowmore.subspaces",
    "load": "knowmore.store",
    "open": "knowmore.store",
    "progress": "knowmore._base",
}


def __getattr__(name: str) -> Any:
    # Import on first use: scikit-learn is slow to load, and `knowmore --help` does not need it.
    if name == "__version__":
        from importlib.metadata import version

        return version("knowmore")
    if name not in (*__all__, *_NOT_BY_STAR):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "knowmore.estimators")), name)


def __dir__() -> list[str]:
    return sorted((*__all__, *_NOT_BY_STAR))
