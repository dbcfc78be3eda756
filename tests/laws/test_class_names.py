"""The names of classes say nothing: to permute them permutes the answers, on every classifier."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.base import ClassifierMixin
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded

import knowmore
from knowmore import (
    EigenspaceLDA,
    ForestGPClassifier,
    GPClassifier,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
)
from knowmore.insight import novelty
from knowmore.models.noise import best_noise

rng = np.random.default_rng(7)
CLASSES = 5
CENTRES = rng.normal(size=(CLASSES, 6)) * 1.5
Y = np.append(np.arange(CLASSES), np.sort(rng.integers(0, CLASSES, 95) % rng.integers(1, 6, 95)))
X = CENTRES[Y] + rng.normal(size=(100, 6))
Q = rng.normal(size=(40, 6)) * 2
SUPPORTS = {f"task {i}": rng.normal(size=(5, 6)) + rng.normal(size=6) for i in range(3)}


def n_plus_one(names):
    """The last of the names is the new class."""
    known = Y < CLASSES - 1
    source = LSSVMClassifier(RBF(2.0)).fit(X[known], names[Y[known]])
    return NPlusOneClassifier(source, RBF(2.0))


MAKE = {
    "GPClassifier": lambda names: GPClassifier(RBF(2.0)),
    "GPClassifier loo": lambda names: GPClassifier(RBF(2.0), "loo"),
    "GPClassifier balanced": lambda names: GPClassifier(RBF(2.0), class_weight="balanced"),
    "GPClassifier hinge": lambda names: GPClassifier(RBF(2.0), loss="squared_hinge"),
    "LSSVMClassifier": lambda names: LSSVMClassifier(RBF(2.0)),
    "LSSVMClassifier loo": lambda names: LSSVMClassifier(RBF(2.0), "loo"),
    "LinearGPClassifier": lambda names: LinearGPClassifier(),
    "LinearGPClassifier loo": lambda names: LinearGPClassifier("loo"),
    "LinearGPClassifier evidence": lambda names: LinearGPClassifier("evidence", intercept=False),
    "ForestGPClassifier": lambda names: ForestGPClassifier(RBF(2.0), capacity=16, n_trees=2),
    "NPlusOneClassifier": n_plus_one,
    "EigenspaceLDA": lambda names: EigenspaceLDA(),
    "EigenspaceLDA shrunk": lambda names: EigenspaceLDA(shrinkage="ledoit-wolf"),
}
EXEMPT = {"OneShotClassifier": "its two classes are not alike: one has the examples"}


def test_every_public_classifier_is_named():
    public = (getattr(knowmore, name) for name in knowmore.__all__)
    found = {
        each.__name__
        for each in public
        if isinstance(each, type) and issubclass(each, ClassifierMixin)
    }
    assert found == {name.split()[0] for name in MAKE} | set(EXEMPT)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("seed", range(3))
def test_permuted_names_permute_the_answers(name, seed):
    names = np.array([*"abcde"])
    order = np.random.default_rng(seed).permutation(CLASSES)
    one = MAKE[name](names).fit(X, names[Y])
    other = MAKE[name](names[order]).fit(X, names[order][Y])
    for question in ("decision_function", "predict_proba"):
        if hasattr(one, question):
            got, want = (getattr(each, question)(Q) for each in (other, one))
            assert_rounded(got[:, order], want, 1e5)
    for setting in ("temperature_", "noise_", "C_"):
        if hasattr(one, setting):
            assert_rounded(getattr(other, setting), getattr(one, setting), 1e5)
    assert (
        other.predict(Q).tolist() == names[order][np.searchsorted(names, one.predict(Q))].tolist()
    )


@pytest.mark.parametrize("seed", range(3))
def test_of_two_classes_the_names_say_nothing_of_which_is_meant(seed):
    rng = np.random.default_rng(seed)
    y = (X[:, 0] + rng.normal(size=100) > 0).astype(int)
    for make in (LinearGPClassifier, GPClassifier, LSSVMClassifier, ForestGPClassifier):
        one, other = make().fit(X, y), make().fit(X, 1 - y)
        assert_rounded(other.predict_proba(Q)[:, ::-1], one.predict_proba(Q), 1e5)


def test_one_shot_answers_for_the_class_with_the_examples_whatever_its_name():
    y = np.array([0, 0, 0, 0, 1, 1])
    one, other = (OneShotClassifier(RBF(2.0), SUPPORTS) for _ in range(2))
    one.fit(X[:6], np.array(["b", "a"])[y])
    other.fit(X[:6], np.array(["c", "a"])[y])
    assert_rounded(other.predict_proba(Q), one.predict_proba(Q), 1e5)


def test_how_new_a_row_is_does_not_depend_on_the_names_of_many_classes():
    rng = np.random.default_rng(1)
    y = np.arange(160) % 40
    rows = (rng.normal(size=(40, 6)) * 2)[y] + 0.5 * rng.normal(size=(160, 6))
    order = rng.permutation(40)
    one, other = (GPClassifier(RBF(2.0)).fit(rows, labels) for labels in (y, order[y]))
    for method in ("combined", "null_space", "probability"):
        assert_rounded(novelty(other, Q, method).values, novelty(one, Q, method).values, 1e5)


def test_a_tie_of_classes_is_no_hit_when_the_noise_is_chosen():
    """Left out, two rows are as near to one class as to another: neither name comes first."""
    x = np.array([1.0, 0, 1, 1, 3, 1, 0, 1])
    y = np.array([0, 1, 2, 2, 0, 2, 0, 1])
    K = np.exp(-np.abs(np.subtract.outer(x, x)))
    votes = np.eye(3)[y]
    chosen = {best_noise(K, votes[:, list(order)], bias=True) for order in permutations(range(3))}
    assert len(chosen) == 1
