"""Ids and features that somebody made up to mislead the hashes by which trees are cut."""

from __future__ import annotations

import numpy as np
import trees_oracle


def unmixed(z):
    """The number whose hash is z: one step of SplitMix64, backwards."""
    z = _unshifted(z, 31) * pow(0x94D049BB133111EB, -1, trees_oracle.BITS) % trees_oracle.BITS
    z = _unshifted(z, 27) * pow(0xBF58476D1CE4E5B9, -1, trees_oracle.BITS) % trees_oracle.BITS
    return (_unshifted(z, 30) - 0x9E3779B97F4A7C15) % trees_oracle.BITS


def _unshifted(z, shift):
    found = z
    for _ in range(64 // shift):
        found = z ^ found >> shift
    return found


def with_key(key):
    """The integer whose key is this one."""
    one = unmixed(key)
    return one - trees_oracle.BITS if one >= 2**63 else one


def twin(word):
    """The integer with the same key as a word."""
    return with_key(trees_oracle.key(word))


def chain(levels, seed=0):
    """Ids that are the samples of as many nodes, each the right child of the one before.

    With features that grow, each cut leaves eight of them on the left, and all others on the right.
    """
    node, ids = trees_oracle.word(f"str {seed} 0"), []
    for _ in range(levels):
        ids += [with_key(unmixed(priority) ^ node) for priority in range(1, 17)]
        node = trees_oracle.mix(trees_oracle.mix(node) ^ 1)
    return ids


def ladder(n, seed=0):
    """Features (n, 1) of the ids 0, 1, ... with the same effect."""
    X, node = np.full(n, float(n)), trees_oracle.word(f"str {seed} 0")
    left, value = list(range(n)), 0.0
    while len(left) > 16:
        left.sort(key=lambda one: trees_oracle.mix(trees_oracle.key(one) ^ node))
        for one in left[:8]:
            X[one], value = value, value + 1
        left, node = left[8:], trees_oracle.mix(trees_oracle.mix(node) ^ 1)
    return X[:, None]
