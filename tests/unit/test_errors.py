"""Errors are what callers expect: of knowmore, of Python, and of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from alone import assert_runs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    NPlusOneClassifier,
    SubspaceMonitor,
    errors,
)
from knowmore.errors import KnowmoreWarning, NotFitted
from knowmore.images import Descriptors, ForestCodebook, KMeansCodebook, SpatialPyramid, Words

X = np.eye(2)
DESCRIPTORS = [Descriptors(np.zeros((1, 2)), np.zeros((1, 2)))]
WORDS = [Words(np.zeros((1, 2)), np.array([0]), 1)]

UNFITTED = {
    "classifier": lambda: GPClassifier().predict(X),
    "regressor": lambda: GPRegressor().remove([0]),
    "source": lambda: NPlusOneClassifier(LogisticRegression()).fit(X, ["a", "b"]),
    "PCA": lambda: EigenspacePCA().transform(X),
    "LDA": lambda: EigenspaceLDA().predict(X),
    "monitor": lambda: SubspaceMonitor(1, window=2).window_,
    "k-means codebook": lambda: KMeansCodebook().transform(DESCRIPTORS),
    "forest codebook": lambda: ForestCodebook().transform(DESCRIPTORS),
    "pyramid": lambda: SpatialPyramid().transform(WORDS),
}


@pytest.mark.parametrize("ask", UNFITTED.values(), ids=UNFITTED)
def test_an_unfitted_estimator_raises_the_error_of_scikit_learn_too(ask):
    with pytest.raises(NotFittedError) as caught:
        ask()
    assert isinstance(caught.value, NotFitted)
    assert isinstance(caught.value, KnowmoreError)
    assert "Call fit" in str(caught.value) or "Fit it first" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)


def test_errors_do_not_load_scikit_learn():
    assert_runs("import sys, knowmore.errors, knowmore._base\nassert 'sklearn' not in sys.modules")


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_is_one_of_ours_and_one_of_python(name):
    kind = getattr(errors, name)
    if issubclass(kind, Warning):
        assert issubclass(kind, KnowmoreWarning)
        return
    assert issubclass(kind, KnowmoreError)
    assert name == "KnowmoreError" or len(kind.__mro__) > len(KnowmoreError.__mro__) + 1
    message = ("text", 3) if name == "NotPositiveDefinite" else ("text",)
    assert str(kind(*message)) == "text"


def test_every_error_is_exported():
    defined = {
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and one.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__)
