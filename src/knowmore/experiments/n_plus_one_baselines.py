"""Other ways to learn one class more, which `NPlusOneClassifier` is held against.

All are used like it: made from a source, a kernel and C, then `fit(X, y)` on examples of N+1
classes and `predict(X)`. The source is a fitted `LSSVMClassifier` of three classes or more, which
also holds the examples that it was learnt from.

PMT-SVM (Aytar and Zisserman 2011) is left out. It bends the regulariser along one source
hyperplane, with an inequality on top: a quadratic programme of its own for each class, and a choice
of which of the N sources to bend it along, which the paper makes by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.svm import SVC

from knowmore import LSSVMClassifier
from knowmore.kernels import AnyKernel, corner, cross, diagonal
from knowmore.linalg import Border
from knowmore.models.hinges import Hinges, interior

Array = npt.NDArray[Any]
# From X (m, d) to scores (m, N + 1).
Scores = Callable[[Array], Array]


class Baseline(ABC):
    """What all share; `classes_` are the N+1, sorted, and `new_` the one that the source lacks."""

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
        """The source's scores of X, and `new` (m,) as those of the new class."""
        column = np.searchsorted(self.source.classes_, self.new_)
        return np.insert(self.source.decision_function(X), column, new, axis=1)


@final
class NoTransfer(Baseline):
    """A machine of the new examples alone."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return self._machine().fit(X, y).decision_function


@final
class NoTransferOwnC(Baseline):
    """The same with a C of its own, the best by leave-one-out on the new examples."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return LSSVMClassifier(self.kernel, "loo").fit(X, y).decision_function


@final
class Batch(Baseline):
    """A machine of everything: the source's examples and the new ones."""

    def _learn(self, X: Array, y: Array) -> Scores:
        return self._machine().fit(*_with_old(self.source, X, y)).decision_function


@final
class BalancedBatch(Baseline):
    """The same with weights: the new class counts as much as each of the others."""

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
    """The source as it is, and a machine that tells the new class from all others."""

    def _learn(self, X: Array, y: Array) -> Scores:
        one = self._machine().fit(X, y == self.new_)
        return lambda Z: self._beside_known(Z, one.decision_function(Z))


@final
class SourcePlusOneHinge(Baseline):
    """The same with scikit-learn's SVC, whose loss is the hinge."""

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
    """Tommasi, Orabona and Caputo (2010), one class against all others, for all N+1: `Adapted`."""

    def _learn(self, X: Array, y: Array) -> Scores:
        K, S = corner(self.kernel, X), self.source.decision_function(X)
        adapted = [Adapted(K, self.C, S, np.where(y == c, 1.0, -1.0)) for c in self.classes_]
        A, b, beta = (
            np.column_stack([getattr(one, part) for one in adapted])
            for part in ("coefficients", "offset", "beta")
        )
        return lambda Z: cross(self.kernel, Z, X) @ A + b + self.source.decision_function(Z) @ beta


@final
@dataclass(frozen=True, eq=False)
class Adapted:
    """A binary machine near a mixture of known ones: K (n, n), their scores S (n, N), t = -1, 1.

    The least 1/2 |w - W' beta|^2 + C/2 sum_i z_i (w'x_i + b - t_i)^2 solves

        [[K + diag(1 / (C z)), 1], [1', 0]] [a; b] = [t - S beta; 0]

    with weights z under which both sides count the same. beta is in the unit ball, and best for
    sum_i z_i |1 - t_i t^_i(beta)|_+, where t^_i(beta) = t_i - a_i(beta) / P_ii is left out.
    """

    K: Array
    C: float
    S: Array
    t: Array

    @cached_property
    def weights(self) -> Array:
        """z, (n,)."""
        above = self.t > 0
        return np.asarray(len(self.t) / (2 * np.where(above, above.sum(), (~above).sum())))

    @cached_property
    def _solved(self) -> tuple[Array, Array, Array]:
        """The coefficients (n, 1 + N) and offsets (1 + N,) of t and S, and P_ii (n,)."""
        K = self.K + np.diag(1 / (self.C * self.weights))
        P = linalg.cho_solve(linalg.cho_factor(K, lower=True), np.eye(len(K)))
        border, B = Border(np.ones(len(K)), P.sum(axis=1)), np.column_stack([self.t, self.S])
        return *border.eliminated(B, P @ B), border.inverse_diagonal(np.diagonal(P))

    def left_out(self, beta: Array) -> Array:
        """t^(beta), (n,)."""
        A, _, P = self._solved
        return np.asarray(self.t - (A[:, 0] - A[:, 1:] @ beta) / P)

    @cached_property
    def hinges(self) -> Hinges:
        """The loss of beta."""
        A, _, P = self._solved
        offsets = self.weights * (1 - self.t * self.left_out(np.zeros(self.S.shape[1])))
        return Hinges(offsets, -(self.weights * self.t / P)[:, None] * A[:, 1:])

    @cached_property
    def beta(self) -> Array:
        """How much of each known class goes in, (N,); below zero: how much is taken away."""
        return interior(self.hinges, False).beta

    @property
    def coefficients(self) -> Array:
        """a, (n,)."""
        A = self._solved[0]
        return np.asarray(A[:, 0] - A[:, 1:] @ self.beta)

    @property
    def offset(self) -> float:
        """b."""
        b = self._solved[1]
        return float(b[0] - b[1:] @ self.beta)
