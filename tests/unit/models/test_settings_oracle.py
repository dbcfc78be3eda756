"""The choice of kernel and noise against a naive search: one refit for each example left out.

The naive search imports nothing of the library but kernels of histograms and blocks, which have
tests of their own: widths, metric, shares, losses and priors are computed here as the manual of
`knowmore.models.search` says.
"""

from __future__ import annotations

import itertools

import numpy as np
import oracle
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from tolerance import EPS

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    LSSVMClassifier,
)
from knowmore.kernels import ChiSquared, HistogramIntersection, On

NOISES = 10.0 ** np.arange(-3, 1.5, 0.5)
NOISES_OF_VALUES = 10.0 ** np.arange(-4, 1.5, 0.5)
# The logarithm of a temperature is good to this part.
TEMPERATURE = 1e-3


def power_of_two(value):
    return 2.0 ** np.round(np.log2(value))


class Naive:
    """A naive search. Fields as of `knowmore.models.Search`."""

    def __init__(self, X, y, weights=None, noise=None, bias=False, normalised=False):
        self.X, self.noise, self.bias = X, noise, bias
        self.w = np.ones(len(X)) if weights is None else weights
        self.codes = None
        if y.dtype.kind == "f":
            self.T = y.reshape(len(y), -1)
            if normalised:
                mean = np.average(self.T, axis=0, weights=self.w)
                apart = self.T - mean
                self.T = apart / np.sqrt(np.average(apart**2, axis=0, weights=self.w))
        else:
            names, self.T = oracle.one_vs_all(y)
            self.codes = np.searchsorted(names, y)
        self.tried = []

    # -- judging -----------------------------------------------------------------------------

    def loss(self, kernel, noise):
        """The loss of a kernel at a noise, and how far the library's may be from it."""
        K = kernel(self.X) + np.diag(noise / self.w)
        mean, variance = left_out(K, self.T, self.bias)
        each = np.arange(len(K))
        rounding = 100 * np.sqrt(len(K)) * EPS * np.linalg.cond(K)
        if self.codes is None:
            square = np.average((self.T - mean) ** 2, axis=0, weights=self.w)
            size = np.abs(self.T).max(axis=0) ** 2
            return float(np.log(square).mean() / 2), float((rounding * size / square).mean())
        logs = mean / np.sqrt(1 + variance)[:, None]
        logs -= logs.max(axis=1, keepdims=True)

        def at(u):
            sharp = np.exp(u) * logs
            own = sharp[each, self.codes]
            return float(self.w @ (np.log(np.exp(sharp).sum(axis=1)) - own))

        best = minimize_scalar(lambda u: at(u) + u**2 / 8, bounds=(-9, 9), method="bounded")
        around = [at(best.x + step) - at(best.x) for step in (-TEMPERATURE, TEMPERATURE)]
        slack = max(map(abs, around)) / self.w.sum()
        return at(best.x) / self.w.sum(), slack + rounding * np.exp(best.x)

    def judge(self, kernel, kind, columns="", step=None, units=None):
        """Try a kernel at all noises. `step`: the exponent of its width."""
        size, free = float(np.diagonal(kernel(self.X)).mean()), kind not in ("given", "sum")
        shares = NOISES if self.codes is not None else NOISES_OF_VALUES
        noises, amplitude = shares * size, 1.0
        if self.noise is not None:
            if self.codes is None and free:
                amplitude = power_of_two((self.T**2).mean())
            noises = np.array([self.noise / amplitude])
        away = np.log10(noises / size / 0.1) ** 2 * (len(noises) > 1)
        far = 0 if step is None else step - 1
        priors = (away + far**2) / (8 * len(self.X))
        losses = [self.loss(kernel, one) for one in noises]
        totals = [loss + prior for (loss, _), prior in zip(losses, priors, strict=True)]
        found = {
            "kernel": kernel,
            "kind": kind,
            "columns": columns,
            "step": step,
            "units": units,
            "noises": noises,
            "losses": losses,
            "priors": priors,
            "total": min(totals),
            "best": noises[int(np.argmin(totals))],
        }
        self.tried.append(found)

    @property
    def best(self):
        return min(self.tried, key=lambda one: one["total"])

    # -- kernels -----------------------------------------------------------------------------

    def units(self):
        """The power of two nearest to the deviation of each column, without strays."""
        found = []
        for x in self.X.T:
            first, middle, third = np.quantile(x, (0.25, 0.5, 0.75))
            if third > first:
                x = np.clip(x, middle - 10 * (third - first), middle + 10 * (third - first))
            two = len(set(x)) == 2
            spread = np.ptp(x) if two else x.std()
            found.append(power_of_two(spread) if np.ptp(x) else 1.0)
        return np.array(found)

    def median(self, units):
        r = pdist(self.X / units)
        return power_of_two(np.median(r[r > 0]))

    def of_distances(self):
        """The units of the columns, the width, the kind, a metric."""
        units = self.units()
        tables = {"as given": np.ones(len(units))}
        if len(set(units)) > 1:
            tables["scaled"] = units

        def tried(kind, columns, units, steps):
            for step in steps:
                nu = {"Matern 3/2": 1.5, "exponential": 0.5}[kind]
                length = units * self.median(units) * 2.0**step
                self.judge(Matern(length, nu=nu), kind, columns, step, units)

        for name, by in tables.items():
            tried("Matern 3/2", name, by, (0, 1))
        columns, by = self.best["columns"], self.best["units"]
        # Further, as long as that is better.
        for step in (2,) if self.best["step"] == 1 else (-1, -2):
            tried("Matern 3/2", columns, by, (step,))
            if self.best["step"] != step:
                break

        def beside(kind, columns, by, step):
            tried(kind, columns, by, (step, step + 1))
            one, wider = (each["total"] for each in self.tried[-2:])
            if one <= wider:
                tried(kind, columns, by, (step - 1,))

        beside("exponential", columns, by, self.best["step"])
        best = self.best
        if self.X.shape[1] <= len(self.X):
            steep = self.steepness(best)
            share = np.maximum(steep / steep.max(), 1e-4) ** 0.25
            by = best["units"] * 2.0 ** (-np.round(2 * np.log2(share)) / 2)
            beside(best["kind"], "by slope", by, best["step"])

    def steepness(self, best):
        """The sum over examples and scores of squared slopes along each column, by its unit.

        The slope of a kernel at distance zero, where there may be none, is zero by symmetry.
        """
        kernel, X = best["kernel"], self.X
        A = oracle.solve(kernel(X) + np.diag(best["best"] / self.w), self.T)
        length = np.broadcast_to(kernel.length_scale, X.shape[1])
        total = np.zeros(X.shape[1])
        for x in X:
            Z = (x - X) / length
            r = np.linalg.norm(Z, axis=1)
            if kernel.nu == 0.5:
                by_square = -np.exp(-r) / np.where(r > 0, r, np.inf)
            else:
                by_square = -3 * np.exp(-np.sqrt(3) * r)
            slopes = by_square[:, None] * Z / length * best["units"]
            total += ((slopes.T @ A) ** 2).sum(axis=1)
        return total

    def of_histograms(self):
        D = np.array([[chi_squared(x, y) for y in self.X] for x in self.X])
        D = squareform(D, checks=False)
        width = power_of_two(np.median(D[D > 0]))
        for step in (-2, -1, 0, 1, 2):
            self.judge(ChiSquared(1 / (width * 2.0**step)), "chi-squared", step=step)
        self.judge(HistogramIntersection(), "intersection")

    def of_sums(self, kernels):
        parts = []
        for kernel in kernels:
            if isinstance(kernel, On) and kernel.kernel is None:
                block = Naive(self.X[:, kernel.columns], np.zeros(len(self.X)))
                block.T, block.codes, block.w = self.T, self.codes, self.w
                block.noise, block.bias = self.noise, self.bias
                block.of_distances()
                kernel = On(kernel.columns, block.best["kernel"])
            parts.append(kernel)
        sizes = [np.diagonal(one(self.X)).mean() for one in parts]
        each = itertools.product(range(5), repeat=len(parts))
        splits = [np.array(one) / 4 for one in each if sum(one) == 4]
        if 4 % len(parts):
            splits.append(np.full(len(parts), 1 / len(parts)))
        for shares in splits:
            terms = [
                ConstantKernel(share / size) * part
                for share, size, part in zip(shares, sizes, parts, strict=True)
                if share
            ]
            self.judge(sum(terms[1:], start=terms[0]), "sum", tuple(shares.round(2)))


