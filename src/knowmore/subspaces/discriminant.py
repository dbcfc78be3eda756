"""Linear discriminants that learn, forget and merge, by the three steps of Kim et al.

T.-K. Kim, B. Stenger, J. Kittler and R. Cipolla, Incremental Linear Discriminant Analysis Using
Sufficient Spanning Sets and Its Applications, IJCV 2011: (1) the total scatter is an eigenspace,
(2) so is the scatter between classes, (3) the discriminants are found in the span of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy import linalg
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from scipy.special import log_softmax

from knowmore._base import Array, Frozen, bounded, derived
from knowmore.errors import InvalidInput, KnowmoreWarning, LostVariance
from knowmore.linalg import product
from knowmore.subspaces.class_means import ClassMeans
from knowmore.subspaces.eigenspace import Eigenspace
from knowmore.subspaces.scatter import ROUNDINGS
from knowmore.subspaces.spectrum import EPS, Rank, Truncation, spectrum, unequal

LEDOIT_WOLF = "ledoit-wolf"
# Directions without spread within the classes get this fraction of the variance between them. Half
# of the digits remain for what the other directions say where these leave a tie.
_LIMIT = EPS ** (1 / 2)
# Where the classes have no spread along a direction, random histories leave less than this fraction
# of the estimated rounding error, except for one in thousands, if the errors of the last
# decomposition are counted this many times.
_SEEN, _LAST = 1 / 2, 32
# In practice no classes have a spread that is a smaller fraction of the whole than this.
_FAINT = EPS ** (3 / 4)
# Smaller errors of the shrinkage don't matter in practice.
_SHRINKAGE_ERROR = 1e-3


@final
@dataclass(frozen=True, eq=False)
class Discriminant(Frozen):
    """The total eigenspace and the class means of labelled rows, and the discriminants.

    shrinkage : alpha, zero to one, or "ledoit-wolf": the covariance within the classes is taken as
        (1 - alpha) S_W / N + alpha m I, m = tr S_W / (N D)

    I covers all D features, but where no rows differ, neither do the classes. So everything happens
    in the span of the total eigenspace, and there is no (D, D) matrix.

    Without shrinkage S_W may be singular, as with fewer rows than features. Then the model is the
    limit of a vanishing alpha. Let Q (D, k) be an orthonormal basis of the directions along which
    rows differ, but not within any class: S_W Q = 0, Q'S_T Q > 0. S_W and I agree that Q is
    orthogonal to all else, so that for a small alpha the squared distance of x from a class mean is

        |Q'(x - m_j)|^2 / (alpha m)  +  that along the other discriminants, less their part in Q.

    The first term decides (null-space LDA, the discriminative common vectors), and the second
    breaks ties of the first. Both depend on the rows alone.
    """

    total: Eigenspace
    between: ClassMeans
    shrinkage: float | str = 0.0

    @classmethod
    def of(
        cls, X: Array, Y: Array, names: Array, rank: Rank, shrinkage: float | str = 0.0
    ) -> Discriminant:
        """The model of X (n, D) whose rows belong to the classes `names` (C,) by Y (n, C)."""
        total = Eigenspace.of(X, rank)
        return cls(total, ClassMeans.of(X, Y, names, shrinkage == LEDOIT_WOLF), shrinkage)

    def merge(self, other: Discriminant, rank: Rank = None) -> Discriminant:
        """The model of the rows of both; classes may overlap or be new."""
        total, between = self.total.merge(other.total, rank), self.between.merge(other.between)
        return replace(self, total=total, between=between).shrunk(self.shrinkage)

    def add_rows(self, X: Array, Y: Array, names: Array, rank: Rank = None) -> Discriminant:
        """`merge` with the model of these rows, by one decomposition instead of two."""
        total = self.total.add_rows(X, rank)
        return replace(self, total=total, between=self._classes(X, Y, names))

    def remove_rows(self, X: Array, Y: Array, names: Array, rank: Rank = None) -> Discriminant:
        """The model of the rows that remain when these are removed."""
        between = self._classes(X, Y, names, -1)
        left = replace(self, total=self.total.remove_rows(X, rank), between=between)
        left.shrunk(0.0)._check_labels()
        return left

    def absorb(
        self, X: Array, priors: str, rounds: int, rank: Rank = None
    ) -> tuple[Discriminant, Array]:
        """The model with rows without labels X (n, D), and how far these belong to each class.

        Expectation-maximisation: the probabilities (n, C) under the model so far are the soft
        labels of the next one. The total scatter does not depend on them and is updated once.
        """
        names = self.between.names
        Y = self.probabilities(X, priors)
        model = self.add_rows(X, Y, names, rank)
        for _ in range(rounds - 1):
            last, Y = Y, model.probabilities(X, priors)
            model = replace(model, between=self._classes(X, Y, names))
            if abs(Y - last).max() < np.sqrt(EPS):
                break
        return model, Y

    def _classes(self, X: Array, Y: Array, names: Array, sign: int = 1) -> ClassMeans:
        """The classes with these rows, or without them if `sign` is -1."""
        rows = ClassMeans.of(X, Y, names, self.between.spreads is not None)
        return self.between.merge(rows, sign)

    def shrunk(self, shrinkage: float | str) -> Discriminant:
        """The model of these rows with another shrinkage."""
        if shrinkage == LEDOIT_WOLF and self.between.spreads is None:
            raise InvalidInput(
                "shrinkage='ledoit-wolf' needs sums that were not kept when some of the rows were "
                "learnt with another shrinkage. Fit all of them with shrinkage='ledoit-wolf'."
            )
        return replace(self, shrinkage=shrinkage)

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return self.total.n_samples

    @property
    def alpha(self) -> float:
        """The shrinkage as a number."""
        return self._estimate[0]

    @derived
    def _estimate(self) -> tuple[float, float]:
        """`alpha` and its estimated rounding error.

        Each class has a coefficient of Ledoit and Wolf. Their mean, weighted by the scatters of
        the classes, adds as much of I as shrinking each class by its own would.
        """
        if not isinstance(self.shrinkage, str):
            return float(self.shrinkage), 0.0
        spreads = self.between.spreads or ()
        traces = np.array([spread.trace for spread in spreads])
        alpha, error = traces @ [spread.shrinkage for spread in spreads] / (traces.sum() or 1.0)
        return float(alpha), float(error)

    @derived
    def _ridge(self) -> tuple[float, float]:
        """a and b with the covariance within the classes a S_W / N + b I.

        The class means are exact, but S_T lacks what truncation dropped: they would spread more
        than it along some direction. So what was dropped is spread evenly over all directions, as
        in probabilistic PCA.
        """
        noise, m = self.total.noise, self._mean_variance
        if self.alpha == 0 or m == 0:
            return 1.0, noise
        a = 1 - self.alpha
        return a, a * noise + self.alpha * m

    @derived
    def _mean_variance(self) -> float:
        """m = tr S_W / (N D), or zero if that is no more than rounding error."""
        total, B = self.total, self.between.rows(self.total.centre) / np.sqrt(self.n_samples)
        within = total.total_variance - float((B * B).sum())
        rounding = ROUNDINGS * len(total.variances) * self._rounding / self.n_samples
        return within / len(total.mean) if within > rounding else 0.0

    @property
    def _rounding(self) -> float:
        """The rounding error of S_T - S_B; class means are rounded like the sum of the rows."""
        total, errors = self.total, self.total.rounding
        means = np.sqrt(total.total_variance) * np.linalg.norm(errors.sums)
        return float(np.hypot(errors.scatters.max(), means))

    # -- the discriminants ---------------------------------------------------------------------

    @derived
    def directions(self) -> tuple[Array, Array]:
        """Step 3: U (D, q) with U' S_T U = I and the separations U' S_B U = diag, (q,), best first.

        With F = B Z: Z'S_B Z = F'F = R Sigma R' and U = Z R. Scatters have no 1/N. A separation of
        one: the classes have no spread at all along that direction. With shrinkage S_T is the
        shrunk scatter within the classes plus a S_B, see `_ridge`.
        """
        B, most = self.between.rows(self.total.centre), max(len(self.between.names) - 1, 0)
        Z = _whitening(self.total, *self._ridge)
        values, R, *_ = spectrum(product(B, Z), Truncation(most))
        return product(Z, R.T), values**2

    @derived
    def scalings(self) -> Array:
        """The discriminants, (D, q), scaled so that the classes have the covariance I, with 1/N.

        Those without any spread within the classes come first: there it is taken as `_LIMIT` of
        that between them, a limit that double precision can hold.
        """
        U, _ = self.directions
        empty, within = self._spread.is_empty, self._spread.fraction
        others = U[:, ~empty] * np.sqrt(self.n_samples / within[~empty])
        if not empty.any():
            return np.asarray(others)
        B, root = self.between.rows(self.total.centre), np.sqrt(self.n_samples)
        Q, variances = _aligned(B, root, _basis(self.total.components, U[:, empty]))
        others, _ = _aligned(B, root, others - Q @ (Q.T @ others))
        return np.hstack([Q / np.sqrt(_LIMIT * variances.mean()), others])

    @derived
    def strengths(self) -> Array:
        """The variance between classes along each discriminant, (q,), for one within them."""
        return np.asarray(self.between.counts @ self._centres**2 / self.n_samples)

    @derived
    def _spread(self) -> _WithinClasses:
        """The spread within the classes along the directions."""
        return _WithinClasses(self.total, len(self.between.names), *self.directions, self._ridge)

    def doubts(self) -> Iterator[KnowmoreWarning]:
        """Warnings about digits that removed outliers have cost the other rows.

        Their rounding errors may exceed the spread of classes that lie far apart. Then a fresh fit
        would be far more exact.
        """
        alpha, error = self._estimate
        if error > _SHRINKAGE_ERROR and self._mean_variance > 0:
            yield KnowmoreWarning(
                f"The shrinkage of {alpha:.2g} may be off by {error:.1g}: rounding errors of "
                f"forgotten outliers remain. Fit again, or give the shrinkage as a number."
            )
        hidden = self._spread.is_hidden
        if undecided := int(hidden[max(self._spread.surplus, 0) :].sum()):
            yield LostVariance(
                f"Along {undecided} of {len(hidden)} discriminants forgotten outliers left "
                f"rounding errors that hide whether the classes have any spread. Fit again."
            )

    # -- questions -----------------------------------------------------------------------------

    @derived
    def _centres(self) -> Array:
        return np.asarray((self.between.centres - self.total.centre) @ self.scalings)

    def coordinates(self, X: Array) -> Array:
        """X (m, D) along the discriminants, (m, q), where each class has the covariance I."""
        with np.errstate(over="ignore", invalid="ignore"):
            Z = self.total.centre.centred(X) @ self.scalings
            near = np.isfinite(Z * Z).all(axis=1)
        if not near.all():
            raise InvalidInput(
                f"Row {int(near.argmin())} of X is so far from all that was learnt that the square "
                f"of its distance is beyond double precision. Is it a typing error?"
            )
        return np.asarray(Z)

    def log_priors(self, priors: str) -> Array:
        """The log prior probability of each class, (C,): "frequency" counts rows, or "equal"."""
        counts = self.between.counts
        weights = counts if priors == "frequency" else np.ones(len(counts))
        return np.asarray(np.log(weights / weights.sum()))

    def log_posterior(self, X: Array, priors: str) -> Array:
        """log p(class | x), (m, C), up to a constant of each row.

        log p(x | class) is minus half the squared distance to the class mean along the
        discriminants. Along those without spread the nearest classes get zero, so that the small
        differences along the others are not lost beside large numbers.
        """
        Z, M, k = self.coordinates(X), self._centres, int(self._spread.is_empty.sum())
        places, place = self._places
        first = _nearness(Z[:, :k], places)[:, place]
        first -= first.max(axis=1, keepdims=True)
        return bounded(lambda: first + _nearness(Z[:, k:], M[:, k:]) + self.log_priors(priors))

    def probabilities(self, X: Array, priors: str) -> Array:
        """p(class | x), (m, C)."""
        return np.asarray(np.exp(log_softmax(self.log_posterior(X, priors), axis=1)))

    @derived
    def _places(self) -> tuple[Array, Array]:
        """The G distinct class means along the k directions without spread, (G, k), and which one
        each class has, (C,).

        Classes no farther apart than rounding error share one. No two of C classes do if their
        means spread along C - 1 of these directions.
        """
        k, counts, M = int(self._spread.is_empty.sum()), self.between.counts, self._centres
        C = len(counts)
        if k in (0, C - 1):
            return M[:, :k], np.arange(C)
        U = self.directions[0][:, self._spread.is_empty]
        V = (self.between.centres - self.total.centre) @ U * np.sqrt(counts.min())
        near = cdist(V, V) <= ROUNDINGS * self._spread.error[self._spread.is_empty].max()
        G, place = connected_components(near, directed=False)
        members = np.where(place == np.arange(G)[:, None], counts, 0.0)
        return members @ M[:, :k] / members.sum(axis=1, keepdims=True), place

    def _check_labels(self) -> None:
        """Raise InvalidInput if S_B > S_T, the classes spread more than all rows: wrong labels.

        Along x = Z r, for every right singular vector r of F with a value s > 1, S_T - S_B is
        below zero by (s^2 - 1) / |x|^2. What truncation dropped may explain as much.
        """
        (U, separations), total = self.directions, self.total
        deficit = float(((separations - 1).clip(0) / (U**2).sum(axis=0)).sum())
        dropped = total.n_samples * (total.discarded + total.blurred)
        if deficit > dropped + ROUNDINGS * self._rounding:
            raise InvalidInput(
                "Not all of these rows had these labels: without them the classes would spread "
                "more than the rows do. Remove only rows that were learnt, with their labels."
            )


@final
@dataclass(frozen=True, eq=False)
class _WithinClasses(Frozen):
    """The spread within the classes along each direction u, and how well it is known.

    total : the eigenspace of all rows, of `n_classes` classes
    U, separations : the directions (D, q) and the parts between the classes, (q,)
    ridge : a and b of the covariance within the classes, a S_W / N + b I
    """

    total: Eigenspace
    n_classes: int
    U: Array
    separations: Array
    ridge: tuple[float, float]

    @derived
    def fraction(self) -> Array:
        """The fraction of the scatter that is within the classes along each discriminant, (q,).

        At least what truncation and shrinkage put there.
        """
        a, b = self.ridge
        return np.maximum(
            1 - a * self.separations, self.squared_lengths(np.sqrt([self.total.n_samples * b]))
        )

    @derived
    def is_empty(self) -> Array:
        """Along which directions the classes have no spread beyond rounding error, (q,).

        Overlooking spread costs more than assuming a little where there is none, so rounding must
        easily explain what is seen. Directions that cannot have any (there are d of them, and only
        N - C differences of rows from their class means) get a wider margin. A direction that is
        known to less than a quarter of the digits never counts as empty.
        """
        certain = np.arange(len(self.fraction)) < self.surplus
        roundings = np.where(certain, ROUNDINGS, _SEEN) * self.error
        return np.asarray(self.fraction <= np.minimum(roundings, EPS**0.25))

    @property
    def surplus(self) -> int:
        """Along how many directions no rows of one class can differ: there are too few rows."""
        return len(self.total.variances) - (self.total.n_samples - self.n_classes)

    @derived
    def error(self) -> Array:
        """The estimated error of the fraction within the classes along each direction, (q,).

        It is one minus the part between, u'S_T u - u'S_B u. The class means are rounded like the
        sum of all rows, and the part between by the last decomposition.
        """
        means = self.squared_lengths(self.total.rounding.sums / np.sqrt(self.total.n_samples))
        last = _LAST * np.sqrt(len(self.total.mean)) * EPS
        return np.asarray(self.total_error + 2 * np.sqrt(means) + last)

    @property
    def is_hidden(self) -> Array:
        """Whether rounding of removed rows hides a spread of the classes, by direction, (q,)."""
        fresh = np.sqrt(self.total.n_samples) * EPS * self.cancelled
        hidden = self.fraction <= self.error
        return np.asarray(hidden & (self.total_error > np.maximum(_FAINT, ROUNDINGS * fresh)))

    @derived
    def total_error(self) -> Array:
        """The estimated rounding error of u'S_T u = 1 along each direction, (q,).

        An entry (j, k) of S_T is known to the geometric mean of the errors rho of these features,
        so that the error is the sum of u_j^2 rho_j, whatever the units. Where features cancel
        by more than eps^(-1/2), S_T comes from a decomposition of rows instead of their squares,
        and the error grows with the root of that.
        """
        error = self.squared_lengths(np.sqrt(self.total.rounding.scatters))
        return np.asarray(error / np.sqrt(self.cancelled * np.sqrt(EPS)).clip(1))

    @derived
    def cancelled(self) -> Array:
        """By how much the features cancel along each direction: sum_j u_j^2 (S_T)_jj, (q,)."""
        variances = self.total.variances @ np.square(self.total.components)
        return self.squared_lengths(np.sqrt(self.total.n_samples * variances))

    def squared_lengths(self, scales: Array) -> Array:
        """sum_j (u_j scales_j)^2 of each direction u, (q,), for scales (D,) or (1,)."""
        scaled = self.U * scales[:, None]
        return np.asarray((scaled * scaled).sum(axis=0))


def _whitening(total: Eigenspace, a: float, b: float) -> Array:
    """Z (D, d) with Z' S_T Z = I within the span of the total eigenspace.

    S_T is the shrunk one, N (a Lambda + b) along the components. The components P are
    orthogonal to rounding errors of the largest feature, which are many of the smallest where
    features are of unequal scale. With T = diag(l) P, T'T = S_T, and Z = P'/ l, the entry
    (i, k) of G = T Z, which should be I, is off by a rounding error times l_i / l_k. G itself
    is exact, as each product in it is on the scale of one feature; so is Z G^-1.
    """
    P, variances = total.components, total.variances
    Z = P.T / np.sqrt(total.n_samples * (a * variances + b))
    lengths = np.sqrt(variances)
    if b > 0 or not unequal(lengths):
        return np.asarray(Z)
    G = lengths[:, None] * product(P, P.T) / lengths
    return np.asarray(linalg.solve(G.T, Z.T, check_finite=False).T)


def _basis(P: Array, V: Array) -> Array:
    """Orthonormal columns (D, k) with the span of V (D, k).

    V is within the span of the components P (d, D). Along these, V is as uneven as their variances
    are. Sorting the rows by size and pivoting the columns keeps the small ones as exact as the
    large.
    """
    P = P[::-1]
    V = V / abs(V).max(axis=0)
    Q, _, _ = linalg.qr(product(P, V), mode="economic", pivoting=True, check_finite=False)
    return product(P.T, Q)


def _aligned(B: Array, root: float, A: Array) -> tuple[Array, Array]:
    """The columns of A (D, k) rotated among each other so that A'S_B A is diagonal.

    S_B = B'B for B (C, D). Largest first, with the variances S_B / root^2 between the classes along
    the columns, (k,). k < C.
    """
    F = B @ A / root
    _, values, R = np.linalg.svd(F, full_matrices=False)
    return A @ R.T, values**2


def _nearness(Z: Array, M: Array) -> Array:
    """Minus half the squared distances of Z (m, q) to M (C, q), (m, C), up to a row constant."""
    return np.asarray(Z @ M.T - 0.5 * (M**2).sum(axis=1))
