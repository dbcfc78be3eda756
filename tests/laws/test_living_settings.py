"""With settings="living", any history equals a fresh fit, the settings included.

In memory and in a file, by all verbs, merging, undoing, pickling and reopening. The panel is small,
so that examples of it leave and others follow.
"""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LSSVMClassifier,
)
from knowmore.kernels import On
from knowmore.models import settings
from knowmore.store import Store
from laws import laws

D = 4
KINDS = {
    "classes": lambda: GPClassifier(settings="living"),
    "balanced": lambda: GPClassifier(settings="living", class_weight="balanced"),
    "sum": lambda: GPClassifier([On(slice(0, 2)), On(slice(2, 4))], settings="living"),
    "noise": lambda: GPClassifier(RBF(2.0), settings="living"),
    "values": lambda: GPRegressor(settings="living"),
    "kernel of values": lambda: GPRegressor(noise=0.1, settings="living"),
    "svm": lambda: LSSVMClassifier(settings="living"),
    "forest": lambda: ForestGPClassifier(settings="living", capacity=8, n_trees=2),
    "forest of values": lambda: ForestGPRegressor(settings="living", capacity=8),
}
VERBS = ["add", "add", "remove", "replace", "relabel", "merge", "ask", "copy"]


class History:
    """A model that lives through random edits, in memory or in a file, and what it must hold."""

    def __init__(self, kind, seed, path=None):
        self.rng, self.kind, self.count = np.random.default_rng(seed), KINDS[kind](), 0
        self.scales = 10.0 ** self.rng.integers(-3, 4, D)
        self.kept, self.path, self.undone = {}, path, []
        self.model = clone(self.kind) if path is None else Store(path, clone(self.kind))
        self.add(int(self.rng.integers(1, 30)))

    def drawn(self, k):
        X = (self.rng.normal(size=(k, D)) * self.scales).round(6)
        X[self.rng.random(k) < 0.1] = X[:1]
        y = self.rng.integers(0, 3, k)
        told = np.array(["ape", "bee", "cat"])[y] if is_classifier(self.kind) else X[:, 0] + y
        self.count += k
        ids = [f"{self.count - i}" if self.rng.random() < 0.5 else self.count - i for i in range(k)]
        weights = np.where(self.rng.random(k) < 0.2, self.rng.choice([0.0, 2.0], k), 1.0)
        weights[0] = 1.0
        return X, told, ids, weights

    def some(self):
        """Some of the ids, but not all."""
        k = min(len(self.kept) - 1, int(self.rng.choice([1, 1, 2, 6])))
        return [list(self.kept)[i] for i in self.rng.permutation(len(self.kept))[:k]]

    def add(self, k=None):
        X, y, ids, weights = self.drawn(k or int(self.rng.choice([1, 1, 3, 20])))
        self.model.add(X, y, ids, sample_weight=weights)
        self.kept |= dict(zip(ids, zip(X, y, weights, strict=True), strict=True))

    def remove(self):
        ids = self.some()
        left = [weight for one, (_, _, weight) in self.kept.items() if one not in ids]
        if ids and any(left):
            (self.model.remove if self.rng.random() < 0.7 or not self.path else self.forget)(ids)
            for one in ids:
                del self.kept[one]

    def forget(self, ids):
        """For ever: nothing of before can be undone."""
        self.model.forget(ids)

    def replace(self):
        ids = self.some()
        if ids:
            X = self.drawn(len(ids))[0]
            self.model.replace(ids, X)
            for one, x in zip(ids, X, strict=True):
                _, y, weight = self.kept.pop(one)
                self.kept[one] = (x, y, weight)

    def relabel(self):
        ids = self.some()
        if ids:
            y = self.drawn(len(ids))[1]
            self.model.relabel(ids, y)
            for one, label in zip(ids, y, strict=True):
                x, _, weight = self.kept[one]
                self.kept[one] = (x, label, weight)

    def merge(self):
        X, y, ids, weights = self.drawn(int(self.rng.choice([1, 8, 30])))
        other = clone(self.kind)
        if self.path is not None:
            other = Store(self.path.with_name(f"{self.count}.km"), other)
        other.add(X, y, ids, sample_weight=weights)
        self.model.merge(other)
        self.kept |= dict(zip(ids, zip(X, y, weights, strict=True), strict=True))
        if self.path is not None:
            other.close()

    def ask(self):
        self.model.predict(self.drawn(3)[0])

    def copy(self):
        if self.path is None:
            self.model = self.rng.choice([deepcopy, lambda one: pickle.loads(pickle.dumps(one))])(
                self.model
            )
            return
        if self.rng.random() < 0.5:
            self.model.close()
            self.model = Store(self.path)
            return
        # An edit that is undone, and perhaps done again and undone.
        before = dict(self.kept)
        getattr(self, self.rng.choice(["add", "replace", "relabel", "merge"]))()
        after, self.kept = self.kept, before
        if len(after) > 1:
            self.model.undo()
            for _ in range(int(self.rng.integers(0, 2))):
                self.model.redo()
                self.model.undo()

    def fresh(self):
        """A fit of what must be held, in another order."""
        ids = [list(self.kept)[i] for i in self.rng.permutation(len(self.kept))]
        X, y, weights = zip(*(self.kept[one] for one in ids), strict=True)
        return clone(self.kind).fit(np.array(X), np.array(y), ids, np.array(weights))

    def compare(self):
        """Are all settings the same, and what was tried for them?"""
        want = self.fresh()
        asked = self.model.estimator if self.path is not None else self.model
        got, wanted = asked.settings_, want.settings_
        assert got.agree(wanted), f"{got}\n{wanted}"
        if got.candidates:
            assert got.candidates == wanted.candidates
            assert got.ids == wanted.ids
        return asked, want

    def close(self):
        if self.path is not None:
            self.model.close()


def lived(kind, seed, path=None):
    history = History(kind, seed, path)
    for verb in history.rng.choice(VERBS, 8):
        getattr(history, verb)()
        if history.rng.random() < 0.3:
            history.compare()
    asked, want = history.compare()
    X = history.drawn(5)[0]
    if kind.startswith("forest"):
        np.testing.assert_allclose(*(one.model_.mean(X) for one in (asked, want)), 1e-6, 1e-6)
    else:
        laws.assert_equal_models(asked, want, X)
    history.close()


# Histories of a kind in memory and in files, in each part; the first part is fast.
EACH, IN_FILES = 12, 2
PARTS = [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 16))]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(settings, "PANEL", 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "part", [pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10)] + [0]
)
def test_any_history_chooses_what_a_fit_does(kind, part):
    for seed in range(EACH * part, EACH * (part + 1)):
        lived(kind, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "part", [pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10)] + [0]
)
def test_any_history_of_a_file_chooses_what_a_fit_does(kind, part, tmp_path):
    for seed in range(IN_FILES * part, IN_FILES * (part + 1)):
        lived(kind, 10_000 + seed, tmp_path / f"{seed}.km")
        assert knowmore.open(tmp_path / f"{seed}.km").verify().ok
