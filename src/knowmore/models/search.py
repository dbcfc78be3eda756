"""The search for the kernel and the noise that suit a few examples best.

A candidate is judged by leave-one-out in closed form, for all noises at once. Equal rows with the
same label are left out together. Classes: by the log loss of the probabilities, under the best
temperature. Values: by the squared error; then the amplitude follows from the errors. The grid is
coarse, in powers of two. It asks in turn:

1. Columns as they are, or each in units of its spread.
2. The kind of kernel, and its width as a multiple of the median distance, which grows or shrinks
   as long as that is better.
3. One step of a metric: columns along which the scores are steeper count more. Only the diagonal,
   and one step, since leave-one-out has seen the labels (Radhakrishnan et al., 2024, call it the
   average gradient outer product).

A prior that weighs less than one example prefers middle widths and noises: it decides where there
are few examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from knowmore._base import Array, Id, TableAnswer, leading
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import (
    AnyKernel,
    ChiSquared,
    HistogramIntersection,
    On,
    are_histograms,
    corner,
    median_chi_squared,
    median_rbf,
    slopes,
    spreads,
)
from knowmore.linalg import product
from knowmore.models.loo import LooMoments, silenced
from knowmore.models.noise import left_out_by_noise
from knowmore.models.probabilities import log_chances, sharpest

if TYPE_CHECKING:
    from knowmore.models.settings import SettingsRule

# Noises as multiples of the mean kappa(x, x); values are often more exact than labels.
_NOISES, _NOISES_OF_VALUES = 10.0 ** np.arange(-3, 1.5, 0.5), 10.0 ** np.arange(-4, 1.5, 0.5)
# Exponents of the widths, which are multiples of the median distance.
_WIDTHS = (-2, -1, 0, 1, 2)
# The middle of the prior: the exponent of the width, the noise; its deviations from there.
_MIDDLE, _LIKELY, _SPREAD = 1, 0.1, 2.0
# The least slope that counts, as a share of the steepest column's, and the power of the metric.
_FLAT, _POWER = 1e-4, 0.25
# Amplitudes are powers of this, so that rounding does not move them.
_STEP = 2.0**0.125
# None is smaller: products with a noise and a weight must not underflow.
_LEAST = 1e-200
# With more than this share of equal rows of different targets, equal rows are no copies.
_NATURAL = 0.1
# Weights of several kernels are multiples of one over this.
_SHARES = 4
# A model of one class has this part of the median distance for a width, and this noise.
_NARROW, _CERTAIN = 0.5, 0.01
# Bounds of parameters are so many times larger and smaller.
_REACH = 1e5
# Kinds of kernels by the orders of Matern kernels, of which RBF is the limit. RBF kernels are not
# tried: they win by leave-one-out more often than by other examples.
_FIRST, _ROUGH = "Matern 3/2", "exponential"
_ORDERS = {_ROUGH: 0.5, _FIRST: 1.5, "RBF": np.inf}


class TriedKernel(NamedTuple):
    """A kernel at its best noise.

    kind, columns : in words
    width : as a multiple of the median distance; one if the kernel has no width
    loss : by leave-one-out, a mean over the panel; smaller is better
    prior : what the prior adds
    """

    kernel: AnyKernel
    noise: float
    kind: str
    columns: str
    width: float
    loss: float
    prior: float

    @property
    def total(self) -> float:
        """The loss with the prior, by which kernels are compared."""
        return self.loss + self.prior


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModelSettings(TableAnswer):
    """The kernel and the noise of a model, and how they were chosen.

    kernel, noise : in use; noise is 1 / C of a least-squares SVM
    candidates : what was tried, the best first; empty if nothing was chosen by leave-one-out, if
        examples that chose have left, or in a file that was opened after its choice had settled
    ids : of the examples that chose and are held
    measure : of the losses; "log RMSE" is the logarithm of the root of the mean squared error
    """

    kernel: AnyKernel
    noise: float
    candidates: tuple[TriedKernel, ...] = ()
    ids: tuple[Id, ...] = ()
    measure: str = ""

    def agree(self, other: ModelSettings) -> bool:
        """Whether kernel and noise are the same."""
        return bool(self.noise == other.noise and self.kernel == other.kernel)

    def _columns(self) -> dict[str, Array]:
        names = ("kind", "columns", "width", "noise", "loss", "prior")
        return {name: np.array([getattr(one, name) for one in self.candidates]) for name in names}

    def _summary(self) -> str:
        if not self.candidates:
            return f"{self.kernel!r}, noise={self.noise:.4g}"
        best = self.candidates[0]
        used = f"{best.kind} {best.columns}".rstrip()
        return (
            f"{used}, width {best.width:g}, noise={self.noise:.4g}; the best of "
            f"{len(self.candidates)} by {self.measure} of {len(self.ids)} examples"
        )


@final
@dataclass(frozen=True, eq=False)
class Shape:
    """A kernel that a search tries.

    kind, columns : in words
    step : the exponent of the width beside the median distance; None: the kernel has no width
    units : of the columns, (d,), in which distances are measured; None: no such distances
    free : whether an amplitude may be chosen
    """

    kernel: Any
    kind: str
    columns: str = ""
    step: int | None = None
    units: Array | None = None
    free: bool = True

    @property
    def exponent(self) -> int:
        """That of the width; the likeliest if there is none."""
        return _MIDDLE if self.step is None else self.step


class Judged(NamedTuple):
    """A kernel that was tried, and its best noise without an amplitude."""

    candidate: TriedKernel
    shape: Shape
    noise: float


@final
@dataclass(eq=False)
class Search:
    """A search among kernels and noises for the examples of a panel, X (n, d).

    T : the targets, (n, M)
    codes : (n,), the columns of the labels; None for values
    weights : (n,)
    one_class : whether the model has a single class
    """

    rule: SettingsRule
    X: Array
    T: Array
    codes: Array | None
    weights: Array
    one_class: bool = False
    tried: list[Judged] = field(default_factory=list)
    medians: dict[bytes, float] = field(default_factory=dict)

    @classmethod
    def of(cls, rule: SettingsRule, some: Examples) -> Search:
        """The search of a panel."""
        targets = rule.coding(some)
        codes = np.searchsorted(targets.names, some.labels) if targets.classes else None
        X = np.asarray(leading(some.X, rule.width), dtype=float)
        # A forest has one column more, for classes without examples.
        T, weights = targets.T[:, : len(targets.names)], rule.weighting(some)
        own = _copies(X, T)
        first = np.unique(own, return_index=True)[1]
        codes, weights = None if codes is None else codes[first], np.bincount(own, weights)
        return cls(
            rule,
            X[first],
            T[first],
            codes,
            weights,
            targets.classes and first_other(some.labels) is None,
        )

    def run(self) -> ModelSettings:
        """The best settings."""
        kernel = self.rule.kernel
        if len(self.T) < 2 or (self.T[0] == self.T).all():
            return self._unjudged()
        with np.errstate(all="ignore"):
            if isinstance(kernel, tuple):
                self._sums(kernel)
            elif kernel is not None:
                self._try([Shape(kernel, "given", free=False)])
            elif are_histograms(self.X) and not _yes_or_no(self.X):
                self._histograms()
            else:
                self._distances()
        if not self.tried:
            return self._unjudged()
        ranked = sorted((one.candidate for one in self.tried), key=lambda one: one.total)
        measure = f"leave-one-out {'log RMSE' if self.codes is None else 'log loss'}"
        return ModelSettings(ranked[0].kernel, ranked[0].noise, tuple(ranked), measure=measure)

    def _unjudged(self) -> ModelSettings:
        """Settings by the features alone, where leave-one-out says nothing.

        A model of one class recognises what is not of it, by a narrow kernel and little noise.
        """
        kernel, narrow = self.rule.kernel, self.one_class
        usual = _CERTAIN if narrow and kernel is None else self.rule.usual
        if isinstance(kernel, tuple):
            parts = [self._part(one) for one in kernel]
            factors = self._factors(parts)
            many = sum(factor > 0 for factor in factors)
            kernel = _summed(
                [(by / many, one) for by, one in zip(factors, parts, strict=True) if by]
            )
        elif kernel is None and are_histograms(self.X):
            kernel = median_chi_squared(self.X)
        elif kernel is None:
            units = spreads(self.X)
            with np.errstate(over="ignore"):
                lengths = units * (self._median(units) * _NARROW**narrow)
            # What is beyond the range of numbers has no median distance either.
            known = np.isfinite(lengths).all()
            kernel = _of_distance("RBF", lengths) if known else median_rbf(self.X)
        noise = self.rule.noise
        return ModelSettings(kernel, noise if isinstance(noise, float) else usual)

    # -- kernels -----------------------------------------------------------------------------

    def _histograms(self) -> None:
        """Try chi-squared kernels of some widths, and intersection."""
        width = 2.0 ** np.round(-np.log2(median_chi_squared(self.X).gamma))
        for step in _WIDTHS:
            self._try([Shape(ChiSquared(1 / (width * 2.0**step)), "chi-squared", step=step)])
        self._try([Shape(HistogramIntersection(), "intersection")])

    def _distances(self) -> None:
        """Try kernels of distances: the units of the columns, the width, the kind, a metric."""
        units = spreads(self.X)
        tables = [("scaled", units), ("as given", np.ones(len(units)))]
        for name, by in tables[int(np.ptp(units) == 0) :]:
            self._try(self._at(_FIRST, name, by, (0, 1)))
        if not self.tried:
            return
        best = self._best.shape
        table = best.columns, best.units
        for step in (2,) if best.exponent else (-1, -2):
            self._try(self._at(_FIRST, *table, (step,)))
            if self._best.shape.step != step:
                break
        self._beside(_ROUGH, *table, self._best.shape.exponent)
        best, steep = self._best.shape, self._metric()
        if steep is not None:
            self._beside(best.kind, "by slope", steep, best.exponent)

    def _beside(self, kind: str, columns: str, units: Any, step: int) -> None:
        """Try a width, a wider one, and a narrower one unless the wider one is better."""
        found = self._try(self._at(kind, columns, units, (step, step + 1)))
        if len(found) < 2 or found[0].candidate.total <= found[1].candidate.total:
            self._try(self._at(kind, columns, units, (step - 1,)))

    def _at(self, kind: str, columns: str, units: Any, steps: Iterable[int]) -> Iterator[Shape]:
        """Kernels of some widths, all powers of two: a small change of the examples moves none."""
        with suppress(InvalidInput):
            median = self._median(units)
            for step in steps:
                lengths = units * (median * 2.0**step)
                if np.isfinite(lengths).all() and (lengths > 0).all():
                    yield Shape(_of_distance(kind, lengths), kind, columns, step, units)

    def _median(self, units: Array) -> float:
        """The power of two nearest to the median distance in these units."""
        known = units.tobytes()
        if known not in self.medians:
            median = median_rbf(self.X / units).length_scale
            self.medians[known] = float(2.0 ** np.round(np.log2(median)))
        return self.medians[known]

    def _metric(self) -> Array | None:
        """Units (d,) that are shorter for columns along which the best scores are steep.

        In units of the kernel, the gradient of score c at x_i is -sum_k S_ik (x_i - x_k) A_kc.
        None if there are more columns than examples, which would tell little of each.
        """
        best = self._best
        if best.shape.units is None or self.X.shape[1] > len(self.X):
            return None
        K, Z = corner(best.shape.kernel, self.X), self.X / best.shape.units
        K.flat[:: len(K) + 1] += best.noise / self.weights
        A, S = np.linalg.solve(K, self.T), slopes(best.shape.kernel, self.X)
        steep = np.zeros(Z.shape[1])
        for a in A.T:
            W = S * a
            steep += ((Z * W.sum(axis=1)[:, None] - product(W, Z)) ** 2).sum(axis=0)
        most = float(steep.max(initial=0))
        if not 0 < most < np.inf:
            return None
        share = np.maximum(steep / most, _FLAT) ** _POWER
        return np.asarray(best.shape.units / 2.0 ** (np.round(2 * np.log2(share)) / 2))

    def _part(self, one: Kernel) -> Any:
        """One of several kernels; if it names columns alone, with the best kernel of these."""
        if not isinstance(one, On) or one.kernel is not None:
            return one
        seen = On(one.columns, ConstantKernel(), one.weights).of(self.X)
        rule = replace(self.rule, kernel=None)
        block = replace(self, rule=rule, X=np.asarray(seen), tried=[], medians={})
        settings = block.run()
        # The sum has the amplitude.
        kernel = block._best.shape.kernel if block.tried else settings.kernel
        return On(one.columns, kernel, one.weights)

    def _factors(self, parts: list[Any]) -> list[float]:
        """What makes the mean kappa(x, x) of each kernel one; zero if nothing does.

        Ones if nothing does for any of them.
        """
        sizes = [float(np.diagonal(corner(part, self.X)).mean()) for part in parts]
        factors = [1 / size if 0 < size < np.inf else 0.0 for size in sizes]
        return factors if any(factors) else [1.0] * len(parts)

    def _sums(self, kernels: tuple[Kernel, ...]) -> None:
        """Try weighted sums of kernels, each in units of its mean kappa(x, x)."""
        parts = [self._part(one) for one in kernels]
        factors = self._factors(parts)
        splits = [np.array(split) / _SHARES for split in _simplex(len(parts), _SHARES)]
        if _SHARES % len(parts):
            # Few examples tell little of weights: then equal ones are hard to beat.
            splits.append(np.full(len(parts), 1 / len(parts)))
        for shares in splits:
            chosen = np.flatnonzero(shares).tolist()
            if not all(factors[i] for i in chosen):
                continue
            kernel = _summed([(float(shares[i]) * factors[i], parts[i]) for i in chosen])
            kind = " + ".join(f"{shares[i]:.2g} of kernel {i + 1}" for i in chosen)
            self._try([Shape(kernel, kind)])

    # -- judging -----------------------------------------------------------------------------

    @property
    def _best(self) -> Judged:
        return min(self.tried, key=lambda one: one.candidate.total)

    def _try(self, shapes: Iterable[Shape]) -> list[Judged]:
        """Judge kernels, each at its best noise; those with values that are not finite are left."""
        found = []
        for shape in shapes:
            K = corner(shape.kernel, self.X)
            size = float(np.diagonal(K).mean())
            if np.isfinite(K.sum()) and 0 < size < np.inf:
                judged = self._judged_by_noise(shape, K, size)
                if np.isfinite(judged.candidate.total):
                    found.append(judged)
        self.tried += found
        return found

    def _judged_by_noise(self, shape: Shape, K: Array, size: float) -> Judged:
        given, free = self.rule.noise, shape.free and self.codes is None
        shares = _NOISES if self.codes is not None else _NOISES_OF_VALUES
        noises, amplitude = shares * size, 1.0
        if isinstance(given, float):
            # The errors cannot tell an amplitude: it is that of the values.
            amplitude = float(2.0 ** np.round(np.log2((self.T**2).mean()))) if free else 1.0
            amplitude = amplitude if 0 < amplitude < np.inf else 1.0
            noises = np.array([given / amplitude])
        left = [*left_out_by_noise(K, self.T, self.weights, noises, bias=self.rule.bias)]
        if self.codes is not None:
            logs = np.stack([log_chances(silenced(one)[0], one.variance) for one in left])
            losses = sharpest(logs, self.codes, self.weights)[0]
        else:
            losses = np.array([self._squared(one) for one in left])
        away = np.log10(noises / size / _LIKELY) ** 2 if len(noises) > 1 else np.zeros(1)
        priors = (away + (shape.exponent - _MIDDLE) ** 2) / (2 * _SPREAD**2 * len(K))
        totals = losses + priors
        i = int(np.argmin(np.where(np.isfinite(totals), totals, np.inf)))
        if free and not isinstance(given, float):
            amplitude = self._amplitude(left[i])
        kernel = shape.kernel
        if amplitude != 1:
            kernel = ConstantKernel(amplitude, _around(amplitude)) * kernel
        noise = given if isinstance(given, float) else float(amplitude * noises[i])
        width = 1.0 if shape.step is None else 2.0**shape.step
        words = shape.kind, shape.columns
        found = TriedKernel(kernel, noise, *words, width, float(losses[i]), float(priors[i]))
        return Judged(found, shape, float(noises[i]))

    def _amplitude(self, left: LooMoments) -> float:
        """The amplitude a of a K~, a power of `_STEP`. Variances are a / P_ii then.

        With z_i = P_ii^1/2 e_i, the mean of z^2 is the most likely amplitude, which few errors that
        are far off decide, and pi/2 times the square of the mean of |z| is as large for a Gaussian.
        It is the geometric mean of the two.
        """
        z = abs(self.T - left.mean) / np.sqrt(left.variance)[:, None]
        square, mean = (np.average(z**k, axis=0, weights=self.weights).mean() for k in (2, 1))
        amplitude = max(np.sqrt(np.pi / 2 * square) * mean, _LEAST)
        return float(_STEP ** np.round(np.log(amplitude) / np.log(_STEP)))

    def _squared(self, left: LooMoments) -> float:
        """Half the mean logarithm of the squared errors: like a log loss, whatever the units."""
        square = np.average((self.T - left.mean) ** 2, axis=0, weights=self.weights)
        return float(np.log(np.maximum(square, np.finfo(float).tiny)).mean() / 2)


def first_other(values: Array) -> int | None:
    """The first row of values (n,) or (n, q) that differs from row zero; None if all agree."""
    differs = np.not_equal(values, values[:1]).any(axis=tuple(range(1, values.ndim)))
    return int(differs.argmax()) if differs.any() else None


def _copies(X: Array, T: Array) -> Array:
    """For each row, (n,), which of the different ones it is; rows (n, d) with targets (n, M).

    A copy would answer for a row that is left out, so both are left out as one of their weight.
    But where equal rows often have other targets, as in tables of a few answers, they are no
    copies: then all rows are different ones.
    """
    places: dict[bytes, int] = {}
    pairs: dict[bytes, int] = {}
    # Minus zero is zero.
    rows = [row.tobytes() for row in X + 0.0]
    at = [places.setdefault(row, len(places)) for row in rows]
    both = (row + t.tobytes() for row, t in zip(rows, T + 0.0, strict=True))
    own = [pairs.setdefault(pair, len(pairs)) for pair in both]
    several = sum(count > 1 for count in Counter(at).values())
    natural = len(pairs) - len(places) > _NATURAL * several
    return np.arange(len(rows)) if natural else np.array(own, dtype=np.int64)


def _yes_or_no(X: Array) -> bool:
    """Whether each value is zero or the largest: answers, and not parts of one whole."""
    return bool(((X == 0) | (X.max(initial=0) == X)).all())


def _of_distance(kind: str, lengths: Array) -> Kernel:
    """A kernel with one length scale if all are the same; bounds are far from them."""
    one = lengths[0] if np.ptp(lengths) == 0 else lengths
    bounds = float(lengths.min()) / _REACH, float(lengths.max()) * _REACH
    nu = _ORDERS[kind]
    return RBF(one, bounds) if nu == np.inf else Matern(one, bounds, nu)


def _summed(terms: list[tuple[float, Kernel]]) -> Any:
    """The weighted sum of kernels."""
    first, *others = (ConstantKernel(by, _around(by)) * kernel for by, kernel in terms)
    for one in others:
        first = first + one
    return first


def _around(value: float) -> tuple[float, float]:
    """The bounds of a parameter, for `tune`."""
    return value / _REACH, value * _REACH


def _simplex(parts: int, shares: int) -> Iterator[tuple[int, ...]]:
    """All ways to split so many shares among so many parts.

    >>> list(_simplex(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    if parts == 1:
        yield (shares,)
        return
    for first in range(shares + 1):
        for rest in _simplex(parts - 1, shares - first):
            yield first, *rest
