"""Eigenspace: the mean and principal directions of a set of rows, which merge and split.

Everything rests on one identity. Let B be any rows with B'B = N S, the scatter of N rows around
their mean. The union of two sets has the scatter of B_1, B_2 and one row more, stacked:

    N_3 S_3 = N_1 S_1 + N_2 S_2 + (N_1 N_2 / N_3) d d',    d = mu_1 - mu_2,

so the rows of the stack are the sufficient spanning set of Hall, Marshall and Martin (2000), and
its principal directions are the merged model. Splitting is the same identity solved for S_1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from math import sqrt
from numbers import Integral
from typing import Any, NamedTuple, Self, TypeVar, final
from warnings import warn

import numpy as np
from scipy import linalg

from knowmore.arrays import Array, bounded
from knowmore.errors import InvalidInput, InvalidType, LostVariance, NoExamples
from knowmore.linalg.graded import column_norms, orthogonal_rows
from knowmore.linalg.names import Names, first_difference, joint_names, names_of
from knowmore.linalg.remnant import ROUNDINGS as ROUNDINGS
from knowmore.linalg.remnant import Remnant, balanced
from knowmore.linalg.rows import EXACT, Rounding, Rows, blocks, joint_rounding
from knowmore.linalg.spectrum import EPS, Truncation, moved, spectrum, squared, with_signs
from knowmore.linalg.threads import threads_for

_T = TypeVar("_T", "Eigenspace", "Rows")

# Blocks of a sparse matrix are merged whole up to so many columns: no model has more directions.
_COLUMNS = 2048


@final
@dataclass(frozen=True, eq=False, repr=False)
class Eigenspace:
    """The model {N, mu, P, Lambda} of N rows: S = (1/N) sum (x - mu)(x - mu)' = P' Lambda P.

    n_samples : N
    mean : mu, (D,)
    components : P, (d, D), orthonormal rows, largest variance first
    variances : the diagonal of Lambda, (d,), with 1/N
    discarded : the variance that was dropped, tr S - sum(variances)
    rounding : how far roundings may have moved the sum N mu and the scatter N S, an estimate
    blurred : the variance that splits of truncated models may have put along wrong directions, at
        most. The model is exact if this and `discarded` are zero.
    faded : the variance that may be left where splits took all but a rounding away, at most
    names : of the features, if the rows had any: strings or whatever else a table calls them

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> a, b = Eigenspace.of(X[:20]), Eigenspace.of(X[20:])
    >>> a + b
    Eigenspace(30 rows of 4, 4 directions, discarded 0)
    >>> bool(np.allclose((a + b).covariance(), np.cov(X.T, bias=True)))
    True
    >>> bool(np.allclose((a + b - b).covariance(), a.covariance()))
    True
    """

    n_samples: int
    mean: Array
    components: Array
    variances: Array
    discarded: float = 0.0
    rounding: Rounding = EXACT
    blurred: float = 0.0
    faded: float = 0.0
    names: Names = None

    def __post_init__(self) -> None:
        if not isinstance(self.n_samples, Integral) or self.n_samples < 1:
            raise NoExamples(f"An eigenspace of {self.n_samples!r} rows: there must be at least 1.")
        shape = (len(self.variances), len(self.mean))
        if self.components.shape != shape:
            raise InvalidInput(
                f"The components have shape {self.components.shape}, but the variances and the "
                f"mean ask for {shape}."
            )
        if self.names is not None and len(self.names) != len(self.mean):
            raise InvalidInput(
                f"{len(self.names)} names were given, but there are {len(self.mean)} features. "
                f"Give one for each, or None."
            )
        for name in "mean", "components", "variances":
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of(cls, X: Any, rank: int | Truncation | None = None) -> Self:
        """The model of the rows of X (N, D), dense or sparse; one row is a model too.

        `rank`: how many directions to keep, or a `Truncation`. A sparse X is read in blocks. With
        a rank and more than two thousand columns directions are dropped after each of them.
        """
        rule = Truncation.by(rank)
        first, *others = blocks(X)
        if not others:
            return cls._of(Rows.of(first, names_of(X)), rule)
        between = Truncation() if first.shape[1] <= _COLUMNS else rule
        whole = reduce(lambda e, B: e.add_rows(B, between), others, cls.of(first, between))
        return whole.truncate(rule)

    @classmethod
    def _of(cls, rows: Rows, rule: Truncation) -> Self:
        N = rows.n_samples
        least = rows.rounding.least(N)
        values, P, dropped = spectrum(rows.B, rule, rows.discarded, least, most=N - 1)
        variances = squared(values / np.sqrt(N))
        # What is nothing beside the largest may be nothing at all in double precision.
        seen = int((variances > 0).sum())
        P, variances, discarded = P[:seen], variances[:seen], (rows.discarded + dropped) / N
        each = sqrt(len(rows.B)) * EPS
        rounding = rows.rounding.more(each * moved(values[:seen], P, dropped))
        if not discarded:
            # What was taken for nothing is not known any more.
            lost = np.square(column_norms(rows.B)) - np.square(values[:seen]) @ np.square(P)
            rounding = rounding.more(lost.clip(0))
        others = rows.blurred / N, rows.faded / N, rows.names
        return cls(N, rows.mean, P, variances, discarded, rounding, *others)

    def merge(self, other: Eigenspace, rank: int | Truncation | None = None) -> Eigenspace:
        """The model of the union of both sets of rows; exact if both are and nothing is dropped."""
        return self._stacked(self._checked(other)._rows, rank)

    def add_rows(self, X: Any, rank: int | Truncation | None = None) -> Eigenspace:
        """`merge(Eigenspace.of(X))`, by one decomposition instead of two."""
        return reduce(lambda e, rows: e._stacked(e._checked(rows), rank), _parts(X), self)

    def split(self, other: Eigenspace, rank: int | Truncation | None = None) -> Eigenspace:
        """The model of the rows that are left when those of `other` are taken out of this one.

        What an earlier truncation dropped cannot come back, nor what is left of a feature if that
        is below the rounding of what is taken out of it: then there is a `LostVariance` warning.
        Rows that were never in are an error if the variance left over would be negative by more
        than rounding and what was dropped.
        """
        return self._reduced(self._checked(other)._rows, rank).told(3)

    def remove_rows(self, X: Any, rank: int | Truncation | None = None) -> Eigenspace:
        """`split(Eigenspace.of(X))`, without a decomposition of X."""
        return reduce(lambda e, rows: e._reduced(e._checked(rows), rank).told(4), _parts(X), self)

    def left_by(self, X: Any) -> Eigenspace:
        """`remove_rows` without a word: for those who look at `faded` themselves."""
        return reduce(lambda e, rows: e._reduced(e._checked(rows), None).model, _parts(X), self)

    __add__ = merge
    __sub__ = split

    def truncate(self, rank: int | Truncation | None) -> Eigenspace:
        """The same model with fewer directions; what they held is added to `discarded`."""
        keep = Truncation.by(rank).count(self.variances, self.discarded)
        if keep == len(self.variances):
            return self
        return replace(
            self,
            # A copy, or the rows that go would stay in memory.
            components=self.components[:keep].copy(),
            variances=self.variances[:keep],
            discarded=self.discarded + float(self.variances[keep:].sum()),
        )

    def named(self, names: Sequence[Hashable] | None) -> Eigenspace:
        """The same model with other names of the features, or without any."""
        return replace(self, names=names if names is None else tuple(names))

    @property
    def total_variance(self) -> float:
        """tr S, what was discarded included."""
        return float(self.variances.sum()) + self.discarded

    @property
    def noise(self) -> float:
        """The mean variance along the directions that were dropped."""
        others = min(self.n_samples, len(self.mean)) - len(self.variances)
        return self.discarded / others if others > 0 else 0.0

    def unsure(self) -> Array:
        """How far roundings may have moved each of the `variances`, (d,), an estimate."""
        scatters = np.broadcast_to(self.rounding.scatters, len(self.mean))
        return np.asarray(np.square(self.components) @ scatters / self.n_samples)

    def covariance(self) -> Array:
        """P' Lambda P, (D, D): S itself if nothing was discarded."""
        return np.asarray((self.components.T * self.variances) @ self.components)

    def project(self, X: Array) -> Array:
        """Coordinates (X - mu) P', (m, d), of X (m, D) along the components."""
        with threads_for(self.components.size, len(X)):
            return bounded(lambda: np.asarray((X - self.mean) @ self.components.T))

    def reconstruct(self, Z: Array) -> Array:
        """The points mu + Z P, (m, D), that have the coordinates Z (m, d)."""
        return bounded(lambda: np.asarray(self.mean + Z @ self.components))

    def distances(self, X: Array) -> Array:
        """How far each row of X (m, D) is from its reconstruction, (m,)."""
        rebuilt = self.reconstruct(self.project(X))
        return bounded(lambda: np.asarray(np.linalg.norm(X - rebuilt, axis=1)))

    def angles(self, other: Eigenspace) -> Array:
        """The principal angles in radians between the two subspaces, largest first."""
        self._checked(other)
        if min(len(self.components), len(other.components)) == 0:
            return np.zeros(0)
        return np.asarray(linalg.subspace_angles(self.components.T, other.components.T))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy's arrays are as frozen as these.
        return Eigenspace, tuple(getattr(self, each.name) for each in fields(self))

    def __repr__(self) -> str:
        return (
            f"Eigenspace({self.n_samples} rows of {len(self.mean)}, "
            f"{len(self.variances)} directions, discarded {self.discarded:.3g}"
            + (f", faded {self.faded:.3g})" if self.faded else ")")
        )

    # -- inside ------------------------------------------------------------------------------

    @property
    def _rows(self) -> Rows:
        N, B = self.n_samples, self._scatter_rows(np.empty(self.components.shape))
        sizes = N * self.discarded, self.rounding, N * self.blurred, N * self.faded
        return Rows(N, self.mean, B, *sizes, self.names)

    @property
    def _sums(self) -> Rows:
        """What joint roundings depend on: not the scatter."""
        return Rows(self.n_samples, self.mean, self.components[:0], rounding=self.rounding)

    def _scatter_rows(self, out: Array) -> Array:
        """B (d, D) with B'B = N S."""
        lengths = np.sqrt(self.n_samples * self.variances)[:, None]
        np.multiply(lengths, self.components, out=out)
        return out

    def _stacked(self, two: Rows, rank: int | Truncation | None) -> Eigenspace:
        """Merge: N_3 S_3 = N_1 S_1 + N_2 S_2 + (N_1 N_2 / N_3) d d'."""
        N1, N2, N3 = self.n_samples, two.n_samples, self.n_samples + two.n_samples
        mean = (N1 * self.mean + N2 * two.mean) / N3
        weight = sqrt(N1 * N2 / N3)
        d = weight * (self.mean - two.mean)
        k = len(self.variances)
        B = np.empty((k + len(two.B) + 1, len(d)))
        self._scatter_rows(out=B[:k])
        B[k:-1], B[-1] = two.B, d
        rounding = joint_rounding(self._sums, two, weight, d)
        discarded, blurred = N1 * self.discarded + two.discarded, N1 * self.blurred + two.blurred
        faded, names = N1 * self.faded + two.faded, joint_names(self.names, two.names)
        rows = Rows(N3, mean, B, discarded, rounding, blurred, faded, names)
        return Eigenspace._of(rows, Truncation.by(rank))

    def _reduced(self, two: Rows, rank: int | Truncation | None) -> _Split:
        """Split: N_3 S_3 = N_1 S_1 - N_2 S_2 - (N_1 N_2 / N_3) d d', within the span of P_1."""
        N1, N2 = self.n_samples, two.n_samples
        N3 = N1 - N2
        if N3 < 1:
            raise NoExamples(
                f"{N2} rows are to be taken out of {N1}. A model of no rows has no mean: "
                f"at least one must be left."
            )
        weight = sqrt(N1 * N2 / N3)
        d = weight * (self.mean - two.mean)
        mean = (N1 * self.mean - N2 * two.mean) / N3
        rounding = joint_rounding(self._sums, two, weight, d)
        B = np.concatenate([two.B, d[None]])
        whole = not (self.discarded or self.blurred or two.discarded or two.blurred)
        left = Remnant.of(self.components, N1 * self.variances, B, rounding.scatters, N3 - 1, whole)
        self._check_was_in(left, two.blurred)
        squares, lost, blurred = left.squares, 0.0, 0.0
        if not whole:
            lost = N1 * self.discarded - two.discarded - left.deficit + left.beyond
            blurred = N1 * self.blurred + two.blurred + two.discarded + left.deficit + left.mixed
            squares, lost = balanced(squares, lost)
        keep = Truncation.by(rank).count(squares, lost)
        lost += float(squares[keep:].sum())
        faded, rounding = N1 * self.faded + two.faded + left.faded, rounding.more(left.rounding)
        P, squares = left.R[:keep] @ self.components, squares[:keep]
        if whole:
            P, squares, shed = _without_rounding(P, squares, rounding.scatters)
            rounding = rounding.more(shed)
        P = with_signs(P)
        if N3 == 1:
            # One row has no scatter: that is exact.
            faded, rounding = 0.0, Rounding(rounding.sums)
        sizes = lost / N3, rounding, blurred / N3, faded / N3
        names = joint_names(self.names, two.names)
        return _Split(self, left, Eigenspace(N3, mean, P, squares / N3, *sizes, names))

    def _check_was_in(self, left: Remnant, blurred: float) -> None:
        """Complain if more variance is taken out than is there: kept, dropped, or rounded away.

        Rows that were in took part in what was kept, in what was dropped, or in what earlier
        splits blurred, so the variance that is missing from the first is at most the others.
        """
        whole = self.n_samples * self.total_variance
        unsure = self.n_samples * (self.discarded + self.blurred) + blurred
        if left.excess > min(unsure, whole):
            raise InvalidInput(
                f"These rows are not all in the model: taking them out would leave a variance "
                f"below zero by {left.deficit:.2g}, where it holds {whole:.2g} in all and has "
                f"dropped {self.n_samples * self.discarded:.2g}. Take out only rows that were put "
                f"in, unchanged."
            )

    def _checked(self, other: _T) -> _T:
        if not isinstance(other, (Eigenspace, Rows)):
            raise InvalidType(
                f"An Eigenspace meets another one, not a {type(other).__name__}. "
                f"Make one of rows by Eigenspace.of(X)."
            )
        if len(other.mean) != len(self.mean):
            raise InvalidInput(
                f"The model is of rows with {len(self.mean)} columns, the other of rows with "
                f"{len(other.mean)}. Both need the same columns in the same order."
            )
        here, there = self.names, other.names
        if here and there and (at := first_difference(here, there)) is not None:
            raise InvalidInput(
                f"Column {at} is {here[at]!r} in the model and {there[at]!r} in the other. Both "
                f"need the same columns in the same order: select them by their names."
            )
        return other


