"""The null space of the classes of a Gaussian process, and distances to the nearest class.

E (n, M) are the indicators of the classes, A = K~^-1 E, G = E'A, and m = A'k_x are the scores of a
row x if targets are 1 and 0: near e_c for a row of class c, near zero far from all examples. The
squared distance of x to class c in the kernel null Foley-Sammon transform (Bodesheim et al.) is

    (m - e_c)' [G^-1 - 11'/s] (m - e_c),    s = 1'G1.

It also is what a Mahalanobis distance to the mean of the class, in the spread within the classes,
exceeds one to the mean of all, in the spread of all; both spreads with the noise added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen, bounded, derived
from knowmore.kernels import euclidean
from knowmore.models.unrelated import members

_EPS = float(np.finfo(float).eps)


class Removed(NamedTuple):
    """Examples to leave out in turn, n of them.

    A : their rows of K~^-1 E, (n, M)
    codes : their classes, (n,)
    variance : 1 / (K~^-1)_ii, (n,)
    alone : whether it is the only one of its class, (n,)
    """

    A: Array
    codes: Array
    variance: Array
    alone: Array

    @property
    def m(self) -> Array:
        """The scores of each by the others, e_i - v_i a_i, (n, M)."""
        m = -self.variance[:, None] * self.A
        m[np.arange(len(m)), self.codes] += 1
        return m


@final
@dataclass(frozen=True, eq=False, repr=False)
class NullSpace(Frozen):
    """G (M, M), symmetric and positive definite, is all that it needs.

    >>> space = NullSpace(np.eye(2))
    >>> space.nearest(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    array([0.   , 0.707])
    """

    G: Array

    @derived
    def _unit(self) -> float:
        """Distances are in units of this, so that no square is beyond the range of numbers."""
        return float(1 / np.sqrt(np.diagonal(self.G).mean()))

    @derived
    def _root(self) -> Array:
        """L^-1 for LL' = G in these units, (M, M): x maps to L^-1 m, class c to column c.

        From the eigenvalues of G with a unit diagonal, which do not depend on how many examples
        each class has. G is what differences leave, so an eigenvalue may be no more than rounding,
        or less than zero: it counts as the least that is above rounding.
        """
        G = self.G * self._unit**2
        size = np.sqrt(np.maximum(np.diagonal(G), _EPS))
        values, U = np.linalg.eigh(G / np.outer(size, size))
        least = len(G) * _EPS * values[-1]
        return np.asarray(U.T / np.sqrt(np.maximum(values, least))[:, None] / size)

    @property
    def size(self) -> float:
        """The distance of the farthest class from the origin: distances round on this scale."""
        return self._unit * float(np.linalg.norm(self._root, axis=0).max())

    @property
    def _sum(self) -> float:
        """s, in these units."""
        return float((self.G * self._unit**2).sum())

    @derived
    def _centred(self) -> Array:
        """R = L^-1 - L'11'/s in these units, (M, M): the bracket above is R'R.

        A single class is compared with the origin of the feature space instead: R = L^-1.
        """
        R = self._root
        if len(R) == 1:
            return R
        # L'1 = L^-1 G1.
        return np.asarray(R - (R @ (self.G * self._unit**2).sum(axis=1))[:, None] / self._sum)

    @property
    def projection(self) -> Array:
        """Q (M, M), for which |Q (m - e_c)| is the distance to class c."""
        return np.asarray(self._unit * self._centred)

    def nearest(self, m: Array) -> Array:
        """The distance to the nearest class, (u,), of rows with scores m (u, M)."""
        R = self._centred
        return bounded(lambda: self._unit * euclidean(m @ R.T, R.T, 1.0).min(axis=1))

    def without(self, E: Array, A: Array, V: Array, stay: Array) -> tuple[Array, NullSpace]:
        """Scores of examples g by the others, (k, r), and the null space of the classes that stay.

        For their indicators and coefficients E, A (k, M) and V = (K~^-1)_gg^-1, block inversion
        gives m = E - VA and G - A'VA, both without the columns of classes that g takes with it.

        stay : (M,), whether there are others of each class
        """
        taken = V @ A
        G = (self.G - A.T @ taken)[np.ix_(stay, stay)]
        return (E - taken)[:, stay], NullSpace((G + G.T) / 2)

    def left_out_groups(
        self, E: Array, A: Array, counts: Array, groups: Array, V: Callable[[Array], Array]
    ) -> tuple[Array, Array]:
        """Scores (n, M) of examples by those of other groups, and distances to the nearest class.

        E, A, V : as in `without`, of all n examples; V of the rows of a group
        counts : the examples of each class that are held, (M,)
        """
        m, distance = np.zeros_like(A), np.empty(len(A))
        for g in members(groups):
            stay = counts > E[g].sum(axis=0)
            scores, space = self.without(E[g], A[g], V(g), stay)
            m[np.ix_(g, stay)], distance[g] = scores, space.nearest(scores)
        return m, distance

    def left_out(self, gone: Removed) -> Array:
        """The distance of each example to the nearest class, by the other examples, (n,).

        Without example i, a' its row of A, G becomes G - v aa', by block inversion. So for
        u = m - e_c and B = G^-1

            u'Bu + v (u'Ba)^2 / (1 - v a'Ba) - (1'u)^2 / (s - v (1'a)^2)

        is the squared distance. An only example takes its class with it: that row and column of
        G - v aa' are zero, the inverse of the rest is that part of B, and the second term is gone.
        """
        R, unit = self._root, self._unit
        m, A, v = gone.m, gone.A * unit**2, gone.variance / unit**2
        a, classes = A @ R.T, len(R) - gone.alone
        square = euclidean(m @ R.T, R.T, 1.0) ** 2
        free = np.maximum(1 - v * np.einsum("ij,ij->i", a, a), _EPS)
        gain = np.where(gone.alone, 0.0, v / free)
        moved = np.einsum("ij,ij->i", m @ R.T, a)[:, None] - a @ R
        rest = np.maximum(self._sum - v * A.sum(axis=1) ** 2, _EPS * self._sum)
        shared = np.where(classes > 1, (m.sum(axis=1) - 1) ** 2 / rest, 0.0)
        square += gain[:, None] * moved**2 - shared[:, None]
        square[gone.alone, gone.codes[gone.alone]] = np.inf
        return np.asarray(unit * np.sqrt(np.maximum(square.min(axis=1), 0)))
