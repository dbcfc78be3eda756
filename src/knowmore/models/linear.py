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
from typing import Any, Final, NamedTuple, final

import numpy as np

from knowmore.arrays import Array, Frozen, bounded, derived, enough_memory, first_not_finite
from knowmore.errors import InvalidInput, NoExamples, NotPositiveDefinite
from knowmore.linalg import Cholesky, Factor, Grid, Sums
from knowmore.linalg.grid import LAYOUTS, blocks
from knowmore.linalg.products import eigh, product
from knowmore.linalg.sums import FEWER_COLUMNS, LOG_UNIT, MANY_BYTES, NO_ROWS, UNIT, width
from knowmore.linalg.tasks import side_by_side
from knowmore.memory import check_free
from knowmore.models.expected import expected_trial
from knowmore.models.likelihood import log_marginal_likelihood
from knowmore.models.loo import LooMoments, LooScores, silenced, tied
from knowmore.models.null_space import NullSpace, Removed
from knowmore.models.probabilities import best_temperature

# The noises to choose from, as a multiple of the mean of the eigenvalues: twenty for each power of
# ten.
_NOISES: Final = 10.0 ** np.arange(2, -10, -0.05)
_EPS: Final = float(np.finfo(float).eps)
# An error of the fit below this part of the targets' squares is rounding.
_ROUNDINGS: Final = 1e4 * _EPS
# Rows that are asked about at a time.
_ROWS: Final = 2048


class _Moments(NamedTuple):
    """What the model needs of its examples, in the units of the features and targets.

    weight : the sum of the weights, N
    means : of the features, (D,), and of the targets, (M,); zero without an intercept
    scatter : (D, D); cross : features with targets, (D, M); squares : of the targets, (M,). All are
    about the means.
    """

    weight: float
    means: tuple[Array, Array]
    scatter: Array
    cross: Array
    squares: Array


