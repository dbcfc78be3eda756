"""The linear model on sums is the kernel model, the least-squares SVM, and ridge regression."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.linear_model import BayesianRidge, Ridge, RidgeClassifier
from tolerance import assert_rounded, assert_solves

from knowmore import (
    GPClassifier,
    GPRegressor,
    Grid,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)
from knowmore.linalg import Sums
from knowmore.models import LinearLoo, LinearModel

DOT = DotProduct(0)


def problem(seed, n=None, D=None, bits=16):
    """Rows on a grid, labels, values, weights and queries: few rows or many, near zero or far."""
    rng = np.random.default_rng(seed)
    n, D = n or int(rng.integers(8, 40)), D or int(rng.integers(1, 12))
    X = rng.normal(size=(n, D)) * 3 + rng.normal(size=D) * 5 * (seed % 2)
    grid = Grid.covering(X, bits)
    return SimpleNamespace(
        rng=rng,
        grid=grid,
        X=grid.rounded(X),
        y=np.append([0, 1, 2], rng.integers(0, 3, n - 3)),
        # Few enough digits that the grid of the targets changes nothing.
        Y=np.round(rng.normal(size=(n, 2)) * 1e4) / 128,
        w=rng.integers(1, 1000, n) / 256 if seed % 3 else None,
        groups=rng.integers(0, 4, n),
        noise=10.0 ** (seed % 4 - 2),
        Q=rng.normal(size=(7, D)) * 4,
    )


def dual(p):
    """The weights and K~ of the rows, and the one-vs-all targets."""
    w = np.ones(len(p.X)) if p.w is None else p.w
    _, T = oracle.one_vs_all(p.y.tolist())
    return w, DOT(p.X) + np.diag(p.noise / w), T


def assert_conditioned(got, want, K, scale=None):
    """Are two ways to solve with K equal, to the roundings that its condition makes of one?"""
    assert_rounded(got, want, 100 * np.linalg.cond(K), scale)


seeds = pytest.mark.parametrize("seed", range(8))


@seeds
def test_without_an_intercept_it_is_the_gaussian_process_of_the_dot_product(seed):
    p = problem(seed)
    w, K, T = dual(p)
    raw = {"probability": "raw"}
    ours = LinearGPClassifier(p.noise, resolution=p.grid, intercept=False, **raw)
    ours.fit(p.X, p.y, sample_weight=p.w)
    theirs = GPClassifier(DOT, p.noise, **raw).fit(p.X, p.y, sample_weight=p.w)
    k = DOT(p.X, p.Q)
    want = oracle.scores(DOT, p.noise / w, p.X, T, p.Q)
    assert_solves(ours.decision_function(p.Q), want, K, T, left=k)
    assert_solves(ours.decision_function(p.Q), theirs.decision_function(p.Q), K, T, left=k)
    assert ours.predict(p.X).tolist() == theirs.predict(p.X).tolist()
    prior = abs(np.diagonal(DOT(p.Q))).max()
    assert_conditioned(ours.predict_variance(p.Q), theirs.predict_variance(p.Q), K, prior)
    assert_conditioned(ours.predict_proba(p.Q), theirs.predict_proba(p.Q), K, 1 + prior)
    likelihood = oracle.log_marginal_likelihood(DOT, np.diag(p.noise / w), p.X, T)
    assert_conditioned(ours.log_marginal_likelihood(), likelihood, K, abs(likelihood))
    for groups in (None, p.groups):
        one = ours.leave_one_out(p.X, p.y, p.w, groups=groups)
        other = theirs.leave_one_out(groups=groups)
        assert_conditioned(one.scores, other.scores, K)
        assert_conditioned(one.variance, other.variance, K)
        assert one.predicted.tolist() == other.predicted.tolist()
        assert one.silent.tolist() == other.silent.tolist()
        np.testing.assert_array_equal(one.labels, p.y)


@seeds
def test_with_an_intercept_it_is_the_least_squares_svm(seed):
    p = problem(seed)
    w, K, T = dual(p)
    ours = LinearGPClassifier(p.noise, resolution=p.grid).fit(p.X, p.y, sample_weight=p.w)
    theirs = LSSVMClassifier(DOT, C=1 / p.noise).fit(p.X, p.y, sample_weight=p.w)
    k, B = DOT(p.X, p.Q), oracle.bordered(K)
    want = oracle.scores(DOT, p.noise / w, p.X, T, p.Q, bias=True)
    for other in (want, theirs.decision_function(p.Q)):
        assert_solves(ours.decision_function(p.Q), other, K, T, left=k, bias=True)
    want = oracle.variance(DOT, p.noise / w, p.X, p.Q, True, np.full(7, p.noise))
    prior = abs(np.diagonal(DOT(p.Q))).max()
    assert_conditioned(ours.predict_variance(p.Q), want, B, prior)
    for groups in (None, p.groups):
        one = ours.leave_one_out(p.X, p.y, p.w, groups=groups)
        other = theirs.leave_one_out(groups=groups)
        assert_conditioned(one.scores, other.scores, B)
        assert one.predicted.tolist() == other.predicted.tolist()
        own = np.arange(len(p.X)) if groups is None else groups
        mean, variance = oracle.left_out(DOT, p.noise / w, p.X, T, own, bias=True)
        assert_conditioned(one.scores, mean, B)
        assert_conditioned(one.variance, variance, B)


@seeds
def test_it_is_ridge_regression(seed):
    p = problem(seed)
    _, K, _ = dual(p)
    for intercept in (True, False):
        ours = LinearGPRegressor(p.noise, resolution=p.grid, intercept=intercept)
        ours.fit(p.X, p.Y, sample_weight=p.w)
        theirs = Ridge(p.noise, fit_intercept=intercept, solver="cholesky")
        theirs.fit(p.X, p.Y, sample_weight=p.w)
        assert_conditioned(ours.predict(p.Q), theirs.predict(p.Q), K)
        assert_conditioned(ours.coef_, theirs.coef_, K)
        assert_conditioned(ours.predict(p.Q), p.Q @ ours.coef_.T + ours.intercept_, K)
        one = LinearGPRegressor(p.noise, resolution=p.grid, intercept=intercept)
        one.fit(p.X, p.Y[:, 1], sample_weight=p.w)
        assert one.predict(p.Q).shape == (7,)
        assert_conditioned(one.predict(p.Q), ours.predict(p.Q)[:, 1], K)
        theirs.fit(p.X, p.Y[:, 1], sample_weight=p.w)
        assert one.coef_.shape == theirs.coef_.shape == p.X.shape[1:]
        assert isinstance(one.intercept_, float)
        assert_conditioned(one.coef_, theirs.coef_, K)
        assert_conditioned(one.predict(p.Q), p.Q @ one.coef_ + one.intercept_, K)
        ours = LinearGPClassifier(p.noise, resolution=p.grid, intercept=intercept)
        ours.fit(p.X, p.y, sample_weight=p.w)
        theirs = RidgeClassifier(p.noise, fit_intercept=intercept, solver="cholesky")
        theirs.fit(p.X, p.y, sample_weight=p.w)
        scores = theirs.decision_function(p.Q)
        assert_conditioned(ours.decision_function(p.Q), scores, K)


@pytest.mark.parametrize("normalize_y", [True, False])
def test_a_regressor_without_an_intercept_is_the_gaussian_process(normalize_y):
    p = problem(1)
    # About zero, as the standard deviation is without an intercept.
    Y = np.vstack([p.Y, -p.Y])
    X = np.vstack([p.X, p.X[::-1]])
    K = DOT(X) + p.noise * np.eye(len(X))
    ours = LinearGPRegressor(p.noise, intercept=False, normalize_y=normalize_y).fit(X, Y)
    theirs = GPRegressor(DOT, p.noise, normalize_y=normalize_y).fit(X, Y)
    for one, other in zip(
        ours.predict(p.Q, return_std=True), theirs.predict(p.Q, return_std=True), strict=True
    ):
        assert_conditioned(one, other, K)
    want = theirs.log_marginal_likelihood()
    assert_conditioned(ours.log_marginal_likelihood(), want, K, abs(want))
    one, other = ours.leave_one_out(X, Y), theirs.leave_one_out()
    if not normalize_y:
        assert_conditioned(one.scores, other.scores, K)
        assert_conditioned(one.variance, other.variance, K)


def test_it_is_the_posterior_of_bayesian_ridge_regression():
    p = problem(1, n=60, D=4)
    y = p.X @ [1.0, -2.0, 0.5, 0.0] + p.rng.normal(size=60)
    theirs = BayesianRidge(tol=1e-12).fit(p.X, y)
    noise = theirs.lambda_ / theirs.alpha_
    ours = LinearGPRegressor(noise, resolution="exact", normalize_y=False).fit(p.X, y)
    A = (p.X - p.X.mean(axis=0)).T @ (p.X - p.X.mean(axis=0)) + noise * np.eye(4)
    # Targets are read with 38 bits.
    rounding = 2.0**-38 / np.finfo(float).eps
    assert_rounded(ours.coef_, theirs.coef_, rounding * np.linalg.cond(A))
    Z = p.Q - p.X.mean(axis=0)
    # Their weights have the variance 1 / lambda, ours one; their offset is taken as known.
    variance = 1 / theirs.alpha_ + np.einsum("ij,jk,ik->i", Z, theirs.sigma_, Z)
    want = theirs.lambda_ * variance + noise / 60
    assert_conditioned(ours.predict_variance(p.Q), want, A)


@seeds
def test_the_likelihood_with_an_intercept_is_the_restricted_one(seed):
    p = problem(seed)
    _, K, T = dual(p)
    n, ones = len(K), np.ones(len(K))
    # Of the n - 1 contrasts that are orthogonal to the constant.
    C = np.linalg.qr(np.column_stack([ones, np.eye(n)[:, 1:]]))[0][:, 1:]
    inner = C.T @ K @ C
    want = -n * 0.0
    for t in T.T:
        fit = C.T @ t @ np.linalg.solve(inner, C.T @ t)
        want -= 0.5 * (fit + np.linalg.slogdet(inner)[1] + (n - 1) * np.log(2 * np.pi))
    # The density equals the orthonormal contrasts' density, up to the constant's length.
    want -= 0.5 * T.shape[1] * np.log(n)
    ours = LinearGPClassifier(p.noise, resolution=p.grid).fit(p.X, p.y, sample_weight=p.w)
    assert_conditioned(ours.log_marginal_likelihood(), want, K, abs(want))


def around(noise):
    """The noises next to this one among those to choose from, and farther ones."""
    return noise * 10.0 ** np.array([-4, -2, -1, -0.2, -0.05, 0.05, 0.2, 1, 2, 4])


def judged(p, T, noise, criterion, intercept):
    """How bad a noise is for targets T (n, M), and the mean leverage of the rows, by definition.

    "loo": |R|^2 / (n - tr H)^2 for the hat matrix H of the weighted rows. "evidence": minus the
    density of the targets, less their means, under the amplitude of the kernel that suits it best.
    """
    w = np.ones(len(p.X)) if p.w is None else p.w
    root, n = np.sqrt(w)[:, None], len(w) - intercept
    Z, U = (root * (A - (w @ A / w.sum() if intercept else 0)) for A in (p.X, T))
    H = Z @ np.linalg.solve(Z.T @ Z + noise * np.eye(Z.shape[1]), Z.T)
    leverage = np.trace(H) / n
    if criterion == "loo":
        return ((U - H @ U) ** 2).sum() / (n - np.trace(H)) ** 2, leverage
    # What an intercept leaves of the rows: the complement of their root weights.
    B = np.linalg.svd(root.T)[2][1:] if intercept else np.eye(n)
    K, U = B @ Z @ Z.T @ B.T + noise * np.eye(n), B @ U
    amplitude = (U * np.linalg.solve(K, U)).sum() / U.size
    density = [multivariate_normal(cov=amplitude * K).logpdf(u) for u in U.T]
    return -sum(density), leverage


@seeds
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("criterion", ["loo", "evidence"])
def test_the_noise_is_best_by_its_criterion(seed, intercept, criterion):
    p = problem(seed)
    if len(p.X) <= p.X.shape[1] + 1:
        p = problem(seed, n=30)
    words = {"resolution": p.grid, "intercept": intercept}
    regressor = LinearGPRegressor(criterion, normalize_y=False, **words)
    classifier = LinearGPClassifier(criterion, **words)
    _, T = oracle.one_vs_all(p.y.tolist())
    for chosen, y, targets in ((classifier, p.y, T), (regressor, p.Y, p.Y)):
        noise = chosen.fit(p.X, y, sample_weight=p.w).noise_
        best, leverage = judged(p, targets, noise, criterion, intercept)
        values = np.linalg.eigvalsh(chosen.model_.moments.scatter)
        # Twelve powers of ten below a hundred times the mean eigenvalue are looked at.
        others = around(noise)
        others = others[(others < 1e2 * values.mean()) & (others > 1.2e-10 * values.mean())]
        found = [judged(p, targets, other, criterion, intercept) for other in others]
        limit = 0.5 if chosen is classifier else 1.0
        assert leverage <= limit
        slack = 1e4 * np.finfo(float).eps * (abs(best) + values[-1] / noise)
        assert all(loss >= best - slack for loss, h in found if h <= limit)


@seeds
@pytest.mark.parametrize("n", [9, 40])
def test_without_a_noise_the_amplitude_is_the_most_likely_one(seed, n):
    """With `kernel_` and `noise_` it is the kernel model; no other amplitude suits it better."""
    p = problem(seed, n=n)
    words = {"resolution": p.grid, "intercept": False}
    pairs = (
        (LinearGPClassifier(**words), GPClassifier, p.y),
        (LinearGPRegressor(normalize_y=False, **words), GPRegressor, p.Y),
    )
    for ours, kind, y in pairs:
        ours.fit(p.X, y, ids=range(n))
        assert ours.model_.penalty == clone(ours).set_params(noise="evidence").fit(p.X, y).noise_
        own = {} if kind is GPClassifier else {"normalize_y": False}
        theirs = kind(ours.kernel_, ours.noise_, **own).fit(p.X, y)
        K = ours.kernel_(p.X) + ours.noise_ * np.eye(n)
        # A variance is a difference from a prior, what is left out one from a target.
        least = max(ours.kernel_.diag(np.vstack([p.X, p.Q])).max(), abs(y).max())
        for ask in (
            lambda one: one.model_.mean(p.Q),
            lambda one: one.predict_variance(p.Q),
            lambda one: one.leave_one_out().scores,
            lambda one: one.leave_one_out().variance,
            lambda one: np.array(one.log_marginal_likelihood()),
        ):
            want = ask(theirs)
            assert_conditioned(ask(ours), want, K, max(least, abs(want).max()))
        if n > p.X.shape[1]:
            # Where there are fewer rows than columns, equal rows count once: the same here.
            for factor in (0.9, 1.1):
                other = kind(ConstantKernel(factor) * ours.kernel_, factor * ours.noise_, **own)
                assert other.fit(p.X, y).log_marginal_likelihood() < ours.log_marginal_likelihood()


@pytest.mark.parametrize("intercept", [True, False])
def test_without_a_noise_the_units_of_features_do_not_matter(intercept):
    p, scale = problem(1, n=40), 2.0**20
    for kind, y in ((LinearGPClassifier, p.y), (LinearGPRegressor, p.Y)):
        one = kind(intercept=intercept, resolution=p.grid).fit(p.X, y)
        grid = Grid(p.grid.exponents + 20, p.grid.bits, p.grid.centres * scale)
        other = kind(intercept=intercept, resolution=grid).fit(p.X * scale, y)
        assert_rounded(other.model_.mean(p.Q * scale), one.model_.mean(p.Q), 100)
        assert_rounded(other.predict_variance(p.Q * scale), one.predict_variance(p.Q), 100)


@seeds
def test_a_single_class_has_a_hundredth_of_its_scatter_for_noise(seed):
    p = problem(seed, n=30)
    clf = LinearGPClassifier(resolution=p.grid).fit(p.X, np.zeros(30))
    D = p.X.shape[1]
    assert_rounded(clf.noise_, 0.01 * np.trace(clf.model_.moments.scatter) / D, 10 * D)


@pytest.mark.parametrize("seed", range(6))
def test_loo_judges_no_noise_by_rounding(seed):
    """With more features than rows, what a small noise leaves of the targets is rounding."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 90))
    y = X @ rng.normal(size=90) / 9 + rng.normal(size=30)
    chosen = LinearGPRegressor("loo").fit(X, y).noise_
    # The rows' own matrix knows what the sums cannot: (K + noise)^-1 T has no cancellation.
    C = X - X.mean(axis=0)
    values, U = np.linalg.eigh(C @ C.T)
    values, t = values[1:], (U.T @ (y - y.mean()))[1:]

    def error(noise):
        return ((t / (values + noise)) ** 2).sum() / (1 / (values + noise)).sum() ** 2

    assert error(chosen) <= 1.01 * min(error(noise) for noise in np.logspace(-4, 4, 100))