def left_out(K, T, bias):
    """Means (n, M) and variances (n,) by a refit without each example; K (n, n) with the noise."""
    mean, variance = np.empty_like(T), np.empty(len(K))
    for i in range(len(K)):
        rest = np.arange(len(K)) != i
        rows, k, t = K[np.ix_(rest, rest)], K[rest, i], T[rest]
        if bias:
            rows, k = oracle.bordered(rows), np.append(k, 1.0)
            t = np.vstack([t, np.zeros((1, T.shape[1]))])
        weights = np.linalg.solve(rows, k)
        mean[i], variance[i] = weights @ t, K[i, i] - weights @ k
    return mean, variance


def chi_squared(x, y):
    both = x + y
    return float(((x - y) ** 2 / np.where(both > 0, both, 1)).sum())


def named(candidate):
    """The kind, columns and width of a candidate, by which the naive search knows it."""
    kind, columns = candidate.kind, candidate.columns
    return kind, columns, candidate.width


def without_amplitude(kernel, noise, naive):
    """The kernel and the noise in units of its amplitude, which is not judged."""
    if naive.codes is None and hasattr(kernel, "k1") and isinstance(kernel.k1, ConstantKernel):
        amplitude = kernel.k1.constant_value
        return kernel.k2, noise / amplitude
    return kernel, noise