class _Split(NamedTuple):
    """A model `before` rows are taken out, the scatter that is `left`, and the `model` of it."""

    before: Eigenspace
    left: Remnant
    model: Eigenspace

    def told(self, depth: int) -> Eigenspace:
        """The model, with a warning if it may lack something that was there before.

        `depth` calls up is who asked for it.
        A feature whose sum is zero is taken to be zero in all rows that are left, as in tables of
        counts: nothing is lost of it.
        """
        before, left, after = self
        if left.missing == 0:
            return after
        P, known = before.components, after.rounding.scatters
        was = before.n_samples * before.variances @ np.square(P)
        gone = (was > known) & (left.squares @ np.square(left.R @ P) <= known)
        zero = after.n_samples * abs(after.mean) <= ROUNDINGS * after.rounding.sums
        if left.missing > int((gone & zero).sum()):
            warn(_loss(after, np.flatnonzero(gone & ~zero), left.missing), LostVariance, depth)
        return after


def _without_rounding(P: Array, squares: Array, known: Array) -> tuple[Array, Array, Array]:
    """Directions P (d, D) and squares (d,) without features that are rounding; what it moves, (D,).

    Of a feature that has no more scatter than its rounding, `known` (D,), nothing else is left, and
    beside features that are added later it would pass for one. Directions that were made of such
    features alone go with them.
    """
    gone = squares @ np.square(P) <= known
    if not gone.any():
        return P, squares, np.zeros(1)
    P = np.where(gone, 0.0, P)
    lengths = (P * P).sum(axis=1)
    some = lengths > 0.5
    rows = np.sqrt(squares[some])[:, None] * P[some]
    if lengths[some].min(initial=1.0) < 1 - sqrt(EPS):
        rows = orthogonal_rows(rows)
    left = (rows * rows).sum(axis=1)
    return rows / np.sqrt(left)[:, None], left, squares[~some] @ np.square(P[~some])


def _loss(after: Eigenspace, gone: Array, missing: int) -> str:
    if len(gone):
        spread = np.sqrt(after.rounding.scatters[gone] / after.n_samples)
        names = [repr(after.names[j]) if after.names else str(j) for j in gone.tolist()]
        known = [f"{name} (up to {size:.2g})" for name, size in zip(names, spread, strict=True)]
        what = f"feature{'s' * (len(gone) > 1)} {_listed(known)}"
    else:
        what = f"{missing} direction{'s' * (missing > 1)}"
    return (
        f"The {after.n_samples} rows that are left may still vary in {what}, but so little beside "
        f"those taken out that it is lost in their rounding. `faded` says how much it may be. If "
        f"these rows are not all alike there, fit them anew."
    )


def _parts(X: Any) -> Iterator[Rows]:
    names = names_of(X)
    return (Rows.of(block, names) for block in blocks(X))


def _listed(names: Sequence[str]) -> str:
    """The first few."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
