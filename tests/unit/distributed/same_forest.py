"""Equality of two forests: leaf by leaf, to the bit."""

from __future__ import annotations

import numpy as np

from knowmore.models.trees import Leaf


def assert_same_forest(one, other, X):
    """Assert equal cuts, members in equal order, and equal answers about X."""
    here, there = one.model_, other.model_
    for tree, its in zip((here.store, *here.trees), (there.store, *there.trees), strict=True):
        assert (tree.key, tree.capacity, tree.by_ids) == (its.key, its.capacity, its.by_ids)
        assert_same_nodes(tree.root, its.root)
    assert one.ids_.tolist() == other.ids_.tolist()
    assert (here.next_id, here.settled, here.seed) == (there.next_id, there.settled, there.seed)
    assert here.extremes == there.extremes
    assert one.kernel_ == other.kernel_
    assert here.labels.dtype == there.labels.dtype
    assert np.array_equal(here.names, there.names)
    X = one.model_inputs(X)
    assert (here.mean(X) == there.mean(X)).all()
    assert (here.variance(X) == there.variance(X)).all()


def assert_same_nodes(one, other):
    assert type(one) is type(other)
    assert one.count == other.count
    if isinstance(one, Leaf):
        for name in ("ids", "keys", "X", "labels", "weights"):
            here, there = getattr(one.members, name), getattr(other.members, name)
            assert (here.tolist(), here.shape) == (there.tolist(), there.shape)
        assert (np.diff(other.members.serials) > 0).all()
        return
    for name in ("key", "last", "feature", "threshold"):
        assert getattr(one.cut, name) == getattr(other.cut, name)
    for name in ("keys", "X"):
        assert np.array_equal(getattr(one.cut.sample, name), getattr(other.cut.sample, name))
    assert_same_nodes(one.left, other.left)
    assert_same_nodes(one.right, other.right)
