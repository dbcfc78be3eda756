"""The means of classes, which merge and split: the second step of Kim et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore.arrays import Array, Frozen
from knowmore.errors import InvalidInput
from knowmore.linalg import Eigenspace, Truncation
from knowmore.linalg.spectrum import EPS, spectrum
from knowmore.models.spread import Spread


@final
@dataclass(frozen=True, eq=False)
class ClassMeans(Frozen):
    """Step 2: how many rows each class has, and their mean.

    names (C,) sorted, counts (C,), means (C, D). Soft labels give fractions of rows. The scatter
    between classes, sum_j n_j (m_j - mu)(m_j - mu)', follows from them, so that merging and
    splitting it needs no formula of its own: the one of the paper is what comes out. `spreads`,
    one for each class, are kept if the shrinkage is to be estimated.
    """

    names: Array
    counts: Array
    means: Array
    rounding: float = 0.0
    spreads: tuple[Spread, ...] | None = None

    @classmethod
    def of(cls, X: Array, Y: Array, names: Array, spreads: bool = False) -> ClassMeans:
        """n_j = sum_x p_j(x) and m_j = sum_x p_j(x) x / n_j; Y (n, C) has p_j(x) in [0, 1]."""
        counts = Y.sum(axis=0)
        seen = counts > 0
        counts, Y = counts[seen], Y[:, seen]
        means, rounding = (Y.T @ X) / counts[:, None], EPS * len(X)
        each = tuple(Spread.of(X, p) for p in Y.T) if spreads else None
        return cls(names[seen], counts, means, rounding, each)

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
        names, counts, means = names[left], counts[left], sums[left] / counts[left, None]
        return ClassMeans(names, counts, means, rounding, self._spreads(other, sign, names))

    def _spreads(self, other: ClassMeans, sign: int, names: Array) -> tuple[Spread, ...] | None:
        """The spreads of these classes when `other` joins or leaves, if both have them."""
        if self.spreads is None or other.spreads is None:
            return None
        here = dict(zip(self.names.tolist(), self.spreads, strict=True))
        there = dict(zip(other.names.tolist(), other.spreads, strict=True))
        both = here.keys() & there.keys()
        each = there | here
        return tuple(
            here[name].merge(there[name], sign) if name in both else each[name]
            for name in names.tolist()
        )

    def eigenspace(self, total: Eigenspace) -> Eigenspace:
        """The model {N, mu, Q, Delta} of the scatter between classes, S_B = N Q' Delta Q."""
        N = total.n_samples
        values, Q, _ = spectrum(self.rows(total.mean), Truncation(max(len(self.names) - 1, 0)))
        return Eigenspace(N, total.mean, Q, values**2 / N)

    def rows(self, mean: Array) -> Array:
        """B (C, D) with B'B = S_B, the scatter between the classes around the `mean`."""
        return np.asarray(np.sqrt(self.counts)[:, None] * (self.means - mean))


def _held(classes: ClassMeans, name: Any) -> float:
    return float(classes.counts[classes.names == name].sum())
