"""Every law, on every public living estimator, with both solvers and all ways to update."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

import knowmore
from knowmore.estimators.living import LivingEstimator
from laws.laws import EXEMPT, LAWS, laws_for

PUBLIC = [getattr(knowmore, name) for name in knowmore.__all__]
LIVING = [each for each in PUBLIC if issubclass(each, LivingEstimator)]
SETTINGS = {
    "cholesky": {"solver": "cholesky"},
    "cholesky-iterative": {"solver": "cholesky", "update": "iterative"},
    "cholesky-at-once": {"solver": "cholesky", "noise": 1e-12, "kernel": RBF(0.3)},
    "cholesky-dot": {"solver": "cholesky", "noise": 1e-3, "kernel": DotProduct(1.0) + RBF(1.0)},
    "inverse": {"solver": "inverse"},
    "inverse-direct": {"solver": "inverse", "update": "direct", "kernel": RBF(1.0)},
    "inverse-iterative": {"solver": "inverse", "update": "iterative", "noise": 1e-4},
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    ("estimator", "law"),
    [
        pytest.param(each, law, id=f"{each.__name__}-{law.__name__}")
        for each in LIVING
        for law in laws_for(each)
    ],
)
def test_law(estimator, law, settings):
    law(partial(estimator, **SETTINGS[settings]), np.random.default_rng(20))


def test_living_estimators_are_found():
    assert {each.__name__ for each in LIVING} >= {"GPClassifier", "GPRegressor"}


def test_exemptions_name_laws_that_exist():
    names = {law.__name__ for law in LAWS}
    assert all(law in names and reason for (_, law), reason in EXEMPT.items())
