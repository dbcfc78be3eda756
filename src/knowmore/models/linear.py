"""The Gaussian process with a dot-product kernel, in its weight space, on exact sums.

With rows x, targets t and weights w, all sums over the examples (Rasmussen and Williams, 2.1.2):

    A = sum w (x - m) (x - m)' + s I,    W = A^-1 sum w (x - m) t'
    mu_* = W' (x - m) + tbar

The penalty s is sigma^2 over the amplitude a of the weights, which is one if the noise is given. m
and tbar are the weighted means if there is an intercept, which has a flat prior and is then solved
for exactly; otherwise zero. Mean and variance are those of the kernel model with kernel a x'y. It
holds no rows. What it knows of them are whole numbers (`Sums`), so it is the same, to the bit,
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
)
from knowmore.models.null_space import NullSpace
from knowmore.models.probabilities import best_temperature, expected_trial, log_marginal_likelihood
from knowmore.models.unrelated import FEW

# The penalties to choose from, as a multiple of the mean of the eigenvalues: twenty for each power
# of ten; and the one where all targets are equal, as in a kernel model of one class.
_PENALTIES: Final = 10.0 ** np.arange(2, -10, -0.05)
_CERTAIN: Final = 0.01
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


@final
@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Frozen):
    """A frozen model of the rows that were summed; M columns of targets, D features.

    sums : of the rows, in groups by class; a regressor's rows continue with the targets
    names : the columns of scores, (M,), in ascending order
    wanted_noise : sigma^2, or None, "evidence" or "loo": see `noise` and `penalty`
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
    wanted_noise: float | str | None
    intercept: bool = True
    classes: bool = True
    normalised: bool = False
    flat: bool = False

    @classmethod
    def of_classes(
        cls, sums: Sums, noise: float | str | None, *, intercept: bool = True
    ) -> LinearModel:
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

    # -- what was learnt -----------------------------------------------------------------------

    @property
    def grid(self) -> Grid:
        """The grid of the features."""
        grid = self.sums.grid
        return grid if self.classes else grid[: len(grid) - len(self.names)]

    def summed(self, X: Any, y: Array, weights: Array | None = None) -> Sums:
        """The sums of rows X (n, D) with labels or targets y on the grid of the model."""
        if self.classes:
            return Sums.of(self.sums.grid, X, y, weights)
        return Sums.of(self.sums.grid, (X, as_columns(y)), None, weights)

    @derived
    def moments(self) -> _Moments:
        """Means, scatter and cross sums, from whole numbers, rounded once."""
        if not self.sums.rows:
            raise NoExamples("The model holds no rows: all were forgotten. Learn some first.")
        with _room():
            return _moments(self)

    @derived
    def scale(self) -> Array:
        """The standard deviation of each target, (M,), if normalised; otherwise one."""
        variance = self.moments.squares / self.moments.weight
        return np.sqrt(np.where((variance > 0) & self.normalised, variance, 1.0))

    @property
    def noise(self) -> float:
        """sigma^2, the variance of the noise on the targets: the penalty times the amplitude."""
        return self.penalty * self.amplitude

    @property
    def penalty(self) -> float:
        """The penalty of ridge regression: the noise for weights of an amplitude of one.

        What is chosen is chosen by the sums alone, from one eigendecomposition. With the
        eigenvalues l of the scatter, the part q of the targets along each, the part q_0 along none,
        N rows (one less with an intercept) and a penalty s, let f = s / (l + s).

        "loo" has the smallest generalised cross-validation error (Golub, Heath and Wahba),

            (sum q f^2 + q_0) / (sum f + N - r)^2,

        the squared leave-one-out error if all rows had the same leverage. Sums do not know those of
        single rows. None and "evidence" have the largest marginal likelihood if the prior of the
        weights had the amplitude that suits it best: N log t'K~^-1 t + log |K~| is least. For an
        amplitude of one, more features than rows always speak for no noise.

        Both are misled in two ways. Where there are as many features as rows, what is along no
        eigenvalue is due to rows that occur twice: each is predicted by its twin, as if there were
        no noise. So they count once. And rows that are nearly the same, with the same label, speak
        for no noise, too. So the mean leverage of rows of classes is at most one half: a label
        counts no more for its own row than all others do.
        """
        return self._chosen[0]

    @property
    def amplitude(self) -> float:
        """The prior variance of a weight: t'K~^-1 t / N, the most likely one, where it is chosen.

        One where a noise, or how to choose it, is given. It scales variances, not predictions.
        """
        return self._chosen[1]

    @derived
    def _chosen(self) -> tuple[float, float]:
        """The penalty and the amplitude."""
        if self.wanted_noise is not None and not isinstance(self.wanted_noise, str):
            return self.wanted_noise, 1.0
        with _room():
            return _chosen(self)

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
                A.flat[:: len(A) + 1] += self.penalty + added * diagonal
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
            v = self.noise * (1 + leverages(self, Z))
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
        largest = self.noise * (1 + self.intercept / N) + self.amplitude * size
        return np.asarray(largest * self.scale**2 if self.normalised else largest)

    def leverage(self, X: Any) -> Array:
        """sigma_*^2 / sigma^2 - 1 of rows X, (m,), of targets as the model learns them."""
        return self._asked(X, lambda Z: leverages(self, Z))

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

    @derived
    def root(self) -> Array:
        """R (D, D) with A^-1 = R R'. A product with it is faster than a solve, which has steps."""
        with _room():
            return np.ascontiguousarray(self._factor[0].half_solve(np.eye(len(self.grid))).T)

    # -- classes -----------------------------------------------------------------------------

    @derived
    def indicators(self) -> tuple[Array, Array, NullSpace]:
        """Weights (D, M) and offsets (M,) of scores of classes coded by 1 and 0; the null space.

        G of `NullSpace` is (N - C' A^-1 C) / sigma^2 for the weights N of the classes on its
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
        return W, share, NullSpace((G + G.T) / (2 * self.noise))

    def nearest(self, X: Any) -> Array:
        """The distance of rows X to the nearest class in the null space, (m,)."""
        W, share, space = self.indicators
        return space.nearest(self._asked(X, lambda Z: product(Z, W) + share))

    # -- how well it fits --------------------------------------------------------------------

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the columns, normalised if they are.

        With an intercept, that of what is left of T without it (restricted likelihood): a flat
        prior has no density.
        """
        m, n, M = self.moments, self.sums.rows, len(self.names)
        fit = (m.squares - np.einsum("ij,ij->j", m.cross, self.weights)) / self.scale**2
        logdet = self._factor[0].logdet() - self.sums.log_weights / LOG_UNIT
        logdet += (n - self.intercept) * log(self.noise) - len(m.scatter) * log(self.penalty)
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
        """tau of the probabilities (`class_probabilities`), from the sums alone.

        One if fewer than two classes have several rows.
        """
        n = self.sums.rows
        counts = np.array(
            [self.sums.groups[name].rows for name in self.names.tolist() if self.classes]
        )
        if (counts > 1).sum() < 2:
            return 1.0
        order = _by_means(self)
        names, counts = self.names[order].tolist(), counts[order]
        m, W = self.moments, self.weights[:, order]
        N = self.sums.weights(names) / UNIT
        # The scores of the mean of each class, about the scores of the mean of all rows.
        C = product(self.sums.cross(names, centred=self.intercept), W) / N[:, None]
        scatter = (product(W.T, product(m.scatter, W)) - (C.T * N) @ C) / (n - len(names))
        taken = len(m.scatter) - self.penalty * float(np.einsum("ij,ij->", self.root, self.root))
        h = min((taken + self.intercept) / n, 1 - _EPS)
        trial = expected_trial(C + m.means[1][order], scatter, counts, h, self.noise)
        return best_temperature(
            trial.logs, trial.codes, np.full(len(trial.codes), n / len(trial.codes))
        )

    def residual(self) -> float:
        """How far W is from the solution of A W = C: |C - A W| / (|A| |W| + |C|)."""
        m, W, norm = self.moments, self.weights, np.linalg.norm
        size = norm(m.scatter) + self.penalty
        error = norm(m.cross - m.scatter @ W - self.penalty * W)
        return float(error / max(size * norm(W) + norm(m.cross), np.finfo(float).tiny))