def compare(naive, got):
    """Is what was tried the same, with the same losses, priors and noises, and the same best?"""
    assert len(got.candidates) == len(naive.tried)
    want = {}
    for one in naive.tried:
        width = 1.0 if one["step"] is None else 2.0 ** one["step"]
        want[(one["kind"], one["columns"], width)] = one
    totals = []
    for candidate in got.candidates:
        one = want.pop(named(candidate))
        kernel, noise = without_amplitude(candidate.kernel, candidate.noise, naive)
        np.testing.assert_allclose(kernel(naive.X), one["kernel"](naive.X), 1e3 * EPS, 1e3 * EPS)
        i = int(np.argmin(abs(np.log(one["noises"] / noise))))
        assert noise == pytest.approx(one["noises"][i], rel=10 * EPS)
        loss, slack = one["losses"][i]
        assert candidate.loss == pytest.approx(loss, abs=slack)
        assert candidate.prior == pytest.approx(one["priors"][i], rel=100 * EPS)
        # The noise is the best, or as good as rounding can tell.
        each = zip(one["losses"], one["priors"], strict=True)
        assert candidate.total <= min(a + s + p for (a, s), p in each) + slack
        totals.append(candidate.total)
    assert not want
    assert totals == sorted(totals)
    assert got.kernel == got.candidates[0].kernel
    assert got.noise == got.candidates[0].noise


def in_order_of(model, X, *columns):
    """Rows as the panel has them: their order decides nothing but rounding."""
    rows = [list(model.ids_).index(one) for one in model.settings_.ids]
    return X[rows], *(column[rows] for column in columns)


def table(seed, n=26, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    X[:, -1] = (X[:, -1] > 0) * 1.0
    scores = X[:, 0] / X[:, 0].std() + X[:, -1]
    return rng, X, scores


@pytest.mark.parametrize("seed", range(100, 103))
@pytest.mark.parametrize("noise", [None, 0.2])
@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier, ForestGPClassifier])
def test_classes_choose_what_a_naive_search_does(kind, noise, seed):
    rng, X, scores = table(seed)
    y = np.digitize(scores + rng.normal(size=len(X)) / 2, [0, 1])
    given = {"C" if kind is LSSVMClassifier else "noise": noise}
    w = rng.choice([0.5, 1.0, 3.0], len(X))
    model = kind(**given).fit(X, y, sample_weight=w)
    bias = kind is LSSVMClassifier
    naive = Naive(X, y, w, noise and (1 / noise if bias else noise), bias)
    naive.of_distances()
    compare(naive, model.settings_)


