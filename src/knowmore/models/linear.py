"""The Gaussian process with a dot-product kernel, in its weight space, on exact sums.

With rows x, targets t and weights w, all sums over the examples (Rasmussen and Williams, 2.1.2):

    A = sum w (x - m) (x - m)' + sigma^2 I,    W = A^-1 sum w (x - m) t'
    mu_* = W' (x - m) + tbar

m and tbar are the weighted means if there is an intercept, which has a flat prior and is then
solved for exactly; otherwise zero. Mean and variance are those of the kernel model with kernel x'y.
It holds no rows. What it knows of them are whole numbers (`Sums`), so it is the same, to the bit,
whatever rows came and went. Those who want to leave rows out give them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np

from knowmore._base import (
    Array,
    Frozen,
    bounded,
    check_free,
    derived,
    enough_memory,
    first_not_finite,
)
from knowmore.errors import InvalidInput, NoExamples, NotPositiveDefinite
from knowmore.linalg import (
    FEWER_COLUMNS,
    LOG_UNIT,
    MANY_BYTES,
    NO_ROWS,
    UNIT,
    WORDS,
    Cholesky,
    Factor,
    Grid,
    Sums,
    blocks,
    eigh,
    product,
    side_by_side,
)
from knowmore.models.loo import LooMoments, LooScores, silenced, tied
from knowmore.models.null_space import NullSpace, Removed
from knowmore.models.probabilities import best_temperature, expected_trial, log_marginal_likelihood
from knowmore.models.unrelated import FEW

# The noises to choose from, as a multiple of the mean of the eigenvalues: twenty for each power of
# ten.
_NOISES: Final = 10.0 ** np.arange(2, -10, -0.05)
_EPS: Final = float(np.finfo(float).eps)
# An error of the fit below this part of the targets' squares is rounding.
_ROUNDINGS: Final = 1e4 * _EPS
# Rows that are asked about at a time.
_ROWS: Final = 2048


class _Moments(NamedTuple):
    """Moments of the examples, in the units of the features and targets.

    weight : the sum of the weights, N
    means : of the features, (D,), and of the targets, (M,); zero without an intercept
    origin : the mean of the features in two parts, (2, D): the centres of the grid, and the rest.
        So columns far from zero lose no digits.
    scatter : (D, D); cross : features with targets, (D, M); squares : of the targets, (M,). All are
    about the means.
    """

    weight: float
    means: tuple[Array, Array]
    origin: Array
    scatter: Array
    cross: Array
    squares: Array


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
@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Frozen):
    """A frozen model of the rows that were summed; M columns of targets, D features.

    sums : of the rows, in groups by class; a regressor's rows continue with the targets
    names : the columns of scores, (M,), in ascending order
    wanted_noise : sigma^2, or "evidence" or "loo": see `noise`
    intercept : whether each column has an offset
    classes : whether the columns are classes, coded by 1 and -1; otherwise values
    normalised : whether variances are relative to those of the targets
    flat : whether a target is a number, not a row of M of them

    >>> X, y = np.array([[0.0], [1.0], [1.5]]), np.array(["no", "yes", "yes"])
    >>> model = LinearModel.of_classes(Sums.of(Grid.covering(X), X, y), 0.1)
    >>> model.mean(X).round(2)
    array([[ 0.76, -0.76],
           [-0.55,  0.55],
           [-1.21,  1.21]])
    """

    keeps_rows: ClassVar[bool] = False
    has_gram: ClassVar[bool] = False
    one_covariance: ClassVar[bool] = True
    best_novelty: ClassVar[str] = "mahalanobis"

    sums: Sums
    names: Array
    wanted_noise: float | str
    intercept: bool = True
    classes: bool = True
    normalised: bool = False
    flat: bool = False

    @classmethod
    def of_classes(cls, sums: Sums, noise: float | str, *, intercept: bool = True) -> LinearModel:
        """A classifier: a column of scores for each group of the sums."""
        return cls(sums, np.array(sorted(sums.groups)), noise, intercept)  # type: ignore[type-var]

    def __repr__(self) -> str:
        return f"LinearModel({self.sums.rows} rows, {len(self.names)} columns, {self.sums.grid!r})"

    def of(self, sums: Sums) -> LinearModel:
        """The model of other sums with the same settings."""
        if self.classes and sums.groups.keys() != self.sums.groups.keys():
            return self.of_classes(sums, self.wanted_noise, intercept=self.intercept)
        return replace(self, sums=sums)

    @property
    def count(self) -> int:
        """The number of rows learnt."""
        return self.sums.rows

    def check_room(self, more: Sums | None = None) -> None:
        """Raise NotEnoughMemory if the rows, and more, cannot be learnt and then be asked about."""
        length = max(self.sums.length, 0 if more is None else more.length)
        check_room(len(self.grid), len(self.sums.grid), length, self.sums.nbytes)

    # -- what was learnt -----------------------------------------------------------------------

    @property
    def grid(self) -> Grid:
        """The grid of the features."""
        grid = self.sums.grid
        return grid if self.classes else grid[: len(grid) - len(self.names)]

    @derived
    def moments(self) -> _Moments:
        """Means, scatter and cross sums, from whole numbers, rounded once."""
        if not self.sums.rows:
            raise NoExamples("The model holds no rows: all were forgotten. Learn some first.")
        with _room():
            return self._moments()

    def _moments(self) -> _Moments:
        sums, centred = self.sums, self.intercept
        N, D = sums.weight / UNIT, len(self.grid)
        origin = centred * np.array([sums.grid.centres, sums.offset()])
        S, mean = sums.scatter(centred=centred), origin.sum(axis=0)
        if not self.classes:
            squares = np.maximum(np.diagonal(S)[D:], 0)
            means = mean[:D], mean[D:]
            return _Moments(N, means, origin[:, :D], S[:D, :D], S[:D, D:], squares)
        cross = 2 * sums.cross(self.names.tolist(), centred=centred).T
        share = sums.weights(self.names.tolist()) / sums.weight
        if centred:
            squares = 4 * N * share * (1 - share)
            return _Moments(N, (mean, 2 * share - 1), origin, S, cross, squares)
        cross -= N * sums.mean()[:, None]
        means = mean, np.zeros(len(share))
        return _Moments(N, means, origin, S, cross, np.full(len(share), N))

    @derived
    def scale(self) -> Array:
        """The standard deviation of each target, (M,), if normalised; otherwise one."""
        variance = self.moments.squares / self.moments.weight
        return np.sqrt(np.where((variance > 0) & self.normalised, variance, 1.0))

    @derived
    def noise(self) -> float:
        """sigma^2. What is chosen is chosen by the sums alone, from one eigendecomposition.

        With the eigenvalues l of the scatter, the part q of the targets along each, the part q_0
        along none, and N rows (one less with an intercept), let f = sigma^2 / (l + sigma^2).

        "loo" has the smallest generalised cross-validation error (Golub, Heath and Wahba),

            (sum q f^2 + q_0) / (sum f + N - r)^2,

        the squared leave-one-out error if all rows had the same leverage. Sums do not know those of
        single rows. "evidence" has the largest marginal likelihood if the prior of the weights had
        the amplitude that suits it best: N log t'K~^-1 t + log |K~| is least. For an amplitude of
        one, more features than rows always speak for no noise.

        Both are misled in two ways. Where there are as many features as rows, what is along no
        eigenvalue is due to rows that occur twice: each is predicted by its twin, as if there were
        no noise. So they count once. And rows that are nearly the same, with the same label, speak
        for no noise, too. So the mean leverage of rows of classes is at most one half: a label
        counts no more for its own row than all others do.
        """
        if not isinstance(self.wanted_noise, str):
            return self.wanted_noise
        with _room():
            return self._chosen_noise()

    def _chosen_noise(self) -> float:
        m, N = self.moments, self.sums.rows - self.intercept
        values, V = eigh(m.scatter)
        if values[-1] <= 0:
            return 1.0
        D, total = len(values), float((m.squares / self.scale**2).sum())
        most = min(D, N)
        # The rank is at most N; eigenvalues of no more than rounding are zero.
        seen = np.flatnonzero(values > D * _EPS * values[-1])[-most:]
        values = values[seen]
        q = ((V[:, seen].T @ (m.cross / self.scale)) ** 2).sum(axis=1) / values
        others = N - len(values) if D < N else 0
        q_0 = total - float(q.sum())
        q_0 = q_0 if others and q_0 > _ROUNDINGS * total else 0.0
        noises = values.sum() / most * _NOISES
        if total <= 0:
            return float(noises[0])
        shifted = values + noises[:, None]
        f = noises[:, None] / shifted
        free, rows = f.sum(axis=1) + others, len(values) + others
        if self.wanted_noise == "evidence":
            fit = (f @ q + q_0) / noises
            loss = rows * np.log(fit) + np.log(shifted).sum(axis=1) + others * np.log(noises)
        else:
            loss = (f**2 @ q + q_0) / free**2
        if self.classes:
            loss[2 * free < rows] = np.inf
        return float(noises[loss.argmin()])

    @derived
    def _factor(self) -> tuple[Factor, float]:
        """The factor of A, and the jitter added, relative to the diagonal of the scatter."""
        S = self.moments.scatter
        diagonal = np.diagonal(S)
        # Rounding may leave a singular scatter less than nothing, if the noise is as small.
        for added in (0.0, 4 * len(S) * _EPS):
            # If it is positive definite; otherwise more is added.
            with suppress(NotPositiveDefinite), _room():
                A = S.copy()
                A.flat[:: len(A) + 1] += self.noise + added * diagonal
                return Cholesky().append(np.empty((0, len(A))), A), added
        raise InvalidInput(NO_ROWS)

    @property
    def added(self) -> float:
        """The jitter added to the variance of each feature, relative to it; usually zero."""
        return self._factor[1]

    @derived
    def weights(self) -> Array:
        """W, (D, M)."""
        return self._factor[0].solve(self.moments.cross)

    # -- asking ------------------------------------------------------------------------------

    def mean(self, X: Any) -> Array:
        """mu_* of rows X (m, D), (m, M): eq. (2.8) of Rasmussen and Williams."""
        return self._asked(X, lambda Z: product(Z, self.weights) + self.moments.means[1])

    def variance(self, X: Any) -> Array:
        """sigma_*^2 of rows X, noise included, (m,); (m, M) if the targets are normalised.

        sigma^2 (1 + 1/N + (x - m)' A^-1 (x - m)), the second term only with an intercept.
        """
        scale = self.scale**2 if self.normalised else None

        def of(Z: Array) -> Array:
            v = self.noise * (1 + self._leverages(Z))
            return v if scale is None else v[:, None] * scale

        return self._asked(X, of)

    def unrelated(self, X: Any) -> Array:
        """Which rows of X are zero in all columns that rows learnt have values in, (m,).

        Sums do not know whether such rows were learnt. In a table of few columns there are none.
        """
        centres, rest = self.moments.origin
        if len(centres) < FEW:
            return self._asked(X, lambda Z: np.zeros(len(Z), dtype=bool))
        used = (np.diagonal(self.moments.scatter) > 0) | (self.moments.means[0] != 0)
        # Zeros as `_asked` reads them.
        zeros = (0 - centres - rest)[used]
        return self._asked(X, lambda Z: (Z[:, used] == zeros).all(axis=1))

    @property
    def largest_variance(self) -> Array:
        """The variance of a row as large as all rows together, (), or (M,) if normalised.

        No row is larger; sums do not know the largest.
        """
        (mean, _), N = self.moments.means, self.moments.weight
        size = np.trace(self.moments.scatter) + N * mean @ mean
        largest = self.noise * (1 + self.intercept / N) + size
        return np.asarray(largest * self.scale**2 if self.normalised else largest)

    def leverage(self, X: Any) -> Array:
        """sigma_*^2 / sigma^2 - 1 of rows X, (m,), of targets as the model learns them."""
        return self._asked(X, self._leverages)

    def covariance(self, X: Any, Y: Any) -> Array:
        """The posterior covariance of rows X (m, D) and Y (k, D), without noise, (m, k).

        sigma^2 (1/N + (x - m)' A^-1 (y - m)), the first term only with an intercept; of targets as
        the model learns them, normalised if they are.
        """
        (centres, rest), N = self.moments.origin, self.moments.weight
        B = self._factor[0].solve((np.vstack([*blocks(Y)]) - centres - rest).T)
        return self._asked(X, lambda Z: self.noise * (product(Z, B) + self.intercept / N))

    def _asked(self, X: Any, answer: Any) -> Array:
        """The answers to all rows of X, from blocks of them about the mean."""
        centres, rest = self.moments.origin

        def answers() -> Iterator[Array]:
            for i, block in enumerate(blocks(X, _ROWS)):
                if (row := first_not_finite(block)) is not None:
                    raise InvalidInput(
                        f"Input X contains NaN or infinity, first in row {i * _ROWS + row}. Remove "
                        f"these rows, or fill in the values."
                    )
                yield answer(block - centres - rest)

        return bounded(lambda: np.concatenate([*answers()]))

    def _leverages(self, Z: Array) -> Array:
        """z' A^-1 z of rows Z (m, D) about the mean, and 1/N with an intercept, (m,)."""
        H = product(Z, self.root)
        return np.asarray(np.einsum("ij,ij->i", H, H) + self.intercept / self.moments.weight)

    @derived
    def root(self) -> Array:
        """R (D, D) with A^-1 = R R'. A product with it is faster than a solve, which has steps."""
        with _room():
            return np.ascontiguousarray(self._factor[0].half_solve(np.eye(len(self.grid))).T)

    # -- classes -----------------------------------------------------------------------------

    @derived
    def _indicators(self) -> tuple[Array, Array, Array]:
        """The weights (D, M) and offsets (M,) of scores of classes coded by 1 and 0, and G (M, M).

        G of `null_space` is (N - C' A^-1 C) / sigma^2 for the weights N of the classes on its
        diagonal, and their sums C (D, M). With an intercept, both are about the mean of all.
        """
        sums, centred = self.sums, self.intercept
        keys = self.names.tolist()
        C, n = sums.cross(keys, centred=centred).T, sums.weights(keys) / UNIT
        W, share = self._factor[0].solve(C), centred * n / n.sum()
        G = np.diag(n) - C.T @ W - np.outer(n, share)
        # A difference: what rounding leaves of it is not below zero by more than this.
        G += np.diag(4 * len(self.grid) * _EPS * n)
        if centred:
            # All scores add up to one, so nothing that is asked has a part along this direction.
            G += n.mean()
        return W, share, (G + G.T) / (2 * self.noise)

    @derived
    def null_space(self) -> NullSpace:
        """The null space of the classes: see `NullSpace`."""
        return NullSpace(self._indicators[2])

    def nearest(self, X: Any) -> Array:
        """The distance of rows X to the nearest class in the null space, (m,)."""
        W, share, _ = self._indicators
        return self.null_space.nearest(self._asked(X, lambda Z: product(Z, W) + share))

    def nearest_left_out(self, X: Any, codes: Array, weights: Array) -> Array:
        """`nearest` for learnt rows of classes `codes` (n,), each by the other rows, (n,).

        The null space needs of a row w (e - m) / sigma^2 and sigma^2 / (w (1 - h)): see
        `loo`.
        """
        W, share, _ = self._indicators
        counts = np.array([self.sums.groups[one].rows for one in self.names.tolist()])

        parts = map(self._as_learnt, blocks(X, _ROWS))
        found = [(product(Z, W) + share, self._leverages(Z)) for Z in parts]
        m, leverage = (np.concatenate(one) for one in zip(*found, strict=True))
        a, h = -m, weights * leverage
        a[np.arange(len(a)), codes] += 1
        variance = self.noise / (weights * np.maximum(1 - h, _EPS))
        a *= weights[:, None] / self.noise
        return self.null_space.left_out(Removed(a, codes, variance, counts[codes] == 1))

    # -- how well it fits --------------------------------------------------------------------

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the columns, normalised if they are.

        With an intercept, that of what is left of T without it (restricted likelihood): a flat
        prior has no density.
        """
        m, n, M = self.moments, self.sums.rows, len(self.names)
        fit = (m.squares - np.einsum("ij,ij->j", m.cross, self.weights)) / self.scale**2
        logdet = self._factor[0].logdet() - self.sums.log_weights / LOG_UNIT
        logdet += (n - self.intercept - len(m.scatter)) * log(self.noise)
        logdet += self.intercept * log(m.weight)
        fits = float(fit.sum()) / self.noise
        value = float(log_marginal_likelihood(fits, logdet, n - self.intercept, M))
        if not np.isfinite(value):
            raise InvalidInput(
                f"The likelihood is beyond the range of numbers at noise={self.noise:g}. Raise the "
                f"noise, or scale the targets."
            )
        return value

    @derived
    def temperature(self) -> float:
        """tau of the probabilities Phi(mu^(c) / sigma)^(1 / tau), from the sums alone.

        One if fewer than two classes have several rows.
        """
        n = self.sums.rows
        counts = np.array(
            [self.sums.groups[name].rows for name in self.names.tolist() if self.classes]
        )
        if (counts > 1).sum() < 2:
            return 1.0
        order = self._by_means()
        names, counts = self.names[order].tolist(), counts[order]
        m, W = self.moments, self.weights[:, order]
        N = self.sums.weights(names) / UNIT
        # The scores of the mean of each class, about the scores of the mean of all rows.
        C = product(self.sums.cross(names, centred=self.intercept), W) / N[:, None]
        scatter = (product(W.T, product(m.scatter, W)) - (C.T * N) @ C) / (n - len(names))
        taken = len(m.scatter) - self.noise * float(np.einsum("ij,ij->", self.root, self.root))
        h = min((taken + self.intercept) / n, 1 - _EPS)
        trial = expected_trial(C + m.means[1][order], scatter, counts, h, self.noise)
        return best_temperature(
            trial.logs, trial.codes, np.full(len(trial.codes), n / len(trial.codes))
        )

    def _by_means(self) -> list[int]:
        """The columns of the classes in the order of their means, so that names do not matter.

        Draws given out in the order of the names would make the names count. Classes with the
        same mean, weight and number of rows are the same to the model.
        """
        sums, keys = self.sums, self.names.tolist()
        means = sums.cross(keys, centred=False) / sums.weights(keys)[:, None]

        def place(column: int) -> tuple[list[float], int, int]:
            rows, weight, _ = sums.groups[keys[column]]
            return means[column].tolist(), weight, rows

        return sorted(range(len(keys)), key=place)

    def residual(self) -> float:
        """How far W is from the solution of A W = C: |C - A W| / (|A| |W| + |C|)."""
        m, W, norm = self.moments, self.weights, np.linalg.norm
        size = norm(m.scatter) + self.noise
        error = norm(m.cross - m.scatter @ W - self.noise * W)
        return float(error / max(size * norm(W) + norm(m.cross), np.finfo(float).tiny))

    # -- leaving out -------------------------------------------------------------------------

    def loo(self, X: Any, T: Array, weights: Array, groups: Array | None = None) -> LooScores:
        """Predictions for rows that were learnt, X (n, D), by the model without them.

        T (n, M) are their targets, weights (n,). With h = w (z'A^-1 z + 1/N) and the score s,

            s_-i = t - (t - s) / (1 - h),    sigma_-i^2 = sigma^2 / (w (1 - h)).

        groups : (n,), rows of a group are left out together: the same with the group's block of the
            matrix that has h on its diagonal
        """
        # Computed first: threads would compute them twice.
        _ = self.weights, self.root, self._condition, self._shift
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
                    f"at noise={self.noise:g}. Use less noise, or scale the targets."
                )
        return LooScores(*scores)

    def _left_out(self, X: Any, T: Array, w: Array, *, together: bool) -> LooScores:
        """The rows of X, each left out alone, or all together."""
        left = self.loo_moments(X, T, w, together=together)
        scores, silent = silenced(left)
        # The prior is a mean of targets, and as precise as one.
        error = np.where(silent[:, None], self._roundings * abs(left.prior), left.error)
        variance = left.variance
        if self.normalised:
            variance = variance[:, None] * self._spread_without(T, w, together=together)
        return LooScores(tied(scores, error) if self.classes else scores, variance, silent)

    def loo_moments(self, X: Any, T: Array, w: Array, *, together: bool) -> LooMoments:
        """The closed form for the rows of X, each left out alone, or all together.

        Where 1 - h is no more than rounding, the closed form knows nothing: the error is infinite,
        and the variance is the prior's.
        """
        m = self.moments
        share = _summed(w, together=together)
        if self.intercept and (share >= m.weight).any():
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
        prior = np.broadcast_to(m.means[1] - self.intercept * y / others, T.shape)
        away = Z + self.intercept * z / others
        far = self.noise * (1 / w + self.intercept / others[:, 0])
        far = far + np.einsum("ij,ij->i", away, away)
        variance = np.where(lost, far, self.noise / (w * out.free))
        error = self._rounding(T, w, out, blurred, together=together)
        return LooMoments(T - out.missed, variance, np.where(lost[:, None], np.inf, error), prior)

    def _as_learnt(self, X: Any) -> Array:
        """Rows X (n, D) as they were learnt, on the grid, about the mean."""
        centres, rest = self.moments.origin
        return np.asarray(self.grid.offsets(X) + (self.grid.centres - centres) - rest)

    def _without(self, Z: Array, T: Array, w: Array, *, together: bool) -> _Without:
        """The closed form for rows Z about the mean with targets T and weights w."""
        missed = T - product(Z, self.weights) - self.moments.means[1]
        if not together:
            h = w * self._leverages(Z)
            free = np.maximum(1 - h, _EPS)
            return _Without(missed / free[:, None], h, free, 1 - h)
        root = np.sqrt(w)[:, None]
        H = product(root * Z, self.root)
        H = np.hstack([H, self.intercept * root / np.sqrt(self.moments.weight)])
        missed, free, least = _solved_without(H, root * missed)
        return _Without(missed / root, np.einsum("ij,ij->i", H, H), free, np.array([least]))

    def _spread_without(self, T: Array, w: Array, *, together: bool) -> Array:
        """The variance of the other rows' targets, (n, M) or (1, M); one if they are all equal."""
        m, apart = self.moments, T - self.moments.means[1]
        share, y, squares = (
            _summed(part, together=together)
            for part in (w, w[:, None] * apart, w[:, None] * apart**2)
        )
        others = np.maximum(m.weight - share, _EPS)[:, None]
        # The mean of the others is y / others away from the mean of all.
        moved = self.intercept * y**2 / others
        spread = m.squares - squares - moved
        equal = spread <= self._roundings * (m.squares + squares + moved)
        return np.where(equal, 1.0, spread / others)

    # -- what is rounding --------------------------------------------------------------------

    @property
    def _roundings(self) -> float:
        """The rounding of a sum over the features: see `bound`."""
        return float(2 * np.sqrt(len(self.grid) + 1) * _EPS)

    @derived
    def _size(self) -> Array:
        """The square root of diag A, (D,)."""
        return np.sqrt(np.diagonal(self.moments.scatter) + self.noise)

    @derived
    def _condition(self) -> float:
        """|D^1/2 A^-1 D^1/2|, D = diag A, by its trace; the units of the features cancel."""
        return float(self._size**2 @ np.einsum("ij,ij->i", self.root, self.root))

    @derived
    def _shift(self) -> float:
        """|D^-1/2 m|, D = diag A, for the mean m of the features about the centres of the grid."""
        return float(np.linalg.norm(self.moments.origin[1] / self._size))

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
        size = np.linalg.norm(self._size * self.weights.T, axis=1)
        targets = abs(T) + abs(self.moments.means[1])
        moved = root * (targets + self._shift * size)
        moved += np.sqrt(self._condition * out.h)[:, None] * size
        moved, missed = self._roundings * moved, root * abs(out.missed)
        if together:
            moved, missed = (np.linalg.norm(part, axis=0) for part in (moved, missed))
        gain = 1 / np.maximum(out.least - blurred, _EPS)[:, None]
        gained = gain * (moved + blurred[:, None] * missed) / root
        return np.asarray(self._roundings * (abs(T) + abs(out.missed)) + gained)


def check_room(D: int, P: int, length: int = WORDS, held: int = 0) -> None:
    """Raise NotEnoughMemory if there is none for a model of D features, in P columns of sums.

    What rows need may be taken only when the model is asked, and must be there then: sums of
    products in words of 8 P^2 bytes, those of the next edit beside them, and a scatter, its factor
    and the inverse of that, 8 D^2 bytes each.

    length : the number of words
    held : the bytes of the words that there are
    """
    needed = 8 * ((2 * length + 1) * P**2 + 3 * D**2) - held
    if needed > MANY_BYTES:
        what = f"A linear model of {D:,} columns holds the sums of D^2 products: with its work"
        check_free(needed, f"{what} space", FEWER_COLUMNS)


def _room() -> AbstractContextManager[None]:
    """Within it, a lack of memory is reported in words."""
    return enough_memory("solve for the weights of so many columns", FEWER_COLUMNS)


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
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.append(True, groups[order][1:] != groups[order][:-1]))
    yield from np.split(order, starts[1:])
