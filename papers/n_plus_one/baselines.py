"""Other ways to learn one class more, which `NPlusOneClassifier` is held against.

All are used like it: made from a source, a kernel and C, then `fit(X, y)` on examples of N+1
classes and `predict(X)`. The source is a fitted `LSSVMClassifier` of three classes or more, which
also holds the examples that it was learnt from.

PMT-SVM (Aytar and Zisserman 2011) is left out. It bends the regulariser along one source
hyperplane, with an inequality on top: a separate quadratic programme for each class, and a choice
of which of the N sources to bend it along, which the paper makes by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
from sklearn.svm import SVC

from knowmore import LSSVMClassifier
from knowmore.kernels import AnyKernel, corner, cross, diagonal
from papers.adapted import Adapted
from papers.arrays import Array

# From X (m, d) to scores (m, N + 1).
Scores = Callable[[Array], Array]


class Baseline(ABC):
    """A way to learn one class more than the source knows.

    `classes_` are the N+1 classes, sorted; `new_` is the class that the source lacks.
    """

    classes_: Array
    new_: Any

    def __init__(self, source: LSSVMClassifier, kernel: AnyKernel, C: float) -> None:
        self.source = source
        self.kernel = kernel
        self.C = C

    def fit(self, X: Array, y: Array) -> Self:
        """Learn X (n, d), y: examples of all N known classes and of one more."""
        self.classes_ = np.unique(y)
        (self.new_,) = np.setdiff1d(self.classes_, self.source.classes_)
        self._scores = self._learn(X, y)
        return self

    def decision_function(self, X: Array) -> Array:
        """The scores, (m, N + 1), columns as in `classes_`."""
        return self._scores(X)

    def predict(self, X: Array) -> Array:
        """The class of the largest score, (m,)."""
        return np.asarray(self.classes_[self.decision_function(X).argmax(axis=1)])

    @abstractmethod
    def _learn(self, X: Array, y: Array) -> Scores: ...

    def _machine(self, kernel: AnyKernel | None = None) -> LSSVMClassifier:
        return LSSVMClassifier(self.kernel if kernel is None else kernel, self.C)

    def _beside_known(self, X: Array, new: Array) -> Array:
        """The source's scores of X, with the column `new` (m,) for the new class."""
        column = np.searchsorted(self.source.classes_, self.new_)
        return np.insert(self.source.decision_function(X), column, new, axis=1)


@final
class NoTransfer(Baseline):
    """A machine of the new examples alone."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return self._machine().fit(X, y).decision_function


@final
class NoTransferOwnC(Baseline):
    """A machine of the new examples alone, with the C that is best by leave-one-out on them."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return LSSVMClassifier(self.kernel, "loo").fit(X, y).decision_function


@final
class Batch(Baseline):
    """A machine of everything: the source's examples and the new ones."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return self._machine().fit(*_with_old(self.source, X, y)).decision_function


@final
class BalancedBatch(Baseline):
    """A machine of all examples, weighted so that each class counts alike."""

    def _learn(self, X: Array, y: Array) -> Scores:
        machine = LSSVMClassifier(self.kernel, self.C, class_weight="balanced")
        return machine.fit(*_with_old(self.source, X, y)).decision_function


def _with_old(source: LSSVMClassifier, X: Array, y: Array) -> tuple[Array, Array]:
    old = source.model_.examples
    return np.concatenate([old.X, X]), np.concatenate([old.labels, y])


@final
class SourceOnly(Baseline):
    """The source as it is: it never names the new class."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return lambda Z: self._beside_known(Z, np.full(len(Z), -np.inf))


@final
class SourcePlusOne(Baseline):
    """The source as it is, and a machine that tells the new class apart from all others."""

    def _learn(self, X: Array, y: Array) -> Scores:
        one = self._machine().fit(X, y == self.new_)
        return lambda Z: self._beside_known(Z, one.decision_function(Z))


@final
class SourcePlusOneHinge(Baseline):
    """The source beside a machine of the new class: scikit-learn's SVC, whose loss is the hinge."""

    def _learn(self, X: Array, y: Array) -> Scores:
        one = SVC(C=self.C, kernel="precomputed").fit(corner(self.kernel, X), y == self.new_)
        return lambda Z: self._beside_known(Z, one.decision_function(cross(self.kernel, Z, X)))


@final
class AddedKernel(Baseline):
    """After MKTL (Jie, Tommasi and Caputo 2011): the source's scores are one more feature.

    A machine with the kernel k(x, z) + c s(x)'s(z), where s are the scores, centred, and c makes
    both terms equally strong on the examples. The paper learns the weights of the kernels.
    """

    def _learn(self, X: Array, y: Array) -> Scores:
        S = self.source.decision_function(X)
        centre = S.mean(axis=0)
        c = diagonal(self.kernel, X).mean() / ((S - centre) ** 2).sum(axis=1).mean()

        def both(A: Array, B: Array) -> Array:
            a, b = (self.source.decision_function(some) - centre for some in (A, B))
            return np.asarray(cross(self.kernel, A, B) + c * (a @ b.T))

        return self._machine(both).fit(X, y).decision_function


@final
class MultiKT(Baseline):
    """Tommasi, Orabona and Caputo (2010), one class against all others: see `models.adapted`."""

    def _learn(self, X: Array, y: Array) -> Scores:
        K, S = corner(self.kernel, X), self.source.decision_function(X)
        machines = [Adapted.of(K, np.where(y == c, 1.0, -1.0), self.C, S) for c in self.classes_]

        def scores(Z: Array) -> Array:
            k, known = cross(self.kernel, X, Z), self.source.decision_function(Z)
            return np.column_stack([one.mean(k, known, one.mixture) for one in machines])

        return scores
