"""The explicit inverse without noise: what is accepted is right, and told if it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import tolerance

from knowmore import GPClassifier, LSSVMClassifier
from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import Cholesky, Inverse


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("update", ["auto", "direct", "iterative"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_error_is_put_off_and_no_answer_is_far_off(update, dtype):
    refused = asked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d, n = rng.integers(1, 4), rng.integers(2, 20)
        X, y = rng.normal(size=(n, d)), np.arange(n) % 2
        noise = [0.0, 10 ** rng.uniform(-18, -8)][seed % 2]
        words = {"solver": "inverse", "update": update, "dtype": dtype}
        clf = GPClassifier(RBF(10 ** rng.uniform(-1, 1.5)), noise, **words)
        try:
            clf.fit(X, y)
        except NotPositiveDefinite:
            refused += 1
            continue
        for step in range(5):
            ids = clf.ids_
            try:
                if step % 2:
                    clf.replace([ids[rng.integers(len(ids))]], rng.normal(size=(1, d)))
                else:
                    clf.add(rng.normal(size=(1, d)), [0])
            except NotPositiveDefinite:
                refused += 1
                assert clf.ids_.tolist() == ids.tolist()
            held = clf.model_.examples
            clf.predict_variance(X), clf.leave_one_out(), clf.predict_proba(X)
            assert np.isfinite(clf.log_marginal_likelihood())
            K = oracle.covariance(clf.kernel_, held.X, noise)
            # K~ K~^-1 T is T: each example answers with its own label, less the noise's part.
            T = clf.model_.targets.T
            missed = abs(K @ clf.model_.coefficients - T).max()
            assert missed <= len(held) * Inverse().traits.rounding
            assert clf.residual() >= missed / (100 * len(held))
            asked += 1
    assert refused > 5
    assert asked > 50


@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier])
@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_the_residual_sees_a_factor_that_went_wrong_after_the_coefficients_were_found(kind, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    clf = kind(RBF(1.0), solver=solver).fit(X, y)
    clf.predict(X)
    fresh = clf.residual()
    assert fresh <= tolerance(oracle.covariance(RBF(1.0), X, 0.1), solver)
    covariance = clf.model_.covariance
    factor = covariance.factor
    if solver == "inverse":
        wrong = replace(factor, P=factor.P * (1 + 1e-6))
    else:
        A = (factor.lower() @ factor.lower().T) * (1 + 1e-6)
        wrong = Cholesky().append(np.empty((0, 40)), A)
    object.__setattr__(covariance, "factor", wrong)
    assert clf.residual() > 1e3 * fresh


def test_the_refusal_says_what_to_do():
    clf = GPClassifier(RBF(1.0), noise=0.0, solver="inverse").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(NotPositiveDefinite, match="use solver='cholesky', which tolerates more"):
        clf.add([[1e-7]], [0])
    assert clf.predict([[0.0], [1.0]]).tolist() == [0, 1]
