"""The batch law under arbitrary histories of edits, folded or not."""

from __future__ import annotations

import numpy as np
import oracle
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from strategies import kernels, noises, seeds, solvers, updates
from tolerance import assert_solves

from knowmore import GPClassifier

CLASSES = ["ape", "bee", "cat", "dog"]
labels = st.sampled_from(CLASSES)


class Histories(RuleBasedStateMachine):
    """Edits go to the estimator and to a plain dictionary; both must tell the same."""

    @initialize(
        seed=seeds,
        kernel=kernels,
        noise=noises,
        solver=solvers,
        update=updates,
        label=labels,
        n=st.integers(1, 6),
    )
    def start(self, seed, kernel, noise, solver, update, label, n):
        """From a single class."""
        self.rng = np.random.default_rng(seed)
        self.kernel, self.noise = kernel, noise
        self.clf = GPClassifier(kernel, noise, solver=solver, update=update)
        X = self.rng.normal(size=(n, 3))
        self.clf.fit(X, [label] * n)
        self.held = {i: (x, label) for i, x in enumerate(X)}
        self.next_id = n

    def inputs(self, k, like):
        """New inputs: fresh, near one that is held, or the very same."""
        X = self.rng.normal(size=(k, 3))
        if like != "fresh" and self.held:
            rows = self.rng.integers(0, len(self.held), k)
            twins = np.array([list(self.held.values())[r][0] for r in rows])
            X = twins + (1e-3 * X if like == "near" else 0)
        return X

    def some(self, share):
        """Ids of some of the examples."""
        k = max(1, int(share * len(self.held)))
        return [int(i) for i in self.rng.permutation(list(self.held))[:k]]

    @rule(
        k=st.integers(1, 5),
        label=st.lists(labels, min_size=5, max_size=5),
        like=st.sampled_from(["fresh", "fresh", "near", "same"]),
    )
    def add(self, k, label, like):
        X, y = self.inputs(k, like), label[:k]
        ids = self.clf.add(X, y).tolist()
        assert ids == list(range(self.next_id, self.next_id + k))
        self.next_id += k
        self.held |= {i: (x, c) for i, x, c in zip(ids, X, y, strict=True)}

    @precondition(lambda self: self.held)
    @rule(share=st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    def remove(self, share):
        ids = self.some(share)
        self.clf.remove(ids)
        for i in ids:
            del self.held[i]

    @precondition(lambda self: self.held)
    @rule(share=st.sampled_from([0.0, 0.3]), relabel=st.booleans(), label=labels)
    def replace(self, share, relabel, label):
        ids = self.some(share)
        X = self.inputs(len(ids), "fresh")
        self.clf.replace(ids, X, [label] * len(ids) if relabel else None)
        for i, x in zip(ids, X, strict=True):
            self.held[i] = (x, label if relabel else self.held[i][1])

    @precondition(lambda self: self.held)
    @rule(share=st.sampled_from([0.0, 0.3]), label=labels)
    def relabel(self, share, label):
        ids = self.some(share)
        self.clf.relabel(ids, [label] * len(ids))
        for i in ids:
            self.held[i] = (self.held[i][0], label)

    @rule(k=st.integers(1, 4), label=labels)
    def merge(self, k, label):
        X = self.inputs(k, "fresh")
        ids = [f"other {self.next_id + j}" for j in range(k)]
        other = GPClassifier(self.kernel, self.noise).fit(X, [label] * k, ids)
        self.clf.merge(other)
        # The dictionary speaks of integers only.
        self.clf.remove(ids)
        self.clf.add(X, [label] * k, range(self.next_id, self.next_id + k))
        self.held |= {self.next_id + j: (x, label) for j, x in enumerate(X)}
        self.next_id += k

    @precondition(lambda self: self.held)
    @rule()
    def ask(self):
        """A question folds the edits in; the answers equal a solve from scratch."""
        X = np.array([self.held[i][0] for i in self.clf.ids_.tolist()])
        y = [self.held[i][1] for i in self.clf.ids_.tolist()]
        classes, T = oracle.one_vs_all(y)
        assert self.clf.classes_.tolist() == classes
        queries = np.vstack([X[:2], self.rng.normal(size=(3, 3))])
        K = oracle.covariance(self.kernel, X, self.noise)
        k = self.kernel(X, queries)
        both = {"solver": self.clf.solver, "left": k}
        want = k.T @ oracle.solve(K, T)
        assert_solves(self.clf.model_.mean(queries), want, K, T, **both)
        variance = oracle.variance(self.kernel, self.noise, X, queries)
        got = self.clf.predict_variance(queries)
        assert_solves(np.diag(got), np.diag(variance), K, k, **both)

    @invariant()
    def holds_what_it_was_told(self):
        if hasattr(self, "held"):
            assert set(self.clf.ids_.tolist()) == set(self.held)
            assert self.clf.classes_.tolist() == sorted({c for _, c in self.held.values()})

    def teardown(self):
        if getattr(self, "held", None):
            self.ask()


Histories.TestCase.settings = settings(max_examples=400, stateful_step_count=25)
TestHistories = Histories.TestCase
