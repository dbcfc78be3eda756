"""Eigenspace: the mean and principal directions of a set of rows, which merge and split.

Everything rests on one identity. Let B be any rows with B'B = N S, the scatter of N rows around
their mean. The union of two sets has the scatter of B_1, B_2 and one more row, stacked:

    N_3 S_3 = N_1 S_1 + N_2 S_2 + (N_1 N_2 / N_3) d d',    d = mu_1 - mu_2,

so the rows of the stack are the sufficient spanning set of Hall, Marshall and Martin (2000), and
its principal directions are the merged model. Splitting is the same identity solved for S_1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from math import sqrt
from typing import Any, final

import numpy as np
from scipy import linalg

from knowmore._base import (
    Array,
    Frozen,
    Names,
    Savable,
    bounded,
    column_names,
    first_difference,
    flag,
    is_whole,
    joint_names,
    real_numbers,
    some,
)
from knowmore.errors import InvalidInput, InvalidType, LostVariance, NoExamples, warn
from knowmore.linalg import threads_for
from knowmore.subspaces import scatter
from knowmore.subspaces.scatter import EXACT, Difference, Mean, Moments, Rounding, blocks, moments
from knowmore.subspaces.spectrum import EPS, Rank, Truncation, spectrum, squared, with_signs

# Blocks of a sparse matrix are merged without truncation up to this many columns, which bound the
# number of directions.
_COLUMNS = 2048


@final
@dataclass(frozen=True, eq=False, repr=False)
class Eigenspace(Savable, Frozen):
    """The model {N, mu, P, Lambda} of N rows: S = (1/N) sum (x - mu)(x - mu)' = P' Lambda P.

    n_samples : N
    mean : mu, (D,)
    components : P, (d, D), orthonormal rows, largest variance first
    variances : the diagonal of Lambda, (d,), with 1/N
    discarded : the variance that truncation dropped, tr S - sum(variances)
    rounding : estimated rounding errors of the sum N mu and of the scatter N S
    blurred : an upper bound of the variance that splits of truncated models may have put along
        wrong directions. The model is exact if this and `discarded` are zero.
    lost : an upper bound of the error of variances that may be off by more than a hundredth: of
        some features splits left little more than rounding error
    names : of the features, if the rows had any: strings, or anything else a table uses
    mean_rest : what rounding to double precision took off the mean, (D,)

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
    lost: float = 0.0
    names: Names = None
    mean_rest: Array = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        if not is_whole(self.n_samples) or self.n_samples < 1:
            raise NoExamples(f"An eigenspace needs at least 1 row, but n_samples={self.n_samples}.")
        for part in "mean", "components", "variances", "mean_rest":
            vars(self)[part] = real_numbers(part, getattr(self, part))
        d, D = _count("variances", self.variances), _count("mean", self.mean)
        if self.components.shape != (d, D):
            raise InvalidInput(f"The components have shape {self.components.shape}, not {(d, D)}.")
        if self.mean_rest.shape not in ((1,), (D,)):
            raise InvalidInput(f"mean_rest has shape {self.mean_rest.shape}, not {(D,)}.")
        _check_names(self.names, D)
        super().__post_init__()

    @classmethod
    def of(cls, X: Any, rank: Rank = None) -> Eigenspace:
        """The model of the rows of X (N, D), dense or sparse; a single row will do.

        `rank`: how many directions to keep, or a `Truncation`. A sparse X is read in blocks. With a
        rank and more than two thousand columns, directions are dropped after each block.
        """
        rule, parts = Truncation.by(rank), moments(X)
        first, second = next(parts), next(parts, None)
        if second is None:
            return _of(first, rule)
        between = Truncation() if first.B.shape[1] <= _COLUMNS else rule
        model = _of(first, between)
        for rows in chain([second], parts):
            model = model.merge(rows, between)
        return model.truncate(rule)

    def merge(self, other: Eigenspace | Moments, rank: Rank = None) -> Eigenspace:
        """The model of the union of both sets of rows; exact if both are and nothing is dropped.

        N_3 S_3 = N_1 S_1 + N_2 S_2 + (N_1 N_2 / N_3) d d'.
        """
        both = _combined(self, self._checked(other), 1)
        return _of(both, Truncation.by(rank))

    def add_rows(self, X: Any, rank: Rank = None) -> Eigenspace:
        """`merge(Eigenspace.of(X))`, by one decomposition instead of two."""
        return reduce(lambda model, rows: model.merge(rows, rank), moments(X), self)

    def split(
        self, other: Eigenspace | Moments, rank: Rank = None, *, warn: bool = True
    ) -> Eigenspace:
        """The model of the rows that remain without the rows of `other`.

        What an earlier truncation dropped cannot come back, nor what remains of a feature if that
        is near the rounding error of what is removed from it: then there is a `LostVariance`
        warning. Rows that were never in the model raise InvalidInput if the remaining variance
        would be negative by more than rounding and what was dropped.

        N_3 S_3 = N_1 S_1 - N_2 S_2 - (N_1 N_2 / N_3) d d', within the span of P_1.

        `warn=False`: no `LostVariance` warning, for callers that look at `lost` themselves.
        """
        two = self._checked(other)
        both = _combined(self, two, -1)
        P, squares, N3 = self.components, self.n_samples * self.variances, both.n_samples
        exact = not (self.discarded or self.blurred or two.discarded or two.blurred)
        left = scatter.subtract(P, squares, both.B, both.rounding.scatters, N3 - 1, exact)
        _check_contains(self, left, N3 * both.blurred)
        squares, discarded, blurred = left.squares, 0.0, 0.0
        if not exact:
            change = left.cut - left.deficit
            squares, discarded = scatter.balanced(squares, N3 * both.discarded + change)
            mixed = two.n_samples * two.discarded + left.deficit + left.mixed
            blurred = both.blurred + mixed / N3
        keep = Truncation.by(rank).count(squares, discarded)
        discarded += float(squares[keep:].sum())
        P, squares = left.R[:keep] @ P, squares[:keep]
        lost, rounding = both.lost + left.lost / N3, both.rounding.plus(left.rounding)
        if exact:
            P, squares, removed = scatter.without_noise(P, squares, rounding.scatters)
            rounding = rounding.plus(removed)
        if N3 == 1:
            # One row has no scatter: that is exact.
            lost, rounding = 0.0, Rounding(rounding.sums)
        errors = discarded / N3, rounding, blurred, lost
        (mean, rest), names = both.centre, both.names
        after = Eigenspace(N3, mean, with_signs(P), squares / N3, *errors, names, rest)
        after = _with_doubts(after)
        if warn and after.lost > both.lost:
            _warn_of_loss(self, left, after)
        return after

    def remove_rows(self, X: Any, rank: Rank = None, *, warn: bool = True) -> Eigenspace:
        """`split(Eigenspace.of(X))`, without a decomposition of X."""
        left, warn = self, flag("warn", warn)
        for rows in moments(X):
            left = left.split(rows, rank, warn=warn)
        return left

    __add__ = merge
    __sub__ = split

    def truncate(self, rank: Rank) -> Eigenspace:
        """The model with fewer directions; `discarded` grows by the variance of the others."""
        keep = Truncation.by(rank).count(self.variances, self.discarded)
        if keep == len(self.variances):
            return self
        return replace(
            self,
            # A copy, or the dropped rows would stay in memory.
            components=self.components[:keep].copy(),
            variances=self.variances[:keep],
            discarded=self.discarded + float(self.variances[keep:].sum()),
        )

    def with_names(self, names: Sequence[Hashable] | None) -> Eigenspace:
        """The model with these names of the features, or without names."""
        listed: Any = names
        if np.iterable(names) and not isinstance(names, str):
            listed = tuple(names)
        return replace(self, names=listed)

    @property
    def total_variance(self) -> float:
        """tr S, including what was discarded."""
        return float(self.variances.sum()) + self.discarded

    @property
    def noise(self) -> float:
        """The mean variance along the directions that were dropped."""
        others = min(self.n_samples, len(self.mean)) - len(self.variances)
        return self.discarded / others if others > 0 else 0.0

    def variance_errors(self) -> Array:
        """The estimated rounding error of each of the `variances`, (d,)."""
        scatters = np.broadcast_to(self.rounding.scatters, len(self.mean))
        return np.asarray(np.square(self.components) @ scatters / self.n_samples)

    def covariance(self) -> Array:
        """P' Lambda P, (D, D): S itself if nothing was discarded."""
        return np.asarray((self.components.T * self.variances) @ self.components)

    def project(self, X: Any) -> Array:
        """Coordinates (X - mu) P', (m, d), of X (m, D), dense or sparse, along the components."""
        return self._answered(X, lambda E: E @ self.components.T)

    def reconstruct(self, Z: Any) -> Array:
        """The points mu + Z P, (m, D), with the coordinates Z (m, d)."""
        Z, d = real_numbers("Z", Z), len(self.variances)
        if Z.ndim != 2 or Z.shape[1] != d:
            raise InvalidInput(f"Z has shape {Z.shape}, but (m, {d}) is needed, as from project.")
        scatter.check_finite("Z", Z)
        return bounded(lambda: np.asarray(self.mean + Z @ self.components))

    def distances(self, X: Any) -> Array:
        """The distance of each row of X (m, D), dense or sparse, to its reconstruction, (m,)."""
        P = self.components
        return self._answered(X, lambda E: np.linalg.norm(E - (E @ P.T) @ P, axis=1))

    def angles(self, other: Eigenspace) -> Array:
        """The principal angles in radians between the two subspaces, largest first."""
        self._checked(other)
        if min(len(self.components), len(other.components)) == 0:
            return np.zeros(0)
        return np.asarray(linalg.subspace_angles(self.components.T, other.components.T))

    def __repr__(self) -> str:
        return (
            f"Eigenspace({self.n_samples} rows of {len(self.mean)}, "
            f"{len(self.variances)} directions, discarded {self.discarded:.3g}"
            + (f", lost {self.lost:.3g})" if self.lost else ")")
        )

    # -- merging and splitting ---------------------------------------------------------------

    @property
    def centre(self) -> Mean:
        """The mean, to twice the digits of a double."""
        return Mean(self.mean, self.mean_rest)

    @property
    def B(self) -> Array:
        """Rows (d, D) with B'B = N S, but for what was discarded."""
        return np.asarray(np.sqrt(self.n_samples * self.variances)[:, None] * self.components)

    @property
    def doubts(self) -> Array:
        """By how much the variance of each feature may be off, (D,); zero where it is well known.

        Where directions were dropped, what is left of a feature says nothing of this.
        """
        if self.discarded or self.blurred:
            return np.zeros(len(self.mean))
        N, scatters = self.n_samples, self.n_samples * self.variances @ np.square(self.components)
        return self.rounding.doubts(N, self.mean, scatters) / N

    def _checked(self, other: object) -> Eigenspace | Moments:
        if not isinstance(other, (Eigenspace, Moments)):
            got = type(other).__name__
            raise InvalidType(f"Expected an Eigenspace, got {got}. For rows use Eigenspace.of(X).")
        _check_columns(self, "the other", len(other.centre.value), other.names)
        return other

    def _answered(self, X: Any, answer: Callable[[Array], Array]) -> Array:
        """The `answer` for the centred rows of X (m, D), which must have the model's columns."""
        names = column_names(X)

        def parts() -> Iterator[Array]:
            for block in blocks(X):
                _check_columns(self, "X", block.shape[1], names)
                with threads_for(self.components.size, len(block)):
                    answers = answer(self.centre.centred(block))
                yield answers

        return bounded(lambda: np.concatenate([*parts()]))


