"""Scores without grounds equal refits; votes sum to the score; all numbers are of its size."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.datasets import load_iris
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    Scores,
)
from knowmore.errors import InvalidInput, InvalidType
from knowmore.insight import explain, grounds
from knowmore.insight.asking import processes
from knowmore.insight.grounds import _Said
from knowmore.kernels import ChiSquared

WIDE = RBF(30.0)


def scene(n=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.array(["ash", "oak", "yew"])[np.arange(n) % 3], rng.normal(size=3)


def known_scores(X):
    return np.column_stack([X[:, 0] - X[:, 1], X[:, 1] - X[:, 0]])


MODELS = {
    "GP": (lambda: GPClassifier(RBF(1.5), 0.1), RBF(1.5), 0.1, False),
    "inverse": (lambda: GPClassifier(RBF(1.5), 0.1, solver="inverse"), RBF(1.5), 0.1, False),
    "wide": (lambda: GPClassifier(WIDE, 1e-8), WIDE, 1e-8, False),
    "linear": (lambda: GPClassifier(DotProduct(1.0), 1e-4), DotProduct(1.0), 1e-4, False),
    "LSSVM": (lambda: LSSVMClassifier(RBF(1.5), 10), RBF(1.5), 0.1, True),
    "no bias": (lambda: LSSVMClassifier(RBF(1.5), 10, bias=False), RBF(1.5), 0.1, False),
    "N + 1": (
        lambda: NPlusOneClassifier(
            Scores(["ash", "oak"], known_scores), RBF(1.5), 10, positive=False, scaled=False
        ),
        RBF(1.5),
        0.1,
        True,
    ),
}


@pytest.mark.parametrize("against", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_scores_without_grounds_are_those_of_refits(name, against):
    make, kernel, noise, bias = MODELS[name]
    X, y, x = scene()
    w = np.random.default_rng(1).uniform(0.2, 5, size=30)
    clf = make().fit(X, y, sample_weight=w, ids=[f"tree {i}" for i in range(30)])
    classes, T = oracle.one_vs_all(y)
    T, at_x = T.astype(float), np.zeros(3)
    if name == "N + 1":
        S, s = known_scores(X), known_scores(x[None])
        T -= np.column_stack([S, S @ clf.beta_])
        at_x = np.column_stack([s, s @ clf.beta_])[0]
    K, k = oracle.covariance(kernel, X, noise / w), kernel(X, x[None])
    solver = "inverse" if name == "inverse" else "cholesky"

    def check(got, gone, c):
        rest = np.setdiff1d(np.arange(30), gone)
        want = oracle.scores(kernel, noise / w[rest], X[rest], T[rest][:, [c]], x[None], bias)
        got = [[got - at_x[c]]]
        assert_solves(got, want, K, T[:, [c]], left=k, solver=solver, bias=bias)

    for c, label in enumerate(classes):
        found = grounds(clf, x, label, 5, against=against)
        check(found.score, [], c)
        gone = []
        for i, ids in enumerate(found.ids):
            rows = [int(one.split()[1]) for one in ids]
            gone += rows
            check(found.score_without[i], rows, c)
            check(found.score_left[i], gone, c)
            assert {*y[rows]} == {found.labels[i]}
        falls = np.diff(found.score_left, prepend=found.score)
        assert (falls > 0).all() if against else (falls < 0).all()


@pytest.mark.parametrize("kernel", [WIDE, DotProduct(1.0), ChiSquared(), RBF(1.0)])
@pytest.mark.parametrize("noise", [0.1, 1e-8])
def test_numbers_are_of_the_size_of_the_score_and_votes_sum_to_it(kernel, noise):
    X, y = load_iris(return_X_y=True)
    clf = GPClassifier(kernel, noise).fit(X[::2], y[::2])
    K, k = oracle.covariance(kernel, X[::2], noise), kernel(X[::2], X[1::30])
    for row, x in enumerate(X[1::30]):
        found = grounds(clf, x, n=100)
        numbers = [*found.votes, *found.score_without, *found.score_left]
        assert len(found) > 0
        assert np.abs(numbers).max() < 5
        q = np.linalg.solve(K, k[:, row])
        t = np.where(y[::2] == found.label, 1.0, -1.0)
        bound = tolerance(K) * np.linalg.norm(q) * np.sqrt(len(K)) * np.linalg.cond(K) ** 0.5
        assert abs(q @ t - found.score) <= bound
        rows = [[*ids] for ids in found.ids]
        got = np.array([(q * t)[some].sum() for some in rows])
        assert np.abs(got - found.votes).max() <= bound
    # What they replace: terms that cancel.
    if kernel is WIDE and noise < 0.1:
        assert abs(explain(clf, X[1]).contributions).max() > 1e4


def test_votes_of_all_examples_and_the_offset_sum_to_the_score():
    X, y, x = scene(9)
    values = 5 + X @ [1.0, 2.0, -1.0]
    source = Scores(["ash", "oak"], known_scores)
    models = {
        "GP": GPClassifier(RBF(1.5), 0.1).fit(X, y),
        "LSSVM": LSSVMClassifier(RBF(1.5), 10).fit(X, y),
        "N + 1": NPlusOneClassifier(source, RBF(1.5), 10, positive=False, scaled=False).fit(X, y),
        "values": GPRegressor(RBF(1.5), 0.1, normalize_y=True).fit(X, values),
        "forest": ForestGPClassifier(RBF(1.5), 0.1, capacity=4, n_trees=3).fit(X, y),
    }
    for name, model in models.items():
        label = None if name == "values" else "oak"
        c = model.model_.names.tolist().index(label or 0)
        every = [gp for ((gp, _),) in processes(model.model_, model.model_inputs(x[None]))]
        said = _Said.of(every, model.model_inputs(x[None]), model.model_.names, c)
        found = grounds(model, x, label, 9)
        assert_rounded(sum(said.votes.values()) + found.offset, found.score, 1e4, 10.0)
        assert (found.offset != 0) == (name in ("N + 1", "values"))
        for ids, vote in zip(found.ids, found.votes, strict=True):
            assert_rounded(sum(said.votes[i] for i in said.ids if said.ids[i] in ids), vote)


def test_examples_that_take_each_others_place_are_one_ground():
    X, y, _ = scene()
    twice, labels = np.vstack([X, X[:3] + 1e-6]), np.append(y, y[:3])
    clf = GPClassifier(RBF(0.5), 1e-3).fit(twice, labels)
    found = grounds(clf, X[0], y[0])
    assert {*found.ids[0]} == {0, 30}
    assert found.labels[0] == "ash"
    alone = explain(clf, X[0], y[0])
    # Without one of them hardly anything changes; without both, everything.
    assert abs(alone.score_without[alone.ids == 0] - alone.score).max() < 0.01
    assert found.score_without[0] < 0
    # An example of another class takes nobody's place.
    other = GPClassifier(RBF(0.5), 1e-3).fit(twice, [*labels[:-3], "yew", *labels[-2:]])
    assert grounds(other, X[0], "ash").ids[0] == (0,)


def test_the_list_ends_when_another_label_is_predicted():
    X, y = np.array([[0.0], [0.4], [3.0], [3.5]]), ["a", "a", "b", "b"]
    clf = GPClassifier(RBF(1.0), 0.1).fit(X, y)
    found = grounds(clf, [0.3])
    gone = [one for ids in found.ids for one in ids]
    assert (found.label, found.instead) == ("a", "b")
    T = clf.model_.targets.T
    rest = np.setdiff1d(np.arange(4), gone)
    scores = oracle.scores(RBF(1.0), 0.1, X[rest], T[rest], np.array([[0.3]]))[0]
    assert scores.argmax() == 1
    assert_rounded(found.score_left[-1], scores[0], scale=1.0)
    # Asked about another label than the predicted one, there is nothing to change.
    assert grounds(clf, [0.3], "b").instead is None
    assert grounds(clf, [0.3], n=1).instead in ("a", "b")


def test_without_the_only_example_nothing_is_left():
    for model in GPClassifier(RBF(1.0), 0.1), LSSVMClassifier(RBF(1.0)):
        found = grounds(model.fit([[1.0]], ["a"]), [1.5])
        assert found.ids[0] == (0,)
        assert_rounded(found.score_left, [0.0], scale=1.0)


@pytest.mark.parametrize("normalised", [False, True])
def test_values_are_without_grounds_what_a_refit_says(normalised):
    X, _, x = scene()
    values = np.column_stack([100 + X @ [3.0, 1.0, 2.0], X[:, 0]])
    reg = GPRegressor(RBF(1.5), 0.1, normalize_y=normalised).fit(X, values)
    found = grounds(reg, x, 0, 4)
    assert len(found) == 4
    assert found.instead is None
    away = abs(found.score_left - found.score)
    assert (np.diff(away) > 0).all()
    gone = []
    K = oracle.covariance(RBF(1.5), X, 0.1)
    for ids, without, left in zip(found.ids, found.score_without, found.score_left, strict=True):
        gone += ids
        for got, rows in ((without, [*ids]), (left, gone)):
            rest = np.setdiff1d(np.arange(30), rows)
            fresh = GPRegressor(RBF(1.5), 0.1, normalize_y=normalised)
            want = fresh.fit(X[rest], values[rest]).predict(x[None])[0, 0]
            assert abs(got - want) <= tolerance(K) * np.linalg.norm(values) * len(K)


@pytest.mark.parametrize("trees", [1, 3])
def test_forests_are_asked_leaf_by_leaf(trees):
    X, y, x = scene(60)
    forest = ForestGPClassifier(RBF(1.5), 0.1, capacity=16, n_trees=trees).fit(X, y)
    found = grounds(forest, x, n=4)
    leaves = [gp for ((gp, _),) in processes(forest.model_, x[None])]
    c, gone = forest.classes_.tolist().index(found.label), set()
    for ids, left in zip(found.ids, found.score_left, strict=True):
        gone |= {*ids}
        scores = []
        for leaf in leaves:
            held = leaf.examples
            rest = [i for i, one in enumerate(held.names) if one not in gone]
            t = np.where(held.labels[rest] == forest.classes_[c], 1.0, -1.0)[:, None]
            scores.append(oracle.scores(RBF(1.5), 0.1, held.X[rest], t, x[None])[0, 0])
        assert_rounded(left, np.mean(scores), 1e4, 1.0)
    values = ForestGPRegressor(RBF(1.5), 0.1, capacity=16, n_trees=trees).fit(X, X[:, 0])
    assert len(grounds(values, x, n=3)) == 3


def test_it_reads_as_a_table():
    clf = GPClassifier(RBF(1.0), 0.1).fit([[0.0], [1.0]], ["a", "b"], ids=["x", "y"])
    found = grounds(clf, [0.2])
    assert repr(found).startswith("Grounds: 'a' has score ")
    table = found.to_pandas()
    assert list(table.columns) == ["id", "label", "vote", "score_without", "score_left"]
    none = grounds(clf, [0.2], against=True, n=1)
    assert len(none) in (0, 1)
    far = grounds(clf, [1e3])
    assert repr(far) == "Grounds: 'a' has score 0, and rests on no single example"


def test_mistakes_are_explained():
    clf = GPClassifier(RBF(1.0)).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidInput, match=r"^n=0\. Give a whole number of at least 1\.$"):
        grounds(clf, [0.0], n=0)
    with pytest.raises(InvalidInput, match=r"^label='c' is not scored\. Choose"):
        grounds(clf, [0.0], "c")
    hinge = GPClassifier(loss="squared_hinge").fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidInput, match=r"^With loss=\"squared_hinge\" an example that is left"):
        grounds(hinge, [0.0])
    linear = LinearGPClassifier().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidType, match=r"not LinearGPClassifier\. Ask explain\(\)"):
        grounds(linear, [0.0])
