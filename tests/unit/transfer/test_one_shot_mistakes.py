"""Mistakes with one-shot learning: a clear word, and nothing is changed."""

from __future__ import annotations

import numpy as np
import pytest
from one_shot_scene import KERNEL, SUPPORTS, ByLength, X, Y, preselecting
from sklearn.gaussian_process.kernels import DotProduct

from knowmore import KnowmoreError, OneShotClassifier


class Inventor:
    """Gives names that nobody asked for."""

    def most_similar(self, name, names, k=None, *, unknown="raise"):
        return ["unicorn"]


class Silent:
    """Gives no names at all."""

    def most_similar(self, name, names, k=None, *, unknown="raise"):
        return []


def one_shot(supports=SUPPORTS, **words):
    return OneShotClassifier(KERNEL, supports, **words)


FIRST = {
    "an empty support": (
        one_shot({"okapi": np.empty((0, 3))}),
        "The support 'okapi' cannot be used: Found array with 0 sample(s)",
    ),
    "a support of another width": (
        one_shot({"okapi": np.zeros((2, 4))}),
        "The support 'okapi' cannot be used: X has 4 features, but OneShotClassifier is expecting "
        "3 features",
    ),
    "a support with holes": (
        one_shot({"okapi": [[0.0, np.nan, 0.0]]}),
        "The support 'okapi' cannot be used: Input X contains NaN or infinity: 1 value(s), the "
        "first at row 0, column 1",
    ),
    "a support that is one example": (
        one_shot({"okapi": np.zeros(3)}),
        "The support 'okapi' cannot be used: Expected 2D array, got 1D array",
    ),
    "supports in a list": (one_shot([X]), "supports is a list. Give a dict of names and arrays."),
    "a name that is no text": (one_shot({7: X}), "A support is named 7, but a name is a string."),
    "the target among the supports": (
        one_shot(name="wrench"),
        "'wrench' is the positive class. Add its rows as examples instead.",
    ),
    "an unknown criterion": (
        one_shot(criterion="accuracy"),
        "criterion='accuracy' is not known. Choose one of 'ap', 'auc', 'lpp', 'squashed',",
    ),
    "an unknown search": (
        one_shot(search="random"),
        "search='random' is not known. Choose one of 'grid', 'golden'.",
    ),
    "a search that is neither": (
        one_shot(search=True),
        "search=True must be a number in [0, 1]. It is rho; or give 'grid' or 'golden'.",
    ),
    "rho above one": (one_shot(search=1.5), "search=1.5 must be a number in [0, 1]. It is rho"),
    "rho below zero": (one_shot(search=-0.1), "search=-0.1 must be a number in"),
    "rho that is no number": (one_shot(search=np.nan), "search=nan must be a number in"),
    "a negative noise": (one_shot(noise=-1.0), "noise=-1.0 must be a number in [0, inf)."),
    "an unknown noise": (
        one_shot(noise="tiny"),
        "noise='tiny' must be a number in [0, inf). It is a variance; or give 'auto' or "
        "'adaptive'.",
    ),
    "a prior that is no label": (
        one_shot(prior=-2.0),
        "prior=-2.0 must be a number in [-1, 1]. -1 is the background.",
    ),
    "none to answer": (
        one_shot(members=0),
        "members=0. Give a whole number of at least 1.",
    ),
    "more names than supports": (
        one_shot(preselect=4, semantics=ByLength(), name="okapi", unknown="keep"),
        "preselect=4. Give a whole number from 1 to 3.",
    ),
    "no names": (
        one_shot(preselect=0, semantics=ByLength(), name="okapi"),
        "preselect=0. Give a whole number from 1 to 3.",
    ),
    "half a name": (
        one_shot(preselect=1.5, semantics=ByLength(), name="okapi"),
        "preselect=1.5. Give a whole number from 1 to 3.",
    ),
    "a truth for a number": (
        one_shot(preselect=True, semantics=ByLength(), name="okapi"),
        "preselect=True. Give a whole number from 1 to 3.",
    ),
    "a name of the target that is no text": (
        one_shot(name=0),
        "name=0, but a name is a string. Give one, or None.",
    ),
    "an unknown way with names that are not asked for": (
        one_shot(unknown="foo"),
        "unknown='foo' is not known. Choose one of 'raise', 'keep'.",
    ),
    "semantics that has nothing to say": (
        one_shot(preselect=2, semantics=Silent(), name="okapi"),
        "semantics.most_similar returned (), not some supports. Set preselect=None.",
    ),
    "no semantics": (
        one_shot(preselect=1, name="okapi"),
        "preselect=1 compares names, but name='okapi' and semantics=None. Give the positive class "
        "a name, and semantics such as knowmore.semantics.WordNet.",
    ),
    "semantics that compares nothing": (
        one_shot(preselect=1, name="okapi", semantics="wordnet"),
        "but name='okapi' and semantics='wordnet'. Give the positive class a name, and semantics",
    ),
    "no name of the target": (
        one_shot(preselect=1, semantics=ByLength()),
        "preselect=1 compares names, but name=None and semantics=",
    ),
    "an unknown way with unknown names": (
        one_shot(preselect=1, semantics=ByLength(), name="okapi", unknown="drop"),
        "unknown='drop' is not known. Choose one of 'raise', 'keep'.",
    ),
    "semantics that invents names": (
        one_shot(preselect=1, semantics=Inventor(), name="okapi"),
        "semantics.most_similar returned ('unicorn',), not some supports.",
    ),
    "a kernel that is none": (
        OneShotClassifier("rbf", {}),
        "kernel is of type str. Give a scikit-learn Kernel",
    ),
}