def _of(rows: Moments, rule: Truncation) -> Eigenspace:
    """The model of rows with these moments."""
    N, (mean, rest) = rows.n_samples, rows.centre
    floor = rows.rounding.floor(N, mean)
    values, P, dropped, error = spectrum(rows.B, rule, N * rows.discarded, floor, most=N - 1)
    variances = squared(values / np.sqrt(N))
    # What is tiny beside the largest may underflow to zero.
    seen = int((variances > 0).sum())
    errors = rows.discarded + dropped / N, rows.rounding.plus(error), rows.blurred, rows.lost
    model = Eigenspace(N, mean, P[:seen], variances[:seen], *errors, rows.names, rest)
    return _with_doubts(model)


def _combined(one: Eigenspace, two: Eigenspace | Moments, sign: int) -> Moments:
    """The moments of both sets of rows together, or of `one` without the rows of `two`.

    `sign` is 1 or -1. B are all rows to stack, or those to subtract.
    """
    N1, N2 = one.n_samples, two.n_samples
    N3 = N1 + sign * N2
    if N3 < 1:
        raise NoExamples(f"{N2} rows are to be removed from {N1}. At least one must remain.")
    weight, between = sqrt(N1 * N2 / N3), two.centre - one.centre
    B, d = two.B, weight * between
    sums = 4 * EPS * EPS * (N1 * abs(one.mean) + N2 * abs(two.centre.value))
    # The difference of the means is as exact as they are, but for a rounding of its own.
    shift = weight * (one.rounding.sums / N1 + two.rounding.sums / N2) + EPS * abs(d)
    return Moments(
        N3,
        one.centre.merge(N1, two.centre, sign * N2),
        np.concatenate([one.B, B, d[None]] if sign > 0 else [B, d[None]]),
        (N1 * one.discarded + sign * N2 * two.discarded) / N3,
        one.rounding.merge(two.rounding, sums, shift, d),
        (N1 * one.blurred + N2 * two.blurred) / N3,
        (N1 * one.lost + N2 * two.lost) / N3,
        joint_names(one.names, two.names),
    )


