"""A new class, its background, and other classes that may help."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from knowmore import KnowmoreError, OneShotClassifier

KERNEL = RBF(1.5)
# What Rodner and Denzler chose.
PAPER = {"criterion": "ap", "noise": "adaptive", "prior": 0.0, "members": 1}


def scene(positives=1, negatives=30, seed=0):
    """A class around (1, 1, 1), background around zero, and supports nearer and farther."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(positives + negatives, 3))
    X[:positives] += 1
    y = np.where(np.arange(len(X)) < positives, "okapi", "background")
    supports = {
        "gerenuk": rng.normal(size=(12, 3)) + 1.2,
        "wrench": rng.normal(size=(9, 3)) - 1,
        "water lily": rng.normal(size=(15, 3)) + np.array([3, -1, 0]),
    }
    return X, y, supports


X, Y, SUPPORTS = scene()


def paper(kernel=None, supports=None, criterion="ap", **words):
    """A classifier with the paper's choices where there are no others."""
    return OneShotClassifier(kernel, supports, **PAPER | {"criterion": criterion} | words)


def fitted(positives=1, seed=0, **words):
    X, y, supports = scene(positives, seed=seed)
    return paper(KERNEL, supports, **words).fit(X, y)


class ByLength:
    """Words of the same length are similar; words with a blank are unknown."""

    def most_similar(self, name, names, k=None, *, unknown="raise"):
        strange = [one for one in names if " " in one]
        if strange and unknown == "raise":
            raise KnowmoreError(f"{strange[0]} has a blank.")
        known = [one for one in names if one not in strange]
        known.sort(key=lambda one: (abs(len(one) - len(name)), one))
        return (*known[:k], *strange)


def preselecting(k, name="okapis", unknown="keep", **words):
    semantics = words.pop("semantics", ByLength())
    return fitted(preselect=k, semantics=semantics, name=name, unknown=unknown, **words)