def _moments(model: LinearModel) -> _Moments:
    """Means, scatter and cross sums of the rows of a model."""
    sums, centred = model.sums, model.intercept
    N, D = sums.weight / UNIT, len(model.grid)
    origin = centred * np.array([sums.grid.centres, sums.offset()])
    S, mean = sums.scatter(centred=centred), origin.sum(axis=0)
    if not model.classes:
        squares = np.maximum(np.diagonal(S)[D:], 0)
        means = mean[:D], mean[D:]
        return _Moments(N, means, origin[:, :D], S[:D, :D], S[:D, D:], squares)
    cross = 2 * sums.cross(model.names.tolist(), centred=centred).T
    share = sums.weights(model.names.tolist()) / sums.weight
    if centred:
        squares = 4 * N * share * (1 - share)
        return _Moments(N, (mean, 2 * share - 1), origin, S, cross, squares)
    cross -= N * sums.mean()[:, None]
    means = mean, np.zeros(len(share))
    return _Moments(N, means, origin, S, cross, np.full(len(share), N))


def _chosen(model: LinearModel) -> tuple[float, float]:
    """The penalty of the smallest loss, and the amplitude: see `LinearModel.penalty`."""
    m, N = model.moments, model.sums.rows - model.intercept
    values, V = eigh(m.scatter)
    if values[-1] <= 0:
        return 1.0, 1.0
    D, total = len(values), float((m.squares / model.scale**2).sum())
    most = min(D, N)
    # The rank is at most N; eigenvalues of no more than rounding are zero.
    seen = np.flatnonzero(values > D * _EPS * values[-1])[-most:]
    values = values[seen]
    q = ((V[:, seen].T @ (m.cross / model.scale)) ** 2).sum(axis=1) / values
    others = N - len(values) if D < N else 0
    q_0 = total - float(q.sum())
    q_0 = q_0 if others and q_0 > _ROUNDINGS * total else 0.0
    mean = values.sum() / most
    penalties = mean * _PENALTIES
    if total <= 0:
        return float(penalties[0] if model.wanted_noise else _CERTAIN * mean), 1.0
    shifted = values + penalties[:, None]
    f = penalties[:, None] / shifted
    free, rows = f.sum(axis=1) + others, len(values) + others
    fit = (f @ q + q_0) / penalties
    if model.wanted_noise == "loo":
        loss = (f**2 @ q + q_0) / free**2
    else:
        loss = rows * np.log(fit) + np.log(shifted).sum(axis=1) + others * np.log(penalties)
    if model.classes:
        loss[2 * free < rows] = np.inf
    best = loss.argmin()
    amplitude = 1.0 if model.wanted_noise else fit[best] / (rows * len(model.names))
    return float(penalties[best]), float(amplitude)