def texts(rng, n, words=900, classes=4):
    """Frequencies of words in texts, of unit length: by Zipf's law, and some by topic."""
    often = 1 / np.arange(1, words + 1)
    topics = np.array([rng.permutation(words) for _ in range(classes)])
    y = rng.integers(0, classes, n)
    mixed = 0.85 * often + 0.15 * often[topics[y]]
    X = np.array([rng.multinomial(50, row / row.sum()) for row in mixed]).astype(float)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def with_twins(rng, X, y):
    """Some rows occur twice, and some nearly so, a few of these with another label."""
    n = len(X)
    same, near = rng.choice(n, n // 10, replace=False), rng.choice(n, n // 10, replace=False)
    close = X[near] * (1 + 1e-3 * rng.normal(size=X[near].shape))
    y_close = np.where(rng.random(len(near)) < 0.3, rng.permutation(y)[: len(near)], y[near])
    return np.vstack([X, X[same], close]), np.concatenate([y, y[same], y_close])


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("criterion", ["loo", None])
def test_texts_that_occur_twice_do_not_speak_for_no_noise(seed, criterion):
    rng = np.random.default_rng(seed)
    X, y = texts(rng, 700)
    (X, y), (X_new, y_new) = with_twins(rng, X[:300], y[:300]), (X[300:], y[300:])
    size = (X**2).sum(axis=1).mean()
    fixed = [LinearGPClassifier(size * 10.0**k).fit(X, y).score(X_new, y_new) for k in range(-8, 3)]
    chosen = LinearGPClassifier(criterion).fit(X, y)
    # Of 400 texts: two standard deviations.
    assert chosen.score(X_new, y_new) >= max(fixed) - 2 * np.sqrt(0.25 / 400)
    assert min(fixed) < max(fixed) - 0.25


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("criterion", ["loo", None])
def test_rows_that_occur_twice_do_not_speak_for_no_noise(seed, criterion):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 120)) * np.arange(1, 121) ** -0.5
    y = X @ rng.normal(size=120)
    y = y / y.std() + 0.5 * rng.normal(size=600)
    twice = np.append(np.arange(100), np.arange(10))
    fixed = [LinearGPRegressor(10.0**k).fit(X[twice], y[twice]) for k in range(-8, 4)]
    scores = [each.score(X[100:], y[100:]) for each in fixed]
    chosen = LinearGPRegressor(criterion).fit(X[twice], y[twice])
    assert chosen.score(X[100:], y[100:]) >= max(scores) - 0.05
    assert min(scores) < max(scores) - 0.5


