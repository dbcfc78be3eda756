"""The frozen forest: which leaf answers, what is shared, and what is made when."""

from __future__ import annotations

import pickle

import numpy as np
import oracle
import pytest
import trees_oracle
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_solves

from knowmore.edits import Add, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, NoExamples, NotEnoughMemory, RepeatedId, UnknownId
from knowmore.examples import Examples
from knowmore.linalg import Cholesky
from knowmore.models import KernelModel
from knowmore.models.forest import Forest
from knowmore.models.targets import normalised_values, one_vs_all_and_absent

KERNEL, NOISE = RBF(1.0), 0.1
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
Y = np.array(["far", "in", "out"])[np.minimum((X**2).sum(axis=1) // 1.5, 2).astype(int)]


def forest(X=X, labels=Y, capacity=20, n_trees=1, noise=NOISE, kernel=KERNEL, **more):
    coding = one_vs_all_and_absent if labels.dtype.kind == "U" else normalised_values
    nothing = Examples.of(X[:0], labels[:0])
    model = KernelModel.of(kernel, noise, nothing, coding, Cholesky())
    examples = Examples.of(X, labels, **more)
    return Forest.of(model, examples, capacity=capacity, n_trees=n_trees, seed=0)


def made(some):
    """The number of leaves with a model."""
    leaves = [leaf for tree in some.trees for leaf in tree.leaves()]
    return sum(len(leaf.model.examples) > 0 for leaf in leaves)


def test_a_leaf_is_made_when_it_is_first_asked():
    some = forest()
    assert made(some) == 0
    some.mean(X[:1])
    assert made(some) == 1
    some.mean(X)
    assert made(some) == len(list(some.trees[0].leaves()))


def test_a_class_that_is_absent_from_a_leaf_has_the_target_minus_one_there():
    x = np.linspace(0, 10, 60)[:, None]
    labels = np.array(["low"] * 30 + ["high"] * 29 + ["top"])
    some = forest(x, labels, capacity=10)
    tree = trees_oracle.grown(dict(enumerate(x.tolist())), 10, 0, 0)
    queries = np.array([[0.1], [5.0], [9.9]])
    got = some.mean(queries)
    assert some.names.tolist() == ["high", "low", "top"]
    for query, scores in zip(queries, got, strict=True):
        ids = trees_oracle.leaf_of(tree, query)
        T = trees_oracle.targets(labels[ids], some.names)
        K = oracle.covariance(KERNEL, x[ids], NOISE)
        k = KERNEL(x[ids], query[None])
        assert_solves(scores[None], k.T @ np.linalg.solve(K, T), K, T, left=k)


def test_an_edit_of_a_leaf_updates_its_factor(monkeypatch):
    some = forest(capacity=40)
    some.mean(X)
    appended = []
    append = Cholesky.append
    monkeypatch.setattr(
        Cholesky, "append", lambda self, C, N: appended.append(N.shape) or append(self, C, N)
    )
    shapes = [len(leaf.members) for leaf in some.trees[0].leaves()]
    edit = Add(np.array([[0.1, 0.1]]), np.array(["in"]), ("new",))
    after = some.apply(edit)
    assert sorted(shapes) != sorted(len(leaf.members) for leaf in after.trees[0].leaves())
    after.mean(X)
    assert appended == [(1, 1)]
    after.apply(Remove(("new",))).mean(X)
    after.apply(Relabel((0,), np.array(["out"]))).mean(X)
    assert appended == [(1, 1)]


def test_leaves_that_turn_up_again_keep_their_factors(monkeypatch):
    some = forest(capacity=40)
    some.mean(X)
    tree = some.trees[0]
    known = {leaf.members.serials.tobytes(): leaf.model for leaf in tree.leaves()}
    grown = tree._grown(tree.members, np.arange(len(X)), (tree.key, 0), known)
    monkeypatch.setattr(Cholesky, "append", None)
    for leaf in (grown.left, grown.right):
        while hasattr(leaf, "cut"):
            leaf = leaf.left
        assert len(leaf.current.examples) == len(leaf.members)


def test_with_little_noise_the_leaves_that_change_are_made_at_once():
    some = forest(noise=1e-15)
    assert made(some) == len(list(some.trees[0].leaves()))
    after = some.apply(Add(np.array([[3.0, 3.0]]), np.array(["in"])))
    assert made(after) == len(list(after.trees[0].leaves()))
    assert all(leaf.model.examples is leaf.examples for leaf in after.trees[0].leaves())


def test_a_weight_that_makes_noise_vanish_is_uncertain_too():
    assert made(forest(weights=np.where(np.arange(120) == 7, 1e16, 1.0))) > 0
    assert made(forest(weights=np.where(np.arange(120) == 7, 0.0, 1.0))) == 0


def test_earlier_values_stay_as_they_were():
    some = forest(n_trees=2)
    scores, ids = some.mean(X), some.examples.ids.tolist()
    after = some.apply(Remove((3, 4))).apply(Replace((5,), X[:1], np.array(["new"])))
    after.mean(X)
    assert after.names.tolist() == ["far", "in", "new", "out"]
    assert np.array_equal(some.mean(X), scores)
    assert some.examples.ids.tolist() == ids


def test_ids_are_in_the_order_in_which_examples_came():
    some = forest().apply(Remove((2,))).apply(Add(X[:2], Y[:2])).apply(Replace((1,), X[:1]))
    assert some.examples.ids.tolist() == [0, *range(3, 120), 120, 121, 1]
    assert some.next_id == 122


def test_unknown_and_repeated_ids_are_told_and_change_nothing():
    some = forest()
    with pytest.raises(UnknownId, match="holds no example 999"):
        some.apply(Remove((0, 999)))
    with pytest.raises(UnknownId, match="All its ids are of type int"):
        some.apply(Relabel(("0",), np.array(["in"])))
    with pytest.raises(RepeatedId, match="already holds 7"):
        some.apply(Add(X[:2], Y[:2], (500, 7)))
    assert len(some.examples) == 120


def test_other_features_are_refused():
    with pytest.raises(InvalidInput, match="another thread"):
        forest().apply(Add(np.zeros((1, 3)), np.array(["in"])))


def test_an_empty_forest_has_no_answer_and_grows_again():
    nothing = forest().apply(Remove(tuple(range(120))))
    with pytest.raises(NoExamples, match="all were removed"):
        _ = nothing.nonempty
    light = nothing.apply(Add(X[:2], Y[:2], weights=np.zeros(2)))
    with pytest.raises(NoExamples, match="all have weight zero"):
        _ = light.nonempty
    again = nothing.apply(Add(X, np.arange(120) % 2))
    assert again.names.tolist() == [0, 1]
    assert again.examples.ids.tolist()[-1] == 239


def test_an_error_names_the_row_that_was_asked():
    some = forest(kernel=DotProduct(1.0))
    queries = X.copy()
    queries[77] = 1e300
    with pytest.raises(InvalidInput, match="row 77 of X"):
        some.variance(queries)


def test_lack_of_memory_is_told(monkeypatch):
    def fail(*_):
        raise MemoryError

    some = forest()
    monkeypatch.setattr(KernelModel, "follow", fail)
    with pytest.raises(NotEnoughMemory, match=r"factorise a leaf\. .*smaller capacity or n_trees"):
        some.mean(X[:1])
    monkeypatch.setattr(Examples, "apply", fail)
    with pytest.raises(NotEnoughMemory, match=r"apply this edit\. Nothing was changed"):
        some.apply(Remove((0,)))


def test_the_trees_of_values_are_mixed():
    values = np.sin(X[:, 0]) + 5
    some = forest(labels=values, n_trees=3)
    means, variances = [], []
    for number in range(3):
        tree = trees_oracle.grown(dict(enumerate(X.tolist())), 20, 0, number)
        for query in X[:10]:
            ids = trees_oracle.leaf_of(tree, query)
            m, s = oracle.units(values[ids, None], np.ones(len(ids)))
            T = (values[ids, None] - m) / s
            means.append(m + s * oracle.scores(KERNEL, NOISE, X[ids], T, query[None])[0])
            variances.append(s**2 * oracle.variance(KERNEL, NOISE, X[ids], query[None]))
    means, variances = np.reshape(means, (3, 10, 1)), np.reshape(variances, (3, 10, 1))
    # Leaves of twenty at noise 0.1 have a condition of about 200.
    assert_rounded(some.mean(X[:10]), means.mean(axis=0), 4 * 200)
    want = (variances + means**2).mean(axis=0) - means.mean(axis=0) ** 2
    assert_rounded(some.variance(X[:10]), want, 4 * 200, scale=25)


def test_a_pickle_has_the_same_bits_and_nothing_that_was_removed():
    some = forest(n_trees=2)
    some.mean(X)
    after = some.apply(Remove((11, 64)))
    text = pickle.dumps(after)
    assert X[11].tobytes() not in text
    assert X[64].tobytes() not in text
    assert X[12].tobytes() in text
    assert np.array_equal(pickle.loads(text).mean(X), after.mean(X))
    more = Add(X[:1], Y[:1], ("more",))
    assert np.array_equal(
        pickle.loads(text).apply(more).mean(X), pickle.loads(text).apply(more).mean(X)
    )


def test_examples_that_come_after_a_pickle_have_numbers_of_their_own(monkeypatch):
    """In a new process numbers began anew, and one removal could take another example with it."""
    text = pickle.dumps(forest(rng.normal(size=(1500, 2)), np.array(["a", "b"] * 750)))
    monkeypatch.setattr("knowmore.examples._following", [0])
    some = pickle.loads(text)
    for k in range(20):
        some = some.apply(Add(X[k : k + 1], np.array(["a"]), (f"new {k}",)))
    assert len(np.unique(some.store.members.serials)) == 1520


def test_arrays_cannot_be_written():
    leaf = next(forest().trees[0].leaves())
    for array in (leaf.members.X, leaf.members.labels, leaf.members.keys, leaf.classes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
