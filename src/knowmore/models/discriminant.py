"""Linear discriminants that learn, forget and merge, by the three steps of Kim et al.

T.-K. Kim, B. Stenger, J. Kittler and R. Cipolla, Incremental Linear Discriminant Analysis Using
Sufficient Spanning Sets and Its Applications, IJCV 2011: (1) the total scatter is an eigenspace,
(2) so is the scatter between classes, (3) the discriminants are found in the span of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from knowmore.concurrency import cached_property
from knowmore.errors import InvalidInput
from knowmore.linalg import Eigenspace, Truncation
from knowmore.linalg.eigenspace import ROUNDINGS
from knowmore.linalg.spectrum import EPS, spectrum
from knowmore.linalg.threads import threads_for

Array = npt.NDArray[Any]


class Directions(NamedTuple):
    """U (D, q) with U' S_T U = I and U' S_B U = diag(separations), best first; scatters, no 1/N.

    A separation of one: the classes have no spread at all along that direction.
    """

    U: Array
    separations: Array


@final
@dataclass(frozen=True, eq=False)
class ClassMeans:
    """Step 2: how many rows each class has, and their mean.

    names (C,) sorted, counts (C,), means (C, D). Soft labels give fractions of rows. The scatter
    between classes, sum_j n_j (m_j - mu)(m_j - mu)', follows from them, so that merging and
    splitting it needs no formula of its own: the one of the paper is what comes out.
    """

    names: Array
    counts: Array
    means: Array
    rounding: float = 0.0

    @classmethod
    def of(cls, X: Array, Y: Array, names: Array) -> ClassMeans:
        """n_j = sum_x p_j(x) and m_j = sum_x p_j(x) x / n_j; Y (n, C) has p_j(x) in [0, 1]."""
        counts = Y.sum(axis=0)
        seen = counts > 0
        counts, Y = counts[seen], Y[:, seen]
        return cls(names[seen], counts, (Y.T @ X) / counts[:, None], EPS * len(X))

    def merge(self, other: ClassMeans, sign: int = 1) -> ClassMeans:
        """The classes of both; with `sign` -1 those of `other` are taken out."""
        names = np.union1d(self.names, other.names)
        counts, sums = np.zeros(len(names)), np.zeros((len(names), self.means.shape[1]))
        for part, factor in ((self, 1), (other, sign)):
            at = np.searchsorted(names, part.names)
            counts[at] += factor * part.counts
            sums[at] += (factor * part.counts)[:, None] * part.means
        # Sums of soft labels leave a few roundings where nothing is left.
        rounding = self.rounding + other.rounding + EPS * max(self.counts.sum(), other.counts.sum())
        nothing = 4 * rounding
        if counts.min() < -nothing:
            worst = names[counts.argmin()].item()
            raise InvalidInput(
                f"More rows of class {worst!r} are to be taken out than there are: "
                f"{_held(other, worst):g} of {_held(self, worst):g}. "
                f"Take out only rows that were learnt, with the labels they had."
            )
        left = counts > nothing
        return ClassMeans(names[left], counts[left], sums[left] / counts[left, None], rounding)

    def eigenspace(self, total: Eigenspace) -> Eigenspace:
        """The model {N, mu, Q, Delta} of the scatter between classes, S_B = N Q' Delta Q."""
        N = total.n_samples
        values, Q, _ = spectrum(self.rows(total.mean), Truncation(max(len(self.names) - 1, 0)))
        return Eigenspace(N, total.mean, Q, values**2 / N)

    def rows(self, mean: Array) -> Array:
        """B (C, D) with B'B = S_B, the scatter between the classes around the `mean`."""
        return np.asarray(np.sqrt(self.counts)[:, None] * (self.means - mean))


