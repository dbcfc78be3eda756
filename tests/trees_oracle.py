"""The trees of a forest by their definition: recursion over lists, imports nothing of knowmore."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

import numpy as np
import oracle
from tolerance import tolerance

BITS = 2**64


def mix(z):
    """SplitMix64, a single step (Steele, Lea and Flood 2014)."""
    z = (z + 0x9E3779B97F4A7C15) % BITS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB % BITS
    return z ^ z >> 31


def word(text):
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@cache
def key(one):
    if isinstance(one, int) and -(2**63) <= one < 2**63:
        return mix(one % BITS)
    return word(f"{type(one).__name__} {one}")


def grown(held, capacity, seed, tree):
    """The tree of `held`, {id: x}: a list of ids, or (feature, threshold, left, right).

    feature: a number; weights of all of them; or None where the hashes of ids are cut
    """
    return _grown(held, list(held), capacity, word(f"str {seed} {tree}"), 0)


def _grown(held, ids, capacity, node, depth):
    if len(ids) <= capacity or len({key(one) for one in ids}) == 1:
        return ids
    if depth >= 64:
        # The first bit in which they differ.
        bit = next(b for b in reversed(range(64)) if len({key(one) >> b for one in ids}) > 1)
        sides = [[one for one in ids if key(one) >> bit & 1 == side] for side in (0, 1)]
        below = [_grown(held, part, capacity, 0, depth + 1) for part in sides]
        return None, bit, *below
    priorities = {one: mix(key(one) ^ node) for one in ids}
    last = sorted(priorities.values())[min(16, len(ids)) - 1]
    sample = [one for one in ids if priorities[one] <= last]
    d = len(held[ids[0]])
    balanced = []
    for feature in range(d):
        threshold, left = _cut([held[one][feature] for one in sample])
        if threshold is not None and 4 * min(left, len(sample) - left) >= len(sample):
            balanced.append(feature)
    if balanced:
        feature = min(balanced, key=lambda f: mix(f ^ node))
    elif any(held[one] != held[sample[0]] for one in sample):
        feature = [((mix(f ^ mix(node)) >> 11) * 2.0**-52 - 1) / d for f in range(d)]
    else:
        feature = None

    def position(one):
        return key(one) if feature is None else value(feature, held[one])

    threshold, _ = _cut([position(one) for one in sample])
    sides = [[one for one in ids if (position(one) > threshold) == side] for side in (False, True)]
    nodes = [mix(mix(node) ^ i) for i in (0, 1)]
    below = [
        _grown(held, part, capacity, child, depth + 1)
        for part, child in zip(sides, nodes, strict=True)
    ]
    return feature, threshold, *below


def _cut(values):
    """The median, or the largest below the maximum if that is it; and how many are at most that."""
    values = sorted(values)
    middle = values[(len(values) - 1) // 2]
    if middle == values[-1]:
        middle = max((v for v in values if v < values[-1]), default=None)
    return middle, 0 if middle is None else sum(v <= middle for v in values)


def value(feature, x):
    """Projection of x: a single feature, or the weighted sum of all, from first to last."""
    if isinstance(feature, int):
        return x[feature]
    total = 0.0
    for weight, number in zip(feature, x, strict=True):
        total += weight * number
    return total


def leaves(node):
    """The sets of ids of the leaves, from left to right."""
    return leaves(node[2]) + leaves(node[3]) if isinstance(node, tuple) else [set(node)]


def leaf_of(node, x):
    """The ids of the leaf that x falls into."""
    while isinstance(node, tuple):
        feature, threshold, left, right = node
        node = right if feature is not None and value(feature, x) > threshold else left
    return node


def targets(labels, classes):
    """+-1 for all classes of the forest, (n, M)."""
    return np.where(np.asarray(labels)[:, None] == np.asarray(classes), 1.0, -1.0)


def scores(node, held, labels, classes, kernel, noises, queries):
    """The scores of one tree, (m, M), and the error that solving may have, (m, M).

    labels, noises : by id
    """
    want, error = [], []
    for x in queries:
        ids = leaf_of(node, x)
        X, T = np.array([held[one] for one in ids]), targets([labels[one] for one in ids], classes)
        K = oracle.covariance(kernel, X, np.array([noises[one] for one in ids]))
        k, A = kernel(X, x[None]), np.linalg.solve(K, T)
        want.append((k.T @ A)[0])
        size = np.linalg.norm(A, axis=0) * np.linalg.norm(k)
        error.append(tolerance(K) * size + 4 * np.finfo(float).eps)
    return np.array(want), np.array(error)
