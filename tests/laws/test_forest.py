"""After any history a forest has the leaves of a fresh fit, and its scores."""

from __future__ import annotations

import copy
import pickle

import made_up
import numpy as np
import pytest
import trees_oracle
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern

from knowmore import ForestGPClassifier, ForestGPRegressor

CLASSES = ["ape", "bee", "cat", "dog"]
NAMES = {
    "integers": lambda i: i,
    "strings": lambda i: f"no. {i}",
    "mixed": lambda i: [i - 50, f"{i}", 2**63 + i, -(2**70) - i][i % 4],
}


def leaves(estimator):
    """The sets of ids in the leaves of each tree, from left to right."""
    trees = estimator.model_.trees
    return [[set(leaf.members.ids.tolist()) for leaf in tree.leaves()] for tree in trees]


class History:
    """Edits go to a forest and to a dictionary of id: (x, label, weight)."""

    def __init__(self, seed, estimator, name, rows):
        self.rng, self.estimator, self.name, self.rows = (
            np.random.default_rng(seed),
            estimator,
            name,
            rows,
        )
        self.held, self.issued = {}, 0

    def inputs(self, k):
        """New rows: fresh, equal to others, or all alike."""
        if self.rows == "equal":
            return np.ones((k, 2))
        if self.rows == "indicators":
            return np.eye(40)[self.rng.integers(0, 40, k)]
        X = self.rng.normal(size=(k, 2))
        X[:, 1] = X[:, 1].round() if self.rows == "ties" else X[:, 1]
        if self.rows == "ties" and self.held:
            for i, one in enumerate(self.some(k // 2)):
                X[i] = self.held[one][0]
        return X

    def values(self, k):
        if isinstance(self.estimator, ForestGPRegressor):
            return self.rng.normal(size=k) + 10
        return self.rng.choice(CLASSES[: self.rng.integers(1, 5)], k)

    def some(self, k):
        held = list(self.held)
        return [held[i] for i in self.rng.permutation(len(held))[:k]]

    def fresh(self, k):
        ids = [self.name(i) for i in range(self.issued, self.issued + k)]
        self.issued += k
        weights = self.rng.choice([1.0, 1.0, 1.0, 2.0, 0.5, 0.0], k)
        weights[0] = 1.0
        rows = self.inputs(k), self.values(k), ids, weights
        return rows, dict(zip(ids, zip(*rows[:2], weights, strict=True), strict=True))

    def add(self):
        rows, new = self.fresh(int(self.rng.choice([1, 1, 2, 30])))
        self.estimator.add(*rows)
        self.held |= new

    def remove(self):
        ids = self.some(int(self.rng.choice([1, 1, 2, 20])))
        self.estimator.remove(ids)
        for one in ids:
            del self.held[one]

    def replace(self):
        ids = self.some(int(self.rng.choice([1, 3])))
        X, y = self.inputs(len(ids)), self.values(len(ids))
        keep = bool(self.rng.integers(2))
        self.estimator.replace(ids, X, None if keep else y)
        for one, x, label in zip(ids, X, y, strict=True):
            _, old, weight = self.held[one]
            self.held[one] = x, old if keep else label, weight

    def relabel(self):
        ids = self.some(int(self.rng.choice([1, 5])))
        y, shape = self.values(len(ids)), leaves(self.estimator)
        self.estimator.relabel(ids, y)
        assert leaves(self.estimator) == shape
        for one, label in zip(ids, y, strict=True):
            x, _, weight = self.held[one]
            self.held[one] = x, label, weight

    def merge(self):
        rows, new = self.fresh(5)
        other = clone(self.estimator).fit(*rows)
        self.estimator.merge(other)
        self.held |= new

    def step(self):
        verbs = [self.add, self.add, self.remove, self.replace, self.relabel, self.merge]
        verb = verbs[self.rng.integers(len(verbs))]
        verb() if len(self.held) > 1 else self.add()
        if not any(weight for _, _, weight in self.held.values()):
            self.add()

    def check_leaves(self):
        p = self.estimator.get_params()
        counted = {one: x.tolist() for one, (x, _, weight) in self.held.items() if weight}
        light = {one for one, (_, _, weight) in self.held.items() if not weight}
        assert set(self.estimator.ids_.tolist()) == set(self.held)
        for number, found in enumerate(leaves(self.estimator)):
            tree = trees_oracle.grown(counted, p["capacity"], p["seed"], number)
            assert [leaf - light for leaf in found] == trees_oracle.leaves(tree)
            assert set().union(*found) == set(self.held)
            yield tree


def by_definition(history, trees, queries):
    """The scores of a classifier by `trees_oracle`, and their error."""
    p, held = history.estimator.get_params(), history.held
    counted = {one: row for one, row in held.items() if row[2]}
    X, y = ({one: row[i] for one, row in counted.items()} for i in (0, 1))
    noises = {one: p["noise"] / row[2] for one, row in counted.items()}
    classes = sorted(set(y.values()))
    assert history.estimator.classes_.tolist() == classes
    parts = [
        trees_oracle.scores(tree, X, y, classes, p["kernel"], noises, queries) for tree in trees
    ]
    return np.mean(parts, axis=0)


SETTINGS = {
    "one leaf": (100, 1, 0.1, "integers", "fresh"),
    "small leaves": (5, 1, 0.1, "integers", "fresh"),
    "pairs": (2, 2, 0.1, "strings", "ties"),
    "mixed ids": (7, 2, 0.5, "mixed", "ties"),
    "little noise": (6, 1, 1e-8, "integers", "ties"),
    "equal rows": (4, 2, 0.1, "mixed", "equal"),
    "indicators": (5, 2, 0.1, "integers", "indicators"),
    "larger than a sample": (25, 3, 0.01, "strings", "fresh"),
}


@pytest.mark.slow(fast=16)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("setting", SETTINGS)
def test_any_history_has_the_leaves_and_scores_of_the_definition(setting, seed):
    capacity, n_trees, noise, ids, rows = SETTINGS[setting]
    clf = ForestGPClassifier(Matern(1.5), noise, capacity=capacity, n_trees=n_trees, seed=seed)
    history = History(seed, clf, NAMES[ids], rows)
    history.add()
    for number in range(30):
        history.step()
        trees = list(history.check_leaves())
        if number % 5 == 4:
            queries = np.vstack([history.inputs(5), np.ones((1, history.inputs(1).shape[1]))])
            got = clf.decision_function(queries)
            want, error = by_definition(history, trees, queries)
            want, error = (want[:, 1], error[:, 1]) if want.shape[1] == 2 else (want, error)
            assert (abs(got - want) <= error).all(), (abs(got - want) / error).max()
    assert clf.residual() <= 4 * np.finfo(float).eps


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [ForestGPClassifier, ForestGPRegressor])
def test_a_fresh_fit_in_another_order_is_the_same_forest(kind, seed):
    estimator = kind(RBF(1.0), 0.1, capacity=6, n_trees=2, seed=seed)
    history = History(seed, estimator, NAMES["mixed"], "ties")
    history.add()
    for _ in range(60):
        history.step()
        if history.rng.integers(4) == 0:
            estimator.predict(np.zeros((1, 2)))
    ids = history.some(len(history.held))
    X, y, weights = (np.array([history.held[one][i] for one in ids]) for i in range(3))
    fresh = kind(RBF(1.0), 0.1, capacity=6, n_trees=2, seed=seed).fit(X, y, ids, weights)
    assert leaves(estimator) == leaves(fresh)
    queries = history.rng.normal(size=(40, 2))
    spread = 1.0 if kind is ForestGPClassifier else abs(y).max()
    # Six examples of weights up to two: the condition of K~ is at most 6 / 0.05 + 2.
    error = 4 * np.finfo(float).eps * 125 * spread * np.sqrt(6) * 6
    for question in ("predict_variance", "decision_function", "predict"):
        if hasattr(kind, question) and (question, kind) != ("predict", ForestGPClassifier):
            got, want = (getattr(each, question)(queries) for each in (estimator, fresh))
            assert abs(got - want).max() <= error * spread
    mine, theirs = estimator.leave_one_out(), fresh.leave_one_out()
    rows = [theirs.ids.tolist().index(one) for one in mine.ids.tolist()]
    assert abs(mine.scores - theirs.scores[rows]).max() <= error
    assert abs(mine.variance - theirs.variance[rows]).max() <= error * spread


def test_a_huge_column_beside_rare_flags_does_not_fill_a_leaf():
    """Every weighted sum of features is rounded to the same number."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.random((600, 39)) < 0.05, np.full(600, 2.0**60)])
    forest = ForestGPClassifier(capacity=50).fit(X, np.arange(600) % 2)
    assert max(leaf.count for leaf in forest.model_.trees[0].leaves()) <= 50


def depth(node, above=0):
    """The largest number of nodes above a leaf."""
    if not hasattr(node, "cut"):
        return above
    return max(depth(child, above + 1) for child in (node.left, node.right))


def check_made_up(clf, ids, X):
    """Leaves equal the definition's through some edits."""
    p, held = clf.get_params(), {one: x.tolist() for one, x in zip(ids, X, strict=True)}
    rng = np.random.default_rng(0)
    for step in range(12):
        for number, found in enumerate(leaves(clf)):
            tree = trees_oracle.grown(held, p["capacity"], p["seed"], number)
            assert found == trees_oracle.leaves(tree)
        few = [ids[i] for i in rng.permutation(len(ids))[: rng.choice([1, 1, 9])]]
        if step % 3 == 2:
            clf.replace(few, X[: len(few)] + 0.5)
            held |= {one: (x + 0.5).tolist() for one, x in zip(few, X, strict=False)}
            continue
        clf.remove(few)
        again = few[: len(few) // 2 + step % 3]
        for one in few:
            x = held.pop(one)
            if one in again:
                clf.add([x], ["ape"], ids=[one])
                held[one] = x
        ids = [*held]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("capacity", [2, 5, 20])
def test_ids_of_one_hash_are_neither_first_nor_last(capacity, seed):
    rng = np.random.default_rng(seed)
    words = [f"{seed} {i}" for i in range(40)]
    ids = [*words, *map(made_up.twin, words)]
    ids = [ids[i] for i in rng.permutation(80)]
    X = rng.normal(size=(80, 2)).round(1)
    clf = ForestGPClassifier(RBF(1.0), capacity=capacity, n_trees=2)
    check_made_up(clf.fit(X, rng.choice(CLASSES, 80), ids=ids), ids, X)


def test_rows_of_one_place_and_one_hash_share_a_leaf():
    ids = ["a", made_up.twin("a"), "b", made_up.twin("b")]
    clf = ForestGPClassifier(RBF(1.0), capacity=2, n_trees=3).fit(np.ones((4, 2)), CLASSES, ids=ids)
    for found in leaves(clf):
        assert sorted(found, key=lambda leaf: "b" in leaf) == [{*ids[:2]}, {*ids[2:]}]
    clf.remove(["a"])
    assert clf.ids_.tolist() == ids[1:]


# Deep nodes with the least that they can part, and all that they can hold.
BITS = [0, *(2**bit for bit in range(64))]


@pytest.mark.slow(fast=["16"])
@pytest.mark.parametrize("capacity", [2, 16])
def test_no_ids_make_a_tree_deeper_than_twice_64(capacity):
    ids = made_up.chain(66) + [made_up.with_key(bits) for bits in BITS]
    X = np.arange(len(ids))[:, None] * 1.0
    clf = ForestGPClassifier(RBF(1.0), capacity=capacity)
    clf.fit(X, np.resize(CLASSES, len(ids)), ids=ids)
    deepest = depth(clf.model_.trees[0].root)
    assert 64 < deepest <= 128
    assert deepest > 120 or capacity > 2
    for copied in (pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):
        assert leaves(copied) == leaves(clf)
        assert copied.classes_.tolist() == CLASSES
        assert copied.predict(X[-2:]).tolist() == clf.predict(X[-2:]).tolist()
    assert copied.remove(ids).ids_.tolist() == []
    check_made_up(clf, ids, X)


@pytest.mark.slow
def test_no_features_make_a_tree_deeper_than_twice_64():
    X = made_up.ladder(700)
    clf = ForestGPClassifier(RBF(1.0), capacity=2).fit(X, np.resize(CLASSES, len(X)))
    assert 64 < depth(clf.model_.trees[0].root) <= 128
    check_made_up(clf, list(range(len(X))), X)


def test_a_row_that_is_asked_about_goes_left_where_bits_decide():
    X = made_up.ladder(700)
    clf = ForestGPClassifier(RBF(1.0), capacity=2).fit(X, np.resize(CLASSES, len(X)))
    ((leaf, _),) = clf.model_.trees[0].reached(X.max(axis=0)[None])
    node = clf.model_.trees[0].root
    for _ in range(64):
        node = node.right
    while hasattr(node, "cut"):
        node = node.left
    assert leaf is node