def leverages(model: LinearModel, Z: Array) -> Array:
    """z' A^-1 z of rows Z (m, D) about the mean, and 1/N with an intercept, (m,)."""
    H = product(Z, model.root)
    return np.asarray(np.einsum("ij,ij->i", H, H) + model.intercept / model.moments.weight)


def _by_means(model: LinearModel) -> list[int]:
    """The columns of the classes in the order of their means, so that names do not matter.

    Draws given out in the order of the names would make the names count. Classes with the
    same mean, weight and number of rows are the same to the model.
    """
    sums, keys = model.sums, model.names.tolist()
    means = sums.cross(keys, centred=False) / sums.weights(keys)[:, None]

    def place(column: int) -> tuple[list[float], int, int]:
        rows, weight, _ = sums.groups[keys[column]]
        return means[column].tolist(), weight, rows

    return sorted(range(len(keys)), key=place)


def target_grid(model: LinearModel) -> Grid:
    """The grid of a regressor's targets."""
    return model.sums.grid[len(model.grid) :]


def as_columns(y: Array) -> Array:
    """Targets as columns, (n, q)."""
    return y[:, None] if y.ndim == 1 else y


def check_room_of(model: LinearModel, more: Sums | None = None) -> None:
    """Raise NotEnoughMemory if the rows, and more, cannot be learnt and then be asked about."""
    length = max(model.sums.length, 0 if more is None else more.length)
    check_room(len(model.grid), len(model.sums.grid), length, model.sums.nbytes)


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
