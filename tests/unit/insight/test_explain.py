"""Contributions sum to the score; the score without an example equals a refit's."""

from __future__ import annotations

import numpy as np
import oracle
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_solves

from knowmore import (
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LSSVMClassifier,
    NPlusOneClassifier,
    Scores,
)
from knowmore.errors import InvalidInput, InvalidType, NoExamples, NotFitted
from knowmore.insight import explain


def scene(rng, n=30):
    X = rng.normal(size=(n, 3))
    return X, np.array(["ash", "oak", "yew"])[np.arange(n) % 3]


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
@pytest.mark.parametrize("kernel", [RBF(1.5), DotProduct(1.0)])
@pytest.mark.parametrize("noise", [0.1, 1e-4])
def test_the_score_without_an_example_matches_a_refit(solver, kernel, noise):
    rng = np.random.default_rng(0)
    X, y = scene(rng)
    clf = GPClassifier(kernel, noise, solver=solver).fit(X, y).remove([4]).relabel([7], ["yew"])
    x, held = rng.normal(size=3), clf.model_.examples
    classes, T = oracle.one_vs_all(held.labels)
    K, k = oracle.covariance(kernel, held.X, noise), kernel(held.X, x[None])
    for c, label in enumerate(classes):
        found = explain(clf, x, label)
        t, rows = T[:, [c]], held.rows(tuple(found.ids.tolist()))
        rest = [np.delete(np.arange(len(T)), i) for i in rows]
        want = [oracle.scores(kernel, noise, held.X[r], t[r], x[None])[0] for r in rest]
        assert_solves(found.score_without[:, None], want, K, t, solver=solver, left=k)
        assert_solves(
            found.contributions.sum()[None, None],
            k.T @ oracle.solve(K, t),
            K,
            t,
            solver=solver,
            left=k,
        )
        np.testing.assert_array_equal(found.labels, held.labels[rows])


def known_scores(X):
    """The explanation of a classifier of ash and oak."""
    return np.column_stack([X[:, 0] - X[:, 1], X[:, 1] - X[:, 0]])


