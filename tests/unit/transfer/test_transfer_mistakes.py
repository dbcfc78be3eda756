"""Mistakes with least-squares SVMs and sources: a clear word, and nothing is changed."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC, OneClassSVM
from tolerance import GAP, SAME_GAP

from knowmore import KnowmoreError, LSSVMClassifier, NPlusOneClassifier, Scores

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(12, 2)), np.array(["ape", "bee", "cat", "dog"] * 3)
SOURCE = LSSVMClassifier(RBF(1.0)).fit(X[Y != "dog"], Y[Y != "dog"])


def transfer(source=SOURCE, **words):
    return NPlusOneClassifier(source, RBF(1.0), **words)


def wrong(X):
    return np.zeros((len(X), 2))


FIRST = {
    "C below zero": (lambda: LSSVMClassifier(C=-1.0), "C=-1.0 must be a number in (0, inf)."),
    "C of zero": (lambda: LSSVMClassifier(C=0), "C=0 must be a number in (0, inf)."),
    "C that is no number": (
        lambda: LSSVMClassifier(C=True),
        "C=True must be a number in (0, inf).",
    ),
    "C of another word": (
        lambda: LSSVMClassifier(C="best"),
        "C='best' must be a number in (0, inf).",
    ),
    "class weights in a list": (
        lambda: LSSVMClassifier(class_weight=[1, 2]),
        "class_weight=[1, 2] must be None, 'balanced', or a dict of weights.",
    ),
    "a class that weighs nothing": (
        lambda: LSSVMClassifier(class_weight={"ape": 0.0}),
        "class_weight['ape']=0.0 must be a number in (0, inf). Remove a class that must not count.",
    ),
    "a class": (lambda: transfer(SVC), "has no decision_function. Wrap its scores"),
    "no decision function": (
        lambda: transfer(RandomForestClassifier().fit(X, Y)),
        "Wrap its scores in knowmore.Scores.",
    ),
    "an unknown optimiser": (
        lambda: transfer(optimiser="simplex"),
        "optimiser='simplex' is not known. Choose one of 'interior', 'subgradient'.",
    ),
    "scores of the wrong width": (
        lambda: transfer(Scores(["ape", "bee", "cat"], wrong)),
        "The source gives scores of shape (12, 2), but (12, 3) is expected: a column for each",
    ),
    "scores that are not finite": (
        lambda: transfer(Scores(["ape", "bee", "cat"], lambda X: np.full((len(X), 3), np.nan))),
        "The source's scores are NaN or beyond 1e+50. Scale them.",
    ),
    "scores that are words": (
        lambda: transfer(Scores(["ape", "bee", "cat"], lambda X: [["no"] * 3] * len(X))),
        "The source cannot score these examples: could not convert string to float",
    ),
    "a source of other features": (
        lambda: transfer(SVC().fit(np.zeros((3, 5)), ["ape", "bee", "cat"])),
        "The source cannot score these examples: X has 2 features, but SVC is expecting 5",
    ),
    "a source without classes": (
        lambda: transfer(OneClassSVM().fit(X)),
        "source=OneClassSVM() has no classes_. Give a fitted classifier.",
    ),
    "a source that a clone emptied": (
        lambda: clone(transfer()),
        "which unfit it, wrap it in sklearn.frozen.FrozenEstimator",
    ),
    "a weight that is no number": (
        lambda: LSSVMClassifier(class_weight={"ape": "heavy"}),
        "class_weight['ape']='heavy' must be a number in (0, inf).",
    ),
    "class weights of another kind": (
        lambda: LSSVMClassifier(class_weight={1: 5.0}),
        "The new labels are of type int, but those held are of type str",
    ),
    "C by leave-one-out of a kernel that is zero": (
        lambda: LSSVMClassifier(lambda A, B: np.zeros((len(A), len(B))), C="loo"),
        "C='loo' needs finite kernel values with a positive diagonal",
    ),
    "C so small that its inverse overflows": (
        lambda: LSSVMClassifier(C=1e-310),
        "noise / weight is not finite for one of the examples",
    ),
    "scores but no features": (
        lambda: transfer(Scores(["ape", "bee", "cat"])),
        "X has shape (12, 2). Give features, then the 3 scores.",
    ),
    "a class twice": (
        lambda: transfer(Scores(["ape", "ape", "cat"], wrong)),
        "The source has the classes ['ape', 'ape', 'cat']. Name each class once.",
    ),
    "classes of another type": (
        lambda: transfer(Scores([0, 1, 2], lambda X: np.zeros((len(X), 3)))),
        "The new labels are of type str, but those held are of type int",
    ),
    "no new class": (
        lambda: transfer(LSSVMClassifier().fit(X, Y)),
        "The examples must cover all 4 classes of the source and exactly one more, but none would "
        "be new. Without a new class, use source_. Nothing was changed.",
    ),
    "two new classes": (
        lambda: transfer(LSSVMClassifier().fit(X[:2], Y[:2])),
        "The examples must cover all 2 classes of the source and exactly one more, but 'cat', "
        "'dog' would be new. Learn one after the other: this classifier can be the source of the "
        "next.",
    ),
    "a known class without examples": (
        lambda: transfer(Scores(["ape", "bee", "cat", "eel"], lambda X: np.zeros((len(X), 4)))),
        "the known 'eel' would have no examples. Add examples of the known ones, or use a source",
    ),
    "classes that overlap in part": (
        lambda: transfer(Scores(["ape", "bee", "eel"], lambda X: np.zeros((len(X), 3)))),
        "The examples must cover all 3 classes of the source and exactly one more, but 'cat', "
        "'dog' would be new, and the known 'eel' would have no examples.",
    ),
}


@pytest.mark.parametrize("mistake", FIRST)
def test_a_mistake_at_first_leaves_it_unfitted(mistake):
    make, words = FIRST[mistake]
    clf = make()
    with pytest.raises(KnowmoreError) as caught:
        clf.fit(X, Y)
    assert words in str(caught.value)
    assert not clf.__sklearn_is_fitted__()
    assert not hasattr(clf, "source_")


LATER = {
    "all examples of the new class removed": (
        lambda clf: clf.remove([3, 7, 11]),
        "but none would be new. Without",
    ),
    "all examples of a known class removed": (
        lambda clf: clf.remove([0, 4, 8]),
        "the known 'ape' would have no examples.",
    ),
    "a second new class": (
        lambda clf: clf.add([[0.0, 0.0]], ["eel"]),
        "but 'dog', 'eel' would be new.",
    ),
    "the new class relabelled away": (
        lambda clf: clf.relabel([3, 7, 11], ["ape"] * 3),
        "but none would be new. Without",
    ),
    "no weight left for a class": (
        lambda clf: clf.fit(X, Y, sample_weight=(np.array(Y) != "ape") * 1.0),
        "the known 'ape' would have no examples.",
    ),
    "no weight at all": (
        lambda clf: clf.fit(X, Y, sample_weight=np.zeros(len(X))),
        "All weights are zero. Give some example a weight above zero.",
    ),
    "a negative weight": (
        lambda clf: clf.add(X[:2], Y[:2], sample_weight=[1.0, -2.0]),
        "sample_weight[1]=-2.0 is below zero. Give weights from 0 on.",
    ),
    "too few weights": (
        lambda clf: clf.add(X[:2], Y[:2], sample_weight=[1.0]),
        "sample_weight has shape (1,), but there are 2 examples. Give one value for each, in the",
    ),
    "a merge with another source": (
        lambda clf: clf.merge(
            transfer(LSSVMClassifier(RBF(1.0)).fit(X[:3], Y[:3])).fit(X, Y, range(20, 32))
        ),
        "The two models differ in source",
    ),
    "a merge with a least-squares SVM": (
        lambda clf: clf.merge(SOURCE),
        "NPlusOneClassifier cannot merge with LSSVMClassifier.",
    ),
}


@pytest.mark.parametrize("mistake", LATER)
def test_a_mistake_later_changes_nothing(mistake):
    act, words = LATER[mistake]
    clf = transfer().fit(X, Y)
    before = clf.decision_function(X)
    with pytest.raises(KnowmoreError) as caught:
        act(clf)
    assert words in str(caught.value)
    assert clf.ids_.tolist() == list(range(12))
    np.testing.assert_array_equal(clf.decision_function(X), before)


def test_models_of_the_same_source_merge():
    clf = transfer().fit(X, Y)
    other = transfer().fit(X + 0.5, Y, range(20, 32))
    both = transfer().fit(np.vstack([X, X + 0.5]), np.append(Y, Y))
    np.testing.assert_allclose(
        clf.merge(other).decision_function(X), both.decision_function(X), atol=GAP
    )


def test_models_of_an_edited_source_do_not_merge():
    source = LSSVMClassifier(RBF(1.0)).fit(X[Y != "dog"], Y[Y != "dog"])
    clf = transfer(source).fit(X, Y)
    source.relabel([0], ["bee"])
    other = transfer(source).fit(X, Y, range(20, 32))
    with pytest.raises(KnowmoreError, match="differ in source"):
        clf.merge(other)
    # What counts is the source that was used, not the object.
    restored = pickle.loads(pickle.dumps(other))
    assert len(other.merge(transfer(restored.source_).fit(X, Y, range(40, 52))).ids_) == 24


def test_models_of_two_optimisers_do_not_merge():
    clf, other = (transfer(optimiser=name) for name in ("interior", "subgradient"))
    words = "^The two models differ in optimiser: 'interior' here, 'subgradient' there"
    with pytest.raises(KnowmoreError, match=words):
        clf.fit(X, Y).merge(other.fit(X, Y, range(20, 32)))


def test_scores_show_their_classes():
    assert repr(Scores(["ape", "bee"], wrong)) == "Scores(['ape', 'bee'], of=wrong)"
    assert repr(Scores(range(7))) == "Scores([0, 1, 2, 3, 4 and 2 more])"
    assert "source=Scores(['ape'])" in repr(transfer(Scores(["ape"])))


def test_object_labels_of_a_source():
    source = SVC().fit(X[Y != "dog"], pd.Series(Y[Y != "dog"], dtype=object))
    assert transfer(source).fit(X, Y).classes_.tolist() == ["ape", "bee", "cat", "dog"]


def test_scores_in_the_columns_of_a_table():
    S = SOURCE.decision_function(X)
    table = pd.DataFrame(np.hstack([X, S]), columns=list("uvwxy"))
    clf = transfer(Scores(["ape", "bee", "cat"])).fit(table, Y)
    np.testing.assert_allclose(clf.beta_, transfer().fit(X, Y).beta_, atol=SAME_GAP)


def test_a_source_that_learnt_nothing():
    for source in (LSSVMClassifier(), SVC()):
        with pytest.raises(NotFittedError):
            transfer(source).fit(X, Y)


def test_a_single_example_has_no_one_left_out():
    clf = LSSVMClassifier().fit([[0.0]], ["ape"])
    assert clf.predict([[3.0]]).tolist() == ["ape"]
    with pytest.raises(KnowmoreError, match="Leaving all examples out at once leaves none"):
        clf.leave_one_out()
    assert LSSVMClassifier(bias=False).fit([[0.0]], ["ape"]).leave_one_out().scores.tolist() == [
        [0.0]
    ]
    two = LSSVMClassifier().fit([[0.0], [1.0]], ["ape", "bee"])
    with pytest.raises(KnowmoreError, match="Leaving all examples out at once leaves none"):
        two.leave_one_out(groups=["a", "a"])


def test_models_whose_source_is_columns_and_not_say_so_in_both_directions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.arange(40) % 3
    columns = NPlusOneClassifier(Scores([0, 1]), RBF()).fit(X[:20], y[:20], range(20))
    function = NPlusOneClassifier(Scores([0, 1], lambda Z: Z[:, -2:]), RBF())
    function.fit(X[20:], y[20:], range(20, 40))
    for one, other, words in (
        (columns, function, "'columns of X' here, 'a classifier' there"),
        (function, columns, "'a classifier' here, 'columns of X' there"),
    ):
        with pytest.raises(KnowmoreError, match=f"The two models differ in source: {words}. Fit"):
            one.merge(other)