@final
@dataclass(frozen=True, eq=False)
class Discriminant:
    """The total eigenspace and the class means of some labelled rows, and what follows."""

    total: Eigenspace
    between: ClassMeans

    @classmethod
    def of(cls, X: Array, Y: Array, names: Array, rank: int | Truncation | None) -> Discriminant:
        """The model of X (n, D) whose rows belong to the classes `names` (C,) by Y (n, C)."""
        return cls(Eigenspace.of(X, rank), ClassMeans.of(X, Y, names))

    def merge(self, other: Discriminant, rank: int | Truncation | None = None) -> Discriminant:
        """The model of the rows of both; classes may overlap or be new."""
        return Discriminant(self.total.merge(other.total, rank), self.between.merge(other.between))

    def add_rows(
        self, X: Array, Y: Array, names: Array, rank: int | Truncation | None = None
    ) -> Discriminant:
        """`merge` with the model of these rows, by one decomposition instead of two."""
        joining = ClassMeans.of(X, Y, names)
        return Discriminant(self.total.add_rows(X, rank), self.between.merge(joining))

    def remove_rows(
        self, X: Array, Y: Array, names: Array, rank: int | Truncation | None = None
    ) -> Discriminant:
        """The model of the rows that are left when these are taken out."""
        between = self.between.merge(ClassMeans.of(X, Y, names), sign=-1)
        left = Discriminant(self.total.remove_rows(X, rank), between)
        left._check_labels()
        return left

    def relabelled(self, between: ClassMeans) -> Discriminant:
        """The same rows in other classes: the total scatter does not ask for labels."""
        return replace(self, between=between)

    @property
    def n_samples(self) -> int:
        """How many rows it holds."""
        return self.total.n_samples

    @cached_property
    def _whitened(self) -> tuple[Array, Array]:
        """Z (D, d) with Z' S_T Z = I within the span of the total eigenspace, and F = B Z.

        The class means are exact, but S_T lacks what truncation dropped: they would spread more
        than it along some direction. So what was dropped is spread evenly over all directions, as
        probabilistic PCA has it.
        """
        total = self.total
        Z = total.components.T / np.sqrt(total.n_samples * (total.variances + total.noise))
        B = self.between.rows(total.mean)
        with threads_for(Z.size, len(B)):
            return Z, B @ Z

    @cached_property
    def directions(self) -> Directions:
        """Step 3: Z'S_B Z = F'F = R Sigma R' and U = Z R."""
        Z, F = self._whitened
        most = Truncation(rank=max(len(self.between.names) - 1, 0))
        values, R, _ = spectrum(F, most)
        with threads_for(Z.size, len(R)):
            return Directions(Z @ R.T, values**2)

    @cached_property
    def scalings(self) -> Array:
        """U (D, q) stretched so that the classes have the covariance I, with 1/N.

        Along a direction without any spread within the classes that is impossible: there the
        spread is taken as a rounding of the whole, the limit of a vanishing regularisation.
        """
        return np.asarray(self.directions.U * np.sqrt(self.n_samples / self._within))

    @cached_property
    def strengths(self) -> Array:
        """The variance between classes along each discriminant, (q,), for one within them."""
        return np.asarray(self.directions.separations / self._within)

    @cached_property
    def _within(self) -> Array:
        """The part of the scatter within the classes along each discriminant, (q,)."""
        U, separations = self.directions
        # At least what truncation dropped along it, or a rounding of the whole.
        noise = self.n_samples * self.total.noise * (U**2).sum(axis=0)
        least = np.maximum(noise, len(self.total.variances) * EPS)
        return np.asarray(np.maximum(1 - separations, least))

    @cached_property
    def _centres(self) -> Array:
        return np.asarray((self.between.means - self.total.mean) @ self.scalings)

    def log_likelihood(self, X: Array) -> Array:
        """log p(x | class), (m, C), up to a constant of each row: minus half the squared distance
        to the class means along the discriminants."""
        Z, M = (X - self.total.mean) @ self.scalings, self._centres
        return np.asarray(Z @ M.T - 0.5 * (M**2).sum(axis=1))

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
        # The class means are rounded like the rows.
        spread = np.sqrt(total.n_samples * total.total_variance)
        rounding = total.rounding.more(spread * total.rounding.sum / np.sqrt(total.n_samples))
        allowed = total.n_samples * (total.discarded + total.blurred) + ROUNDINGS * rounding.scatter
        if deficit > allowed:
            raise InvalidInput(
                "Not all of these rows had these labels: without them the classes would spread "
                "more than the rows do. Take out only rows that were learnt, with the labels they "
                "had."
            )


def _held(classes: ClassMeans, name: Any) -> float:
    return float(classes.counts[classes.names == name].sum())
