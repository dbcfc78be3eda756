"""Linear discriminants that learn, forget and merge, by the three steps of Kim et al.

T.-K. Kim, B. Stenger, J. Kittler and R. Cipolla, Incremental Linear Discriminant Analysis Using
Sufficient Spanning Sets and Its Applications, IJCV 2011: (1) the total scatter is an eigenspace,
(2) so is the scatter between classes, (3) the discriminants are found in the span of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from scipy import linalg
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from knowmore.arrays import Array, Frozen, derived
from knowmore.errors import InvalidInput
from knowmore.linalg import Eigenspace, Truncation
from knowmore.linalg.eigenspace import ROUNDINGS
from knowmore.linalg.graded import unequal
from knowmore.linalg.products import product
from knowmore.linalg.spectrum import EPS, spectrum
from knowmore.models.class_means import ClassMeans
from knowmore.models.spread import Spread

LEDOIT_WOLF = "ledoit-wolf"
# Directions without spread within the classes get this part of the variance between them. Half of
# the digits are left for what the other directions say where these leave a tie.
_LIMIT = EPS ** (1 / 2)
# Where the classes have no spread along a direction, random histories leave less than this part of
# what roundings are estimated to, but for one in thousands, if those of the last decomposition
# count so many times.
_SEEN, _LAST = 1 / 2, 32
# Nobody meets classes whose spread is a smaller part of the whole than this.
_FAINT = EPS ** (3 / 4)


class Directions(NamedTuple):
    """U (D, q) with U' S_T U = I and U' S_B U = diag(separations), best first; scatters, no 1/N.

    A separation of one: the classes have no spread at all along that direction. With shrinkage
    S_T is the shrunk scatter within the classes and as large a part of S_B, see `Discriminant`.
    """

    U: Array
    separations: Array


@final
@dataclass(frozen=True, eq=False)
class Discriminant(Frozen):
    """The total eigenspace and the class means of some labelled rows, and what follows.

    shrinkage : alpha, zero to one, or "ledoit-wolf": the covariance within the classes is taken as
        (1 - alpha) S_W / N + alpha m I, m = tr S_W / (N D)

    I is of all D features, but along a direction in which no rows differ the classes do not
    either. So everything happens in the span of the total eigenspace, and no (D, D) matrix is made.

    Without shrinkage S_W may be singular, as with fewer rows than features. Then the model is the
    limit of a vanishing alpha. Let Q (D, k) be an orthonormal basis of the directions along which
    rows differ, but not within any class: S_W Q = 0, Q'S_T Q > 0. S_W and I agree that Q is
    orthogonal to all else, so that for a small alpha the squared distance of x from a class mean is

        |Q'(x - m_j)|^2 / (alpha m)  +  that along the other discriminants, less their part in Q.

    The first term decides (null-space LDA, the discriminative common vectors), and the second
    where the first leaves a tie. All of it depends on the rows alone.
    """

    total: Eigenspace
    between: ClassMeans
    shrinkage: float | str = 0.0

    @classmethod
    def of(
        cls,
        X: Array,
        Y: Array,
        names: Array,
        rank: int | Truncation | None,
        shrinkage: float | str = 0.0,
    ) -> Discriminant:
        """The model of X (n, D) whose rows belong to the classes `names` (C,) by Y (n, C)."""
        total = Eigenspace.of(X, rank)
        return cls(total, ClassMeans.of(X, Y, names, shrinkage == LEDOIT_WOLF), shrinkage)

    def merge(self, other: Discriminant, rank: int | Truncation | None = None) -> Discriminant:
        """The model of the rows of both; classes may overlap or be new."""
        merged = replace(
            self,
            total=self.total.merge(other.total, rank),
            between=self.between.merge(other.between),
        )
        return merged.shrunk(self.shrinkage)

    def add_rows(
        self, X: Array, Y: Array, names: Array, rank: int | Truncation | None = None
    ) -> Discriminant:
        """`merge` with the model of these rows, by one decomposition instead of two."""
        total = self.total.add_rows(X, rank)
        return replace(self, total=total, between=self.between.merge(self.classes(X, Y, names)))

    def remove_rows(
        self, X: Array, Y: Array, names: Array, rank: int | Truncation | None = None
    ) -> Discriminant:
        """The model of the rows that are left when these are taken out."""
        between = self.between.merge(self.classes(X, Y, names), sign=-1)
        left = replace(self, total=self.total.remove_rows(X, rank), between=between)
        left.shrunk(0.0)._check_labels()
        return left

    def classes(self, X: Array, Y: Array, names: Array) -> ClassMeans:
        """The class means of other rows, with all that those held here have."""
        return ClassMeans.of(X, Y, names, self.between.spreads is not None)

    def relabelled(self, between: ClassMeans) -> Discriminant:
        """The same rows in other classes: the total scatter does not ask for labels."""
        return replace(self, between=between)

    def shrunk(self, shrinkage: float | str) -> Discriminant:
        """The same rows with another shrinkage."""
        if shrinkage == LEDOIT_WOLF and self.between.spreads is None:
            raise InvalidInput(
                "shrinkage='ledoit-wolf' needs sums that were not kept when some of the rows were "
                "learnt with another shrinkage. Fit all of them with shrinkage='ledoit-wolf'."
            )
        return replace(self, shrinkage=shrinkage)

    @property
    def n_samples(self) -> int:
        """How many rows it holds."""
        return self.total.n_samples

    @derived
    def alpha(self) -> float:
        """The shrinkage as a number.

        Each class has a coefficient of Ledoit and Wolf. Their mean, weighted by the scatters of
        the classes, adds as much of I as shrinking each class by its own would.
        """
        if not isinstance(self.shrinkage, str):
            return float(self.shrinkage)
        return self._mean_over_classes(lambda each: each.coefficient)

    @derived
    def alpha_unsure(self) -> float:
        """How far roundings may have moved `alpha`, an estimate; zero where nothing is shrunk."""
        if not isinstance(self.shrinkage, str) or self._mean_variance == 0:
            return 0.0
        return self._mean_over_classes(lambda each: each.unsure)

    def _mean_over_classes(self, value: Callable[[Spread], float]) -> float:
        spreads = self.between.spreads or ()
        whole = sum(each.trace for each in spreads)
        return sum(each.trace * value(each) for each in spreads) / (whole or 1.0)

    @derived
    def _ridge(self) -> tuple[float, float]:
        """a and b with the covariance within the classes a S_W / N + b I.

        The class means are exact, but S_T lacks what truncation dropped: they would spread more
        than it along some direction. So what was dropped is spread evenly over all directions, as
        probabilistic PCA has it.
        """
        noise, m = self.total.noise, self._mean_variance
        if self.alpha == 0 or m == 0:
            return 1.0, noise
        a = 1 - self.alpha
        return a, a * noise + self.alpha * m

    @derived
    def _mean_variance(self) -> float:
        """m = tr S_W / (N D), or zero if that is no more than rounding."""
        total, B = self.total, self.between.rows(self.total.mean) / np.sqrt(self.n_samples)
        within = total.total_variance - float((B * B).sum())
        rounding = ROUNDINGS * len(total.variances) * self._rounding / self.n_samples
        return within / len(total.mean) if within > rounding else 0.0

    @derived
    def _whitened(self) -> tuple[Array, Array]:
        """Z (D, d) with Z' S_T Z = I within the span of the total eigenspace, and F = B Z.

        S_T is the shrunk one, N (a Lambda + b) along the components.
        """
        total, (a, b) = self.total, self._ridge
        Z = total.components.T / np.sqrt(total.n_samples * (a * total.variances + b))
        B = self.between.rows(total.mean)
        Z = self._conjugate(Z)
        return Z, product(B, Z)

    def _conjugate(self, Z: Array) -> Array:
        """Z (D, d) with Z'S_T Z = I to a rounding, for one that is so but for roundings of P P'.

        The components P are orthogonal to roundings of the largest feature, which are many of the
        smallest where features are of unequal scale. With T = diag(l) P, T'T = S_T, and Z = P'/ l,
        the entry (i, k) of G = T Z, which should be I, is off by a rounding times l_i / l_k. G
        itself is exact, as each product in it is on the scale of one feature; so is Z G^-1.
        """
        lengths = np.sqrt(self.total.variances)
        if self._ridge[1] > 0 or not unequal(lengths):
            return Z
        P = self.total.components
        G = lengths[:, None] * product(P, P.T) / lengths
        return np.asarray(linalg.solve(G.T, Z.T, check_finite=False).T)

    @derived
    def directions(self) -> Directions:
        """Step 3: Z'S_B Z = F'F = R Sigma R' and U = Z R."""
        Z, F = self._whitened
        most = Truncation(rank=max(len(self.between.names) - 1, 0))
        values, R, _ = spectrum(F, most)
        return Directions(product(Z, R.T), values**2)

    @derived
    def scalings(self) -> Array:
        """The discriminants, (D, q), stretched so that the classes have the covariance I, with 1/N.

        First those without any spread within the classes, if there are such: there it is taken as
        `_LIMIT` of that between them, for a limit that numbers can hold.
        """
        U, N = self.directions.U, self.n_samples
        empty, within = self._empty, self._within
        others = U[:, ~empty] * np.sqrt(N / within[~empty])
        if not empty.any():
            return np.asarray(others)
        Q = self._basis(U[:, empty])
        Q, variances = self._aligned(Q)
        others, _ = self._aligned(others - Q @ (Q.T @ others))
        return np.hstack([Q / np.sqrt(_LIMIT * variances.mean()), others])

    def _basis(self, V: Array) -> Array:
        """Orthonormal columns (D, k) with the span of V (D, k), which is within the components.

        Along these, V is as uneven as their variances are. Rows in the order of their size and
        columns exchanged as needed keep the small ones as exact as the large.
        """
        P = self.total.components[::-1]
        V = V / abs(V).max(axis=0)
        Q, _, _ = linalg.qr(product(P, V), mode="economic", pivoting=True, check_finite=False)
        return product(P.T, Q)

    def _aligned(self, A: Array) -> tuple[Array, Array]:
        """The columns of A (D, k) turned among each other so that A'S_B A is diagonal.

        Largest first, with the variances between the classes along them, (k,).
        """
        if A.shape[1] == 0:
            return A, np.zeros(0)
        F = self.between.rows(self.total.mean) @ A / np.sqrt(self.n_samples)
        _, values, R = np.linalg.svd(F)
        squares = np.zeros(A.shape[1])
        squares[: len(values)] = values[: A.shape[1]] ** 2
        return A @ R.T, squares

    @derived
    def strengths(self) -> Array:
        """The variance between classes along each discriminant, (q,), for one within them."""
        return np.asarray(self.between.counts @ self._centres**2 / self.n_samples)

    @derived
    def _within(self) -> Array:
        """The part of the scatter within the classes along each discriminant, (q,).

        At least what truncation and shrinkage put there.
        """
        (U, separations), (a, b) = self.directions, self._ridge
        return np.maximum(1 - a * separations, _squared_lengths(U, np.sqrt([self.n_samples * b])))

    @derived
    def _empty(self) -> Array:
        """Along which directions the classes have no spread beyond what rounding makes of none.

        To take spread for none costs more than to take none for a little, so roundings must well
        explain what is seen. Along directions that cannot have any, as there are d of them and
        only N - C differences of rows from their class means, many are allowed. A direction that
        is known to less than a quarter of the digits is not called empty.
        """
        certain = np.arange(len(self._within)) < self._surplus
        roundings = np.where(certain, ROUNDINGS, _SEEN) * self._unsure
        return np.asarray(self._within <= np.minimum(roundings, EPS**0.25))

    @property
    def _surplus(self) -> int:
        """How many directions rows within their classes cannot differ along: there are too few."""
        return len(self.total.variances) - (self.n_samples - len(self.between.names))

    @derived
    def undecided(self) -> int:
        """Along how many discriminants roundings hide whether the classes have any spread.

        As when a row far out was learnt and forgotten: then they may be larger than the spread of
        classes that lie far apart, and a fit of the rows held would know far better.
        """
        anew = np.sqrt(self.n_samples) * EPS * self._cancelled
        hidden = self._within <= self._unsure
        hidden &= self._moved > np.maximum(_FAINT, ROUNDINGS * anew)
        return int(hidden[max(self._surplus, 0) :].sum())

    @derived
    def _unsure(self) -> Array:
        """How far roundings may have moved the part within the classes along each direction, (q,).

        It is one minus the part between, u'S_T u - u'S_B u. The class means are rounded like the
        sum of all rows, and the part between by the last decomposition.
        """
        U = self.directions.U
        means = np.sqrt(_squared_lengths(U, self.total.rounding.sums / np.sqrt(self.n_samples)))
        return np.asarray(self._moved + 2 * means + _LAST * np.sqrt(len(U)) * EPS)

    @derived
    def _moved(self) -> Array:
        """How far roundings may have moved u'S_T u = 1 along each direction, (q,).

        An entry (j, k) of S_T is known to the geometric mean of the roundings rho of these
        features, so that this is known to the sum of u_j^2 rho_j, whatever the units. Where
        features cancel by more than eps^(-1/2), S_T comes from a decomposition of rows instead of
        their squares, and the error grows with the root of that.
        """
        moved = _squared_lengths(self.directions.U, np.sqrt(self.total.rounding.scatters))
        return np.asarray(moved / np.sqrt(self._cancelled * np.sqrt(EPS)).clip(1))

    @derived
    def _cancelled(self) -> Array:
        """By how much the features cancel along each direction: sum_j u_j^2 (S_T)_jj, (q,)."""
        total = self.total
        scatters = self.n_samples * (total.variances @ np.square(total.components))
        return _squared_lengths(self.directions.U, np.sqrt(scatters))

    @property
    def _rounding(self) -> float:
        """How far roundings may have moved S_T - S_B; class means are rounded like the sum."""
        total = self.total
        spread = np.sqrt(total.n_samples * total.total_variance)
        moved = spread * total.rounding.sum / np.sqrt(total.n_samples)
        return float(total.rounding.more(moved).scatter)

    @derived
    def _centres(self) -> Array:
        return np.asarray((self.between.means - self.total.mean) @ self.scalings)

    def coordinates(self, X: Array) -> Array:
        """X (m, D) along the discriminants, (m, q), where each class has the covariance I."""
        with np.errstate(over="ignore", invalid="ignore"):
            Z = (X - self.total.mean) @ self.scalings
            near = np.isfinite(Z * Z).all(axis=1)
        if not near.all():
            raise InvalidInput(
                f"Row {int(near.argmin())} of X is so far from all that was learnt that the square "
                f"of its distance is beyond double precision. Is it a typing error?"
            )
        return np.asarray(Z)

    def log_likelihood(self, X: Array) -> Array:
        """log p(x | class), (m, C), up to a constant of each row: minus half the squared distance
        to the class means along the discriminants.

        Along those without spread the nearest classes get zero, so that what the others say of
        these is not lost beside large numbers.
        """
        Z, M, k = self.coordinates(X), self._centres, int(self._empty.sum())
        places, place = self._places
        first = _nearness(Z[:, :k], places)[:, place]
        first -= first.max(axis=1, keepdims=True)
        return np.asarray(first + _nearness(Z[:, k:], M[:, k:]))

    @derived
    def _places(self) -> tuple[Array, Array]:
        """Where the classes are along the k directions without spread: (G, k), and which, (C,).

        Classes no farther from each other than rounding are in the same place. No two of C classes
        are if their means spread along C - 1 of these directions.
        """
        k, counts, M = int(self._empty.sum()), self.between.counts, self._centres
        C = len(counts)
        if k in (0, C - 1):
            return M[:, :k], np.arange(C)
        U = self.directions.U[:, self._empty]
        V = (self.between.means - self.total.mean) @ U * np.sqrt(counts.min())
        near = cdist(V, V) <= ROUNDINGS * self._unsure[self._empty].max()
        G, place = connected_components(near, directed=False)
        members = np.where(place == np.arange(G)[:, None], counts, 0.0)
        return members @ M[:, :k] / members.sum(axis=1, keepdims=True), place

    def _check_labels(self) -> None:
        """Complain if the classes spread more than all rows do, S_B > S_T: labels were mixed up.

        Along x = Z r, for every right singular vector r of F with a value s > 1, S_T - S_B is
        below zero by (s^2 - 1) / |x|^2. What truncation dropped may explain as much.
        """
        U, separations = self.directions
        if len(separations) == 0:
            return
        deficit = float(((separations - 1).clip(0) / (U**2).sum(axis=0)).sum())
        total = self.total
        allowed = total.n_samples * (total.discarded + total.blurred) + ROUNDINGS * self._rounding
        if deficit > allowed:
            raise InvalidInput(
                "Not all of these rows had these labels: without them the classes would spread "
                "more than the rows do. Take out only rows that were learnt, with the labels they "
                "had."
            )


def _nearness(Z: Array, M: Array) -> Array:
    """Minus half the squared distances of Z (m, q) to M (C, q), (m, C), up to a constant of each
    row."""
    return np.asarray(Z @ M.T - 0.5 * (M**2).sum(axis=1))


def _squared_lengths(U: Array, scales: Array) -> Array:
    """The squared lengths of the columns of U (D, k), its rows times the `scales` (D,), (k,)."""
    scaled = U * scales[:, None]
    return np.asarray((scaled * scaled).sum(axis=0))