@pytest.mark.slow(fast=12)
@seeds
@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_leaving_values_out_is_fitting_without_them(seed, normalize_y, intercept):
    p = problem(seed)
    w, K, _ = dual(p)
    words = {"resolution": p.grid, "normalize_y": normalize_y, "intercept": intercept}
    whole = LinearGPRegressor(p.noise, **words).fit(p.X, p.Y, sample_weight=w)
    for groups in (None, p.groups):
        left = whole.leave_one_out(p.X, p.Y, w, groups)
        own = np.arange(len(w)) if groups is None else groups
        for group in np.unique(own)[:6]:
            out = own == group
            rest = LinearGPRegressor(p.noise, **words)
            rest.fit(p.X[~out], p.Y[~out], sample_weight=w[~out])
            assert_conditioned(left.scores[out], rest.predict(p.X[out]), K, abs(p.Y).max())
            # Of an example of weight w, whose noise is a w-th part.
            more = p.noise * (1 / w[out] - 1)[:, None] * rest.model_.scale**2
            want = rest.predict_variance(p.X[out]) + more
            assert_conditioned(left.variance[out], want, K)


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("bits", [16, 42])
def test_leaving_out_of_fewer_rows_than_columns_is_right_or_silent(noise, bits):
    p = problem(3, n=12, D=30, bits=bits)
    T = oracle.one_vs_all(p.y.tolist())[1]
    clf = LinearGPClassifier(noise, resolution=p.grid, intercept=False).fit(p.X, p.y)
    left, alone = clf.leave_one_out(p.X, p.y), np.arange(12)
    want = oracle.left_out_precisely(DOT(p.X), np.full(12, noise), T, alone)
    A = p.X.T @ p.X + noise * np.eye(30)
    said = ~left.silent
    assert_conditioned(left.scores[said], want[said], A, abs(T - want).max())
    assert (left.variance > 0).all()