@pytest.mark.parametrize("seed", range(100, 103))
@pytest.mark.parametrize("noise", [None, 0.2])
@pytest.mark.parametrize("kind", [GPRegressor, ForestGPRegressor])
@pytest.mark.parametrize("q", [None, 2])
def test_values_choose_what_a_naive_search_does(kind, noise, seed, q):
    rng, X, scores = table(seed)
    y = scores + rng.normal(size=len(X)) / 5
    if q:
        y = np.column_stack([y, 100 * np.sin(scores)])
    w = rng.choice([0.5, 1.0, 3.0], len(X))
    model = kind(noise=noise).fit(X, y, sample_weight=w)
    naive = Naive(X, y, w, noise, normalised=True)
    naive.of_distances()
    compare(naive, model.settings_)


@pytest.mark.parametrize("values", [False, True])
def test_histograms_choose_what_a_naive_search_does(values):
    rng = np.random.default_rng(100)
    X = rng.dirichlet(np.ones(9), 24)
    y = X[:, 0] + X[:, 1] ** 2 if values else np.where(X[:, 0] > X[:, 1], "more", "less")
    model = (GPRegressor if values else GPClassifier)().fit(X, y)
    naive = Naive(X, y, normalised=y.dtype.kind == "f")
    naive.of_histograms()
    compare(naive, model.settings_)


@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor])
@pytest.mark.parametrize(
    "kernels",
    [
        [RBF(1.0), DotProduct(1.0)],
        [On(slice(0, 2)), On(slice(2, 4))],
        [On(slice(0, 1)), RBF(2.0), Matern(3.0)],
    ],
)
def test_sums_choose_what_a_naive_search_does(kind, kernels):
    rng = np.random.default_rng(100)
    X = rng.normal(size=(20, 4))
    y = X[:, 0] + X[:, 2] * X[:, 3] + rng.normal(size=len(X)) / 5
    y = y if kind is GPRegressor else (y > 0).astype(int)
    got = kind(kernels).fit(X, y).settings_
    naive = Naive(X, y, normalised=y.dtype.kind == "f")
    naive.of_sums(kernels)
    sums = []
    for one in got.candidates:
        terms = {int(t.split()[-1]): float(t.split()[0]) for t in one.kind.split(" + ")}
        shares = tuple(round(terms.get(i + 1, 0.0), 2) for i in range(len(kernels)))
        sums.append(one._replace(kind="sum", columns=shares))
    compare(naive, type(got)(got.kernel, got.noise, tuple(sums)))


def test_a_given_kernel_has_the_noise_of_a_naive_search():
    rng, X, scores = table(104)
    y = (scores + rng.normal(size=len(X)) > 0).astype(int)
    model = GPClassifier(RBF([0.1, 1.0, 1.0])).fit(X, y)
    naive = Naive(X, y, normalised=y.dtype.kind == "f")
    naive.judge(RBF([0.1, 1.0, 1.0]), "given")
    compare(naive, model.settings_)


@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier, GPRegressor])
def test_copies_choose_as_one_example_of_their_weight(kind):
    rng, X, scores = table(105)
    y = scores + rng.normal(size=len(X)) / 5
    if kind is not GPRegressor:
        y = np.digitize(y, [0, 1])
    w, again = rng.choice([0.5, 1.0, 3.0], len(X)), rng.integers(0, 5, 20)
    rows = np.append(np.arange(len(X)), again)
    model = kind().fit(X[rows], y[rows], sample_weight=w[rows])
    total = w + np.bincount(again, w[again], minlength=len(X))
    # Quantiles of columns are those of different rows.
    naive = Naive(X, y, total, bias=kind is LSSVMClassifier, normalised=kind is GPRegressor)
    naive.of_distances()
    compare(naive, model.settings_)