@pytest.mark.parametrize("mistake", FIRST)
def test_a_mistake_at_first_leaves_it_unfitted(mistake):
    clf, words = FIRST[mistake]
    with pytest.raises(KnowmoreError) as caught:
        clf.fit(X, Y)
    assert words in str(caught.value)
    assert not clf.__sklearn_is_fitted__()
    assert not hasattr(clf, "n_features_in_")


def test_a_support_that_is_too_large_for_the_kernel():
    clf = OneShotClassifier(DotProduct(), SUPPORTS).fit(X, Y)
    before, state = clf.decision_function(X), clf._living
    huge = np.full((2, 3), 1e200)
    with np.errstate(over="ignore"):
        with pytest.raises(
            KnowmoreError, match=r"The support 'huge' cannot be used: The kernel .* not finite"
        ):
            clf.add_support("huge", huge)
        with pytest.raises(KnowmoreError, match="gave a value that is not finite"):
            clf.add(huge[:1], ["okapi"])
    assert clf._living is state
    np.testing.assert_array_equal(clf.decision_function(X), before)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["okapi"] * 31, "is supported, but there would be 1 class(es): 'okapi'."),
        (
            np.arange(31) % 3,
            "Only binary classification is supported, but there would be 3 class(es): 0,",
        ),
    ],
)
def test_labels_of_other_than_two_classes(labels, words):
    clf = one_shot()
    with pytest.raises(KnowmoreError) as caught:
        clf.fit(X, labels)
    assert words in str(caught.value)
    assert not clf.__sklearn_is_fitted__()


LATER = {
    "the only positive removed": (
        lambda clf: clf.remove([0]),
        "Only binary classification is supported, but there would be 1 class(es): 'background'. "
        "It takes two: the one to learn, and all else as background. Nothing was changed.",
    ),
    "all background removed": (
        lambda clf: clf.remove(range(1, 31)),
        "there would be 1 class(es): 'okapi'.",
    ),
    "everything removed": (
        lambda clf: clf.remove(clf.ids_),
        "there would be 0 class(es): none.",
    ),
    "the only positive relabelled": (
        lambda clf: clf.relabel([0], ["background"]),
        "there would be 1 class(es): 'background'.",
    ),
    "a third class": (
        lambda clf: clf.add(X[:1], ["wrench"]),
        "Only binary classification is supported, but there would be 3 class(es): "
        "'background', 'okapi', 'wrench'. It takes two: the one to learn, and all else as "
        "background. Nothing was changed.",
    ),
    "a support twice": (
        lambda clf: clf.add_support("wrench", X),
        "There is a support 'wrench' already. Remove that one first.",
    ),
    "an empty support": (
        lambda clf: clf.add_support("crab", X[:0]),
        "The support 'crab' cannot be used: Found array with 0 sample(s)",
    ),
    "a support of another width": (
        lambda clf: clf.add_support("crab", X[:, :2]),
        "The support 'crab' cannot be used: X has 2 features",
    ),
    "a support with the target's name": (
        lambda clf: clf.add_support("okapis", X),
        "'okapis' is the positive class. Add its rows as examples instead.",
    ),
    "a support that is not there": (
        lambda clf: clf.remove_support("crab"),
        "There is no support 'crab'. supports_ lists the existing ones.",
    ),
    "fewer supports than are to be chosen from": (
        lambda clf: clf.remove_support("wrench"),
        "preselect=3. Give a whole number from 1 to 2.",
    ),
}


@pytest.mark.parametrize("mistake", LATER)
def test_a_mistake_later_changes_nothing(mistake):
    act, words = LATER[mistake]
    clf = preselecting(3)
    before, state = clf.decision_function(X), clf._living
    with pytest.raises(KnowmoreError) as caught:
        act(clf)
    assert words in str(caught.value)
    assert clf._living is state
    np.testing.assert_array_equal(clf.decision_function(X), before)


@pytest.mark.parametrize("verb", ["add_support", "remove_support", "supports_", "rho_", "ranking_"])
def test_it_must_have_learnt_first(verb):
    clf = one_shot()
    with pytest.raises(KnowmoreError, match="is not fitted yet"):
        clf.remove_support("wrench") if verb == "remove_support" else (
            clf.add_support("crab", X) if verb == "add_support" else getattr(clf, verb)
        )
