"""Rows that have nothing in common with any example are new, unless such rows were learnt."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded

import knowmore
from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
)
from knowmore.insight import novelty
from knowmore.kernels import ChiSquared, HistogramIntersection
from knowmore.workbench.predicting import Predictor

DOT = DotProduct(0.0)
WORDS = 60


def texts(n, seed=0):
    """Rows of words, of length one, each class with words of its own; the last word is unused."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    often = np.where(np.arange(WORDS)[None] % 4 == y[:, None], 4.0, 1.0)
    often[:, -1] = 0
    X = np.array([rng.multinomial(12, row / row.sum()) for row in often]).astype(float)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def histograms(n, seed=0):
    X, y = texts(n, seed)
    return X / X.sum(axis=1, keepdims=True), y


CLASSIFIERS = {
    "linear": (lambda: LinearGPClassifier(1.0), texts),
    "linear without an intercept": (lambda: LinearGPClassifier(1.0, intercept=False), texts),
    "dot": (lambda: GPClassifier(DOT, 1.0), texts),
    "dot and a constant": (lambda: GPClassifier(DotProduct(1.0), 1.0), texts),
    "rbf": (lambda: GPClassifier(RBF(1.0), 0.1), texts),
    "intersection": (lambda: GPClassifier(HistogramIntersection(), 0.1), histograms),
    "chi-squared": (lambda: GPClassifier(ChiSquared(), 0.1), histograms),
    "forest": (lambda: ForestGPClassifier(DOT, 1.0, capacity=60, n_trees=2), texts),
}
REGRESSORS = {
    "linear": lambda: LinearGPRegressor(1.0),
    "dot": lambda: GPRegressor(DOT, 1.0),
    "forest": lambda: ForestGPRegressor(DOT, 1.0, capacity=60),
}


def asked(model, X, y, Q, method=None):
    """The novelty of rows Q to a model of X and y."""
    reference = (X, y) if isinstance(model, (LinearGPClassifier, LinearGPRegressor)) else None
    return novelty(model, Q, method, reference=reference)


def methods(name):
    some = [None, "variance", "probability"]
    return some if name == "forest" else [*some, "null_space"]


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name in CLASSIFIERS for method in methods(name)]
)
def test_a_text_without_a_known_word_is_new(name, method):
    make, draw = CLASSIFIERS[name]
    X, y = draw(200)
    found = asked(
        make().fit(X, y), X, y, np.vstack([np.zeros((1, WORDS)), draw(200, 1)[0]]), method
    )
    unknown = found.unknown(0.95)
    assert unknown[0]
    # Of texts like those learnt one in twenty may be called unknown: within four deviations.
    assert unknown[1:].mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_text_without_a_known_word_is_new_to_a_regressor(name):
    X, y = texts(200)
    model = REGRESSORS[name]().fit(X, y.astype(float))
    found = asked(model, X, y.astype(float), np.vstack([np.zeros((1, WORDS)), texts(100, 1)[0]]))
    unknown = found.unknown(0.95)
    assert unknown[0]
    assert unknown[1:].mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_row_along_a_column_that_nobody_used_is_new(name):
    make, draw = CLASSIFIERS[name]
    X, y = draw(200)
    Q = np.zeros((1, WORDS))
    Q[0, -1] = 1
    assert asked(make().fit(X, y), X, y, Q).unknown(0.95).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_a_linear_model_that_learnt_empty_texts_knows_them(intercept):
    X, y = texts(200)
    X[:4] = 0
    model = LinearGPClassifier(1.0, intercept=intercept).fit(X, y)
    zero = np.zeros((1, WORDS))
    for method in (None, "variance"):
        assert not novelty(model, zero, method, reference=(X, y)).unknown(0.95).any()
        # Sums do not know: without these rows the text counts as new.
        assert novelty(model, zero, method, reference=(X[4:], y[4:])).unknown(0.95).all()
    assert_rounded(
        novelty(model, zero, "variance", reference=(X, y)).values, model.predict_variance(zero)
    )


@pytest.mark.parametrize("name", ["dot", "dot and a constant", "intersection", "rbf"])
def test_an_example_that_was_learnt_is_not_unrelated(name):
    make, draw = CLASSIFIERS[name]
    X, y = draw(60)
    X[:2] = 0
    model = make().fit(X, y)
    zero = np.zeros((1, WORDS))
    assert not model.model_.unrelated(zero).any()
    assert not model.model_.left_out.unrelated().any()
    assert_rounded(novelty(model, zero, "variance").values, model.predict_variance(zero))


@pytest.mark.parametrize("name", ["dot", "dot and a constant", "intersection", "rbf", "forest"])
@pytest.mark.parametrize("method", ["variance", "probability"])
def test_the_only_empty_text_left_out_is_as_new_as_to_a_fit_without_it(name, method):
    make, draw = CLASSIFIERS[name]
    X, y = draw(60)
    X[7] = 0
    rest = np.arange(60) != 7
    whole, without = make().fit(X, y), make().fit(X[rest], y[rest], ids=np.flatnonzero(rest))
    want = novelty(without, X[[7]], method).values
    assert_rounded(novelty(whole, X, method).left_out[[7]], want, 1e5)


def test_in_a_table_of_few_columns_zero_is_a_value_like_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), np.arange(60) % 2
    X = np.where(X > 0, X + 0.1, X - 0.1)
    for model in (
        LinearGPClassifier().fit(X, y),
        GPClassifier(DotProduct(1.0)).fit(X, y),
        GPRegressor(DOT).fit(X, y),
    ):
        value = asked(model, X, y, [[0.0]], "variance").values
        assert_rounded(value, model.predict_variance([[0.0]]))


def test_rows_may_be_sparse():
    X, y = texts(200)
    model = LinearGPClassifier(1.0).fit(sparse.csr_matrix(X), y)
    Q = sparse.csr_matrix(np.vstack([np.zeros((1, WORDS)), X[:1]]))
    found = novelty(model, Q, reference=(sparse.csr_matrix(X), y)).unknown(0.99)
    assert found.tolist() == [True, False]


def test_predictions_call_an_empty_text_unknown():
    X, y = texts(200)
    for kernel in (DOT, DotProduct(1.0), RBF(1.0)):
        clf = GPClassifier(kernel, 1.0).fit(X, y)
        assert clf.predict(np.zeros((1, WORDS)), unknown=-1).tolist() == [-1]


@pytest.mark.parametrize("learnt", [False, True])
@pytest.mark.parametrize("name", ["linear", "dot", "forest"])
def test_a_file_says_the_same(name, learnt, tmp_path):
    make, draw = CLASSIFIERS[name]
    X, y = draw(200)
    X[:4] *= not learnt
    Q = np.vstack([np.zeros((1, WORDS)), draw(20, 1)[0]])
    with knowmore.open(tmp_path / "texts.km", make()) as store:
        store.add(X, y)
        told = [answer.unknown for answer in Predictor(store, 0.05, keep=True)(Q)]
        again = [answer.unknown for answer in Predictor(store, 0.05, keep=True)(Q)]
        want = asked(store.estimator, X, y, Q).unknown(0.95).tolist()
    assert told == again == want
    if name == "linear" or not learnt:
        assert told[0] is not learnt
