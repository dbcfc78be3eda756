"""Leave-one-out of a linear model, in closed form, for rows that it has learnt.

The model knows sums alone, so the rows come from elsewhere: given again, or kept beside the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen, derived, first_not_finite
from knowmore.errors import InvalidInput
from knowmore.linalg import blocks, eigh, product, side_by_side
from knowmore.models.linear import LinearModel, as_columns, leverages, target_grid
from knowmore.models.loo import LooMoments, LooScores, silenced, tied
from knowmore.models.null_space import Removed
from knowmore.models.unrelated import members

_EPS: Final = float(np.finfo(float).eps)
# Rows that are left out at a time.
_ROWS: Final = 2048


class _Without(NamedTuple):
    """The closed form for n rows that are left out, each alone, or all together.

    missed : by how much their targets differ from what is predicted, (n, M)
    h : their leverages, (n,)
    free : one over the diagonal of (I - H)^-1, (n,): 1 - h of a row alone
    least : the least eigenvalue of I - H, (1,), or of each row alone, (n,)
    """

    missed: Array
    h: Array
    free: Array
    least: Array


@final
@dataclass(frozen=True, eq=False)
class LinearLoo(Frozen):
    """Rows left out of a linear model with D features and M columns of targets.

    model : it has learnt the rows
    """

    model: LinearModel

    def scores(self, X: Any, y: Array, weights: Array, groups: Array | None = None) -> LooScores:
        """Predictions for rows that were learnt, X (n, D), by the model without them.

        y are their labels or targets, coded as t, weights (n,). With h = w (z'A^-1 z + 1/N) and the
        score s,

            s_-i = t - (t - s) / (1 - h),    sigma_-i^2 = sigma^2 / (w (1 - h)).

        groups : (n,), rows of a group are left out together: the same with the group's block of the
            matrix that has h on its diagonal
        """
        T = self.coded(y)
        # Computed first: threads would compute them twice.
        _ = self.model.weights, self.model.root, self._condition, self._shift
        parts = [*_parts(X.shape[0], groups)]

        def left_out(rows: Any) -> LooScores:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._left_out(X[rows], T[rows], weights[rows], together=groups is not None)

        columns = zip(*side_by_side(left_out, parts), strict=True)
        scores = [np.concatenate(column) for column in columns]
        if groups is not None:
            order = np.concatenate(parts).argsort()
            scores = [column[order] for column in scores]
        for column in scores[:2]:
            if (row := first_not_finite(column)) is not None:
                raise InvalidInput(
                    f"What is predicted for row {row} without it is beyond the range of numbers, "
                    f"at noise={self.model.noise:g}. Use less noise, or scale the targets."
                )
        return LooScores(*scores)

    def coded(self, y: Array) -> Array:
        """The targets of rows, (n, M), as they were learnt."""
        if not self.model.classes:
            return target_grid(self.model).rounded(as_columns(y))
        if (strange := ~np.isin(y, self.model.names)).any():
            raise InvalidInput(f"No row of class {y[strange.argmax()].item()!r} was learnt.")
        return np.where(y[:, None] == self.model.names, 1.0, -1.0)

    def _left_out(self, X: Any, T: Array, w: Array, *, together: bool) -> LooScores:
        """The rows of X, each left out alone, or all together."""
        left = self.moments(X, T, w, together=together)
        scores, silent = silenced(left)
        # The prior is a mean of targets, and as precise as one.
        error = np.where(silent[:, None], self._roundings * abs(left.prior), left.error)
        variance = left.variance
        if self.model.normalised:
            variance = variance[:, None] * self._spread_without(T, w, together=together)
        return LooScores(tied(scores, error) if self.model.classes else scores, variance, silent)

    def moments(self, X: Any, T: Array, w: Array, *, together: bool) -> LooMoments:
        """The closed form for the rows of X, each left out alone, or all together.

        Where 1 - h is no more than rounding, the closed form knows nothing: the error is infinite,
        and the variance is the prior's.
        """
        m = self.model.moments
        share = _summed(w, together=together)
        if self.model.intercept and (share >= m.weight).any():
            raise InvalidInput(
                "Leaving all rows out at once leaves none to compute an intercept from. Learn more "
                "rows, or use smaller groups or intercept=False."
            )
        Z = self._as_learnt(X)
        out = self._without(Z, T, w, together=together)
        blurred = self._blurred(out.h, share, together=together)
        if (out.least < -2 * blurred).any():
            raise InvalidInput(
                "Some of these rows were not learnt, so they cannot be left out. Give rows that "
                "the model holds, with the labels or targets and weights they were learnt with."
            )
        lost = np.broadcast_to(out.least <= 2 * blurred, w.shape)
        # About the means of the other rows.
        others = np.maximum(m.weight - share, _EPS)[:, None]
        y, z = (_summed(w[:, None] * part, together=together) for part in (T - m.means[1], Z))
        prior = np.broadcast_to(m.means[1] - self.model.intercept * y / others, T.shape)
        away = Z + self.model.intercept * z / others
        far = self.model.noise * (1 / w + self.model.intercept / others[:, 0])
        far = far + self.model.amplitude * np.einsum("ij,ij->i", away, away)
        variance = np.where(lost, far, self.model.noise / (w * out.free))
        error = self._rounding(T, w, out, blurred, together=together)
        return LooMoments(T - out.missed, variance, np.where(lost[:, None], np.inf, error), prior)

    def _as_learnt(self, X: Any) -> Array:
        """Rows X (n, D) as they were learnt, on the grid, about the mean."""
        centres, rest = self.model.moments.origin
        return np.asarray(self.model.grid.offsets(X) + (self.model.grid.centres - centres) - rest)

    def _without(self, Z: Array, T: Array, w: Array, *, together: bool) -> _Without:
        """The closed form for rows Z about the mean with targets T and weights w."""
        missed = T - product(Z, self.model.weights) - self.model.moments.means[1]
        if not together:
            h = w * leverages(self.model, Z)
            free = np.maximum(1 - h, _EPS)
            return _Without(missed / free[:, None], h, free, 1 - h)
        root, H = np.sqrt(w)[:, None], self._root_leverages(Z, w)
        missed, free, least = _solved_without(H, root * missed)
        return _Without(missed / root, np.einsum("ij,ij->i", H, H), free, np.array([least]))

    def _root_leverages(self, Z: Array, w: Array) -> Array:
        """R (n, D + 1) with H = RR' for rows Z about the mean with weights w."""
        root = np.sqrt(w)[:, None]
        H = product(root * Z, self.model.root)
        return np.hstack([H, self.model.intercept * root / np.sqrt(self.model.moments.weight)])

    def _spread_without(self, T: Array, w: Array, *, together: bool) -> Array:
        """The variance of the other rows' targets, (n, M) or (1, M); one if they are all equal."""
        m, apart = self.model.moments, T - self.model.moments.means[1]
        share, y, squares = (
            _summed(part, together=together)
            for part in (w, w[:, None] * apart, w[:, None] * apart**2)
        )
        others = np.maximum(m.weight - share, _EPS)[:, None]
        # The mean of the others is y / others away from the mean of all.
        moved = self.model.intercept * y**2 / others
        spread = m.squares - squares - moved
        equal = spread <= self._roundings * (m.squares + squares + moved)
        return np.where(equal, 1.0, spread / others)

    def _block(self, X: Any, weights: Array) -> Callable[[Array], Array]:
        """What the null space needs of learnt rows left out together, by their numbers."""
        noise = self.model.noise

        def block(g: Array) -> Array:
            H = self._root_leverages(self._as_learnt(X[g]), weights[g])
            return (
                _solved_without(H, np.diag(np.sqrt(noise / weights[g])))[0]
                * np.sqrt(noise / weights[g])[:, None]
            )

        return block

    # -- what is rounding --------------------------------------------------------------------

    @property
    def _roundings(self) -> float:
        """The rounding of a sum over the features: see `bound`."""
        return float(2 * np.sqrt(len(self.model.grid) + 1) * _EPS)

    @derived
    def _size(self) -> Array:
        """The square root of diag A, (D,)."""
        return np.sqrt(np.diagonal(self.model.moments.scatter) + self.model.penalty)

    @derived
    def _condition(self) -> float:
        """|D^1/2 A^-1 D^1/2|, D = diag A, by its trace; the units of the features cancel."""
        return float(self._size**2 @ np.einsum("ij,ij->i", self.model.root, self.model.root))

    @derived
    def _shift(self) -> float:
        """|D^-1/2 m|, D = diag A, for the mean m of the features about the centres of the grid."""
        return float(np.linalg.norm(self.model.moments.origin[1] / self._size))

    def _blurred(self, h: Array, share: Array, *, together: bool) -> Array:
        """The bound of the rounding of leverages h (n,), or for a group of the matrix H, (1,).

        The factor is that of some A + E with |x'Ey| about eps |D^1/2 x| |D^1/2 y|, D = diag A (see
        `bound`). E moves h by z'A^-1 E A^-1 z, where |D^1/2 A^-1 z|^2 is at most
        |D^1/2 A^-1 D^1/2| h. Besides, z = x - m has the rounding of m, which moves h by twice
        m'A^-1 z times eps. The norm of H is at most one.
        """
        moved = np.sqrt(self._condition * (1.0 if together else h))
        return np.asarray(self._roundings * moved * (moved + 2 * np.sqrt(share) * self._shift))

    def _rounding(
        self, T: Array, w: Array, out: _Without, blurred: Array, *, together: bool
    ) -> Array:
        """The bound of the rounding of what is predicted for rows left out, (n, M).

        E and the rounding of m, as in `_blurred`, move the score by z'A^-1 E W and eps m'W. So what
        was missed moves by (I - H)^-1 times that and the rounding of H times what was missed. One
        over the least eigenvalue of I - H bounds the norm of the inverse.
        """
        root = np.sqrt(w)[:, None]
        size = np.linalg.norm(self._size * self.model.weights.T, axis=1)
        targets = abs(T) + abs(self.model.moments.means[1])
        moved = root * (targets + self._shift * size)
        moved += np.sqrt(self._condition * out.h)[:, None] * size
        moved, missed = self._roundings * moved, root * abs(out.missed)
        if together:
            moved, missed = (np.linalg.norm(part, axis=0) for part in (moved, missed))
        gain = 1 / np.maximum(out.least - blurred, _EPS)[:, None]
        gained = gain * (moved + blurred[:, None] * missed) / root
        return np.asarray(self._roundings * (abs(T) + abs(out.missed)) + gained)

    def nearest(self, X: Any, codes: Array, weights: Array, groups: Array | None = None) -> Array:
        """`LinearModel.nearest` for learnt rows of classes `codes` (n,), by the other rows, (n,).

        The null space needs of a row w (e - m) / sigma^2 and sigma^2 / (w (1 - h)): see
        `scores`. Of a group, in the place of 1 / (1 - h), it needs the inverse of I - H.

        groups : (n,), rows of a group are left out together
        """
        W, share, space = self.model.indicators
        counts = np.array([self.model.sums.groups[one].rows for one in self.model.names.tolist()])

        parts = map(self._as_learnt, blocks(X, _ROWS))
        found = [(product(Z, W) + share, leverages(self.model, Z)) for Z in parts]
        m, leverage = (np.concatenate(one) for one in zip(*found, strict=True))
        a, h = -m, weights * leverage
        a[np.arange(len(a)), codes] += 1
        if groups is not None:
            E = np.eye(len(counts))[codes]
            return space.left_out_groups(
                E, a * weights[:, None] / self.model.noise, counts, groups, self._block(X, weights)
            )[1]
        variance = self.model.noise / (weights * np.maximum(1 - h, _EPS))
        a *= weights[:, None] / self.model.noise
        return space.left_out(Removed(a, codes, variance, counts[codes] == 1))


def _summed(part: Array, *, together: bool) -> Array:
    """The rows of a part (n, ...), or their sum, (1, ...), if they are left out together."""
    return np.asarray(part.sum(axis=0, keepdims=True)) if together else part


def _solved_without(H: Array, R: Array) -> tuple[Array, Array, float]:
    """(I - HH')^-1 R, (k, M), one over the diagonal of that inverse, (k,); H (k, r).

    By the smaller of two matrices: (I - HH')^-1 = I + H (I - H'H)^-1 H'. Its least eigenvalue comes
    third. Those below rounding are set to it, as for a single row.
    """
    k, r = H.shape
    values, V = eigh(np.eye(min(k, r)) - (H @ H.T if k <= r else H.T @ H))
    inverse = (V / np.maximum(values, _EPS)) @ V.T
    if k <= r:
        return inverse @ R, 1 / np.diagonal(inverse), float(values[0])
    B = inverse @ H.T
    return R + H @ (B @ R), 1 / (1 + np.einsum("ij,ji->i", H, B)), float(values[0])


def _parts(n: int, groups: Array | None) -> Iterator[Any]:
    """The rows to leave out at a time: blocks of them, or each group."""
    if groups is None:
        yield from (slice(a, a + _ROWS) for a in range(0, n, _ROWS))
        return
    yield from members(groups)
