"""Every law, on every public living estimator, with both solvers and all ways to update.

The fast suite tries each law on each estimator with two settings, and the next law with the next.
"""

from __future__ import annotations

from functools import partial
from inspect import signature

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

import knowmore
from knowmore import LSSVMClassifier
from knowmore.estimators.living import LivingEstimator
from laws.laws import (
    EXEMPT,
    LAWS,
    LinearClassifierWithIds,
    LinearRegressorWithIds,
    laws_for,
)

PUBLIC = [getattr(knowmore, name) for name in knowmore.__all__]
LIVING = [each for each in PUBLIC if isinstance(each, type) and issubclass(each, LivingEstimator)]
LINEAR = [LinearClassifierWithIds, LinearRegressorWithIds]
SETTINGS = {
    "cholesky": {"solver": "cholesky", "kernel": RBF(1.5), "noise": 0.1},
    "cholesky-iterative": {"solver": "cholesky", "update": "iterative", "noise": 0.1},
    "living": {"settings": "living"},
    "living-sum": {"settings": "living", "kernel": [RBF(1.0), RBF(3.0)], "noise": 0.1},
    "cholesky-at-once": {"solver": "cholesky", "noise": 1e-12, "kernel": RBF(0.3)},
    "cholesky-dot": {"solver": "cholesky", "noise": 1e-3, "kernel": DotProduct(1.0) + RBF(1.0)},
    "inverse": {"solver": "inverse"},
    "inverse-direct": {"solver": "inverse", "update": "direct", "kernel": RBF(1.0)},
    "inverse-iterative": {"solver": "inverse", "update": "iterative", "noise": 1e-4},
}
rng = np.random.default_rng(2)
SOURCE = LSSVMClassifier(RBF(1.0), 10.0).fit(rng.normal(size=(30, 3)), np.arange(30) % 3)
MORE = {
    "GPClassifier": {"balanced": {"class_weight": "balanced"}},
    "GPRegressor": {"as-given": {"normalize_y": False}},
    "LSSVMClassifier": {"balanced": {"class_weight": "balanced"}, "no-bias": {"bias": False}},
    "NPlusOneClassifier": {
        "no-bias": {"bias": False},
        "any-sign": {"positive": False},
        "paper": {"scaled": False},
    },
}


SUPPORTS = {f"task {i}": rng.normal(size=(4 + i, 3)) + rng.normal(size=3) for i in range(4)}
TWINS = SUPPORTS | {"twins": SUPPORTS["task 0"][[0, 1, 2, 1]]}
PAPER = {"criterion": "ap", "noise": "adaptive", "prior": 0.0, "members": 1}
ONE_SHOT = {
    "auto": {},
    "auto-two-of-them": {"members": 2, "supports": TWINS, "kernel": RBF(0.7)},
    "auto-dot": {"supports": TWINS, "kernel": DotProduct(1.0) + RBF(0.7)},
    "adaptive": PAPER,
    "adaptive-twins": PAPER | {"supports": TWINS, "kernel": RBF(0.7)},
    "adaptive-smooth": PAPER | {"kernel": RBF(4.0)},
    "adaptive-dot": PAPER | {"supports": TWINS, "kernel": DotProduct(1.0) + RBF(0.7)},
    "fixed": PAPER | {"noise": 0.1},
    "at-once": PAPER | {"noise": 1e-9, "kernel": RBF(0.7)},
    "golden": PAPER | {"noise": 1e-3, "search": "golden", "criterion": "lpp"},
    "pooled": PAPER | {"noise": 1e-3, "search": 1.0},
    "independent": PAPER | {"supports": {}},
}


ROWS_BY_ID = {
    "default": {},
    "exact": {"resolution": "exact", "noise": 1e-6},
    "no-offset": {"intercept": False},
    "chosen-noise": {"noise": "evidence"},
}


def settings_of(estimator):
    """The settings by name, in the words of the estimator: C is 1 / noise."""
    if estimator in LINEAR:
        yield from ROWS_BY_ID.items()
        return
    if estimator.__name__ == "OneShotClassifier":
        for name, words in ONE_SHOT.items():
            yield name, {"kernel": None, "supports": SUPPORTS} | words
        return
    for name, given in (SETTINGS | MORE.get(estimator.__name__, {})).items():
        words = dict(given)
        if "settings" in words and "settings" not in signature(estimator).parameters:
            continue
        if "noise" in words and estimator.__name__ in ("LSSVMClassifier", "NPlusOneClassifier"):
            words["C"] = 1 / words.pop("noise")
        if estimator.__name__ == "NPlusOneClassifier":
            words["source"] = SOURCE
        yield name, words


def cases():
    """Every law with every setting of every estimator; all but two settings of a law are slow."""
    for each in (*LIVING, *LINEAR):
        settings = [*settings_of(each)]
        for i, law in enumerate(laws_for(each)):
            fast = {i % len(settings), (i + len(settings) // 2) % len(settings)}
            for k, (name, words) in enumerate(settings):
                marks = () if k in fast else pytest.mark.slow
                called = f"{each.__name__}-{law.__name__}-{name}"
                yield pytest.param(partial(each, **words), law, id=called, marks=marks)


@pytest.mark.parametrize(("make", "law"), [*cases()])
def test_law(make, law):
    law(make, np.random.default_rng(20))


def test_living_estimators_are_found():
    assert {each.__name__ for each in LIVING} >= {"GPClassifier", "GPRegressor"}


def test_exemptions_name_laws_that_exist():
    names = {law.__name__ for law in LAWS}
    assert all(law in names and reason for (_, law), reason in EXEMPT.items())
