"""The shape of a tree follows from its set of examples; edits share what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest
import trees_oracle
from sklearn.gaussian_process.kernels import RBF

from knowmore.edits import Add, Relabel, Remove
from knowmore.examples import Examples
from knowmore.linalg import Cholesky
from knowmore.models import KernelModel, real_values
from knowmore.models.trees import Changes, Members, Tree, digest, keys_of, mixed

# Some key of a root; the trees are a forest's, without models.
ROOT = digest("0 0")


def members(X, ids=None, weights=None):
    X = np.asarray(X, dtype=float)
    some = Examples.of(X, np.zeros(len(X), int), ids, weights)
    return Members.of(some, np.arange(len(some)))


def leaves(tree):
    return [set(leaf.members.ids.tolist()) for leaf in tree.leaves()]


def by_ids(X, capacity, **more):
    """A tree that is cut by hashes only."""
    return tree_of(members(X, **more), capacity)


def tree_of(members, capacity):
    nothing = Examples.of(np.zeros((0, 1)), np.zeros(0, int))
    model = KernelModel.of(RBF(), 0.1, nothing, real_values, Cholesky())
    return Tree.of(ROOT, capacity, model, members, by_ids=True)


def test_hashes_are_those_of_every_machine():
    # The first two numbers of SplitMix64 from the seed 1234567, as published with the algorithm.
    assert mixed(1234567) == 6457827717110365317
    assert mixed((1234567 + 0x9E3779B97F4A7C15) % 2**64) == 3203168211198807973
    ids = [0, -1, 2**63 - 1, -(2**63), 2**63, -(2**70), "", "0", "Maß", "\ud800"]
    assert keys_of(ids).tolist()[:-1] == [trees_oracle.key(one) for one in ids[:-1]]
    assert len(set(keys_of(ids).tolist())) == len(ids)
    assert keys_of([1, 2, -3]).tolist() == [trees_oracle.key(one) for one in (1, 2, -3)]
    assert keys_of(()).dtype == keys_of(["a"]).dtype == np.uint64


def test_all_rows_equal_are_split_by_their_ids():
    tree = by_ids(np.ones((200, 2)), capacity=3)
    assert max(map(len, leaves(tree))) <= 3
    assert min(map(len, leaves(tree))) >= 1
    held = dict.fromkeys(range(200), ())
    assert leaves(tree) == trees_oracle.leaves(trees_oracle.grown(held, 3, 0, 0))


def test_ids_are_found_in_the_leaf_where_they_are_kept():
    ids = tuple(f"row {i}" for i in range(300))
    tree = by_ids(np.zeros((300, 1)), capacity=10, ids=ids)
    for leaf, rows in tree.reached(np.empty((300, 0)), keys_of(ids)):
        assert {ids[row] for row in rows} == set(leaf.members.ids.tolist())


def test_a_row_without_an_id_goes_left_where_hashes_decide():
    tree = by_ids(np.zeros((50, 1)), capacity=10)
    ((leaf, rows),) = tree.reached(np.zeros((2, 1)))
    assert leaf is next(tree.leaves())
    assert rows.tolist() == [0, 1]


def test_two_ids_of_one_hash_share_a_leaf_that_is_too_large(monkeypatch):
    monkeypatch.setattr("knowmore.models.trees.keys_of", lambda ids: np.full(len(ids), 7, "u8"))
    tree = by_ids(np.zeros((5, 1)), capacity=2)
    assert leaves(tree) == [{0, 1, 2, 3, 4}]
    gone = Changes.of(members(np.zeros((0, 1))), members(np.zeros((1, 1)), ids=("more",)))
    assert leaves(tree.edited(gone)) == [{0, 1, 2, 3, 4, "more"}]


def test_weight_zero_does_not_shape_a_tree():
    weights = np.where(np.arange(90) % 3, 1.0, 0.0)
    with_them = by_ids(np.zeros((90, 1)), capacity=5, weights=weights)
    held = dict.fromkeys([i for i in range(90) if i % 3], ())
    want = trees_oracle.leaves(trees_oracle.grown(held, 5, 0, 0))
    assert [{i for i in leaf if i % 3} for leaf in leaves(with_them)] == want
    assert set().union(*leaves(with_them)) == set(range(90))


def change(examples, edit, ids):
    """An edit of `examples` as an edit of a tree, and the examples after it."""
    after, none = examples.apply(edit), np.arange(0)
    out = none if isinstance(edit, Add) else examples.rows(ids)
    new = none if isinstance(edit, Remove) else after.rows(ids)
    return Changes.of(Members.of(examples, out), Members.of(after, new)), after


@pytest.mark.parametrize("verb", ["add", "remove", "relabel"])
def test_an_edit_shares_all_leaves_but_one_with_the_tree_before(verb):
    some = Examples.of(np.zeros((2000, 1)), np.zeros(2000, int))
    tree = tree_of(Members.of(some, np.arange(2000)), 50)
    shared = []
    for number in range(40):
        one = (number if verb != "add" else 5000 + number,)
        edits = {
            "add": Add(np.zeros((1, 1)), np.zeros(1, int), one),
            "remove": Remove(one),
            "relabel": Relabel(one, np.ones(1, int)),
        }
        edit, after = change(some, edits[verb], one)
        before, now = list(tree.leaves()), list(tree.edited(edit).leaves())
        shared.append(len(set(map(id, before)) & set(map(id, now))) == len(before) - 1)
        assert len(after) == len(some) + {"add": 1, "remove": -1, "relabel": 0}[verb]
    # An edit of a sample grows the part below its node anew: about one in five here.
    assert sum(shared) == 40 if verb == "relabel" else sum(shared) > 20


def test_an_edit_of_many_is_the_tree_of_what_is_left():
    some = Examples.of(np.zeros((300, 1)), np.zeros(300, int))
    tree = tree_of(Members.of(some, np.arange(300)), 20)
    gone = tuple(range(0, 290, 2))
    edit, after = change(some, Remove(gone), gone)
    fresh = tree_of(Members.of(after, np.arange(len(after))), 20)
    assert leaves(tree.edited(edit)) == leaves(fresh)
    assert leaves(tree) == trees_oracle.leaves(
        trees_oracle.grown(dict.fromkeys(range(300), ()), 20, 0, 0)
    )