@pytest.mark.parametrize("seed", range(120))
def test_the_closed_form_is_within_its_bound_of_refits_in_fractions(seed):
    """Columns of any scale, far from zero or not; rows alone, in groups, or all but one."""
    rng = np.random.default_rng(seed)
    n, D, intercept = int(rng.integers(3, 10)), int(rng.integers(1, 6)), bool(seed % 2)
    far = 10.0 ** rng.uniform(-1, 5, D) * rng.integers(0, 2, D)
    X = (rng.normal(size=(n, D)) + far) * 10.0 ** rng.integers(-4, 10, D)
    w = rng.integers(1, 1000, n) / 256 if seed % 3 else np.ones(n)
    noise = 10.0 ** rng.integers(-6, 4)
    alone, together = np.arange(n), np.append(np.zeros(n - 1), 1)
    groups = (alone, together, np.append(rng.integers(0, 3, n - 1), 5))[rng.integers(3)]
    words = {"resolution": "exact", "intercept": intercept}
    if rng.integers(2):
        y = rng.normal(size=(n, 2)) * [1, 100] + [0, 1e6 * rng.integers(2)]
        fitted = LinearGPRegressor(noise, normalize_y=False, **words).fit(X, y, w)
    else:
        y = np.arange(n) % 3
        fitted = LinearGPClassifier(noise, **words).fit(X, y, w)
    loo = LinearLoo(fitted.model_)
    T = loo.coded(y)
    want, _ = oracle.linear_left_out(fitted.grid_.rounded(X), T, w, noise, groups, intercept)
    parts = [alone] if groups is alone else [np.flatnonzero(groups == g) for g in np.unique(groups)]
    for rows in parts:
        left = loo.moments(X[rows], T[rows], w[rows], together=groups is not alone)
        assert (abs(left.mean - want[rows]) <= left.error).all()
    # No row that was learnt is refused.
    left = fitted.leave_one_out(X, y, w, groups=None if groups is alone else groups)
    assert np.isfinite(left.scores).all()


