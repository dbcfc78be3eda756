"""A single row is answered by one solve, and is often the next to be learnt."""

from __future__ import annotations

import pickle

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_solves

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.linalg import Cholesky

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 4))
Y = RNG.integers(0, 4, 300)
KERNEL = RBF(1.5)


def settings_of(model):
    covariance = model.covariance
    return covariance.kernel, covariance.noise / covariance.weights


def assert_single(clf, x, bias=False):
    """Does the answer for one row equal the definition?"""
    model = clf.model_
    kernel, noises = settings_of(model)
    held, T, units = model.examples.X, model.targets.T, model.targets.units
    got = model.mean(x)
    got = got if units is None else (got - units.mean) / units.scale
    want = oracle.scores(kernel, noises, held, T, x, bias)
    K = oracle.covariance(kernel, held, noises)
    dtype = model.covariance.factor.dtype
    assert_solves(got, want, K, T, left=kernel(held, x), dtype=dtype, bias=bias)


ESTIMATORS = {
    "gp": (lambda: GPClassifier(KERNEL, 0.1), False),
    "float32": (lambda: GPClassifier(KERNEL, 0.1, dtype="float32"), False),
    "balanced": (lambda: GPClassifier(KERNEL, 0.1, class_weight="balanced"), False),
    "iterative": (lambda: GPClassifier(KERNEL, 0.1, update="iterative"), False),
    "svm": (lambda: LSSVMClassifier(KERNEL, C=10.0), True),
    "svm without bias": (lambda: LSSVMClassifier(KERNEL, C=10.0, bias=False), False),
    "regressor": (lambda: GPRegressor(KERNEL, 0.1), False),
}


@pytest.mark.slow(fast=7)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n", [10, 140])
def test_a_window_answers_as_a_fresh_fit_would(name, n):
    made, bias = ESTIMATORS[name]
    y = Y if name != "regressor" else X[:, 0] + Y
    clf = made().fit(X[:n], y[:n], ids=range(n))
    for i in range(n, n + 40):
        assert_single(clf, X[i : i + 1], bias)
        # At times another row than the one that was asked about.
        row = i if i % 3 else i + 60
        clf.add(X[row : row + 1], y[row : row + 1], ids=[i])
        clf.remove(i - n if i % 5 else clf.ids_[n // 2])
        if i % 7 == 0 and name != "regressor":
            clf.relabel([i], [9])
    assert clf.residual() < 100 * np.finfo(clf.model_.covariance.factor.dtype).eps


def test_the_row_that_was_asked_about_is_learnt_without_another_solve(monkeypatch):
    clf = GPClassifier(KERNEL, 0.1).fit(X[:199], Y[:199])
    clf.predict(X[:2])
    clf.add(X[199:200], Y[199:200])
    clf.predict(X[200:201])
    clf.add(X[200:201], Y[200:201])
    solved = []
    plain = Cholesky._forward_one

    def spied(factor, y):
        solved.append(len(y))
        return plain(factor, y)

    monkeypatch.setattr(Cholesky, "_forward_one", spied)
    assert clf.model_.covariance.factor.size == 201
    assert solved == []
    clf.add(X[202:203], Y[202:203])
    assert clf.model_.covariance.factor.size == 202
    assert solved == [201]


def test_a_row_may_replace_its_own_double():
    # Side by side the two would be singular: the old one must go first.
    clf = GPClassifier(KERNEL, noise=0.0).fit(X[:30], Y[:30])
    again = X[3:4]
    clf.predict(again)
    clf.remove(3)
    clf.predict(again)
    clf.add(again, Y[3:4], ids=["again"])
    assert clf.predict(again)[0] == Y[3]


def test_many_single_questions_are_answered_from_the_coefficients():
    clf = GPClassifier(KERNEL, 0.1).fit(X[:59], Y[:59])
    clf.predict(X[:2])
    clf.add(X[59:60], Y[59:60])
    model = clf.model_
    assert_single(clf, X[60:61])
    assert "solved" not in vars(model)
    for i in range(60, 70):
        assert_single(clf, X[i : i + 1])
    assert "solved" in vars(model)


def test_a_copy_of_a_model_does_not_know_what_was_asked():
    clf = GPClassifier(KERNEL, 0.1).fit(X[:40], Y[:40])
    clf.predict(X[:2])
    clf.add(X[40:41], Y[40:41])
    clf.predict(X[50:51])
    model = clf.model_
    assert "asked" in vars(model)
    assert not {"asked", "often"} & set(vars(pickle.loads(pickle.dumps(model))))
    np.testing.assert_array_equal(vars(model)["asked"].x, X[50:51])