def _check_contains(model: Eigenspace, left: Difference, blurred: float) -> None:
    """Raise InvalidInput if more variance is removed than is there.

    Rows that were in took part in what was kept, in what was dropped, or in what earlier splits
    blurred, so the variance that is missing from the first is at most the others. What was lost
    of a feature had a covariance with the rest of up to the geometric mean of both.
    """
    total, dropped = model.n_samples * model.total_variance, model.n_samples * model.discarded
    shared = sqrt(model.n_samples * model.lost * total)
    if left.excess > min(dropped + blurred + shared, total):
        raise InvalidInput(
            f"These rows are not all in the model: removing them would leave a variance below "
            f"zero by {left.deficit:.2g} of {total:.2g}. Remove only rows that were added."
        )


def _with_doubts(model: Eigenspace) -> Eigenspace:
    """The model with a `lost` of at least the sum of the doubts."""
    doubts = float(model.doubts.sum())
    return replace(model, lost=doubts) if doubts > model.lost else model


def _check_columns(model: Eigenspace, what: str, count: int, names: Names) -> None:
    """Raise InvalidInput unless `what` has as many columns as the model, of the same names."""
    if count != len(model.mean):
        raise InvalidInput(
            f"The model has {len(model.mean)} columns and {what} {count}. "
            f"Both need the same columns in the same order."
        )
    here = model.names
    if here and names and (at := first_difference(here, names)) is not None:
        raise InvalidInput(
            f"Column {at} is {here[at]!r} in the model and {names[at]!r} in {what}. Both "
            f"need the same columns in the same order: select them by their names."
        )