@pytest.mark.parametrize("noise", [1e-3, 100.0])
def test_of_all_but_one_row_nothing_is_known_but_the_target_of_that_one(noise):
    labels, groups = np.array([*"aabbccc"]), np.array([0] * 6 + [1])
    T = oracle.one_vs_all(labels.tolist())[1]
    scale, far = np.array([1e3, 1e3, 1, 1, 1e9]), np.array([100, 0, 1700, 100, 1700])
    for seed in range(40):
        X = (np.random.default_rng(seed).normal(size=(7, 5)) + far) * scale
        clf = LinearGPClassifier(noise, resolution="exact").fit(X, labels)
        left = clf.leave_one_out(X, labels, groups=groups)
        want, variance = oracle.linear_left_out(clf.grid_.rounded(X), T, np.ones(7), noise, groups)
        assert left.silent.tolist() == [True] * 6 + [False]
        assert_rounded(left.scores[:6], want[:6])
        assert left.predicted[:6].tolist() == ["c"] * 6
        # Means of features are far from zero, so that their rounding shows.
        assert_rounded(left.variance[:6], variance[:6], 100 * max(far))


@seeds
def test_the_units_of_one_row_or_of_equal_targets_are_one(seed):
    p = problem(seed, n=9, D=2)
    y = np.append(p.rng.normal(size=5) * 1e3 + 1e5, np.full(4, 0.125))
    whole = LinearGPRegressor(0.1, resolution=p.grid).fit(p.X, y)
    B = oracle.bordered(DOT(p.X) + whole.noise_ * np.eye(9))
    for out in (np.arange(9) < 8, np.arange(9) < 5):
        rest = LinearGPRegressor(0.1, resolution=p.grid).fit(p.X[~out], y[~out])
        left = whole.leave_one_out(p.X, y, groups=out)
        assert_conditioned(left.variance[out], rest.predict_variance(p.X[out]), B)