@final
@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Frozen):
    """A frozen model of the rows that were summed; M columns of targets, D features.

    sums : of the rows, in groups by class; a regressor's rows continue with the digits of targets
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

    def check_room(self) -> None:
        """Raise NotEnoughMemory if no more rows can be learnt, and then be asked about."""
        check_room(len(self.grid), width(self.sums.grid), self.sums.nbytes)

    # -- what was learnt -----------------------------------------------------------------------

    @property
    def grid(self) -> Grid:
        """The grid of the features."""
        grid = self.sums.grid
        if self.classes:
            return grid
        features = len(grid) - len(self.names) * LAYOUTS[grid.bits].digits
        return Grid(grid.exponents[:features], grid.bits)

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
        mean = sums.mean() if centred else np.zeros(len(sums.grid))
        S = sums.scatter(centred=centred)
        if self.classes:
            cross = 2 * sums.cross(self.names.tolist(), centred=centred).T
            share = sums.weights(self.names.tolist()) / sums.weight
            if centred:
                return _Moments(N, (mean, 2 * share - 1), S, cross, 4 * N * share * (1 - share))
            cross -= N * sums.mean()[:, None]
            return _Moments(N, (mean, np.zeros(len(share))), S, cross, np.full(len(share), N))
        means = mean[:D], self.whole(mean[D:])
        cross = self.whole(S[:D, D:])
        squares = np.diagonal(self.whole(self.whole(S[D:, D:]).T))
        return _Moments(N, means, S[:D, :D], cross, np.maximum(squares, 0))

    def whole(self, digits: Array) -> Array:
        """Columns of digits, (..., M k), added up to those of targets, (..., M)."""
        return np.asarray(digits.reshape(*digits.shape[:-1], len(self.names), -1).sum(axis=-1))

    @derived
    def scale(self) -> Array:
        """The standard deviation of each target, (M,), if normalised; otherwise one."""
        variance = self.moments.squares / self.moments.weight
        return np.sqrt(np.where((variance > 0) & self.normalised, variance, 1.0))

    @derived
    def noise(self) -> float:
        """sigma^2. What is chosen is chosen by the sums alone, from one eigendecomposition.

        "evidence" has the largest marginal likelihood. "loo" has the smallest generalised
        cross-validation error (Golub, Heath and Wahba): the squared leave-one-out error if all rows
        had the same leverage, which single rows have not, but sums do not know these.
        """
        if not isinstance(self.wanted_noise, str):
            return self.wanted_noise
        with _room():
            return self._chosen_noise()

    def _chosen_noise(self) -> float:
        m, n = self.moments, self.sums.rows
        values, V = eigh(m.scatter)
        values = np.maximum(values, 0)
        if values[-1] <= 0:
            return 1.0
        p = ((V.T @ (m.cross / self.scale)) ** 2).sum(axis=1)
        total, columns = float((m.squares / self.scale**2).sum()), len(self.names)
        noises = values.mean() * _NOISES
        shifted = values + noises[:, None]
        fit = total - (p / shifted).sum(axis=1)
        if self.wanted_noise == "evidence":
            logdet = np.log(shifted).sum(axis=1) + (n - self.intercept - len(values)) * np.log(
                noises
            )
            loss = -log_marginal_likelihood(fit / noises, logdet, 0, columns)
        else:
            left = fit - noises * (p / shifted**2).sum(axis=1)
            free = n - self.intercept - (values / shifted).sum(axis=1)
            loss = left / np.maximum(free, _EPS * n) ** 2
            # With more features than rows a small noise leaves nothing but rounding to judge by.
            loss[left < _ROUNDINGS * total] = np.inf
        return float(noises[loss.argmin()])

    @derived
    def _factor(self) -> tuple[Factor, float]:
        """That of A, and what had to be added to its diagonal, relative to that of the scatter."""
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
        """What had to be added to the variance of each feature, relative to it; zero if nothing."""
        return self._factor[1]

    @derived
    def weights(self) -> Array:
        """W, (D, M)."""
        return self._factor[0].solve(self.moments.cross)

    # -- asking ------------------------------------------------------------------------------

    def mean(self, X: Any, side: None = None) -> Array:
        """mu_* of rows X (m, D), (m, M): eq. (2.8) of Rasmussen and Williams.

        There is no side information.
        """
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

    def leverage(self, X: Any) -> Array:
        """sigma_*^2 / sigma^2 - 1 of rows X, (m,), of targets as the model learns them."""
        return self._asked(X, self._leverages)

    def covariance(self, X: Any, Y: Any) -> Array:
        """The posterior covariance of rows X (m, D) and Y (k, D), without noise, (m, k).

        sigma^2 (1/N + (x - m)' A^-1 (y - m)), the first term only with an intercept; of targets as
        the model learns them, normalised if they are.
        """
        means, N = self.moments.means, self.moments.weight
        B = self._factor[0].solve((np.vstack([*blocks(Y)]) - means[0]).T)
        return self._asked(X, lambda Z: self.noise * (product(Z, B) + self.intercept / N))

    def _asked(self, X: Any, answer: Any) -> Array:
        """The answers to all rows of X, from blocks of them about the mean."""
        mean, _ = self.moments.means

        def answers() -> Iterator[Array]:
            for i, block in enumerate(blocks(X, _ROWS)):
                if (row := first_not_finite(block)) is not None:
                    raise InvalidInput(
                        f"Input X contains NaN or infinity, first in row {i * _ROWS + row}. Remove "
                        f"these rows, or fill in the values."
                    )
                yield answer(block - mean)

        return bounded(lambda: np.concatenate([*answers()]))

    def _leverages(self, Z: Array) -> Array:
        """z' A^-1 z of rows Z (m, D) about the mean, and 1/N with an intercept, (m,)."""
        H = product(Z, self._root)
        return np.asarray(np.einsum("ij,ij->i", H, H) + self.intercept / self.moments.weight)

    @derived
    def _root(self) -> Array:
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
        """Where the classes are: see `null_space`."""
        return NullSpace(self._indicators[2])

    def nearest(self, X: Any) -> Array:
        """The distance of rows X to the nearest class in the null space, (m,)."""
        W, share, _ = self._indicators
        return self.null_space.nearest(self._asked(X, lambda Z: product(Z, W) + share))

    def nearest_left_out(self, X: Any, codes: Array, weights: Array) -> Array:
        """The same for rows that were learnt, (n,), of classes `codes` (n,), by the others.

        What `null_space` needs of a row is w (e - m) / sigma^2 and sigma^2 / (w (1 - h)): see
        `loo`.
        """
        W, share, _ = self._indicators
        counts = np.array([self.sums.groups[one].rows for one in self.names.tolist()])

        mean = self.moments.means[0]
        parts = (self.grid.rounded(block) - mean for block in blocks(X, _ROWS))
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
        names, n = self.names.tolist(), self.sums.rows
        counts = np.array([self.sums.groups[name].rows for name in names if self.classes])
        if (counts > 1).sum() < 2:
            return 1.0
        m, W = self.moments, self.weights
        N = self.sums.weights(names) / UNIT
        # Of each class the scores of its mean, about those of the mean of all.
        C = product(self.sums.cross(names, centred=self.intercept), W) / N[:, None]
        scatter = (product(W.T, product(m.scatter, W)) - (C.T * N) @ C) / (n - len(names))
        taken = len(m.scatter) - self.noise * float(np.einsum("ij,ij->", self._root, self._root))
        h = min((taken + self.intercept) / n, 1 - _EPS)
        trial = expected_trial(C + m.means[1], scatter, counts, h, self.noise)
        return best_temperature(
            trial.logs, trial.codes, np.full(len(trial.codes), n / len(trial.codes))
        )

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
        _ = self.weights, self._root, self._condition
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
        m, noise, root = self.moments, self.noise, np.sqrt(w)[:, None]
        share = np.full(len(w), w.sum()) if together else w
        if self.intercept and (share >= m.weight).any():
            raise InvalidInput(
                "Leaving all rows out at once leaves none to compute an intercept from. Learn more "
                "rows, or use smaller groups or intercept=False."
            )
        Z = self.grid.rounded(X) - m.means[0]
        missed = T - product(Z, self.weights) - m.means[1]
        if together:
            H = product(root * Z, self._root)
            H = np.hstack([H, self.intercept * root / np.sqrt(m.weight)])
            h = np.einsum("ij,ij->i", H, H)
            missed, free, least = _without(H, root * missed)
            missed, gain = missed / root, np.full(len(h), 1 / max(least, _EPS))
        else:
            h = w * self._leverages(Z)
            least, free = 1 - h.max(), np.maximum(1 - h, _EPS)
            missed, gain = missed / free[:, None], 1 / free
        # Below zero by no more than rounding, if the rows were learnt.
        if least < -4 * len(m.scatter) * _EPS * self._condition:
            raise InvalidInput(
                "Some of these rows were not learnt, so they cannot be left out. Give rows that "
                "the model holds, with the labels or targets and weights they were learnt with."
            )
        others = np.maximum(m.weight - share, _EPS)[:, None]
        variance = noise / (w * free)
        error = self._rounding(T, missed, h[:, None], gain[:, None])
        sums = m.weight * m.means[1] - (w[:, None] * T if not together else w @ T)
        prior = self.intercept * sums / others
        left_out = LooMoments(T - missed, variance, error, prior)
        scores, silent = silenced(left_out)
        if self.normalised:
            apart = T - m.means[1]
            first, second = w[:, None] * apart, w[:, None] * apart**2
            if together:
                first, second = first.sum(axis=0), second.sum(axis=0)
            # The mean of the rest is first / others away.
            spread = m.squares - second - self.intercept * first**2 / others
            rest = np.where(spread > 0, spread / others, 1.0)
            variance = variance[:, None] * rest
        return LooScores(tied(scores, error) if self.classes else scores, variance, silent)

    def _rounding(self, T: Array, missed: Array, h: Array, gain: Array) -> Array:
        """The bound of the rounding of what is predicted for rows left out, (n, M).

        The factor is that of some A + E with |x'Ey| about eps |D^1/2 x| |D^1/2 y|, D = diag A (see
        `bound`). That moves the score by z'A^-1 E W and h by z'A^-1 E A^-1 z, where
        |D^1/2 A^-1 z|^2 is at most |D^1/2 A^-1 D^1/2| h. The prediction moves by 1 / (1 - h) times
        both, or for a group by the norm of its (I - H)^-1 times both: the gain.
        """
        condition = self._condition
        size = np.linalg.norm(
            np.sqrt(np.diagonal(self.moments.scatter) + self.noise) * self.weights.T, axis=1
        )
        moved = np.sqrt(condition * h) * size + abs(missed) * condition * h
        roundings = 2 * np.sqrt(len(size) + 1) * _EPS
        return np.asarray(roundings * (abs(T) + abs(missed) + gain * moved))

    @derived
    def _condition(self) -> float:
        """|D^1/2 A^-1 D^1/2|, D = diag A, by its trace: whatever the units of the features."""
        diagonal = np.diagonal(self.moments.scatter) + self.noise
        return float(diagonal @ np.einsum("ij,ij->i", self._root, self._root))


def check_room(D: int, P: int, held: int = 0) -> None:
    """Raise NotEnoughMemory if there is none for a model of D features, in P columns of sums.

    What rows need may be taken only when the model is asked, and must be there then: words of 16
    P^2 bytes, those of the next edit beside them, and a scatter, its factor and the inverse of
    that, 8 D^2 bytes each.

    held : the bytes of the words that there are
    """
    needed = 8 * (5 * P**2 + 3 * D**2) - held
    if needed > MANY_BYTES:
        what = f"A linear model of {D:,} columns holds the sums of D^2 products: with its work"
        check_free(needed, f"{what} space", FEWER_COLUMNS)


def _room() -> AbstractContextManager[None]:
    """Within it, a lack of memory is reported in words."""
    return enough_memory("solve for the weights of so many columns", FEWER_COLUMNS)


def _without(H: Array, R: Array) -> tuple[Array, Array, float]:
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


def digits(Y: Array, grid: Grid) -> Array:
    """Targets Y (n, M) as columns of digits on the grid of the targets, (n, M k).

    grid : that of the digits, (M k,), as `target_grid` makes it
    """
    k = LAYOUTS[grid.bits].digits
    limits, step = grid.limits[::k], grid.steps[::k]
    if (outside := abs(Y) - limits > step / 2).any():
        row, column = np.argwhere(outside)[0].tolist()
        raise InvalidInput(
            f"Row {row} of y has {Y[row, column]:g}, but targets there must be between "
            f"-{limits[column]:g} and {limits[column]:g}: the model reads them on a grid that the "
            f"first rows or y_limit decided. Leave the row out, or fit again with a y_limit that "
            f"reaches as far."
        )
    columns, rest = [], np.asarray(Y, dtype=float)
    for place in range(k):
        step = grid.steps[place::k]
        digit = np.rint(rest / step) * step
        columns.append(digit)
        rest = rest - digit
    return np.stack(columns, axis=-1).reshape(len(Y), -1)


def target_grid(Y: Array, bits: int, limit: Any = None) -> Grid:
    """The grid of the digits of targets like Y (n, M), or of those up to a limit, (M,).

    Without a limit there is room for at least eight times their size.
    """
    if limit is None:
        largest = abs(Y).max(axis=0, initial=0)
        above = np.log2(Grid.reaching(largest, bits).limits).astype(int) + (3 if bits == 8 else 0)
    else:
        above = np.ceil(np.log2(np.broadcast_to(limit, Y.shape[1:]))).astype(int)
    places = (bits - 1) * (1 + np.arange(LAYOUTS[bits].digits))
    return Grid((above[:, None] - places).reshape(-1), bits)
