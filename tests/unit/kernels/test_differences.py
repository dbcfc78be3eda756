"""Two kernels are alike if they compute the same; otherwise words say where they differ."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, PairwiseKernel
from tolerance import assert_rounded

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier, NPlusOneClassifier
from knowmore.errors import KnowmoreError
from knowmore.kernels import On
from knowmore.kernels.rules import describe_difference

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.arange(12) % 3


def test_bounds_do_not_count():
    fixed, free = RBF(2.0, "fixed"), RBF(2.0, (1e-3, 1e9))
    assert describe_difference(fixed, free) is None
    assert (
        describe_difference(2.0 * fixed + RBF(), ConstantKernel(2.0, "fixed") * free + RBF())
        is None
    )
    assert describe_difference(On(slice(0, 2), fixed), On(slice(0, 2), free)) is None
    assert describe_difference(RBF([1.0, 2.0]), RBF(np.array([1.0, 2.0]))) is None
    assert describe_difference(RBF([1.0]), RBF(1.0)) is None
    assert describe_difference(PairwiseKernel(metric="rbf"), PairwiseKernel(metric="rbf")) is None


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (RBF(1.0), Matern(), "RBF(length_scale=1) here, Matern(length_scale=1, nu=1.5) there"),
        (RBF(1.0), 1.0 * RBF(1.0), "RBF(length_scale=1) here, 1**2 * RBF(length_scale=1) there"),
        (RBF(1.0), RBF(1.00001), "length_scale=1.0 here, length_scale=1.00001 there"),
        (
            On(slice(0, 2), RBF(), np.ones(2)),
            On(slice(0, 2), RBF(), np.array([1.0, 2.0])),
            "weights=array([1., 1.]) here, weights=array([1., 2.]) there",
        ),
        (len, sum, "<built-in function len> here, <built-in function sum> there"),
    ],
)
def test_differences_are_named(one, other, words):
    assert describe_difference(one, other) == words


@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor, LSSVMClassifier])
def test_models_merge_whatever_the_bounds(kind):
    one = kind(RBF(1.0)).fit(X[:6], Y[:6])
    other = kind(RBF(1.0, "fixed")).fit(X[6:], Y[6:], ids=range(6, 12))
    whole = kind(RBF(1.0)).fit(X, Y)
    condition = np.linalg.cond(RBF(1.0)(X) + 0.1 * np.eye(12))
    assert_rounded(one.merge(other).model_.mean(X), whole.model_.mean(X), 12 * condition)
    strange = kind(RBF(1.0000001)).fit(X, Y, ids=range(20, 32))
    with pytest.raises(KnowmoreError) as caught:
        one.merge(strange)
    assert str(caught.value) == (
        "The two models differ in kernel: length_scale=1.0 here, length_scale=1.0000001 there. "
        "Fit both with the same kernel to merge them."
    )


def test_transfers_merge_whatever_the_bounds():
    source = LSSVMClassifier(RBF(1.0)).fit(X[Y < 2], Y[Y < 2])
    one = NPlusOneClassifier(source, RBF(1.0)).fit(X[:6], Y[:6])
    other = NPlusOneClassifier(source, RBF(1.0, "fixed")).fit(X[6:], Y[6:], ids=range(6, 12))
    assert len(one.merge(other).ids_) == 12


@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor, LSSVMClassifier])
def test_the_kernel_that_is_shown_can_be_changed_without_harm(kind):
    clf = kind(RBF([1.0, 2.0])).fit(X, Y)
    before = clf.predict(X)
    clf.kernel_.set_params(length_scale=1e-9)
    clf.kernel_.length_scale[0] = 1e-9
    assert clf.kernel_ == RBF([1.0, 2.0])
    clf.add(X[:1] + 1, Y[:1])
    clf.remove([12])
    np.testing.assert_array_equal(clf.predict(X), before)


@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor, LSSVMClassifier])
def test_a_class_is_no_kernel(kind):
    with pytest.raises(KnowmoreError) as caught:
        kind(RBF).fit(X, Y)
    assert str(caught.value) == "kernel=RBF is a class, not a kernel. Give an instance: RBF()."
    with pytest.raises(KnowmoreError, match="is not a scikit-learn kernel"):
        kind(On(slice(0, 1), RBF)).fit(X, Y)