MODELS = {
    "GP": lambda: GPClassifier(RBF(1.5)),
    "LSSVM": lambda: LSSVMClassifier(RBF(1.5), 10),
    "without bias": lambda: LSSVMClassifier(RBF(1.5), 10, bias=False),
    "N + 1": lambda: NPlusOneClassifier(
        Scores(["ash", "oak"], known_scores), RBF(1.5), 10, positive=False, scaled=False
    ),
    "N + 1, scaled": lambda: NPlusOneClassifier(
        Scores(["ash", "oak"], known_scores), RBF(1.5), 10, positive=False
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_explanations_of_all_models_match_refits(name):
    rng = np.random.default_rng(6)
    X, y = scene(rng)
    clf = MODELS[name]().fit(X, y, sample_weight=rng.uniform(0.2, 5, size=30))
    x, bias, noise = (
        rng.normal(size=3),
        name in ("LSSVM", "N + 1", "N + 1, scaled"),
        0.1 / clf.model_.examples.weights,
    )
    classes, T = oracle.one_vs_all(y)
    shift, at_x = np.zeros_like(T), np.zeros((1, 3))
    if name == "N + 1":
        S, s = known_scores(X), known_scores(x[None])
        shift, at_x = np.column_stack([S, S @ clf.beta_]), np.column_stack([s, s @ clf.beta_])
    if name == "N + 1, scaled":
        targets = clf.model_.targets
        assert 0 < clf.model_.minimum.share < 1
        shift, at_x = T - targets.T, known_scores(x[None]) @ targets.prior
    K, k = oracle.covariance(RBF(1.5), X, noise), RBF(1.5)(X, x[None])
    for c, label in enumerate(classes):
        found, t = explain(clf, x, label), (T - shift)[:, [c]]
        rest = [np.delete(np.arange(30), i) for i in found.ids]
        want = [oracle.scores(RBF(1.5), noise[r], X[r], t[r], x[None], bias)[0] for r in rest]
        got = found.score_without - at_x[0, c]
        assert_solves(got[:, None], want, K, t, left=k, bias=bias)
        assert_rounded(found.contributions.sum() + found.offset, found.score, scale=10.0)
        offset = oracle.scores(RBF(1.5), noise, X, t, x[None] + 1e3, bias)[0, 0]
        assert_solves([[found.offset - at_x[0, c]]], [[offset]], K, t, left=k, bias=bias)
        score = oracle.scores(RBF(1.5), noise, X, t, x[None], bias)
        assert_solves([[found.score - at_x[0, c]]], score, K, t, left=k, bias=bias)


def test_without_the_only_example_a_bias_scores_zero():
    found = explain(LSSVMClassifier(RBF(1.0)).fit([[1.0]], ["a"]), [1.5])
    assert not found.score_without.any()
    assert_rounded(found.contributions.sum() + found.offset, found.score)
    assert found.score == 1


def test_the_strongest_come_first_and_all_are_there():
    X, y = scene(np.random.default_rng(1))
    clf = GPClassifier().fit(X, y, ids=[f"tree-{i}" for i in range(30)])
    found = explain(clf, X[3])
    assert sorted(found.ids) == sorted(clf.ids_)
    assert (np.diff(abs(found.contributions)) <= 0).all()


def test_the_predicted_class_is_explained_unless_another_is_asked_for():
    X, y = scene(np.random.default_rng(2))
    clf = GPClassifier().fit(X, y)
    scores = clf.decision_function(X[:1])[0]
    assert explain(clf, X[0]).label == clf.predict(X[:1])[0]
    for label, score in zip(clf.classes_, scores, strict=True):
        found = explain(clf, X[:1], label=label)
        assert (found.label, type(found.label)) == (label, str)
        assert_rounded(found.score, score)
        terms = abs(found.contributions).sum()
        assert_rounded(found.contributions.sum(), score, scale=terms)


def test_it_explains_by_the_examples_held_now():
    X, y = scene(np.random.default_rng(3))
    clf = GPClassifier(RBF(1.0), 0.1).fit(X, y)
    clf.remove([0, 5]).replace([9], [[0.0, 0.0, 0.0]], ["new"])
    clf.add(X[:2] + 1, ["oak", "elm"])
    held = clf.model_.examples
    fresh = GPClassifier(RBF(1.0), 0.1).fit(held.X, held.labels, held.ids)
    K = oracle.covariance(RBF(1.0), held.X, 0.1)
    T = held.labels[:, None] == clf.classes_
    one, other = explain(clf, X[0]), explain(fresh, X[0])
    assert one.label == other.label
    t = np.where(T[:, clf.classes_ == one.label], 1.0, -1.0)
    mine, theirs = (dict(zip(e.ids.tolist(), e.score_without, strict=True)) for e in (one, other))
    assert mine.keys() == theirs.keys()
    got, want = np.array([[mine[i], theirs[i]] for i in mine]).T
    assert_solves(got[:, None], want[:, None], K, t, left=RBF(1.0)(held.X, X[:1]))


def test_without_the_only_example_nothing_is_left():
    found = explain(GPClassifier(RBF(1.0), 0.1).fit([[1.0]], ["a"]), [1.5])
    assert found.ids.tolist() == [0]
    assert_rounded(found.score_without, [0.0], scale=found.score)
    assert_rounded(found.contributions, [found.score])


def test_regression_values_are_explained_like_scores():
    rng = np.random.default_rng(4)
    X, values = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    both = GPRegressor(RBF(1.0), 0.1).fit(X, values)
    one = GPRegressor(RBF(1.0), 0.1).fit(X, values[:, 1])
    found, alone = explain(both, X[0], label=1), explain(one, X[0])
    K, k = oracle.covariance(RBF(1.0), X, 0.1), RBF(1.0)(X, X[:1])
    got, want = found.score_without[:, None], alone.score_without[:, None]
    assert_solves(got, want, K, values[:, 1:], left=k)
    np.testing.assert_array_equal(found.labels, values[found.ids, 1])
    with pytest.raises(InvalidInput, match=r"^label=None is not .* Choose one of 0, 1\.$"):
        explain(both, X[0])


def test_x_may_be_a_row_of_a_pandas_table():
    X, y = scene(np.random.default_rng(5))
    table = pd.DataFrame(X, columns=["height", "girth", "age"])
    clf = GPClassifier().fit(table, y)
    rows = explain(clf, table.iloc[4]), explain(clf, table.iloc[[4]])
    for one in rows:
        np.testing.assert_array_equal(one.score_without, rows[0].score_without)
    with pytest.raises(InvalidInput, match="feature names"):
        explain(clf, table[["age", "girth", "height"]].iloc[4])


def test_x_may_be_a_row_of_a_polars_table():
    polars = pytest.importorskip("polars")
    X, y = scene(np.random.default_rng(5))
    table = polars.DataFrame(X)
    want = explain(GPClassifier().fit(table, y), table[4:5]).score
    assert explain(GPClassifier().fit(X, y), polars.Series(X[4])).score == want


def test_it_reads_as_a_table():
    clf = GPClassifier(RBF(1.0)).fit([[0.0], [1.0]], ["a", "b"], ids=["x", "y"])
    found = explain(clf, [0.2])
    assert repr(found).startswith("Explanation: 'a' has score ")
    table = found.to_pandas()
    assert list(table.columns) == ["id", "label", "contribution", "score_without"]
    assert table["id"].tolist() == found.ids.tolist() == ["x", "y"]


def fitted():
    return GPClassifier().fit([[0.0, 0.0], [1.0, 1.0]], ["a", "b"])


MISTAKES = {
    "several rows": (
        lambda: explain(fitted(), [[0.0, 0.0], [1.0, 0.0]]),
        InvalidInput,
        "x has 2 rows, but one prediction is explained. Give one row.",
    ),
    "another class": (
        lambda: explain(fitted(), [0.0, 0.0], label="c"),
        InvalidInput,
        "label='c' is not scored. Choose one of 'a', 'b'.",
    ),
    "several classes": (
        lambda: explain(fitted(), [0.0, 0.0], label=np.array(["a", "b"])),
        InvalidInput,
        "label=array(['a', 'b'], dtype='<U1') is not scored. Choose one of 'a', 'b'.",
    ),
    "another width": (
        lambda: explain(fitted(), [0.0]),
        InvalidInput,
        "X has 1 features, but GPClassifier is expecting 2 features as input.",
    ),
    "a table without rows": (
        lambda: explain(fitted(), np.empty((0, 2))),
        InvalidInput,
        "x is empty. Give at least one row to ask about.",
    ),
    "nothing learnt": (
        lambda: explain(GPClassifier(), [0.0]),
        NotFitted,
        "This GPClassifier is not fitted yet. Call fit or add first.",
    ),
    "nothing held": (
        lambda: explain(fitted().remove([0, 1]), [0.0, 0.0]),
        NoExamples,
        "The model holds no examples: all were removed. Add some before asking.",
    ),
    "no model": (
        lambda: explain("model", [0.0]),
        InvalidType,
        "This question is for a fitted GPClassifier, GPRegressor, LSSVMClassifier, "
        "NPlusOneClassifier, LinearGPClassifier, LinearGPRegressor, ForestGPClassifier or "
        "ForestGPRegressor, not str.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name):
    act, error, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        act()
    assert isinstance(caught.value, KnowmoreError)
    assert str(caught.value) == text


@pytest.mark.parametrize("x", [[0.0, np.nan], [0.0, np.inf]])
def test_x_is_finite(x):
    with pytest.raises(InvalidInput, match="contains"):
        explain(fitted(), x)