def test_a_label_has_one_vote_however_the_classes_are_named():
    p = problem(2)
    one = LinearGPClassifier(p.noise).fit(p.X, p.y)
    other = LinearGPClassifier(p.noise).fit(p.X, np.array(["c", "a", "b"])[p.y])
    order = [1, 2, 0]
    np.testing.assert_array_equal(
        one.decision_function(p.Q)[:, order], other.decision_function(p.Q)
    )


# -- values and edges -----------------------------------------------------------------------------


def test_a_model_of_no_rows_says_so():
    model = LinearModel.of_classes(Sums(Grid([0])), 0.1)
    for ask in (model.mean, model.variance):
        with pytest.raises(KnowmoreError, match=r"^The model holds no rows: all were forgotten\."):
            ask(np.zeros((1, 1)))


def test_a_singular_scatter_gets_what_rounding_takes_and_says_how_much():
    p = problem(5, n=40, D=3)
    X = p.X @ p.rng.normal(size=(3, 12))
    clf = LinearGPClassifier(1e-300, resolution="exact").fit(X, p.y)
    assert np.isfinite(clf.decision_function(X)).all()
    assert clf.model_.added in (0, 4 * 12 * np.finfo(float).eps)
    assert LinearGPClassifier(0.1).fit(X, p.y).model_.added == 0


def test_the_residual_is_a_few_roundings():
    for seed in range(4):
        p = problem(seed)
        clf = LinearGPClassifier(p.noise, resolution=p.grid).fit(p.X, p.y)
        assert clf.residual() <= 10 * np.finfo(float).eps


@pytest.mark.parametrize("bits", [8, 16, 21, "exact"])
def test_targets_are_read_to_35_bits_of_their_spread(bits):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(100, 3)) * [1, 1e-8, 1e8] + [0, 1, 1.7e9]
    Y[7] = 1e30
    reg = LinearGPRegressor(resolution=bits).fit(rng.normal(size=(100, 2)), Y)
    spread = np.median(abs(Y - np.median(Y, axis=0)), axis=0)
    apart = Y - reg.y_grid_.centres
    error = abs(reg.y_grid_.offsets(Y) - apart)
    assert (error <= 2.0**-35 * spread + np.finfo(float).eps * abs(apart)).all()