def _count(name: str, values: Array) -> int:
    """The number n of the values, (n,)."""
    if values.ndim != 1:
        raise InvalidInput(f"{name} has shape {values.shape}, not (n,).")
    return len(values)


def _check_names(names: Any, D: int) -> None:
    """Raise InvalidInput unless `names` is None, or a tuple of D names of features."""
    if names is None:
        return
    if not isinstance(names, tuple) or not all(isinstance(name, Hashable) for name in names):
        raise InvalidInput(f"names={names!r} is not a list of names. Give {D} of them, or None.")
    if len(names) != D:
        raise InvalidInput(f"{len(names)} names for {D} features: give {D}, or None.")


def _warn_of_loss(before: Eigenspace, left: Difference, after: Eigenspace) -> None:
    """Warn of features, or else directions, whose variance is lost in rounding by this split.

    Nothing may be lost of a feature that has no variance left: it may have become constant. So that
    counts only if fewer directions are left than the rows may have, and if the sum of the feature
    is not zero: then it is taken to be zero in all rows that remain, as in tables of counts.
    """
    poor = (after.doubts > 0) & (before.doubts == 0)
    visible = poor & after.components.any(axis=0)
    zero = after.n_samples * abs(after.mean) <= scatter.ROUNDINGS * after.rounding.sums
    if not visible.any() and left.missing <= int((poor & zero).sum()):
        return
    names = after.names or tuple(range(len(after.mean)))
    features = [names[j] for j in np.flatnonzero(poor & (visible | ~zero))]
    where = f"feature(s) {some(features)}" if features else f"{left.missing} direction(s)"
    message = (
        f"The variance of the {after.n_samples} rows that remain may be off by up to "
        f"{after.lost:.2g} (`lost`) in {where}: that is the rounding error of what was removed. "
        f"Fit these rows again."
    )
    warn(LostVariance(message))
